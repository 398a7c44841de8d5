//! What the lanes of a [line](crate::layout::line) tell: a [`Ring`] of slices, one of its own for pages that turn at different
//! times, since their generations began at other ages.
//!
//! Pages are taken together in stretches that turn one after the other: [`STRETCHES`] of them at most, and at least half
//! as many. Each has the ages of its middle page, which are off by 1/64 of a generation at the most.

use super::ring::Ring;
use super::{Hazard, Likelihood, Span};

/// Most stretches of pages whose generations have ages of their own.
pub const STRETCHES: u64 = 64;
/// Where the stretch stands in the evidence: where a [`Memo`](super::Memo), which folds it, does not mix it with lanes.
const STRETCH_BIT: u32 = 96;

/// The evidence of a key in this stretch of the pages, whose generations in `possible` are [not ruled
/// out](super::ring::not_ruled_out).
#[inline(always)]
pub fn evidence(stretch: u64, possible: u128) -> u128 {
    u128::from(stretch) << STRETCH_BIT | possible
}

/// Lines in one state: a ring for each stretch of pages.
pub struct Stretches(
    /// Those that have turned last come first.
    pub Vec<Ring>,
);

impl Likelihood for Stretches {
    fn last_inserted(&self, evidence: u128, hazard: Hazard, spans: &mut Vec<Span>) {
        let stretch = (evidence >> STRETCH_BIT) as usize;
        self.0[stretch].last_inserted((evidence as u64).into(), hazard, spans);
    }
}
