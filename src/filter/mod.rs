//! The filters, a file per family: each a shape and an engine of its layout.

mod age_partitioned;
mod bloom;
mod counting;
mod fingerprint_buffer;
mod generalized;
mod guarded_epoch;
mod in_lines;
mod saved;
mod stable;
mod swamp;
mod time_limited;
mod timing;
mod timing_in_lines;
mod transposed;

pub use age_partitioned::AgePartitioned;
pub use bloom::Bloom;
pub use counting::Counting;
pub use fingerprint_buffer::FingerprintBuffer;
pub use generalized::Generalized;
pub use guarded_epoch::GuardedEpoch;
pub use in_lines::InLines;
pub use stable::Stable;
pub use swamp::Swamp;
pub use time_limited::TimeLimited;

pub use timing::Timing;
pub use timing_in_lines::TimingInLines;
pub use transposed::Transposed;

use std::any::Any;

use crate::Error;
use crate::engine::Engine;
use crate::shape::runs::Accesses;

/// Cache lines, in expectation where it depends on the key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lines {
    /// Written by an insertion.
    pub insert: f64,
    /// Read by a query of a key that is reported.
    pub hit: f64,
    /// Read by a query of a key that is not.
    pub miss: f64,
}

/// What every filter can say of itself; its batches run in its engine.
pub trait Filter: Any + Send + Sync {
    /// The cells, to read.
    fn engine(&self) -> &dyn Engine;

    /// The cells, to write.
    fn engine_mut(&mut self) -> &mut dyn Engine;

    /// The seed its keys are hashed with.
    fn seed(&self) -> u64;

    /// Its number in the [saved form](crate::format).
    fn kind(&self) -> u16;

    /// The parameters of its paper, by the names of `from_parameters`; zero where one does not apply.
    fn parameters(&self) -> Vec<(&'static str, u64)>;

    /// Chance that a key never inserted is reported, at the worst phase and planned load, exactly in expectation.
    fn fpr(&self) -> f64;

    /// How long after leaving the window a key may still be reported for its own sake: insertions, or nanoseconds.
    fn slack(&self) -> u64;

    /// Expected number of keys reported within the slack over the window, at its peak (paper 1, definition 2).
    fn npws(&self) -> f64;

    /// Cells that Algorithm 1 of paper 1 would read per query, by outcome.
    fn expected_accesses(&self) -> Accesses;

    /// Cache lines that the engine moves for one key, as long as the filter is larger than the cache.
    fn cache_lines(&self) -> Lines;

    /// Chance that a key never inserted is reported now, from the bits as they are.
    fn false_positive_rate(&self) -> f64;

    /// Takes in all keys of the other filter, which must be of the same family, window, seed and parameters, or an error
    /// names the first that differs.
    fn unite(&mut self, other: &dyn Filter) -> Result<(), Error> {
        let agree = |name: &str, ours: String, theirs: String| match ours == theirs {
            true => Ok(()),
            false => Err(Error::value(format!(
                "filters can be united only when they agree, but {name} is {ours} here and {theirs} there"
            ))),
        };
        agree("the kind", self.kind().to_string(), other.kind().to_string())?;
        let (ours, theirs) = (self.engine().clock().window(), other.engine().clock().window());
        let name = if self.engine().clock().endless() { "capacity" } else { "window" };
        agree(name, ours.to_string(), theirs.to_string())?;
        agree("seed", self.seed().to_string(), other.seed().to_string())?;
        for ((name, ours), (_, theirs)) in self.parameters().into_iter().zip(other.parameters()) {
            agree(name, ours.to_string(), theirs.to_string())?;
        }
        self.engine_mut().unite(other.engine())
    }

    /// Chance that a key is missed so many generations after its own, the newest first; empty where none ever is.
    fn false_negative_rates(&self) -> Vec<f64> {
        Vec::new()
    }

    /// A copy that shares the cells until either writes.
    fn clone_box(&self) -> Box<dyn Filter>;
}
