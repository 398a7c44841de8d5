//! The counting Bloom filter with a queue of keys (paper 5).

pub mod cells;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
