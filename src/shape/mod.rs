//! Formulas: what a filter promises, computed before a bit is allocated.
//!
//! No bits here. Each formula is one small function that names its source (paper, section) and the erratum where the
//! printed form is not the right one; all rates are *exact in expectation* for distinct keys and independent uniform
//! hashes, at the worst phase unless said otherwise. Repeated keys only lower them.
//!
//! The logarithms and exponentials come from the platform's mathematical library, whose last digit may differ between
//! machines, so the same request could in principle size two filters one word apart. That cannot matter to a saved
//! filter: its parameters are saved with it, never derived again.

pub mod age_partitioned;
pub mod bloom;
pub mod budget;
pub mod counting;
pub mod equal_timers;
pub mod fill;
pub mod fingerprint_buffer;
pub mod generalized;
pub mod growing;
pub mod guarded_epoch;
pub mod line;
pub mod runs;
mod search;
pub mod slices;
pub mod slicing;
pub mod stable;
pub mod swamp;
pub mod time_limited;
pub mod timing;

pub use budget::Budget;
