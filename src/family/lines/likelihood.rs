//! The likelihood of the lanes of a [line](super::cells): a [`RingLikelihood`] of slices per page range,
//! since pages rotate at different times and their generations began at different ages.
//!
//! The pages of a page range rotate one after the other. There are at most
//! [`PAGE_RANGES`](crate::inference::PAGE_RANGES) ranges, and at least half as many. Each takes the ages of its middle
//! page, which are off by at most 1/64 of a generation.

use crate::inference::ring::RingLikelihood;
use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span};

/// The likelihood of lines at one moment: one [`RingLikelihood`] for each page range.
pub struct RingLikelihoods(
    /// The rings, beginning with the page range that rotated last.
    pub Vec<RingLikelihood>,
);

impl Likelihood for RingLikelihoods {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let (range, generations) = evidence.page_range();
        self.0[range].last_inserted(generations, hazard, spans);
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        let (range, generations) = evidence.page_range();
        self.0[range].posterior_curve(generations, age)
    }
}
