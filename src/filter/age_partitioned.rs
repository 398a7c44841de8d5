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
//! - Positions come from one 64-bit hash, multiplied for each slice of the ring by an odd constant of its own; the high
//!   bits choose. Double hashing would give only m^2 different patterns, an error floor near 1 / m for slices of m bits:
//!   0.1 % for a window of 1000 keys. Here a pattern repeats only with the whole hash: for n keys the floor is n / 2^64,
//!   5e-12 for 1e8 keys.

use super::{Filter, Layout};
use crate::Error;
use crate::batch::{Aged, Engine};
use crate::bits::{Address, has_run, odd_constants, ones, scale};
use crate::clock::{Clock, Window};
use crate::sizing::age_partitioned::{MAX_SLICES, Segment, Shape};
use crate::sizing::runs::{self, Accesses};
use crate::words::Words;

/// Which bit, or which block, a key takes in each slice of the ring.
static PLACE: [u64; MAX_SLICES as usize] = odd_constants(0);
/// Which bits a key takes in the block it has in each slice of the ring.
static PATTERN: [u64; MAX_SLICES as usize] = odd_constants(MAX_SLICES as u64);

/// The cells of one slice of the ring; `slice` is its place there, which its hash function goes with.
pub trait Cells: Copy + Send + Sync + 'static {
    /// Words one slice takes.
    fn words(&self) -> usize;
    /// The word, within the slice, where a key's bits begin.
    fn word(&self, slice: usize, hash: u64) -> usize;
    /// Sets the key's bits.
    fn set(&self, words: &mut [u64], slice: usize, hash: u64);
    /// Whether all of the key's bits are set.
    fn all_set(&self, words: &[u64], slice: usize, hash: u64) -> bool;
    /// Bits of one slice that keys can set.
    fn bits(&self) -> u64;
    /// Chance that a fresh key finds all of its bits set in `words`.
    fn match_rate(&self, words: &[u64]) -> f64;
}

/// One bit a key (paper 1, section 5.1).
#[derive(Clone, Copy)]
pub struct Slice {
    bits: u64,
}

impl Cells for Slice {
    fn words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        (scale(hash.wrapping_mul(PLACE[slice]), self.bits) / 64) as usize
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], slice: usize, hash: u64) {
        let bit = scale(hash.wrapping_mul(PLACE[slice]), self.bits);
        words[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    #[inline(always)]
    fn all_set(&self, words: &[u64], slice: usize, hash: u64) -> bool {
        let bit = scale(hash.wrapping_mul(PLACE[slice]), self.bits);
        words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn bits(&self) -> u64 {
        self.bits
    }

    fn match_rate(&self, words: &[u64]) -> f64 {
        // A damaged file may have bits beyond the last of the slice.
        (count_ones(words) as f64 / self.bits as f64).min(1.0)
    }
}

/// `PARTS` bits a key, one in each part of a block (paper 1, section 6).
#[derive(Clone, Copy)]
pub struct Blocks<const PARTS: u32> {
    blocks: u64,
    /// Words of one block.
    block_words: usize,
    /// log2 of the bits in one part.
    part_log2: u32,
}

impl<const PARTS: u32> Blocks<PARTS> {
    fn new(blocks: u64, block_bits: u32) -> Self {
        Self { blocks, block_words: block_bits as usize / 64, part_log2: (block_bits / PARTS).ilog2() }
    }

    /// The key's bit in each part, as a word of the block and a bit in it.
    #[inline(always)]
    fn bits_of(&self, slice: usize, hash: u64) -> impl Iterator<Item = (usize, u64)> {
        let pattern = hash.wrapping_mul(PATTERN[slice]);
        let log2 = self.part_log2;
        (0..PARTS).map(move |part| {
            let in_part = pattern << (part * log2) >> (64 - log2);
            let bit = (u64::from(part) << log2) + in_part;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }
}

impl<const PARTS: u32> Cells for Blocks<PARTS> {
    fn words(&self) -> usize {
        self.blocks as usize * self.block_words
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        scale(hash.wrapping_mul(PLACE[slice]), self.blocks) as usize * self.block_words
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], slice: usize, hash: u64) {
        let start = self.word(slice, hash);
        let block = &mut words[start..start + self.block_words];
        for (word, bit) in self.bits_of(slice, hash) {
            block[word] |= bit;
        }
    }

    #[inline(always)]
    fn all_set(&self, words: &[u64], slice: usize, hash: u64) -> bool {
        let start = self.word(slice, hash);
        let block = &words[start..start + self.block_words];
        self.bits_of(slice, hash).all(|(word, bit)| block[word] & bit != 0)
    }

    fn bits(&self) -> u64 {
        self.words() as u64 * 64
    }

    /// Parts of one block are filled alike, so a block matches with the product of its parts' fills, not with a power
    /// of its own fill; and blocks differ by their load, so their mean comes last.
    fn match_rate(&self, words: &[u64]) -> f64 {
        let part_bits = 1usize << self.part_log2;
        let part_rate = |block: &[u64], part: u32| {
            let start = part as usize * part_bits;
            let ones = match part_bits {
                64.. => count_ones(&block[start / 64..(start + part_bits) / 64]),
                _ => u64::from((block[start / 64] >> (start % 64) & !(!0 << part_bits)).count_ones()),
            };
            ones as f64 / part_bits as f64
        };
        let block_rate = |block: &[u64]| (0..PARTS).map(|part| part_rate(block, part)).product::<f64>();
        words.chunks_exact(self.block_words).map(block_rate).sum::<f64>() / self.blocks as f64
    }
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The ring of slices.
#[derive(Clone, Copy)]
pub struct Ring<C> {
    cells: C,
    k: u32,
    slices: u32,
}

impl<C: Cells> Ring<C> {
    /// The words of one slice of the ring.
    #[inline(always)]
    fn of(&self, slice: u32) -> std::ops::Range<usize> {
        let start = slice as usize * self.cells.words();
        start..start + self.cells.words()
    }

    /// The match vector: bit i says that the slice of age i has all bits of the key.
    #[inline(always)]
    fn matches(&self, words: &[u64], newest: u32, hash: u64) -> u128 {
        let mut ring = 0u128;
        for slice in (0..self.slices).rev() {
            let matched = self.cells.all_set(&words[self.of(slice)], slice as usize, hash);
            ring = ring << 1 | u128::from(matched);
        }
        // Slice `newest` of the ring has age 0; those before it in the ring follow behind the end.
        (ring >> newest | ring << 1 << (self.slices - 1 - newest)) & ones(self.slices)
    }
}

impl<C: Cells> Layout for Ring<C> {
    /// The slice of the ring that is newest: `(-generation) mod (k + l)`, paper 1, section 5.1.
    type Phase = u32;

    fn generations(&self) -> u64 {
        self.slices.into()
    }

    fn phase(&self, generation: i64) -> u32 {
        (-i128::from(generation)).rem_euclid(self.slices.into()) as u32
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, newest: u32, hash: u64) {
        for age in 0..self.k {
            let slice = (newest + age) % self.slices;
            words.fetch(self.of(slice).start + self.cells.word(slice as usize, hash));
        }
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        for slice in 0..self.slices {
            words.fetch(self.of(slice).start + self.cells.word(slice as usize, hash));
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], newest: u32, hash: u64) {
        for age in 0..self.k {
            let slice = (newest + age) % self.slices;
            self.cells.set(&mut words[self.of(slice)], slice as usize, hash);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], newest: u32, pending: u64, hash: u64) -> bool {
        let kept = u64::from(self.slices).saturating_sub(pending) as u32;
        has_run(self.matches(words, newest, hash) & ones(kept), self.k)
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        words[self.of(self.phase(generation))].fill(0);
    }

    fn fill(&self, words: &[u64], newest: u32) -> Vec<f64> {
        let fill = |slice| count_ones(&words[self.of(slice)]) as f64 / self.cells.bits() as f64;
        (0..self.slices).map(|age| fill((newest + age) % self.slices)).collect()
    }

    fn match_rates(&self, words: &[u64], newest: u32) -> Vec<f64> {
        let rate = |slice| self.cells.match_rate(&words[self.of(slice)]);
        (0..self.slices).map(|age| rate((newest + age) % self.slices)).collect()
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
        let damaged = || Error::format("the parameters are damaged");
        let &[k, l, slice_bits, blocks, block_bits, parts, ..] = parameters else {
            return Err(damaged());
        };
        let narrow = |value: u64| u32::try_from(value).map_err(|_| damaged());
        let segment = match slice_bits {
            0 => Segment::Blocks { blocks, block_bits: narrow(block_bits)?, parts: narrow(parts)? },
            bits => Segment::Slice { bits },
        };
        let shape = Shape::new(narrow(k)?, narrow(l)?, segment).map_err(|error| Error::format(error.to_string()))?;
        if words.as_slice().len() as u64 != shape.nbytes() / 8 {
            return Err(Error::format("the cells are not as many as the parameters say"));
        }
        Ok(Self::assemble(shape, resume(shape.l), seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        fn aged<C: Cells>(cells: C, shape: Shape, clock: Clock, words: Words) -> Box<dyn Engine> {
            Box::new(Aged { layout: Ring { cells, k: shape.k, slices: shape.k + shape.l }, words, clock })
        }
        let ring = match shape.segment {
            Segment::Slice { bits } => aged(Slice { bits }, shape, clock, words),
            Segment::Blocks { blocks, block_bits, parts } => match parts {
                1 => aged(Blocks::<1>::new(blocks, block_bits), shape, clock, words),
                2 => aged(Blocks::<2>::new(blocks, block_bits), shape, clock, words),
                4 => aged(Blocks::<4>::new(blocks, block_bits), shape, clock, words),
                _ => aged(Blocks::<8>::new(blocks, block_bits), shape, clock, words),
            },
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
        self.shape.npws(self.keys_per_generation())
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.keys_per_generation())
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(self.shape.k, &self.ring.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
