//! Merges one page into another with the same locations.

use super::format::{Line, OVERFLOW_FLAG};
use super::overflow::{self, OverflowMatch};
use super::page::Lookup;
use super::pages::{Location, Pages};
use super::slots::Slots;
use crate::instructions::Work;

/// The merge of another page into a page.
pub struct MergePage<'a> {
    pub pages: &'a Pages,
    pub number: u32,
    pub page: &'a mut [Line],
    pub other: &'a [Line],
    /// The tag of the open epoch.
    pub now: u32,
}

impl<M: Slots> Work<M> for MergePage<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, number, page, other, now } = self;
        let format = pages.format;
        // The overflow line and the flags come first, because entries may have to join them.
        overflow::merge(format, &mut page[0], &other[0], now, |a, b| format.add_counts(a, b));
        for (line, theirs) in page.iter_mut().zip(other).skip(1) {
            line[0] |= theirs[0] & OVERFLOW_FLAG;
        }
        for (line, theirs) in (0..).zip(&other[1..]) {
            for slot in 0..format.used(theirs) {
                let (location, tag_and_count) = pages.entry(machine, number, line, theirs, slot);
                if !pages.is_retained(now, format.split_tag_and_count(tag_and_count).0) {
                    continue;
                }
                if format.count_bits > 0 {
                    pages.merge_counted(machine, page, &location, tag_and_count, now);
                } else {
                    pages.merge_entry(machine, page, &location, tag_and_count, now);
                }
            }
        }
    }
}

impl Pages {
    /// Returns the location of the key in a slot of line `at` of a page, and its tag and count.
    #[inline(always)]
    pub fn entry<M: Slots>(&self, machine: M, page: u32, at: u32, line: &Line, slot: u32) -> (Location, u32) {
        let format = self.format;
        let (bucket, value) = (format.bucket(machine, line, slot), format.value(line, slot));
        let fingerprint = format.fingerprint(value);
        let (line, bucket) = match bucket.checked_sub(format.shape.buckets) {
            None => (at, bucket),
            Some(evictable) => (self.home_of_guest(at, evictable, fingerprint), evictable + format.first_evictable()),
        };
        (Location { page, line, bucket, fingerprint }, format.tag_and_count(value))
    }

    /// Merges an entry without a count into a page. The younger of two tags stays.
    #[inline(always)]
    fn merge_entry<M: Slots>(&self, machine: M, page: &mut [Line], location: &Location, tag: u32, now: u32) {
        let format = self.format;
        let younger = |own| format.age(now, tag) < format.age(now, own);
        match self.look_up(machine, page, location) {
            Lookup::Line(line, slot) => {
                if younger(format.tag(format.value(&page[line], slot.trailing_zeros()))) {
                    machine.set_tag(format, &mut page[line], slot.trailing_zeros(), tag);
                }
            }
            Lookup::Overflow(OverflowMatch::Fingerprint(own)) => {
                let tag = if younger(own) { tag } else { own };
                overflow::renew(format, &mut page[0], self.overflow_fingerprint(location), tag);
            }
            Lookup::Overflow(_) => self.insert_new(machine, page, location, tag, now),
        }
    }
}
