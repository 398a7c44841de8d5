//! What one slice of a ring holds, and which bits of it are a key's: one bit, or a few in one block.
//!
//! Positions come from one 64-bit hash, multiplied for each slice of the ring by an odd constant of its own; the high
//! bits choose. Double hashing would give only m^2 different patterns, an error floor near 1 / m for slices of m bits:
//! 0.1 % for a window of 1000 keys. Here a pattern repeats only with the whole hash: for n keys the floor is n / 2^64,
//! 5e-12 for 1e8 keys.

use crate::bits::{odd_constants, scale};
use crate::sizing::age_partitioned::MAX_SLICES;

/// Which bit, or which block, a key takes in each slice of the ring.
static PLACE: [u64; MAX_SLICES as usize] = odd_constants(0);
/// Which bits a key takes in the block it has in each slice of the ring.
static PATTERN: [u64; MAX_SLICES as usize] = odd_constants(MAX_SLICES as u64);

/// Which of the `cells` of a slice is a key's.
#[inline(always)]
pub fn place(slice: usize, hash: u64, cells: u64) -> u64 {
    scale(hash.wrapping_mul(PLACE[slice]), cells)
}

/// The cells of one slice of the ring, which begin at word `start`; `slice` is its place in the ring, which its hash
/// function goes with.
pub trait Cells: Copy + Send + Sync + 'static {
    /// Words one slice takes.
    fn words(&self) -> usize;
    /// The word, counted from the slice's first, where a key's bits begin.
    fn word(&self, slice: usize, hash: u64) -> usize;
    /// Sets the key's bits.
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64);
    /// Whether all of the key's bits are set, without a branch.
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool;
    /// Bits of one slice that keys can set.
    fn bits(&self) -> u64;
    /// Chance that a fresh key finds all of its bits set in the words of one slice.
    fn match_rate(&self, words: &[u64]) -> f64;
}

/// One bit a key (paper 1, section 5.1).
#[derive(Clone, Copy)]
pub struct Slice {
    bits: u64,
}

impl Slice {
    /// A slice of `bits` bits, at least 1.
    pub fn new(bits: u64) -> Self {
        Self { bits }
    }

    #[inline(always)]
    fn bit(&self, slice: usize, hash: u64) -> u64 {
        place(slice, hash, self.bits)
    }
}

impl Cells for Slice {
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
}

/// `PARTS` bits a key, one in each part of a block of `WORDS` words (paper 1, section 6).
///
/// Both are known to the compiler, which then unrolls the parts and needs no bounds checks.
#[derive(Clone, Copy)]
pub struct Blocks<const WORDS: usize, const PARTS: u32> {
    blocks: u64,
}

impl<const WORDS: usize, const PARTS: u32> Blocks<WORDS, PARTS> {
    const PART_BITS: u32 = WORDS as u32 * 64 / PARTS;
    const PART_LOG2: u32 = Self::PART_BITS.ilog2();

    /// A slice of `blocks` blocks, at least 1.
    pub fn new(blocks: u64) -> Self {
        Self { blocks }
    }

    /// The key's bit in each part, counted from the block's first.
    #[inline(always)]
    fn bits_of(slice: usize, hash: u64) -> impl Iterator<Item = u64> {
        let pattern = hash.wrapping_mul(PATTERN[slice]);
        (0..PARTS).map(move |part| {
            u64::from(part * Self::PART_BITS) + (pattern << (part * Self::PART_LOG2) >> (64 - Self::PART_LOG2))
        })
    }
}

impl<const WORDS: usize, const PARTS: u32> Cells for Blocks<WORDS, PARTS> {
    fn words(&self) -> usize {
        self.blocks as usize * WORDS
    }

    #[inline(always)]
    fn word(&self, slice: usize, hash: u64) -> usize {
        place(slice, hash, self.blocks) as usize * WORDS
    }

    #[inline(always)]
    fn set(&self, words: &mut [u64], start: usize, slice: usize, hash: u64) {
        let start = start + self.word(slice, hash);
        let block = &mut words[start..start + WORDS];
        for bit in Self::bits_of(slice, hash) {
            block[(bit / 64) as usize % WORDS] |= 1 << (bit % 64);
        }
    }

    #[inline(always)]
    fn all_set(&self, words: &[u64], start: usize, slice: usize, hash: u64) -> bool {
        let start = start + self.word(slice, hash);
        let block = &words[start..start + WORDS];
        Self::bits_of(slice, hash).fold(1, |all, bit| all & block[(bit / 64) as usize % WORDS] >> (bit % 64)) == 1
    }

    fn bits(&self) -> u64 {
        self.words() as u64 * 64
    }

    /// Parts of one block are filled alike, so a block matches with the product of its parts' fills, not with a power
    /// of its own fill; and blocks differ by their load, so their mean comes last.
    fn match_rate(&self, words: &[u64]) -> f64 {
        let bits = Self::PART_BITS as usize;
        let part_rate = |block: &[u64], start: usize| {
            let ones = match bits {
                64.. => count_ones(&block[start / 64..(start + bits) / 64]),
                _ => u64::from((block[start / 64] >> (start % 64) & !(!0 << bits)).count_ones()),
            };
            ones as f64 / bits as f64
        };
        let block_rate =
            |block: &[u64]| (0..WORDS * 64).step_by(bits).map(|start| part_rate(block, start)).product::<f64>();
        words.chunks_exact(WORDS).map(block_rate).sum::<f64>() / self.blocks as f64
    }
}

/// Share of `bits` bits that are set, at most 1: a damaged file may have ones beyond the last of the bits.
pub fn share_of_ones(words: &[u64], bits: u64) -> f64 {
    (count_ones(words) as f64 / bits as f64).min(1.0)
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}
