//! The likelihood of the lanes of a [line](crate::layout::line): a [`RingLikelihood`] of slices per stretch of pages,
//! since pages rotate at different times and their generations began at different ages.
//!
//! A stretch is a run of pages that rotate one after the other. There are at most [`STRETCHES`] of them, and at least
//! half as many. Each takes the ages of its middle page, which are off by at most 1/64 of a generation.

use super::ring::RingLikelihood;
use super::{Evidence, Hazard, Likelihood, PosteriorCurve, Span};

/// Greatest number of stretches of pages.
pub const STRETCHES: u64 = 64;

/// The likelihood of lines in one state: one [`RingLikelihood`] for each stretch of pages.
pub struct Stretches(
    /// The rings, beginning with the stretch that rotated last.
    pub Vec<RingLikelihood>,
);

impl Likelihood for Stretches {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let (stretch, generations) = evidence.stretch();
        self.0[stretch].last_inserted(generations, hazard, spans);
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        let (stretch, generations) = evidence.stretch();
        self.0[stretch].posterior_curve(generations, age)
    }
}
