//! What is known of a key before the cells are asked.

pub mod learned;
