//! The slots of a quotient filter: three bits and an entry each, in a ring, searched and moved a word at a time.
//!
//! Slots come in blocks of 64: a word for each of the three bitmaps, then the entries. A search and a move look at whole
//! words of a bitmap, of which a cluster of pushed entries takes one or two where it would take a dozen steps slot by
//! slot; entries move together, as one long number. Every walk ends after one turn of the ring, whatever the bits.

use std::ops::Range;

use crate::packed;

/// The bits of a slot.
#[derive(Clone, Copy)]
pub enum Bit {
    /// Its quotient has a run, wherever that lies.
    Occupied,
    /// Its entry goes on with the run of the slot before.
    Continued,
    /// Its entry was pushed from the place of its quotient.
    Shifted,
}

use Bit::{Continued, Occupied, Shifted};

/// Words of the bitmaps of a block.
const BITMAPS: usize = 3;

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

impl Slots {
    /// The word of a slot's bits, and that of its entry.
    #[inline(always)]
    pub fn place(&self, slot: usize) -> [usize; 2] {
        let block = self.block(slot / 64);
        [block, block + BITMAPS + slot % 64 * self.entry_bits as usize / 64]
    }

    #[inline(always)]
    pub fn is(&self, words: &[u64], bit: Bit, slot: usize) -> bool {
        words[self.block(slot / 64) + bit as usize] >> (slot % 64) & 1 == 1
    }

    #[inline(always)]
    pub fn set(&self, words: &mut [u64], bit: Bit, slot: usize, value: bool) {
        let word = &mut words[self.block(slot / 64) + bit as usize];
        *word = *word & !(1 << (slot % 64)) | u64::from(value) << (slot % 64);
    }

    /// Whether none of the slot's bits is set.
    #[inline(always)]
    pub fn is_empty(&self, words: &[u64], slot: usize) -> bool {
        empty(self.bits(words, slot / 64)) >> (slot % 64) & 1 == 1
    }

    #[inline(always)]
    pub fn entry(&self, words: &[u64], slot: usize) -> u64 {
        packed::get(&words[self.entries(slot / 64)], self.entry_bits, slot % 64)
    }

    #[inline(always)]
    pub fn set_entry(&self, words: &mut [u64], slot: usize, entry: u64) {
        packed::set(&mut words[self.entries(slot / 64)], self.entry_bits, slot % 64, entry);
    }

    #[inline(always)]
    pub fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }

    /// Where the run of an occupied quotient begins, or is to begin.
    ///
    /// The cluster of pushed entries around it begins at a slot that is not shifted. From there on as many runs come
    /// before it as quotients are occupied between that slot and its own.
    pub fn run_start(&self, words: &[u64], quotient: usize) -> usize {
        let (mut start, mut runs) = (quotient, 0);
        let (mut block, mut within) = (quotient / 64, !0 >> (63 - quotient % 64));
        for _ in 0..=self.blocks() {
            let [occupied, _, shifted] = self.bits(words, block);
            if let Some(first) = (!shifted & within).checked_ilog2() {
                start = block * 64 + first as usize;
                runs += (occupied & within & !1 << first).count_ones();
                break;
            }
            runs += (occupied & within).count_ones();
            (block, within) = (if block == 0 { self.blocks() } else { block } - 1, !0);
        }
        let (mut block, mut within) = (start / 64, !1 << (start % 64));
        for _ in 0..=self.blocks() {
            if runs == 0 {
                break;
            }
            let mut heads = !self.bits(words, block)[Continued as usize] & within;
            while heads != 0 {
                runs -= 1;
                if runs == 0 {
                    return block * 64 + heads.trailing_zeros() as usize;
                }
                heads &= heads - 1;
            }
            (block, within) = (self.next_block(block), !0);
        }
        start
    }

    /// Puts an entry at a slot and moves those there on, up to the next empty slot.
    pub fn push(&self, words: &mut [u64], slot: usize, entry: u64, continued: bool, shifted: bool) {
        let (mut block, mut first) = (slot / 64, slot % 64);
        let mut coming = (entry, u64::from(continued), u64::from(shifted));
        for _ in 0..=self.blocks() {
            let bits = self.bits(words, block);
            let empty = empty(bits) & !0 << first;
            let last = empty.trailing_zeros().min(63) as usize;
            let (entry, continued, shifted) = coming;
            let (moved, on) = (ones(first..last + 1), ones(first + 1..last + 1));
            let start = self.block(block);
            words[start + Continued as usize] = bits[1] & !moved | bits[1] << 1 & on | continued << first;
            words[start + Shifted as usize] = bits[2] & !moved | on | shifted << first;
            let entries = &mut words[self.entries(block)];
            coming = (packed::get(entries, self.entry_bits, 63), bits[1] >> 63, 1);
            packed::move_up(entries, self.entry_bits, first..last);
            packed::set(entries, self.entry_bits, first, entry);
            if empty != 0 {
                return;
            }
            (block, first) = (self.next_block(block), 0);
        }
    }

    /// Takes away the entry at a slot, of the run of `quotient`, and moves those pushed from their places back.
    pub fn pull(&self, words: &mut [u64], slot: usize, quotient: usize) {
        let next = self.next(slot);
        let alone = !self.is(words, Continued, slot) && !self.is(words, Continued, next);
        let inherited = !self.is(words, Continued, slot) && !alone;
        if alone {
            self.set(words, Occupied, quotient, false);
        }
        if inherited {
            // What follows begins the run in place of the one that goes.
            self.set(words, Continued, next, false);
        }
        let end = self.behind(words, slot, at_home).next(words, at_home).unwrap_or(next);
        let moving = self.distance(next, end);
        if moving > 0 {
            self.set(words, Shifted, slot, !inherited || slot != quotient);
            let (behind, runs_in) = if inherited { (next, moving - 1) } else { (slot, moving) };
            self.come_home(words, behind, runs_in, quotient);
        }
        self.close(words, slot, moving);
    }

    /// Of the runs that begin at the `moving` slots behind `slot`, and move back by one, marks as not shifted those that
    /// come to their quotients, which are the occupied ones behind `quotient`.
    fn come_home(&self, words: &mut [u64], slot: usize, moving: usize, quotient: usize) {
        let (mut heads, mut quotients) = (self.behind(words, slot, head), self.behind(words, quotient, occupied));
        while let (Some(head), Some(quotient)) = (heads.next(words, head), quotients.next(words, occupied)) {
            if self.distance(slot, head) > moving {
                return;
            }
            if self.next(quotient) == head {
                self.set(words, Shifted, quotient, false);
            }
        }
    }

    /// The slots behind one that have a bit, in order.
    #[inline(always)]
    fn behind(&self, words: &[u64], slot: usize, wanted: fn([u64; BITMAPS]) -> u64) -> Walk {
        let block = slot / 64;
        let found = wanted(self.bits(words, block)) & !1 << (slot % 64);
        Walk { slots: *self, block, found, blocks_left: self.blocks() }
    }

    /// Moves the entries of the `moving` slots after a slot back by one, and empties the last.
    fn close(&self, words: &mut [u64], slot: usize, mut moving: usize) {
        let (mut block, mut first) = (slot / 64, slot % 64);
        loop {
            let here = moving.min(63 - first);
            let last = first + here;
            let continued = &mut words[self.block(block) + Continued as usize];
            *continued = *continued & !ones(first..last + 1) | *continued >> 1 & ones(first..last);
            packed::move_down(&mut words[self.entries(block)], self.entry_bits, first + 1..last + 1);
            if moving == here {
                let vacant = block * 64 + last;
                self.set_entry(words, vacant, 0);
                return self.set(words, Shifted, vacant, false);
            }
            let (vacant, next) = (block * 64 + 63, self.next_block(block));
            self.set_entry(words, vacant, self.entry(words, next * 64));
            self.set(words, Continued, vacant, self.is(words, Continued, next * 64));
            (block, first, moving) = (next, 0, moving - here - 1);
        }
    }

    /// Steps from one slot to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.count - from }
    }

    fn blocks(&self) -> usize {
        self.count / 64
    }

    fn next_block(&self, block: usize) -> usize {
        if block + 1 == self.blocks() { 0 } else { block + 1 }
    }

    /// First word of a block.
    #[inline(always)]
    fn block(&self, block: usize) -> usize {
        self.start + block * (BITMAPS + self.entry_bits as usize)
    }

    #[inline(always)]
    fn bits(&self, words: &[u64], block: usize) -> [u64; BITMAPS] {
        let start = self.block(block);
        [words[start], words[start + 1], words[start + 2]]
    }

    /// The words of the entries of a block.
    #[inline(always)]
    fn entries(&self, block: usize) -> Range<usize> {
        let start = self.block(block) + BITMAPS;
        start..start + self.entry_bits as usize
    }
}

/// Slots of the ring that have a bit, one after the other.
struct Walk {
    slots: Slots,
    block: usize,
    /// Those of the block that are still to come.
    found: u64,
    blocks_left: usize,
}

impl Walk {
    /// The next slot, unless the ring has been walked round.
    #[inline(always)]
    fn next(&mut self, words: &[u64], wanted: fn([u64; BITMAPS]) -> u64) -> Option<usize> {
        while self.found == 0 {
            self.blocks_left = self.blocks_left.checked_sub(1)?;
            self.block = self.slots.next_block(self.block);
            self.found = wanted(self.slots.bits(words, self.block));
        }
        let slot = self.block * 64 + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(slot)
    }
}

/// Which slots of a block begin a run, or are empty.
#[inline(always)]
fn head([_, continued, _]: [u64; BITMAPS]) -> u64 {
    !continued
}

/// Which slots of a block are not shifted.
#[inline(always)]
fn at_home([.., shifted]: [u64; BITMAPS]) -> u64 {
    !shifted
}

/// Which quotients of a block have a run.
#[inline(always)]
fn occupied([occupied, ..]: [u64; BITMAPS]) -> u64 {
    occupied
}

/// Which slots of a block are empty.
#[inline(always)]
fn empty([occupied, continued, shifted]: [u64; BITMAPS]) -> u64 {
    !(occupied | continued | shifted)
}

/// The bits of a range within 0..64, set.
#[inline(always)]
fn ones(bits: Range<usize>) -> u64 {
    if bits.is_empty() { 0 } else { !0 >> (64 - (bits.end - bits.start)) << bits.start }
}
