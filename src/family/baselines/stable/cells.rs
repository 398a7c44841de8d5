//! The counters of a [stable Bloom filter](super::shape), which decay at random.

use super::likelihood;
use super::shape::StableShape;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::arrays::place;
use crate::family::baselines::counters::CounterSlices;
use crate::family::slice_sizes::Slices;
use crate::inference::{Evidence, Likelihood, Question};
use crate::memory::prefetch::Address;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The layout of a stable filter: counters that decay at random.
#[derive(Clone, Copy)]
pub struct Decaying {
    pub(crate) cells: CounterSlices,
    pub(crate) decrements: u64,
    pub(crate) seed: u64,
}

impl Layout for Decaying {
    type Rotation = ();

    /// Returns a number that no stream reaches: traces fade at random, and none is certain to be gone.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn rotation(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.cells.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], _rotation: (), hash: u64) {
        for (word, shift) in self.cells.places(hash) {
            words[word] |= self.cells.lanes.most() << shift;
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _rotation: (), hash: u64) -> bool {
        self.cells.contains(words, hash)
    }

    /// Decrements P cells of each slice from a random one on, the last followed by the first. (Before the first
    /// insertion all are zero.)
    fn open(&self, words: &mut [u64], generation: i64) {
        let random = xxh3_64_with_seed(&generation.to_le_bytes(), self.seed);
        let Slices { k, cells } = self.cells.slices;
        for slice in 0..k as usize {
            let first = place(slice, random, cells);
            let to_end = self.decrements.min(cells - first);
            let start = slice as u64 * cells;
            self.cells.lanes.decrement(words, start + first, to_end);
            self.cells.lanes.decrement(words, start, self.decrements - to_end);
        }
    }

    /// Returns the least of a key's cells as evidence.
    #[inline(always)]
    fn evidence(&self, words: &[u64], _rotation: (), hash: u64) -> Evidence {
        Evidence::number(self.cells.values(words, hash).fold(self.cells.lanes.most(), u64::min))
    }

    fn fill(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![self.cells.fill(words)]
    }

    fn match_rates(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![self.cells.match_rate(words)]
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let shape = StableShape {
            slices: self.cells.slices,
            bits: self.cells.lanes.bits() as u32,
            decrements: self.decrements,
        };
        Some(likelihood::likelihood(shape, clock.inserted(), &self.cells.counts(words), question))
    }
}
