//! The likelihood of a buffer of fingerprints: the evidence is when the key's fingerprint was last written.
//!
//! Let the newest fingerprint equal to the key's have age a. Then the key was not inserted since. There are two cases.
//! The key was inserted then, and none of the d distinct fingerprints that came since equals its own: a chance of 1 - d
//! / F, with F possible ones. Or it was inserted before or never, and the fingerprint is another key's that has not
//! come since either: a chance of s / F, with s the share of insertions about that age whose fingerprints have not been
//! written again. Equal fingerprints that are older carry no information.
//!
//! Paper 5's buffer (equation 36, as corrected by erratum INF-12) only returns whether the fingerprint is there, and
//! estimates d by the expected number of distinct keys; here d is counted.

use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};

/// The likelihood of a buffer of fingerprints at one moment.
pub struct BufferLikelihood {
    /// Number of possible fingerprints.
    kinds: f64,
    /// Number of retained insertions.
    kept: f64,
    /// The ages at which the fingerprints in the buffer were last written, the youngest first.
    last: Vec<u64>,
}

impl BufferLikelihood {
    /// Creates the likelihood of a buffer of the last `kept` insertions, with `kinds` possible fingerprints; `last` is
    /// in any order.
    pub fn new(kinds: u64, kept: u64, last: impl IntoIterator<Item = u64>) -> Self {
        let mut last: Vec<u64> = last.into_iter().collect();
        last.sort_unstable();
        Self { kinds: kinds as f64, kept: kept as f64, last }
    }
}

impl BufferLikelihood {
    /// Returns by which factor an insertion at this age raises the chance that the fingerprint was last written then.
    fn explains(&self, age: f64) -> f64 {
        let younger = |than: f64| self.last.partition_point(|&last| (last as f64) < than) as f64;
        let reach = (self.kept / 32.0).max(8.0);
        let (from, to) = ((age - reach).max(0.0), (age + reach + 1.0).min(self.kept));
        let share = (younger(to) - younger(from)) / (to - from);
        (self.kinds - younger(age)) / share
    }
}

impl Likelihood for BufferLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            spans.push(Span { from: self.kept, to: f64::INFINITY, probability: 1.0 });
            return;
        }
        let age = evidence.as_number() as f64;
        let (held, gone) = chances(hazard.odds(1.0) * self.explains(age));
        spans.push(Span { from: age, to: age + 1.0, probability: held });
        spans.push(Span { from: age + 1.0, to: f64::INFINITY, probability: gone });
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        if evidence == Evidence::ABSENT {
            return Some(PosteriorCurve::unknown(self.kept, age));
        }
        let last = evidence.as_number() as f64;
        PosteriorCurve::of_span((last, last + 1.0), 1.0, self.explains(last), last + 1.0, age)
    }
}
