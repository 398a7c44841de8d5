//! The generalized Bloom filter, which fades from the first key on (paper 5).

pub mod cells;
pub mod likelihood;
pub mod shape;
