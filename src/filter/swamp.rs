//! SWAMP, the sliding-window approximate measurement protocol (Assaf, Ben Basat, Einziger, Friedman, *Pay for a Sliding
//! Bloom Filter and Get Counting, Distinct Elements, and Entropy for Free*, INFOCOM 2018).
//!
//! A cyclic buffer has the fingerprints of the last W insertions, and a table counts how often each of them occurs
//! there. An insertion writes over the oldest fingerprint of the buffer and takes it off its count: a key leaves exactly
//! when W others have followed, without slack. A key is there when its fingerprint has a count.
//!
//! Where this differs from the paper:
//! - The table is a quotient filter with counts, where the paper has a TinyTable: it cannot overflow. See
//!   [its text](crate::layout::swamp).
//! - Fingerprints are any of S * 2^r, not of a power of two: the table may have any size.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::swamp::Buffered;
use crate::memory::Words;
use crate::shape::runs::Accesses;
use crate::shape::swamp::Shape;

/// A SWAMP: has a key been inserted within the last `window` insertions, how often, and how many different keys were?
#[derive(Clone)]
pub struct Swamp {
    shape: Shape,
    seed: u64,
    cells: Aged<Buffered>,
}

impl Swamp {
    /// Its number in the saved form.
    pub const KIND: u16 = 11;

    /// An empty filter for windows of insertions.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let insertions = shape.check_window(window)?;
        let bytes = shape.nbytes(insertions);
        let len = usize::try_from(bytes / 8).map_err(|_| Error::Memory { bytes })?;
        Ok(Self::assemble(shape, insertions, Clock::new(window, BY_INSERTION), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[slots, remainder_bits, ..] = parameters else {
            return Err(damaged());
        };
        let clock = resume(BY_INSERTION);
        let shape = Shape::new(slots, narrow(remainder_bits)?).map_err(as_damage)?;
        let insertions = shape.check_window(clock.window()).map_err(as_damage)?;
        check_cells(&words, shape.nbytes(insertions) / 8)?;
        Ok(Self::assemble(shape, insertions, clock, seed, words))
    }

    fn assemble(shape: Shape, insertions: u64, clock: Clock, seed: u64, words: Words) -> Self {
        Self { shape, seed, cells: Aged { layout: Buffered::new(shape, insertions), words, clock } }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Writes how often each key was inserted within the window: never less than it was, and more by those keys of the
    /// window that have the same fingerprint, each with chance 1 / [`Shape::fingerprints`].
    pub fn count(&self, hashes: &[u64], counts: &mut [u64]) {
        for (count, &hash) in counts.iter_mut().zip(hashes) {
            *count = self.cells.layout.count(self.cells.words.as_slice(), hash);
        }
    }

    /// Estimate of the number of different keys in the window, from that of their fingerprints: [`Shape::distinct`].
    pub fn distinct(&self) -> f64 {
        self.shape.distinct(self.cells.layout.table.distinct(self.cells.words.as_slice()), self.window())
    }

    fn window(&self) -> u64 {
        self.cells.layout.window as u64
    }
}

impl Filter for Swamp {
    fn engine(&self) -> &dyn Engine {
        &self.cells
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.cells
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("slots", self.shape.slots), ("remainder_bits", self.shape.remainder_bits.into())]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.window())
    }

    /// None: a key leaves with the insertion that is W after its last.
    fn slack(&self) -> u64 {
        0
    }

    fn npws(&self) -> f64 {
        0.0
    }

    /// One place of the table, whatever is found there.
    fn expected_accesses(&self) -> Accesses {
        Accesses { in_window: 1.0, false_positive: 1.0, absent: 1.0 }
    }

    /// The table keeps a key's bits and its remainder in a line or two; an insertion writes those of the key that comes
    /// and of the one that leaves, and one line of the buffer.
    fn cache_lines(&self) -> Lines {
        Lines { insert: 5.0, hit: 2.0, miss: 2.0 }
    }

    fn false_positive_rate(&self) -> f64 {
        self.cells.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
