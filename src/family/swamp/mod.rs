//! SWAMP: a queue of fingerprints beside a table that counts them (paper 1, section 2).

pub mod cells;
pub mod shape;
