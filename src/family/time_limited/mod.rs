//! The time-limited filter: slices that follow the rate of keys (paper 3).

pub mod cells;
mod engine;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
