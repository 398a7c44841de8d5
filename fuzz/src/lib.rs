//! What is fed with any bytes lies with the tests, which feed it with a few.

#[path = "../../tests/core/fuzzed/mod.rs"]
pub mod fuzzed;
