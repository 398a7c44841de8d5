//! From a request, a rate or a number of bytes, to a shape.

use super::{MAX_BYTES, MAX_SLICES, Segment, Shape, check_block_bits};
use crate::Error;
use crate::clock::Window;
use crate::shape::budget::{Budget, refuse_below, too_few_bytes, too_much_memory, within_slack};
use crate::shape::search::{self, Candidate};
use crate::shape::{fill, runs};

/// The shape for a window and a budget.
///
/// Considered are all k + l <= [`MAX_SLICES`] (with `block_bits`: blocks of that many bits, in 1, 2, 4 or 8 parts)
/// whose slack is at most `slack`, by default [half the window](crate::shape::budget::allowed_slack).
///
/// Every query reads a few segments, and every insertion k. So a little of the budget is traded for fewer of them:
/// - [`Budget::Rate`]: each (k, l) gets the smallest segment (whole words, or whole blocks) that holds the rate; of
///   those at most 1.25 times as large as the smallest filter the one with the fewest segments, then the fewest bytes.
/// - [`Budget::Bytes`]: each (k, l) gets the largest segment that fits; of those with at most twice the least rate
///   the one with the fewest segments, then the least rate.
///
/// For a window of a million keys at 1 % and 0.1 % that gives k = 5, l = 10 at 23.5 bits per key and k = 8, l = 16 at
/// 30.9; in blocks of 512 bits k = 1, l = 2 at 18.8 and 28.7.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>, block_bits: Option<u32>) -> Result<Shape, Error> {
    let window = window.check()?;
    budget.check()?;
    if let Some(block_bits) = block_bits {
        check_block_bits(block_bits)?;
    }
    let rings = candidates(window, slack, block_bits)?;
    match budget {
        Budget::Rate(fpr) => {
            refuse_below(rings.iter().map(|ring| ring.shape(1).keys_remembered(ring.keys)), fpr)?;
            search::for_rate(&rings, fpr, MAX_BYTES, |least| least + least / 4)
                .ok_or_else(|| too_much_memory(fpr, "2**60 bytes"))
        }
        Budget::Bytes(bytes) => search::for_memory(&rings, bytes, |least| 2.0 * least)
            .ok_or_else(|| too_few_bytes(search::least_memory(&rings), " for this window and slack", bytes)),
    }
}

/// Every (k, l, parts) whose slack is allowed, by k + l, then k, then parts.
fn candidates(window: Window, slack: Option<u64>, block_bits: Option<u32>) -> Result<Vec<Ring>, Error> {
    let grains: Vec<Grain> = match block_bits {
        None => vec![Grain::Word],
        Some(block_bits) => [1, 2, 4, 8].map(|parts| Grain::Block { block_bits, parts }).to_vec(),
    };
    let with_grains = |(k, l): (u32, u32)| {
        let keys = window.keys_per_generation(l);
        grains.iter().map(move |&grain| Ring { k, l, grain, keys })
    };
    Ok(rings_within_slack(window, slack)?.into_iter().flat_map(with_grains).collect())
}

/// Every (k, l) whose slack is allowed, by k + l, then k.
pub(in crate::shape) fn rings_within_slack(window: Window, slack: Option<u64>) -> Result<Vec<(u32, u32)>, Error> {
    let rings = (2..=MAX_SLICES).flat_map(|segments| (1..segments).map(move |k| (k, segments - k)));
    within_slack(window, slack, rings, |&(k, l)| window.slack(l, k))
}

/// What a segment's size is a whole number of.
#[derive(Clone, Copy)]
enum Grain {
    Word,
    Block { block_bits: u32, parts: u32 },
}

/// A shape without its size.
struct Ring {
    k: u32,
    l: u32,
    grain: Grain,
    /// Keys per generation.
    keys: u64,
}

impl Candidate for Ring {
    type Shape = Shape;

    fn rank(&self) -> u32 {
        self.k + self.l
    }

    /// Many segments are smaller, and among equally many those with few k are the quickest to compute.
    fn turn(&self) -> u32 {
        MAX_SLICES - self.rank()
    }

    fn shape(&self, units: u64) -> Shape {
        let segment = match self.grain {
            Grain::Word => Segment::Slice { bits: 64 * units },
            Grain::Block { block_bits, parts } => Segment::Blocks { blocks: units, block_bits, parts },
        };
        Shape { k: self.k, l: self.l, segment }
    }

    fn memory_of_unit(&self) -> u64 {
        self.shape(1).nbytes()
    }

    /// The worst-phase rate if it is at most `limit`. Two lower bounds of the rate come first, each a fraction of the
    /// cost of the next step: the k oldest segments alone, then all that are full alone, which are k - 1 and older.
    fn rate_at_most(&self, shape: &Shape, limit: f64) -> Option<f64> {
        let fill_at_least = |generations: u32| {
            let keys = self.keys.saturating_mul(generations.into());
            match shape.segment {
                Segment::Slice { bits } => fill::slice(bits, keys),
                Segment::Blocks { blocks, block_bits, parts } => fill::blocks_at_least(blocks, block_bits, parts, keys),
            }
        };
        let filling: f64 = (self.l + 1..self.k).map(fill_at_least).product(); // of the k oldest, where l < k - 1
        if filling * fill_at_least(self.k).powi(self.k.min(self.l + 1) as i32) > limit {
            return None;
        }
        let keys_when_full = shape.keys_when_full(self.keys);
        let full = shape.segment.fill(keys_when_full);
        if runs::false_positive_rate(self.k, &vec![full; self.l as usize + 1]) > limit {
            return None;
        }
        Some(shape.false_positive_rate(self.keys)).filter(|&rate| rate <= limit)
    }
}
