//! Counters, and the queue of the hashes to be deleted from them. A generation of the clock is one insertion, and its
//! number gives the place in the queue.

use crate::Error;
use crate::clock::Clock;
use crate::inference::ring::Ring;
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::layout::counters::CounterSlices;
use crate::memory::fallible;
use crate::memory::prefetch::{Address, in_flight};
use crate::shape::counting::{BITS, STUCK, Shape};

/// Deletions whose counters are prefetched: the queue knows them long before they are due.
const AHEAD: u64 = 16;

/// Counters, followed by the queue.
#[derive(Clone, Copy)]
pub struct Counters {
    counters: CounterSlices<BITS>,
    /// The word where the queue begins.
    queue: usize,
    /// W: places in the queue.
    window: u64,
}

impl Counters {
    /// Counters, and a queue of `window` keys.
    pub fn new(shape: Shape, window: u64) -> Self {
        let slices = shape.slices;
        Self { counters: CounterSlices { slices }, queue: slices.words(BITS) as usize, window }
    }

    /// How often a key was inserted within the window, up to 15: never too low. Its least counter has the fewest
    /// insertions of others.
    pub fn count(&self, words: &[u64], hash: u64) -> u64 {
        self.counters.values(words, hash).min().unwrap_or(0)
    }

    /// Share of the counters that are stuck at 15, which no deletion lowers.
    pub fn stuck(&self, words: &[u64]) -> f64 {
        let total = self.counters.slices.total();
        let stuck = (0..total).filter(|&counter| CounterSlices::<BITS>::value(words, counter) == STUCK);
        stuck.count() as f64 / total as f64
    }

    /// The place in the queue of insertion number `generation`.
    fn place_in_queue(&self, generation: i64) -> usize {
        self.queue + (generation as u64 % self.window) as usize
    }

    #[inline(always)]
    fn add(&self, words: &mut [u64], hash: u64) {
        for (word, shift) in self.counters.places(hash) {
            if CounterSlices::<BITS>::CELLS.get(words[word], shift) != STUCK {
                words[word] += 1 << shift;
            }
        }
    }

    /// Deletes a key that leaves the window. Only damaged cells have a zero here; it stays zero.
    #[inline(always)]
    fn delete(&self, words: &mut [u64], hash: u64) {
        for (word, shift) in self.counters.places(hash) {
            let value = CounterSlices::<BITS>::CELLS.get(words[word], shift);
            if value != 0 && value != STUCK {
                words[word] -= 1 << shift;
            }
        }
    }
}

impl Layout for Counters {
    /// The place of the open insertion in the queue.
    type Phase = usize;

    /// Keys that made a counter stick leave a trace forever.
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
        self.add(words, hash);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _place: usize, hash: u64) -> bool {
        self.counters.holds(words, hash)
    }

    /// 0 in the queue is no key. (A key of that hash, one in 2^64, is never deleted: it stays, and none is missed.)
    #[inline(always)]
    fn pass(&self, words: &mut [u64], place: usize) {
        words[place] = 0;
    }

    /// Deletes the insertion whose place in the queue the new one takes, once the queue has come round. Every insertion
    /// does so, and a call would take a tenth of it.
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

    /// Counters lower than the queue asks for would reach zero too early, with another key's insertion in them.
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
        let value = CounterSlices::<BITS>::value;
        match (0..total).all(|counter| value(words, counter) >= value(&least, counter)) {
            true => Ok(()),
            false => Err(Error::format("the counters do not count the keys of the queue")),
        }
    }

    fn fill(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.fill(words)]
    }

    /// It tells whether a key is in the window, but nothing of its age: only whether its counters are zero is used, not
    /// their values. (The queue knows the age, but searching it takes the time of W keys.)
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let length = clock.inserted().min(self.window);
        Some(Box::new(Ring::whole(length, self.counters.sampled_match_rate(words))))
    }

    fn match_rates(&self, words: &[u64], _place: usize) -> Vec<f64> {
        vec![self.counters.match_rate(words)]
    }
}
