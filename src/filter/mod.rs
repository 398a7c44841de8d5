//! The filters: each a layout of cells, which [`Aged`](crate::batch::Aged) makes a filter.

mod age_partitioned;

pub use age_partitioned::AgePartitioned;

use crate::batch::Engine;
use crate::bits::Address;
use crate::sizing::runs::Accesses;

/// Where the bits of a key lie in the words of a filter, and what a new generation does to them.
///
/// Generations are numbered by the [`Clock`](crate::clock::Clock). A layout keeps no state: the words and the clock are
/// all there is to save.
pub trait Layout: Copy + Send + Sync + 'static {
    /// What the generation means for the cells, worked out once per run of keys.
    type Phase: Copy;

    /// Generations after which a key has left no trace.
    fn generations(&self) -> u64;

    /// The phase of cells whose open generation is `generation`, as they will be once `pending` more have begun.
    fn phase(&self, generation: i64, pending: u64) -> Self::Phase;

    /// Starts fetching the cells that an insertion writes.
    fn fetch_newest(&self, words: Address, phase: Self::Phase, hash: u64);

    /// Starts fetching the cells that a query reads, among them those that an insertion writes.
    fn fetch_all(&self, words: Address, hash: u64);

    /// Writes a key into the open generation.
    fn insert(&self, words: &mut [u64], phase: Self::Phase, hash: u64);

    /// Whether the cells hold a key.
    fn contains(&self, words: &[u64], phase: Self::Phase, hash: u64) -> bool;

    /// Clears the cells that `generation` will write first, just before it opens.
    fn open(&self, words: &mut [u64], generation: i64);

    /// Share of the bits set in each part that ages as one, the newest first.
    fn fill(&self, words: &[u64], phase: Self::Phase) -> Vec<f64>;

    /// Chance that a fresh key matches in each part that ages as one, the newest first.
    fn match_rates(&self, words: &[u64], phase: Self::Phase) -> Vec<f64>;
}

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
