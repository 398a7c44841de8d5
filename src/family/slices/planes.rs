//! The layout of the transposed guarded-epoch Bloom filter: the bits of all epochs at one position, side by side in one
//! cell.
//!
//! A cell of r + 1 bits, 8 to 64, has one bit of each epoch, and a key has k cells, one in each of k parts. An
//! insertion sets the open epoch's bit in them. A query computes their AND, the match vector: a bit for every epoch
//! that has all bits of the key. A query reads k cells; with separate segments it would read up to (r + 1) * k. A new
//! epoch clears one bit of every cell, in one pass over the memory.

use crate::clock::Clock;
use crate::family::arrays::{SAMPLE, place_in_part};
use crate::family::{Layout, runs};
use crate::inference::ring::RingLikelihood;
use crate::inference::{Evidence, Likelihood, Question};
use crate::memory::bits::ones;
use crate::memory::prefetch::Address;
use std::ops::Range;

/// The layout of cells of `EPOCHS` bits, one for every position; as many to a 64-bit word as fit.
#[derive(Clone, Copy)]
pub struct Planes<const EPOCHS: usize> {
    k: u32,
    /// The number of positions in each of the k parts.
    part: u64,
}

/// Which bit of every cell is the open epoch's, and which bits are retained at the moment of a query.
#[derive(Clone, Copy)]
pub struct PlaneRotation {
    newest: u32,
    retained: u64,
}

impl<const EPOCHS: usize> Planes<EPOCHS> {
    const CELLS: u64 = 64 / EPOCHS as u64;
    const CELL: u64 = u64::MAX >> (64 - EPOCHS);
    /// The lowest bit of every cell of a word.
    const LOWEST: u64 = u64::MAX / Self::CELL;

    /// Returns cells at `positions` positions; a key has `k` of them.
    pub(crate) fn new(k: u32, positions: u64) -> Self {
        Self { k, part: positions / u64::from(k) }
    }

    /// Returns the word of each cell of a key, and the shift of the cell in it.
    #[inline(always)]
    fn cells(self, hash: u64) -> impl Iterator<Item = (usize, u64)> {
        (0..self.k).map(move |part| {
            let position = u64::from(part) * self.part + place_in_part(part, hash, self.part);
            ((position / Self::CELLS) as usize, position % Self::CELLS * EPOCHS as u64)
        })
    }

    /// Prefetches the cells of a key.
    #[inline(always)]
    fn fetch(self, words: Address, hash: u64) {
        self.cells(hash).for_each(|(word, _)| words.fetch(word));
    }

    /// Returns the match vector by place, with undefined bits above those of a cell. Four in ten absent keys still have
    /// an epoch left after the first four cells, so a branch that stops early would be mispredicted.
    #[inline(always)]
    fn matches(self, words: &[u64], hash: u64) -> u64 {
        self.cells(hash).fold(u64::MAX, |all, (word, shift)| all & words[word] >> shift)
    }

    /// Returns in how many cells at these positions each bit is set, by place.
    fn ones(words: &[u64], positions: Range<u64>) -> [u64; EPOCHS] {
        let Range { start, end } = positions.start * EPOCHS as u64..positions.end * EPOCHS as u64;
        let (first, last) = ((start / 64) as usize, (end / 64) as usize);
        let mut ones = [0; EPOCHS];
        for (i, word) in words.iter().enumerate().take(end.div_ceil(64) as usize).skip(first) {
            let from = if i == first { u64::MAX << (start % 64) } else { u64::MAX };
            let below = if i == last { !(u64::MAX << (end % 64)) } else { u64::MAX };
            for (place, ones) in ones.iter_mut().enumerate() {
                *ones += u64::from((word & from & below & Self::LOWEST << place).count_ones());
            }
        }
        ones
    }

    /// Returns the chance that a fresh key matches, by age, from the first positions of every part.
    fn rates_of_first(self, words: &[u64], newest: u32, positions: u64) -> Vec<f64> {
        let mut rates = [1.0; EPOCHS];
        for start in (0..u64::from(self.k)).map(|part| part * self.part) {
            for (rate, ones) in rates.iter_mut().zip(Self::ones(words, start..start + positions)) {
                *rate *= ones as f64 / positions as f64;
            }
        }
        rates.rotate_left(newest as usize);
        rates.to_vec()
    }
}

impl<const EPOCHS: usize> Layout for Planes<EPOCHS> {
    type Rotation = PlaneRotation;

    fn sets_bits(&self) -> bool {
        true
    }

    fn generations(&self) -> u64 {
        EPOCHS as u64
    }

    /// Returns the rotation. Bit `(-generation) mod (r + 1)` is the open epoch's. The bits above it are older, and then
    /// those from bit 0 on.
    fn rotation(&self, generation: i64, pending: u64) -> PlaneRotation {
        let newest = (-i128::from(generation)).rem_euclid(EPOCHS as i128) as u32;
        let retained = ones((EPOCHS as u64).saturating_sub(pending) as u32) << newest;
        PlaneRotation { newest, retained: (retained | retained >> EPOCHS) as u64 & Self::CELL }
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], PlaneRotation { newest, .. }: PlaneRotation, hash: u64) {
        self.cells(hash).for_each(|(word, shift)| words[word] |= 1 << newest << shift);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], PlaneRotation { retained, .. }: PlaneRotation, hash: u64) -> bool {
        self.matches(words, hash) & retained != 0
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        let others = !(Self::LOWEST << self.rotation(generation, 0).newest);
        words.iter_mut().for_each(|word| *word &= others);
    }

    /// Returns the epochs that have all bits of a key, as evidence.
    #[inline(always)]
    fn evidence(&self, words: &[u64], PlaneRotation { newest, .. }: PlaneRotation, hash: u64) -> Evidence {
        let matches = u128::from(self.matches(words, hash) & Self::CELL);
        Evidence::generations((matches | matches << EPOCHS) >> newest & u128::from(Self::CELL))
    }

    fn fill(&self, words: &[u64], PlaneRotation { newest, .. }: PlaneRotation) -> Vec<f64> {
        let positions = u64::from(self.k) * self.part;
        let mut ones = Self::ones(words, 0..positions);
        ones.rotate_left(newest as usize);
        ones.map(|ones| ones as f64 / positions as f64).to_vec()
    }

    fn match_rates(&self, words: &[u64], PlaneRotation { newest, .. }: PlaneRotation) -> Vec<f64> {
        self.rates_of_first(words, newest, self.part)
    }

    /// Returns the rate as if epochs matched independently. Keys that lie in several epochs make it less.
    fn false_positive_rate(&self, words: &[u64], rotation: PlaneRotation) -> f64 {
        runs::false_positive_rate(1, &self.match_rates(words, rotation))
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let PlaneRotation { newest, .. } = self.rotation(clock.generation(), 0);
        let sample = (SAMPLE / u64::from(self.k)).min(self.part);
        Some(Box::new(RingLikelihood::of_clock(1, clock, &self.rates_of_first(words, newest, sample))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in which every bit of every cell is set in its own share of them.
    fn words() -> Vec<u64> {
        (0..40_u64)
            .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i + 9).wrapping_mul(0xbf58_476d_1ce4_e5b9))
            .collect()
    }

    fn bit<const EPOCHS: usize>(words: &[u64], position: u64, place: u64) -> u64 {
        let bit = position * EPOCHS as u64 + place;
        words[(bit / 64) as usize] >> (bit % 64) & 1
    }

    fn check_counts<const EPOCHS: usize>() {
        let words = words();
        let positions = 64 * words.len() as u64 / EPOCHS as u64;
        for start in 0..20.min(positions) {
            for end in (start..20.min(positions)).chain([positions - 1, positions]) {
                let each = |place| (start..end).map(|position| bit::<EPOCHS>(&words, position, place)).sum();
                let expected: [u64; EPOCHS] = std::array::from_fn(|place| each(place as u64));
                assert_eq!(Planes::<EPOCHS>::ones(&words, start..end), expected, "{EPOCHS} {start}..{end}");
            }
        }
    }

    #[test]
    fn counted_ones_equal_those_counted_bit_by_bit() {
        check_counts::<8>();
        check_counts::<16>();
        check_counts::<32>();
        check_counts::<64>();
    }

    fn check_opening<const EPOCHS: usize>() {
        let layout = Planes::<EPOCHS> { k: 3, part: 10 };
        for generation in -70_i64..70 {
            let (before, mut after) = (words(), words());
            layout.open(&mut after, generation);
            let newest = (-generation).rem_euclid(EPOCHS as i64) as u64;
            for position in 0..64 * before.len() as u64 / EPOCHS as u64 {
                for place in 0..EPOCHS as u64 {
                    let left = if place == newest { 0 } else { bit::<EPOCHS>(&before, position, place) };
                    assert_eq!(bit::<EPOCHS>(&after, position, place), left, "{EPOCHS} {generation}");
                }
            }
        }
    }

    #[test]
    fn a_new_epoch_clears_its_own_bits_alone() {
        check_opening::<8>();
        check_opening::<16>();
        check_opening::<32>();
        check_opening::<64>();
    }
}
