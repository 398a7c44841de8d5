//! The age-partitioned Bloom filter (paper 1: Shtul, Baquero, Almeida, *Age-Partitioned Bloom Filters*, 2020) and
//! guarded epochs (paper 2: Alpay, Sarıoğlu, *Guarded Epoch Bloom Filters for Sliding-Window Membership*, 2026), plain
//! and blocked: their costs and promises.
//!
//! k + l segments lie in a ring. An insertion writes the k newest; a new generation clears the oldest segment and makes
//! it the newest. A key is there when k consecutive segments, counted by age, have its bits. Paper 1 calls them slices,
//! and a key has one bit in each. In guarded epochs k is 1 and l is called r: each segment is a Bloom filter of its
//! own, r epochs cover the window, and the segment that is filling is the guard. In the blocked variants (paper 1,
//! section 6) the key chooses one block of a segment and sets one bit in each of the block's parts.
//!
//! Where this differs from both papers:
//! - A generation ends when the insertion that needs the next one arrives, so the last l * g + 1 insertions are always
//!   there, and g = ceil((W - 1) / l) keeps the promise, where paper 2 has ceil(W / r) (erratum GEBF-2). Paper 1's l *
//!   g differs by one at most.
//! - Positions are not made by double hashing, whose floor of errors lies too high: see
//!   [`cells`](crate::family::arrays).
//!
//! Where it differs from paper 1:
//! - Queries read all slices and search the match vector for a run, where Algorithm 1 stops early: its savings in reads
//!   are less than the cost of mispredicted branches, as long as the lines are prefetched.
//!
//! Where it differs from paper 2:
//! - The last r * epoch + 1 to (r + 1) * epoch insertions are retained, so a key stays beyond the window for at most (r
//!   + 1) * epoch - W, which is more than the one epoch of proposition 1 when r does not divide W - 1 (erratum GEBF-1).
//! - A plain segment has one part per bit of a key, which makes its rate exact: see
//!   [`BitsInParts`](crate::family::arrays::BitsInParts).
//! - A key has positions of its own in every segment, where the paper tests the same ones everywhere. For a fresh key
//!   of a stream without repeats both report equally often: segments then contain different keys, and with one bit in
//!   each part match independently for any positions. (In the paper's segments a key whose positions coincide is an
//!   easy match everywhere.) They differ if one key lies in several segments. Shared positions set the same bits in
//!   each, so a fresh key that matches one by colliding with that key matches all: fewer reports, but matches that are
//!   one piece of evidence and look like several. With positions of their own the segments are independent given what
//!   was inserted when, and the likelihood of a match vector is a product over them. The rate promised, for keys
//!   without repeats, is the highest either way.

mod choose;
mod segment;

pub(crate) use choose::rings_within_slack;
pub use choose::{choose, choose_plain_epochs};
pub use segment::Segment;

use crate::Error;
use crate::clock::Window;
use crate::family::budget::MAX_BYTES;
use crate::family::{Accesses, CacheLines, Parameters, fill, runs};
use crate::inference::MAX_SLICES;

/// Greatest number of bits of a key in a plain segment. Rates that need more lie below the collisions of 64-bit hashes.
pub const MAX_PARTS: u32 = 64;

/// The paper of a filter: it determines the names of the parameters, and what is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// k segments are written and l retained.
    AgePartitioned,
    /// One segment is written and r retained.
    GuardedEpoch,
}

/// The shape of a ring: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// The paper of the filter.
    pub paper: Paper,
    /// k: number of consecutive segments that must match; a key is inserted into the k newest. 1 in guarded epochs.
    pub k: u32,
    /// l: number of full generations retained: the window is l generations. r of paper 2.
    pub l: u32,
    /// The shape of each of the k + l segments.
    pub segment: Segment,
}

impl RingShape {
    /// Creates a shape of paper 1 whose parameters are in range: k and l at least 1, at most [`MAX_SLICES`] slices of
    /// one part or of blocks, at most [`MAX_BYTES`] bytes.
    pub fn age_partitioned(k: u32, l: u32, segment: Segment) -> Result<Self, Error> {
        check_slices(k, l)?;
        match segment {
            Segment::Bits { bits: 0, .. } => return Err(Error::value("slice_bits must be at least 1, got 0")),
            Segment::Bits { parts: 2.., .. } => return Err(Error::value("a key sets one bit in a slice")),
            _ => segment.check_blocks()?,
        }
        Self { paper: Paper::AgePartitioned, k, l, segment }.within_memory()
    }

    /// Creates a shape of paper 2 whose parameters are in range: r at least 1, at most [`MAX_SLICES`] segments, at most
    /// [`MAX_BYTES`] bytes.
    pub fn guarded_epoch(r: u32, segment: Segment) -> Result<Self, Error> {
        if !(1..MAX_SLICES).contains(&r) {
            return Err(Error::value(format!("r must lie in 1..={}, got {r}", MAX_SLICES - 1)));
        }
        match segment {
            Segment::Bits { parts, .. } if !(1..=MAX_PARTS).contains(&parts) => {
                return Err(Error::value(format!("k must lie in 1..={MAX_PARTS}, got {parts}")));
            }
            Segment::Bits { bits, parts } if bits < parts.into() => {
                return Err(Error::value(format!("segment_bits must be at least k={parts}, got {bits}")));
            }
            _ => segment.check_blocks()?,
        }
        Self { paper: Paper::GuardedEpoch, k: 1, l: r, segment }.within_memory()
    }

    /// Reads an age-partitioned shape from parameters: with `slice_bits` plain, else of blocks.
    pub fn read_age_partitioned(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let segment = match parameters.get("slice_bits") {
            Some(bits) => Segment::Bits { bits, parts: 1 },
            None => Segment::read_blocks(parameters)?,
        };
        Self::age_partitioned(parameters.read_u32("k")?, parameters.read_u32("l")?, segment)
    }

    /// Reads guarded epochs from parameters: with `k` plain, else of blocks.
    pub fn read_guarded_epoch(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let segment = match parameters.get("k") {
            Some(_) => Segment::Bits { bits: parameters.read_u64("segment_bits")?, parts: parameters.read_u32("k")? },
            None => Segment::read_blocks(parameters)?,
        };
        Self::guarded_epoch(parameters.read_u32("r")?, segment)
    }

    fn within_memory(self) -> Result<Self, Error> {
        if self.nbytes() > MAX_BYTES {
            let segments = self.k + self.l;
            return Err(Error::value(format!("{segments} segments of {:?} are more than 2**60 bytes", self.segment)));
        }
        Ok(self)
    }

    /// Returns the bytes of all k + l segments, each of whole words.
    pub fn nbytes(&self) -> u64 {
        self.segment.words().saturating_mul(8 * u64::from(self.k + self.l))
    }

    /// Returns the chance that a fresh key matches each segment, the newest first, once k + l generations have passed.
    ///
    /// Segment i < k holds i full generations and the current one, the others k full generations (paper 1, section
    /// 5.1), exactly: the paper's linear gradient (i + 1)/(2k) is too low (errata APBF-1, APBF-9). With
    /// `keys_in_current` equal to `keys_per_generation` this is the worst phase, just before a shift.
    pub fn fills(&self, keys_per_generation: u64, keys_in_current: u64) -> Vec<f64> {
        let full = self.segment.match_rate(self.keys_when_full(keys_per_generation));
        let filling = (0..u64::from(self.k))
            .map(|i| self.segment.match_rate(keys_per_generation.saturating_mul(i).saturating_add(keys_in_current)));
        filling.chain((0..self.l).map(|_| full)).collect()
    }

    /// Returns the probability that a key never inserted is reported, just before a rotation: the worst phase.
    ///
    /// With k = 1 all segments are then equally full, and it is 1 - (1 - p)^(r + 1) (paper 2, proposition 2). Averaged
    /// over the phase it is about a tenth lower at r = 8 and 8 bits a key (erratum GEBF-3).
    pub fn false_positive_rate(&self, keys_per_generation: u64) -> f64 {
        let rate = match self.k {
            1 => runs::of_one(self.l + 1, self.segment.match_rate(keys_per_generation)),
            k => runs::false_positive_rate(k, &self.worst_fills(keys_per_generation)),
        };
        fill::or_same_hash(rate, self.keys_remembered(keys_per_generation))
    }

    /// Returns the most keys that have left some trace.
    fn keys_remembered(&self, keys_per_generation: u64) -> u64 {
        keys_per_generation.saturating_mul(u64::from(self.k + self.l))
    }

    fn worst_fills(&self, keys_per_generation: u64) -> Vec<f64> {
        self.fills(keys_per_generation, keys_per_generation)
    }

    fn keys_when_full(&self, keys_per_generation: u64) -> u64 {
        keys_per_generation.saturating_mul(u64::from(self.k))
    }
}

/// Rejects k slices written and l generations retained that are out of range.
pub(crate) fn check_slices(k: u32, l: u32) -> Result<(), Error> {
    if k == 0 {
        return Err(Error::value("k must be at least 1, got 0"));
    }
    if l == 0 {
        return Err(Error::value("l must be at least 1, got 0"));
    }
    if k.saturating_add(l) > MAX_SLICES {
        return Err(Error::value(format!("k + l must be at most {MAX_SLICES}, got k={k}, l={l}")));
    }
    Ok(())
}

impl crate::family::Shape for RingShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (bits, parts) = match self.segment {
            Segment::Bits { bits, parts } => (bits, parts),
            Segment::Blocks { .. } => (0, 0),
        };
        let sizes = match self.paper {
            Paper::AgePartitioned => [("k", self.k.into()), ("l", self.l.into()), ("slice_bits", bits)],
            Paper::GuardedEpoch => [("r", self.l.into()), ("k", parts.into()), ("segment_bits", bits)],
        };
        [sizes, self.segment.parameters_of_blocks()].concat()
    }

    fn retained(&self) -> u32 {
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
        let fills = self.worst_fills(window.keys_per_generation(self.l));
        window.npws(self.l, f64::from(self.l) * runs::npws(self.k, self.l, &fills))
    }

    /// Returns the accesses of Algorithm 1; the engine reads all slices at once instead, see
    /// [`cache_lines`](Self::cache_lines).
    fn accesses(&self, window: Window) -> Option<Accesses> {
        let keys = window.keys_per_generation(self.l);
        let accesses = || runs::expected_accesses(self.k, self.l, &self.worst_fills(keys));
        (self.paper == Paper::AgePartitioned).then(accesses)
    }

    /// Returns one line in each slice or blocked segment: queries read all of them. In a plain segment each part has a
    /// line of its own, and a query reads them in fours until one is not set
    /// ([`BitsInParts`](crate::family::arrays::BitsInParts)).
    fn cache_lines(&self, window: Window) -> CacheLines {
        let (insert, all) = (f64::from(self.k), f64::from(self.k + self.l));
        let Segment::Bits { parts: parts @ 2.., .. } = self.segment else {
            return CacheLines { insert, hit: all, miss: all };
        };
        let parts = f64::from(parts);
        let fill = self.segment.match_rate(window.keys_per_generation(self.l)).powf(1.0 / parts);
        let four = |first: i32| fill.powi(first) * (parts - f64::from(first)).min(4.0);
        let until_zero: f64 = (0..parts as i32).step_by(4).map(four).sum();
        CacheLines { insert: insert * parts, hit: (all - 1.0) * until_zero + parts, miss: all * until_zero }
    }
}
