//! The generalized Bloom filter, which fades from the first key on (paper 5).

pub mod cells;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
