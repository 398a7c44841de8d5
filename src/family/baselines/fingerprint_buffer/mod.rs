//! The fingerprint buffer, which is searched as a whole (paper 1).

pub mod cells;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
