//! What the tag of an entry tells: the [aged quotient filter](crate::layout::quotient).
//!
//! An entry has the epoch in which its key was last inserted, or another key that shares its place. So the key was not
//! inserted in a younger epoch. Either it was in this one, and no other has rewritten the tag since: a chance of one
//! less the share of places that have a younger entry. Or it was not, and the entry is another's: the share of places
//! whose entries have this tag; then nothing is known of the epochs before. Where there is no entry, no epoch that is
//! kept has the key.
//!
//! A page that has turned keys away tells less of those that are not in a line which it has marked. A key since the
//! epoch in which it last did so would be found; before, it was turned away with the chance that those turned away are
//! of all keys of such lines. How many they are follows from the lines that are marked, on which keys without room fall
//! at random: L m for a share of 1 - e^-m, of which the spare has prints of some. Marks outlast their keys, so that the
//! number is too high rather than too low. Where as good as all lines are marked it may be any.
//!
//! Pages turn at different times. As for [lines](super::line) they are taken together in stretches, whose ages are off
//! by 1/64 of an epoch at the most.

use super::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};
use crate::clock::Clock;
use crate::shape::quotient::SPARE;

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
pub struct Chunk {
    epochs: Vec<Epoch>,
    /// Share of places that have an entry.
    taken: f64,
}

impl Chunk {
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
        let epochs = began.iter().zip(rates).map(epoch).collect();
        Self { epochs, taken: younger }
    }

    /// The youngest age of an epoch, or of all that is older than the last.
    fn from(&self, epochs_ago: usize) -> f64 {
        epochs_ago.checked_sub(1).map_or(0.0, |next| self.epochs[next].began)
    }
}

/// Lines of entries in one state.
pub struct Epochs {
    /// Stretches of pages: those that have turned last come first.
    pub stretches: Vec<Chunk>,
    /// Places of a page.
    pub places: f64,
    /// Its lines.
    pub lines: f64,
}

/// What evidence tells.
enum Match {
    /// The key did not come below this age.
    Not(f64),
    /// It came at these ages, which had so long to take keys and make what is seen so many times as likely, or not
    /// below the last of them.
    Perhaps((f64, f64), f64, f64),
}

impl Epochs {
    fn match_of(&self, evidence: Evidence) -> Match {
        let (stretch, evidence) = evidence.stretch();
        let stretch = &self.stretches[stretch];
        let gone = stretch.from(stretch.epochs.len());
        match (evidence.as_epochs(), evidence.marked()) {
            (None, _) => Match::Not(gone),
            (Some((number, true)), _) => {
                let epoch = &stretch.epochs[number];
                Match::Perhaps((stretch.from(number), epoch.began), epoch.exposure, epoch.explains)
            }
            (Some((number, false)), None) => Match::Not(stretch.from(number)),
            (Some((number, false)), Some(lines)) => {
                let (from, share) = (stretch.from(number), f64::from(lines) / self.lines);
                let without_room = -self.lines * (-share).ln_1p();
                let away = (without_room - f64::from(SPARE)).max(1.0);
                let others = share * stretch.taken * self.places;
                Match::Perhaps((from, gone), gone - from, away / (away + others))
            }
        }
    }
}

impl Likelihood for Epochs {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let unknown_from = |from, probability| Span { from, to: f64::INFINITY, probability };
        match self.match_of(evidence) {
            Match::Not(from) => spans.push(unknown_from(from, 1.0)),
            Match::Perhaps((from, to), exposure, explains) => {
                let (held, not_held) = chances(hazard.odds(exposure) * explains);
                spans.push(Span { from, to, probability: held });
                spans.push(unknown_from(to, not_held));
            }
        }
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        match self.match_of(evidence) {
            Match::Not(from) => Some(PosteriorCurve::unknown(from, age)),
            Match::Perhaps(ages, exposure, explains) => {
                PosteriorCurve::of_stretch(ages, exposure, explains, ages.1, age)
            }
        }
    }
}
