//! The memory of a filter: words that are copied on write, prefetched, and read as bits or small numbers.

pub mod bits;
pub mod fallible;
mod huge;
pub mod lanes;
pub mod mapped;
pub mod packed;
pub mod prefetch;
mod words;

pub use words::{Lender, Words};
