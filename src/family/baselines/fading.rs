//! Likelihoods of cells that fade with every insertion, so that no two ages are alike: those of the stable filter, and
//! of the generalized one if the number of distinct keys is known.
//!
//! The ages are cut into spans, four to an octave, and also at the ages in question. The weight of a span is its prior
//! times the mean likelihood under the prior in it, by Gauss's quadrature at three ages that represent its whole
//! numbers. If the likelihood is proportional to the e-th power of the age, the error is about (e / 4)^6 / 2,000,000 of
//! the span: 2e-6 at e = 5. All weights are logarithms, so nothing underflows.

use crate::inference::{Evidence, Hazard, Likelihood, Span};

/// Least age from which a span contains several ages.
const SINGLE: f64 = 8.0;
/// Number of spans to an octave of ages.
const PER_OCTAVE: f64 = 4.0;

/// Gauss's three nodes in [-1, 1], and their weights.
const NODES: [(f64, f64); 3] =
    [(-0.774_596_669_241_483_4, 5.0 / 18.0), (0.0, 8.0 / 18.0), (0.774_596_669_241_483_4, 5.0 / 18.0)];

/// Returns the boundaries of the spans of ages below `end`: at whole ages, those of `ages` among them.
pub(crate) fn edges(end: f64, ages: &[f64]) -> Vec<f64> {
    let mut edges = vec![0.0, end];
    let mut edge = 1.0;
    while edge < end {
        edges.push(edge);
        edge += f64::max(1.0, (edge / SINGLE).log2().floor().exp2() * SINGLE / PER_OCTAVE);
    }
    edges.extend(ages.iter().map(|age| age.ceil()).filter(|&age| age > 0.0 && age < end));
    edges.sort_unstable_by(f64::total_cmp);
    edges.dedup();
    edges
}

/// The likelihood of fading cells, at ages chosen beforehand.
pub(crate) trait Fading: Send + Sync {
    /// Returns the logarithm of the chance of the evidence at age number `place`, relative to a key that is gone.
    fn log_likelihood(&self, evidence: Evidence, place: usize) -> f64;
}

/// The likelihood of fading cells at one moment, by spans of ages.
pub(crate) struct Spans<F> {
    edges: Vec<f64>,
    fading: F,
}

/// Returns the ages that represent the whole ages in a span: three of the same mean and variance.
fn places(span: &[f64]) -> impl Iterator<Item = f64> {
    let (from, length) = (span[0], span[1] - span[0]);
    let reach = (length * length - 1.0).max(0.0).sqrt() / 2.0;
    NODES.into_iter().map(move |(node, _)| from + (length - 1.0) / 2.0 + node * reach)
}

impl<F: Fading> Spans<F> {
    /// Creates the likelihood of cells whose model `fading` creates for the ages at which it will be evaluated.
    pub(crate) fn new(edges: Vec<f64>, fading: impl FnOnce(&[f64]) -> F) -> Self {
        let ages: Vec<f64> = edges.windows(2).flat_map(places).collect();
        Self { fading: fading(&ages), edges }
    }

    /// Returns the logarithm of a span's weight.
    fn log_weight(&self, evidence: Evidence, hazard: Hazard, number: usize) -> f64 {
        let span = &self.edges[number..][..2];
        let mut logs = [0.0; 3];
        for (place, log) in logs.iter_mut().enumerate() {
            *log = self.fading.log_likelihood(evidence, 3 * number + place);
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut weights, mut first) = (0.0, 0.0, None);
        for ((age, (_, weight)), log) in places(span).zip(NODES).zip(logs) {
            let weight = weight * hazard.log_survival(age - *first.get_or_insert(age)).exp();
            sum += weight * (log - most).exp();
            weights += weight;
        }
        most + (sum / weights).ln() + hazard.log_survival(span[0]) + hazard.within(span[1] - span[0]).ln()
    }
}

impl<F: Fading> Likelihood for Spans<F> {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let end = self.edges[self.edges.len() - 1];
        if !hazard.is_zero() {
            let log_weight = |number| self.log_weight(evidence, hazard, number);
            let span = |(number, edges): (usize, &[f64])| Span {
                from: edges[0],
                to: edges[1],
                probability: log_weight(number),
            };
            spans.extend(self.edges.windows(2).enumerate().map(span));
        }
        spans.push(Span { from: end, to: f64::INFINITY, probability: hazard.log_survival(end) });
        let most = spans.iter().map(|span| span.probability).fold(f64::NEG_INFINITY, f64::max);
        spans.iter_mut().for_each(|span| span.probability = (span.probability - most).exp());
        normalise(spans);
    }

    fn is_slow(&self) -> bool {
        true
    }

    /// Returns the most probable of the ages that represent the spans, twelve to an octave: its probability is within
    /// some percent of the greatest.
    fn most_likely(&self, evidence: Evidence, hazard: Hazard, end: f64) -> Option<f64> {
        let (mut most_likely, mut most) = (None, f64::NEG_INFINITY);
        for (place, age) in self.edges.windows(2).flat_map(places).enumerate() {
            let log = self.fading.log_likelihood(evidence, place) + hazard.log_survival(age);
            if log > most && age < end {
                (most_likely, most) = (Some(age.round()), log);
            }
        }
        most_likely
    }
}

/// Normalises weights to probabilities.
pub(crate) fn normalise(spans: &mut [Span]) {
    let sum: f64 = spans.iter().map(|span| span.probability).sum();
    spans.iter_mut().for_each(|span| span.probability /= sum);
}
