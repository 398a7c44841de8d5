//! Ages: when cells were last set, in the form in which a site returns it.

use super::NEVER;
use crate::Error;
use crate::memory::fallible;

/// Generations for which a cell counts if nothing is forgotten: more than any stream has.
pub(super) const FOREVER: i64 = 1 << 62;

/// Stands for the generation of a cell whose site did not answer.
pub const SILENT: i64 = NEVER + 1;

/// By how many generations each cell was last set before another, in one byte each if that is enough, else in four. The
/// greatest number stands for a cell that counts no more, or was never set.
pub enum Ages {
    /// Ages of one byte.
    Narrow(Vec<u8>),
    /// Ages of four bytes.
    Wide(Vec<u32>),
    /// No ages, but the generations themselves, [`NEVER`] or [`SILENT`].
    Last(Vec<i64>),
}

impl Ages {
    /// Returns the ages, before `base`, of cells that were last set in these generations, or [`NEVER`]. A cell that is
    /// older than `oldest` does not count.
    pub(super) fn of(last: &[i64], base: i64, oldest: u64) -> Result<Self, Error> {
        let age = |&last: &i64| (last != NEVER).then(|| base.abs_diff(last)).filter(|&age| age <= oldest);
        let ages = |none: u64| last.iter().map(move |last| age(last).unwrap_or(none).min(none));
        // What never expires has the age 0.
        if oldest >= FOREVER as u64 || oldest < u8::MAX.into() {
            return Ok(Self::Narrow(fallible::collected(ages(u8::MAX.into()).map(|age| age as u8))?));
        }
        Ok(Self::Wide(fallible::collected(ages(u32::MAX.into()).map(|age| age as u32))?))
    }

    /// Returns the number of cells.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Narrow(ages) => ages.len(),
            Self::Wide(ages) => ages.len(),
            Self::Last(last) => last.len(),
        }
    }

    /// Returns the generation in which a cell was last set, [`NEVER`] or [`SILENT`].
    #[inline(always)]
    pub fn last(&self, i: usize, base: i64) -> i64 {
        match self {
            Self::Narrow(ages) if ages[i] < u8::MAX => base.saturating_sub_unsigned(ages[i].into()),
            Self::Wide(ages) if ages[i] < u32::MAX => base.saturating_sub_unsigned(ages[i].into()),
            Self::Last(last) => last[i],
            _ => NEVER,
        }
    }
}
