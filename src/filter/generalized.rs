//! The generalized Bloom filter (Laufer, Velloso, Duarte, *A Generalized Bloom Filter to Secure Distributed Network
//! Applications*, 2011), on streams as paper 5, section 5, has it. **It promises no window**: every bit forgets gradually.
//!
//! k1 hashes of a key set bits to one, k0 reset bits to zero, and where both hit, zero wins. A key matches when its
//! zeros are zero and its ones are one: it was inserted lately, as long as no later key changed one of its bits. How
//! lately is a matter of chance, told by [`Memory`](crate::shape::generalized::Memory), and of the query, which may ask
//! for any window: what of the bits matches is [`Evidence`] for it. The window of the filter is what its shape was chosen
//! for, and nothing else.
//!
//! Where this differs from the papers: no double hashing, whose floor of errors lies too high ([`cells`](crate::layout::cells)).
//!
//! Nothing happens when a generation begins; it is as long as can be, so that batches are few long runs.

use std::ops::Range;

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::inference::generalized::{self, Evidence};
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::layout::cells::{Cells, Slice, place, share_of_ones};
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::shape::generalized::{Shape, insertions};
use crate::shape::runs::Accesses;

/// Full generations that the clock counts for a window: any number would do.
const KEPT: u32 = 1;

/// Keys whose bits are on their way.
const AHEAD: usize = 16;

/// Bits that keys set and reset.
#[derive(Clone, Copy)]
struct Bits(Shape);

impl Bits {
    /// The bits that a key resets.
    #[inline(always)]
    fn zeros(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k0 as usize).map(move |i| place(i, hash, self.0.bits))
    }

    /// The bits that a key sets, some of which it resets again.
    #[inline(always)]
    fn ones(self, hash: u64) -> impl Iterator<Item = u64> {
        (0..self.0.k1 as usize).map(move |i| place(self.0.k0 as usize + i, hash, self.0.bits))
    }

    /// Calls `act` on the keys of a run, in order, with their numbers and the bits they reset and set, in this order,
    /// with the bits of the keys to come on their way. Where they are is worked out once, for test and insertion too.
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

    fn matches(self, words: &[u64], hash: u64) -> Evidence {
        let mut evidence = Evidence { zeros: 0, zeros_matching: 0, ones: 0, ones_matching: 0 };
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

/// Whether the first bits are zero and the others one. A one that the key itself resets is a zero.
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

impl Layout for Bits {
    type Phase = ();

    /// Traces fade at random, and none is sure to be gone.
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
    fn evidence(&self, words: &[u64], _phase: (), hash: u64) -> u128 {
        self.matches(words, hash).pack()
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let ones = self.0.bits as f64 * Slice::new(self.0.bits).sampled_match_rate(words);
        Some(generalized::likelihood(self.0, clock.inserted(), ones, question))
    }

    fn match_rates(&self, words: &[u64], _phase: ()) -> Vec<f64> {
        vec![self.0.match_rate(share_of_ones(words, self.0.bits))]
    }
}

/// A generalized Bloom filter: do the bits of a key look as if it had been inserted lately?
#[derive(Clone)]
pub struct Generalized {
    seed: u64,
    bits: Aged<Bits>,
}

impl Generalized {
    /// Its number in the saved form.
    pub const KIND: u16 = 10;

    /// An empty filter; the window counts insertions, and is only what the shape was chosen for.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        insertions(window)?;
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        let (layout, words) = (Bits(shape), Words::zeroed(len)?);
        Ok(Self { seed, bits: Aged { layout, words, clock: Clock::new(window, KEPT) } })
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[bits, k1, k0, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(bits, narrow(k1)?, narrow(k0)?).map_err(as_damage)?;
        let clock = resume(KEPT);
        insertions(clock.window()).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self { seed, bits: Aged { layout: Bits(shape), words, clock } })
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.bits.layout.0
    }

    /// The insertions that its shape was chosen for.
    fn window(&self) -> u64 {
        insertions(self.bits.clock.window()).expect("refused when it was made")
    }

    /// What its bits say of a key.
    pub fn evidence(&self, hash: u64) -> Evidence {
        self.bits.layout.matches(self.bits.words.as_slice(), hash)
    }
}

impl Filter for Generalized {
    fn engine(&self) -> &dyn Engine {
        &self.bits
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.bits
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Shape { bits, k1, k0 } = self.shape();
        vec![("bits", bits), ("k1", k1.into()), ("k0", k0.into())]
    }

    fn fpr(&self) -> f64 {
        self.shape().false_positive_rate()
    }

    /// No bound: a key may match long after, ever less likely.
    fn slack(&self) -> u64 {
        u64::MAX
    }

    fn npws(&self) -> f64 {
        let window = self.window() as f64;
        self.shape().memory().remembered_from(window) / window
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape().expected_accesses()
    }

    /// One for each hash: all are fetched ahead, whatever the first ones turn out to be.
    fn cache_lines(&self) -> Lines {
        let all = f64::from(self.shape().k0 + self.shape().k1);
        Lines { insert: all, hit: all, miss: all }
    }

    fn false_positive_rate(&self) -> f64 {
        self.bits.match_rates()[0]
    }

    /// Of the key just inserted and of the oldest of the window, a generation of the clock before it; of all ages between
    /// and beyond [`Memory`](crate::shape::generalized::Memory) tells.
    fn false_negative_rates(&self) -> Vec<f64> {
        vec![0.0, self.shape().memory().missed((self.window() - 1) as f64)]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
