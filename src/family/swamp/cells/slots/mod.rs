//! The slots of a quotient filter, in a ring of blocks of 64 slots and 64 quotients each: runs of entries, one after
//! the other in the order of their quotients.
//!
//! As in the rank-and-select quotient filter (Pandey et al., *A General-Purpose Counting Filter: Making Every Bit
//! Count*, SIGMOD 2017, section 3) two bits a slot encode which quotients of a block have a run, and which slots end a
//! run.
//!
//! Where this differs from the paper:
//! - A run begins where the one before it ends, or with its block, not at the slot of its quotient: the used slots of a
//!   block are its first ones. An insertion moves half a block, and nothing beyond it unless the block is full, as 4 of
//!   100 are where 4 slots of 5 are in use. What overflows goes to the next block.
//! - Eight bytes, instead of one, encode where in the block the runs of each eight quotients begin. Any other run is at
//!   most seven runs further, and two operations pass each. Selecting a bit of a word by its rank takes forty dependent
//!   operations on processors without an instruction for it.
//!
//! Nearly all insertions and removals stay in one block, on a path without loops over blocks. A general path handles
//! the entries that move from block to block.
//!
//! The slots are a function of the runs alone. Cells may come from a damaged file: no walk visits more groups or slots
//! than there are, whatever the bits.

mod far;
mod walk;

use crate::memory::packed;

/// Words of a block before its entries.
const HEADER: usize = 3;
/// The word of a header that encodes which quotients have a run.
const OCCUPIED: usize = 0;
/// The word of a header that encodes which slots end a run.
const ENDS: usize = 1;
/// The word of a header with a byte for each group of 8 quotients: the slot, counted from the first of the block, at
/// which the first of their runs begins or would begin. The first byte is the number of entries that overflow from
/// earlier blocks.
const BEGINS: usize = 2;
/// The byte of a begin that is this far away or farther.
const FAR: usize = 255;
/// A one in each byte.
const EACH: u64 = !0 / 255;
/// The highest bit of each byte.
const HIGH: u64 = EACH << 7;

/// The place of the slots in the words of their filter.
#[derive(Clone, Copy)]
pub struct Slots {
    /// The first word.
    pub start: usize,
    /// The number of slots, a multiple of 64.
    pub count: usize,
    /// Bits of an entry, less than 64.
    pub entry_bits: u32,
}

/// The slots of a run. A *step* of it is the number of one of them, from 0.
#[derive(Clone, Copy)]
pub struct SlotRun {
    start: usize,
    /// The first word of the entries of the block in which the run begins.
    entries: usize,
    pub length: usize,
}

impl Slots {
    /// Returns the words to prefetch for a quotient: the word of its bits, that of its run if all slots before it are
    /// in use, and the header of the next block, which shows whether this one is full.
    #[inline(always)]
    pub fn place(&self, quotient: usize) -> [usize; 3] {
        let start = self.block(quotient / 64);
        let run = start + HEADER + quotient % 64 * self.entry_bits as usize / 64;
        [start, run, start + self.block_words() + BEGINS]
    }

    /// Returns the entry at a step of a run, or the one after its end.
    #[inline(always)]
    pub fn entry(&self, words: &[u64], run: SlotRun, step: usize) -> u64 {
        let slot = run.start % 64 + step;
        if slot >= 64 {
            return self.entry_in(words, self.ahead(run.start, step));
        }
        packed::get(&words[run.entries..run.entries + self.entry_bits as usize], self.entry_bits, slot)
    }

    /// Returns the entries of a run, the first in the lowest bits, if the run lies in one block and they fit a word.
    #[inline(always)]
    pub fn window(&self, words: &[u64], run: SlotRun) -> Option<u64> {
        let slot = run.start % 64;
        let whole = slot + run.length <= 64 && run.length * self.entry_bits as usize <= 64;
        let entries = &words[run.entries..run.entries + self.entry_bits as usize];
        whole.then(|| packed::window(entries, self.entry_bits, slot))
    }

    /// Writes the entry at a step of a run.
    #[inline(always)]
    pub fn set_entry(&self, words: &mut [u64], run: SlotRun, step: usize, entry: u64) {
        let slot = self.ahead(run.start, step);
        packed::set(self.split(words, slot / 64).1, self.entry_bits, slot % 64, entry);
    }

    /// Returns the entry in a slot.
    pub fn entry_in(&self, words: &[u64], slot: usize) -> u64 {
        let start = self.block(slot / 64) + HEADER;
        packed::get(&words[start..start + self.entry_bits as usize], self.entry_bits, slot % 64)
    }

    /// Returns the run of a quotient: where it begins or would begin, and its length; `None` only if the cells are
    /// damaged.
    #[inline(always)]
    pub fn run(&self, words: &[u64], quotient: usize) -> Option<SlotRun> {
        let start = self.block(quotient / 64);
        let header = &words[start..start + HEADER];
        let (group, within) = ((quotient % 64) & !7, quotient % 8);
        let begin = (header[BEGINS] >> group & 0xff) as usize;
        let occupied = header[OCCUPIED] >> group;
        let ends = header[ENDS] >> (begin % 64);
        // Skips the lowest end for each earlier quotient of the group that has a run.
        let before = occupied & !(!0 << within);
        let own = (0..7).fold(ends, |ends, i| ends & ends.wrapping_sub(before >> i & 1));
        if begin >= 64 || own == 0 {
            // The run extends into other blocks, or is empty behind the last entry.
            return self.run_across_blocks(words, quotient);
        }
        let first = 64 - (ends ^ own).leading_zeros() as usize;
        let behind = own.trailing_zeros() as usize + 1;
        let length = if occupied >> within & 1 == 1 { behind - first } else { 0 };
        Some(SlotRun { start: quotient / 64 * 64 + begin + first, entries: start + HEADER, length })
    }

    /// Inserts an entry into the run of a quotient, as the slot at a step of it, and moves later entries forward.
    /// Returns false if there is no room, which happens only in damaged cells.
    #[inline(always)]
    pub fn insert(&self, words: &mut [u64], quotient: usize, run: SlotRun, step: usize, entry: u64) -> bool {
        let slot = run.start % 64 + step;
        if !self.is_in_one_block(words, quotient, run, slot) || self.ends(words, quotient / 64) >> 63 != 0 {
            return self.insert_across_blocks(words, quotient, run, step, entry);
        }
        let (header, entries) = self.split(words, quotient / 64);
        header[OCCUPIED] |= 1 << (quotient % 64);
        header[BEGINS] += later_groups(quotient);
        let (end, from) = (u64::from(step == run.length), !0 << slot);
        // The run now ends here, not a slot before.
        let before = end << slot >> u32::from(run.length > 0) & !from;
        let ends = header[ENDS];
        header[ENDS] = ends & !from & !before | (ends & from) << 1 | end << slot;
        packed::insert(entries, self.entry_bits, slot, entry);
        true
    }

    /// Removes the entry at a step of the run of a quotient, and moves later entries back by a slot.
    #[inline(always)]
    pub fn remove(&self, words: &mut [u64], quotient: usize, run: SlotRun, step: usize) {
        let slot = run.start % 64 + step;
        if !self.is_in_one_block(words, quotient, run, slot) {
            return self.remove_across_blocks(words, quotient, run, step);
        }
        let (header, entries) = self.split(words, quotient / 64);
        header[OCCUPIED] &= !(u64::from(run.length == 1) << (quotient % 64));
        header[BEGINS] = header[BEGINS].wrapping_sub(later_groups(quotient));
        let (end, from) = (u64::from(step + 1 == run.length), !0 << slot);
        // The slot before now ends the run.
        let before = end << slot >> u32::from(run.length > 1) & !from;
        header[ENDS] = header[ENDS] & !from | header[ENDS] >> 1 & from | before;
        packed::remove(entries, self.entry_bits, slot, 0);
    }

    /// Returns whether a run up to a slot, and all used slots after it, lie in the block of its quotient, and all
    /// begins of the block fit seven bits.
    #[inline(always)]
    fn is_in_one_block(&self, words: &[u64], quotient: usize, run: SlotRun, slot: usize) -> bool {
        let start = self.block(quotient / 64);
        let next = self.begin(words, self.next_block(quotient / 64) * 8);
        run.entries == start + HEADER && slot < 64 && next == 0 && words[start + BEGINS] & HIGH == 0
    }

    /// Returns the slot that is `steps` slots ahead in the ring. In damaged cells this may be several times around.
    #[inline(always)]
    fn ahead(&self, slot: usize, steps: usize) -> usize {
        let slot = slot + steps;
        if slot >= self.count { slot % self.count } else { slot }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.count / 64
    }

    /// Returns the next block in the ring.
    fn next_block(&self, block: usize) -> usize {
        if block + 1 == self.blocks() { 0 } else { block + 1 }
    }

    /// Returns which quotients of a group have a run, a bit for each.
    fn occupied(&self, words: &[u64], group: usize) -> u64 {
        words[self.block(group / 8) + OCCUPIED] >> (group % 8 * 8) & 0xff
    }

    /// Returns the slot at which the runs of a group begin, counted from the first of its block, or [`FAR`].
    fn begin(&self, words: &[u64], group: usize) -> usize {
        (words[self.block(group / 8) + BEGINS] >> (group % 8 * 8) & 0xff) as usize
    }

    /// Returns which slots of a block end a run, a bit for each.
    fn ends(&self, words: &[u64], block: usize) -> u64 {
        words[self.block(block) + ENDS]
    }

    /// Returns the number of words of a block.
    fn block_words(&self) -> usize {
        HEADER + self.entry_bits as usize
    }

    /// Returns the first word of a block.
    #[inline(always)]
    fn block(&self, block: usize) -> usize {
        self.start + block * self.block_words()
    }

    /// Returns the header of a block and its entries.
    #[inline(always)]
    fn split<'a>(&self, words: &'a mut [u64], block: usize) -> (&'a mut [u64], &'a mut [u64]) {
        let start = self.block(block);
        words[start..start + self.block_words()].split_at_mut(HEADER)
    }
}

/// Returns a one in the byte of each group after that of a quotient.
#[inline(always)]
fn later_groups(quotient: usize) -> u64 {
    EACH << 8 << ((quotient % 64) & !7)
}
