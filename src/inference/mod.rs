//! From what a filter remembers to a probability.

pub mod learned;
