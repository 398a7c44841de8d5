//! The likelihood of the tag of an entry.
//!
//! An entry carries the epoch in which its key was last inserted, or another key that shares its lines and its
//! fingerprint. So the key was not inserted in a younger epoch. There are two cases. The key was inserted in this
//! epoch, and no other key has rewritten the tag since: a chance of one less that of a match with a younger epoch. Or
//! it was not, and the entry is another key's: with n entries of this age, L lines and fingerprints of f bits a chance
//! of 2 n / (L 2^f); then nothing is known of the epochs before. Without an entry no live epoch contains the key.
//!
//! Lines that have rejected keys give less information about a key without an entry. It was not rejected since the
//! older of the two rejections. Before that it may have been. With a share s of the lines marked, by keys that fall on
//! pairs of lines at random, there were some -L ln(1 - s) / 2 of them, among all keys of the live epochs. A fresh key
//! falls on two marked lines with a chance of s^2. Where nearly all lines are marked, the youngest epochs that mark
//! most of them count, and the others had as many for their time.

use crate::clock::Clock;
use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};

/// An epoch that is live.
struct Epoch {
    /// The age of the beginning of the epoch.
    began: f64,
    /// How long the epoch could take keys.
    exposure: f64,
    /// The odds that an entry of this epoch is the key's and not another's, if the key was as likely inserted as not.
    explains: f64,
}

/// Share of lines with a rejection from which older rejections are taken to be as frequent as younger ones.
const MOST_MARKED: f64 = 0.9;

/// The likelihood of an aged cuckoo filter at one moment: of a key's age, by its entry or the rejections of its lines.
pub struct EntryLikelihood {
    /// The live epochs, the open one first.
    epochs: Vec<Epoch>,
    /// The odds that a key whose lines have rejected keys is one of these, if it was as likely inserted as not.
    rejected: f64,
}

impl EntryLikelihood {
    /// Creates the likelihood from the chances that a fresh key matches an entry of each age, the youngest first, and
    /// from the numbers of live entries, of lines with a rejection of each age, and of lines.
    pub fn new(clock: &Clock, matches: &[f64], entries: f64, rejections: &[f64], lines: f64) -> Self {
        let mut younger = 0.0;
        let epoch = |(back, &chance): (u64, &f64)| {
            let explains = (1.0 - f64::min(younger, 1.0)) / chance.max(f64::MIN_POSITIVE);
            younger += chance;
            Epoch { began: clock.began(back), exposure: clock.exposure(back), explains: explains.min(f64::MAX) }
        };
        let epochs: Vec<Epoch> = (0..).zip(matches).map(epoch).collect();
        let share_of = |marked: f64| (marked / lines).min(1.0 - 0.5 / lines);
        let (mut marked, mut passed) = (0.0, 0.0);
        for (epoch, rejected) in epochs.iter().zip(rejections) {
            if share_of(marked) < MOST_MARKED {
                (marked, passed) = (marked + rejected, passed + epoch.exposure);
            }
        }
        let whole: f64 = epochs.iter().map(|epoch| epoch.exposure).sum();
        let longer = if passed > 0.0 { whole / passed } else { 1.0 };
        let keys = -lines * (-share_of(marked)).ln_1p() / 2.0 * longer;
        let share = share_of(rejections.iter().sum());
        // Repeats are rejected again. How many insertions there were is known where they make the window.
        let insertions = if clock.counts() { whole.max(keys + entries) } else { keys + entries };
        let rejected = keys / insertions.max(1.0) / (share * share).max(f64::MIN_POSITIVE);
        Self { epochs, rejected }
    }

    /// Returns the youngest age of an epoch, or of everything older than the last.
    fn from(&self, epochs_ago: usize) -> f64 {
        epochs_ago.checked_sub(1).map_or(0.0, |next| self.epochs[next].began)
    }

    /// Returns the ages at which the key may have come, their exposure, and the factor by which an insertion then
    /// raises the chance of the evidence; or the age below which it did not come.
    fn span(&self, evidence: Evidence) -> Result<((f64, f64), f64, f64), f64> {
        let gone = self.from(self.epochs.len());
        match evidence.as_epochs() {
            None => Err(gone),
            Some((back, true)) => {
                let epoch = &self.epochs[back];
                Ok(((self.from(back), epoch.began), epoch.exposure, epoch.explains))
            }
            Some((back, false)) => {
                let exposure = self.epochs[back..].iter().map(|epoch| epoch.exposure).sum();
                Ok(((self.from(back), gone), exposure, self.rejected))
            }
        }
    }
}

impl Likelihood for EntryLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let unknown_from = |from, probability| Span { from, to: f64::INFINITY, probability };
        match self.span(evidence) {
            Err(from) => spans.push(unknown_from(from, 1.0)),
            Ok(((from, to), exposure, explains)) => {
                let (held, not_held) = chances(hazard.odds(exposure) * explains);
                spans.push(Span { from, to, probability: held });
                spans.push(unknown_from(to, not_held));
            }
        }
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        match self.span(evidence) {
            Err(from) => Some(PosteriorCurve::unknown(from, age)),
            Ok((ages, exposure, explains)) => PosteriorCurve::of_span(ages, exposure, explains, ages.1, age),
        }
    }
}
