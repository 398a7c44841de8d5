//! A segment: one of the parts of a ring that are filled, retained and cleared together.

use crate::Error;
use crate::family::{Parameters, fill};

/// A slice of the age-partitioned filter, or a segment of guarded epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// A bit array; a key sets one bit in each part of it. Slices (paper 1, section 5) have one part.
    Bits {
        /// Number of bits; a remainder after division into equal parts stays unused.
        bits: u64,
        /// Number of parts, and of bits set by a key: k of paper 2.
        parts: u32,
    },
    /// A blocked Bloom filter; a key sets one bit in each part of one block (paper 1, section 6; paper 2, section 2,
    /// last paragraph).
    Blocks {
        /// Number of blocks.
        blocks: u64,
        /// B: bits of a block, 64 (a word) or 512 (a cache line).
        block_bits: u32,
        /// b: number of parts of a block, and of bits set by a key: 1, 2, 4 or 8.
        parts: u32,
    },
}

impl Segment {
    /// Reads blocks from parameters.
    pub(crate) fn read_blocks(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let (blocks, block_bits) = (parameters.read_u64("blocks")?, parameters.read_u32("block_bits")?);
        Ok(Self::Blocks { blocks, block_bits, parts: parameters.read_u32("parts")? })
    }

    /// Returns blocks, bits of a block and parts, as parameters: zero if there are no blocks.
    pub(crate) fn parameters_of_blocks(self) -> [(&'static str, u64); 3] {
        let (blocks, block_bits, parts) = match self {
            Self::Bits { .. } => (0, 0, 0),
            Self::Blocks { blocks, block_bits, parts } => (blocks, block_bits, parts),
        };
        [("blocks", blocks), ("block_bits", block_bits.into()), ("parts", parts.into())]
    }

    /// Rejects blocks that a ring cannot have.
    pub(crate) fn check_blocks(self) -> Result<(), Error> {
        let Self::Blocks { blocks, block_bits, parts } = self else { return Ok(()) };
        if blocks == 0 {
            return Err(Error::value("blocks must be at least 1, got 0"));
        }
        if ![1, 2, 4, 8].contains(&parts) {
            return Err(Error::value(format!("parts must be 1, 2, 4 or 8, got {parts}")));
        }
        check_block_bits(block_bits)
    }

    /// Returns the number of whole 64-bit words.
    pub fn words(self) -> u64 {
        match self {
            Self::Bits { bits, .. } => bits.div_ceil(64),
            Self::Blocks { blocks, block_bits, .. } => blocks.saturating_mul(u64::from(block_bits / 64)),
        }
    }

    /// Returns the chance that a fresh key matches after `keys` distinct keys.
    ///
    /// Paper 2, proposition 2, has (1 - e^(-kn/s))^k. A power of the mean is not the mean of the power; but parts are
    /// filled independently, and so the power is exact here ([`fill::slice`] for e). Blocks are filled unequally:
    /// [`fill::blocks`].
    pub fn match_rate(self, keys: u64) -> f64 {
        match self {
            Self::Bits { bits, parts } => fill::slice(bits / u64::from(parts), keys).powi(parts as i32),
            Self::Blocks { blocks, block_bits, parts } => fill::blocks(blocks, block_bits, parts, keys),
        }
    }

    /// Returns a lower bound of [`match_rate`](Self::match_rate) that costs one exponential.
    pub(crate) fn match_rate_at_least(self, keys: u64) -> f64 {
        match self {
            Self::Bits { .. } => self.match_rate(keys),
            Self::Blocks { blocks, block_bits, parts } => fill::blocks_at_least(blocks, block_bits, parts, keys),
        }
    }
}

pub(crate) fn check_block_bits(block_bits: u32) -> Result<(), Error> {
    if [64, 512].contains(&block_bits) {
        Ok(())
    } else {
        Err(Error::value(format!("block_bits must be 64 or 512, got {block_bits}")))
    }
}
