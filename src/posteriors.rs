//! The questions of [inference](crate::inference), asked of an engine: what its cells say about the keys of a batch,
//! and what follows for their ages.

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::engine::Engine;
use crate::inference::{Evidence, Hazard, Likelihood, Memo, PerKey, Posterior, Question, Span};

/// Keys whose evidence is read at a time: 8 KiB of it.
const BLOCK: usize = 512;

/// A filter's cells, their clock and their likelihood, ready for questions.
pub struct Inference<'a> {
    engine: &'a dyn Engine,
    clock: Clock,
    likelihood: Box<dyn Likelihood>,
}

/// The [stretches](Question::stretches) that a few keys lie in, if the cells have any.
pub fn stretches(engine: &dyn Engine, hashes: &[u64]) -> u64 {
    let mut evidence = vec![Evidence::default(); hashes.len()];
    engine.evidence(hashes, &mut evidence);
    let of = |evidence: &Evidence| 1u64.checked_shl(evidence.stretch().0 as u32).unwrap_or(0);
    evidence.iter().map(of).fold(0, |all, one| all | one)
}

impl<'a> Inference<'a> {
    /// Reads from the cells what is the same for all keys. Refuses a filter without a likelihood.
    pub fn new(engine: &'a dyn Engine) -> Result<Self, Error> {
        Self::about(engine, &Question::default())
    }

    /// The same, for this question.
    pub fn about(engine: &'a dyn Engine, question: &Question<'_>) -> Result<Self, Error> {
        let likelihood =
            engine.likelihood(question).ok_or_else(|| Error::value("this filter cannot tell probabilities yet"))?;
        Ok(Self { engine, clock: engine.clock(), likelihood })
    }

    /// Calls `answer` with the number and the posterior of every key in order.
    ///
    /// `ages_end` is the age at which the stream began: beyond it lies only "never". It is infinite for the paper's
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
            let hazard = self.hazard(p);
            let peak = self.likelihood.most_likely(evidence, hazard, ages_end);
            answer(key, &self.of(evidence, hazard, gap, ages_end, &mut spans).peaking_at(peak));
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
        match prior {
            PerKey::All(_) => {
                let table = memo.shared();
                self.evidence(hashes, at, prior, |key, evidence, gap, p| {
                    let age = window - gap;
                    posteriors[key] = table.posterior(evidence, age, p, |p| exact(evidence, age, p));
                })
            }
            PerKey::Each(_) => {
                let table = memo.own();
                self.evidence(hashes, at, prior, |key, evidence, gap, p| {
                    let age = window - gap;
                    posteriors[key] = table.posterior(evidence, age, p, most, |p| exact(evidence, age, p));
                })
            }
        }
    }

    /// Calls `act` with the number, the evidence, the seconds since the latest insertion and the prior of every key.
    fn evidence(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        prior: PerKey<'_>,
        mut act: impl FnMut(usize, Evidence, f64, f64),
    ) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let at = self.clock.asked(at);
        prior.check_prior(self.clock.window())?;
        prior.check_len("prior", hashes.len())?;
        let mut evidence = [Evidence::default(); BLOCK];
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
        evidence: Evidence,
        hazard: Hazard,
        gap: f64,
        ages_end: f64,
        spans: &'s mut Vec<Span>,
    ) -> Posterior<'s> {
        spans.clear();
        self.likelihood.last_inserted(evidence, hazard, spans);
        Posterior::new(spans, hazard, gap, ages_end)
    }

    /// The age of the filter's first insertion, plus one; infinite on a time clock, which does not note it.
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
