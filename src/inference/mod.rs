//! From what the cells say about a key to when it was last inserted (paper 5: J. L. Dautrich, C. V. Ravishankar,
//! *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019, sections 2 to 6).
//!
//! Four steps, in one direction:
//!
//! 1. *Evidence*: what the cells say about one key, a `u128` that a [`Layout`](crate::layout::Layout) reads in one
//!    sweep like a query. All bits that are physically there count, also those that a query would pass over as expired.
//! 2. *Likelihood by age*: a [`Likelihood`] per family turns evidence and a prior into [`Span`]s of ages, within each of
//!    which the cells cannot tell one age from another.
//! 3. *Posterior*: every question about the age is a closed sum over the spans ([`Posterior`]).
//! 4. *Decision*: the answer of least expected penalty ([`decide`]).
//!
//! There are no bits here, and no formulas of inference elsewhere.
//!
//! Ages are counted as of the latest insertion, in insertions or seconds. On a time clock a question may come later; the
//! filter knows that nothing was inserted in between, so that gap is added to every age and excluded from the prior.

mod ages;
pub mod buffer;
mod decision;
mod fading;
pub mod generalized;
pub mod learned;
pub mod line;
mod memo;
mod per_key;
mod posterior;
pub mod ring;
pub mod stable;
pub mod time_limited;
pub mod timing;

pub use ages::Hazard;
pub use decision::decide;
pub use memo::Memo;
pub use per_key::PerKey;
pub use posterior::{Posterior, Span};

use crate::Error;
use crate::batch::Engine;
use crate::clock::{Clock, Moments, Window};

/// Keys whose evidence is taken at a time: 8 KiB of it.
const BLOCK: usize = 512;

/// What the cells of one state of a filter say about the age of a key.
pub trait Likelihood: Send + Sync {
    /// Writes the spans of ages that the evidence leaves possible, the youngest first and their probabilities in sum 1,
    /// into `spans`, which is empty. The last one has no end: it holds the keys that are gone without trace.
    fn last_inserted(&self, evidence: u128, hazard: Hazard, spans: &mut Vec<Span>);
}

/// What is asked, and what is known beside the cells and the key's prior: for cells that fade with every insertion.
#[derive(Default, Clone, Copy)]
pub struct Question<'a> {
    /// Ages about which the answers are to be exact. Elsewhere the prior stands in for the cells within a span of ages.
    pub ages: &'a [f64],
    /// The expected number of different keys among so many insertions (paper 5, section 2.5), if somebody knows it.
    pub distinct: Option<&'a Distinct<'a>>,
}

/// A curve of distinct keys: of each of these numbers of insertions, or nothing if it cannot tell after all.
pub type Distinct<'a> = dyn Fn(&[f64]) -> Option<Vec<f64>> + 'a;

/// The chances of what has these odds, and of the contrary; either keeps its digits when it is small.
fn chances(odds: f64) -> (f64, f64) {
    let contrary = 1.0 / (1.0 + odds);
    (if odds > 1.0 { 1.0 - contrary } else { odds * contrary }, contrary)
}

/// A filter's cells, their clock and what they tell, ready for questions.
pub struct Inference<'a> {
    engine: &'a dyn Engine,
    clock: Clock,
    likelihood: Box<dyn Likelihood>,
}

impl<'a> Inference<'a> {
    /// Reads from the cells what is the same for all keys; an error if nobody has worked out what these cells tell.
    pub fn new(engine: &'a dyn Engine) -> Result<Self, Error> {
        Self::about(engine, &Question::default())
    }

    /// The same, to answer this question.
    pub fn about(engine: &'a dyn Engine, question: &Question<'_>) -> Result<Self, Error> {
        let likelihood =
            engine.likelihood(question).ok_or_else(|| Error::value("this filter cannot tell probabilities yet"))?;
        Ok(Self { engine, clock: *engine.clock(), likelihood })
    }

    /// Calls `answer` with the number and the posterior of every key in order.
    ///
    /// `ages_end` is where the stream began, as an age: beyond it lies only "never". It is infinite for the paper's
    /// continuous stream.
    pub fn each(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        prior: PerKey<'_>,
        ages_end: f64,
        mut answer: impl FnMut(usize, &Posterior<'_>),
    ) -> Result<(), Error> {
        let mut spans = Vec::new();
        self.evidence(hashes, at, prior, |key, evidence, gap, p| {
            answer(key, &self.of(evidence, self.hazard(p), gap, ages_end, &mut spans));
        })
    }

    /// Writes the probability that each key was inserted within the last `window` insertions, or seconds. Posteriors
    /// are kept in `memo`, which belongs to this state of the filter, and are right to 1e-5 for a prior per key.
    pub fn posterior(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        prior: PerKey<'_>,
        window: f64,
        memo: &mut Memo,
        posteriors: &mut [f64],
    ) -> Result<(), Error> {
        let most = match self.clock.window() {
            Window::Count { .. } => 0.125,
            Window::Time { .. } => f64::MAX,
        };
        let ages_end = self.began();
        let mut spans = Vec::new();
        let mut exact = |evidence, age, p| self.of(evidence, self.hazard(p), 0.0, ages_end, &mut spans).within(age);
        self.evidence(hashes, at, prior, |key, evidence, gap, p| {
            let age = window - gap;
            posteriors[key] = match prior {
                PerKey::All(_) => memo.shared(evidence, age, p, |p| exact(evidence, age, p)),
                PerKey::Each(_) => memo.own(evidence, age, p, most, |p| exact(evidence, age, p)),
            };
        })
    }

    /// Calls `act` with the number, the evidence, the seconds since the latest insertion and the prior of every key.
    fn evidence(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        prior: PerKey<'_>,
        mut act: impl FnMut(usize, u128, f64, f64),
    ) -> Result<(), Error> {
        self.clock.check(at, false)?;
        prior.check_prior(self.clock.window())?;
        prior.check_len("prior", hashes.len())?;
        let mut evidence = [0; BLOCK];
        for (block, hashes) in hashes.chunks(BLOCK).enumerate() {
            let evidence = &mut evidence[..hashes.len()];
            self.engine.evidence(hashes, evidence);
            for (key, &evidence) in (block * BLOCK..).zip(&*evidence) {
                act(key, evidence, self.clock.since_latest(at, key), prior.of(key));
            }
        }
        Ok(())
    }

    fn of<'s>(
        &self,
        evidence: u128,
        hazard: Hazard,
        gap: f64,
        ages_end: f64,
        spans: &'s mut Vec<Span>,
    ) -> Posterior<'s> {
        spans.clear();
        self.likelihood.last_inserted(evidence, hazard, spans);
        Posterior::new(spans, hazard, gap, ages_end)
    }

    /// The age of the filter's first insertion, plus one: infinite on a time clock, which does not note it.
    pub fn began(&self) -> f64 {
        match (self.clock.window(), self.clock.inserted()) {
            (Window::Time { .. }, 1..) => f64::INFINITY,
            (_, inserted) => inserted as f64,
        }
    }

    fn hazard(&self, p: f64) -> Hazard {
        match self.clock.window() {
            Window::Count { .. } => Hazard::per_insertion(p),
            Window::Time { .. } => Hazard::per_second(p),
        }
    }
}
