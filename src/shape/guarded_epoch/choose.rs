//! From a request, a rate or a number of bytes, to a shape.

use super::{EPOCHS, MAX_BYTES, MAX_PARTS, MAX_SLICES, Segment, Shape, Transposed, check_block_bits};
use crate::Error;
use crate::clock::Window;
use crate::shape::budget::{Budget, refuse_below, too_few_bytes, too_much_memory, within_slack};
use crate::shape::search::{self, Candidate};

/// The shape for a window and a budget.
///
/// Considered are all r < [`MAX_SLICES`] whose slack (r + 1) * epoch - W, in the clock's unit, is at most `slack`, each
/// with every k up to [`MAX_PARTS`], or with `block_bits` in blocks of that many bits with 1, 2, 4 or 8 parts. The
/// default slack is [half the window](crate::shape::budget::allowed_slack), which memory alone would hardly ever spend:
/// it is least between r = 5 and 15, where the bits per key are a flat valley.
///
/// Queries ask every segment, so of the shapes on the valley's floor the one with the fewest is taken:
/// - [`Budget::Rate`]: each gets the smallest segment (whole words, or whole blocks) that holds the rate; of those at
///   most 1/512 larger than the smallest filter the one with the fewest segments, then the fewest bytes.
/// - [`Budget::Bytes`]: each gets the largest segment that fits; of those with at most 1/64 more than the least rate
///   the one with the fewest segments, then the least rate.
///
/// For a window of a million keys at 1 % and 0.1 % that gives r = 6, k = 9 at 15.9 bits per key and r = 8, k = 13 at
/// 21.3; in blocks of 512 bits r = 5 at 17.2 and 25.9.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>, block_bits: Option<u32>) -> Result<Shape, Error> {
    if let Some(block_bits) = block_bits {
        check_block_bits(block_bits)?;
    }
    choose_of(1..MAX_SLICES, window, budget, slack, block_bits)
}

/// The same for the transposed layout, of the r that it has. For a window of a million keys at 1 % and 0.1 % that gives
/// r = 7, k = 10 at 15.9 bits per key and k = 13 at 21.4.
pub fn choose_transposed(window: Window, budget: Budget, slack: Option<u64>) -> Result<Transposed, Error> {
    match choose_of(EPOCHS, window, budget, slack, None)? {
        Shape { r, segment: Segment::Bloom { bits: positions, k } } => Ok(Transposed { r, k, positions }),
        shape => unreachable!("{shape:?} has blocks, which were not asked for"),
    }
}

fn choose_of(
    allowed: impl IntoIterator<Item = u32>,
    window: Window,
    budget: Budget,
    slack: Option<u64>,
    block_bits: Option<u32>,
) -> Result<Shape, Error> {
    let window = window.check()?;
    budget.check()?;
    let grains: Vec<Grain> = match block_bits {
        None => (1..=MAX_PARTS).map(|k| Grain::Word { k }).collect(),
        Some(block_bits) => [1, 2, 4, 8].map(|parts| Grain::Block { block_bits, parts }).to_vec(),
    };
    let with_grains = |r| {
        let keys = window.keys_per_generation(r);
        grains.iter().map(move |&grain| Epochs { r, grain, keys })
    };
    let allowed = within_slack(window, slack, allowed, |&r| window.slack(r, 1))?;
    let candidates: Vec<Epochs> = allowed.into_iter().flat_map(with_grains).collect();
    match budget {
        Budget::Rate(fpr) => {
            refuse_below(candidates.iter().map(|epochs| epochs.shape(1).keys_remembered(epochs.keys)), fpr)?;
            search::for_rate(&candidates, fpr, MAX_BYTES, |least| least + least / 512)
                .ok_or_else(|| too_much_memory(fpr, "2**60 bytes"))
        }
        Budget::Bytes(bytes) => search::for_memory(&candidates, bytes, |least| least * (1.0 + 1.0 / 64.0))
            .ok_or_else(|| too_few_bytes(search::least_memory(&candidates), " for this window and slack", bytes)),
    }
}

/// What a segment's size is a whole number of.
#[derive(Clone, Copy)]
enum Grain {
    Word { k: u32 },
    Block { block_bits: u32, parts: u32 },
}

/// A shape without its size.
struct Epochs {
    r: u32,
    grain: Grain,
    /// Keys per epoch.
    keys: u64,
}

impl Candidate for Epochs {
    type Shape = Shape;

    fn rank(&self) -> u32 {
        self.r
    }

    fn shape(&self, units: u64) -> Shape {
        let segment = match self.grain {
            Grain::Word { k } => Segment::Bloom { bits: 64 * units, k },
            Grain::Block { block_bits, parts } => Segment::Blocks { blocks: units, block_bits, parts },
        };
        Shape { r: self.r, segment }
    }

    fn memory_of_unit(&self) -> u64 {
        self.shape(1).nbytes()
    }

    fn rate_at_most(&self, shape: &Shape, limit: f64) -> Option<f64> {
        Some(shape.false_positive_rate(self.keys)).filter(|&rate| rate <= limit)
    }
}
