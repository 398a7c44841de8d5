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

    /// The same, wherever the run lies.
    #[cold]
    fn far_run(&self, words: &[u64], quotient: usize) -> Option<Run> {
        let mut group = quotient / 8;
        let occupied = self.occupied(words, group);
        let mut before = (occupied & !(!0 << (quotient % 8))).count_ones() as usize;
        // Goes back to where the begin of runs is known; all slots on the way are in use.
        while self.begin(words, group) == FAR {
            group = group.checked_sub(1).unwrap_or(self.count / 8 - 1);
            before += self.occupied(words, group).count_ones() as usize;
            if group == quotient / 8 {
                return None;
            }
        }
        let begin = self.on(group / 8 * 64, self.begin(words, group).min(self.count));
        let start = self.on(begin, self.steps_behind(words, begin, before)?);
        let length = if occupied >> (quotient % 8) & 1 == 1 { self.steps_behind(words, start, 1)? } else { 0 };
        Some(Run { start, entries: self.block(start / 64) + HEADER, length })
    }

    /// Steps from a slot to after the one that ends the `runs`-th run from there on.
    fn steps_behind(&self, words: &[u64], slot: usize, mut runs: usize) -> Option<usize> {
        let (mut block, mut ends) = (slot / 64, self.ends(words, slot / 64) & !0 << (slot % 64));
        for steps in 0..=self.blocks() {
            let here = ends.count_ones() as usize;
            if runs <= here {
                (1..runs).for_each(|_| ends &= ends - 1);
                let behind = if runs == 0 { slot % 64 } else { ends.trailing_zeros() as usize + 1 };
                return (steps * 64 + behind).checked_sub(slot % 64);
            }
            runs -= here;
            block = self.next_block(block);
            ends = self.ends(words, block);
        }
        None
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

    /// The same, across any blocks.
    #[cold]
    fn push_far(&self, words: &mut [u64], quotient: usize, run: Run, step: usize, entry: u64) -> bool {
        let (home, slot, end) = (quotient / 64, self.on(run.start, step), step == run.length);
        if run.length == 0 {
            words[self.block(home) + OCCUPIED] |= 1 << (quotient % 64);
        } else if end {
            let last = self.on(run.start, step - 1);
            words[self.block(last / 64) + ENDS] &= !(1 << (last % 64));
        }
        let (mut block, mut first, mut coming) = (home, slot % 64, (entry, u64::from(end)));
        self.shift_begins(words, block, behind(quotient), true);
        while block != slot / 64 {
            block = self.next_block(block);
            self.shift_begins(words, block, EACH, true);
        }
        loop {
            let next = self.next_block(block);
            let full = self.ends(words, block) >> 63 == 1 || self.begin(words, next * 8) > 0;
            let (header, entries) = self.split(words, block);
            let (ends, from) = (header[ENDS], !0 << first);
            header[ENDS] = ends & !from | (ends & from) << 1 | coming.1 << first;
            coming = (packed::insert(entries, self.entry_bits, first, coming.0), ends >> 63);
            if !full || next == home {
                return !full;
            }
            self.shift_begins(words, next, EACH, true);
            (block, first) = (next, 0);
        }
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

    /// The same, across any blocks.
    #[cold]
    fn pull_far(&self, words: &mut [u64], quotient: usize, run: Run, step: usize) {
        let (home, slot) = (quotient / 64, self.on(run.start, step));
        if run.length == 1 {
            words[self.block(home) + OCCUPIED] &= !(1 << (quotient % 64));
        } else if step + 1 == run.length {
            let last = self.on(run.start, step - 1);
            words[self.block(last / 64) + ENDS] |= 1 << (last % 64);
        }
        let (mut block, mut first) = (home, slot % 64);
        let mut far = self.shift_begins(words, block, behind(quotient), false);
        while block != slot / 64 {
            block = self.next_block(block);
            far |= self.shift_begins(words, block, EACH, false);
        }
        loop {
            let next = self.next_block(block);
            let passed_on = self.begin(words, next * 8) > 0 && next != home;
            let (last, end) =
                if passed_on { (self.entry_in(words, next * 64), self.ends(words, next) & 1) } else { (0, 0) };
            let (header, entries) = self.split(words, block);
            let from = !0 << first;
            header[ENDS] = header[ENDS] & !from | header[ENDS] >> 1 & from | end << 63;
            packed::remove(entries, self.entry_bits, first, last);
            if !passed_on {
                break;
            }
            far |= self.shift_begins(words, next, EACH, false);
            (block, first) = (next, 0);
        }
        if far {
            self.find_begins(words, home, block);
        }
    }

    /// Whether a run, up to a slot, and all slots after it lie in the block of its quotient, and all its begins fit a
    /// byte.
    #[inline(always)]
    fn is_near(&self, words: &[u64], quotient: usize, run: Run, slot: usize) -> bool {
        let start = self.block(quotient / 64);
        let next = self.begin(words, self.next_block(quotient / 64) * 8);
        run.entries == start + HEADER && slot < 64 && next == 0 && words[start + BEGINS] & HIGH == 0
    }

    /// Shifts by an entry the begins of those groups of a block that `ones` marks; returns whether one of the block is
    /// too far away to tell.
    fn shift_begins(&self, words: &mut [u64], block: usize, ones: u64, on: bool) -> bool {
        let begins = &mut words[self.block(block) + BEGINS];
        if *begins & HIGH == 0 {
            *begins = if on { *begins + ones } else { begins.wrapping_sub(ones) };
            return false;
        }
        let mut bytes = begins.to_le_bytes();
        for (byte, one) in bytes.iter_mut().zip(ones.to_le_bytes()).filter(|(byte, _)| usize::from(**byte) < FAR) {
            *byte = if on { *byte + one } else { byte.saturating_sub(one) };
        }
        *begins = u64::from_le_bytes(bytes);
        bytes.iter().any(|&byte| usize::from(byte) == FAR)
    }

    /// Recomputes the begins in some blocks that were too far away, and may now be near enough.
    #[cold]
    fn find_begins(&self, words: &mut [u64], first: usize, last: usize) -> Option<()> {
        let (mut block, mut begin) = (first, self.far_run(words, first * 64)?.start);
        loop {
            for group in block * 8..block * 8 + 8 {
                if self.begin(words, group) < FAR {
                    begin = self.on(block * 64, self.begin(words, group).min(self.count));
                } else {
                    let begins = &mut words[self.block(block) + BEGINS];
                    let far = FAR.saturating_sub(self.steps(block * 64, begin)) as u64;
                    *begins -= far << (group % 8 * 8);
                }
                let runs = self.occupied(words, group).count_ones() as usize;
                begin = self.on(begin, self.steps_behind(words, begin, runs)?);
            }
            if block == last {
                return Some(());
            }
            block = self.next_block(block);
        }
    }

    /// Calls `visit` with the quotient and slot of each entry, run by run, and whether it is the first of its run,
    /// until that refuses one. Returns whether none was refused, and the runs lie as insertions alone leave them: every
    /// search then finds its own.
    pub fn walk(&self, words: &[u64], mut visit: impl FnMut(usize, usize, bool) -> bool) -> bool {
        // A table has an empty slot, so that somewhere nothing overflows into the next block.
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
                let slot = self.on(block * 64, begin);
                let Some(length) = self.steps_behind(words, slot, 1).filter(|&length| length <= left) else {
                    return false;
                };
                if !(0..length).all(|step| visit(quotient, self.on(slot, step), step == 0)) {
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

    /// Slots of a block that are in use, the first ones.
    pub fn used(&self, words: &[u64], block: usize) -> usize {
        let passed_on = self.begin(words, self.next_block(block) * 8) > 0;
        if passed_on { 64 } else { 64 - self.ends(words, block).leading_zeros() as usize }
    }

    /// Whether a used slot continues the run of the slot before.
    pub fn is_continued(&self, words: &[u64], slot: usize) -> bool {
        let before = slot.checked_sub(1).unwrap_or(self.count - 1);
        let follows = !slot.is_multiple_of(64) || self.begin(words, slot / 8) > 0;
        follows && self.ends(words, before / 64) >> (before % 64) & 1 == 0
    }

    /// The slot that is `steps` slots on. In damaged cells they may lead around more than once.
    #[inline(always)]
    fn on(&self, slot: usize, steps: usize) -> usize {
        let slot = slot + steps;
        if slot >= self.count { slot % self.count } else { slot }
    }

    /// Steps from one slot to another.
    fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.count - from }
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
