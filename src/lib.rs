//! *Have I seen this key lately?* Filters over a sliding window, in constant memory.

pub mod clock;
pub mod error;
pub mod key;
#[cfg(feature = "python")]
mod python;

pub use error::Error;
