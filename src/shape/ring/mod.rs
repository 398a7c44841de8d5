//! The age-partitioned Bloom filter, plain and blocked (paper 1: Shtul, Baquero, Almeida, *Age-Partitioned Bloom
//! Filters*, 2020): what it costs and what it promises.
//!
//! k + l slices lie in a ring. An insertion sets one bit in each of the k newest; a new generation clears the oldest
//! slice and makes it the newest. A key is there when k consecutive slices, counted by age, have its bits. The blocked
//! variant (paper 1, section 6) has in place of a slice a blocked Bloom filter: the key picks one block in it and sets
//! one bit in each of the block's parts.
//!
//! Where this differs from the paper:
//! - A generation ends when the insertion that needs the next one arrives, so the last l * g + 1 insertions are always
//!   there, and g = ceil((W - 1) / l) keeps the promise. The paper's l * g is the same to one.
//! - Queries look at all slices and search the match vector for a run, where Algorithm 1 stops early: what it saves in
//!   reads it loses in mispredicted branches as long as the lines are fetched ahead.
//! - Positions are not made by double hashing, whose floor of errors lies too high: see
//!   [`cells`](crate::layout::cells).

mod choose;

pub use choose::choose;
pub(super) use choose::rings_within_slack;

use super::budget::MAX_BYTES;
use super::{CacheLines, Parameters, fill, runs};
use crate::Error;
use crate::clock::Window;

/// Most segments a filter may have, so that the matches of all of them fit a `u128`.
pub const MAX_SLICES: u32 = 128;

/// One of the k + l parts of the filter that are filled, kept and cleared together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// One bit array; a key sets one bit (paper 1, section 5).
    Slice {
        /// m, the bits it has.
        bits: u64,
    },
    /// A blocked Bloom filter; a key sets one bit in each part of one block (paper 1, section 6).
    Blocks {
        /// Number of blocks.
        blocks: u64,
        /// B: bits of a block, 64 (a word) or 512 (a cache line).
        block_bits: u32,
        /// b: parts of a block, and bits set by a key: 1, 2, 4 or 8.
        parts: u32,
    },
}

impl Segment {
    /// Whole 64-bit words.
    fn words(self) -> u64 {
        match self {
            Self::Slice { bits } => bits.div_ceil(64),
            Self::Blocks { blocks, block_bits, .. } => blocks.saturating_mul(u64::from(block_bits / 64)),
        }
    }

    /// Chance that a fresh key matches after `keys` distinct keys.
    pub fn fill(self, keys: u64) -> f64 {
        match self {
            Self::Slice { bits } => fill::slice(bits, keys),
            Self::Blocks { blocks, block_bits, parts } => fill::blocks(blocks, block_bits, parts, keys),
        }
    }
}

/// Everything that determines the size and the error of an age-partitioned filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Consecutive segments that must match; a key is inserted into the k newest.
    pub k: u32,
    /// Full generations kept: the window is l generations.
    pub l: u32,
    /// Each of the k + l segments.
    pub segment: Segment,
}

impl Shape {
    /// A shape whose parameters are in range: k and l at least 1, at most [`MAX_SLICES`] segments, at most
    /// [`MAX_BYTES`] bytes.
    pub fn new(k: u32, l: u32, segment: Segment) -> Result<Self, Error> {
        if k == 0 {
            return Err(Error::value("k must be at least 1, got 0"));
        }
        if l == 0 {
            return Err(Error::value("l must be at least 1, got 0"));
        }
        if k.saturating_add(l) > MAX_SLICES {
            return Err(Error::value(format!("k + l must be at most {MAX_SLICES}, got k={k}, l={l}")));
        }
        match segment {
            Segment::Slice { bits: 0 } => return Err(Error::value("slice_bits must be at least 1, got 0")),
            Segment::Blocks { blocks, block_bits, parts } => check_blocks(blocks, block_bits, parts)?,
            Segment::Slice { .. } => {}
        }
        let shape = Self { k, l, segment };
        if shape.nbytes() > MAX_BYTES {
            return Err(Error::value(format!("{} segments of {segment:?} are more than 2**60 bytes", k + l)));
        }
        Ok(shape)
    }

    /// The shape of these parameters: with `slice_bits` plain, else of blocks.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let segment = match parameters.get("slice_bits") {
            Some(bits) => Segment::Slice { bits },
            None => Segment::Blocks {
                blocks: parameters.wide("blocks")?,
                block_bits: parameters.narrow("block_bits")?,
                parts: parameters.narrow("parts")?,
            },
        };
        Self::new(parameters.narrow("k")?, parameters.narrow("l")?, segment)
    }

    /// 64-bit words of one segment.
    pub fn words_per_segment(&self) -> u64 {
        self.segment.words()
    }

    /// Bytes of all k + l segments, each of whole words.
    pub fn nbytes(&self) -> u64 {
        self.words_per_segment().saturating_mul(8 * u64::from(self.k + self.l))
    }

    /// Bits of memory per key of a window of `keys` keys.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.nbytes() as f64 / keys as f64
    }

    /// Chance that a fresh key matches each logical segment, the newest first, once k + l generations have passed.
    ///
    /// Segment i < k holds i full generations and the current one, the others k full generations (paper 1, section
    /// 5.1), exactly: the paper's linear gradient (i + 1)/(2k) is too low (errata APBF-1, APBF-9). With
    /// `keys_in_current` equal to `keys_per_generation` this is the worst phase, just before a shift.
    pub fn fills(&self, keys_per_generation: u64, keys_in_current: u64) -> Vec<f64> {
        let full = self.segment.fill(self.keys_when_full(keys_per_generation));
        let filling = (0..u64::from(self.k))
            .map(|i| self.segment.fill(keys_per_generation.saturating_mul(i).saturating_add(keys_in_current)));
        filling.chain((0..self.l).map(|_| full)).collect()
    }

    /// Probability that a key never inserted is reported present, just before a shift: the worst phase.
    pub fn false_positive_rate(&self, keys_per_generation: u64) -> f64 {
        let rate = runs::false_positive_rate(self.k, &self.worst_fills(keys_per_generation));
        fill::or_same_hash(rate, self.keys_remembered(keys_per_generation))
    }

    /// Keys that have left some trace, at the most.
    fn keys_remembered(&self, keys_per_generation: u64) -> u64 {
        keys_per_generation.saturating_mul(u64::from(self.k + self.l))
    }

    /// Keys beyond the window that are still reported, as a share of l generations, just before a shift:
    /// [`runs::npws`].
    pub fn npws(&self, keys_per_generation: u64) -> f64 {
        runs::npws(self.k, self.l, &self.worst_fills(keys_per_generation))
    }

    fn worst_fills(&self, keys_per_generation: u64) -> Vec<f64> {
        self.fills(keys_per_generation, keys_per_generation)
    }

    fn keys_when_full(&self, keys_per_generation: u64) -> u64 {
        keys_per_generation.saturating_mul(u64::from(self.k))
    }
}

impl super::Shape for Shape {
    fn family(&self) -> &'static str {
        "age-partitioned"
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (slice_bits, blocks, block_bits, parts) = match self.segment {
            Segment::Slice { bits } => (bits, 0, 0, 0),
            Segment::Blocks { blocks, block_bits, parts } => (0, blocks, block_bits, parts),
        };
        vec![
            ("k", self.k.into()),
            ("l", self.l.into()),
            ("slice_bits", slice_bits),
            ("blocks", blocks),
            ("block_bits", block_bits.into()),
            ("parts", parts.into()),
        ]
    }

    fn kept(&self) -> u32 {
        self.l
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(window.keys_per_generation(self.l))
    }

    fn slack(&self, window: Window) -> u64 {
        window.slack(self.l, self.k)
    }

    fn npws(&self, window: Window) -> f64 {
        window.npws(self.l, f64::from(self.l) * self.npws(window.keys_per_generation(self.l)))
    }

    /// One in each slice: queries look at all of them.
    fn cache_lines(&self, _: Window) -> CacheLines {
        let (insert, all) = (f64::from(self.k), f64::from(self.k + self.l));
        CacheLines { insert, hit: all, miss: all }
    }
}

/// Refuses blocks that a ring cannot have.
pub(super) fn check_blocks(blocks: u64, block_bits: u32, parts: u32) -> Result<(), Error> {
    if blocks == 0 {
        return Err(Error::value("blocks must be at least 1, got 0"));
    }
    if ![1, 2, 4, 8].contains(&parts) {
        return Err(Error::value(format!("parts must be 1, 2, 4 or 8, got {parts}")));
    }
    check_block_bits(block_bits)
}

pub(super) fn check_block_bits(block_bits: u32) -> Result<(), Error> {
    if [64, 512].contains(&block_bits) {
        Ok(())
    } else {
        Err(Error::value(format!("block_bits must be 64 or 512, got {block_bits}")))
    }
}
