//! Counts of how often each key was inserted, in a filter that counts.
//!
//! An entry has a count above its tag: the insertions of the key in the epoch of the tag, less one, as far as the count
//! has bits for them. A key that is inserted in another epoch gets another entry, of the same location and with the tag
//! of that epoch, so that each occurrence expires in its own time. The count of a key is the sum over all of its
//! entries.
//!
//! Such entries must not take the room that other keys need. If the home line is full, the youngest entry of the key
//! gets the tag of the open epoch instead. A full line merges two entries of one key before it evicts any: it adds
//! their counts and keeps the younger tag. Occurrences are then counted for longer, and none is lost. In the worst case
//! every key has one entry, as in a filter that does not count, so memory and rate are as planned.
//!
//! A fingerprint in the overflow line has a count too. A rejected key counts as often as a count can show.

use std::ops::Range;

use super::format::{Format, Line};
use super::pages::{Location, Pages};
use super::run::{Operation, RunCells};
use super::slots::Slots;
use super::{EpochRotation, Quotient, overflow};
use crate::family::abilities;

impl Format {
    /// Returns the greatest number of insertions that one entry can count.
    fn most(&self) -> u32 {
        1 << self.count_bits
    }

    /// Returns the number of different keys with entries in a line. The entries of one key are in one run.
    pub fn keys(&self, line: &Line) -> u32 {
        let (ends, mut run, mut keys) = (self.ends.get(line), 0, 0);
        for slot in 0..self.used(line) {
            let fingerprint = self.fingerprint_in(line, slot);
            keys += u32::from((run..slot).all(|other| self.fingerprint_in(line, other) != fingerprint));
            run = if ends >> slot & 1 == 1 { slot + 1 } else { run };
        }
        keys
    }

    /// Returns the sum of two counts of a key. Each is stored less one, and so is the sum.
    pub fn add_counts(&self, one: u32, other: u32) -> u32 {
        (one + other + 1).min(self.most() - 1)
    }
}

impl Pages {
    /// Returns the entries of a key in the lines of a page: line and slot of each.
    #[inline(always)]
    pub fn entries_of<M: Slots>(
        &self,
        machine: M,
        page: &[Line],
        location: &Location,
    ) -> impl Iterator<Item = (usize, u32)> + use<M> {
        let (format, at_home) = (self.format, location.line as usize + 1);
        let home = &page[at_home];
        let (mut at, mut slots) = (at_home, 0);
        if let Some(evictable) = self.evicted(home, location.bucket) {
            at = self.alternate_line(location.line, evictable, location.fingerprint) as usize + 1;
            slots = format.find(machine, &page[at], format.shape.buckets + evictable, location.fingerprint);
        }
        let each = |line, slots| each_bit(slots).map(move |slot| (line, slot));
        each(at_home, format.find(machine, home, location.bucket, location.fingerprint)).chain(each(at, slots))
    }

    /// Inserts a key with this tag, counts the insertion, and returns whether the page contained the key.
    #[inline(always)]
    fn count_insert<M: Slots>(&self, machine: M, page: &mut [Line], location: &Location, tag: u32) -> bool {
        let (format, home) = (self.format, location.line as usize + 1);
        let age = |page: &[Line], (line, slot)| format.age(tag, self.tag_of(page, line, slot));
        let youngest = self.entries_of(machine, page, location).min_by_key(|&entry| age(page, entry));
        match youngest {
            // An entry that is no longer retained is used again.
            Some((line, slot)) if age(page, (line, slot)) >= self.retained => {
                machine.set_tag(format, &mut page[line], slot, tag);
                format.set_count(&mut page[line], slot, 0);
                false
            }
            Some((line, slot)) if age(page, (line, slot)) == 0 || format.full(&page[home]) => {
                machine.set_tag(format, &mut page[line], slot, tag);
                let count = format.count(&page[line], slot);
                format.set_count(&mut page[line], slot, format.add_counts(count, 0));
                true
            }
            Some(_) => {
                self.insert_new(machine, page, location, tag, tag);
                true
            }
            None => {
                let fingerprint = self.overflow_fingerprint(location);
                let flagged = format.flagged(&page[home]);
                let retained = |tags: Option<u32>| flagged && tags.is_some_and(|old| self.is_retained(tag, old));
                let present = retained(overflow::entry_of(format, &page[0], fingerprint).map(|(old, _)| old));
                if flagged && overflow::renew(format, &mut page[0], fingerprint, tag) {
                    return present;
                }
                let present = retained(overflow::rejected(format, &page[0]));
                self.insert_new(machine, page, location, tag, tag);
                present
            }
        }
    }

    /// Returns how often a key was inserted in the last `retained` epochs. It is never too low, up to the greatest
    /// number that a count can show.
    #[inline(always)]
    fn count_of<M: Slots>(&self, machine: M, page: &[Line], location: &Location, now: u32, retained: u32) -> u64 {
        let (format, home) = (self.format, &page[location.line as usize + 1]);
        let counts = |tag: u32| format.age(now, tag) < retained;
        let entries =
            self.entries_of(machine, page, location).filter(|&(line, slot)| counts(self.tag_of(page, line, slot)));
        let mut sum: u64 = entries.map(|(line, slot)| 1 + u64::from(format.count(&page[line], slot))).sum();
        if format.flagged(home) {
            let entry = overflow::entry_of(format, &page[0], self.overflow_fingerprint(location));
            sum += entry.filter(|&(tag, _)| counts(tag)).map_or(0, |(_, count)| 1 + u64::from(count));
            sum += overflow::rejected(format, &page[0]).filter(|&tag| counts(tag)).map_or(0, |_| format.most().into());
        }
        sum
    }

    /// Merges two entries of one key in a line, if there are any. Returns whether it did.
    #[inline(always)]
    pub fn merge_one<M: Slots>(&self, machine: M, page: &mut [Line], at: usize, now: u32) -> bool {
        let (format, line) = (self.format, &mut page[at]);
        for slot in 0..format.used(line) {
            let (bucket, value) = (format.bucket(machine, line, slot), format.value(line, slot));
            let others = format.find(machine, line, bucket, format.fingerprint(value)) & !(1 << slot);
            if others != 0 {
                let other = others.trailing_zeros();
                let (tag, old) = (format.tag(value), format.tag_in(line, other));
                let counts = [slot, other].map(|slot| format.count(line, slot));
                let count = match [tag, old].map(|tag| self.is_retained(now, tag)) {
                    [true, true] => format.add_counts(counts[0], counts[1]),
                    [one, _] => counts[usize::from(!one)],
                };
                if format.age(now, tag) < format.age(now, old) {
                    machine.set_tag(format, line, other, tag);
                }
                format.set_count(line, other, count);
                format.remove(machine, line, slot, bucket);
                return true;
            }
        }
        false
    }

    /// Merges an entry of another page with the same locations: adds its count to that of the same key and epoch.
    #[inline(always)]
    pub fn merge_counted<M: Slots>(
        &self,
        machine: M,
        page: &mut [Line],
        location: &Location,
        tag_and_count: u32,
        now: u32,
    ) {
        let format = self.format;
        let (tag, count) = format.split_tag_and_count(tag_and_count);
        let same = self.entries_of(machine, page, location).find(|&(line, slot)| self.tag_of(page, line, slot) == tag);
        match same {
            Some((line, slot)) => {
                let both = format.add_counts(format.count(&page[line], slot), count);
                format.set_count(&mut page[line], slot, both);
            }
            None => self.insert_counted(machine, page, location, tag_and_count, now),
        }
    }
}

/// Returns the numbers of the bits that are set.
fn each_bit(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}

impl Quotient {
    /// Returns whether the filter counts how often keys are inserted.
    pub fn counts(&self) -> bool {
        self.pages.format.count_bits > 0
    }
}

impl abilities::Count<EpochRotation> for Quotient {
    fn count_run(&self, words: &[u64], rotation: EpochRotation, hashes: &[u64], run: Range<usize>, counts: &mut [u64]) {
        self.for_each(words.as_chunks().0, rotation, hashes, run, CountKeys { counts });
    }
}

/// Inserts and counts the keys. Writes which keys the pages contained, unless `seen` is empty.
pub struct CountInsert<'a> {
    pub seen: &'a mut [bool],
}

impl Operation<&mut [Line]> for CountInsert<'_> {
    const INSERTS: bool = true;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &mut [Line]>, i: usize, location: &Location) {
        let (pages, tag) = (cells.pages, cells.tag(location));
        let present = pages.count_insert(machine, cells.page_mut(location), location, tag);
        if let Some(seen) = self.seen.get_mut(i) {
            *seen = present;
        }
    }
}

/// Writes how often the keys were inserted.
struct CountKeys<'a> {
    counts: &'a mut [u64],
}

impl Operation<&[Line]> for CountKeys<'_> {
    const INSERTS: bool = false;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &[Line]>, i: usize, location: &Location) {
        let (page, now, retained) = (cells.page(location), cells.tag(location), cells.retained(location));
        self.counts[i] = cells.pages.count_of(machine, page, location, now, retained);
    }
}
