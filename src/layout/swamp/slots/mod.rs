//! The slots of a quotient filter, in a ring of blocks of 64 slots and 64 quotients each: runs of entries, one after
//! the other in the order of their quotients.
//!
//! As in the rank-and-select quotient filter (Pandey et al., *A General-Purpose Counting Filter: Making Every Bit
//! Count*, SIGMOD 2017, section 3) two bits a slot tell which quotients of a block have a run, and which of its slots
//! end one.
//!
//! Where this differs from the paper:
//! - A run begins where the one before it ends, or with its block, not at the slot of its quotient: the used slots of a
//!   block are its first ones. An insertion moves half a block, and nothing beyond it unless the block is full, as 4 of
//!   100 are where 4 slots of 5 are in use. What overflows goes to the next block.
//! - Eight bytes, instead of one, tell where in the block the runs of each eight quotients begin. From there any other
//!   run is at most seven away, each passed by two operations. To select a bit of a word by its rank takes forty
//!   dependent operations on processors without an instruction for it.
//!
//! So nearly all insertions and removals take place in one block, on a path without loops over blocks. A general path,
//! which would do for all, handles what passes from block to block.
//!
//! So the slots are a function of the runs alone. Cells may come from a damaged file: no walk takes more turns than
//! there are groups, or more steps than there are slots, whatever the bits.

mod far;
mod walk;

use crate::memory::packed;

/// Words of a block before its entries.
const HEADER: usize = 3;
/// Which quotients have a run.
const OCCUPIED: usize = 0;
/// Which slots end one.
const ENDS: usize = 1;
/// A byte for each group of 8 quotients: the slot, from the first of the block on, where the first of their runs begins
/// or would begin. The first byte is the number of entries that overflow from blocks before.
const BEGINS: usize = 2;
/// A begin as far away as a byte can tell, or farther.
const FAR: usize = 255;
/// One in each byte, and the highest bit of each.
const EACH: u64 = !0 / 255;
const HIGH: u64 = EACH << 7;

/// Where the slots lie in the words of their filter.
#[derive(Clone, Copy)]
pub struct Slots {
    /// Their first word.
    pub start: usize,
    /// How many there are, a multiple of 64.
    pub count: usize,
    /// Bits of an entry, less than 64.
    pub entry_bits: u32,
}

/// The slots of a run.
#[derive(Clone, Copy)]
pub struct Run {
    start: usize,
    /// The first word of the entries of the block where it begins.
    entries: usize,
    pub length: usize,
}

impl Slots {
    /// The words to prefetch for a quotient: that of its bits, that of its run if all slots before it are in use, and
    /// the one that tells whether its block is full.
    #[inline(always)]
    pub fn place(&self, quotient: usize) -> [usize; 3] {
        let start = self.block(quotient / 64);
        let run = start + HEADER + quotient % 64 * self.entry_bits as usize / 64;
        [start, run, start + self.block_words() + BEGINS]
    }

    /// The entry at a step of a run, or after it.
    #[inline(always)]
    pub fn entry(&self, words: &[u64], run: Run, step: usize) -> u64 {
        let slot = run.start % 64 + step;
        if slot >= 64 {
            return self.entry_in(words, self.on(run.start, step));
        }
        packed::get(&words[run.entries..run.entries + self.entry_bits as usize], self.entry_bits, slot)
    }

    /// The entries of a run, the first in the lowest bits, if it lies in one block and they fit.
    #[inline(always)]
    pub fn window(&self, words: &[u64], run: Run) -> Option<u64> {
        let slot = run.start % 64;
        let whole = slot + run.length <= 64 && run.length * self.entry_bits as usize <= 64;
        let entries = &words[run.entries..run.entries + self.entry_bits as usize];
        whole.then(|| packed::window(entries, self.entry_bits, slot))
    }

    #[inline(always)]
    pub fn set_entry(&self, words: &mut [u64], run: Run, step: usize, entry: u64) {
        let slot = self.on(run.start, step);
        packed::set(self.split(words, slot / 64).1, self.entry_bits, slot % 64, entry);
    }

    /// The entry in a slot.
    pub fn entry_in(&self, words: &[u64], slot: usize) -> u64 {
        let start = self.block(slot / 64) + HEADER;
        packed::get(&words[start..start + self.entry_bits as usize], self.entry_bits, slot % 64)
    }

    /// The run of a quotient: where it begins or would begin, and its length. `None` only if the cells are damaged.
    #[inline(always)]
    pub fn run(&self, words: &[u64], quotient: usize) -> Option<Run> {
        let start = self.block(quotient / 64);
        let header = &words[start..start + HEADER];
        let (group, within) = ((quotient % 64) & !7, quotient % 8);
        let begin = (header[BEGINS] >> group & 0xff) as usize;
        let occupied = header[OCCUPIED] >> group;
        let ends = header[ENDS] >> (begin % 64);
        // For each quotient before it that has a run, skips the lowest end.
        let before = occupied & !(!0 << within);
        let own = (0..7).fold(ends, |ends, i| ends & ends.wrapping_sub(before >> i & 1));
        if begin >= 64 || own == 0 {
            // The run reaches into other blocks, or nothing follows it.
            return self.far_run(words, quotient);
        }
        let first = 64 - (ends ^ own).leading_zeros() as usize;
        let behind = own.trailing_zeros() as usize + 1;
        let length = if occupied >> within & 1 == 1 { behind - first } else { 0 };
        Some(Run { start: quotient / 64 * 64 + begin + first, entries: start + HEADER, length })
    }

    /// Inserts an entry into the run of a quotient, at a step of it, and moves later ones on. Returns whether there was
    /// room, which there always is unless the cells are damaged.
    #[inline(always)]
    pub fn push(&self, words: &mut [u64], quotient: usize, run: Run, step: usize, entry: u64) -> bool {
        let slot = run.start % 64 + step;
        if !self.is_near(words, quotient, run, slot) || self.ends(words, quotient / 64) >> 63 != 0 {
            return self.push_far(words, quotient, run, step, entry);
        }
        let (header, entries) = self.split(words, quotient / 64);
        header[OCCUPIED] |= 1 << (quotient % 64);
        header[BEGINS] += behind(quotient);
        let (end, from) = (u64::from(step == run.length), !0 << slot);
        // The run now ends here, not a slot before.
        let before = end << slot >> u32::from(run.length > 0) & !from;
        let ends = header[ENDS];
        header[ENDS] = ends & !from & !before | (ends & from) << 1 | end << slot;
        packed::insert(entries, self.entry_bits, slot, entry);
        true
    }

    /// Removes an entry from the run of a quotient, at a step of it, and moves later ones back.
    #[inline(always)]
    pub fn pull(&self, words: &mut [u64], quotient: usize, run: Run, step: usize) {
        let slot = run.start % 64 + step;
        if !self.is_near(words, quotient, run, slot) {
            return self.pull_far(words, quotient, run, step);
        }
        let (header, entries) = self.split(words, quotient / 64);
        header[OCCUPIED] &= !(u64::from(run.length == 1) << (quotient % 64));
        header[BEGINS] = header[BEGINS].wrapping_sub(behind(quotient));
        let (end, from) = (u64::from(step + 1 == run.length), !0 << slot);
        // The slot before now ends the run.
        let before = end << slot >> u32::from(run.length > 1) & !from;
        header[ENDS] = header[ENDS] & !from | header[ENDS] >> 1 & from | before;
        packed::remove(entries, self.entry_bits, slot, 0);
    }

    /// Whether a run, up to a slot, and all slots after it lie in the block of its quotient, and all its begins fit a
    /// byte.
    #[inline(always)]
    fn is_near(&self, words: &[u64], quotient: usize, run: Run, slot: usize) -> bool {
        let start = self.block(quotient / 64);
        let next = self.begin(words, self.next_block(quotient / 64) * 8);
        run.entries == start + HEADER && slot < 64 && next == 0 && words[start + BEGINS] & HIGH == 0
    }

    /// The slot that is `steps` slots on. In damaged cells they may lead around more than once.
    #[inline(always)]
    fn on(&self, slot: usize, steps: usize) -> usize {
        let slot = slot + steps;
        if slot >= self.count { slot % self.count } else { slot }
    }

    pub fn blocks(&self) -> usize {
        self.count / 64
    }

    fn next_block(&self, block: usize) -> usize {
        if block + 1 == self.blocks() { 0 } else { block + 1 }
    }

    /// Which quotients of a group have a run.
    fn occupied(&self, words: &[u64], group: usize) -> u64 {
        words[self.block(group / 8) + OCCUPIED] >> (group % 8 * 8) & 0xff
    }

    /// Where a group begins, from the first slot of its block on, or [`FAR`].
    fn begin(&self, words: &[u64], group: usize) -> usize {
        (words[self.block(group / 8) + BEGINS] >> (group % 8 * 8) & 0xff) as usize
    }

    /// Which slots of a block end a run.
    fn ends(&self, words: &[u64], block: usize) -> u64 {
        words[self.block(block) + ENDS]
    }

    fn block_words(&self) -> usize {
        HEADER + self.entry_bits as usize
    }

    /// First word of a block.
    #[inline(always)]
    fn block(&self, block: usize) -> usize {
        self.start + block * self.block_words()
    }

    /// The header of a block and its entries.
    #[inline(always)]
    fn split<'a>(&self, words: &'a mut [u64], block: usize) -> (&'a mut [u64], &'a mut [u64]) {
        let start = self.block(block);
        words[start..start + self.block_words()].split_at_mut(HEADER)
    }
}

/// A one in the byte of each group after that of a quotient.
#[inline(always)]
fn behind(quotient: usize) -> u64 {
    EACH << 8 << ((quotient % 64) & !7)
}
