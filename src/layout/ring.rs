//! Slices in a ring, of which an insertion writes the k newest: the layout of the age-partitioned filter and, with k =
//! 1, of guarded epochs.

use crate::Error;
use crate::clock::Clock;
use crate::inference::ring::{self, not_ruled_out};
use crate::inference::{Evidence, Likelihood, Question};
use crate::layout::Layout;
use crate::layout::cells::{Cells, share_of_ones};
use crate::memory::bits::{BitVector, has_run, ones};
use crate::memory::prefetch::Address;
use crate::shape::runs;
use std::ops::Range;

/// The ring of slices.
#[derive(Clone, Copy)]
pub struct Ring<C> {
    cells: C,
    /// Words of one slice.
    stride: usize,
    k: u32,
    slices: u32,
}

impl<C: Cells> Ring<C> {
    /// A ring of `slices` slices, of which an insertion writes the `k` newest.
    pub(crate) fn new(cells: C, k: u32, slices: u32) -> Self {
        Self { cells, stride: cells.words(), k, slices }
    }

    /// The place in the ring of the slice of an age.
    #[inline(always)]
    fn slice(&self, newest: u32, age: u32) -> usize {
        let slice = newest + age;
        (if slice < self.slices { slice } else { slice - self.slices }) as usize
    }

    /// The words of the slice of an age.
    fn words_of(&self, newest: u32, age: u32) -> Range<usize> {
        let start = self.slice(newest, age) * self.stride;
        start..start + self.stride
    }

    /// The match vector: bit i says that the slice of age i has all bits of the key.
    #[inline(always)]
    fn matches<V: BitVector>(&self, words: &[u64], newest: u32, hash: u64) -> V {
        let mut ring = V::default();
        for slice in (0..self.slices as usize).rev() {
            ring = ring << 1 | V::from(self.cells.all_set(words, slice * self.stride, slice, hash));
        }
        // Slice `newest` of the ring has age 0; those before it in the ring follow after the end.
        ring >> newest | ring << 1 << (self.slices - 1 - newest)
    }
}

/// Which slice of the ring is newest, and which ages are still kept.
#[derive(Clone, Copy)]
pub struct Phase {
    newest: u32,
    kept: u128,
}

impl<C: Cells> Layout for Ring<C> {
    type Phase = Phase;

    const SETS_BITS: bool = true;

    fn generations(&self) -> u64 {
        self.slices.into()
    }

    /// The newest slice is number `(-generation) mod (k + l)` of the ring (paper 1, section 5.1).
    fn phase(&self, generation: i64, pending: u64) -> Phase {
        Phase {
            newest: (-i128::from(generation)).rem_euclid(self.slices.into()) as u32,
            kept: ones(u64::from(self.slices).saturating_sub(pending) as u32),
        }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, Phase { newest, .. }: Phase, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.fetch(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        for slice in 0..self.slices as usize {
            words.fetch(slice * self.stride + self.cells.word(slice, hash));
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], Phase { newest, .. }: Phase, hash: u64) {
        for age in 0..self.k {
            let slice = self.slice(newest, age);
            self.cells.set(words, slice * self.stride, slice, hash);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], Phase { newest, kept }: Phase, hash: u64) -> bool {
        if self.slices <= 64 {
            has_run(self.matches::<u64>(words, newest, hash) & kept as u64, self.k)
        } else {
            has_run(self.matches::<u128>(words, newest, hash) & kept, self.k)
        }
    }

    #[inline(always)]
    fn evidence(&self, words: &[u64], Phase { newest, .. }: Phase, hash: u64) -> Evidence {
        let matches = if self.slices <= 64 {
            self.matches::<u64>(words, newest, hash).into()
        } else {
            self.matches::<u128>(words, newest, hash)
        };
        not_ruled_out(matches, self.k, self.slices)
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let Phase { newest, .. } = self.phase(clock.generation(), 0);
        let rate = |age| self.cells.sampled_match_rate(&words[self.words_of(newest, age)]);
        let rates: Vec<f64> = (0..self.slices).map(rate).collect();
        Some(Box::new(ring::Ring::of_clock(self.k, clock, &rates)))
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        words[self.words_of(self.phase(generation, 0).newest, 0)].fill(0);
    }

    fn unite(&self, words: &mut [u64], others: &[u64], _: Self::Phase) -> Result<(), Error> {
        for (word, other) in words.iter_mut().zip(others) {
            *word |= other;
        }
        Ok(())
    }

    fn fill(&self, words: &[u64], Phase { newest, .. }: Phase) -> Vec<f64> {
        let fill = |age| share_of_ones(&words[self.words_of(newest, age)], self.cells.bits());
        (0..self.slices).map(fill).collect()
    }

    fn match_rates(&self, words: &[u64], Phase { newest, .. }: Phase) -> Vec<f64> {
        (0..self.slices).map(|age| self.cells.match_rate(&words[self.words_of(newest, age)])).collect()
    }

    fn false_positive_rate(&self, words: &[u64], phase: Phase) -> f64 {
        runs::false_positive_rate(self.k, &self.match_rates(words, phase))
    }
}
