//! SWAMP: a queue of fingerprints beside a table that counts them (paper 1, section 2).

pub mod cells;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
