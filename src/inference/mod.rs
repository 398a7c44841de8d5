//! Inference: from the evidence in the cells about a key to when it was last inserted (paper 5: J. L. Dautrich, C. V.
//! Ravishankar, *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019,
//! sections 2 to 6).
//!
//! Four steps, in one direction:
//!
//! 1. *Evidence*: what the cells contain about one key, [128 bits](Evidence) that a [`Layout`](crate::family::Layout)
//! reads in one sweep like a query. All bits that are physically there count, also those that a query would skip as
//! expired. Evidence that takes few values is encoded as a [`Code`].
//! 2. *Likelihood by age*: a [`Likelihood`] per family turns evidence and a prior into [`Span`]s of ages. Within a span
//!    the cells cannot distinguish ages.
//! 3. *Posterior*: every question about the age is a closed sum over the spans ([`Posterior`]).
//! 4. *Decision*: the answer of least expected penalty ([`decide`]).
//!
//! No cells are read here, and no formula of inference lies elsewhere.
//!
//! Ages count from the latest insertion, in insertions or seconds. On a time clock a query may come later. Nothing was
//! inserted in between, so that gap is added to every age and excluded from the prior.

mod ages;
#[cfg(feature = "inference")]
mod batch;
mod cache;
mod code;
mod code_cache;
mod decision;
mod evidence;
mod per_key;
mod posterior;
pub(crate) mod posterior_curve;
pub mod ring;

pub use ages::Hazard;
#[cfg(feature = "inference")]
pub use batch::{Inference, evidence_of};
pub use cache::PosteriorCache;
pub use code::{Code, PAGE_RANGES};
pub use decision::decide;
pub use evidence::{Evidence, MAX_SLICES};
pub use per_key::PerKey;
pub use posterior::{Posterior, Span};
pub use posterior_curve::PosteriorCurve;

use crate::clock::Clock;

/// Cells with a clock whose evidence about keys can be read.
pub trait EvidenceSource: Send + Sync {
    /// Returns the clock.
    fn clock(&self) -> Clock;

    /// Returns the number of [keys so far](Clock::inserted), without a copy of the clock where that is of many words.
    fn inserted(&self) -> u64 {
        self.clock().inserted()
    }

    /// Writes the evidence about each key, for the [likelihood](Self::likelihood).
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]);

    /// Writes the code of the evidence about each key, and returns the function that decodes codes. By default evidence
    /// has no codes: returns `None` and writes nothing.
    fn codes(&self, hashes: &[u64], codes: &mut [Code]) -> Option<fn(Code) -> Evidence> {
        let _ = (hashes, codes);
        None
    }

    /// Returns the likelihood of evidence in the current state of the cells, if the layout has one.
    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>>;
}

/// The likelihood of the age of a key, given the cells of one state of a filter.
pub trait Likelihood: Send + Sync {
    /// Writes the spans of ages that the evidence leaves possible into `spans`, which is empty: the youngest first,
    /// with probabilities that sum to 1. The last one has no end: it represents keys that are gone without a trace.
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>);

    /// Returns how the chance that the key came less than `age` ago follows from its prior, if two exponentials express
    /// it.
    fn posterior_curve(&self, _evidence: Evidence, _age: f64) -> Option<PosteriorCurve> {
        None
    }

    /// Returns whether interpolation between priors is faster, because there are many spans.
    fn is_slow(&self) -> bool {
        false
    }

    /// Returns the most probable age below `end`, from cells that distinguish ages within a span; `None` from others.
    fn most_likely(&self, _evidence: Evidence, _hazard: Hazard, _end: f64) -> Option<f64> {
        None
    }
}

/// The ages in question, and what is known beside the cells and the key's prior. Only cells that fade with every
/// insertion use it.
#[derive(Default, Clone, Copy)]
pub struct Question<'a> {
    /// Ages at which the answers are to be exact. Elsewhere the prior stands in for the cells within a span of ages.
    pub ages: &'a [f64],
    /// The expected number of distinct keys among n insertions (paper 5, section 2.5), if known.
    pub distinct: Option<&'a Distinct<'a>>,
    /// The evidence about each of the keys, if there are few keys: the likelihood need not cover other evidence. `None`
    /// stands for all evidence.
    pub few: Option<&'a [Evidence]>,
}

impl Question<'_> {
    /// Returns whether keys of this [page range](mod@line) are among those in question.
    pub fn includes_range(&self, range: u64) -> bool {
        self.few.is_none_or(|few| few.iter().any(|evidence| evidence.page_range().0 as u64 == range))
    }
}

/// A curve of distinct keys: their number for each number of insertions; `None` if it is not known after all.
pub type Distinct<'a> = dyn Fn(&[f64]) -> Option<Vec<f64>> + 'a;

/// Returns the probability with these odds, and its complement, each exact when it is small.
pub(crate) fn chances(odds: f64) -> (f64, f64) {
    let contrary = 1.0 / (1.0 + odds);
    (if odds > 1.0 { 1.0 - contrary } else { odds * contrary }, contrary)
}
