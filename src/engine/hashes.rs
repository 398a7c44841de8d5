//! The keys of a batch whose cells are at hand: all of it, or those of a part.

use std::ops::Range;

/// Bits of a word.
pub const WORD: usize = 64;

/// The keys of a batch whose cells are at hand, in order.
#[derive(Clone, Copy)]
pub(crate) struct Hashes<'a> {
    pub hashes: &'a [u64],
    /// Which keys of the batch they are; `None` if they are all of it.
    pub chosen: Option<&'a Chosen>,
    /// Keys of the batch.
    pub len: usize,
}

impl<'a> Hashes<'a> {
    /// All keys of a batch.
    pub fn all(hashes: &'a [u64]) -> Self {
        Self { hashes, chosen: None, len: hashes.len() }
    }

    /// The keys of a range of the batch.
    #[inline(always)]
    pub fn within(&self, range: Range<usize>) -> Range<usize> {
        match self.chosen {
            None => range,
            Some(chosen) => chosen.within(range),
        }
    }
}

/// Which keys of a piece these are, a bit each.
pub(crate) struct Chosen {
    pub bits: Vec<u64>,
    /// How many of them come before each word.
    pub before: Vec<u16>,
}

impl Chosen {
    /// How many of them come before key `end` of the piece.
    #[inline(always)]
    fn until(&self, end: usize) -> usize {
        let (word, bit) = (end / WORD, end % WORD);
        // Beyond the last word of a full piece lie no bits.
        usize::from(self.before[word]) + (self.bits[word] & !(u64::MAX << bit)).count_ones() as usize
    }

    /// Those of a range of the piece, numbered among them.
    #[inline(always)]
    pub fn within(&self, range: Range<usize>) -> Range<usize> {
        self.until(range.start)..self.until(range.end)
    }
}
