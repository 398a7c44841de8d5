//! Inference for a batch of keys: reads their evidence from the cells of an engine, and computes posteriors of their
//! ages.

use std::ops::Range;

use super::posterior_curve::{KEYS, Posteriors};
use super::{
    Code, Evidence, EvidenceSource, Hazard, Likelihood, PerKey, Posterior, PosteriorCache, PosteriorCurve, Question,
    Span,
};
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::instructions::Instructions;

/// Number of keys whose evidence is read at a time: 8 KiB of it.
const BLOCK: usize = 512;
/// Number of keys whose codes are read at a time: 8 KiB too.
const CODES: usize = 4096;

/// The cells of a filter with their clock and their likelihood.
pub struct Inference<'a> {
    engine: &'a dyn EvidenceSource,
    clock: Clock,
    likelihood: Box<dyn Likelihood>,
    instructions: Instructions,
}

/// Returns the evidence about each key of a batch, for a [`Question`] about them.
pub fn evidence_of(engine: &dyn EvidenceSource, hashes: &[u64]) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::default(); hashes.len()];
    engine.evidence(hashes, &mut evidence);
    evidence
}

impl<'a> Inference<'a> {
    /// Reads the likelihood, which is the same for all keys, from the cells. Rejects a filter without a likelihood.
    pub fn new(engine: &'a dyn EvidenceSource) -> Result<Self, Error> {
        Self::about(engine, &Question::default())
    }

    /// Reads the likelihood for one question. Rejects a filter without a likelihood.
    pub fn about(engine: &'a dyn EvidenceSource, question: &Question<'_>) -> Result<Self, Error> {
        let likelihood = engine
            .likelihood(question)
            .ok_or_else(|| Error::value("posteriors need a filter with a likelihood; this family has none"))?;
        Ok(Self { engine, clock: engine.clock(), likelihood, instructions: Instructions::best() })
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
        let at = self.moments_of(at, prior, hashes.len())?;
        let mut spans = Vec::new();
        self.evidence(hashes, |keys, evidence| {
            for (key, &evidence) in keys.zip(evidence) {
                let (hazard, gap) = (self.hazard(prior.of(key)), self.clock.since_latest(at, key));
                let peak = self.likelihood.most_likely(evidence, hazard, ages_end);
                answer(key, &self.of(evidence, hazard, gap, ages_end, &mut spans).peaking_at(peak));
            }
        });
        Ok(())
    }

    /// Writes the probability that each key was inserted within the last `window` insertions, or seconds. Intermediate
    /// values are cached in `cache`, which belongs to this state of the filter. Posteriors of fading cells are right to
    /// 1e-5 if each key has its own prior.
    pub fn posterior(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        prior: PerKey<'_>,
        window: f64,
        cache: &mut PosteriorCache,
        posteriors: &mut [f64],
    ) -> Result<(), Error> {
        let (at, ages_end) = (self.moments_of(at, prior, hashes.len())?, self.began());
        let age = |key| (window - self.clock.since_latest(at, key)).min(ages_end);
        match at {
            Moments::Each(_) | Moments::InOrder(_) | Moments::TimeRange(_) => {
                self.at_ages(hashes, age, prior, cache, posteriors)
            }
            _ => {
                let same = age(0);
                if !self.by_codes(hashes, same, prior, cache, posteriors) {
                    self.at_ages(hashes, |_| same, prior, cache, posteriors);
                }
            }
        }
        Ok(())
    }

    /// Writes the probability that each key was inserted less than its own age ago.
    fn at_ages(
        &self,
        hashes: &[u64],
        age: impl Fn(usize) -> f64,
        prior: PerKey<'_>,
        cache: &mut PosteriorCache,
        posteriors: &mut [f64],
    ) {
        let mut spans = Vec::new();
        let mut exact = |evidence, age, hazard| self.of(evidence, hazard, 0.0, f64::INFINITY, &mut spans).within(age);
        match prior {
            PerKey::All(p) => {
                let (table, hazard) = (cache.posteriors(p), self.hazard(p));
                let mut exact = |evidence, age| exact(evidence, age, hazard);
                self.evidence(hashes, |keys, evidence| {
                    for (key, (&evidence, posterior)) in keys.clone().zip(evidence.iter().zip(&mut posteriors[keys])) {
                        *posterior = *table.answer(evidence, age(key), &mut exact);
                    }
                });
            }
            PerKey::Each(priors) if self.likelihood.is_slow() => {
                let table = cache.polynomials();
                let most = if self.by_insertion() { 0.125 } else { f64::MAX };
                self.evidence(hashes, |keys, evidence| {
                    for (key, &evidence) in keys.zip(evidence) {
                        let age = age(key);
                        let exact = |p| exact(evidence, age, self.hazard(p));
                        posteriors[key] = table.posterior(evidence, age, priors[key], most, exact);
                    }
                });
            }
            PerKey::Each(priors) => {
                let (table, by_insertion) = (cache.curves(), self.by_insertion());
                let (mut curves, numbers) = ([PosteriorCurve::OTHER; KEYS], &std::array::from_fn(|key| key as u32));
                let mut posterior_curve =
                    |evidence, age| self.likelihood.posterior_curve(evidence, age).unwrap_or(PosteriorCurve::OTHER);
                self.evidence(hashes, |keys, evidence| {
                    for (curve, (key, &evidence)) in curves.iter_mut().zip(keys.clone().zip(evidence)) {
                        *curve = *table.answer(evidence, age(key), &mut posterior_curve);
                    }
                    let (priors, posteriors) = (&priors[keys.clone()], &mut posteriors[keys.clone()]);
                    let of_all = Posteriors { curves: &curves, numbers, priors, by_insertion, posteriors };
                    for i in of_all.write(self.instructions) {
                        posteriors[i] = exact(evidence[i], age(keys.start + i), self.hazard(priors[i]));
                    }
                });
            }
        }
    }

    /// Writes the posteriors of all keys for one age by their codes. Returns false if the evidence has no codes.
    fn by_codes(
        &self,
        hashes: &[u64],
        age: f64,
        prior: PerKey<'_>,
        cache: &mut PosteriorCache,
        posteriors: &mut [f64],
    ) -> bool {
        let (true, Some(read)) = (cache.pays_for_codes(), self.engine.codes(&[], &mut [])) else { return false };
        let (mut spans, mut codes) = (Vec::new(), [Code::default(); CODES]);
        let mut exact = |code: Code, hazard| self.of(read(code), hazard, 0.0, f64::INFINITY, &mut spans).within(age);
        let posterior_curve =
            |code: Code| self.likelihood.posterior_curve(read(code), age).unwrap_or(PosteriorCurve::OTHER);
        let by_insertion = self.by_insertion();
        for (block, hashes) in hashes.chunks(CODES).enumerate() {
            let codes = &mut codes[..hashes.len()];
            self.engine.codes(hashes, codes);
            let posteriors = posteriors[block * CODES..][..codes.len()].chunks_mut(KEYS);
            match prior {
                PerKey::All(p) => {
                    let (known, hazard) = (cache.coded_posteriors(age, p), self.hazard(p));
                    for (codes, posteriors) in codes.chunks(KEYS).zip(posteriors) {
                        known.write(codes, posteriors, |code| exact(code, hazard));
                    }
                }
                PerKey::Each(priors) => {
                    let (known, priors) = (cache.coded_curves(age), priors[block * CODES..].chunks(KEYS));
                    for ((codes, priors), posteriors) in codes.chunks(KEYS).zip(priors).zip(posteriors) {
                        let (curves, numbers) = &known.of(codes, posterior_curve);
                        let priors = &priors[..codes.len()];
                        let of_all = Posteriors { curves, numbers, priors, by_insertion, posteriors };
                        for key in of_all.write(self.instructions) {
                            posteriors[key] = exact(codes[key], self.hazard(priors[key]));
                        }
                    }
                }
            }
        }
        true
    }

    /// Returns the moments of a query. Rejects moments and priors that do not match the keys.
    fn moments_of<'m>(&self, at: Moments<'m>, prior: PerKey<'_>, keys: usize) -> Result<Moments<'m>, Error> {
        self.clock.check(at, false)?;
        prior.check_prior(self.clock.window())?;
        prior.check_len("prior", keys)?;
        Ok(self.clock.query_moments(at))
    }

    /// Calls `act` with the numbers and the evidence of up to [`KEYS`] keys at a time.
    fn evidence(&self, hashes: &[u64], mut act: impl FnMut(Range<usize>, &[Evidence])) {
        let mut evidence = [Evidence::default(); BLOCK];
        for (block, hashes) in hashes.chunks(BLOCK).enumerate() {
            self.engine.evidence(hashes, &mut evidence[..hashes.len()]);
            for (part, evidence) in evidence[..hashes.len()].chunks(KEYS).enumerate() {
                let start = block * BLOCK + part * KEYS;
                act(start..start + evidence.len(), evidence);
            }
        }
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

    /// Returns the age of the filter's first insertion, plus one; infinite on a time clock, which does not store it.
    pub fn began(&self) -> f64 {
        match (self.clock.window(), self.clock.inserted()) {
            (Window::Time { .. }, 1..) => f64::INFINITY,
            (_, inserted) => inserted as f64,
        }
    }

    fn by_insertion(&self) -> bool {
        matches!(self.clock.window(), Window::Count { .. })
    }

    fn hazard(&self, p: f64) -> Hazard {
        if self.by_insertion() { Hazard::per_insertion(p) } else { Hazard::per_second(p) }
    }
}
