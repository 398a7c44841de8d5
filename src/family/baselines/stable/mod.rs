//! The stable Bloom filter, which forgets at random (papers 2 and 5).

pub mod cells;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
