//! Bits that keys set and reset.
//!
//! A new generation changes nothing. Generations are as long as possible, so that batches are few long runs.

use crate::clock::Clock;
use crate::inference::generalized::{self, Matches};
use crate::inference::{Evidence, Likelihood, Question};
use crate::layout::Layout;
use crate::layout::cells::{Cells, OneBit, place, share_of_ones};
use crate::memory::prefetch::Address;
use crate::shape::generalized::Shape;
use std::ops::Range;

/// Keys whose bits are being prefetched.
const AHEAD: usize = 16;

/// Bits that keys set and reset.
#[derive(Clone, Copy)]
pub struct FadingBits(pub(crate) Shape);

impl FadingBits {
    /// The bits that a key resets.
    #[inline(always)]
    fn zeros(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k0 as usize).map(move |i| place(i, hash, self.0.bits))
    }

    /// The bits that a key sets; it resets some of them again.
    #[inline(always)]
    fn ones(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k1 as usize).map(move |i| place(self.0.k0 as usize + i, hash, self.0.bits))
    }

    /// Calls `act` on the keys of a run, in order, with their numbers and the bits they reset and set, and prefetches
    /// the bits of later keys. The positions are computed once, for test and insertion.
    #[inline(always)]
    fn in_flight(self, words: Address, hashes: &[u64], run: Range<usize>, mut act: impl FnMut(usize, &[u64], &[u64])) {
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
            act(i, &bits[..k0], &bits[k0..]);
            if let Some(&hash) = hashes.get(i + ahead) {
                locate(hash, bits);
            }
            next = if next + each == ahead * each { 0 } else { next + each };
        }
    }

    /// What the bits say of a key.
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

/// Whether the first bits are zero and the others one. A one that the key itself resets counts as a zero.
#[inline(always)]
fn contains(words: &[u64], zeros: &[u64], ones: &[u64]) -> bool {
    let all_zero = zeros.iter().fold(true, |all, &bit| all & !is_one(words, bit));
    let all_one = ones.iter().fold(true, |all, &bit| all & is_one(words, bit));
    all_zero && (all_one || ones.iter().all(|bit| is_one(words, *bit) || zeros.contains(bit)))
}

#[inline(always)]
fn insert(words: &mut [u64], zeros: &[u64], ones: &[u64]) {
    ones.iter().for_each(|bit| words[(bit / 64) as usize] |= 1 << (bit % 64));
    zeros.iter().for_each(|bit| words[(bit / 64) as usize] &= !(1 << (bit % 64)));
}

#[inline(always)]
fn is_one(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

impl Layout for FadingBits {
    type Phase = ();

    /// Traces fade at random; none is certain to be gone.
    fn generations(&self) -> u64 {
        u64::MAX
    }

    fn phase(&self, _generation: i64, _pending: u64) {}

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: (), hash: u64) {
        self.fetch_all(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.zeros(hash).chain(self.ones(hash)).for_each(|bit| words.fetch((bit / 64) as usize));
    }

    fn insert(&self, words: &mut [u64], phase: (), hash: u64) {
        self.insert_run(words, phase, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], phase: (), hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, phase, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], _phase: (), hashes: &[u64], run: Range<usize>) {
        self.in_flight(Address::of(words), hashes, run, |_, zeros, ones| insert(words, zeros, ones));
    }

    fn query_run(&self, words: &[u64], _phase: (), hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        let act = |i: usize, zeros: &[u64], ones: &[u64]| present[i] = contains(words, zeros, ones);
        self.in_flight(Address::of(words), hashes, run, act);
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        _phase: (),
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

    /// Bits fade with the insertions, not with the generation.
    fn open(&self, _words: &mut [u64], _generation: i64) {}

    fn fill(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![share_of_ones(words, self.0.bits)]
    }

    #[inline(always)]
    fn evidence(&self, words: &[u64], _phase: (), hash: u64) -> Evidence {
        self.matches(words, hash).evidence()
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let ones = self.0.bits as f64 * OneBit::new(self.0.bits).sampled_match_rate(words);
        Some(generalized::likelihood(self.0, clock.inserted(), ones, question))
    }

    fn match_rates(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![self.0.match_rate(share_of_ones(words, self.0.bits))]
    }
}
