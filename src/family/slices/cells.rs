//! A ring of slices; an insertion writes the k newest. It is the layout of the age-partitioned Bloom filter and, with
//! k = 1, of the guarded-epoch Bloom filter.

use crate::clock::Clock;
use crate::family::arrays::{SliceCells, share_of_ones};
use crate::family::{Layout, runs};
use crate::inference::ring::{self, not_ruled_out};
use crate::inference::{Evidence, Likelihood, Question};
use crate::memory::bits::{BitVector, has_run, ones};
use crate::memory::prefetch::Address;
use std::ops::Range;

/// The layout of a ring of slices: an insertion writes the k newest.
#[derive(Clone, Copy)]
pub struct SliceRing<C> {
    cells: C,
    /// Words of one slice.
    stride: usize,
    k: u32,
    slices: u32,
}

impl<C: SliceCells> SliceRing<C> {
    /// Returns a ring of `slices` slices. An insertion writes the `k` newest.
    pub(crate) fn new(cells: C, k: u32, slices: u32) -> Self {
        Self { cells, stride: cells.words(), k, slices }
    }

    /// Returns the place in the ring of the slice of an age.
    #[inline(always)]
    fn slice(&self, newest: u32, age: u32) -> usize {
        let slice = newest + age;
        (if slice < self.slices { slice } else { slice - self.slices }) as usize
    }

    /// Returns the words of the slice of an age.
    fn words_of(&self, newest: u32, age: u32) -> Range<usize> {
        let start = self.slice(newest, age) * self.stride;
        start..start + self.stride
    }

    /// Returns the match vector: bit i is set if the slice of age i has all bits of the key.
    #[inline(always)]
    fn matches<V: BitVector>(&self, words: &[u64], newest: u32, hash: u64) -> V {
        let mut ring = V::default();
        for slice in (0..self.slices as usize).rev() {
            ring = ring << 1 | V::from(self.cells.all_set(words, slice * self.stride, slice, hash));
        }
        // Slice `newest` of the ring has age 0. The slices before it in the ring come after the last one.
        ring >> newest | ring << 1 << (self.slices - 1 - newest)
    }
}

/// Which slice of the ring is newest, and which ages are retained.
#[derive(Clone, Copy)]
pub struct SliceRotation {
    /// The place in the ring of the newest slice.
    newest: u32,
    /// The ages that are retained at the moment of a query, a bit for each.
    retained: u128,
}

impl<C: SliceCells> Layout for SliceRing<C> {
    type Rotation = SliceRotation;

    fn sets_bits(&self) -> bool {
        true
    }

    fn generations(&self) -> u64 {
        self.slices.into()
    }

    /// Returns the rotation. The newest slice is number `(-generation) mod (k + l)` of the ring (paper 1, section 5.1).
    fn rotation(&self, generation: i64, pending: u64) -> SliceRotation {
        SliceRotation {
            newest: (-i128::from(generation)).rem_euclid(self.slices.into()) as u32,
            retained: ones(u64::from(self.slices).saturating_sub(pending) as u32),
        }
    }

    #[inline(always)]
    fn prefetch_insert(&self, words: Address, SliceRotation { newest, .. }: SliceRotation, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.fetch(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        for slice in 0..self.slices as usize {
            words.fetch(slice * self.stride + self.cells.word(slice, hash));
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], SliceRotation { newest, .. }: SliceRotation, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.set(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], SliceRotation { newest, retained }: SliceRotation, hash: u64) -> bool {
        if self.slices <= 64 {
            has_run(self.matches::<u64>(words, newest, hash) & retained as u64, self.k)
        } else {
            has_run(self.matches::<u128>(words, newest, hash) & retained, self.k)
        }
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        words[self.words_of(self.rotation(generation, 0).newest, 0)].fill(0);
    }

    /// Returns the generations that the slices do not rule out for a key, as evidence.
    #[inline(always)]
    fn evidence(&self, words: &[u64], SliceRotation { newest, .. }: SliceRotation, hash: u64) -> Evidence {
        let matches = if self.slices <= 64 {
            self.matches::<u64>(words, newest, hash).into()
        } else {
            self.matches::<u128>(words, newest, hash)
        };
        not_ruled_out(matches, self.k, self.slices)
    }

    fn fill(&self, words: &[u64], SliceRotation { newest, .. }: SliceRotation) -> Vec<f64> {
        let fill = |age| share_of_ones(&words[self.words_of(newest, age)], self.cells.bits());
        (0..self.slices).map(fill).collect()
    }

    fn match_rates(&self, words: &[u64], SliceRotation { newest, .. }: SliceRotation) -> Vec<f64> {
        (0..self.slices).map(|age| self.cells.match_rate(&words[self.words_of(newest, age)])).collect()
    }

    fn false_positive_rate(&self, words: &[u64], rotation: SliceRotation) -> f64 {
        runs::false_positive_rate(self.k, &self.match_rates(words, rotation))
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let SliceRotation { newest, .. } = self.rotation(clock.generation(), 0);
        let rate = |age| self.cells.sampled_match_rate(&words[self.words_of(newest, age)]);
        let rates: Vec<f64> = (0..self.slices).map(rate).collect();
        Some(Box::new(ring::RingLikelihood::of_clock(self.k, clock, &rates)))
    }
}
