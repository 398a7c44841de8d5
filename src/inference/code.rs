//! Codes: small numbers for evidence that takes few values. A posterior is found in a table by the code, without a
//! comparison. A code takes 2 bytes a key, evidence 16.

use super::Evidence;

/// Greatest number of page ranges.
pub const PAGE_RANGES: u64 = 64;

/// A code of evidence: 14 bits, which each family assigns in its own way.
///
/// | cells | bits | content |
/// |---|---|---|
/// | lines of 8 lanes | 0..8 | the generations that are not ruled out |
/// | | 8..14 | the page range |
/// | timers of few blocks | 0..8 | number of timers that show the oldest block |
/// | | 8..14 | the age of that block; all bits if the key is not there |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Code(u16);

/// The lowest bit of the upper part.
const UPPER: u32 = 8;

impl Code {
    /// Number of different codes.
    pub const KINDS: usize = (PAGE_RANGES as usize) << UPPER;
    /// Greatest number of generations that a code can represent.
    pub const GENERATIONS: usize = UPPER as usize;
    /// Greatest number of blocks of timers that a code can represent.
    pub const BLOCKS: u64 = (1 << (Self::KINDS.ilog2() - UPPER)) - 1;

    /// Returns the number of the code, below [`KINDS`](Self::KINDS).
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// Creates the code of generations, one bit each with the newest lowest, and of a page range.
    #[inline(always)]
    pub fn of_generations(generations: u32, range: u32) -> Self {
        Self((range << UPPER | generations) as u16)
    }

    /// Returns the evidence of generations that this code represents.
    pub fn generations(self) -> Evidence {
        Evidence::generations((self.0 as u8).into()).in_page_range((self.0 >> UPPER).into())
    }

    /// Creates the code of evidence of timers whose blocks are at most [`BLOCKS`](Self::BLOCKS).
    #[inline(always)]
    pub fn of_timers(evidence: Evidence) -> Self {
        // If the key is not there, all bits are set without a branch.
        Self(((evidence.age() as u16) << UPPER | evidence.count() as u16 & 0xff) & (Self::KINDS as u16 - 1))
    }

    /// Returns the evidence of timers that this code represents.
    pub fn timers(self) -> Evidence {
        let age = u64::from(self.0 >> UPPER);
        Evidence::oldest(age, u64::from(self.0 as u8)).if_present(age < Self::BLOCKS)
    }
}
