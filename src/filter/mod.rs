//! The filters, a file per family: each a [`Layout`](crate::layout::Layout) of cells, which [`Aged`](crate::batch::Aged)
//! lets age.

mod age_partitioned;
mod counting;
mod stable;

pub use age_partitioned::AgePartitioned;
pub use counting::Counting;
pub use stable::Stable;

use crate::batch::Engine;
use crate::sizing::runs::Accesses;

/// What every filter can say of itself; its batches run in its engine.
pub trait Filter: Send + Sync {
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

    /// Chance that a key never inserted is reported now, from the bits as they are.
    fn false_positive_rate(&self) -> f64;

    /// A copy that shares the cells until either writes.
    fn clone_box(&self) -> Box<dyn Filter>;
}
