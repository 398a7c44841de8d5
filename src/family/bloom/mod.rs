//! The plain Bloom filter, which forgets nothing.

pub mod cells;
pub mod shape;
