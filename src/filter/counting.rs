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
//!
//! A generation of the clock is one insertion; the place in the queue follows from its number.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::inference::ring::Ring;
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::layout::counters::CounterSlices;
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::shape::counting::{BITS, STUCK};
use crate::shape::runs::Accesses;
use crate::shape::slices::Slices;

/// Deletions whose counters are fetched ahead: the queue knows them long before they are due.
const AHEAD: u64 = 16;

/// Counters, and behind them the queue.
#[derive(Clone, Copy)]
struct Counters {
    counters: CounterSlices<BITS>,
    /// The word where the queue begins.
    queue: usize,
    /// W: places in the queue.
    window: u64,
}

impl Counters {
    /// The place in the queue of insertion number `generation`.
    fn place_in_queue(&self, generation: i64) -> usize {
        self.queue + (generation as u64 % self.window) as usize
    }

    /// Takes a key away that leaves the window. Only damaged cells have a zero here; it stays one.
    fn delete(&self, words: &mut [u64], hash: u64) {
        for counter in self.counters.of(hash) {
            let value = CounterSlices::<BITS>::value(words, counter);
            if value != 0 && value != STUCK {
                words[CounterSlices::<BITS>::word(counter)] -= CounterSlices::<BITS>::unit(counter);
            }
        }
    }
}

impl Layout for Counters {
    /// The place of the open insertion in the queue.
    type Phase = usize;

    /// Keys that made a counter stick leave their trace for good.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    /// Nothing is ever pending on a clock of insertions.
    fn phase(&self, generation: i64, _pending: u64) -> usize {
        self.place_in_queue(generation)
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _place: usize, hash: u64) {
        self.counters.fetch(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.counters.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], place: usize, hash: u64) {
        words[place] = hash;
        for counter in self.counters.of(hash) {
            if CounterSlices::<BITS>::value(words, counter) != STUCK {
                words[CounterSlices::<BITS>::word(counter)] += CounterSlices::<BITS>::unit(counter);
            }
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _place: usize, hash: u64) -> bool {
        self.counters.holds(words, hash)
    }

    /// Deletes the insertion whose place in the queue the new one takes, once the queue has come round.
    fn open(&self, words: &mut [u64], generation: i64) {
        if generation as u64 >= self.window {
            let coming = words[self.place_in_queue(generation + AHEAD as i64)];
            self.counters.fetch(Address::of(words), coming);
            self.delete(words, words[self.place_in_queue(generation)]);
        }
    }

    fn fill(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.fill(words)]
    }

    /// It tells whether a key is in the window, and nothing of its age: whether its counters are zero is all that is
    /// looked at, not how great they are. (The queue would tell all, but to search it takes the time of W keys.)
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let length = clock.inserted().min(self.window);
        Some(Box::new(Ring::whole(length, self.counters.sampled_match_rate(words))))
    }

    fn match_rates(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.match_rate(words)]
    }
}

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
