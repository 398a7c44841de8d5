//! The promise of every filter at its worst phase, its rates, its posteriors, and what hostile bytes can do to it.

mod support;

mod batches;
mod bloom;
mod bursts;
mod choose;
#[cfg(target_os = "linux")]
mod clocks;
mod concurrent;
mod counting;
mod crafted;
mod exact;
mod families;
mod fuzzed;
mod generalized;
mod growing;
mod hostile;
mod hostile_parameters;
mod inference;
mod inference_line;
mod keys;
mod line;
mod outside;
mod paper1_tables;
mod promise;
mod public_api;
mod retained;
mod shape;
mod shared;
mod stable;
mod swamp;
mod time_limited;
mod timing;
mod toy;
