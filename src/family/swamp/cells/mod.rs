//! The cyclic buffer of fingerprints and the table that counts them: see [`shape::swamp`](super::shape).

mod slots;
mod table;

use std::hash::{BuildHasher, RandomState};

use super::shape::SwampShape;
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::inference::ring::RingLikelihood;
use crate::inference::{Likelihood, Question};
use crate::memory::bits::scale;
use crate::memory::packed;
use crate::memory::prefetch::Address;
use table::CountingTable;

/// Number of insertions between the prefetch of a fingerprint's place in the table and its removal.
const AHEAD: usize = 16;
/// Number of blocks in which fingerprints are counted, if there are more: right to 1 % where half the slots are in use.
const SAMPLE: usize = 1 << 8;

/// The layout of a SWAMP: the cyclic buffer of fingerprints, followed by the table.
#[derive(Clone, Copy)]
pub struct Buffered {
    /// W: the number of places in the buffer.
    window: usize,
    shape: SwampShape,
    fingerprint_bits: u32,
    fingerprints: u64,
    table: CountingTable,
}

/// The place of the newest fingerprint in the buffer, and the number of places in use.
#[derive(Clone, Copy)]
pub struct BufferRotation {
    newest: usize,
    filled: usize,
}

impl Buffered {
    /// Returns the layout of a shape, with a buffer of `window` fingerprints.
    pub(crate) fn new(shape: SwampShape, window: u64) -> Self {
        let start = shape.buffer_words(window) as usize;
        Self {
            window: window as usize,
            shape,
            fingerprint_bits: shape.fingerprint_bits(),
            fingerprints: shape.fingerprints(),
            table: CountingTable::new(start, shape.slots as usize, shape.remainder_bits),
        }
    }

    /// Returns the fingerprint of a key.
    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.fingerprints)
    }

    /// Returns the fingerprint in a place of the buffer. A damaged place may contain a greater number, which is cut.
    #[inline(always)]
    fn buffered(&self, words: &[u64], slot: usize) -> u64 {
        packed::get(words, self.fingerprint_bits, slot).min(self.fingerprints - 1)
    }

    /// Prefetches the place of a fingerprint in the table.
    #[inline(always)]
    fn fetch(&self, words: Address, fingerprint: u64) {
        self.table.place(fingerprint).into_iter().for_each(|word| words.fetch(word));
    }

    /// Counts a fingerprint and makes it the newest.
    #[inline(always)]
    fn put(&self, words: &mut [u64], BufferRotation { newest, filled }: BufferRotation, fingerprint: u64) {
        packed::set(words, self.fingerprint_bits, newest, fingerprint);
        // Only a damaged table is full. A new one can be made of any buffer.
        if !self.table.add(words, fingerprint) {
            self.rebuild(words, filled);
        }
    }

    /// Makes a new table of the first `filled` fingerprints of the buffer.
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
    type Rotation = BufferRotation;

    fn generations(&self) -> u64 {
        self.window as u64
    }

    /// Returns the rotation. A generation is one insertion, so its number gives the place in the buffer.
    fn rotation(&self, generation: i64, _pending: u64) -> BufferRotation {
        let generation = generation as u64;
        let window = self.window as u64;
        BufferRotation {
            newest: (generation % window) as usize,
            filled: generation.saturating_add(1).min(window) as usize,
        }
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.fetch(words, self.fingerprint(hash));
    }

    fn insert(&self, words: &mut [u64], rotation: BufferRotation, hash: u64) {
        self.put(words, rotation, self.fingerprint(hash));
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _rotation: BufferRotation, hash: u64) -> bool {
        self.table.count(words, self.fingerprint(hash)) > 0
    }

    /// Removes the fingerprint that will be overwritten from the table.
    fn open(&self, words: &mut [u64], generation: i64) {
        let newest = self.rotation(generation, 0).newest;
        if generation as u64 >= self.window as u64 {
            let oldest = self.buffered(words, newest);
            self.table.remove(words, oldest);
            let coming = self.buffered(words, (newest + AHEAD) % self.window);
            self.fetch(Address::of(words), coming);
        }
    }

    /// Returns the share of the table's slots in use.
    fn fill(&self, words: &[u64], _rotation: BufferRotation) -> Vec<f64> {
        vec![self.table.used(words) as f64 / self.table.slots.count as f64]
    }

    fn match_rates(&self, words: &[u64], _rotation: BufferRotation) -> Vec<f64> {
        vec![self.table.distinct(words) as f64 / self.fingerprints as f64]
    }

    /// Returns a likelihood of a single generation: the table shows whether a key is in the window, but not its age.
    /// Counts are not used, and searching the buffer takes the time of W keys.
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let blocks = self.table.slots.blocks().min(SAMPLE);
        let fingerprints = self.fingerprints as f64 / self.table.slots.blocks() as f64 * blocks as f64;
        let used = self.table.distinct_in(words, blocks) as f64;
        let length = clock.inserted().min(self.window as u64);
        Some(Box::new(RingLikelihood::whole(length, (used + 0.5) / (fingerprints + 1.0))))
    }

    /// Inserts the last fingerprint, which then stands for no key, because every number may be a fingerprint. All
    /// skipped places together are like one more key of the window. The window has fewer keys then, so the rate holds.
    fn skip(&self, words: &mut [u64], rotation: BufferRotation) {
        self.put(words, rotation, self.fingerprints - 1);
    }

    /// Rejects a table that counts other fingerprints than the buffer contains: removals would then lower the counts of
    /// keys in the window. Compares sums of a random function of each fingerprint, which no attacker can predict. They
    /// are equal by chance once in 2^64 tables.
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

    /// Returns an [estimate](SwampShape::distinct) from the number of different fingerprints.
    fn distinct(&self, words: &[u64]) -> Option<f64> {
        Some(self.shape.distinct(self.table.distinct(words), self.window as u64))
    }

    /// Returns how often a key was inserted within the window. It is never too low; each other key of the window adds
    /// its insertions with chance 1 / [`SwampShape::fingerprints`].
    fn count(&self, words: &[u64], hash: u64) -> Option<u64> {
        Some(self.table.count(words, self.fingerprint(hash)))
    }
}
