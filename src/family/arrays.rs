//! The cells of one slice, and which bits of it a key has: one bit, a few anywhere, or a few in one block.
//!
//! Positions come from one 64-bit hash, multiplied for each slice of the ring by an odd constant of its own; the high
//! bits of the product choose. Double hashing has only m^2 different patterns, an error floor near 1 / m for
//! slices of m bits: 0.1 % for a window of 1000 keys. Here a pattern repeats only with the whole hash. The floor for n
//! keys is n / 2^64, 5e-12 for 1e8 keys.

use std::ops::Range;

use crate::inference::MAX_SLICES;
use crate::memory::bits::{odd_constants, scale};
use crate::memory::prefetch::Address;

/// Constants that choose a key's bit, or block, in each slice of the ring.
static PLACE: [u64; MAX_SLICES as usize] = odd_constants(0);
/// Constants that choose a key's bits in its block of each slice, or in each part of a slice.
static PATTERN: [u64; MAX_SLICES as usize] = odd_constants(MAX_SLICES as u64);

/// Bits of a slice that are read where its match rate need not be exact. If half of them are set, the rate is right to
/// 0.14 %.
pub const SAMPLE: u64 = 1 << 19;

/// Returns the cell of a key among the `cells` of a slice.
#[inline(always)]
pub fn place(slice: usize, hash: u64, cells: u64) -> u64 {
    scale(hash.wrapping_mul(PLACE[slice]), cells)
}

/// Returns the cell of a key among the `cells` of a part of a slice; `hash` is already multiplied for the slice.
#[inline(always)]
pub fn place_in_part(part: u32, hash: u64, cells: u64) -> u64 {
    scale(hash.wrapping_mul(PATTERN[part as usize]), cells)
}

/// The cells of one slice of a ring. They begin at word `start`. `slice` is the place of the slice in the ring, which
/// selects its hash function.
pub trait SliceCells: Copy + Send + Sync + 'static {
    /// Returns the number of words of one slice.
    fn words(&self) -> usize;
    /// Returns the word at which a key's bits begin, counted from the slice's first.
    fn word(&self, slice: usize, hash: u64) -> usize;
    /// Prefetches the words that [`set`](Self::set) writes: by default the line of [`word`](Self::word).
    #[inline(always)]
    fn fetch(&self, words: Address, start: usize, slice: usize, hash: u64) {
        words.fetch(start + self.word(slice, hash));
    }
    /// Sets the key's bits.
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64);
    /// Returns whether all of the key's bits are set.
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool;
    /// Returns the number of bits of one slice that keys can set.
    fn bits(&self) -> u64;
    /// Returns the chance that a fresh key finds all of its bits set in the words of one slice.
    fn match_rate(&self, words: &[u64]) -> f64;
    /// Returns the [match rate](Self::match_rate) of the first [`SAMPLE`] bits, if there are more. Places are hashed,
    /// so the first are as good a sample as any.
    fn sampled_match_rate(&self, words: &[u64]) -> f64;
}

/// A slice in which a key has one bit (paper 1, section 5.1).
#[derive(Clone, Copy)]
pub struct OneBit {
    bits: u64,
}

impl OneBit {
    /// Returns a slice of `bits` bits, at least 1.
    pub fn new(bits: u64) -> Self {
        Self { bits }
    }

    /// Returns the bit of a key.
    #[inline(always)]
    pub(crate) fn bit(&self, slice: usize, hash: u64) -> u64 {
        place(slice, hash, self.bits)
    }
}

impl SliceCells for OneBit {
    fn words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        (self.bit(slice, hash) / 64) as usize
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64) {
        let bit = self.bit(slice, hash);
        words[start + (bit / 64) as usize] |= 1 << (bit % 64);
    }

    #[inline(always)]
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool {
        let bit = self.bit(slice, hash);
        words[start + (bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn bits(&self) -> u64 {
        self.bits
    }

    fn match_rate(&self, words: &[u64]) -> f64 {
        share_of_ones(words, self.bits)
    }

    fn sampled_match_rate(&self, words: &[u64]) -> f64 {
        let bits = self.bits.min(SAMPLE);
        share_of_ones(&words[..bits.div_ceil(64) as usize], bits)
    }
}

/// A slice in which a key has `parts` bits, one in each part: a partitioned Bloom filter (paper 2, section 2).
///
/// In paper 2 the bits of a key may lie anywhere in the segment. The chance of a match is then `E[fill^k]`, which
/// exceeds `E[fill]^k` because all k bits share one random fill. Parts are filled by independent hashes, so the
/// mean of their product is the product of their means, and the rate is exact in closed form. The cost is negligible: a
/// part's expected fill is 1 - (1 - k/m)^n instead of 1 - (1 - 1/m)^(kn), higher by 3e-6 of it at k = 10 and m = 1e6.
/// [`BitsInParts::anywhere`] returns the segment of paper 2, in which every part is the whole segment.
#[derive(Clone, Copy)]
pub struct BitsInParts {
    bits: u64,
    parts: u32,
    part_bits: u64,
    /// The number of bits from the start of one part to the start of the next.
    step: u64,
}

impl BitsInParts {
    /// Returns a slice of `bits` bits in `parts` equal parts of at least 1 bit, at most [`MAX_SLICES`] of them. The
    /// rest of the bits stays unused.
    pub fn new(bits: u64, parts: u32) -> Self {
        let part_bits = bits / u64::from(parts);
        Self { bits, parts, part_bits, step: part_bits }
    }

    /// Returns a slice of `bits` bits, at least 1. A key has `parts` of them anywhere, at most [`MAX_SLICES`]; some may
    /// be equal.
    pub fn anywhere(bits: u64, parts: u32) -> Self {
        Self { bits, parts, part_bits: bits, step: 0 }
    }

    /// Returns the number of bits of a key.
    pub fn k(&self) -> u32 {
        self.parts
    }

    /// Returns the key's bit in a part, counted from the slice's first; `hash` is already multiplied for the slice.
    #[inline(always)]
    fn bit(&self, hash: u64, part: u32) -> u64 {
        u64::from(part) * self.step + place_in_part(part, hash, self.part_bits)
    }

    /// Returns the key's bit in each part.
    #[inline(always)]
    pub(crate) fn bits_of(&self, slice: usize, hash: u64) -> impl Iterator<Item = u64> {
        let hash = hash.wrapping_mul(PLACE[slice]);
        (0..self.parts).map(move |part| self.bit(hash, part))
    }

    /// Returns the match rate of the first `bits` bits of every part. The bits of a fresh key are independent.
    fn rate_of_first(&self, words: &[u64], bits: u64) -> f64 {
        let part_rate = |part: u64| {
            let start = part * self.step;
            count_ones_within(words, start..start + bits) as f64 / bits as f64
        };
        (0..self.parts.into()).map(part_rate).product()
    }
}

impl SliceCells for BitsInParts {
    fn words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        (self.bit(hash.wrapping_mul(PLACE[slice]), 0) / 64) as usize
    }

    #[inline(always)]
    fn fetch(&self, words: Address, start: usize, slice: usize, hash: u64) {
        for bit in self.bits_of(slice, hash) {
            words.fetch(start + (bit / 64) as usize);
        }
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64) {
        for bit in self.bits_of(slice, hash) {
            words[start + (bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    /// Returns whether all of the key's bits are set. Reads four parts at a time without a branch: if half of the bits
    /// are set, one segment in 16 needs more. A version that stopped at the first zero read two bits instead of 4.3,
    /// but its branches were mispredicted, and queries took 1.7 times as long.
    #[inline(always)]
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool {
        let hash = hash.wrapping_mul(PLACE[slice]);
        let set = |part| {
            let bit = self.bit(hash, part);
            words[start + (bit / 64) as usize] >> (bit % 64)
        };
        let mut part = 0;
        while part + 4 <= self.parts {
            if set(part) & set(part + 1) & set(part + 2) & set(part + 3) & 1 == 0 {
                return false;
            }
            part += 4;
        }
        (part..self.parts).fold(1, |all, part| all & set(part)) == 1
    }

    fn bits(&self) -> u64 {
        u64::from(self.parts - 1) * self.step + self.part_bits
    }

    fn match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, self.part_bits)
    }

    fn sampled_match_rate(&self, words: &[u64]) -> f64 {
        self.rate_of_first(words, (SAMPLE / u64::from(self.parts)).min(self.part_bits))
    }
}

/// A slice in which a key has one bit in each part of a block (paper 1, section 6).
#[derive(Clone, Copy)]
pub struct Blocks {
    blocks: u64,
    /// The number of words of a block.
    words: usize,
    parts: u32,
    part_log2: u32,
}

impl Blocks {
    /// Returns a slice of `blocks` blocks, at least 1, of 64 or 512 bits in 1, 2, 4 or 8 parts.
    pub fn new(blocks: u64, block_bits: u64, parts: u32) -> Self {
        Self { blocks, words: block_bits as usize / 64, parts, part_log2: (block_bits as u32 / parts).ilog2() }
    }

    /// Returns the key's bit in each part, counted from the block's first.
    #[inline(always)]
    fn bits_of(&self, slice: usize, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let (pattern, log2) = (hash.wrapping_mul(PATTERN[slice]), self.part_log2);
        (0..self.parts).map(move |part| (u64::from(part) << log2) + (pattern << (part * log2) >> (64 - log2)))
    }
}

impl SliceCells for Blocks {
    fn words(&self) -> usize {
        self.blocks as usize * self.words
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        place(slice, hash, self.blocks) as usize * self.words
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64) {
        let block = &mut words[start + self.word(slice, hash)..][..self.words];
        for bit in self.bits_of(slice, hash) {
            block[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    #[inline(always)]
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool {
        let block = &words[start + self.word(slice, hash)..][..self.words];
        self.bits_of(slice, hash).fold(1, |all, bit| all & block[(bit / 64) as usize] >> (bit % 64)) == 1
    }

    fn bits(&self) -> u64 {
        self.words() as u64 * 64
    }

    /// Returns the mean over the blocks of the product of the fills of their parts. A power of the fill of a block
    /// would not be its match rate, and blocks differ in load, so the mean comes last.
    fn match_rate(&self, words: &[u64]) -> f64 {
        let bits = 1 << self.part_log2;
        let part_rate = |block: &[u64], start| count_ones_within(block, start..start + bits) as f64 / bits as f64;
        let starts = || (0..self.words as u64 * 64).step_by(bits as usize);
        let block_rate = |block: &[u64]| starts().map(|start| part_rate(block, start)).product::<f64>();
        words.chunks_exact(self.words).map(block_rate).sum::<f64>() / (words.len() / self.words) as f64
    }

    fn sampled_match_rate(&self, words: &[u64]) -> f64 {
        self.match_rate(&words[..words.len().min((SAMPLE / 64) as usize)])
    }
}

/// Returns the share of `bits` bits that are set, at most 1: a damaged file may have ones beyond the last bit.
pub fn share_of_ones(words: &[u64], bits: u64) -> f64 {
    (count_ones(words) as f64 / bits as f64).min(1.0)
}

/// Returns the number of bits that are set.
fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Returns the number of bits that are set in a range of bits.
fn count_ones_within(words: &[u64], bits: Range<u64>) -> u64 {
    let (first, last) = ((bits.start / 64) as usize, (bits.end / 64) as usize);
    let below = |end: u64| words.get((end / 64) as usize).map_or(0, |word| word & !(!0 << (end % 64))).count_ones();
    count_ones(&words[first..last]) + u64::from(below(bits.end)) - u64::from(below(bits.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_of_any_range_equal_those_counted_bit_by_bit() {
        let words = [0x9e37_79b9_7f4a_7c15, !0, 0, 0x94d0_49bb_1331_11eb];
        let bit = |i: u64| words[(i / 64) as usize] >> (i % 64) & 1;
        for start in 0..=256 {
            for end in start..=256 {
                assert_eq!(count_ones_within(&words, start..end), (start..end).map(bit).sum::<u64>(), "{start}..{end}");
            }
        }
    }
}
