//! *Have I seen this key lately?* Filters over a sliding window, in constant memory.

pub mod batch;
pub mod bits;
pub mod clock;
pub mod error;
pub mod filter;
pub mod format;
pub mod key;
#[cfg(feature = "python")]
mod python;
pub mod sizing;
pub mod words;

pub use error::Error;
