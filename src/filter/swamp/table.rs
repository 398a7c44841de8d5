//! The counting fingerprint table of a SWAMP: how often each fingerprint of the window occurs in it.
//!
//! A quotient filter (Bender et al., *Don't Thrash: How to Cache Your Hash on Flash*, VLDB 2012, section 3): a slot keeps
//! the lower bits of a fingerprint, its remainder, and the upper ones, its quotient, say where it wants to lie.
//! Fingerprints of one quotient lie side by side as a run, sorted, runs are in the order of their quotients, and three bits a slot
//! tell where each belongs: has its quotient a run (`OCCUPIED`), does the slot go on with a run (`CONTINUED`), was it
//! pushed from its place (`SHIFTED`). Deletion moves what follows back, so the slots are a function of the
//! fingerprints alone and nothing piles up however long the stream.
//!
//! A count is written in the bijective base 2, one digit of 1 or 2 a slot, the lowest first: a fingerprint that occurs
//! n times takes floor(log2(n + 1)) slots, neighbours of the same remainder. That is at most n. So W occurrences take at
//! most W slots whatever the stream, and a table of more than W slots always has room for them and an empty one that
//! ends every search.
//!
//! Cells may come from a damaged file: every walk ends after as many steps as there are slots.

use crate::packed;

/// Bitmaps of a block of 64 slots, each a word; behind them lie the slots' remainders and digits.
const OCCUPIED: usize = 0;
const CONTINUED: usize = 1;
const SHIFTED: usize = 2;
const BITMAPS: usize = 3;

/// Where a table lies in the words of its filter.
#[derive(Clone, Copy)]
pub struct Table {
    /// Its first word.
    pub start: usize,
    /// Slots, a multiple of 64, and quotients.
    pub slots: usize,
    /// Bits of a remainder.
    pub remainder_bits: u32,
}

/// Remainder and digit of a slot, as they are packed: the digit less 1 in the lowest bit.
#[derive(Clone, Copy, PartialEq)]
struct Entry(u64);

impl Entry {
    fn new(remainder: u64, digit: u64) -> Self {
        Self(remainder << 1 | (digit - 1))
    }

    fn remainder(self) -> u64 {
        self.0 >> 1
    }

    fn digit(self) -> u64 {
        (self.0 & 1) + 1
    }
}

impl Table {
    /// The word that tells of the quotient of a fingerprint: where to look for it, but for pushed slots.
    pub fn word(&self, fingerprint: u64) -> usize {
        self.block(self.quotient(fingerprint))
    }

    /// How often a fingerprint is in the table.
    pub fn count(&self, words: &[u64], fingerprint: u64) -> u64 {
        let quotient = self.quotient(fingerprint);
        if !self.is(words, OCCUPIED, quotient) {
            return 0;
        }
        let (mut count, mut weight) = (0u64, 1u64);
        for slot in self.run(words, quotient) {
            let entry = self.entry(words, slot);
            if entry.remainder() == self.remainder(fingerprint) {
                count = count.saturating_add(weight.saturating_mul(entry.digit()));
                weight = weight.saturating_mul(2);
            } else if entry.remainder() > self.remainder(fingerprint) {
                break;
            }
        }
        count
    }

    /// Counts one more occurrence of a fingerprint.
    pub fn add(&self, words: &mut [u64], fingerprint: u64) {
        let (quotient, remainder) = (self.quotient(fingerprint), self.remainder(fingerprint));
        if self.is_empty(words, quotient) {
            self.set(words, OCCUPIED, quotient, true);
            self.set_entry(words, quotient, Entry::new(remainder, 1));
            return;
        }
        if !self.is(words, OCCUPIED, quotient) {
            self.set(words, OCCUPIED, quotient, true);
            let start = self.run_start(words, quotient);
            return self.push(words, start, Entry::new(remainder, 1), false, start != quotient);
        }
        let start = self.run_start(words, quotient);
        let mut slot = start;
        loop {
            let entry = self.entry(words, slot);
            if entry.remainder() > remainder {
                break;
            }
            if entry.remainder() == remainder {
                // 1 becomes 2, and 2 becomes 1 with one to carry: to the next digit, or as a new one.
                self.set_entry(words, slot, Entry::new(remainder, 3 - entry.digit()));
                if entry.digit() == 1 {
                    return;
                }
            }
            slot = self.next(slot);
            if slot == start || !self.is(words, CONTINUED, slot) {
                break;
            }
        }
        if slot == start {
            // What began the run now goes on with it.
            self.set(words, CONTINUED, start, true);
        }
        self.push(words, slot, Entry::new(remainder, 1), slot != start, slot != quotient);
    }

    /// Counts one occurrence of a fingerprint less; nothing if there is none.
    pub fn remove(&self, words: &mut [u64], fingerprint: u64) {
        let (quotient, remainder) = (self.quotient(fingerprint), self.remainder(fingerprint));
        if !self.is(words, OCCUPIED, quotient) {
            return;
        }
        let first = self.run(words, quotient).find(|&slot| self.entry(words, slot).remainder() == remainder);
        let Some(mut slot) = first else { return };
        for _ in 0..self.slots {
            if self.entry(words, slot).digit() == 2 {
                return self.set_entry(words, slot, Entry::new(remainder, 1));
            }
            let next = self.next(slot);
            if !self.is(words, CONTINUED, next) || self.entry(words, next).remainder() != remainder {
                return self.pull(words, slot, quotient);
            }
            // 1 becomes 2, with one to borrow from the next digit.
            self.set_entry(words, slot, Entry::new(remainder, 2));
            slot = next;
        }
    }

    /// How many different fingerprints are in the table.
    pub fn distinct(&self, words: &[u64]) -> u64 {
        let first_digit = |&slot: &usize| {
            let before = if slot == 0 { self.slots - 1 } else { slot - 1 };
            let goes_on = self.is(words, CONTINUED, slot)
                && self.entry(words, before).remainder() == self.entry(words, slot).remainder();
            !self.is_empty(words, slot) && !goes_on
        };
        (0..self.slots).filter(first_digit).count() as u64
    }

    /// Slots in use.
    pub fn used(&self, words: &[u64]) -> u64 {
        (0..self.slots).filter(|&slot| !self.is_empty(words, slot)).count() as u64
    }

    /// Puts an entry at a slot and moves those there on, up to the next empty slot.
    fn push(&self, words: &mut [u64], slot: usize, entry: Entry, continued: bool, shifted: bool) {
        let (mut slot, mut entry, mut continued, mut shifted) = (slot, entry, continued, shifted);
        for _ in 0..self.slots {
            let last = self.is_empty(words, slot);
            let pushed = (self.entry(words, slot), self.is(words, CONTINUED, slot));
            self.write(words, slot, entry, continued, shifted);
            if last {
                return;
            }
            (entry, continued) = pushed;
            shifted = true;
            slot = self.next(slot);
        }
    }

    /// Takes away the entry at a slot, of the run of `quotient`, and moves those pushed from their places back.
    fn pull(&self, words: &mut [u64], slot: usize, quotient: usize) {
        let (mut hole, mut quotient) = (slot, quotient);
        // Whether the next entry to move begins its run in place of the one that went.
        let mut inherits = !self.is(words, CONTINUED, hole) && self.is(words, CONTINUED, self.next(hole));
        if !self.is(words, CONTINUED, hole) && !inherits {
            self.set(words, OCCUPIED, quotient, false);
        }
        for _ in 0..self.slots {
            let next = self.next(hole);
            if !self.is(words, SHIFTED, next) {
                break;
            }
            let continued = self.is(words, CONTINUED, next) && !inherits;
            if !continued && !inherits {
                quotient = self.next_occupied(words, quotient);
            }
            inherits = false;
            self.write(words, hole, self.entry(words, next), continued, hole != quotient);
            hole = next;
        }
        self.write(words, hole, Entry(0), false, false);
    }

    /// The slots of the run of a quotient that has one.
    fn run(&self, words: &[u64], quotient: usize) -> impl Iterator<Item = usize> {
        let start = self.run_start(words, quotient);
        let mut next = Some(start);
        std::iter::from_fn(move || {
            let slot = next?;
            next = Some(self.next(slot)).filter(|&slot| slot != start && self.is(words, CONTINUED, slot));
            Some(slot)
        })
    }

    /// Where the run of an occupied quotient begins, or is to begin.
    ///
    /// The cluster of pushed entries around it begins at a slot that is not shifted. From there on as many runs come
    /// before it as quotients are occupied between that slot and its own.
    fn run_start(&self, words: &[u64], quotient: usize) -> usize {
        let (mut slot, mut runs) = (quotient, 0);
        for _ in 0..self.slots {
            if !self.is(words, SHIFTED, slot) {
                break;
            }
            runs += u32::from(self.is(words, OCCUPIED, slot));
            slot = if slot == 0 { self.slots - 1 } else { slot - 1 };
        }
        for _ in 0..self.slots {
            if runs == 0 {
                break;
            }
            slot = self.next(slot);
            runs -= u32::from(!self.is(words, CONTINUED, slot));
        }
        slot
    }

    /// The first occupied quotient after one.
    fn next_occupied(&self, words: &[u64], quotient: usize) -> usize {
        let mut next = self.next(quotient);
        while next != quotient && !self.is(words, OCCUPIED, next) {
            next = self.next(next);
        }
        next
    }

    fn quotient(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.remainder_bits) as usize
    }

    fn remainder(&self, fingerprint: u64) -> u64 {
        fingerprint & !(u64::MAX << self.remainder_bits)
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }

    /// First word of the block of a slot.
    fn block(&self, slot: usize) -> usize {
        self.start + slot / 64 * (BITMAPS + self.entry_bits() as usize)
    }

    fn entry_bits(&self) -> u32 {
        self.remainder_bits + 1
    }

    fn is_empty(&self, words: &[u64], slot: usize) -> bool {
        let block = self.block(slot);
        (words[block + OCCUPIED] | words[block + CONTINUED] | words[block + SHIFTED]) >> (slot % 64) & 1 == 0
    }

    fn is(&self, words: &[u64], bitmap: usize, slot: usize) -> bool {
        words[self.block(slot) + bitmap] >> (slot % 64) & 1 == 1
    }

    fn set(&self, words: &mut [u64], bitmap: usize, slot: usize, value: bool) {
        let word = &mut words[self.block(slot) + bitmap];
        *word = *word & !(1 << (slot % 64)) | u64::from(value) << (slot % 64);
    }

    fn entry(&self, words: &[u64], slot: usize) -> Entry {
        Entry(packed::get(&words[self.block(slot) + BITMAPS..], self.entry_bits(), slot % 64))
    }

    fn set_entry(&self, words: &mut [u64], slot: usize, entry: Entry) {
        let start = self.block(slot) + BITMAPS;
        packed::set(&mut words[start..], self.entry_bits(), slot % 64, entry.0);
    }

    fn write(&self, words: &mut [u64], slot: usize, entry: Entry, continued: bool, shifted: bool) {
        self.set_entry(words, slot, entry);
        self.set(words, CONTINUED, slot, continued);
        self.set(words, SHIFTED, slot, shifted);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A stream of fingerprints in which some are frequent, and the last of `window` that leave the table again.
    #[test]
    fn counts_are_those_of_a_map() {
        for (slots, remainder_bits, window) in [(64, 0, 63), (64, 2, 63), (64, 1, 10), (128, 5, 100), (192, 20, 191)] {
            let table = Table { start: 3, slots, remainder_bits };
            let mut words = vec![0; 3 + slots / 64 * (BITMAPS + table.entry_bits() as usize)];
            let fingerprints = (slots as u64) << remainder_bits;
            let mut counts = BTreeMap::new();
            let mut stream = Vec::new();
            let mut state = 1u64;
            for n in 0..20_000 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                // All alike for a while, all near the end of the table for another, else anywhere.
                let fingerprint = match n / 1000 % 4 {
                    0 => fingerprints / 3,
                    1 => fingerprints - 1 - (state >> 60).min(fingerprints - 1),
                    2 => (state >> 33) % 8 * (fingerprints / 8),
                    _ => (state >> 33) % fingerprints,
                };
                if n >= window {
                    let gone = stream[n - window];
                    table.remove(&mut words, gone);
                    let count: &mut u64 = counts.get_mut(&gone).unwrap();
                    *count -= 1;
                    if *count == 0 {
                        counts.remove(&gone);
                    }
                }
                stream.push(fingerprint);
                table.add(&mut words, fingerprint);
                *counts.entry(fingerprint).or_insert(0) += 1;
                assert_eq!(table.count(&words, fingerprint), counts[&fingerprint]);
                if n % 97 == 0 {
                    for &other in &stream {
                        assert_eq!(table.count(&words, other), counts.get(&other).copied().unwrap_or(0));
                    }
                    assert_eq!(table.distinct(&words), counts.len() as u64);
                    let digits = |count: &u64| u64::from((count + 1).ilog2());
                    assert_eq!(table.used(&words), counts.values().map(digits).sum::<u64>());
                }
            }
            table.remove(&mut words, fingerprints - 1 - stream[stream.len() - 1]);
            for &fingerprint in &stream[stream.len() - window..] {
                table.remove(&mut words, fingerprint);
                table.remove(&mut words, fingerprint);
            }
            assert!(words.iter().all(|&word| word == 0), "nothing is left, and what is not there is not taken");
        }
    }
}
