//! Insertions or timestamps, turned into generations: the only thing a filter knows about time.

use crate::Error;

/// What "lately" means for one filter.
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
        /// Keys expected within one span. More of them cost accuracy, never the window.
        capacity: u64,
    },
}

impl Window {
    /// Refuses an empty window, an empty capacity, and lengths that would overflow the clock.
    pub fn check(self) -> Result<Self, Error> {
        const LONGEST: u64 = 1 << 62;
        match self {
            Self::Count { insertions: 0 } => Err(Error::value("window must be at least 1 insertion, got 0")),
            Self::Time { span: 0, .. } => Err(Error::value("window must be longer than 0 seconds")),
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

    /// Length of one generation when the last `kept` full generations are retained: insertions, or nanoseconds.
    ///
    /// A generation is closed only by the insertion that needs the next one, so just after a shift
    /// `kept * g` older insertions and the new one are there: `g = ceil((W - 1) / kept)` is enough. On the time
    /// clock a key and a query at most `kept * d` apart lie at most `kept` generations apart.
    pub fn generation(self, kept: u32) -> u64 {
        match self {
            Self::Count { insertions } => (insertions - 1).div_ceil(u64::from(kept)).max(1),
            Self::Time { span, lateness, .. } => (span + lateness).div_ceil(u64::from(kept)).max(1),
        }
    }

    /// Keys one generation is planned for.
    pub fn keys_per_generation(self, kept: u32) -> u64 {
        match self {
            Self::Count { .. } => self.generation(kept),
            Self::Time { span, capacity, .. } => {
                let keys = u128::from(capacity) * u128::from(self.generation(kept));
                u64::try_from(keys.div_ceil(u128::from(span))).unwrap_or(u64::MAX)
            }
        }
    }

    /// How long after leaving the window a key may still be remembered, when it leaves its last trace
    /// `kept + fading` generations after its own: insertions, or nanoseconds.
    pub fn slack(self, kept: u32, fading: u32) -> u64 {
        let last = u128::from(self.generation(kept)) * u128::from(kept + fading);
        let window = match self {
            Self::Count { insertions } => insertions,
            Self::Time { span, .. } => span,
        };
        u64::try_from(last - u128::from(window).min(last)).unwrap_or(u64::MAX)
    }
}
