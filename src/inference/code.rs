//! Evidence of which there are few kinds, as small numbers: what follows from it is found in a table, and nothing has
//! to be compared. A code takes 2 bytes a key, instead of the 16 of evidence.

use super::Evidence;
use super::line::STRETCHES;

/// 14 bits, laid out by each family in its own way:
///
/// | cells | bits | what they say |
/// |---|---|---|
/// | lines of 8 lanes | 0..8 | the generations that are not ruled out |
/// | | 8..14 | the stretch of pages |
/// | timers of few blocks | 0..8 | how many show the oldest block; in two lines, 0..4 and 4..8 for each |
/// | | 8..14 | the age of that block; all bits where the key is not there |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Code(u16);

/// Where the upper part begins.
const UPPER: u32 = 8;

impl Code {
    /// How many codes there are.
    pub const KINDS: usize = (STRETCHES as usize) << UPPER;
    /// The most generations of a code.
    pub const GENERATIONS: usize = UPPER as usize;
    /// The most blocks of timers.
    pub const BLOCKS: u64 = (1 << (Self::KINDS.ilog2() - UPPER)) - 1;

    /// Its number, below [`KINDS`](Self::KINDS).
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// That of generations, a bit each, the newest lowest, and a stretch.
    #[inline(always)]
    pub fn of_generations(generations: u32, stretch: u32) -> Self {
        Self((stretch << UPPER | generations) as u16)
    }

    /// The evidence of the same.
    pub fn generations(self) -> Evidence {
        Evidence::generations((self.0 as u8).into()).in_stretch((self.0 >> UPPER).into())
    }

    /// That of what timers say, if their blocks are at most [`BLOCKS`](Self::BLOCKS).
    #[inline(always)]
    pub fn of_timers(evidence: Evidence) -> Self {
        // Of a key that is not there all bits are set, by themselves.
        let (age, counts) = (evidence.age() as u16, evidence.count(0) as u16 | (evidence.count(1) as u16) << 4);
        Self((age << UPPER | counts & 0xff) & (Self::KINDS as u16 - 1))
    }

    /// The evidence of the same, in so many lines.
    pub fn timers<const LINES: usize>(self) -> Evidence {
        let (age, counts) = (u64::from(self.0 >> UPPER), u64::from(self.0 as u8));
        let count = |line: u32| if LINES == 1 { counts } else { counts >> (4 * line) & 15 };
        let mut of_lines = [0; LINES];
        (0..).zip(&mut of_lines).for_each(|(line, of_line)| *of_line = count(line));
        Evidence::oldest(age, of_lines).if_there(age < Self::BLOCKS)
    }
}
