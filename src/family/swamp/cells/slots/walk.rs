//! A walk through all entries of a table, in order, which checks their places.

use super::{FAR, Slots};

impl Slots {
    /// Calls `visit` with the quotient and slot of each entry, run by run, and whether it is the first of its run,
    /// until `visit` returns false. Returns whether it never did, and the runs lie as insertions leave them. Then every
    /// search finds the run of its quotient.
    pub fn walk(&self, words: &[u64], mut visit: impl FnMut(usize, usize, bool) -> bool) -> bool {
        // A table has an empty slot, so at least one block does not overflow into the next.
        let Some(first) = (0..self.blocks()).find(|&block| self.begin(words, block * 8) == 0) else { return false };
        let (mut block, mut begin, mut left) = (first, 0, self.count);
        loop {
            for quotient in block * 64..block * 64 + 64 {
                let (group, occupied) = (quotient / 8, self.occupied(words, quotient / 8));
                if quotient % 8 == 0 && self.begin(words, group) != begin.min(FAR) {
                    return false;
                }
                if occupied >> (quotient % 8) & 1 == 0 {
                    continue;
                }
                let slot = self.ahead(block * 64, begin);
                let Some(length) = self.steps_behind(words, slot, 1).filter(|&length| length <= left) else {
                    return false;
                };
                if !(0..length).all(|step| visit(quotient, self.ahead(slot, step), step == 0)) {
                    return false;
                }
                (begin, left) = (begin + length, left - length);
            }
            if begin < 64 && self.ends(words, block) >> begin != 0 {
                return false;
            }
            (block, begin) = (self.next_block(block), begin.saturating_sub(64));
            if block == first {
                return begin == 0;
            }
        }
    }

    /// Returns the number of slots of a block in use, which are its first.
    pub fn used(&self, words: &[u64], block: usize) -> usize {
        let passed_on = self.begin(words, self.next_block(block) * 8) > 0;
        if passed_on { 64 } else { 64 - self.ends(words, block).leading_zeros() as usize }
    }

    /// Returns whether a used slot continues the run of the slot before.
    pub fn is_continued(&self, words: &[u64], slot: usize) -> bool {
        let before = slot.checked_sub(1).unwrap_or(self.count - 1);
        let follows = !slot.is_multiple_of(64) || self.begin(words, slot / 8) > 0;
        follows && self.ends(words, before / 64) >> (before % 64) & 1 == 0
    }
}
