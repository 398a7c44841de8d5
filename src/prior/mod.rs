//! Priors: what is known about a key before the cells are read.

pub mod learned;
