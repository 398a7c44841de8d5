//! The counting Bloom filter with a deletion queue, a baseline of papers 1 and 2 (Fan, Cao, Almeida, Broder, *Summary
//! Cache*, 2000, made a window by deleting what leaves it).
//!
//! The cells are k slices of 4-bit counters, and a queue of the hashes of the last W insertions. An insertion adds one
//! to one counter of each slice and takes the place of the oldest hash in the queue, whose counters go down by one. A
//! key is there when none of its counters is zero. The window is exact: a key leaves with the insertion that is W after
//! its own.
//!
//! Where this differs from the papers' baseline:
//! - Saturation is sticky: a counter that reaches 15 is never decremented (erratum GEBF-5). A counter that stayed at 15
//!   for the 16th insertion, but came down for each that leaves, would reach zero while the last is still in the
//!   window: a key that comes 16 times within a window would be lost. The price is a floor of false positives that
//!   grows with the number of such keys: [`floor`].
//! - A slice for each hash function, not one array for all: the rate is then exact in closed form, and a key never
//!   meets one counter twice.
//! - The queue counts as memory: it takes more than the counters.

use crate::Error;
use crate::clock::{BY_INSERTION, Window};
use crate::family::budget::{Budget, too_few_bytes};
use crate::family::slice_sizes::Slices;
use crate::family::{CacheLines, Parameters, fill};

/// Value from which on a counter is never decremented again: its 4 bits can only represent "at least 15".
pub const STUCK: u64 = 15;

/// Number of bits of a counter.
pub const BITS: u32 = 4;

/// The shape of a counting filter: everything but the window that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountingShape {
    /// The slices of counters.
    pub slices: Slices,
}

impl CountingShape {
    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Ok(Self { slices: Slices::new(parameters.read_u32("k")?, parameters.read_u64("slice_cells")?)? })
    }
}

impl crate::family::Shape for CountingShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("k", self.slices.k.into()), ("slice_cells", self.slices.cells)]
    }

    fn retained(&self) -> u32 {
        BY_INSERTION
    }

    /// Returns the bytes of counters and queue.
    fn bytes(&self, window: Window) -> u64 {
        8 * (self.slices.words(BITS) + window.capacity())
    }

    fn fpr(&self, window: Window) -> f64 {
        self.slices.false_positive_rate(window.capacity())
    }

    /// Returns one line in each slice, for the key that comes and the one that leaves, and one of the queue.
    fn cache_lines(&self, window: Window) -> CacheLines {
        let (k, fill) = (f64::from(self.slices.k), fill::slice(self.slices.cells, window.capacity()));
        CacheLines { insert: 2.0 * k + 1.0, hit: k, miss: self.slices.read_until_free(fill) }
    }
}

/// Returns the slices of counters for a window of insertions and a budget, by the rules of [`Slices::for_rate`] and
/// [`Slices::for_cells`]. A number of bytes is for counters and queue together.
///
/// For a window of a million keys at 1 % the result is k = 4: 42 bits of counters per key beside 64 of the queue.
pub fn choose(window: Window, budget: Budget) -> Result<CountingShape, Error> {
    let window = window.by_insertion()?;
    budget.check()?;
    match budget {
        Budget::Rate(fpr) => Ok(CountingShape { slices: Slices::for_rate(window, fpr)? }),
        Budget::Bytes(bytes) => {
            let needed = 8 * (window + 1);
            if bytes < needed {
                return Err(too_few_bytes(needed, " (a queue of 8 bytes per key, and counters)", bytes));
            }
            let cells = (bytes / 8 - window).saturating_mul(64 / u64::from(BITS));
            Ok(CountingShape { slices: Slices::for_cells(window, cells.min(1 << 60)) })
        }
    }
}

/// Returns the rate below which the false positives never fall again once `hot` distinct keys have each been inserted
/// 15 times within a window: their counters stick, and are a Bloom filter of these keys that never forgets.
///
/// The rate is small as long as they are few beside the window: planned at 1 % (k = 4), a tenth of the window's keys
/// leaves a floor of 2e-6, half of it 9e-4, and as many as the window 1 % on top of what the window itself makes.
pub fn floor(slices: &Slices, hot: u64) -> f64 {
    slices.false_positive_rate(hot)
}
