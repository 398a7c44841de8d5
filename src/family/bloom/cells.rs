//! The bits of a [Bloom filter](super::shape), which never age.

use super::shape::BloomShape;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::arrays::{BitsInParts, SliceCells, share_of_ones};
use crate::inference::ring::RingLikelihood;
use crate::inference::{Likelihood, Question};
use crate::memory::prefetch::Address;

/// The layout of a Bloom filter: one set of [`BitsInParts`]; the slices of a partitioned filter are the parts.
#[derive(Clone, Copy)]
pub struct Bits(pub(crate) BitsInParts);

impl Bits {
    /// Returns the bits of a shape.
    pub fn new(shape: BloomShape) -> Self {
        Self(match shape {
            BloomShape::Classical { k, bits } => BitsInParts::anywhere(bits, k),
            BloomShape::Partitioned(slices) => BitsInParts::new(slices.total(), slices.k),
        })
    }
}

impl Layout for Bits {
    type Rotation = ();

    fn sets_bits(&self) -> bool {
        true
    }

    /// Returns a number that no stream reaches: no key ever leaves.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn rotation(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn prefetch_insert(&self, words: Address, _rotation: (), hash: u64) {
        self.0.fetch(words, 0, 0, hash);
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.0.fetch(words, 0, 0, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], _rotation: (), hash: u64) {
        self.0.set(words, 0, 0, hash);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _rotation: (), hash: u64) -> bool {
        self.0.all_set(words, 0, 0, hash)
    }

    fn fill(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![share_of_ones(words, self.0.bits())]
    }

    fn match_rates(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![self.0.match_rate(words)]
    }

    /// Returns a likelihood of a single generation. The bits show only whether a key was ever inserted, which contains
    /// little about a window.
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(RingLikelihood::whole(clock.inserted(), self.0.sampled_match_rate(words))))
    }
}
