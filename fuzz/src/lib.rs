//! The bodies of the fuzz targets. They lie with the tests, which run each on a few inputs.

#[path = "../../tests/core/fuzzed/mod.rs"]
pub mod fuzzed;

#[path = "../../crates/lately-python/src/reader/mod.rs"]
mod reader;

#[path = "../../tests/records/fuzzed.rs"]
pub mod records;
