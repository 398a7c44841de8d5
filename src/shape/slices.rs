//! k slices of which a key takes one cell each, and is reported when all of its cells are taken.
//!
//! The slices have independent hashes, so given the keys they match independently, and the expectation of a product of
//! fills is the product of the expected ones: the rates here are exact. (In one array for all k hashes the expectation
//! of the k-th power of the fill is a little above the power of its expectation, and has no closed form.)

use super::age_partitioned::MAX_SLICES;
use super::budget::{check_rate, too_much_memory};
use super::fill;
use super::search::{self, Candidate};
use crate::Error;

/// Most cells of all slices together: far above any machine, far enough below 2^64 that no size can overflow.
const MAX_CELLS: u64 = 1 << 60;

/// Rates below the chance that two of 2^64 hashes are equal, where no number of slices helps.
const HASH_COLLISION: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// How many slices there are, and of how many cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Slices, and cells of a key.
    pub k: u32,
    /// Cells of each slice.
    pub cells: u64,
}

impl Slices {
    /// At least one slice of one cell, at most [`MAX_SLICES`] of 2^60 cells together.
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

    /// Cells of all slices.
    pub fn total(&self) -> u64 {
        u64::from(self.k) * self.cells
    }

    /// 64-bit words of all cells, of so many bits each.
    pub fn words(&self, bits: u32) -> u64 {
        (self.total() * u64::from(bits)).div_ceil(64)
    }

    /// Chance that a fresh key is reported when `keys` distinct keys are held: (1 - (1 - 1/m)^n)^k (paper 1, section
    /// 4.1, for slices of m cells).
    pub fn false_positive_rate(&self, keys: u64) -> f64 {
        fill::slice(self.cells, keys).powi(self.k as i32)
    }

    /// Cells read by a query that stops at the first that is free, and finds one, with slices filled to `fill`.
    pub fn read_until_free(&self, fill: f64) -> f64 {
        let (mut reached, mut read) = (1.0, 0.0); // the chance of reading the next cell; the reads that find a free one
        for cell in 1..=self.k {
            read += f64::from(cell) * reached * (1.0 - fill);
            reached *= fill;
        }
        read / (1.0 - reached)
    }

    /// The slices that hold `keys` at a rate of at most `fpr`: each k gets the fewest cells that do; of those at most
    /// 1.25 times as many as the fewest of all the smallest k, since every slice costs a line of memory.
    pub fn for_rate(keys: u64, fpr: f64) -> Result<Self, Error> {
        check_rate(fpr)?;
        search::for_rate(&candidates(keys), fpr, MAX_CELLS, |least| least + least / 4)
            .ok_or_else(|| too_much_memory(fpr, "2**60 cells"))
    }

    /// The slices of at most `cells` cells, at least 1, that hold `keys`: of those with at most twice the least rate
    /// (or 2^-63, if that is more) the smallest k.
    pub fn for_cells(keys: u64, cells: u64) -> Self {
        let near = |least: f64| 2.0 * least.max(HASH_COLLISION);
        search::for_memory(&candidates(keys), cells, near).expect("a slice of one cell fits")
    }
}

/// k slices but for their cells.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way that keys can fall into small slices, each equally likely.
    #[test]
    fn rate_and_accesses_are_those_of_all_ways_to_fall() {
        for (k, cells, keys) in [(1, 2, 3), (2, 3, 2), (3, 2, 2), (2, 2, 4)] {
            let slices = Slices::new(k, cells).unwrap();
            // One slice: the shares of ways in which the fresh key's cell, number 0, is taken.
            let ways = cells.pow(keys);
            let taken = (0..ways).filter(|way| (0..keys).any(|i| way / cells.pow(i) % cells == 0)).count();
            let fill = taken as f64 / ways as f64;
            assert!((slices.false_positive_rate(keys.into()) - fill.powi(k as i32)).abs() < 1e-15);

            let (mut absent, mut read) = (0.0, 0.0);
            for free in 0..(1u32 << k) - 1 {
                let chance: f64 = (0..k).map(|i| if free >> i & 1 == 1 { fill } else { 1.0 - fill }).product();
                absent += chance;
                read += chance * f64::from(free.trailing_ones() + 1);
            }
            assert!((slices.read_until_free(fill) - read / absent).abs() < 1e-12);
        }
    }

    #[test]
    fn the_choices_are_those_that_trying_everything_gives() {
        for (keys, fpr) in [(1, 0.5), (7, 0.1), (100, 0.01)] {
            let holds = |s: &Slices| s.false_positive_rate(keys) <= fpr;
            let each: Vec<Slices> =
                (1..=40).filter_map(|k| (1..20_000).map(|cells| Slices { k, cells }).find(holds)).collect();
            let least = each.iter().map(Slices::total).min().unwrap();
            let best = each.iter().find(|s| 4 * s.total() <= 5 * least).unwrap();
            assert_eq!(Slices::for_rate(keys, fpr).unwrap(), *best);
        }
        for (keys, cells) in [(1, 1), (10, 7), (100, 1000), (1, 5000)] {
            let each: Vec<Slices> = (1..=cells.min(128)).map(|k| Slices { k: k as u32, cells: cells / k }).collect();
            let rate = |s: &Slices| s.false_positive_rate(keys);
            let least = each.iter().map(rate).fold(1.0, f64::min).max(HASH_COLLISION);
            assert_eq!(Slices::for_cells(keys, cells), *each.iter().find(|s| rate(s) <= 2.0 * least).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        for (k, cells, words) in [(0, 1, "k must lie in 1 .. 128, got 0"), (129, 1, "got 129"), (2, 0, "slice_cells")] {
            assert!(Slices::new(k, cells).unwrap_err().to_string().contains(words));
        }
        assert!(Slices::new(2, (1 << 59) + 1).unwrap_err().to_string().contains("2**60"));
        assert!(Slices::new(2, 1 << 59).is_ok());
        for fpr in [0.0, 1.0, f64::NAN] {
            assert!(Slices::for_rate(10, fpr).unwrap_err().to_string().contains("fpr must lie between 0 and 1"));
        }
        assert!(Slices::for_rate(1 << 62, 0.1).unwrap_err().to_string().contains("more than 2**60 cells"));
    }
}
