//! The search for the ring that meets a rate or a number of bytes.

use super::segment::check_block_bits;
use super::{MAX_BYTES, MAX_PARTS, Paper, RingShape, Segment};
use crate::Error;
use crate::clock::Window;
use crate::family::budget::{Budget, reject_below, too_few_bytes, too_much_memory, within_slack};
use crate::family::runs;
use crate::family::search::{self, Candidate};
use crate::inference::MAX_SLICES;

/// Returns the shape for a window and a budget.
///
/// Considers all k + l <= [`MAX_SLICES`], or with k = 1 all r < [`MAX_SLICES`] with every number of bits up to
/// [`MAX_PARTS`], whose slack is at most `slack`, by default [half the window](crate::family::budget::allowed_slack);
/// with `block_bits` in blocks of that many bits, in 1, 2, 4 or 8 parts.
///
/// Every query reads a few segments, and every insertion k. So a little of the budget is traded for fewer of them, more
/// of it where the bits per key fall slowly. From r = 5 to 15 the bits per key of guarded epochs hardly change.
/// - [`Budget::Rate`]: each gets the smallest segment (whole words, or whole blocks) that holds the rate. Of those at
///   most 1.25 times (guarded epochs: 1 + 1/512) as large as the smallest filter, the one with the fewest segments is
///   chosen, then the one with the fewest bytes.
/// - [`Budget::Bytes`]: each gets the largest segment that fits. Of those with at most twice (1 + 1/64) the least rate,
///   the one with the fewest segments is chosen, then the one with the least rate.
///
/// For a window of a million keys at 1 % and 0.1 % that gives k = 5, l = 10 at 23.5 bits per key and k = 8, l = 16 at
/// 30.9; in blocks of 512 bits k = 1, l = 2 at 18.8 and 28.7. Guarded epochs have r = 6 with 9 bits a key at 15.9 bits
/// and r = 8 with 13 at 21.3; in blocks of 512 bits r = 5 at 17.2 and 25.9.
pub fn choose(
    window: Window,
    budget: Budget,
    slack: Option<u64>,
    block_bits: Option<u32>,
    paper: Paper,
) -> Result<RingShape, Error> {
    let window = window.check()?;
    budget.check()?;
    let grains = match block_bits {
        Some(block_bits) => {
            check_block_bits(block_bits)?;
            [1, 2, 4, 8].map(|parts| Grain::Block { block_bits, parts }).to_vec()
        }
        None => plain(paper),
    };
    search(paper, &rings_within_slack(window, slack, paper)?, &grains, window, budget)
}

/// Returns the plain guarded epochs for a window and a budget, with one of these r.
pub fn choose_plain_epochs(r: &[u32], window: Window, budget: Budget, slack: Option<u64>) -> Result<RingShape, Error> {
    let window = window.check()?;
    budget.check()?;
    let rings = r.iter().map(|&r| (1, r));
    let rings = within_slack(window, slack, rings, |&(k, l)| window.slack(l, k))?;
    search(Paper::GuardedEpoch, &rings, &plain(Paper::GuardedEpoch), window, budget)
}

fn search(
    paper: Paper,
    rings: &[(u32, u32)],
    grains: &[Grain],
    window: Window,
    budget: Budget,
) -> Result<RingShape, Error> {
    let with_grains = |&(k, l): &(u32, u32)| {
        let keys = window.keys_per_generation(l);
        grains.iter().map(move |&grain| RingCandidate { paper, k, l, grain, keys })
    };
    let rings: Vec<RingCandidate> = rings.iter().flat_map(with_grains).collect();
    let (more_memory, more_often) = match paper {
        Paper::AgePartitioned => (4, 1.0),
        Paper::GuardedEpoch => (512, 1.0 / 64.0),
    };
    match budget {
        Budget::Rate(fpr) => {
            reject_below(rings.iter().map(|ring| ring.shape(1).keys_remembered(ring.keys)), fpr)?;
            search::for_rate(&rings, fpr, MAX_BYTES, |least| least + least / more_memory)
                .ok_or_else(|| too_much_memory(fpr, "2**60 bytes"))
        }
        Budget::Bytes(bytes) => search::for_memory(&rings, bytes, |least| least * (1.0 + more_often))
            .ok_or_else(|| too_few_bytes(search::least_memory(&rings), " for this window and slack", bytes)),
    }
}

/// Returns every (k, l) of a paper whose slack is allowed, by k + l, then k.
pub(crate) fn rings_within_slack(window: Window, slack: Option<u64>, paper: Paper) -> Result<Vec<(u32, u32)>, Error> {
    let most_k = if paper == Paper::GuardedEpoch { 1 } else { MAX_SLICES };
    let rings = (2..=MAX_SLICES).flat_map(|all| (1..all.min(most_k + 1)).map(move |k| (k, all - k)));
    within_slack(window, slack, rings, |&(k, l)| window.slack(l, k))
}

/// The unit of a segment's size.
#[derive(Clone, Copy)]
enum Grain {
    Word { parts: u32 },
    Block { block_bits: u32, parts: u32 },
}

/// Returns the grains of plain segments.
fn plain(paper: Paper) -> Vec<Grain> {
    let most = if paper == Paper::GuardedEpoch { MAX_PARTS } else { 1 };
    (1..=most).map(|parts| Grain::Word { parts }).collect()
}

/// A ring of slices as a candidate: its size follows from the budget.
struct RingCandidate {
    paper: Paper,
    k: u32,
    l: u32,
    grain: Grain,
    /// Number of keys per generation.
    keys: u64,
}

impl Candidate for RingCandidate {
    type Shape = RingShape;

    fn rank(&self) -> u32 {
        self.k + self.l
    }

    /// Many segments take the least memory, and among equally many a small k is the quickest to compute. A few segments
    /// of guarded epochs take as little.
    fn order(&self) -> u32 {
        match self.paper {
            Paper::AgePartitioned => MAX_SLICES - self.rank(),
            Paper::GuardedEpoch => self.rank(),
        }
    }

    fn shape(&self, units: u64) -> RingShape {
        let segment = match self.grain {
            Grain::Word { parts } => Segment::Bits { bits: 64 * units, parts },
            Grain::Block { block_bits, parts } => Segment::Blocks { blocks: units, block_bits, parts },
        };
        RingShape { paper: self.paper, k: self.k, l: self.l, segment }
    }

    fn memory_of_unit(&self) -> u64 {
        self.shape(1).nbytes()
    }

    /// Returns the worst-phase rate if it is at most `limit`. Two lower bounds of the rate come first, each a fraction
    /// of the cost of the next step: the k oldest segments alone, then all that are full alone, which are k - 1 and
    /// older.
    fn rate_at_most(&self, shape: &RingShape, limit: f64) -> Option<f64> {
        let fill_at_least =
            |generations: u32| shape.segment.match_rate_at_least(self.keys.saturating_mul(generations.into()));
        let filling: f64 = (self.l + 1..self.k).map(fill_at_least).product(); // of the k oldest, where l < k - 1
        if filling * fill_at_least(self.k).powi(self.k.min(self.l + 1) as i32) > limit {
            return None;
        }
        if self.k > 1 {
            let full = shape.segment.match_rate(shape.keys_when_full(self.keys));
            if runs::false_positive_rate(self.k, &vec![full; self.l as usize + 1]) > limit {
                return None;
            }
        }
        Some(shape.false_positive_rate(self.keys)).filter(|&rate| rate <= limit)
    }
}
