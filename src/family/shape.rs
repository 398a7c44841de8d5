//! The trait of all shapes: the formulas of a family, what a filter promises and costs, computed before a bit is
//! allocated.
//!
//! Nothing here reads bits. Each formula is one small function that names its source (paper, section) and the erratum
//! if the printed form is wrong. All rates are *exact in expectation* for distinct keys and independent uniform hashes,
//! at the worst phase unless stated otherwise. Repeated keys only lower them.
//!
//! The logarithms and exponentials come from the platform's mathematical library, whose last digit may differ between
//! machines, so the same request could in principle size two filters one word apart. That cannot matter to a saved
//! filter: its parameters are saved with it, never derived again.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::family::Accesses;

/// A shape, and the window that a filter of it has.
type ForWindow = (Arc<dyn Shape>, Window);

/// The shape of a filter: what it promises and costs for any window, before a bit is allocated.
pub trait Shape: Any + Debug + Send + Sync {
    /// Returns the parameters of the paper, by the names of the family; zero if one does not apply.
    fn parameters(&self) -> Vec<(&'static str, u64)>;

    /// Rejects a window that the filter cannot have: by default one of time if each generation is an insertion.
    fn check(&self, window: Window) -> Result<(), Error> {
        let checked =
            if self.retained() == BY_INSERTION { window.by_insertion().map(|_| window) } else { window.check() };
        checked.map(|_| ())
    }

    /// Returns the number of full generations that the clock retains.
    fn retained(&self) -> u32;

    /// Returns a clock that no key has reached yet.
    fn clock(&self, window: Window) -> Clock {
        Clock::new(window, self.retained())
    }

    /// Returns the bytes of the cells of an empty filter.
    fn bytes(&self, window: Window) -> u64;

    /// Returns whether cells come and go, so that [`bytes`](Self::bytes) holds for an empty filter only.
    fn grows(&self) -> bool {
        false
    }

    /// Returns whether each missing key is a key of its own.
    fn missing_differ(&self) -> bool {
        false
    }

    /// Returns how the cells may hold more keys than planned.
    fn crowding(&self) -> Crowding {
        Crowding { distinct: None, by_generation: true, is_sampled: false }
    }

    /// Returns the shape of the filter that two of this shape and window merge into, if that is another: one whose
    /// cells come and go.
    fn merged(&self, window: Window) -> Option<Arc<dyn Shape>> {
        let _ = window;
        None
    }

    /// Returns the chance that a key never inserted is reported, at the worst phase and planned load, exactly in
    /// expectation.
    fn fpr(&self, window: Window) -> f64;

    /// Returns how long after leaving the window a key may still be reported by its own bits: insertions, or
    /// nanoseconds. By default 0.
    fn slack(&self, window: Window) -> u64 {
        let _ = window;
        0
    }

    /// Returns the expected number of keys reported within the slack over the window, at its peak (paper 1, definition
    /// 2); by default 0.
    fn npws(&self, window: Window) -> f64 {
        let _ = window;
        0.0
    }

    /// Returns the cache lines that the engine moves for one key, as long as the filter is larger than the cache.
    fn cache_lines(&self, window: Window) -> CacheLines;

    /// Returns the expected slices that Algorithm 1 of paper 1 reads for a query, which stops early; `None` for filters
    /// without its slices.
    fn accesses(&self, window: Window) -> Option<Accesses> {
        let _ = window;
        None
    }

    /// Returns the shape of a fixed size that processes share in place of this one, with its window; `None` if the size
    /// of this one is fixed. Returns an error if no size follows from the window.
    fn of_fixed_size(&self, window: Window) -> Result<Option<ForWindow>, Error> {
        let _ = window;
        Ok(None)
    }

    /// Returns the chances that a key is missed, by the generations since its own, the newest first; empty where no key
    /// ever is.
    fn false_negative_rates(&self, window: Window) -> Vec<f64> {
        let _ = window;
        Vec::new()
    }
}

/// How the cells of a shape may hold more keys than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowding {
    /// Distinct keys that a window of insertions is planned for, if it may receive more.
    pub distinct: Option<u64>,
    /// Whether many keys in one generation crowd its cells.
    pub by_generation: bool,
    /// Whether a sample of the cells gives the rate, so that a check costs little.
    pub is_sampled: bool,
}

/// Numbers of cache lines per call, in expectation if they depend on the key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheLines {
    /// Lines written by an insertion.
    pub insert: f64,
    /// Lines read by a query of a key that is reported.
    pub hit: f64,
    /// Lines read by a query of a key that is not.
    pub miss: f64,
}

impl CacheLines {
    /// Returns the same number of lines for an insertion, a hit and a miss.
    pub(crate) fn each(lines: u32) -> Self {
        let lines = lines.into();
        Self { insert: lines, hit: lines, miss: lines }
    }
}
