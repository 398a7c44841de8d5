//! Runs that extend across blocks: the general path.

use super::{BEGINS, EACH, ENDS, FAR, HEADER, HIGH, OCCUPIED, SlotRun, Slots, later_groups};
use crate::memory::packed;

impl Slots {
    /// Returns the run of a quotient, wherever it lies.
    #[cold]
    pub(super) fn run_across_blocks(&self, words: &[u64], quotient: usize) -> Option<SlotRun> {
        let mut group = quotient / 8;
        let occupied = self.occupied(words, group);
        let mut before = (occupied & !(!0 << (quotient % 8))).count_ones() as usize;
        // Goes back to a group whose begin is near enough to be stored. All slots on the way are in use.
        while self.begin(words, group) == FAR {
            group = group.checked_sub(1).unwrap_or(self.count / 8 - 1);
            before += self.occupied(words, group).count_ones() as usize;
            if group == quotient / 8 {
                return None;
            }
        }
        let begin = self.ahead(group / 8 * 64, self.begin(words, group).min(self.count));
        let start = self.ahead(begin, self.steps_behind(words, begin, before)?);
        let length = if occupied >> (quotient % 8) & 1 == 1 { self.steps_behind(words, start, 1)? } else { 0 };
        Some(SlotRun { start, entries: self.block(start / 64) + HEADER, length })
    }

    /// Returns the number of steps from a slot to the end of the `runs`-th run from there on.
    pub(super) fn steps_behind(&self, words: &[u64], slot: usize, mut runs: usize) -> Option<usize> {
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

    /// Inserts an entry as [`insert`](Slots::insert) does, across any blocks.
    #[cold]
    pub(super) fn insert_across_blocks(
        &self,
        words: &mut [u64],
        quotient: usize,
        run: SlotRun,
        step: usize,
        entry: u64,
    ) -> bool {
        let (home, slot, end) = (quotient / 64, self.ahead(run.start, step), step == run.length);
        if run.length == 0 {
            words[self.block(home) + OCCUPIED] |= 1 << (quotient % 64);
        } else if end {
            let last = self.ahead(run.start, step - 1);
            words[self.block(last / 64) + ENDS] &= !(1 << (last % 64));
        }
        let (mut block, mut first, mut coming) = (home, slot % 64, (entry, u64::from(end)));
        self.shift_begins(words, block, later_groups(quotient), true);
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

    /// Removes an entry as [`remove`](Slots::remove) does, across any blocks.
    #[cold]
    pub(super) fn remove_across_blocks(&self, words: &mut [u64], quotient: usize, run: SlotRun, step: usize) {
        let (home, slot) = (quotient / 64, self.ahead(run.start, step));
        if run.length == 1 {
            words[self.block(home) + OCCUPIED] &= !(1 << (quotient % 64));
        } else if step + 1 == run.length {
            let last = self.ahead(run.start, step - 1);
            words[self.block(last / 64) + ENDS] |= 1 << (last % 64);
        }
        let (mut block, mut first) = (home, slot % 64);
        let mut far = self.shift_begins(words, block, later_groups(quotient), false);
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

    /// Moves the begins of some groups of a block by one entry, forward or back: the groups whose byte is 1 in `ones`.
    /// Returns whether a begin of the block is [`FAR`].
    fn shift_begins(&self, words: &mut [u64], block: usize, ones: u64, forward: bool) -> bool {
        let begins = &mut words[self.block(block) + BEGINS];
        if *begins & HIGH == 0 {
            *begins = if forward { *begins + ones } else { begins.wrapping_sub(ones) };
            return false;
        }
        let mut bytes = begins.to_le_bytes();
        for (byte, one) in bytes.iter_mut().zip(ones.to_le_bytes()).filter(|(byte, _)| usize::from(**byte) < FAR) {
            *byte = if forward { *byte + one } else { byte.saturating_sub(one) };
        }
        *begins = u64::from_le_bytes(bytes);
        bytes.iter().any(|&byte| usize::from(byte) == FAR)
    }

    /// Computes again, from block `first` to block `last`, the begins that were [`FAR`] and may be so no more.
    #[cold]
    fn find_begins(&self, words: &mut [u64], first: usize, last: usize) -> Option<()> {
        let (mut block, mut begin) = (first, self.run_across_blocks(words, first * 64)?.start);
        loop {
            for group in block * 8..block * 8 + 8 {
                if self.begin(words, group) < FAR {
                    begin = self.ahead(block * 64, self.begin(words, group).min(self.count));
                } else {
                    let begins = &mut words[self.block(block) + BEGINS];
                    let far = FAR.saturating_sub(self.steps(block * 64, begin)) as u64;
                    *begins -= far << (group % 8 * 8);
                }
                let runs = self.occupied(words, group).count_ones() as usize;
                begin = self.ahead(begin, self.steps_behind(words, begin, runs)?);
            }
            if block == last {
                return Some(());
            }
            block = self.next_block(block);
        }
    }

    /// Returns the number of steps from one slot to another.
    fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.count - from }
    }
}
