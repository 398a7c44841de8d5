//! Age-partitioned filters and guarded epochs in slices, plain or in blocks, and transposed epochs (papers 1 and 2).

pub mod cells;
pub mod planes;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
pub mod transposed;
