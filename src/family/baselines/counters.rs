//! Counters of a few bits in slices. A key has one counter in each slice.

use std::ops::Range;

use crate::family::arrays::{SAMPLE, place};
use crate::family::slice_sizes::Slices;
use crate::memory::lanes::Lanes;
use crate::memory::prefetch::Address;

/// Counters of 1, 2, 4 or 8 bits, so that words have no gap, slice after slice.
#[derive(Clone, Copy)]
pub struct CounterSlices {
    /// The number and size of the slices.
    pub slices: Slices,
    /// How a word is divided into counters.
    pub lanes: Lanes,
}

impl CounterSlices {
    /// Returns slices of counters of `bits` bits.
    pub fn new(slices: Slices, bits: u32) -> Self {
        Self { slices, lanes: Lanes::new(bits) }
    }

    /// Returns the numbers of the cells of a key.
    #[inline(always)]
    pub fn of(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let Slices { k, cells } = self.slices;
        (0..k as usize).map(move |slice| slice as u64 * cells + place(slice, hash, cells))
    }

    /// Returns the word of each cell of a key, and the shift in it.
    #[inline(always)]
    pub fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u32)> + use<> {
        let lanes = self.lanes;
        self.of(hash).map(move |cell| lanes.at(cell))
    }

    /// Prefetches the cells of a key.
    #[inline(always)]
    pub fn fetch(&self, words: Address, hash: u64) {
        self.places(hash).for_each(|(word, _)| words.fetch(word));
    }

    /// Returns the value of each cell of a key.
    #[inline(always)]
    pub fn values(&self, words: &[u64], hash: u64) -> impl Iterator<Item = u64> {
        self.places(hash).map(|(word, shift)| self.lanes.get(words[word], shift))
    }

    /// Returns whether no cell of a key is zero.
    #[inline(always)]
    pub fn contains(&self, words: &[u64], hash: u64) -> bool {
        self.values(words, hash).all(|value| value != 0)
    }

    /// Returns the value of a cell.
    #[inline(always)]
    pub fn value(&self, words: &[u64], cell: u64) -> u64 {
        let (word, shift) = self.lanes.at(cell);
        self.lanes.get(words[word], shift)
    }

    /// Returns the share of all cells that are not zero.
    pub fn fill(&self, words: &[u64]) -> f64 {
        let total = self.slices.total();
        (0..total).filter(|&cell| self.value(words, cell) != 0).count() as f64 / total as f64
    }

    /// Returns the chance that a fresh key finds none of its cells zero.
    pub fn match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, self.slices.cells)
    }

    /// Returns the [match rate](Self::match_rate) of a [sample](SAMPLE) of the cells, if there are more.
    pub fn sampled_match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, self.sampled())
    }

    /// Returns how many cells of a sample have each value.
    pub fn counts(&self, words: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; self.lanes.most() as usize + 1];
        for slice in 0..u64::from(self.slices.k) {
            self.first(slice, self.sampled()).for_each(|cell| counts[self.value(words, cell) as usize] += 1);
        }
        counts
    }

    /// Returns the number of cells of each slice in a sample.
    fn sampled(&self) -> u64 {
        (SAMPLE / u64::from(self.slices.k)).min(self.slices.cells)
    }

    /// Returns the first cells of a slice.
    fn first(&self, slice: u64, cells: u64) -> Range<u64> {
        slice * self.slices.cells..slice * self.slices.cells + cells
    }

    /// Returns the match rate of the first cells of each slice.
    fn rate_of_first(&self, words: &[u64], cells: u64) -> f64 {
        let set = |slice| self.first(slice, cells).filter(|&cell| self.value(words, cell) != 0).count();
        (0..u64::from(self.slices.k)).map(|slice| set(slice) as f64 / cells as f64).product()
    }
}
