//! The likelihood of the bits of a generalized filter (paper 5, section 5).
//!
//! After i insertions of other keys a bit of a key is untouched, and as the key left it, with chance y = q^i. Touched,
//! it is a one with chance p, the share of ones among touched bits (equation 31). So c0 of r0 zeros and c1 of r1 ones
//! match with likelihood
//!
//! ```text
//! (1 - p + p y)^c0 (p + (1 - p) y)^c1 * (p (1 - y))^(r0 - c0) ((1 - p) (1 - y))^(r1 - c1)
//! ```
//!
//! A key that is gone has the likelihood of all bits: (1 - f)^c0 f^c1 f^(r0 - c0) (1 - f)^(r1 - c1). Both f and p are
//! counted, not expected: p is f over the share of bits that the filter has touched.
//!
//! On a stream with repeats, i insertions are of D(i) different keys, and y = q^D(i) (erratum INF-10): `Spans` sums
//! over the ages where a prior knows D. Otherwise `Powers` has the sums in closed form. All their terms are positive,
//! so they keep their digits at any number of hashes; equation 34 alternates, and leaves [0, 1] at 25 hashes (erratum
//! INF-9).

mod powers;

use super::shape::GeneralizedShape;
use crate::family::baselines::fading::{Fading, Spans, edges};
use crate::inference::{Evidence, Hazard, Likelihood, Question, Span};
use powers::Powers;

/// The logarithm that represents a chance of zero.
const LOG_ZERO: f64 = -700.0;
/// The logarithm of the share of bits still as the key wrote them, below which the key counts as gone: beyond the last
/// digit.
const LOG_FORGOTTEN: f64 = -40.0;

/// The match counts of a key: how many bits of each kind it has, and how many of them are as an insertion leaves them
/// (paper 5, definition 13: r and c). A bit counts once however many hashes hit it (erratum INF-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matches {
    /// r0: number of bits that the key resets.
    pub zeros: u32,
    /// c0: number of the bits that the key resets and that are zero.
    pub zeros_matching: u32,
    /// r1: number of bits that the key sets and does not reset.
    pub ones: u32,
    /// c1: number of the bits that the key sets, does not reset, and that are one.
    pub ones_matching: u32,
}

impl Matches {
    /// Returns the evidence: zeros that match, ones that match, zeros that do not, ones that do not.
    pub fn evidence(self) -> Evidence {
        let Self { zeros, zeros_matching, ones, ones_matching } = self;
        let counts = [zeros_matching, ones_matching, zeros - zeros_matching, ones - ones_matching];
        Evidence::counts(counts.map(|count| count as u8))
    }
}

/// The chances that a bit is one: a bit touched since the key came, and a bit of a key that is gone.
#[derive(Debug, Clone, Copy)]
struct Ones {
    touched: f64,
    all: f64,
}

impl Ones {
    /// Computes the chances from the number of ones and the share of bits still untouched since the beginning, which
    /// are zeros. One more bit, half of it a one, is added so that no chance is zero. While nothing has been touched,
    /// touched bits get the share of ones of a steady filter.
    fn new(shape: GeneralizedShape, ones: f64, untouched: f64) -> Self {
        let bits = shape.bits as f64;
        let one_more = 0.5 * (1.0 - untouched) + shape.steady_fill() * untouched;
        let touched = (ones + one_more) / ((bits * (1.0 - untouched)).max(ones) + 1.0);
        Self { touched, all: (ones + 0.5) / (bits + 1.0) }
    }

    /// Returns the chances of the four cases of [`Matches::evidence`], if a share `kept` of bits is as the key left
    /// them.
    fn chances(self, kept: f64, lost: f64) -> [f64; 4] {
        let (one, zero) = (self.touched, 1.0 - self.touched);
        [zero + one * kept, one + zero * kept, one * lost, zero * lost]
    }

    /// Returns the chances of the four cases of [`Matches::evidence`] for a key that is gone.
    fn gone(self) -> [f64; 4] {
        [1.0 - self.all, self.all, self.all, 1.0 - self.all]
    }
}

/// The logarithms of the chances of each case, at each age, relative to a key that is gone.
struct Bits(Vec<[f64; 4]>);

impl Fading for Bits {
    fn log_likelihood(&self, evidence: Evidence, place: usize) -> f64 {
        evidence.as_counts().into_iter().zip(self.0[place]).map(|(count, log)| f64::from(count) * log).sum()
    }
}

/// The likelihood by sums in closed form, for keys that are all different.
struct ClosedForm {
    powers: Powers,
    edges: Vec<f64>,
    ones: Ones,
    /// The likelihood in logarithms, for values that underflow as plain numbers.
    logarithms: Spans<Bits>,
}

impl Likelihood for ClosedForm {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let end = self.edges[self.edges.len() - 1];
        let mut sum = 0.0;
        if !hazard.is_zero() {
            let sums = self.powers.sums(evidence.as_counts(), self.ones, hazard, end);
            for edges in self.edges.windows(2) {
                let probability = sums.between(edges[0], edges[1]);
                sum += probability;
                spans.push(Span { from: edges[0], to: edges[1], probability });
            }
        }
        let probability = hazard.log_survival(end).exp();
        spans.push(Span { from: end, to: f64::INFINITY, probability });
        sum += probability;
        if sum.is_normal() {
            spans.iter_mut().for_each(|span| span.probability /= sum);
        } else {
            spans.clear();
            self.logarithms.last_inserted(evidence, hazard, spans);
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn most_likely(&self, evidence: Evidence, hazard: Hazard, end: f64) -> Option<f64> {
        self.logarithms.most_likely(evidence, hazard, end)
    }
}

/// Returns the likelihood of a key's bits by the age of the key, after `inserted` insertions, when `ones` bits are one:
/// by sums over ages where the prior of the question computes how many keys are distinct, else in closed form.
pub fn likelihood(shape: GeneralizedShape, inserted: u64, ones: f64, question: &Question<'_>) -> Box<dyn Likelihood> {
    let (inserted, log_untouched) = (inserted as f64, shape.memory().log_untouched);
    let distinct_keys = |ages: &[f64]| question.distinct.and_then(|distinct| distinct(ages));
    let distinct = distinct_keys(&[inserted]);
    // If all keys are different, none is remembered after this many insertions.
    let end = if distinct.is_some() { inserted } else { inserted.min((LOG_FORGOTTEN / log_untouched).ceil()) };
    let edges = edges(end, question.ages);
    let keys = distinct.as_ref().map_or(inserted, |distinct| distinct[0]);
    let ones = Ones::new(shape, ones, (keys * log_untouched).exp());
    let bits = |ages: &[f64]| {
        let keys = distinct_keys(ages).unwrap_or_else(|| ages.to_vec());
        let logs = |keys: &f64| {
            let log_kept = keys * log_untouched;
            let chances = ones.chances(log_kept.exp(), -log_kept.exp_m1());
            std::array::from_fn(|kind| (chances[kind] / ones.gone()[kind]).ln().max(LOG_ZERO))
        };
        Bits(keys.iter().map(logs).collect())
    };
    let logarithms = Spans::new(edges.clone(), bits);
    if distinct.is_some() {
        return Box::new(logarithms);
    }
    Box::new(ClosedForm { powers: Powers::new(shape.k0 + shape.k1, log_untouched), edges, ones, logarithms })
}
