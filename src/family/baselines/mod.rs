//! Filters of the papers that are only compared with.

pub mod counters;
pub mod counting;
mod fading;
pub mod fingerprint_buffer;
pub mod generalized;
pub mod stable;
