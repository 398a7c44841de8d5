//! Counters that decay at random.

use crate::clock::Clock;
use crate::inference::{Evidence, Likelihood, Question, stable};
use crate::layout::Layout;
use crate::layout::cells::place;
use crate::layout::counters::CounterSlices;
use crate::memory::prefetch::Address;
use crate::shape::slices::Slices;
use crate::shape::stable::Shape;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Cells that decay at random.
#[derive(Clone, Copy)]
pub struct Decaying<const BITS: u32> {
    pub(crate) cells: CounterSlices<BITS>,
    pub(crate) decrements: u64,
    pub(crate) seed: u64,
}

impl<const BITS: u32> Layout for Decaying<BITS> {
    type Phase = ();

    /// Traces fade at random; none is certain to be gone.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn phase(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: (), hash: u64) {
        self.cells.fetch(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.cells.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], _phase: (), hash: u64) {
        for (word, shift) in self.cells.places(hash) {
            words[word] |= CounterSlices::<BITS>::CELLS.most() << shift;
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _phase: (), hash: u64) -> bool {
        self.cells.holds(words, hash)
    }

    /// Decrements P cells of each slice, the last followed by the first. (Before the first insertion all are zero.)
    fn open(&self, words: &mut [u64], generation: i64) {
        let random = xxh3_64_with_seed(&generation.to_le_bytes(), self.seed);
        let Slices { k, cells } = self.cells.slices;
        for slice in 0..k as usize {
            let first = place(slice, random, cells);
            let to_end = self.decrements.min(cells - first);
            let start = slice as u64 * cells;
            CounterSlices::<BITS>::CELLS.decrement(words, start + first, to_end);
            CounterSlices::<BITS>::CELLS.decrement(words, start, self.decrements - to_end);
        }
    }

    fn fill(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![self.cells.fill(words)]
    }

    /// The least of a key's cells.
    #[inline(always)]
    fn evidence(&self, words: &[u64], _phase: (), hash: u64) -> Evidence {
        Evidence::number(self.cells.values(words, hash).fold(CounterSlices::<BITS>::CELLS.most(), u64::min))
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let shape = Shape { slices: self.cells.slices, bits: BITS, decrements: self.decrements };
        Some(stable::likelihood(shape, clock.inserted(), &self.cells.counts(words), question))
    }

    fn match_rates(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![self.cells.match_rate(words)]
    }
}
