//! Counters, and a queue of the hashes to be deleted from them. A generation of the clock is one insertion, whose
//! number gives its place in the queue.

use super::shape::{BITS, CountingShape, STUCK};
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::baselines::counters::CounterSlices;
use crate::inference::ring::RingLikelihood;
use crate::inference::{Likelihood, Question};
use crate::memory::fallible;
use crate::memory::prefetch::{Address, in_flight};

/// Deletions whose counters are prefetched: the queue contains them long before they are due.
const AHEAD: u64 = 16;

/// The layout of a counting Bloom filter: counters, followed by the queue.
#[derive(Clone, Copy)]
pub struct Counters {
    counters: CounterSlices,
    /// The word at which the queue begins.
    queue: usize,
    /// W: the number of places in the queue.
    window: u64,
}

impl Counters {
    /// Returns the counters of a shape, with a queue of `window` keys.
    pub fn new(shape: CountingShape, window: u64) -> Self {
        let slices = shape.slices;
        Self { counters: CounterSlices::new(slices, BITS), queue: slices.words(BITS) as usize, window }
    }

    /// Returns the word of insertion number `generation` in the queue.
    fn place_in_queue(&self, generation: i64) -> usize {
        self.queue + (generation as u64 % self.window) as usize
    }

    /// Raises the counters of a key that is inserted.
    #[inline(always)]
    fn add(&self, words: &mut [u64], hash: u64) {
        for (word, shift) in self.counters.places(hash) {
            if self.counters.lanes.get(words[word], shift) != STUCK {
                words[word] += 1 << shift;
            }
        }
    }

    /// Deletes a key that leaves the window. Only damaged counters are zero here, and they stay zero.
    #[inline(always)]
    fn delete(&self, words: &mut [u64], hash: u64) {
        for (word, shift) in self.counters.places(hash) {
            let value = self.counters.lanes.get(words[word], shift);
            if value != 0 && value != STUCK {
                words[word] -= 1 << shift;
            }
        }
    }
}

impl Layout for Counters {
    /// The word of the open insertion in the queue.
    type Rotation = usize;

    /// Returns a number that no stream reaches: keys that made a counter stick leave a trace forever.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    /// Returns the word of the insertion in the queue. No generation is ever pending on a clock of insertions.
    fn rotation(&self, generation: i64, _pending: u64) -> usize {
        self.place_in_queue(generation)
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.counters.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], place: usize, hash: u64) {
        words[place] = hash;
        self.add(words, hash);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _place: usize, hash: u64) -> bool {
        self.counters.contains(words, hash)
    }

    /// Deletes the insertion whose place in the queue the new one gets, once the queue is full. It is inlined because
    /// every insertion does so, and a call would take a tenth of its time.
    #[inline(always)]
    fn open(&self, words: &mut [u64], generation: i64) {
        if generation as u64 >= self.window {
            let coming = words[self.place_in_queue(generation + AHEAD as i64)];
            self.counters.fetch(Address::of(words), coming);
            match words[self.place_in_queue(generation)] {
                0 => (),
                leaving => self.delete(words, leaving),
            }
        }
    }

    fn fill(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.fill(words)]
    }

    fn match_rates(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.match_rate(words)]
    }

    /// Returns a likelihood of a single generation: whether a counter is zero is evidence of presence, and no evidence
    /// of age. (The queue contains the age, but searching it takes the time of W keys.)
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let length = clock.inserted().min(self.window);
        Some(Box::new(RingLikelihood::whole(length, self.counters.sampled_match_rate(words))))
    }

    /// Writes 0 to the queue, which stands for no key. (A key with that hash, one in 2^64, is never deleted: it stays,
    /// and no key is missed.)
    #[inline(always)]
    fn skip(&self, words: &mut [u64], place: usize) {
        words[place] = 0;
    }

    /// Rejects counters that are lower than the insertions in the queue: they would reach zero too early, while another
    /// key still needs them.
    fn verify(&self, words: &[u64], clock: &Clock) -> Result<(), Error> {
        let mut least = fallible::zeroed(self.queue)?;
        let filled = clock.inserted().min(self.window) as usize;
        let (hashes, address) = (&words[self.queue..][..filled], Address::of(&least));
        in_flight(
            hashes,
            0..filled,
            |hash| self.counters.fetch(address, hash),
            |_, hash| {
                if hash != 0 {
                    self.add(&mut least, hash);
                }
            },
        );
        let total = self.counters.slices.total();
        let value = |words: &[u64], counter| self.counters.value(words, counter);
        match (0..total).all(|counter| value(words, counter) >= value(&least, counter)) {
            true => Ok(()),
            false => Err(Error::format("the counters are lower than the keys of the queue require")),
        }
    }

    /// Returns how often a key was inserted within the window, up to 15. It is never too low. The least counter of a
    /// key has the fewest insertions of other keys.
    fn count(&self, words: &[u64], hash: u64) -> Option<u64> {
        self.counters.values(words, hash).min()
    }
}
