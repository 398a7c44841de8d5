//! The budget that a filter must meet, and the checks before a shape is searched.

use super::fill;
use crate::Error;
use crate::clock::{Seconds, Window};

/// Greatest number of bytes of a filter: far above any machine, far enough below 2^64 that no size can overflow.
pub const MAX_BYTES: u64 = 1 << 60;

/// The budget of a filter: a rate of false positives, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// The worst-phase false positive rate may be at most this, strictly between 0 and 1.
    Rate(f64),
    /// The filter may have at most this many bytes.
    Bytes(u64),
}

impl Budget {
    /// Returns whether this is a number of bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::Bytes(_))
    }

    /// Rejects a budget that no filter can meet, whatever its window.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::Rate(fpr) => check_rate(fpr),
            Self::Bytes(bytes) if bytes > MAX_BYTES => {
                Err(Error::value(format!("nbytes must be at most 2**60, got {bytes}")))
            }
            Self::Bytes(_) => Ok(()),
        }
    }
}

/// Rejects a number that is no rate of false positives.
pub(crate) fn check_rate(fpr: f64) -> Result<(), Error> {
    if fpr > 0.0 && fpr < 1.0 {
        return Ok(());
    }
    Err(Error::value(format!("fpr must lie between 0 and 1, both excluded, got {fpr}")))
}

/// Rejects a rate below the chance that a fresh key has the hash of one of the keys remembered. No memory lowers that
/// chance. `remembered` contains the number of these keys for every candidate; the least counts.
pub(crate) fn reject_below(remembered: impl Iterator<Item = u64>, fpr: f64) -> Result<(), Error> {
    let floor = fill::same_hash(remembered.min().unwrap_or(0));
    if fpr > floor {
        return Ok(());
    }
    Err(Error::value(format!(
        "fpr must be above {} for this window, where 64-bit hashes of its keys are the same; got {fpr:e}",
        rounded_up(floor)
    )))
}

/// Returns the next greater number of two digits. A bound that an error states is then enough.
pub(crate) fn rounded_up(rate: f64) -> String {
    format!("{:.1e}", rate + 0.05 * 10_f64.powf(rate.log10().floor()))
}

/// Returns the error for a rate that takes more memory than a filter may have.
pub(crate) fn too_much_memory(fpr: f64, most: &str) -> Error {
    Error::value(format!("fpr={fpr} for this window takes more than {most}"))
}

/// Returns the error for fewer bytes than the smallest shape has.
pub(crate) fn too_few_bytes(needed: u64, of_what: &str, bytes: u64) -> Error {
    Error::value(format!("nbytes must be at least {needed}{of_what}, got {bytes}"))
}

/// Returns the slack a filter may have, in the clock's unit (insertions or nanoseconds): the requested one, or by
/// default half the window.
///
/// On the time clock the default is half of span and lateness together, beyond the lateness, which no shape avoids. It
/// is at least 64 units, so that rounding to whole generations leaves a tiny window a choice.
pub fn allowed_slack(window: Window, slack: Option<u64>) -> u64 {
    let half = match window {
        Window::Count { insertions } => insertions / 2,
        Window::Time { span, lateness, .. } => lateness + (span + lateness) / 2,
    };
    slack.unwrap_or(half.max(64))
}

/// Returns the candidates whose slack is allowed, or an error with the least slack among them.
pub(crate) fn within_slack<C>(
    window: Window,
    slack: Option<u64>,
    candidates: impl IntoIterator<Item = C>,
    slack_of: impl Fn(&C) -> u64,
) -> Result<Vec<C>, Error> {
    let bound = allowed_slack(window, slack);
    let mut least = u64::MAX;
    let mut allowed = |candidate: &C| {
        let slack = slack_of(candidate);
        least = least.min(slack);
        slack <= bound
    };
    let found: Vec<C> = candidates.into_iter().filter(&mut allowed).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let (least, bound) = (in_units(window, least), in_units(window, bound));
    Err(Error::value(format!("slack must be at least {least} for this window, got {bound}")))
}

/// Returns the error for a slack and a rate that exclude each other: more memory ages in smaller steps, which are whole
/// insertions.
pub(crate) fn too_little_slack(window: Window, fpr: f64, enough: u64, slack: u64) -> Error {
    let (enough, slack) = (in_units(window, enough), in_units(window, slack));
    Error::value(format!("fpr={fpr} for this window takes a slack of {enough}, got {slack}"))
}

/// Returns a slack with its unit.
pub(crate) fn in_units(window: Window, slack: u64) -> String {
    match window {
        Window::Count { .. } => format!("{slack} insertions"),
        Window::Time { .. } => Seconds(slack.into()).to_string(),
    }
}
