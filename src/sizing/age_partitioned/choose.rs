//! From what a user asks for, a rate or a number of bytes, to a shape.

use super::{MAX_BYTES, MAX_SLICES, Segment, Shape, check_block_bits};
use crate::Error;
use crate::clock::Window;
use crate::sizing::{fill, runs};

/// Two keys share their 64-bit hash with this chance. A rate below it gains nothing, so no segments are spent on one.
const HASH_COLLISION: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// What the filter is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// The worst-phase false positive rate may be at most this, strictly between 0 and 1.
    Rate(f64),
    /// The filter may have at most so many bytes.
    Bytes(u64),
}

/// The shape for a window and a budget.
///
/// Considered are all k + l <= [`MAX_SLICES`] (with `block_bits`: blocks of so many bits, in 1, 2, 4 or 8 parts) whose
/// slack, in the clock's unit (insertions or nanoseconds), is at most `slack`. By default it may be half the window,
/// on the time clock half of span and lateness together beyond the lateness, which no shape avoids; or 64 units
/// where that is more, so that rounding to whole generations leaves a tiny window a choice.
///
/// Segments cost time: every query reads a few and every insertion k. Memory falls with their number, slower and
/// slower. So a little of the budget is traded for fewer of them:
/// - [`Budget::Rate`]: each (k, l) gets the smallest segment (whole words, or whole blocks) that holds the rate; of
///   those at most 1.25 times as large as the smallest filter the one with the fewest segments, then the fewest bytes.
/// - [`Budget::Bytes`]: each (k, l) gets the largest segment that fits; of those with at most twice the least rate (or
///   2^-63, if that is more) the one with the fewest segments, then the least rate.
///
/// For a window of a million keys at 1 % and 0.1 % that gives k = 5, l = 10 at 23.5 bits per key and k = 8, l = 16 at
/// 30.9; in blocks of 512 bits k = 1, l = 2 at 18.8 and 28.7.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>, block_bits: Option<u32>) -> Result<Shape, Error> {
    let window = window.check()?;
    if let Some(block_bits) = block_bits {
        check_block_bits(block_bits)?;
    }
    let candidates = candidates(window, slack, block_bits)?;
    match budget {
        Budget::Rate(fpr) => fewest_segments_for_rate(&candidates, fpr),
        Budget::Bytes(bytes) => fewest_segments_for_bytes(&candidates, bytes),
    }
}

fn fewest_segments_for_rate(candidates: &[Candidate], fpr: f64) -> Result<Shape, Error> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(Error::value(format!("fpr must lie between 0 and 1, both excluded, got {fpr}")));
    }
    let mut least = MAX_BYTES;
    for candidate in most_segments_first(candidates) {
        if let Some(shape) = candidate.smallest(fpr, least) {
            least = shape.nbytes();
        }
    }
    let within = least + least / 4;
    by_segments(candidates)
        .find_map(|group| group.iter().filter_map(|c| c.smallest(fpr, within)).min_by_key(Shape::nbytes))
        .ok_or_else(|| Error::value(format!("fpr={fpr} for this window takes more than 2**60 bytes")))
}

fn fewest_segments_for_bytes(candidates: &[Candidate], bytes: u64) -> Result<Shape, Error> {
    if bytes > MAX_BYTES {
        return Err(Error::value(format!("nbytes must be at most 2**60, got {bytes}")));
    }
    let needed = candidates.iter().map(|c| c.bytes_per_unit()).min().expect("a candidate has the least slack");
    if bytes < needed {
        return Err(Error::value(format!("nbytes must be at least {needed} for this window and slack, got {bytes}")));
    }
    let rated = |candidate: &Candidate, at_most: f64| {
        let shape = candidate.largest(bytes)?;
        Some((shape, candidate.rate_at_most(&shape, at_most)?))
    };
    let least = most_segments_first(candidates).fold(1.0, |least, c| rated(c, least).map_or(least, |(_, rate)| rate));
    let within = 2.0 * least.max(HASH_COLLISION);
    let (shape, _) = by_segments(candidates)
        .find_map(|group| group.iter().filter_map(|c| rated(c, within)).min_by(|a, b| a.1.total_cmp(&b.1)))
        .expect("the shape with the least rate is among them");
    Ok(shape)
}

/// Runs of candidates with the same number of segments, the fewest first.
fn by_segments(candidates: &[Candidate]) -> impl DoubleEndedIterator<Item = &[Candidate]> {
    candidates.chunk_by(|a, b| a.k + a.l == b.k + b.l)
}

/// The order that finds the optimum soonest, after which one cheap look rules out each of the others: many segments
/// are smaller, and among equally many those with few k are the quickest to compute.
fn most_segments_first(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    by_segments(candidates).rev().flatten()
}

/// Every (k, l, parts) whose slack is allowed, by k + l, then k, then parts.
fn candidates(window: Window, slack: Option<u64>, block_bits: Option<u32>) -> Result<Vec<Candidate>, Error> {
    let bound = slack.unwrap_or_else(|| default_slack(window));
    let grains: Vec<Grain> = match block_bits {
        None => vec![Grain::Word],
        Some(block_bits) => [1, 2, 4, 8].map(|parts| Grain::Block { block_bits, parts }).to_vec(),
    };
    let (mut found, mut least) = (Vec::new(), u64::MAX);
    for segments in 2..=MAX_SLICES {
        for k in 1..segments {
            let l = segments - k;
            let slack = window.slack(l, k);
            least = least.min(slack);
            if slack <= bound {
                let keys = window.keys_per_generation(l);
                found.extend(grains.iter().map(|&grain| Candidate { k, l, grain, keys }));
            }
        }
    }
    if found.is_empty() {
        let unit = match window {
            Window::Count { .. } => "insertions",
            Window::Time { .. } => "nanoseconds",
        };
        return Err(Error::value(format!("slack must be at least {least} {unit} for this window, got {bound}")));
    }
    Ok(found)
}

fn default_slack(window: Window) -> u64 {
    let half = match window {
        Window::Count { insertions } => insertions / 2,
        Window::Time { span, lateness, .. } => lateness + (span + lateness) / 2,
    };
    half.max(64)
}

/// What a segment's size is a whole number of.
#[derive(Clone, Copy)]
enum Grain {
    Word,
    Block { block_bits: u32, parts: u32 },
}

/// A shape but for its size.
struct Candidate {
    k: u32,
    l: u32,
    grain: Grain,
    /// Keys per generation.
    keys: u64,
}

impl Candidate {
    fn shape(&self, units: u64) -> Shape {
        let segment = match self.grain {
            Grain::Word => Segment::Slice { bits: 64 * units },
            Grain::Block { block_bits, parts } => Segment::Blocks { blocks: units, block_bits, parts },
        };
        Shape { k: self.k, l: self.l, segment }
    }

    /// Bytes of the whole filter for every word or block of a segment.
    fn bytes_per_unit(&self) -> u64 {
        let unit = match self.grain {
            Grain::Word => 8,
            Grain::Block { block_bits, .. } => u64::from(block_bits / 8),
        };
        unit * u64::from(self.k + self.l)
    }

    /// The largest shape within `bytes`.
    fn largest(&self, bytes: u64) -> Option<Shape> {
        let units = bytes / self.bytes_per_unit();
        (units > 0).then(|| self.shape(units))
    }

    /// The smallest shape within `bytes` whose rate is at most `fpr`, by bisection: larger segments are emptier, and
    /// an emptier segment can only lower the rate.
    fn smallest(&self, fpr: f64, bytes: u64) -> Option<Shape> {
        let holds = |units| self.rate_at_most(&self.shape(units), fpr).is_some();
        let (mut too_small, mut enough) = (0, bytes / self.bytes_per_unit());
        if enough == 0 || !holds(enough) {
            return None;
        }
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            *(if holds(middle) { &mut enough } else { &mut too_small }) = middle;
        }
        Some(self.shape(enough))
    }

    /// The worst-phase rate if it is at most `limit`. Two lower bounds of the rate come first, each a fraction of the
    /// cost of the next step: the k oldest segments alone, then the l full ones alone.
    fn rate_at_most(&self, shape: &Shape, limit: f64) -> Option<f64> {
        let keys_when_full = shape.keys_when_full(self.keys);
        let fill_at_least = match shape.segment {
            Segment::Slice { bits } => fill::slice(bits, keys_when_full),
            Segment::Blocks { blocks, block_bits, parts } => {
                fill::blocks_at_least(blocks, block_bits, parts, keys_when_full)
            }
        };
        if fill_at_least.powi(self.k as i32) > limit {
            return None;
        }
        let full = shape.segment.fill(keys_when_full);
        if runs::false_positive_rate(self.k, &vec![full; self.l as usize]) > limit {
            return None;
        }
        Some(shape.false_positive_rate(self.keys)).filter(|&rate| rate <= limit)
    }
}
