//! The guarded-epoch Bloom filter, plain and blocked (paper 2: Alpay, Sarıoğlu, *Guarded Epoch Bloom Filters for
//! Sliding-Window Membership*, 2026): what it costs and what it promises.
//!
//! r + 1 segments lie in a ring, each a Bloom filter of its own. An insertion sets the key's k bits in the newest;
//! after an epoch of insertions the oldest is cleared and becomes the newest. A key is there when any one segment has
//! all of its bits. r epochs cover the window, and the segment that is filling is the guard. It is the
//! [`Ring`](crate::layout::ring::Ring) of the age-partitioned filter with one segment written, where that one writes k
//! and asks for k in a row.
//!
//! Where this differs from the paper:
//! - An epoch has ceil((W - 1) / r) insertions, not ceil(W / r). The insertion that needs the next epoch opens it, so r
//!   epochs and that insertion are there at the least (erratum GEBF-2). The last r * epoch + 1 to (r + 1) * epoch
//!   insertions are retained, so a key stays beyond the window for at most (r + 1) * epoch - W, which is more than the
//!   one epoch of proposition 1 when r does not divide W - 1 (erratum GEBF-1).
//! - A plain segment has one part per bit of a key, which makes its rate exact: see
//!   [`Parts`](crate::layout::cells::Parts).
//! - A key has positions of its own in every segment, where the paper tests the same ones everywhere. For a fresh key
//!   of a stream without repeats both report equally often: segments then hold different keys, and with one bit in each
//!   part match independently for any positions. (In the paper's segments a key whose positions coincide is an easy
//!   match everywhere.) They part where one key lies in several segments. Shared positions set the same bits in each,
//!   so a fresh key that matches one by colliding with that key matches all: fewer reports, but matches that are one
//!   piece of evidence and look like several. With positions of their own the segments are independent given what was
//!   inserted when, and the likelihood of a match vector is a product over them. The rate promised, for keys without
//!   repeats, is the highest either way.
//! - No double hashing, whose floor of errors lies too high: see [`cells`](crate::layout::cells).

mod choose;
mod transposed;

pub use choose::{choose, choose_transposed};
pub use transposed::{EPOCHS, Transposed};

use super::age_partitioned::{MAX_SLICES, check_block_bits, check_blocks};
use super::budget::MAX_BYTES;
use super::{CacheLines, Parameters, fill};
use crate::Error;
use crate::clock::Window;

/// Most bits a key may set in a plain segment. Rates that need more lie below the collisions of 64-bit hashes.
pub const MAX_PARTS: u32 = 64;

/// One of the r + 1 parts of the filter, each of which holds the keys of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// A partitioned Bloom filter; a key sets one bit in each part.
    Bloom {
        /// s, the bits it has; what is left of them after division into k equal parts stays unused.
        bits: u64,
        /// k: parts, and bits set by a key.
        k: u32,
    },
    /// A blocked Bloom filter; a key sets one bit in each part of one block (paper 2, section 2, last paragraph).
    Blocks {
        /// Number of blocks.
        blocks: u64,
        /// Bits of a block, 64 (a word) or 512 (a cache line).
        block_bits: u32,
        /// Parts of a block, and bits set by a key: 1, 2, 4 or 8.
        parts: u32,
    },
}

impl Segment {
    /// Whole 64-bit words.
    fn words(self) -> u64 {
        match self {
            Self::Bloom { bits, .. } => bits.div_ceil(64),
            Self::Blocks { blocks, block_bits, .. } => blocks.saturating_mul(u64::from(block_bits / 64)),
        }
    }

    /// Chance that a fresh key matches after `keys` distinct keys.
    ///
    /// Paper 2, proposition 2, has (1 - e^(-kn/s))^k. A power of the mean is not the mean of the power; but the parts
    /// of a plain segment are filled independently, and so the power is exact here ([`fill::slice`] for e). Blocks are
    /// filled unequally: [`fill::blocks`].
    pub fn match_rate(self, keys: u64) -> f64 {
        match self {
            Self::Bloom { bits, k } => fill::slice(bits / u64::from(k), keys).powi(k as i32),
            Self::Blocks { blocks, block_bits, parts } => fill::blocks(blocks, block_bits, parts, keys),
        }
    }
}

/// Everything that determines the size and the error of a guarded-epoch filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Full epochs kept: the window is r epochs. The filter has r + 1 segments, one of them the guard.
    pub r: u32,
    /// Each of the r + 1 segments.
    pub segment: Segment,
}

impl Shape {
    /// A shape whose parameters are in range: r at least 1, at most [`MAX_SLICES`] segments, at most [`MAX_BYTES`]
    /// bytes.
    pub fn new(r: u32, segment: Segment) -> Result<Self, Error> {
        if !(1..MAX_SLICES).contains(&r) {
            return Err(Error::value(format!("r must lie in 1..={}, got {r}", MAX_SLICES - 1)));
        }
        match segment {
            Segment::Bloom { bits, k } => {
                if !(1..=MAX_PARTS).contains(&k) {
                    return Err(Error::value(format!("k must lie in 1..={MAX_PARTS}, got {k}")));
                }
                if bits < k.into() {
                    return Err(Error::value(format!("segment_bits must be at least k={k}, got {bits}")));
                }
            }
            Segment::Blocks { blocks, block_bits, parts } => check_blocks(blocks, block_bits, parts)?,
        }
        let shape = Self { r, segment };
        if shape.nbytes() > MAX_BYTES {
            return Err(Error::value(format!("{} segments of {segment:?} are more than 2**60 bytes", r + 1)));
        }
        Ok(shape)
    }

    /// The shape of these parameters: with k plain, else of blocks.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let segment = match parameters.get("k") {
            Some(_) => Segment::Bloom { bits: parameters.wide("segment_bits")?, k: parameters.narrow("k")? },
            None => Segment::Blocks {
                blocks: parameters.wide("blocks")?,
                block_bits: parameters.narrow("block_bits")?,
                parts: parameters.narrow("parts")?,
            },
        };
        Self::new(parameters.narrow("r")?, segment)
    }

    /// Bytes of all r + 1 segments, each of whole words.
    pub fn nbytes(&self) -> u64 {
        self.segment.words().saturating_mul(8 * u64::from(self.r + 1))
    }

    /// Bits of memory per key of a window of `keys` keys.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.nbytes() as f64 / keys as f64
    }

    /// Probability that a key never inserted is reported present at the end of an epoch, when all r + 1 segments hold
    /// `keys_per_epoch` distinct keys: the worst phase. Averaged over the phase it is about a tenth lower at r = 8 and
    /// k = 8 (erratum GEBF-3).
    ///
    /// 1 - (1 - p)^(r + 1) with p of [`Segment::match_rate`] (paper 2, proposition 2). Segments hold different keys,
    /// so for a fresh key they match independently, and the product is exact whether they share positions or not.
    pub fn false_positive_rate(&self, keys_per_epoch: u64) -> f64 {
        let rate = -(f64::from(self.r + 1) * (-self.segment.match_rate(keys_per_epoch)).ln_1p()).exp_m1();
        fill::or_same_hash(rate, self.keys_remembered(keys_per_epoch))
    }

    /// Keys that have left some trace, at the most.
    fn keys_remembered(&self, keys_per_epoch: u64) -> u64 {
        keys_per_epoch.saturating_mul(u64::from(self.r + 1))
    }
}

impl super::Shape for Shape {
    fn family(&self) -> &'static str {
        "guarded-epoch"
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (k, segment_bits, blocks, block_bits, parts) = match self.segment {
            Segment::Bloom { bits, k } => (k, bits, 0, 0, 0),
            Segment::Blocks { blocks, block_bits, parts } => (0, 0, blocks, block_bits, parts),
        };
        vec![
            ("r", self.r.into()),
            ("k", k.into()),
            ("segment_bits", segment_bits),
            ("blocks", blocks),
            ("block_bits", block_bits.into()),
            ("parts", parts.into()),
        ]
    }

    fn kept(&self) -> u32 {
        self.r
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(window.keys_per_generation(self.r))
    }

    fn slack(&self, window: Window) -> u64 {
        window.slack(self.r, 1)
    }

    fn npws(&self, window: Window) -> f64 {
        window.npws(self.r, 1.0)
    }

    /// One in each blocked segment. In a plain one each part has a line of its own, and a query reads them four by four
    /// until one is not set ([`Parts`](crate::layout::cells::Parts)).
    fn cache_lines(&self, window: Window) -> CacheLines {
        let segments = f64::from(self.r + 1);
        let Segment::Bloom { k, .. } = self.segment else {
            return CacheLines { insert: 1.0, hit: segments, miss: segments };
        };
        let fill = self.segment.match_rate(window.keys_per_generation(self.r)).powf(1.0 / f64::from(k));
        let four = |first: u32| fill.powi(first as i32) * f64::from((k - first).min(4));
        let until_zero: f64 = (0..k).step_by(4).map(four).sum();
        let hit = (segments - 1.0) * until_zero + f64::from(k);
        CacheLines { insert: k.into(), hit, miss: segments * until_zero }
    }
}
