//! The bits of a [Bloom filter](crate::shape::bloom), which never age.

use crate::Error;
use crate::clock::Clock;
use crate::inference::ring::Ring;
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::layout::cells::{Cells, Parts, share_of_ones};
use crate::memory::prefetch::Address;
use crate::shape::bloom::Shape;

/// The bits: one set of [`Parts`]; the slices of a partitioned filter are the parts.
#[derive(Clone, Copy)]
pub struct Bits(pub(crate) Parts);

impl Bits {
    /// The bits of a shape.
    pub fn new(shape: Shape) -> Self {
        Self(match shape {
            Shape::Classical { k, bits } => Parts::anywhere(bits, k),
            Shape::Partitioned(slices) => Parts::new(slices.total(), slices.k),
        })
    }
}

impl Layout for Bits {
    type Phase = ();

    const SETS_BITS: bool = true;

    /// No key ever leaves.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn phase(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: (), hash: u64) {
        self.0.fetch(words, 0, 0, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.0.fetch(words, 0, 0, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], _phase: (), hash: u64) {
        self.0.set(words, 0, 0, hash);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _phase: (), hash: u64) -> bool {
        self.0.all_set(words, 0, 0, hash)
    }

    /// Never called: the first generation does not end.
    fn open(&self, _words: &mut [u64], _generation: i64) {}

    fn fill(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![share_of_ones(words, self.0.bits())]
    }

    fn match_rates(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![self.0.match_rate(words)]
    }

    /// It only tells whether a key was ever inserted, which says little about a window.
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(Ring::whole(clock.inserted(), self.0.sampled_match_rate(words))))
    }

    fn unite(&self, words: &mut [u64], others: &[u64], _: Self::Phase) -> Result<(), Error> {
        for (word, other) in words.iter_mut().zip(others) {
            *word |= other;
        }
        Ok(())
    }
}
