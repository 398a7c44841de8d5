//! Posteriors, memoised: evidence takes few values, some ten to a few thousand for a filter, and a posterior is smooth
//! in the prior.
//!
//! Where priors differ by key, a posterior is approximated in each octave of priors, p to 2p, by the polynomial of
//! degree 7 through eight Chebyshev nodes. With q the prior, its error is at most 2 / 4^8 times the greatest q^8 / 8!
//! times the eighth derivative. A posterior is made of two shapes: of odds o q / (1 + o q) that product is at most .05,
//! and of the chance 1 - e^(-qw) of a window .14. So the error stays below 1e-5. Fading cells mix the two at every age:
//! the error is below 1e-4 for a key as old as a few times 1 / q, and 1e-2 for one long overdue, which is rare. The few
//! keys with a chance above 1/8 are worked out exactly. A prior that all keys share has no error.

use super::Evidence;
use crate::memory::fallible;

/// Least entries, as a power of 2: as many as keys. A few keys should not pay for zeroing a whole table.
const LEAST_LOG2: u32 = 6;
/// Most entries of a shared prior: entries in use stay in the cache, and a larger table loses fewer of them to
/// collisions.
const SHARED_LOG2: u32 = 14;
/// The same of priors that differ: 4 MiB.
const OWN_LOG2: u32 = 16;
/// Bits of a prior within its octave.
const WITHIN: u32 = 52;
/// A Weyl constant: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Terms of a polynomial.
const TERMS: usize = 8;
/// Chebyshev nodes: cos((2 i + 1) π / 16).
const NODES: [f64; TERMS] = {
    const HALF: [f64; 4] =
        [0.980_785_280_403_230_4, 0.831_469_612_302_545_2, 0.555_570_233_019_602_2, 0.195_090_322_016_128_27];
    [HALF[0], HALF[1], HALF[2], HALF[3], -HALF[3], -HALF[2], -HALF[1], -HALF[0]]
};

/// Posteriors for one state of a filter.
pub struct Memo {
    keys: usize,
    shared: Option<Table<f64>>,
    own: Option<Table<Polynomial>>,
}

impl Memo {
    /// Nothing yet, for a batch of `keys` keys.
    pub fn new(keys: usize) -> Self {
        Self { keys, shared: None, own: None }
    }

    /// Posteriors of a prior that all keys share.
    pub(crate) fn shared(&mut self) -> &mut Table<f64> {
        self.shared.get_or_insert_with(|| Table::new(self.keys, SHARED_LOG2))
    }

    /// Posteriors of the keys' own priors.
    pub(crate) fn own(&mut self) -> &mut Table<Polynomial> {
        self.own.get_or_insert_with(|| Table::new(self.keys, OWN_LOG2))
    }
}

/// Coefficients, the constant first. Rounded to 6e-8, so that an entry is a line of the cache.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(crate) struct Polynomial([f32; TERMS]);

/// What was asked, and the answer.
#[derive(Clone, Copy)]
struct Entry<T> {
    evidence: Evidence,
    age: f64,
    prior: u64,
    answer: T,
}

/// A table of answers. A collision overwrites.
pub(crate) struct Table<T> {
    entries: Vec<Entry<T>>,
    log2: u32,
}

impl<T: Copy + Default> Table<T> {
    /// An empty table for a batch of `keys` keys; a small one where there is no memory for another.
    fn new(keys: usize, most: u32) -> Self {
        let nothing = Entry { evidence: Evidence::default(), age: f64::NAN, prior: 0, answer: T::default() };
        let log2 = keys.max(1).ilog2().clamp(LEAST_LOG2, most);
        let (mut entries, log2) = match fallible::with_room(1 << log2) {
            Ok(entries) => (entries, log2),
            Err(_) => (Vec::new(), LEAST_LOG2),
        };
        entries.resize(1 << log2, nothing);
        Self { entries, log2 }
    }

    #[inline(always)]
    fn answer(&mut self, evidence: Evidence, age: f64, prior: u64, work_out: impl FnOnce() -> T) -> &T {
        let mixed = evidence.folded().wrapping_mul(SPREAD).wrapping_add(prior);
        let place = mixed.wrapping_mul(SPREAD) >> (64 - self.log2);
        let entry = &mut self.entries[place as usize];
        if (entry.evidence, entry.prior) != (evidence, prior) || entry.age != age {
            *entry = Entry { evidence, age, prior, answer: work_out() };
        }
        &entry.answer
    }
}

impl Table<f64> {
    /// The posterior of this prior; `exact` works it out.
    #[inline(always)]
    pub fn posterior(&mut self, evidence: Evidence, age: f64, p: f64, mut exact: impl FnMut(f64) -> f64) -> f64 {
        *self.answer(evidence, age, p.to_bits(), || exact(p))
    }
}

impl Table<Polynomial> {
    /// The posterior of this prior; priors of `most` or more are not memoised.
    #[inline(always)]
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
        let bits = p.to_bits();
        let octave = bits >> WITHIN;
        let polynomial = self.answer(evidence, age, octave, || {
            let least = f64::from_bits(octave << WITHIN);
            Polynomial::through(NODES.map(|node| exact((least * (1.5 + 0.5 * node)).min(most))))
        });
        // From -1 to 1 within the octave.
        let place = f64::from_bits(bits & ((1 << WITHIN) - 1) | 2f64.to_bits()) - 3.0;
        polynomial.at(place).clamp(0.0, 1.0)
    }
}

impl Polynomial {
    /// The one that has these values at the nodes: a sum of Chebyshev polynomials.
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

    /// Its value, after Estrin.
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.0.map(f64::from);
        let (two, four) = (x * x, x * x * x * x);
        (a + b * x) + (c + d * x) * two + ((e + f * x) + (g + h * x) * two) * four
    }
}
