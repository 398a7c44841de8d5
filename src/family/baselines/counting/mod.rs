//! The counting Bloom filter with a queue of keys (paper 5).

pub mod cells;
pub mod shape;
