//! The counting fingerprint table of a SWAMP: how often each fingerprint of the window occurs in it.
//!
//! A quotient filter (Bender et al., *Don't Thrash: How to Cache Your Hash on Flash*, VLDB 2012, section 3): a slot
//! stores the lower bits of a fingerprint, its remainder; the upper bits, its quotient, give its preferred place.
//! Fingerprints of one quotient lie side by side as a run, sorted; [`Slots`] places the runs. A removal moves later
//! entries back, so the slots are a function of the fingerprints alone, however long the stream.
//!
//! A count is written in bijective base 2, one digit of 1 or 2 a slot, the lowest first: a fingerprint that occurs n
//! times takes floor(log2(n + 1)) <= n adjacent slots of the same remainder. So W occurrences take at most W slots
//! whatever the stream, and a table of more than W slots always has room for them and an empty slot that ends every
//! search.
//!
//! Cells may come from a damaged file: every walk ends after as many steps as there are slots.

use super::slots::{SlotRun, Slots};

/// The place of a table in the words of its filter.
#[derive(Clone, Copy)]
pub struct CountingTable {
    /// The slots, as many as quotients.
    pub slots: Slots,
    /// Bits of a remainder.
    remainder_bits: u32,
    /// A one in the lowest bit of each entry of a word.
    each: u64,
    /// 2^16 divided by the bits of an entry, rounded up.
    per_bit: u32,
}

/// Remainder and digit of a slot, packed: the digit less 1 in the lowest bit.
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

impl CountingTable {
    /// Returns a table of `slots` slots, a multiple of 64, whose first word is `start`.
    pub fn new(start: usize, slots: usize, remainder_bits: u32) -> Self {
        let entry_bits = remainder_bits + 1;
        let each = (0..64 / entry_bits).fold(0, |each, i| each | 1 << (i * entry_bits));
        let per_bit = (1u32 << 16).div_ceil(entry_bits);
        Self { slots: Slots { start, count: slots, entry_bits }, remainder_bits, each, per_bit }
    }

    /// Returns the words to prefetch for a fingerprint, as long as its entries have not overflowed to another block.
    #[inline(always)]
    pub fn place(&self, fingerprint: u64) -> [usize; 3] {
        self.slots.place(self.quotient(fingerprint))
    }

    /// Returns how often a fingerprint is in the table.
    #[inline(always)]
    pub fn count(&self, words: &[u64], fingerprint: u64) -> u64 {
        let remainder = self.remainder(fingerprint);
        let Some(run) = self.slots.run(words, self.quotient(fingerprint)) else { return 0 };
        let (first, mut entry) = self.first(words, run, remainder);
        let (mut count, mut weight) = (0u64, 1u64);
        for step in first + 1..=run.length {
            if entry.remainder() != remainder {
                break;
            }
            count = count.saturating_add(weight.saturating_mul(entry.digit()));
            weight = weight.saturating_mul(2);
            entry = self.entry(words, run, step);
        }
        count
    }

    /// Adds an occurrence of a fingerprint. Returns false if there is no room, which happens only in damaged tables.
    #[must_use]
    pub fn add(&self, words: &mut [u64], fingerprint: u64) -> bool {
        let (slots, quotient, remainder) = (self.slots, self.quotient(fingerprint), self.remainder(fingerprint));
        let Some(run) = slots.run(words, quotient) else { return false };
        let (mut step, mut entry) = self.first(words, run, remainder);
        while step < run.length && entry.remainder() == remainder {
            // 1 becomes 2; 2 becomes 1 with a carry, to the next digit or as a new one.
            slots.set_entry(words, run, step, Entry::new(remainder, 3 - entry.digit()).0);
            if entry.digit() == 1 {
                return true;
            }
            step += 1;
            entry = self.entry(words, run, step);
        }
        slots.insert(words, quotient, run, step, Entry::new(remainder, 1).0)
    }

    /// Removes an occurrence of a fingerprint; does nothing if there is none.
    pub fn remove(&self, words: &mut [u64], fingerprint: u64) {
        let (slots, quotient, remainder) = (self.slots, self.quotient(fingerprint), self.remainder(fingerprint));
        let Some(run) = slots.run(words, quotient) else { return };
        let (mut step, mut entry) = self.first(words, run, remainder);
        while step < run.length && entry.remainder() == remainder {
            if entry.digit() == 2 {
                return slots.set_entry(words, run, step, Entry::new(remainder, 1).0);
            }
            step += 1;
            entry = self.entry(words, run, step);
            if step == run.length || entry.remainder() != remainder {
                return slots.remove(words, quotient, run, step - 1);
            }
            // 1 becomes 2, with a borrow from the next digit.
            slots.set_entry(words, run, step - 1, Entry::new(remainder, 2).0);
        }
    }

    /// Returns the first step in a run whose remainder is not less than `remainder`, and the entry there.
    #[inline(always)]
    fn first(&self, words: &[u64], run: SlotRun, remainder: u64) -> (usize, Entry) {
        let Some(entries) = self.slots.window(words, run) else { return self.first_of_many(words, run, remainder) };
        // All entries at once: the subtraction borrows the guard bit above each lesser remainder.
        let above = self.each << self.remainder_bits;
        let remainders = entries >> 1 & (above - self.each);
        let not_less = ((remainders | above) - remainder * self.each) & above;
        let behind = 1u64.checked_shl(run.length as u32 * self.slots.entry_bits).unwrap_or(0);
        let step = (not_less | behind).trailing_zeros();
        let step = (step * self.per_bit) >> 16;
        let entry = entries.wrapping_shr(step * self.slots.entry_bits) & !(!0 << self.slots.entry_bits);
        (step as usize, Entry(entry))
    }

    /// Returns what [`first`](Self::first) does, for a long run or one across blocks.
    #[cold]
    fn first_of_many(&self, words: &[u64], run: SlotRun, remainder: u64) -> (usize, Entry) {
        let at = |step| self.entry(words, run, step);
        let step = (0..run.length).find(|&step| at(step).remainder() >= remainder).unwrap_or(run.length);
        (step, at(step))
    }

    /// Returns the number of different fingerprints in the table.
    pub fn distinct(&self, words: &[u64]) -> u64 {
        self.distinct_in(words, self.slots.blocks())
    }

    /// Returns the number of different fingerprints in the first `blocks` blocks.
    pub fn distinct_in(&self, words: &[u64], blocks: usize) -> u64 {
        let remainder = |slot| Entry(self.slots.entry_in(words, slot)).remainder();
        let first_digit = |&slot: &usize| {
            !self.slots.is_continued(words, slot)
                || remainder(slot.checked_sub(1).unwrap_or(self.slots.count - 1)) != remainder(slot)
        };
        let slots = |block| (block * 64..).take(self.slots.used(words, block));
        (0..blocks).flat_map(slots).filter(first_digit).count() as u64
    }

    /// Returns the sum of `of` over all occurrences of all fingerprints, modulo 2^64; `None` if no insertions could
    /// have left these cells.
    pub fn sum(&self, words: &[u64], of: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut sum, mut before, mut weight) = (0u64, 0, 0u64);
        let sound = self.slots.walk(words, |quotient, slot, first| {
            let entry = Entry(self.slots.entry_in(words, slot));
            let fingerprint = (quotient as u64) << self.remainder_bits | entry.remainder();
            let again = !first && fingerprint == before;
            // No fingerprint occurs 2^63 times.
            if again && weight >> 62 != 0 || !first && fingerprint < before {
                return false;
            }
            weight = if again { 2 * weight } else { 1 };
            sum = sum.wrapping_add(of(fingerprint).wrapping_mul(weight * entry.digit()));
            before = fingerprint;
            true
        });
        sound.then_some(sum)
    }

    /// Returns the number of slots in use.
    pub fn used(&self, words: &[u64]) -> u64 {
        (0..self.slots.blocks()).map(|block| self.slots.used(words, block) as u64).sum()
    }

    /// Returns the upper bits of a fingerprint.
    fn quotient(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.remainder_bits) as usize
    }

    /// Returns the lower bits of a fingerprint.
    fn remainder(&self, fingerprint: u64) -> u64 {
        fingerprint & !(u64::MAX << self.remainder_bits)
    }

    /// Returns the entry at a step of a run.
    #[inline(always)]
    fn entry(&self, words: &[u64], run: SlotRun, step: usize) -> Entry {
        Entry(self.slots.entry(words, run, step))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Adds a stream of fingerprints, some of them frequent, of which only the last `window` stay in the table.
    #[test]
    fn counts_equal_those_of_a_map() {
        let shapes = [(64, 0, 63), (64, 2, 63), (64, 1, 10), (128, 5, 100), (192, 20, 191), (1024, 10, 1023)];
        for (slots, remainder_bits, window) in shapes {
            let table = CountingTable::new(3, slots, remainder_bits);
            let empty = vec![0; 3 + slots / 64 * (4 + remainder_bits as usize)];
            let mut words = empty.clone();
            let fingerprints = (slots as u64) << remainder_bits;
            let mut counts = BTreeMap::new();
            let mut stream = Vec::new();
            let mut state = 1u64;
            for n in 0..20_000 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                // A thousand fingerprints each are equal, near the end of the table, of a few quotients, or anywhere.
                let fingerprint = match n / 1000 % 5 {
                    0 => fingerprints / 3,
                    1 => fingerprints - 1 - (state >> 60).min(fingerprints - 1),
                    2 => (state >> 33) % 8 * (fingerprints / 8),
                    3 => fingerprints - 1 - (state >> 33) % fingerprints.min(900),
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
                assert!(table.add(&mut words, fingerprint));
                *counts.entry(fingerprint).or_insert(0) += 1;
                assert_eq!(table.count(&words, fingerprint), counts[&fingerprint]);
                if n % 97 == 0 {
                    for &other in &stream {
                        assert_eq!(table.count(&words, other), counts.get(&other).copied().unwrap_or(0));
                    }
                    assert_eq!(table.distinct(&words), counts.len() as u64);
                    let cube = |fingerprint: u64| fingerprint.wrapping_pow(3) + 1;
                    let sum = |sum: u64, (&of, &n): (&u64, &u64)| sum.wrapping_add(cube(of).wrapping_mul(n));
                    assert_eq!(table.sum(&words, cube), Some(counts.iter().fold(0, sum)));
                    let digits = |count: &u64| u64::from((count + 1).ilog2());
                    assert_eq!(table.used(&words), counts.values().map(digits).sum::<u64>());
                    let mut fresh = empty.clone();
                    for (&fingerprint, &count) in &counts {
                        assert!((0..count).all(|_| table.add(&mut fresh, fingerprint)));
                    }
                    assert!(words == fresh, "the words are a function of the fingerprints alone");
                }
            }
            table.remove(&mut words, fingerprints - 1 - stream[stream.len() - 1]);
            for &fingerprint in &stream[stream.len() - window..] {
                table.remove(&mut words, fingerprint);
                table.remove(&mut words, fingerprint);
            }
            assert!(
                words.iter().all(|&word| word == 0),
                "removals leave zeros, and absent fingerprints change nothing"
            );
        }
    }
}
