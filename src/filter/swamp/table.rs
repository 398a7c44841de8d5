//! The counting fingerprint table of a SWAMP: how often each fingerprint of the window occurs in it.
//!
//! A quotient filter (Bender et al., *Don't Thrash: How to Cache Your Hash on Flash*, VLDB 2012, section 3): a slot keeps
//! the lower bits of a fingerprint, its remainder, and the upper ones, its quotient, say where it wants to lie.
//! Fingerprints of one quotient lie side by side as a run, sorted, runs are in the order of their quotients, and three bits a slot
//! tell where each belongs: has its quotient a run (`Occupied`), does the slot go on with a run (`Continued`), was it
//! pushed from its place (`Shifted`). Deletion moves what follows back, so the slots are a function of the
//! fingerprints alone and nothing piles up however long the stream.
//!
//! A count is written in the bijective base 2, one digit of 1 or 2 a slot, the lowest first: a fingerprint that occurs
//! n times takes floor(log2(n + 1)) slots, neighbours of the same remainder. That is at most n. So W occurrences take at
//! most W slots whatever the stream, and a table of more than W slots always has room for them and an empty one that
//! ends every search.
//!
//! Cells may come from a damaged file: every walk ends after as many steps as there are slots.

use super::slots::Bit::{Continued, Occupied};
use super::slots::Slots;

/// Where a table lies in the words of its filter.
#[derive(Clone, Copy)]
pub struct Table {
    /// As many as there are quotients.
    pub slots: Slots,
    /// Bits of a remainder.
    remainder_bits: u32,
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
    /// A table whose first word is `start`, of a multiple of 64 slots.
    pub fn new(start: usize, slots: usize, remainder_bits: u32) -> Self {
        Self { slots: Slots { start, count: slots, entry_bits: remainder_bits + 1 }, remainder_bits }
    }

    /// The words that tell of a fingerprint, but for pushed slots.
    #[inline(always)]
    pub fn place(&self, fingerprint: u64) -> [usize; 2] {
        self.slots.place(self.quotient(fingerprint))
    }

    /// How often a fingerprint is in the table.
    pub fn count(&self, words: &[u64], fingerprint: u64) -> u64 {
        let quotient = self.quotient(fingerprint);
        if !self.slots.is(words, Occupied, quotient) {
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
        let (slots, quotient, remainder) = (self.slots, self.quotient(fingerprint), self.remainder(fingerprint));
        let first = Entry::new(remainder, 1);
        if slots.is_empty(words, quotient) {
            slots.set(words, Occupied, quotient, true);
            return slots.set_entry(words, quotient, first.0);
        }
        if !slots.is(words, Occupied, quotient) {
            slots.set(words, Occupied, quotient, true);
            let start = slots.run_start(words, quotient);
            return slots.push(words, start, first.0, false, start != quotient);
        }
        let start = slots.run_start(words, quotient);
        let mut slot = start;
        loop {
            let entry = self.entry(words, slot);
            if entry.remainder() > remainder {
                break;
            }
            if entry.remainder() == remainder {
                // 1 becomes 2, and 2 becomes 1 with one to carry: to the next digit, or as a new one.
                slots.set_entry(words, slot, Entry::new(remainder, 3 - entry.digit()).0);
                if entry.digit() == 1 {
                    return;
                }
            }
            slot = slots.next(slot);
            if slot == start || !slots.is(words, Continued, slot) {
                break;
            }
        }
        if slot == start {
            // What began the run now goes on with it.
            slots.set(words, Continued, start, true);
        }
        slots.push(words, slot, first.0, slot != start, slot != quotient);
    }

    /// Counts one occurrence of a fingerprint less; nothing if there is none.
    pub fn remove(&self, words: &mut [u64], fingerprint: u64) {
        let (slots, quotient, remainder) = (self.slots, self.quotient(fingerprint), self.remainder(fingerprint));
        if !slots.is(words, Occupied, quotient) {
            return;
        }
        let first = self.run(words, quotient).find(|&slot| self.entry(words, slot).remainder() == remainder);
        let Some(mut slot) = first else { return };
        for _ in 0..slots.count {
            if self.entry(words, slot).digit() == 2 {
                return slots.set_entry(words, slot, Entry::new(remainder, 1).0);
            }
            let next = slots.next(slot);
            if !slots.is(words, Continued, next) || self.entry(words, next).remainder() != remainder {
                return slots.pull(words, slot, quotient);
            }
            // 1 becomes 2, with one to borrow from the next digit.
            slots.set_entry(words, slot, Entry::new(remainder, 2).0);
            slot = next;
        }
    }

    /// How many different fingerprints are in the table.
    pub fn distinct(&self, words: &[u64]) -> u64 {
        self.distinct_in(words, self.slots.count)
    }

    /// How many of them are in the first `slots` slots.
    pub fn distinct_in(&self, words: &[u64], slots: usize) -> u64 {
        let first_digit = |&slot: &usize| {
            let before = if slot == 0 { self.slots.count - 1 } else { slot - 1 };
            let goes_on = self.slots.is(words, Continued, slot)
                && self.entry(words, before).remainder() == self.entry(words, slot).remainder();
            !self.slots.is_empty(words, slot) && !goes_on
        };
        (0..slots).filter(first_digit).count() as u64
    }

    /// Slots in use.
    pub fn used(&self, words: &[u64]) -> u64 {
        (0..self.slots.count).filter(|&slot| !self.slots.is_empty(words, slot)).count() as u64
    }

    /// The slots of the run of a quotient that has one.
    fn run(&self, words: &[u64], quotient: usize) -> impl Iterator<Item = usize> {
        let start = self.slots.run_start(words, quotient);
        let mut next = Some(start);
        std::iter::from_fn(move || {
            let slot = next?;
            next = Some(self.slots.next(slot)).filter(|&slot| slot != start && self.slots.is(words, Continued, slot));
            Some(slot)
        })
    }

    fn quotient(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.remainder_bits) as usize
    }

    fn remainder(&self, fingerprint: u64) -> u64 {
        fingerprint & !(u64::MAX << self.remainder_bits)
    }

    fn entry(&self, words: &[u64], slot: usize) -> Entry {
        Entry(self.slots.entry(words, slot))
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
            let table = Table::new(3, slots, remainder_bits);
            let mut words = vec![0; 3 + slots / 64 * (4 + remainder_bits as usize)];
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
