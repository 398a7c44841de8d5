//! Posteriors, memoised: evidence takes few values, some ten to a few thousand for a filter.
//!
//! Where priors differ by key, what evidence tells is [the same for all of them](super::posterior_curve), or told key
//! by key. Only fading cells, which take long for a posterior, have it approximated: in each octave of priors, p to 2p,
//! by the polynomial of degree 7 through eight Chebyshev nodes. With q the prior, its error is at most 2 / 4^8 times
//! the greatest q^8 / 8! times the eighth derivative. A posterior is made of two shapes: of odds o q / (1 + o q) that
//! product is at most .05, and of the chance 1 - e^(-qw) of a window .14. Fading cells mix the two at every age: the
//! error is below 1e-4 for a key as old as a few times 1 / q, and 1e-2 for one long overdue, which is rare. The few
//! keys with a chance above 1/8 are worked out exactly, and so is a prior that all keys share.

use super::coded::Coded;
use super::posterior_curve::polynomial;
use super::{Code, Evidence, PosteriorCurve};
use crate::memory::fallible;

/// Least entries, as a power of 2: as many as keys. A few keys should not pay for zeroing a whole table.
const LEAST_LOG2: u32 = 6;
/// Most entries of a shared prior: entries in use stay in the cache, and a larger table loses fewer of them to
/// collisions.
const SHARED_LOG2: u32 = 14;
/// The same of what evidence tells by any prior: half a MiB.
const BY_PRIOR_LOG2: u32 = 13;
/// The same of polynomials: 4 MiB.
const POLYNOMIALS_LOG2: u32 = 16;
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
    shared: Option<(f64, Table<f64, 3>)>,
    posterior_curve: Option<Table<PosteriorCurve, 3>>,
    polynomials: Option<Table<Polynomial, 4>>,
    coded: Option<Coded>,
}

impl Memo {
    /// Nothing yet, for a batch of `keys` keys.
    pub fn new(keys: usize) -> Self {
        Self { keys, shared: None, posterior_curve: None, polynomials: None, coded: None }
    }

    /// Posteriors of a prior that all keys share.
    pub(crate) fn shared(&mut self, p: f64) -> &mut Table<f64, 3> {
        self.shared = self.shared.take().filter(|&(of, _)| of == p);
        &mut self.shared.get_or_insert_with(|| (p, Table::new(self.keys, SHARED_LOG2))).1
    }

    /// What evidence tells by the keys' own priors.
    pub(crate) fn posterior_curve(&mut self) -> &mut Table<PosteriorCurve, 3> {
        self.posterior_curve.get_or_insert_with(|| Table::new(self.keys, BY_PRIOR_LOG2))
    }

    /// What follows from codes where keys are asked for one age; none where so few keys would not pay for the tables.
    pub(crate) fn coded(&mut self, age: f64) -> Option<&mut Coded> {
        if self.keys < Code::KINDS / 8 {
            return None;
        }
        self.coded = self.coded.take().filter(|coded| coded.is_of(age));
        Some(self.coded.get_or_insert_with(|| Coded::new(age)))
    }

    /// Posteriors interpolated between priors.
    pub(crate) fn polynomials(&mut self) -> &mut Table<Polynomial, 4> {
        self.polynomials.get_or_insert_with(|| Table::new(self.keys, POLYNOMIALS_LOG2))
    }
}

/// Coefficients, the constant first. Rounded to 6e-8, so that an entry is a line of the cache.
#[derive(Clone, Copy, Default)]
pub(crate) struct Polynomial([f32; TERMS]);

/// A table of what follows from evidence, an age and, of polynomials, an octave of priors. Each entry has one of two
/// places; a third one takes that of the one asked for longer ago.
pub(crate) struct Table<T, const WORDS: usize> {
    entries: Vec<[([u64; WORDS], T); 2]>,
    log2: u32,
}

impl<T: Copy + Default, const WORDS: usize> Table<T, WORDS> {
    /// An empty table for a batch of `keys` keys; a small one where there is no memory for another.
    fn new(keys: usize, most: u32) -> Self {
        let log2 = keys.max(1).ilog2().clamp(LEAST_LOG2, most) - 1;
        let (mut entries, log2) = match fallible::with_room(1 << log2) {
            Ok(entries) => (entries, log2),
            Err(_) => (Vec::new(), LEAST_LOG2),
        };
        // No age has these bits.
        entries.resize(1 << log2, [([u64::MAX; WORDS], T::default()); 2]);
        Self { entries, log2 }
    }

    #[inline(always)]
    fn of(&mut self, words: [u64; WORDS], work_out: impl FnOnce([u64; WORDS]) -> T) -> &T {
        // Turned, so that a stretch and marks, which lie at the same places of the halves, do not meet.
        let halves = words[0] ^ words[1].rotate_left(11);
        let mixed = words[3..]
            .iter()
            .fold(halves.wrapping_mul(SPREAD), |mixed, word| mixed.wrapping_add(*word).wrapping_mul(SPREAD));
        let place = (mixed >> (64 - self.log2)) as usize;
        if differ(&self.entries[place][0].0, &words) {
            return self.second(place, words, work_out);
        }
        &self.entries[place][0].1
    }

    /// A function of its own: little else should be between one key and the next.
    #[cold]
    #[inline(never)]
    fn second(&mut self, place: usize, words: [u64; WORDS], work_out: impl FnOnce([u64; WORDS]) -> T) -> &T {
        let pair = &mut self.entries[place];
        if differ(&pair[1].0, &words) {
            *pair = [(words, work_out(words)), pair[0]];
            return &pair[0].1;
        }
        &pair[1].1
    }
}

/// Word by word: compilers would make vectors of words that have only just been written, and wait for them.
#[inline(always)]
fn differ<const WORDS: usize>(one: &[u64; WORDS], other: &[u64; WORDS]) -> bool {
    one.iter().zip(other).fold(0, |all, (a, b)| all | a ^ b) != 0
}

impl<T: Copy + Default> Table<T, 3> {
    /// What follows from this evidence and age; `work_out` works it out.
    #[inline(always)]
    pub fn answer(&mut self, evidence: Evidence, age: f64, work_out: &mut impl FnMut(Evidence, f64) -> T) -> &T {
        let [low, high] = evidence.words();
        self.of([low, high, age.to_bits()], |[low, high, age]| work_out(Evidence::of([low, high]), f64::from_bits(age)))
    }
}

impl Table<Polynomial, 4> {
    /// The posterior of this prior; `exact` works it out. Priors of `most` or more are not interpolated.
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

    /// Its value.
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        polynomial(self.0.map(f64::from), x)
    }
}
