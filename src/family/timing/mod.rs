//! Timing Bloom filters: timers of a few bits (papers 4 and 5).

pub mod cells;
pub mod equal_timers;
pub mod growing;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
