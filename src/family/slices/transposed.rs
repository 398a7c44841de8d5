//! Guarded epochs transposed: the bits that all epochs have at one position lie side by side in one cell
//! ([`layout::transposed`](super::planes)). Nothing is blocked: rate and bits per key are those of plain
//! segments, but r + 1 must divide 64, the bits of a word.
//!
//! Epochs share the positions of a key, as in the paper, while separate segments have positions of their own:
//! - For a fresh key of a stream without repeats this makes no difference to the rate: epochs then contain different
//!   keys, whose bits fall independently, and a key has one bit in each part.
//! - A key that lies in several epochs has the same bits in all of them. A fresh key that collides with them does so in
//!   all at once: it is reported less often than the rate, but a match of it looks like several independent ones. The
//!   likelihood of a match vector treats them as such. That shows only if keys repeat and bits are few: for a window of
//!   7000 of 7000 keys, all as frequent, posteriors are off by 0.018 in the mean at 6 bits per key of the window (0.001
//!   with positions of their own), and by 0.001 from 10 bits on, either way.

use super::shape::{self, MAX_PARTS, Segment, choose_plain_epochs};
use crate::Error;
use crate::clock::Window;
use crate::family::{Budget, CacheLines, Parameters};

/// The r with which r + 1 bits are an even share of a word.
pub const EPOCHS: [u32; 4] = [7, 15, 31, 63];

/// The shape of a transposed guarded-epoch filter: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transposed {
    /// r: number of full epochs retained.
    pub r: u32,
    /// k: number of positions of a key, one in each of k parts.
    pub k: u32,
    /// Number of positions, of r + 1 bits: each corresponds to a bit of a plain segment.
    pub positions: u64,
}

impl Transposed {
    /// Creates a shape whose parameters are in range: r one of [`EPOCHS`].
    pub fn new(r: u32, k: u32, positions: u64) -> Result<Self, Error> {
        if !EPOCHS.contains(&r) {
            return Err(Error::value(format!("r must be 7, 15, 31 or 63 in the transposed layout, got {r}")));
        }
        if positions < k.into() && k <= MAX_PARTS {
            return Err(Error::value(format!("positions must be at least k={k}, got {positions}")));
        }
        let shape = Self { r, k, positions };
        shape::RingShape::guarded_epoch(r, shape.segments().segment).map(|_| shape)
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(parameters.read_u32("r")?, parameters.read_u32("k")?, parameters.read_u64("positions")?)
    }

    /// Returns plain segments of the same sizes and rates.
    pub fn segments(&self) -> shape::RingShape {
        let segment = Segment::Bits { bits: self.positions, parts: self.k };
        shape::RingShape { paper: shape::Paper::GuardedEpoch, k: 1, l: self.r, segment }
    }
}

/// Returns the shape for a window and a budget: [`choose`](shape::choose) with the r that this layout has. For a window
/// of a million keys at 1 % and 0.1 % the result is r = 7, k = 10 at 15.9 bits per key and k = 13 at 21.4.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>) -> Result<Transposed, Error> {
    match choose_plain_epochs(&EPOCHS, window, budget, slack)? {
        shape::RingShape { l: r, segment: Segment::Bits { bits: positions, parts: k }, .. } => {
            Ok(Transposed { r, k, positions })
        }
        shape => unreachable!("{shape:?} has blocks, which were not requested"),
    }
}

impl crate::family::Shape for Transposed {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("r", self.r.into()), ("k", self.k.into()), ("positions", self.positions)]
    }

    fn retained(&self) -> u32 {
        self.r
    }

    fn bytes(&self, window: Window) -> u64 {
        self.segments().bytes(window)
    }

    fn fpr(&self, window: Window) -> f64 {
        self.segments().fpr(window)
    }

    fn slack(&self, window: Window) -> u64 {
        self.segments().slack(window)
    }

    fn npws(&self, window: Window) -> f64 {
        self.segments().npws(window)
    }

    /// Returns one line for each of its cells, which all epochs share.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.k)
    }
}
