//! Evidence of which there are few kinds, as small numbers: what follows from it is found in a table, and nothing has
//! to be compared. Lines of 8 lanes tell codes, 2 bytes a key instead of the 16 of evidence.

use super::Evidence;
use super::line::STRETCHES;

/// Generations that are not ruled out, of up to [`GENERATIONS`](Self::GENERATIONS), in a stretch of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Code(u16);

impl Code {
    /// The most generations.
    pub const GENERATIONS: u32 = 8;
    /// How many codes there are.
    pub const KINDS: usize = 1 << (Self::GENERATIONS + STRETCHES.ilog2());

    /// That of these generations, a bit each, the newest lowest.
    #[inline(always)]
    pub fn new(generations: u32, stretch: u32) -> Self {
        Self((stretch << Self::GENERATIONS | generations) as u16)
    }

    /// Its number, below [`KINDS`](Self::KINDS).
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// The evidence.
    pub fn evidence(self) -> Evidence {
        let generations = self.0 & ((1 << Self::GENERATIONS) - 1);
        Evidence::generations(generations.into()).in_stretch((self.0 >> Self::GENERATIONS).into())
    }
}
