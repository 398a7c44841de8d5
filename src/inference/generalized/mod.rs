//! What the bits of a generalized filter tell (paper 5, section 5).
//!
//! After i insertions of other keys a bit of a key is untouched with chance y = q^i, and is then as the key left it;
//! touched, it is a one with chance p, the share of ones among touched bits (equation 31). So c0 of r0 zeros and c1 of r1
//! ones match with a likelihood of
//!
//! ```text
//! (1 - p + p y)^c0 (p + (1 - p) y)^c1 * (p (1 - y))^(r0 - c0) ((1 - p) (1 - y))^(r1 - c1)
//! ```
//!
//! and those of a key that is gone as the ones of all bits have it, (1 - f)^c0 f^c1 f^(r0 - c0) (1 - f)^(r1 - c1). Both f
//! and p are counted, not expected: p is f over the share of bits that the filter has touched.
//!
//! On a stream with repeats i insertions are of D(i) different keys, and y = q^D(i) (erratum INF-10): `Spans` sums over
//! the ages where a prior knows D. Where none does, `Powers` has the sums in closed form, all of whose terms are
//! positive, so they are right to the last digits at any number of hashes; equation 34 alternates, and at 25 is out of
//! [0, 1] (erratum INF-9).

mod powers;

use super::fading::{Fading, Spans, edges};
use super::{Evidence, Hazard, Likelihood, Question, Span};
use crate::shape::generalized::Shape;
use powers::Powers;

/// The logarithm of a chance that stands for none.
const NONE: f64 = -700.0;
/// The logarithm of the share of bits that is left as a key wrote it when it counts as gone: beyond the last digit.
const LOG_FORGOTTEN: f64 = -40.0;

/// What the bits say of a key: how many it has of each kind and how many of them are as an insertion leaves them (paper
/// 5, definition 13: r and c). Bits are counted once however many hashes hit them (erratum INF-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matches {
    /// r0: bits that the key resets.
    pub zeros: u32,
    /// c0: those of them that are zero.
    pub zeros_matching: u32,
    /// r1: bits that the key sets and does not reset.
    pub ones: u32,
    /// c1: those of them that are one.
    pub ones_matching: u32,
}

impl Matches {
    /// Zeros that match, ones that match, zeros that do not and ones that do not.
    pub fn evidence(self) -> Evidence {
        let Self { zeros, zeros_matching, ones, ones_matching } = self;
        let counts = [zeros_matching, ones_matching, zeros - zeros_matching, ones - ones_matching];
        Evidence::counts(counts.map(|count| count as u8))
    }
}

/// The chances of a bit that is one, among those touched since the key and those of keys that are gone.
#[derive(Debug, Clone, Copy)]
struct Ones {
    touched: f64,
    all: f64,
}

impl Ones {
    /// With so many ones, where this share of bits has been left as they were in the beginning: zeros. One more bit, half
    /// of it a one, so that there is always a chance; among those touched one of a steady filter, as far as nothing has
    /// been touched yet.
    fn new(shape: Shape, ones: f64, untouched: f64) -> Self {
        let bits = shape.bits as f64;
        let one_more = 0.5 * (1.0 - untouched) + shape.steady_fill() * untouched;
        let touched = (ones + one_more) / ((bits * (1.0 - untouched)).max(ones) + 1.0);
        Self { touched, all: (ones + 0.5) / (bits + 1.0) }
    }

    /// Chances of what [`Matches::evidence`] tells apart, for bits of which a share `kept` is as the key left them.
    fn chances(self, kept: f64, lost: f64) -> [f64; 4] {
        let (one, zero) = (self.touched, 1.0 - self.touched);
        [zero + one * kept, one + zero * kept, one * lost, zero * lost]
    }

    /// The same for a key that is gone.
    fn gone(self) -> [f64; 4] {
        [1.0 - self.all, self.all, self.all, 1.0 - self.all]
    }
}

/// The logarithms of the chances of each kind of bit, at each age, over those for a key that is gone.
struct Bits(Vec<[f64; 4]>);

impl Fading for Bits {
    fn log_likelihood(&self, evidence: Evidence, place: usize) -> f64 {
        evidence.as_counts().into_iter().zip(self.0[place]).map(|(count, log)| f64::from(count) * log).sum()
    }
}

/// The sums in closed form, for keys that are all different.
struct Exact {
    powers: Powers,
    edges: Vec<f64>,
    ones: Ones,
    /// For what is too improbable for numbers that are no logarithms.
    logarithms: Spans<Bits>,
}

impl Likelihood for Exact {
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
}

/// What the matching bits of a key tell after so many insertions, when so many of all bits are one.
pub fn likelihood(shape: Shape, inserted: u64, ones: f64, question: &Question<'_>) -> Box<dyn Likelihood> {
    let (inserted, log_untouched) = (inserted as f64, shape.memory().log_untouched);
    let curve = |ages: &[f64]| question.distinct.and_then(|distinct| distinct(ages));
    let known = curve(&[inserted]);
    // Where all keys are different, none is remembered from so many insertions.
    let end = if known.is_some() { inserted } else { inserted.min((LOG_FORGOTTEN / log_untouched).ceil()) };
    let edges = edges(end, question.ages);
    let keys = known.as_ref().map_or(inserted, |known| known[0]);
    let ones = Ones::new(shape, ones, (keys * log_untouched).exp());
    let bits = |ages: &[f64]| {
        let distinct = curve(ages).unwrap_or_else(|| ages.to_vec());
        let logs = |keys: &f64| {
            let log_kept = keys * log_untouched;
            let chances = ones.chances(log_kept.exp(), -log_kept.exp_m1());
            std::array::from_fn(|kind| (chances[kind] / ones.gone()[kind]).ln().max(NONE))
        };
        Bits(distinct.iter().map(logs).collect())
    };
    let logarithms = Spans::new(edges.clone(), bits);
    if known.is_some() {
        return Box::new(logarithms);
    }
    Box::new(Exact { powers: Powers::new(shape.k0 + shape.k1, log_untouched), edges, ones, logarithms })
}
