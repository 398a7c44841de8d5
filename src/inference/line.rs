//! What the lanes of a [line](crate::layout::line) tell: a [`Ring`] of slices, one of its own for pages that turn at different
//! times, since their generations began at other ages.
//!
//! Pages are taken together in stretches that turn one after the other: [`STRETCHES`] of them at most, and at least half
//! as many. Each has the ages of its middle page, which are off by 1/64 of a generation at the most.

use super::ring::Ring;
use super::{Evidence, Hazard, Likelihood, Span};

/// Most stretches of pages whose generations have ages of their own.
pub const STRETCHES: u64 = 64;

/// Lines in one state: a ring for each stretch of pages.
pub struct Stretches(
    /// Those that have turned last come first.
    pub Vec<Ring>,
);

impl Likelihood for Stretches {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let (stretch, generations) = evidence.stretch();
        self.0[stretch].last_inserted(generations, hazard, spans);
    }
}
