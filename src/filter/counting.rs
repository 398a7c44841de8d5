//! The counting Bloom filter with a deletion queue, what papers 1 and 2 measure against (Fan, Cao, Almeida, Broder,
//! *Summary Cache*, 2000, made a window by deleting what leaves it).
//!
//! k slices of 4-bit counters, and a queue of the hashes of the last W insertions. An insertion adds one to one counter
//! of each slice and takes the place of the oldest hash in the queue, whose counters go down by one. A key is there when
//! none of its counters is zero. The window is exact: a key leaves with the insertion that is W after its own.
//!
//! Where this differs from the papers' baseline:
//! - Saturation is sticky: a counter that reaches 15 is never decremented (erratum GEBF-5). One that stays at 15
//!   for the 16th insertion, but comes down for each that leaves, reaches zero while the last is still in the window: a
//!   key that comes 16 times within a window is lost. The price is a floor of false positives that grows with the
//!   number of such keys: [`shape::counting::floor`](crate::shape::counting::floor).
//! - A slice for each hash function, not one array for all: the rate is then exact in closed form, and a key never
//!   meets one counter twice.
//! - The queue counts as memory: it takes more than the counters.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::counters::CounterSlices;
use crate::layout::counting::Counters;
use crate::memory::Words;
use crate::shape::counting::{BITS, STUCK};
use crate::shape::runs::Accesses;
use crate::shape::slices::Slices;

/// A counting Bloom filter with a deletion queue: has a key been inserted within the last `window` insertions, exactly?
#[derive(Clone)]
pub struct Counting {
    counters: Aged<Counters>,
    seed: u64,
}

impl Counting {
    /// Its number in the [saved form](crate::format).
    pub const KIND: u16 = 6;

    /// An empty filter; the window counts insertions.
    pub fn new(slices: Slices, window: Window, seed: u64) -> Result<Self, Error> {
        let keys = window.by_insertion()?;
        let words = usize::try_from(slices.words(BITS) + keys).unwrap_or(usize::MAX);
        let clock = Clock::new(window, BY_INSERTION);
        Ok(Self::with_words(slices, keys, clock, Words::zeroed(words)?, seed))
    }

    /// The filter that [`Filter::parameters`] and the clock describe, with cells that it had.
    pub(crate) fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let [k, cells, ..] = *parameters else {
            return Err(damaged());
        };
        let slices = Slices::new(narrow(k)?, cells).map_err(as_damage)?;
        let clock = resume(BY_INSERTION);
        let keys = clock.window().by_insertion().map_err(as_damage)?;
        check_cells(&words, slices.words(BITS) + keys)?;
        Ok(Self::with_words(slices, keys, clock, words, seed))
    }

    fn with_words(slices: Slices, window: u64, clock: Clock, words: Words, seed: u64) -> Self {
        let layout = Counters { counters: CounterSlices { slices }, queue: slices.words(BITS) as usize, window };
        Self { counters: Aged { layout, words, clock }, seed }
    }

    fn slices(&self) -> Slices {
        self.counters.layout.counters.slices
    }

    /// Share of the counters that are stuck at 15, which no deletion lowers.
    pub fn stuck(&self) -> f64 {
        let (total, words) = (self.slices().total(), self.counters.words.as_slice());
        (0..total).filter(|&counter| CounterSlices::<BITS>::value(words, counter) == STUCK).count() as f64
            / total as f64
    }
}

impl Filter for Counting {
    fn engine(&self) -> &dyn Engine {
        &self.counters
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.counters
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Slices { k, cells } = self.slices();
        vec![("k", k.into()), ("slice_cells", cells)]
    }

    fn fpr(&self) -> f64 {
        self.slices().false_positive_rate(self.counters.layout.window)
    }

    fn slack(&self) -> u64 {
        0
    }

    fn npws(&self) -> f64 {
        0.0
    }

    fn expected_accesses(&self) -> Accesses {
        self.slices().expected_accesses(self.counters.layout.window)
    }

    /// One in each slice, for the key that comes and the one that leaves, and one of the queue.
    fn cache_lines(&self) -> Lines {
        let accesses = self.expected_accesses();
        Lines { insert: 2.0 * accesses.in_window + 1.0, hit: accesses.in_window, miss: accesses.absent }
    }

    fn false_positive_rate(&self) -> f64 {
        self.counters.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
