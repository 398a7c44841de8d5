//! Posteriors from spans of ages: every question is a closed sum over them.

use super::Hazard;

/// A span of ages that the cells cannot distinguish: within it ages are distributed as in the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The youngest age.
    pub from: f64,
    /// The first age beyond it.
    pub to: f64,
    /// The chance that the key was last inserted at one of these ages.
    pub probability: f64,
}

impl Span {
    /// Returns the chance of the ages of the span below `age`.
    fn below(&self, age: f64, hazard: Hazard) -> f64 {
        self.probability * hazard.share(age - self.from, self.to - self.from)
    }
}

/// The posterior of when a key was last inserted, given the evidence in the cells.
#[derive(Debug, Clone, Copy)]
pub struct Posterior<'a> {
    spans: &'a [Span],
    hazard: Hazard,
    /// Seconds from the latest insertion, where the spans begin, to the moment of the question; below 0 if that is
    /// earlier.
    gap: f64,
    /// The age, in the spans, at which the stream began.
    end: f64,
    /// The most probable age, if the cells distinguish ages within a span.
    peak: Option<f64>,
}

impl<'a> Posterior<'a> {
    /// Creates the posterior from the spans that [`last_inserted`](super::Likelihood::last_inserted) wrote for a key of
    /// this hazard, `gap` seconds after the latest insertion. From the age `end` on lies only "never".
    ///
    /// If `gap` is below 0, a key that was inserted since the moment of the question has the age 0.
    pub fn new(spans: &'a [Span], hazard: Hazard, gap: f64, end: f64) -> Self {
        Self { spans, hazard, gap, end, peak: None }
    }

    /// Returns this posterior with the [most probable age](super::Likelihood::most_likely) that the cells have
    /// determined.
    pub fn peaking_at(self, peak: Option<f64>) -> Self {
        Self { peak, ..self }
    }

    /// Returns the chance that the key was inserted less than `age` ago.
    pub fn within(&self, age: f64) -> f64 {
        if age <= 0.0 {
            return 0.0;
        }
        let age = (age - self.gap).min(self.end);
        let reached = self.spans.iter().take_while(|span| span.from < age);
        reached.fold(0.0, |below, span| below + span.below(age, self.hazard)).min(1.0)
    }

    /// Returns the chance that the key was inserted at all.
    pub fn ever(&self) -> f64 {
        self.within(f64::INFINITY)
    }

    /// Returns the most probable age of a key that was inserted, the youngest of equals; on a clock of time the age of
    /// greatest density. Infinite for a key that is never inserted.
    pub fn most_likely(&self) -> f64 {
        if self.hazard.is_zero() {
            return f64::INFINITY;
        }
        if let Some(peak) = self.peak {
            return (peak + self.gap).max(0.0);
        }
        let (mut most_likely, mut greatest) = (f64::INFINITY, 0.0);
        for span in self.spans.iter().filter(|span| span.from < self.end) {
            // Within a span the youngest age is the most probable.
            let peak = span.probability * self.hazard.peak(span.to - span.from);
            if peak > greatest {
                (most_likely, greatest) = ((span.from + self.gap).max(0.0), peak);
            }
        }
        most_likely
    }

    /// Returns the mean age of a key that was inserted; infinite for one that is never inserted.
    pub fn expected(&self) -> f64 {
        let late = (-self.gap).max(0.0);
        let (mut mass, mut sum) = (0.0, 0.0);
        for span in self.spans.iter().filter(|span| span.from < self.end) {
            let part = span.below(self.end, self.hazard);
            if part > 0.0 {
                mass += part;
                let (from, to) = (span.from.max(late), span.to.min(self.end));
                let older = if from > span.from { part - span.below(from.min(self.end), self.hazard) } else { part };
                if older > 0.0 {
                    sum += older * (from - late + self.hazard.mean(to - from));
                }
            }
        }
        if mass > 0.0 { sum / mass + self.gap.max(0.0) } else { f64::INFINITY }
    }
}
