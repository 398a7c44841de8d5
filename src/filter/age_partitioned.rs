//! The age-partitioned Bloom filter, plain and blocked (paper 1: Shtul, Baquero, Almeida, *Age-Partitioned Bloom
//! Filters*, 2020).
//!
//! k + l slices lie in a ring. An insertion sets one bit in each of the k newest; a new generation clears the oldest
//! slice and makes it the newest. A key is there when k consecutive slices, counted by age, have its bits. The blocked
//! variant (paper 1, section 6) has in place of a slice a blocked Bloom filter: the key picks one block in it and sets
//! one bit in each of the block's parts.
//!
//! Where this differs from the paper:
//! - A generation ends when the insertion that needs the next one arrives, so the last l * g + 1 insertions are always
//!   there, and g = ceil((W - 1) / l) keeps the promise. The paper's l * g is the same to one.
//! - Queries look at all slices and search the match vector for a run, where Algorithm 1 stops early: what it saves in
//!   reads it loses in mispredicted branches as long as the lines are fetched ahead.
//! - Positions are not made by double hashing, whose floor of errors lies too high: see [`cells`](crate::layout::cells).

use std::ops::Range;

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::inference::ring::{Ring as Likelihoods, not_ruled_out};
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::layout::cells::{Blocks, Cells, Slice, share_of_ones};
use crate::memory::Words;
use crate::memory::bits::{BitVector, has_run, ones};
use crate::memory::prefetch::Address;
use crate::shape::age_partitioned::{Segment, Shape};
use crate::shape::runs::{self, Accesses};

/// The ring of slices.
#[derive(Clone, Copy)]
pub struct Ring<C> {
    cells: C,
    /// Words of one slice.
    stride: usize,
    k: u32,
    slices: u32,
}

impl<C: Cells> Ring<C> {
    /// A ring of `slices` slices, of which an insertion writes the `k` newest; with what ages it.
    pub(super) fn aged(cells: C, k: u32, slices: u32, clock: Clock, words: Words) -> Box<dyn Engine> {
        let layout = Self { cells, stride: cells.words(), k, slices };
        Box::new(Aged { layout, words, clock })
    }

    /// Where in the ring the slice of an age is.
    #[inline(always)]
    fn slice(&self, newest: u32, age: u32) -> usize {
        let slice = newest + age;
        (if slice < self.slices { slice } else { slice - self.slices }) as usize
    }

    /// The words of the slice of an age.
    fn words_of(&self, newest: u32, age: u32) -> Range<usize> {
        let start = self.slice(newest, age) * self.stride;
        start..start + self.stride
    }

    /// The match vector: bit i says that the slice of age i has all bits of the key.
    #[inline(always)]
    fn matches<V: BitVector>(&self, words: &[u64], newest: u32, hash: u64) -> V {
        let mut ring = V::default();
        for slice in (0..self.slices as usize).rev() {
            ring = ring << 1 | V::from(self.cells.all_set(words, slice * self.stride, slice, hash));
        }
        // Slice `newest` of the ring has age 0; those before it in the ring follow behind the end.
        ring >> newest | ring << 1 << (self.slices - 1 - newest)
    }
}

/// Which slice of the ring is newest, and which ages, counted from it, are still kept.
#[derive(Clone, Copy)]
pub struct Phase {
    newest: u32,
    kept: u128,
}

impl<C: Cells> Layout for Ring<C> {
    type Phase = Phase;

    fn generations(&self) -> u64 {
        self.slices.into()
    }

    /// The newest slice is number `(-generation) mod (k + l)` of the ring (paper 1, section 5.1).
    fn phase(&self, generation: i64, pending: u64) -> Phase {
        Phase {
            newest: (-i128::from(generation)).rem_euclid(self.slices.into()) as u32,
            kept: ones(u64::from(self.slices).saturating_sub(pending) as u32),
        }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, Phase { newest, .. }: Phase, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.fetch(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        for slice in 0..self.slices as usize {
            words.fetch(slice * self.stride + self.cells.word(slice, hash));
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], Phase { newest, .. }: Phase, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.set(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], Phase { newest, kept }: Phase, hash: u64) -> bool {
        if self.slices <= 64 {
            has_run(self.matches::<u64>(words, newest, hash) & kept as u64, self.k)
        } else {
            has_run(self.matches::<u128>(words, newest, hash) & kept, self.k)
        }
    }

    #[inline(always)]
    fn evidence(&self, words: &[u64], Phase { newest, .. }: Phase, hash: u64) -> u128 {
        let matches = if self.slices <= 64 {
            self.matches::<u64>(words, newest, hash).into()
        } else {
            self.matches::<u128>(words, newest, hash)
        };
        not_ruled_out(matches, self.k, self.slices)
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let Phase { newest, .. } = self.phase(clock.generation(), 0);
        let rate = |age| self.cells.sampled_match_rate(&words[self.words_of(newest, age)]);
        let rates: Vec<f64> = (0..self.slices).map(rate).collect();
        Some(Box::new(Likelihoods::of_clock(self.k, clock, &rates)))
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        words[self.words_of(self.phase(generation, 0).newest, 0)].fill(0);
    }

    fn unite(&self, words: &mut [u64], others: &[u64]) -> Result<(), Error> {
        for (word, other) in words.iter_mut().zip(others) {
            *word |= other;
        }
        Ok(())
    }

    fn fill(&self, words: &[u64], Phase { newest, .. }: Phase) -> Vec<f64> {
        let fill = |age| share_of_ones(&words[self.words_of(newest, age)], self.cells.bits());
        (0..self.slices).map(fill).collect()
    }

    fn match_rates(&self, words: &[u64], Phase { newest, .. }: Phase) -> Vec<f64> {
        (0..self.slices).map(|age| self.cells.match_rate(&words[self.words_of(newest, age)])).collect()
    }
}

/// [`Ring::aged`] of slices of `blocks` blocks, whose size and number of parts a shape has checked.
pub(super) fn blocked(
    blocks: u64,
    block_bits: u32,
    parts: u32,
    k: u32,
    slices: u32,
    clock: Clock,
    words: Words,
) -> Box<dyn Engine> {
    match (block_bits, parts) {
        (64, 1) => Ring::aged(Blocks::<1, 1>::new(blocks), k, slices, clock, words),
        (64, 2) => Ring::aged(Blocks::<1, 2>::new(blocks), k, slices, clock, words),
        (64, 4) => Ring::aged(Blocks::<1, 4>::new(blocks), k, slices, clock, words),
        (64, 8) => Ring::aged(Blocks::<1, 8>::new(blocks), k, slices, clock, words),
        (512, 1) => Ring::aged(Blocks::<8, 1>::new(blocks), k, slices, clock, words),
        (512, 2) => Ring::aged(Blocks::<8, 2>::new(blocks), k, slices, clock, words),
        (512, 4) => Ring::aged(Blocks::<8, 4>::new(blocks), k, slices, clock, words),
        (512, 8) => Ring::aged(Blocks::<8, 8>::new(blocks), k, slices, clock, words),
        _ => unreachable!("a shape has no other blocks"),
    }
}

/// An age-partitioned Bloom filter: has a key been inserted within the last `window` insertions, or span of time?
#[derive(Clone)]
pub struct AgePartitioned {
    shape: Shape,
    seed: u64,
    ring: Box<dyn Engine>,
}

impl AgePartitioned {
    /// Its number in the saved form.
    pub const KIND: u16 = 1;

    /// An empty filter.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(shape, Clock::new(window.check()?, shape.l), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, l, slice_bits, blocks, block_bits, parts, ..] = parameters else {
            return Err(damaged());
        };
        let segment = match slice_bits {
            0 => Segment::Blocks { blocks, block_bits: narrow(block_bits)?, parts: narrow(parts)? },
            bits => Segment::Slice { bits },
        };
        let shape = Shape::new(narrow(k)?, narrow(l)?, segment).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, resume(shape.l), seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        let slices = shape.k + shape.l;
        let ring = match shape.segment {
            Segment::Slice { bits } => Ring::aged(Slice::new(bits), shape.k, slices, clock, words),
            Segment::Blocks { blocks, block_bits, parts } => {
                blocked(blocks, block_bits, parts, shape.k, slices, clock, words)
            }
        };
        Self { shape, seed, ring }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    fn keys_per_generation(&self) -> u64 {
        self.ring.clock().window().keys_per_generation(self.shape.l)
    }
}

impl Filter for AgePartitioned {
    fn engine(&self) -> &dyn Engine {
        &*self.ring
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.ring
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (slice_bits, blocks, block_bits, parts) = match self.shape.segment {
            Segment::Slice { bits } => (bits, 0, 0, 0),
            Segment::Blocks { blocks, block_bits, parts } => (0, blocks, block_bits, parts),
        };
        vec![
            ("k", self.shape.k.into()),
            ("l", self.shape.l.into()),
            ("slice_bits", slice_bits),
            ("blocks", blocks),
            ("block_bits", block_bits.into()),
            ("parts", parts.into()),
        ]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.keys_per_generation())
    }

    fn slack(&self) -> u64 {
        self.ring.clock().window().slack(self.shape.l, self.shape.k)
    }

    fn npws(&self) -> f64 {
        let fading = f64::from(self.shape.l) * self.shape.npws(self.keys_per_generation());
        self.ring.clock().window().npws(self.shape.l, fading)
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.keys_per_generation())
    }

    /// One in each slice: queries look at all of them.
    fn cache_lines(&self) -> Lines {
        let (insert, all) = (f64::from(self.shape.k), f64::from(self.shape.k + self.shape.l));
        Lines { insert, hit: all, miss: all }
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(self.shape.k, &self.ring.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
