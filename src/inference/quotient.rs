//! The likelihood of the tag of an entry, for the [aged quotient filter](crate::layout::quotient).
//!
//! An entry contains the epoch in which its key was last inserted, or another key that shares its location. So the key
//! was not inserted in a younger epoch. There are two cases. The key was inserted in this epoch, and no other key has
//! rewritten the tag since: a chance of one less the share of locations that have a younger entry. Or it was not, and
//! the entry is another key's: the share of locations whose entries have this tag; then nothing is known of the epochs
//! before. If there is no entry, no retained epoch contains the key.
//!
//! A page that has rejected keys gives less information about a key whose home line it has flagged, and that it does
//! not contain. A key inserted since the last epoch with a rejection would be found. Before that, it was rejected with
//! a chance equal to the share of rejected keys among all keys of such lines. Their number follows from the number of
//! flagged lines, on which keys without room fall at random: L m for a share of 1 - e^-m, some of which have
//! fingerprints in the overflow line. Flags outlast their keys, so the number is too high rather than too low. If
//! nearly all lines are flagged the number is unbounded.
//!
//! Pages rotate at different times. As for [lines](crate::family::lines::likelihood) they form page ranges, whose ages are off by at most
//! 1/64 of an epoch.

use super::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};
use crate::clock::Clock;
use crate::shape::quotient::OVERFLOW_SLOTS;

/// Least share of locations that other keys may have, if a sample has found none.
const MIN_RATE: f64 = 1e-12;

/// An epoch of a page range.
struct Epoch {
    /// The age of the beginning of the epoch.
    began: f64,
    /// How long the epoch could take keys.
    exposure: f64,
    /// The odds that an entry of this epoch is the key's and not another's, if the key was as likely inserted as not.
    explains: f64,
}

/// The epochs of pages that rotated at about the same time, the open one first.
#[derive(Default)]
pub struct RangeEpochs {
    epochs: Vec<Epoch>,
    /// The share of locations that have an entry.
    taken: f64,
}

impl RangeEpochs {
    /// Creates the epochs from the beginning of each, and the share of locations with entries of that epoch.
    pub fn new(clock: &Clock, began: &[f64], rates: impl Iterator<Item = f64>) -> Self {
        // The latest insertion stands for the time it takes: see `Clock::exposure`.
        let (mut next, mut younger) = (-clock.gap(), 0.0);
        let epoch = |(&began, rate): (&f64, f64)| {
            let explains = (1.0 - f64::min(younger, 1.0)) / rate.max(MIN_RATE);
            let epoch = Epoch { began, exposure: began - next, explains };
            (next, younger) = (began, younger + rate);
            epoch
        };
        let epochs = began.iter().zip(rates).map(epoch).collect();
        Self { epochs, taken: younger }
    }

    /// Returns the youngest age of an epoch, or of everything older than the last.
    fn from(&self, epochs_ago: usize) -> f64 {
        epochs_ago.checked_sub(1).map_or(0.0, |next| self.epochs[next].began)
    }
}

/// The likelihood of lines of entries in one state.
pub struct QuotientLikelihood {
    /// The epochs by page ranges: those that have rotated last come first.
    pub ranges: Vec<RangeEpochs>,
    /// Number of locations of a page.
    pub locations: f64,
    /// Number of lines of a page.
    pub lines: f64,
}

/// The interpretation of evidence.
enum Match {
    /// The key did not come below this age.
    NotBelow(f64),
    /// The key came at these ages, or not below the last of them. The other numbers are the exposure of the ages, and
    /// the factor by which an insertion then raises the chance of the evidence.
    Within((f64, f64), f64, f64),
}

impl QuotientLikelihood {
    fn match_of(&self, evidence: Evidence) -> Match {
        let (range, evidence) = evidence.page_range();
        let range = &self.ranges[range];
        let gone = range.from(range.epochs.len());
        match (evidence.as_epochs(), evidence.flagged()) {
            (None, _) => Match::NotBelow(gone),
            (Some((number, true)), _) => {
                let epoch = &range.epochs[number];
                Match::Within((range.from(number), epoch.began), epoch.exposure, epoch.explains)
            }
            (Some((number, false)), None) => Match::NotBelow(range.from(number)),
            (Some((number, false)), Some(lines)) => {
                let (from, share) = (range.from(number), f64::from(lines) / self.lines);
                let without_room = -self.lines * (-share).ln_1p();
                let away = (without_room - f64::from(OVERFLOW_SLOTS)).max(1.0);
                let others = share * range.taken * self.locations;
                Match::Within((from, gone), gone - from, away / (away + others))
            }
        }
    }
}

impl Likelihood for QuotientLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let unknown_from = |from, probability| Span { from, to: f64::INFINITY, probability };
        match self.match_of(evidence) {
            Match::NotBelow(from) => spans.push(unknown_from(from, 1.0)),
            Match::Within((from, to), exposure, explains) => {
                let (held, not_held) = chances(hazard.odds(exposure) * explains);
                spans.push(Span { from, to, probability: held });
                spans.push(unknown_from(to, not_held));
            }
        }
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        match self.match_of(evidence) {
            Match::NotBelow(from) => Some(PosteriorCurve::unknown(from, age)),
            Match::Within(ages, exposure, explains) => PosteriorCurve::of_span(ages, exposure, explains, ages.1, age),
        }
    }
}
