//! The cyclic buffer of fingerprints and the table that counts them: see [`shape::swamp`](crate::shape::swamp).

mod slots;
mod table;

use std::hash::{BuildHasher, RandomState};

use crate::Error;
use crate::clock::Clock;
use crate::inference::ring::Ring;
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::memory::bits::scale;
use crate::memory::packed;
use crate::memory::prefetch::Address;
use crate::shape::swamp::Shape;
use table::Table;

/// How many insertions before a fingerprint is taken off the table its place there is prefetched.
const AHEAD: usize = 16;
/// Blocks of slots to sample for the number of fingerprints, if there are more: right to 1 % where half are in use.
const SAMPLE: usize = 1 << 8;

/// The cyclic buffer, followed by the table.
#[derive(Clone, Copy)]
pub struct Buffered {
    /// W: fingerprints in the buffer.
    window: usize,
    shape: Shape,
    fingerprint_bits: u32,
    fingerprints: u64,
    table: Table,
}

/// Which fingerprint of the buffer is the newest, and how many there are.
#[derive(Clone, Copy)]
pub struct Phase {
    newest: usize,
    filled: usize,
}

impl Buffered {
    pub(crate) fn new(shape: Shape, window: u64) -> Self {
        let start = shape.buffer_words(window) as usize;
        Self {
            window: window as usize,
            shape,
            fingerprint_bits: shape.fingerprint_bits(),
            fingerprints: shape.fingerprints(),
            table: Table::new(start, shape.slots as usize, shape.remainder_bits),
        }
    }

    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.fingerprints)
    }

    /// A fingerprint of the buffer; damaged cells may hold something else.
    #[inline(always)]
    fn buffered(&self, words: &[u64], slot: usize) -> u64 {
        packed::get(words, self.fingerprint_bits, slot).min(self.fingerprints - 1)
    }

    /// Prefetches a fingerprint's place in the table.
    #[inline(always)]
    fn fetch(&self, words: Address, fingerprint: u64) {
        self.table.place(fingerprint).into_iter().for_each(|word| words.fetch(word));
    }

    /// How often a key was inserted within the window. It is never too low; each other key of the window adds its
    /// insertions with chance 1 / [`Shape::fingerprints`].
    pub fn count(&self, words: &[u64], hash: u64) -> u64 {
        self.table.count(words, self.fingerprint(hash))
    }

    /// Estimate of the number of different keys in the window, from the number of their fingerprints:
    /// [`Shape::distinct`].
    pub fn distinct(&self, words: &[u64]) -> f64 {
        self.shape.distinct(self.table.distinct(words), self.window as u64)
    }

    /// Counts a fingerprint and makes it the newest.
    #[inline(always)]
    fn put(&self, words: &mut [u64], Phase { newest, filled }: Phase, fingerprint: u64) {
        packed::set(words, self.fingerprint_bits, newest, fingerprint);
        // Only a damaged table has no place for it, and any buffer makes a sound one.
        if !self.table.add(words, fingerprint) {
            self.rebuild(words, filled);
        }
    }

    /// Makes the table of the first `filled` fingerprints of the buffer.
    #[cold]
    fn rebuild(&self, words: &mut [u64], filled: usize) {
        words[self.table.slots.start..].fill(0);
        for slot in 0..filled {
            let fingerprint = self.buffered(words, slot);
            let counted = self.table.add(words, fingerprint);
            debug_assert!(counted, "a sound table has room for the whole buffer");
        }
    }
}

impl Layout for Buffered {
    type Phase = Phase;

    fn generations(&self) -> u64 {
        self.window as u64
    }

    /// A generation is one insertion, so its number gives the fingerprint's place in the buffer.
    fn phase(&self, generation: i64, _pending: u64) -> Phase {
        let generation = generation as u64;
        let window = self.window as u64;
        Phase { newest: (generation % window) as usize, filled: generation.saturating_add(1).min(window) as usize }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: Phase, hash: u64) {
        self.fetch_all(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.fetch(words, self.fingerprint(hash));
    }

    fn insert(&self, words: &mut [u64], phase: Phase, hash: u64) {
        self.put(words, phase, self.fingerprint(hash));
    }

    /// There may be no number that is not a fingerprint: the last one stands for no key. All such places together are
    /// as one more key of the window, which has fewer keys then, so the rate holds.
    fn pass(&self, words: &mut [u64], phase: Phase) {
        self.put(words, phase, self.fingerprints - 1);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _phase: Phase, hash: u64) -> bool {
        self.count(words, hash) > 0
    }

    /// Takes the fingerprint to be overwritten off its count.
    fn open(&self, words: &mut [u64], generation: i64) {
        let newest = self.phase(generation, 0).newest;
        if generation as u64 >= self.window as u64 {
            let oldest = self.buffered(words, newest);
            self.table.remove(words, oldest);
            let coming = self.buffered(words, (newest + AHEAD) % self.window);
            self.fetch(Address::of(words), coming);
        }
    }

    /// A table that counts other fingerprints than the buffer has would lose one too early: it takes off what another
    /// insertion brought. Sums of a random function of each, which nobody can foresee, are equal by chance once in 2^64
    /// insertions of a window.
    fn verify(&self, words: &[u64], clock: &Clock) -> Result<(), Error> {
        let random = RandomState::new();
        let of = |fingerprint: u64| random.hash_one(fingerprint);
        let filled = clock.inserted().min(self.window as u64) as usize;
        let buffered = (0..filled).fold(0u64, |sum, slot| sum.wrapping_add(of(self.buffered(words, slot))));
        match self.table.sum(words, of) == Some(buffered) {
            true => Ok(()),
            false => Err(Error::format("the table does not count the fingerprints of the buffer")),
        }
    }

    /// Share of the table's slots in use.
    fn fill(&self, words: &[u64], _phase: Phase) -> Vec<f64> {
        vec![self.table.used(words) as f64 / self.table.slots.count as f64]
    }

    /// It tells whether a key is in the window, but nothing of its age: counts are not used, and searching the buffer
    /// takes the time of W keys.
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let blocks = self.table.slots.blocks().min(SAMPLE);
        let fingerprints = self.fingerprints as f64 / self.table.slots.blocks() as f64 * blocks as f64;
        let taken = self.table.distinct_in(words, blocks) as f64;
        let length = clock.inserted().min(self.window as u64);
        Some(Box::new(Ring::whole(length, (taken + 0.5) / (fingerprints + 1.0))))
    }

    fn match_rates(&self, words: &[u64], _phase: Phase) -> Vec<f64> {
        vec![self.table.distinct(words) as f64 / self.fingerprints as f64]
    }
}
