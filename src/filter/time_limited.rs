//! The time-limited Bloom filter (paper 3: Rodrigues, Shtul, Baquero, Almeida, *Time-limited Bloom Filter*, 2023): an
//! age-partitioned filter for a span of time in which nobody knows how many keys will come.
//!
//! Slices have sizes of their own. An insertion sets one bit in each of the k newest; a shift puts a new slice before
//! them, sized by the rate seen; a slice whose last update is older than the span is stale, is passed over by queries and
//! dropped by the next shift. So slices come and go with the rate, and a key is there when k consecutive live slices
//! have its bits. The formulas are in [`shape::time_limited`](crate::shape::time_limited).
//!
//! Where this differs from the paper:
//! - A generation ends when its keys are in (equation 5) and also, unlike there, after the l-th part of the span: where
//!   the rate falls, a generation that waits for its keys would keep all of them, and no slack could be stated.
//! - A shift is made by the insertion that needs it, which also updates the new slice.
//! - The target (equation 6) is at most the number of keys the filter holds: keys of one and the same moment have no
//!   rate. In a burst it grows with each generation, so sizes follow within a few times k shifts.
//! - After a gap longer than the span the filter begins anew, with k slices of the first size (or of the largest there
//!   is, where that is smaller). In the paper the next insertion makes the newest slices live again, with all the
//!   expired keys in them.
//! - Lateness lengthens the span: a late key is taken as of the latest moment seen.
//!
//! A shift moves the live slices: within the memory they have, or, where the rate has changed or somebody else holds that
//! memory, into new memory, so that for that moment the filter takes up to twice its bytes. At a steady rate the filter is
//! moved once per generation: at 1 %, where l = 20, that is 54 bytes per insertion. A shift that cannot have its memory is
//! an error that leaves the filter as it was before the key; the keys before it are inserted.

use super::saved::{as_damage, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::Engine;
use crate::layout::cells::Cells;
use crate::layout::time_limited::Slices;
use crate::memory::Words;
use crate::shape::runs::{self, Accesses};
use crate::shape::time_limited::{LEAST_BITS, MOST_BITS, Shape};

/// A time-limited Bloom filter: has a key been inserted within the last span of time, whatever the rate?
#[derive(Clone)]
pub struct TimeLimited {
    seed: u64,
    slices: Slices,
}

impl TimeLimited {
    /// Its number in the saved form.
    pub const KIND: u16 = 4;

    /// An empty filter whose first k slices have `first_bits` bits each.
    pub fn new(shape: Shape, first_bits: u64, window: Window, seed: u64) -> Result<Self, Error> {
        let shape = Self::check(shape, first_bits, window.check()?)?;
        Ok(Self { seed, slices: Slices::new(shape, first_bits, Clock::new(window, shape.l))? })
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, l, first_bits, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(narrow(k)?, narrow(l)?).map_err(as_damage)?;
        let clock = resume(shape.l);
        Self::check(shape, first_bits, clock.window()).map_err(as_damage)?;
        Ok(Self { seed, slices: Slices::read(shape, first_bits, clock, words)? })
    }

    fn check(shape: Shape, first_bits: u64, window: Window) -> Result<Shape, Error> {
        if let Window::Count { .. } = window {
            return Err(Error::value("window must be a span of time for a time-limited filter"));
        }
        if !(LEAST_BITS..=MOST_BITS).contains(&first_bits) || !first_bits.is_multiple_of(64) {
            return Err(Error::value(format!(
                "slice_bits must be a multiple of 64 in {LEAST_BITS} .. 2**60, got {first_bits}"
            )));
        }
        Shape::new(shape.k, shape.l)
    }

    /// k and l.
    pub fn shape(&self) -> Shape {
        self.slices.shape
    }

    /// Bits of each slice there is, the newest first, stale ones included.
    pub fn slice_bits(&self) -> Vec<u64> {
        self.slices.table.iter().map(|slice| slice.bits.bits()).collect()
    }
}

impl Filter for TimeLimited {
    fn engine(&self) -> &dyn Engine {
        &self.slices
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.slices
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Shape { k, l } = self.slices.shape;
        vec![("k", k.into()), ("l", l.into()), ("slice_bits", self.slices.first_bits)]
    }

    /// While no more than k + l slices are live, as they are at a steady rate.
    fn fpr(&self) -> f64 {
        self.slices.shape.false_positive_rate()
    }

    /// A key leaves its last trace in the slice that was newest with it, which is updated for less than k generations.
    fn slack(&self) -> u64 {
        self.slices.clock.window().slack(self.slices.shape.l, self.slices.shape.k)
    }

    fn npws(&self) -> f64 {
        let Shape { k, l, .. } = self.slices.shape;
        self.slices.clock.window().npws(l, f64::from(l) * runs::npws(k, l, &self.slices.shape.fills()))
    }

    fn expected_accesses(&self) -> Accesses {
        runs::expected_accesses(self.slices.shape.k, self.slices.shape.l, &self.slices.shape.fills())
    }

    /// One in each slice: k are written, and a query reads as Algorithm 1 does, over all slices planned.
    fn cache_lines(&self) -> Lines {
        let accesses = self.expected_accesses();
        Lines { insert: self.shape().k.into(), hit: accesses.in_window, miss: accesses.absent }
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(self.slices.shape.k, &self.slices.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
