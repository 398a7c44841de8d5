//! k slices: a key takes one cell in each, and is reported if all of its cells are taken.
//!
//! The slices have independent hashes, so given the keys they match independently, and the expectation of a product of
//! fills is the product of the expected ones: the rates here are exact. (In one array for all k hashes the expectation
//! of the k-th power of the fill is a little above the power of its expectation, and has no closed form.)

use super::budget::{check_rate, too_much_memory};
use super::fill;
use super::search::{self, Candidate};
use crate::Error;
use crate::inference::MAX_SLICES;

/// Greatest number of cells of all slices: far above any machine, far enough below 2^64 that no size can overflow.
const MAX_CELLS: u64 = 1 << 60;

/// Rates below the chance that two of 2^64 hashes are equal, where no number of slices helps.
pub const HASH_COLLISION: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// How many slices there are, and of how many cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Slices, and cells of a key.
    pub k: u32,
    /// Cells of each slice.
    pub cells: u64,
}

impl Slices {
    /// Creates at least one slice of one cell, at most [`MAX_SLICES`] slices of 2^60 cells together.
    pub fn new(k: u32, cells: u64) -> Result<Self, Error> {
        if !(1..=MAX_SLICES).contains(&k) {
            return Err(Error::value(format!("k must lie in 1 .. {MAX_SLICES}, got {k}")));
        }
        if cells == 0 {
            return Err(Error::value("slice_cells must be at least 1, got 0"));
        }
        if cells > MAX_CELLS / u64::from(k) {
            return Err(Error::value(format!("k * slice_cells must be at most 2**60, got k={k}, slice_cells={cells}")));
        }
        Ok(Self { k, cells })
    }

    /// Returns the number of cells of all slices.
    pub fn total(&self) -> u64 {
        u64::from(self.k) * self.cells
    }

    /// Returns the number of 64-bit words of all cells, of `bits` bits each.
    pub fn words(&self, bits: u32) -> u64 {
        (self.total() * u64::from(bits)).div_ceil(64)
    }

    /// Returns the chance that a fresh key is reported when the slices hold `keys` distinct keys: (1 - (1 - 1/m)^n)^k
    /// (paper 1, section 4.1, for slices of m cells).
    pub fn false_positive_rate(&self, keys: u64) -> f64 {
        fill::slice(self.cells, keys).powi(self.k as i32)
    }

    /// Returns the expected cells read by a query that finds a free one and stops there, with slices filled to `fill`.
    pub fn read_until_free(&self, fill: f64) -> f64 {
        let (mut reached, mut read) = (1.0, 0.0); // the chance of reading the next cell; the reads that find a free one
        for cell in 1..=self.k {
            read += f64::from(cell) * reached * (1.0 - fill);
            reached *= fill;
        }
        read / (1.0 - reached)
    }

    /// Returns the slices that hold `keys` at a rate of at most `fpr`. Each k gets the fewest cells that do. Of those
    /// at most 1.25 times as many as the fewest, the smallest k is chosen, since every slice costs a line of memory.
    pub fn for_rate(keys: u64, fpr: f64) -> Result<Self, Error> {
        check_rate(fpr)?;
        search::for_rate(&candidates(keys), fpr, MAX_CELLS, |least| least + least / 4)
            .ok_or_else(|| too_much_memory(fpr, "2**60 cells"))
    }

    /// Returns the slices of at most `cells` cells, at least 1, that hold `keys`: of those with at most twice the least
    /// rate (or 2^-63, if that is more) the ones of the smallest k.
    pub fn for_cells(keys: u64, cells: u64) -> Self {
        let near = |least: f64| 2.0 * least.max(HASH_COLLISION);
        search::for_memory(&candidates(keys), cells, near).expect("a slice of one cell fits")
    }
}

/// k slices, without a number of cells.
struct OfKey {
    k: u32,
    /// Keys that they hold.
    keys: u64,
}

fn candidates(keys: u64) -> Vec<OfKey> {
    (1..=MAX_SLICES).map(|k| OfKey { k, keys }).collect()
}

impl Candidate for OfKey {
    type Shape = Slices;

    fn rank(&self) -> u32 {
        self.k
    }

    fn shape(&self, cells: u64) -> Slices {
        Slices { k: self.k, cells }
    }

    fn memory_of_unit(&self) -> u64 {
        self.k.into()
    }

    fn rate_at_most(&self, shape: &Slices, limit: f64) -> Option<f64> {
        Some(shape.false_positive_rate(self.keys)).filter(|&rate| rate <= limit)
    }
}
