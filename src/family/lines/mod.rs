//! Age-partitioned filters and guarded epochs in one cache line for each key, or in a few (papers 1 and 2).

pub mod cells;
pub mod likelihood;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
