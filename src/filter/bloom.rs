//! The Bloom filter, classical and partitioned (Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*,
//! 1970; Mullin, *A Second Look at Bloom Filters*, 1983; paper 1, section 4), what the others are measured against.
//! **It has no window**: nothing is ever forgotten.
//!
//! An insertion sets the k bits of a key, anywhere in one array or one in each of k slices; a key is there when all of its
//! bits are set. More keys than it is planned for are taken too, and cost accuracy. The generation of its clock never
//! ends ([`ENDLESS`]), so a batch is one run of keys.
//!
//! Where this differs from the papers: no double hashing, whose floor of errors lies too high ([`cells`](crate::layout::cells)).

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, ENDLESS, Window};
use crate::engine::{Aged, Engine};
use crate::layout::bloom::Bits;
use crate::layout::cells::Parts;
use crate::memory::Words;
use crate::shape::bloom::{Shape, check_capacity};
use crate::shape::runs::Accesses;
use crate::shape::slices::Slices;

/// A Bloom filter: has a key ever been inserted?
#[derive(Clone)]
pub struct Bloom {
    shape: Shape,
    capacity: u64,
    seed: u64,
    bits: Aged<Bits>,
}

impl Bloom {
    /// Its number in the saved form.
    pub const KIND: u16 = 5;

    /// An empty filter, planned for `capacity` keys.
    pub fn new(shape: Shape, capacity: u64, seed: u64) -> Result<Self, Error> {
        check_capacity(capacity)?;
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        let clock = Clock::new(Window::Count { insertions: capacity }, ENDLESS);
        Ok(Self::assemble(shape, capacity, clock, seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, bits, slice_bits, ..] = parameters else {
            return Err(damaged());
        };
        let shape = match slice_bits {
            0 => Shape::classical(narrow(k)?, bits),
            _ => Shape::partitioned(narrow(k)?, slice_bits),
        };
        let (shape, clock) = (shape.map_err(as_damage)?, resume(ENDLESS));
        let Window::Count { insertions: capacity } = clock.window() else {
            return Err(damaged());
        };
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, capacity, clock, seed, words))
    }

    fn assemble(shape: Shape, capacity: u64, clock: Clock, seed: u64, words: Words) -> Self {
        let parts = match shape {
            Shape::Classical { k, bits } => Parts::anywhere(bits, k),
            Shape::Partitioned(slices) => Parts::new(slices.total(), slices.k),
        };
        Self { shape, capacity, seed, bits: Aged { layout: Bits(parts), words, clock } }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where its bits lie.
    pub(crate) fn layout(&self) -> Parts {
        self.bits.layout.0
    }
}

impl Filter for Bloom {
    fn engine(&self) -> &dyn Engine {
        &self.bits
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.bits
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (bits, slice_bits) = match self.shape {
            Shape::Classical { bits, .. } => (bits, 0),
            Shape::Partitioned(Slices { cells, .. }) => (0, cells),
        };
        vec![("k", self.shape.k().into()), ("bits", bits), ("slice_bits", slice_bits)]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.capacity)
    }

    /// Keys do not leave.
    fn slack(&self) -> u64 {
        0
    }

    fn npws(&self) -> f64 {
        0.0
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.capacity)
    }

    /// One for each bit: all are fetched ahead, whatever the first ones turn out to be.
    fn cache_lines(&self) -> Lines {
        let k = f64::from(self.shape.k());
        Lines { insert: k, hit: k, miss: k }
    }

    fn false_positive_rate(&self) -> f64 {
        self.bits.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
