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

/// Keeps a value on a cache line of its own.
#[repr(align(64))]
pub(crate) struct CachePadded<T>(pub T);
