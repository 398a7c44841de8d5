//! A cache of posteriors by evidence. Evidence takes few values: some ten to a few thousand for a filter.
//!
//! If priors differ by key, the cached value is a [curve](super::posterior_curve) that is the same for all priors.
//! Fading cells have no such curve and take long for a posterior. Theirs is approximated in each octave of priors, p to
//! 2p, by the polynomial of degree 7 through eight Chebyshev nodes. With q the prior, its error is at most 2 / 4^8
//! times the greatest q^8 / 8! times the eighth derivative. A posterior is made of two functions: of odds o q / (1 + o
//! q) that product is at most .05, and of the chance 1 - e^(-qw) of a window .14. Fading cells mix the two at every
//! age: the error is below 1e-4 for a key as old as a few times 1 / q, and 1e-2 for one long overdue, which is rare.
//! The few keys with a chance above 1/8 are computed exactly, and so is a prior that all keys share.

use super::code_cache::{CodeCurves, CodePosteriors};
use super::posterior_curve::polynomial;
use super::{Code, Evidence, PosteriorCurve};
use crate::memory::fallible;

/// Least number of entries, as a power of 2. Larger tables have as many entries as the batch has keys, because a few
/// keys should not pay for zeroing a whole table.
const MIN_LOG2: u32 = 6;
/// Greatest number of entries for a shared prior: entries in use stay in the cache, and a larger table loses fewer of
/// them to collisions.
const SHARED_LOG2: u32 = 14;
/// Greatest number of entries for posterior curves: half a MiB.
const BY_PRIOR_LOG2: u32 = 13;
/// Greatest number of entries for polynomials: 4 MiB.
const POLYNOMIALS_LOG2: u32 = 16;
/// Number of bits of a prior within its octave.
const WITHIN: u32 = 52;
/// A Weyl constant: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Number of terms of a polynomial.
const TERMS: usize = 8;
/// Chebyshev nodes: cos((2 i + 1) π / 16).
const NODES: [f64; TERMS] = {
    const HALF: [f64; 4] =
        [0.980_785_280_403_230_4, 0.831_469_612_302_545_2, 0.555_570_233_019_602_2, 0.195_090_322_016_128_27];
    [HALF[0], HALF[1], HALF[2], HALF[3], -HALF[3], -HALF[2], -HALF[1], -HALF[0]]
};

/// The cached posteriors of one state of a filter.
pub struct PosteriorCache {
    keys: usize,
    posteriors: Option<(f64, CacheTable<f64, 3>)>,
    curves: Option<CacheTable<PosteriorCurve, 3>>,
    polynomials: Option<CacheTable<Polynomial, 4>>,
    coded_posteriors: Option<([f64; 2], CodePosteriors)>,
    coded_curves: Option<(f64, CodeCurves)>,
}

/// Returns the table that was made for this question, or replaces it.
fn made_for<Q: PartialEq + Copy, T>(cached: &mut Option<(Q, T)>, question: Q, make: impl FnOnce() -> T) -> &mut T {
    *cached = cached.take().filter(|cached| cached.0 == question);
    &mut cached.get_or_insert_with(|| (question, make())).1
}

impl PosteriorCache {
    /// Creates an empty cache for batches of `keys` keys.
    pub fn new(keys: usize) -> Self {
        Self { keys, posteriors: None, curves: None, polynomials: None, coded_posteriors: None, coded_curves: None }
    }

    /// Returns the posteriors of a prior that all keys share.
    pub(crate) fn posteriors(&mut self, p: f64) -> &mut CacheTable<f64, 3> {
        made_for(&mut self.posteriors, p, || CacheTable::new(self.keys, SHARED_LOG2))
    }

    /// Returns the posterior curves for keys with priors of their own.
    pub(crate) fn curves(&mut self) -> &mut CacheTable<PosteriorCurve, 3> {
        self.curves.get_or_insert_with(|| CacheTable::new(self.keys, BY_PRIOR_LOG2))
    }

    /// Returns whether there are enough keys to pay for tables with a place for every code.
    pub(crate) fn pays_for_codes(&self) -> bool {
        self.keys >= Code::KINDS / 8
    }

    /// Returns the posteriors by code for an age and a prior that all keys share.
    pub(crate) fn coded_posteriors(&mut self, age: f64, p: f64) -> &mut CodePosteriors {
        made_for(&mut self.coded_posteriors, [age, p], CodePosteriors::default)
    }

    /// Returns the posterior curves by code for keys that share one age.
    pub(crate) fn coded_curves(&mut self, age: f64) -> &mut CodeCurves {
        made_for(&mut self.coded_curves, age, CodeCurves::default)
    }

    /// Returns the posteriors interpolated between priors.
    pub(crate) fn polynomials(&mut self) -> &mut CacheTable<Polynomial, 4> {
        self.polynomials.get_or_insert_with(|| CacheTable::new(self.keys, POLYNOMIALS_LOG2))
    }
}

/// A polynomial by its coefficients, the constant first. They are rounded to 6e-8, so that an entry is a cache line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Polynomial([f32; TERMS]);

/// A two-way cache of values that follow from evidence, an age and, for polynomials, an octave of priors. Each entry
/// has one of two places. A third entry replaces the one that was looked up longer ago.
pub(crate) struct CacheTable<T, const WORDS: usize> {
    entries: Vec<[([u64; WORDS], T); 2]>,
    log2: u32,
}

impl<T: Copy + Default, const WORDS: usize> CacheTable<T, WORDS> {
    /// Creates an empty table for a batch of `keys` keys, or a small one if there is no memory for a larger one.
    fn new(keys: usize, most: u32) -> Self {
        let log2 = keys.max(1).ilog2().clamp(MIN_LOG2, most) - 1;
        let (mut entries, log2) = match fallible::with_room(1 << log2) {
            Ok(entries) => (entries, log2),
            Err(_) => (Vec::new(), MIN_LOG2),
        };
        // No age has these bits.
        entries.resize(1 << log2, [([u64::MAX; WORDS], T::default()); 2]);
        Self { entries, log2 }
    }

    #[inline(always)]
    fn of(&mut self, words: [u64; WORDS], compute: impl FnOnce([u64; WORDS]) -> T) -> &T {
        // Rotated, so that equal numbers in both halves do not cancel.
        let halves = words[0] ^ words[1].rotate_left(11);
        let mixed = words[3..]
            .iter()
            .fold(halves.wrapping_mul(SPREAD), |mixed, word| mixed.wrapping_add(*word).wrapping_mul(SPREAD));
        let place = (mixed >> (64 - self.log2)) as usize;
        if differ(&self.entries[place][0].0, &words) {
            return self.second_place(place, words, compute);
        }
        &self.entries[place][0].1
    }

    /// Returns the entry in the second place, or replaces it. Kept out of the loop, because little else should be
    /// between one key and the next.
    #[cold]
    #[inline(never)]
    fn second_place(&mut self, place: usize, words: [u64; WORDS], compute: impl FnOnce([u64; WORDS]) -> T) -> &T {
        let pair = &mut self.entries[place];
        if differ(&pair[1].0, &words) {
            *pair = [(words, compute(words)), pair[0]];
            return &pair[0].1;
        }
        &pair[1].1
    }
}

/// Returns whether two entries differ. Compared word by word: compilers would make vectors of words that have only just
/// been written, and wait for them.
#[inline(always)]
fn differ<const WORDS: usize>(one: &[u64; WORDS], other: &[u64; WORDS]) -> bool {
    one.iter().zip(other).fold(0, |all, (a, b)| all | a ^ b) != 0
}

impl<T: Copy + Default> CacheTable<T, 3> {
    /// Returns the value for this evidence and age; `compute` computes it if it is not cached.
    #[inline(always)]
    pub fn answer(&mut self, evidence: Evidence, age: f64, compute: &mut impl FnMut(Evidence, f64) -> T) -> &T {
        let [low, high] = evidence.words();
        self.of([low, high, age.to_bits()], |[low, high, age]| compute(Evidence::of([low, high]), f64::from_bits(age)))
    }
}

impl CacheTable<Polynomial, 4> {
    /// Returns the posterior of this prior; `exact` computes values that are not cached. Priors of `most` or more are
    /// not interpolated.
    pub fn posterior(
        &mut self,
        evidence: Evidence,
        age: f64,
        p: f64,
        most: f64,
        mut exact: impl FnMut(f64) -> f64,
    ) -> f64 {
        if !(f64::MIN_POSITIVE..most).contains(&p) {
            return exact(p);
        }
        let ([low, high], bits) = (evidence.words(), p.to_bits());
        let octave = bits >> WITHIN;
        let polynomial = self.of([low, high, age.to_bits(), octave], |_| {
            let least = f64::from_bits(octave << WITHIN);
            Polynomial::through(NODES.map(|node| exact((least * (1.5 + 0.5 * node)).min(most))))
        });
        // From -1 to 1 within the octave.
        let place = f64::from_bits(bits & ((1 << WITHIN) - 1) | 2f64.to_bits()) - 3.0;
        polynomial.at(place).clamp(0.0, 1.0)
    }
}

impl Polynomial {
    /// Returns the polynomial that has these values at the nodes: a sum of Chebyshev polynomials.
    fn through(values: [f64; TERMS]) -> Self {
        let (mut before, mut chebyshev, mut sum) = ([0.0; TERMS], [0.0; TERMS], [0.0; TERMS]);
        // T(-1) = T1 = x, and T0 = 1.
        (before[1], chebyshev[0]) = (1.0, 1.0);
        for degree in 0..TERMS {
            let at = |x: f64| chebyshev.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
            let product: f64 = NODES.into_iter().zip(values).map(|(node, value)| at(node) * value).sum();
            let factor = product * if degree == 0 { 1.0 } else { 2.0 } / TERMS as f64;
            sum.iter_mut().zip(chebyshev).for_each(|(sum, coefficient)| *sum += factor * coefficient);
            let next = std::array::from_fn(|i| if i > 0 { 2.0 * chebyshev[i - 1] } else { 0.0 } - before[i]);
            (before, chebyshev) = (chebyshev, next);
        }
        Self(sum.map(|coefficient| coefficient as f32))
    }

    /// Returns the value of the polynomial at `x`.
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        polynomial(self.0.map(f64::from), x)
    }
}
