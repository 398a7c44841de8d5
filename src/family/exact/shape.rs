//! What an exact window promises: no slack, and no false positive but for keys of equal hashes.

use crate::Error;
use crate::clock::Window;
use crate::family::{CacheLines, Parameters, Shape, fill};

/// The shape of an exact window. Its memory follows from the window and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactShape {
    /// Whether each missing key is a key of its own.
    pub missing_differ: bool,
}

impl ExactShape {
    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        match parameters.get("missing_differ").unwrap_or(0) {
            flag @ 0..=1 => Ok(Self { missing_differ: flag == 1 }),
            other => Err(Error::value(format!("missing_differ must be 0 or 1, got {other}"))),
        }
    }
}

impl Shape for ExactShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("missing_differ", self.missing_differ.into())]
    }

    fn retained(&self) -> u32 {
        1
    }

    fn bytes(&self, window: Window) -> u64 {
        super::bytes(window)
    }

    fn grows(&self) -> bool {
        true
    }

    fn missing_differ(&self) -> bool {
        self.missing_differ
    }

    /// Returns the chance that a fresh key has the hash of a key of the window.
    fn fpr(&self, window: Window) -> f64 {
        fill::same_hash(window.capacity())
    }

    /// Returns one line: few keys find their home full.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(1)
    }
}
