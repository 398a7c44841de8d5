//! The hashes of a batch that a thread processes: all of them, or those of one partition.

use std::ops::Range;

/// Bits of a word.
pub const WORD: usize = 64;

/// The hashes of keys of a batch, in order: all of them, or those of one partition.
#[derive(Clone, Copy)]
pub(crate) struct SelectedHashes<'a> {
    pub hashes: &'a [u64],
    /// Which keys of the batch these are; `None` for all of them.
    pub selection: Option<&'a Selection>,
    /// The number of keys in the batch.
    pub len: usize,
}

impl<'a> SelectedHashes<'a> {
    /// Returns all keys of a batch.
    pub fn all(hashes: &'a [u64]) -> Self {
        Self { hashes, selection: None, len: hashes.len() }
    }

    /// Returns the places in `hashes` of the keys that lie in a range of the batch.
    #[inline(always)]
    pub fn within(&self, range: Range<usize>) -> Range<usize> {
        match self.selection {
            None => range,
            Some(selection) => selection.within(range),
        }
    }
}

/// Which keys of a piece of a batch are selected: one bit for each key.
pub(crate) struct Selection {
    pub bits: Vec<u64>,
    /// The number of selected keys before each word of `bits`.
    pub before: Vec<u16>,
}

impl Selection {
    /// Returns the number of selected keys before key `end` of the piece.
    #[inline(always)]
    fn until(&self, end: usize) -> usize {
        let (word, bit) = (end / WORD, end % WORD);
        // The bits beyond the last word of a full piece are zeros.
        usize::from(self.before[word]) + (self.bits[word] & !(u64::MAX << bit)).count_ones() as usize
    }

    /// Returns the range of the piece as a range of the selected keys.
    #[inline(always)]
    pub fn within(&self, range: Range<usize>) -> Range<usize> {
        self.until(range.start)..self.until(range.end)
    }
}
