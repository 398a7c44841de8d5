//! The bits of a [generalized Bloom filter](super::shape), which keys set and reset.
//!
//! A new generation changes nothing. Generations are as long as possible, so that batches are few long runs.

use super::likelihood::{self, Matches};
use super::shape::GeneralizedShape;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::arrays::{OneBit, SliceCells, place, share_of_ones};
use crate::inference::{Evidence, Likelihood, Question};
use crate::memory::prefetch::Address;
use std::ops::Range;

/// Number of keys whose bits are prefetched ahead.
const AHEAD: usize = 16;

/// The layout of a generalized filter: bits that keys set and reset.
#[derive(Clone, Copy)]
pub struct FadingBits(pub(crate) GeneralizedShape);

impl FadingBits {
    /// Returns the bits that a key resets.
    #[inline(always)]
    fn zeros(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k0 as usize).map(move |i| place(i, hash, self.0.bits))
    }

    /// Returns the bits that a key sets, before it may reset some of them.
    #[inline(always)]
    fn ones(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k1 as usize).map(move |i| place(self.0.k0 as usize + i, hash, self.0.bits))
    }

    /// Calls `apply` for the keys of a run, in order, with their numbers and the bits that they reset and set.
    /// Prefetches the bits of later keys. Computes positions once for query and insertion.
    #[inline(always)]
    fn in_flight(
        self,
        words: Address,
        hashes: &[u64],
        run: Range<usize>,
        mut apply: impl FnMut(usize, &[u64], &[u64]),
    ) {
        let (k0, each, ahead) = (self.0.k0 as usize, (self.0.k0 + self.0.k1) as usize, AHEAD.min(run.len()));
        let locate = |hash: u64, bits: &mut [u64]| {
            for (i, bit) in bits.iter_mut().enumerate() {
                *bit = place(i, hash, self.0.bits);
                words.fetch((*bit / 64) as usize);
            }
        };
        let mut coming = vec![0; ahead * each];
        for (bits, &hash) in coming.chunks_exact_mut(each).zip(&hashes[run.clone()]) {
            locate(hash, bits);
        }
        let (mut next, hashes) = (0, &hashes[..run.end]);
        for i in run {
            let bits = &mut coming[next..next + each];
            apply(i, &bits[..k0], &bits[k0..]);
            if let Some(&hash) = hashes.get(i + ahead) {
                locate(hash, bits);
            }
            next = if next + each == ahead * each { 0 } else { next + each };
        }
    }

    /// Counts how many of a key's bits are as an insertion leaves them. Bits that coincide count once.
    pub fn matches(self, words: &[u64], hash: u64) -> Matches {
        let mut evidence = Matches { zeros: 0, zeros_matching: 0, ones: 0, ones_matching: 0 };
        for (i, bit) in self.zeros(hash).enumerate() {
            if !self.zeros(hash).take(i).any(|before| before == bit) {
                evidence.zeros += 1;
                evidence.zeros_matching += u32::from(!is_one(words, bit));
            }
        }
        for (i, bit) in self.ones(hash).enumerate() {
            if !self.ones(hash).take(i).chain(self.zeros(hash)).any(|other| other == bit) {
                evidence.ones += 1;
                evidence.ones_matching += u32::from(is_one(words, bit));
            }
        }
        evidence
    }
}

/// Returns whether all of `zeros` are zero and all of `ones` one. A one that the key itself resets may be zero.
#[inline(always)]
fn contains(words: &[u64], zeros: &[u64], ones: &[u64]) -> bool {
    let all_zero = zeros.iter().fold(true, |all, &bit| all & !is_one(words, bit));
    let all_one = ones.iter().fold(true, |all, &bit| all & is_one(words, bit));
    all_zero && (all_one || ones.iter().all(|bit| is_one(words, *bit) || zeros.contains(bit)))
}

/// Sets `ones`, then resets `zeros`.
#[inline(always)]
fn insert(words: &mut [u64], zeros: &[u64], ones: &[u64]) {
    ones.iter().for_each(|bit| words[(bit / 64) as usize] |= 1 << (bit % 64));
    zeros.iter().for_each(|bit| words[(bit / 64) as usize] &= !(1 << (bit % 64)));
}

/// Returns whether a bit is one.
#[inline(always)]
fn is_one(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

impl Layout for FadingBits {
    type Rotation = ();

    /// Returns a number that no stream reaches: traces fade at random, and none is certain to be gone.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn rotation(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.zeros(hash).chain(self.ones(hash)).for_each(|bit| words.fetch((bit / 64) as usize));
    }

    fn insert(&self, words: &mut [u64], rotation: (), hash: u64) {
        self.insert_run(words, rotation, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], rotation: (), hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, rotation, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], _rotation: (), hashes: &[u64], run: Range<usize>) {
        self.in_flight(Address::of(words), hashes, run, |_, zeros, ones| insert(words, zeros, ones));
    }

    fn query_run(&self, words: &[u64], _rotation: (), hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        let apply = |i: usize, zeros: &[u64], ones: &[u64]| present[i] = contains(words, zeros, ones);
        self.in_flight(Address::of(words), hashes, run, apply);
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        _rotation: (),
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        let mut inserted = 0;
        self.in_flight(Address::of(words), hashes, run, |i, zeros, ones| {
            seen[i] = contains(words, zeros, ones);
            if refresh || !seen[i] {
                insert(words, zeros, ones);
                inserted += 1;
            }
        });
        inserted
    }

    /// Returns the evidence about a key.
    #[inline(always)]
    fn evidence(&self, words: &[u64], _rotation: (), hash: u64) -> Evidence {
        self.matches(words, hash).evidence()
    }

    fn fill(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![share_of_ones(words, self.0.bits)]
    }

    fn match_rates(&self, words: &[u64], _rotation: ()) -> Vec<f64> {
        vec![self.0.match_rate(share_of_ones(words, self.0.bits))]
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let ones = self.0.bits as f64 * OneBit::new(self.0.bits).sampled_match_rate(words);
        Some(likelihood::likelihood(self.0, clock.inserted(), ones, question))
    }
}
