//! The stable Bloom filter, which forgets at random (papers 2 and 5).

pub mod cells;
pub mod likelihood;
pub mod shape;
