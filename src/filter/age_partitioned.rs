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

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::cells::{Blocks, Slice};
use crate::layout::ring::Ring;
use crate::memory::Words;
use crate::shape::age_partitioned::{Segment, Shape};
use crate::shape::runs::{self, Accesses};

/// A ring of slices of `blocks` blocks, whose size and number of parts a shape has checked.
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
        (64, 1) => Aged::boxed(Ring::new(Blocks::<1, 1>::new(blocks), k, slices), words, clock),
        (64, 2) => Aged::boxed(Ring::new(Blocks::<1, 2>::new(blocks), k, slices), words, clock),
        (64, 4) => Aged::boxed(Ring::new(Blocks::<1, 4>::new(blocks), k, slices), words, clock),
        (64, 8) => Aged::boxed(Ring::new(Blocks::<1, 8>::new(blocks), k, slices), words, clock),
        (512, 1) => Aged::boxed(Ring::new(Blocks::<8, 1>::new(blocks), k, slices), words, clock),
        (512, 2) => Aged::boxed(Ring::new(Blocks::<8, 2>::new(blocks), k, slices), words, clock),
        (512, 4) => Aged::boxed(Ring::new(Blocks::<8, 4>::new(blocks), k, slices), words, clock),
        (512, 8) => Aged::boxed(Ring::new(Blocks::<8, 8>::new(blocks), k, slices), words, clock),
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
            Segment::Slice { bits } => Aged::boxed(Ring::new(Slice::new(bits), shape.k, slices), words, clock),
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
