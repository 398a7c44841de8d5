//! Counters of a few bits, in slices of which a key takes one each; many are decremented at once.

use std::ops::Range;

use crate::layout::cells::{SAMPLE, place};
use crate::memory::prefetch::Address;
use crate::shape::slices::Slices;

/// Cells of `BITS` bits, 1, 2, 4 or 8, low bits first, slice after slice without a gap.
#[derive(Clone, Copy)]
pub struct CounterSlices<const BITS: u32> {
    /// How many there are.
    pub slices: Slices,
}

impl<const BITS: u32> CounterSlices<BITS> {
    /// What a cell can hold at most.
    pub const MAX: u64 = (1 << BITS) - 1;
    const PER_WORD: u64 = 64 / BITS as u64;

    /// The cells of a key, by number.
    #[inline(always)]
    pub fn of(&self, hash: u64) -> impl Iterator<Item = u64> + use<BITS> {
        let Slices { k, cells } = self.slices;
        (0..k as usize).map(move |slice| slice as u64 * cells + place(slice, hash, cells))
    }

    /// Starts fetching the cells of a key.
    #[inline(always)]
    pub fn fetch(&self, words: Address, hash: u64) {
        self.of(hash).for_each(|cell| words.fetch(Self::word(cell)));
    }

    /// The word that a cell lies in.
    #[inline(always)]
    pub fn word(cell: u64) -> usize {
        (cell / Self::PER_WORD) as usize
    }

    /// One in the place of a cell in its word.
    #[inline(always)]
    pub fn unit(cell: u64) -> u64 {
        1 << Self::shift(cell)
    }

    #[inline(always)]
    fn shift(cell: u64) -> u64 {
        cell % Self::PER_WORD * u64::from(BITS)
    }

    /// What a cell holds.
    #[inline(always)]
    pub fn value(words: &[u64], cell: u64) -> u64 {
        words[Self::word(cell)] >> Self::shift(cell) & Self::MAX
    }

    /// Whether no cell of a key is zero.
    #[inline(always)]
    pub fn holds(&self, words: &[u64], hash: u64) -> bool {
        self.of(hash).all(|cell| Self::value(words, cell) != 0)
    }

    /// Takes one from each of `count` cells from number `first` on that is not zero, a word at a time.
    pub fn decrement(words: &mut [u64], first: u64, count: u64) {
        let (mut cell, end) = (first, first + count);
        while cell < end {
            let within = cell % Self::PER_WORD;
            let here = (Self::PER_WORD - within).min(end - cell);
            let word = &mut words[Self::word(cell)];
            // The lowest bit of a cell comes to say whether any of its bits is set.
            let (mut any, mut covered) = (*word, 1);
            while covered < BITS {
                any |= any >> covered;
                covered *= 2;
            }
            let lowest = u64::MAX / Self::MAX;
            let touched = u64::MAX >> (64 - here * u64::from(BITS)) << (within * u64::from(BITS));
            *word -= any & lowest & touched;
            cell += here;
        }
    }

    /// Share of all cells that are not zero.
    pub fn fill(&self, words: &[u64]) -> f64 {
        let total = self.slices.total();
        (0..total).filter(|&cell| Self::value(words, cell) != 0).count() as f64 / total as f64
    }

    /// Chance that a fresh key finds none of its cells zero.
    pub fn match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, self.slices.cells)
    }

    /// The same from a [sample](SAMPLE) of cells, where there are more.
    pub fn sampled_match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, self.sampled())
    }

    /// How many cells of a sample hold each value.
    pub fn counts(&self, words: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; Self::MAX as usize + 1];
        for slice in 0..u64::from(self.slices.k) {
            self.first(slice, self.sampled()).for_each(|cell| counts[Self::value(words, cell) as usize] += 1);
        }
        counts
    }

    /// Cells of each slice that make a sample.
    fn sampled(&self) -> u64 {
        (SAMPLE / u64::from(self.slices.k)).min(self.slices.cells)
    }

    fn first(&self, slice: u64, cells: u64) -> Range<u64> {
        slice * self.slices.cells..slice * self.slices.cells + cells
    }

    fn rate_of_first(&self, words: &[u64], cells: u64) -> f64 {
        let taken = |slice| self.first(slice, cells).filter(|&cell| Self::value(words, cell) != 0).count();
        (0..u64::from(self.slices.k)).map(|slice| taken(slice) as f64 / cells as f64).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decremented_one_by_one<const BITS: u32>() {
        let start: Vec<u64> =
            (1..=4u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & i.wrapping_mul(!0 / 7)).collect();
        let total = 4 * 64 / u64::from(BITS);
        for first in 0..total {
            for count in 0..=total - first {
                let mut words = start.clone();
                CounterSlices::<BITS>::decrement(&mut words, first, count);
                for cell in 0..total {
                    let before = CounterSlices::<BITS>::value(&start, cell);
                    let taken = u64::from((first..first + count).contains(&cell));
                    assert_eq!(
                        CounterSlices::<BITS>::value(&words, cell),
                        before.saturating_sub(taken),
                        "{first} {count} {cell}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_range_is_decremented_like_its_cells() {
        decremented_one_by_one::<1>();
        decremented_one_by_one::<2>();
        decremented_one_by_one::<4>();
        decremented_one_by_one::<8>();
    }
}
