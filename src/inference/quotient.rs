//! What the tag of an entry tells: the [aged quotient filter](crate::layout::quotient).
//!
//! An entry has the epoch in which its key was last inserted, or another key that shares its place. So the key was not
//! inserted in a younger epoch. Either it was in this one, and no other has rewritten the tag since: a chance of one
//! less the share of places that have a younger entry. Or it was not, and the entry is another's: the share of places
//! whose entries have this tag; then nothing is known of the epochs before. Where there is no entry, no epoch that is
//! kept has the key.
//!
//! A line that has turned keys away tells little of those that are not in it: they may be older than the epoch in which
//! it last did so, to any degree.
//!
//! Pages turn at different times. As for [lines](super::line) they are taken together in stretches, whose ages are off
//! by 1/64 of an epoch at the most.

use super::{ByPrior, Evidence, Hazard, Likelihood, Span, chances};
use crate::clock::Clock;

/// The least share of places that other keys may have, where a sample has found none.
const LEAST_RATE: f64 = 1e-12;

/// An epoch of a stretch of pages.
struct Epoch {
    /// The age of its beginning.
    began: f64,
    /// How long it had to take keys.
    exposure: f64,
    /// The odds that an entry of this epoch is the key's and not another's, if the key was as likely inserted as not.
    explains: f64,
}

/// The epochs of pages that turned at about the same time, the open one first.
#[derive(Default)]
pub struct Stretch(Vec<Epoch>);

impl Stretch {
    /// For each epoch, its beginning and the share of places whose entries it has.
    pub fn new(clock: &Clock, began: &[f64], rates: impl Iterator<Item = f64>) -> Self {
        // The latest insertion stands for the time it takes: see `Clock::exposure`.
        let (mut next, mut younger) = (-clock.gap(), 0.0);
        let epoch = |(&began, rate): (&f64, f64)| {
            let explains = (1.0 - f64::min(younger, 1.0)) / rate.max(LEAST_RATE);
            let epoch = Epoch { began, exposure: began - next, explains };
            (next, younger) = (began, younger + rate);
            epoch
        };
        Self(began.iter().zip(rates).map(epoch).collect())
    }

    /// The youngest age of an epoch, or of all that is older than the last.
    fn from(&self, epochs_ago: usize) -> f64 {
        epochs_ago.checked_sub(1).map_or(0.0, |next| self.0[next].began)
    }
}

/// Lines of entries in one state, a stretch of pages after the other: those that have turned last come first.
pub struct Epochs(
    /// The stretches.
    pub Vec<Stretch>,
);

impl Likelihood for Epochs {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let (stretch, told) = evidence.stretch();
        let Stretch(epochs) = &self.0[stretch];
        let began = |epochs_ago| self.0[stretch].from(epochs_ago);
        let unknown_from = |from| Span { from, to: f64::INFINITY, probability: 1.0 };
        match told.as_epochs() {
            None => spans.push(unknown_from(began(epochs.len()))),
            Some((age, false)) => spans.push(unknown_from(began(age))),
            Some((age, true)) => {
                let epoch = &epochs[age];
                let (held, not_held) = chances(hazard.odds(epoch.exposure) * epoch.explains);
                spans.push(Span { from: began(age), to: epoch.began, probability: held });
                spans.push(Span { probability: not_held, ..unknown_from(epoch.began) });
            }
        }
    }

    fn by_prior(&self, evidence: Evidence, age: f64) -> Option<ByPrior> {
        let (stretch, told) = evidence.stretch();
        let Stretch(epochs) = &self.0[stretch];
        let began = |epochs_ago| self.0[stretch].from(epochs_ago);
        match told.as_epochs() {
            None => Some(ByPrior::unknown(began(epochs.len()), age)),
            Some((epoch, false)) => Some(ByPrior::unknown(began(epoch), age)),
            Some((number, true)) => {
                let epoch = &epochs[number];
                let ages = (began(number), epoch.began);
                ByPrior::of_stretch(ages, epoch.exposure, epoch.explains, epoch.began, age)
            }
        }
    }
}
