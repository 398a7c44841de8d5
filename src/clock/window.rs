//! The window: a number of insertions, or a span of time.

use std::fmt;

use super::{ENDLESS, NEVER};
use crate::Error;

/// The window of a filter, which defines "lately".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last `insertions` insertions.
    Count {
        /// W, at least 1.
        insertions: u64,
    },
    /// A span of time, in nanoseconds.
    Time {
        /// T: a key stays for at least this long.
        span: u64,
        /// How far a timestamp may lie behind the latest one seen; the promise covers such late keys too.
        lateness: u64,
        /// Keys expected within one span at the peak rate. Generations are planned for that rate; more keys in one of
        /// them cost accuracy, never the window.
        capacity: u64,
    },
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count { insertions } => write!(f, "{insertions} insertions"),
            Self::Time { span, lateness, capacity } => {
                write!(f, "{} (lateness {}, capacity {capacity})", Seconds(span.into()), Seconds(lateness.into()))
            }
        }
    }
}

/// Nanoseconds, which are written as seconds without rounding: a caller who takes the number gets what was meant.
pub(crate) struct Seconds(pub u128);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = format!("{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{} s", exact.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Window {
    /// Rejects an empty window, an empty capacity, and lengths that would overflow the clock.
    pub fn check(self) -> Result<Self, Error> {
        const LONGEST: u64 = 1 << 62;
        match self {
            Self::Count { insertions: 0 } => Err(Error::value("window must be at least 1 insertion, got 0")),
            Self::Time { span: 0, .. } => Err(Error::value("window must be longer than 0 seconds, got 0")),
            Self::Time { capacity: 0, .. } => Err(Error::value("capacity must be at least 1 key, got 0")),
            Self::Count { insertions } if insertions > LONGEST => {
                Err(Error::value(format!("window must be at most 2**62 insertions, got {insertions}")))
            }
            Self::Time { capacity, .. } if capacity > LONGEST => {
                Err(Error::value(format!("capacity must be at most 2**62 keys, got {capacity}")))
            }
            Self::Time { span, lateness, .. } if span.saturating_add(lateness) > LONGEST => {
                Err(Error::value("window and lateness together must be at most 146 years"))
            }
            window => Ok(window),
        }
    }

    /// Returns the default bound on how far ahead of the wall clock a time may lie: one window, and at least a minute,
    /// because the clocks of machines differ by seconds.
    pub fn default_max_ahead(self) -> Option<u64> {
        const MINUTE: u64 = 60_000_000_000;
        Some(self.length().max(MINUTE)).filter(|_| matches!(self, Self::Time { .. }))
    }

    /// Encodes a bound for a file: 0 for the default, else its nanoseconds + 1, or the greatest number for no bound.
    pub(crate) fn write_max_ahead(self, max_ahead: Option<u64>) -> u64 {
        if max_ahead == self.default_max_ahead() { 0 } else { max_ahead.map_or(u64::MAX, |ahead| ahead + 1) }
    }

    /// Decodes the bound of a [file](Self::write_max_ahead).
    pub(crate) fn read_max_ahead(self, word: u64) -> Option<u64> {
        match word {
            0 => self.default_max_ahead(),
            u64::MAX => None,
            ahead => Some(ahead - 1),
        }
    }

    /// Returns the length of the window: insertions, or nanoseconds.
    pub fn length(self) -> u64 {
        match self {
            Self::Count { insertions: length } | Self::Time { span: length, .. } => length,
        }
    }

    /// Returns a shorter window in the same unit, for a query; rejects one that is longer or empty.
    pub fn part(self, window: u64) -> Result<u64, Error> {
        match self {
            Self::Count { insertions } if !(1..=insertions).contains(&window) => {
                Err(Error::value(format!("window must lie in 1..={insertions}, that of the filter, got {window}")))
            }
            Self::Time { span, .. } if !(1..=span).contains(&window) => Err(Error::value(format!(
                "window must be longer than 0 s and at most {}, that of the filter, got {}",
                Seconds(span.into()),
                Seconds(window.into())
            ))),
            _ => Ok(window),
        }
    }

    /// Returns the number of keys that a filter of this window is planned for.
    pub fn capacity(self) -> u64 {
        match self {
            Self::Count { insertions: keys } | Self::Time { capacity: keys, .. } => keys,
        }
    }

    /// Returns the insertions of a window for a filter that ages by each of them: 1 to 2^32. A span of time is
    /// rejected, since a filter of bounded memory would have to overwrite keys of the span in a burst.
    pub fn by_insertion(self) -> Result<u64, Error> {
        match self.check()? {
            Self::Count { insertions } if insertions <= 1 << 32 => Ok(insertions),
            Self::Count { insertions } => {
                Err(Error::value(format!("window must be at most 2**32 insertions for this filter, got {insertions}")))
            }
            Self::Time { .. } => Err(Error::value(
                "window must be a number of insertions: this filter has room for a fixed number of keys, and a span of \
                 time may bring more; for a span of time take AgePartitionedBloomFilter",
            )),
        }
    }

    /// Returns the length of one generation when the last `retained` full generations are retained: insertions, or
    /// nanoseconds.
    ///
    /// A generation is closed only by the insertion that needs the next one, so just after a shift
    /// `retained * g` older insertions and the new one are there: `g = ceil((W - 1) / retained)` is enough. On the time
    /// clock a key and a query at most `retained * d` apart lie at most `retained` generations apart.
    ///
    /// With [`ENDLESS`] the length is one that no stream reaches. The length of a window of time is at most `i64::MAX`,
    /// for windows that [`check`](Self::check) would reject.
    pub fn generation(self, retained: u32) -> u64 {
        if retained == ENDLESS {
            return NEVER;
        }
        match self {
            Self::Count { insertions } => insertions.saturating_sub(1).div_ceil(u64::from(retained)).max(1),
            Self::Time { span, lateness, .. } => {
                let retaining = span.saturating_add(lateness).div_ceil(u64::from(retained));
                retaining.clamp(1, i64::MAX as u64)
            }
        }
    }

    /// Returns the fewest full generations of this length that keep the window.
    pub fn generations(self, length: u64) -> u64 {
        match self {
            Self::Count { insertions } => insertions.saturating_sub(1).div_ceil(length),
            Self::Time { span, lateness, .. } => span.saturating_add(lateness).div_ceil(length),
        }
    }

    /// Returns the number of keys that one generation is planned for.
    pub fn keys_per_generation(self, retained: u32) -> u64 {
        self.keys_in(retained, 1)
    }

    /// Returns the number of keys that `generations` generations together are planned for, where `retained` full ones
    /// keep the window.
    pub fn keys_in(self, retained: u32, generations: u32) -> u64 {
        let length = u128::from(self.generation(retained)) * u128::from(generations);
        let keys = match self {
            Self::Count { .. } => length,
            Self::Time { span, capacity, .. } => (u128::from(capacity) * length).div_ceil(u128::from(span)),
        };
        u64::try_from(keys).unwrap_or(u64::MAX)
    }

    /// Returns the keys beyond the window that are still reported just before a generation ends, relative to the keys
    /// of a window: all keys of the `retained` full generations, and in expectation those of `fading` further ones.
    /// Rounding to whole generations and lateness are included.
    pub fn npws(self, retained: u32, fading: f64) -> f64 {
        let reported = self.generation(retained) as f64 * (f64::from(retained) + fading);
        (reported / self.length() as f64 - 1.0).max(0.0)
    }

    /// Returns how long after leaving the window a key may still be remembered, in insertions or nanoseconds, if its
    /// last trace disappears `retained + fading` generations after its own.
    pub fn slack(self, retained: u32, fading: u32) -> u64 {
        let last = u128::from(self.generation(retained)) * u128::from(retained + fading);
        u64::try_from(last - u128::from(self.length()).min(last)).unwrap_or(u64::MAX)
    }
}
