//! The growth of a timing filter: when it opens another part, and what the parts cost (paper 4, section 5, "dynamic
//! size").
//!
//! A part is a whole timing filter. Keys go to the newest; once it is full another is opened, and queries read all.
//! Each reports a fresh key with probability P at most, so F of them do with 1 - (1 - P)^F at most, and with just that
//! while all are full: the rate is kept per part, not in total, and erratum OIE-10 corrects the paper's "slightly
//! worse". At P = 1 % that is 2 % for 2 parts, 9.6 % for 10, 63 % for 100.
//!
//! At the planned rate the total stays at P: the keys that the newest part has gained, the older one has lost, and
//! since x^k is convex the sum of both rates is greatest if one of the two is empty.

use super::shape::{self, live_keys};
use crate::Error;
use crate::clock::Window;
use crate::family::request::Grow;
use crate::family::{CacheLines, Parameters, fill};

/// The limit of a part. When a part reaches it, another is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// n: number of keys that the part did not contain when they came, live or not by now.
    Keys(u64),
    /// z: number of timers set over all slices, including those that have expired and not been swept yet.
    Timers(u64),
}

impl Limit {
    /// Returns the limit at which a part has the rate of the whole plan: the keys of `blocks` + 1 generations, or the
    /// timers that these are expected to set.
    pub fn planned(grow: Grow, shape: shape::TimingShape, window: Window) -> Self {
        let keys = live_keys(window, shape.blocks);
        match grow {
            Grow::Cardinality => Self::Keys(keys),
            Grow::Density => Self::Timers((shape.fill(keys) * timers(shape)) as u64),
        }
    }

    /// Rejects filters that cannot grow: windows of insertions, equal timers, a limit that one key exceeds.
    pub fn check(self, shape: shape::TimingShape, window: Window) -> Result<Self, Error> {
        const MAX_KEYS: u64 = 1 << 62;
        if let Window::Count { .. } = window {
            return Err(Error::value(
                "grow is for windows of time: a window of insertions never holds more keys than its length; leave \
                 grow out",
            ));
        }
        if shape.equal_timers > 1 {
            return Err(Error::value(format!("grow takes equal_timers=1, got {}", shape.equal_timers)));
        }
        match self {
            Self::Keys(keys) if !(1..=MAX_KEYS).contains(&keys) => {
                Err(Error::value(format!("part_keys must lie in 1..=2**62, got {keys}")))
            }
            Self::Timers(set) if set < shape.k.into() || set as f64 > timers(shape) => Err(Error::value(format!(
                "part_timers must lie in k..=k * slice_timers, here {}..={}, got {set}",
                shape.k,
                timers(shape)
            ))),
            limit => Ok(limit),
        }
    }

    /// Returns the limit as a number.
    pub fn most(self) -> u64 {
        match self {
            Self::Keys(most) | Self::Timers(most) => most,
        }
    }

    /// Returns the most that one key adds.
    pub fn step(self, shape: shape::TimingShape) -> u64 {
        match self {
            Self::Keys(_) => 1,
            Self::Timers(_) => shape.k.into(),
        }
    }

    /// Returns P, the probability that a full part reports a key never inserted. By keys it is exact in expectation. By
    /// timers it is an upper bound for the timers as they are: the product of the k fills is at most the k-th power of
    /// their mean.
    pub fn false_positive_rate(self, shape: shape::TimingShape) -> f64 {
        let (fill, keys) = match self {
            Self::Keys(keys) => (shape.fill(keys), keys),
            Self::Timers(set) => {
                let fill = set as f64 / timers(shape);
                (fill, ((-fill).ln_1p() / (-1.0 / shape.slice_timers() as f64).ln_1p()) as u64)
            }
        };
        fill::or_same_hash(fill.powi(shape.k as i32), keys)
    }
}

/// A timing Bloom filter of dynamic size: the shape of its parts, and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growing {
    /// The shape of a part.
    pub part: shape::TimingShape,
    /// The limit of a part. When a part reaches it, another is opened.
    pub limit: Limit,
}

impl Growing {
    /// Reads the shape from parameters, one of which is the limit of a part.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let limit = match (parameters.get("part_keys"), parameters.get("part_timers")) {
            (Some(keys), None) => Limit::Keys(keys),
            (None, Some(timers)) => Limit::Timers(timers),
            _ => return Err(Error::value("give part_keys or part_timers, and not both")),
        };
        Ok(Self { part: shape::TimingShape::read(parameters)?, limit })
    }
}

impl crate::family::Shape for Growing {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (name, most) = match self.limit {
            Limit::Keys(keys) => ("part_keys", keys),
            Limit::Timers(timers) => ("part_timers", timers),
        };
        let mut parameters = self.part.parameters();
        parameters.iter_mut().filter(|(own, _)| *own == name).for_each(|(_, value)| *value = most);
        parameters
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        self.limit.check(self.part, window.check()?).map(|_| ())
    }

    fn retained(&self) -> u32 {
        self.part.retained()
    }

    /// Returns the bytes of one part, its row in the table and the head of the table.
    fn bytes(&self, window: Window) -> u64 {
        8 * 3 + self.part.bytes(window)
    }

    fn grows(&self) -> bool {
        true
    }

    /// Returns the rate of one full part.
    fn fpr(&self, _: Window) -> f64 {
        self.limit.false_positive_rate(self.part)
    }

    fn slack(&self, window: Window) -> u64 {
        self.part.slack(window)
    }

    fn npws(&self, window: Window) -> f64 {
        self.part.npws(window)
    }

    /// Returns the lines of one part.
    fn cache_lines(&self, window: Window) -> CacheLines {
        self.part.cache_lines(window)
    }

    fn false_negative_rates(&self, window: Window) -> Vec<f64> {
        self.part.false_negative_rates(window)
    }
}

/// Returns the number of timers of all slices.
fn timers(shape: shape::TimingShape) -> f64 {
    f64::from(shape.k) * shape.slice_timers() as f64
}

/// Returns 1 - (1 - p)(1 - q)...: the chance that one at least of several parts reports a key that none contains.
pub fn any(rates: impl Iterator<Item = f64>) -> f64 {
    -rates.map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
}
