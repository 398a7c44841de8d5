//! The plain Bloom filter, which forgets nothing.

pub mod cells;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
