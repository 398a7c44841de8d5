//! How often keys came, in a filter that counts.
//!
//! An entry has a count above its tag: how often the key came in the epoch of the tag, less one, as far as the count
//! has bits for it. A key that comes again in another epoch gets another entry, of the same place and with the tag of
//! that epoch, so that its occurrences expire as they came. All entries of a key together say how often it was there.
//!
//! Such entries must not take the room that other keys need. Where a line is full, a key's youngest entry gets the
//! tag of the open epoch instead, and a full line merges two entries of one key before it sends any away: their counts
//! are added, with the younger of their tags. Occurrences are then kept for longer, and none is lost. In the worst case
//! every key has one entry, as in a filter that does not count, so that memory and rate are as planned.
//!
//! In the spare line a print has a count too. Keys that were turned away may have come as often as a count can tell.

use std::ops::Range;

use super::format::{Format, Line};
use super::place::{Pages, Place};
use super::run::{ForEach, Operation};
use super::slots::Slots;
use super::{Quotient, Rotation, spare};
use crate::layout::abilities;

impl Format {
    /// The most that a count tells.
    fn most(&self) -> u32 {
        1 << self.count_bits
    }

    /// Keys that have entries in a line: those of one key are in one run.
    pub fn keys(&self, line: &Line) -> u32 {
        let (ends, mut run, mut keys) = (self.ends.get(line), 0, 0);
        for slot in 0..self.used(line) {
            let print = self.print_in(line, slot);
            keys += u32::from((run..slot).all(|other| self.print_in(line, other) != print));
            run = if ends >> slot & 1 == 1 { slot + 1 } else { run };
        }
        keys
    }

    /// Two counts of a key, each less one, as one.
    pub fn both(&self, one: u32, other: u32) -> u32 {
        (one + other + 1).min(self.most() - 1)
    }
}

impl Pages {
    /// The entries of a key in the lines of a page: line and slot of each.
    #[inline(always)]
    pub fn entries_of<M: Slots>(
        &self,
        machine: M,
        page: &[Line],
        place: &Place,
    ) -> impl Iterator<Item = (usize, u32)> + use<M> {
        let (format, at_home) = (self.format, place.line as usize + 1);
        let home = &page[at_home];
        let (mut at, mut slots) = (at_home, 0);
        if let Some(movable) = self.sent(home, place.bucket) {
            at = self.second(place.line, movable, place.print) as usize + 1;
            slots = format.find(machine, &page[at], format.shape.buckets + movable, place.print);
        }
        let each = |line, slots| each_bit(slots).map(move |slot| (line, slot));
        each(at_home, format.find(machine, home, place.bucket, place.print)).chain(each(at, slots))
    }

    /// Inserts a key, with this tag, and counts it; says whether it was there.
    #[inline(always)]
    fn tick<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, tag: u32) -> bool {
        let (format, home) = (self.format, place.line as usize + 1);
        let age = |page: &[Line], (line, slot)| format.age(tag, self.tag_of(page, line, slot));
        let youngest = self.entries_of(machine, page, place).min_by_key(|&entry| age(page, entry));
        match youngest {
            // What is there no longer counts.
            Some((line, slot)) if age(page, (line, slot)) >= self.kept => {
                machine.set_tag(format, &mut page[line], slot, tag);
                format.set_count(&mut page[line], slot, 0);
                false
            }
            Some((line, slot)) if age(page, (line, slot)) == 0 || format.full(&page[home]) => {
                machine.set_tag(format, &mut page[line], slot, tag);
                let count = format.count(&page[line], slot);
                format.set_count(&mut page[line], slot, format.both(count, 0));
                true
            }
            Some(_) => {
                self.put(machine, page, place, tag, tag);
                true
            }
            None => {
                let print = self.spare_print(place);
                let flagged = format.flagged(&page[home]);
                let counted = |tags: Option<u32>| flagged && tags.is_some_and(|old| self.is_kept(tag, old));
                let there = counted(spare::print_of(format, &page[0], print).map(|(old, _)| old));
                if flagged && spare::renew(format, &mut page[0], print, tag) {
                    return there;
                }
                let there = counted(spare::since(format, &page[0]));
                self.put(machine, page, place, tag, tag);
                there
            }
        }
    }

    /// How often a key came in the last `kept` epochs, as far as the page can tell: never less, up to the most that a
    /// count tells.
    #[inline(always)]
    fn count_of<M: Slots>(&self, machine: M, page: &[Line], place: &Place, now: u32, kept: u32) -> u64 {
        let (format, home) = (self.format, &page[place.line as usize + 1]);
        let counts = |tag: u32| format.age(now, tag) < kept;
        let entries =
            self.entries_of(machine, page, place).filter(|&(line, slot)| counts(self.tag_of(page, line, slot)));
        let mut sum: u64 = entries.map(|(line, slot)| 1 + u64::from(format.count(&page[line], slot))).sum();
        if format.flagged(home) {
            let print = spare::print_of(format, &page[0], self.spare_print(place));
            sum += print.filter(|&(tag, _)| counts(tag)).map_or(0, |(_, count)| 1 + u64::from(count));
            sum += spare::since(format, &page[0]).filter(|&tag| counts(tag)).map_or(0, |_| format.most().into());
        }
        sum
    }

    /// Makes one of two entries of a key in a line; says whether there were any.
    #[inline(always)]
    pub fn merge_one<M: Slots>(&self, machine: M, page: &mut [Line], at: usize, now: u32) -> bool {
        let (format, line) = (self.format, &mut page[at]);
        for slot in 0..format.used(line) {
            let (bucket, value) = (format.bucket(machine, line, slot), format.value(line, slot));
            let others = format.find(machine, line, bucket, format.print(value)) & !(1 << slot);
            if others != 0 {
                let other = others.trailing_zeros();
                let (tag, old) = (format.tag(value), format.tag_in(line, other));
                let counts = [slot, other].map(|slot| format.count(line, slot));
                let count = match [tag, old].map(|tag| self.is_kept(now, tag)) {
                    [true, true] => format.both(counts[0], counts[1]),
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

    /// Takes in an entry of another page of the same places: occurrences of one epoch are added.
    #[inline(always)]
    pub fn take_in_counted<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, mark: u32, now: u32) {
        let format = self.format;
        let (tag, count) = format.marked(mark);
        let same = self.entries_of(machine, page, place).find(|&(line, slot)| self.tag_of(page, line, slot) == tag);
        match same {
            Some((line, slot)) => {
                let both = format.both(format.count(&page[line], slot), count);
                format.set_count(&mut page[line], slot, both);
            }
            None => self.put_counted(machine, page, place, mark, now),
        }
    }
}

/// The numbers of the bits that are set.
fn each_bit(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}

impl Quotient {
    /// Whether it counts how often keys come.
    pub fn counts(&self) -> bool {
        self.pages.format.count_bits > 0
    }
}

impl abilities::Count<Rotation> for Quotient {
    fn count_run(&self, words: &[u64], phase: Rotation, hashes: &[u64], run: Range<usize>, counts: &mut [u64]) {
        let act = Count { pages: &self.pages, lines: words.as_chunks().0, phase, counts };
        self.instructions.run(ForEach { pages: &self.pages, hashes, run, act });
    }
}

/// Inserts, in a filter that counts, and says what was there if there is room for the answers.
pub struct CountInsert<'a> {
    pub pages: &'a Pages,
    pub lines: &'a mut [Line],
    pub phase: Rotation,
    pub seen: &'a mut [bool],
}

impl Operation for CountInsert<'_> {
    const PUTS: bool = true;

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let tag = self.phase.tag(self.pages, place.page);
        let there = self.pages.tick(machine, self.pages.page_mut(self.lines, place.page), place, tag);
        if let Some(seen) = self.seen.get_mut(i) {
            *seen = there;
        }
    }
}

/// Tells how often keys came.
struct Count<'a> {
    pages: &'a Pages,
    lines: &'a [Line],
    phase: Rotation,
    counts: &'a mut [u64],
}

impl Operation for Count<'_> {
    const PUTS: bool = false;

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let now = self.phase.tag(self.pages, place.page);
        let page = self.pages.page(self.lines, place.page);
        self.counts[i] = self.pages.count_of(machine, page, place, now, self.phase.retained(self.pages, place.page));
    }
}
