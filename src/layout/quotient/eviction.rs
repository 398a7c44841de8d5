//! Evictions from full lines.
//!
//! The prefix rule of the prefix filter (Even, Even, Morrison, *Prefix Filter*, VLDB 2022), for entries that come and
//! go: a full line evicts the entry of its highest bucket, which may be the new one. So a query reads the alternate
//! line from that bucket on only. There the entry lies in a guest bucket, from which its home line can be computed.
//!
//! If the alternate line is full too, other entries move first: entries from the top of the line to their alternate
//! lines, or guests to their home lines, and if need be one entry of the line that they move to. An entry that still
//! finds no room goes to the overflow line. In a filter that counts, entries of one key are [merged](super::count)
//! before any other entry moves.

use super::format::{Line, OVERFLOW_FLAG};
use super::overflow;
use super::pages::{Location, Pages};
use super::slots::Slots;
use crate::instructions::Work;

/// The number of entries that a full line tries to evict first, whose other lines are prefetched.
const PREFETCHED: usize = 2;

/// The insertion of a key whose home line is full.
pub struct MakeRoom<'a> {
    pub pages: &'a Pages,
    pub page: &'a mut [Line],
    pub location: &'a Location,
    /// The tag of the key, and its count above.
    pub tag_and_count: u32,
    /// The tag of the open epoch.
    pub now: u32,
}

impl<M: Slots> Work<M> for MakeRoom<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, page, location, tag_and_count, now } = self;
        let (format, line) = (pages.format, location.line);
        let (value, home) = (location.fingerprint | tag_and_count << format.fingerprint_bits, line as usize + 1);
        if format.count_bits > 0 && pages.merge_one(machine, page, home, now) {
            return format.put_counted(machine, &mut page[home], location.bucket, value);
        }
        // A page that has rejected keys since its last rotation has no room until the next.
        let rejected = overflow::rejected(format, &page[0]);
        if rejected.is_some_and(|tag| pages.rotation_of(tag) == pages.rotation_of(format.tag(value))) {
            return pages.put_in_overflow(page, location, tag_and_count, now);
        }
        let evictable = location.bucket.checked_sub(format.first_evictable());
        let alternate =
            evictable.map(|evictable| (evictable, pages.alternate_line(line, evictable, location.fingerprint)));
        let highest = location.bucket >= format.highest(&page[home]);
        let mut to = if highest { pages.with_room(machine, page, alternate, now) } else { None };
        if to.is_none() {
            if pages.move_one(machine, page, line) {
                return format.put_counted(machine, &mut page[home], location.bucket, value);
            }
            to = pages.with_room(machine, page, alternate, now);
        }
        if let (None, Some((_, line))) = (to, alternate)
            && pages.move_one(machine, page, line)
        {
            to = alternate;
        }
        if let Some((evictable, to)) = to {
            format.put_counted(machine, &mut page[to as usize + 1], format.shape.buckets + evictable, value);
            return format.include_evicted(&mut page[home], evictable);
        }
        if pages.move_two(machine, page, line) {
            return format.put_counted(machine, &mut page[home], location.bucket, value);
        }
        pages.put_in_overflow(page, location, tag_and_count, now);
    }
}

/// The move of an entry to its other line.
#[derive(Clone, Copy)]
struct Eviction {
    slot: u32,
    bucket: u32,
    to: u32,
}

impl Pages {
    /// Returns `alternate`, the evictable bucket and the alternate line of a key, if it has one with room.
    #[inline(always)]
    fn with_room<M: Slots>(
        &self,
        machine: M,
        page: &mut [Line],
        alternate: Option<(u32, u32)>,
        now: u32,
    ) -> Option<(u32, u32)> {
        let at = alternate?.1 as usize + 1;
        let merges = self.format.count_bits > 0;
        let room = !self.format.full(&page[at]) || merges && self.merge_one(machine, page, at, now);
        if room { alternate } else { None }
    }

    /// Returns the bounds of the slots whose entries may move: first the evictable buckets, then, from the slot in the
    /// middle on, the guests.
    #[inline(always)]
    fn movable_slots<M: Slots>(&self, machine: M, line: &Line) -> [u32; 3] {
        let format = self.format;
        [
            format.first_from(machine, line, format.first_evictable()),
            format.first_guest(machine, line),
            format.used(line),
        ]
    }

    /// Returns the move of the entry in a slot of line `at`.
    #[inline(always)]
    fn eviction<M: Slots>(&self, machine: M, line: &Line, at: u32, slot: u32) -> Eviction {
        let (format, buckets) = (self.format, self.format.shape.buckets);
        let (bucket, fingerprint) = (format.bucket(machine, line, slot), format.fingerprint_in(line, slot));
        let to = if bucket >= buckets {
            self.home_of_guest(at, bucket - buckets, fingerprint)
        } else {
            self.alternate_line(at, bucket - format.first_evictable(), fingerprint)
        };
        Eviction { slot, bucket, to }
    }

    /// Returns the lines to which a full line evicts entries first.
    #[inline(always)]
    pub fn first_evictions<M: Slots>(&self, machine: M, line: &Line, at: u32) -> [u32; PREFETCHED] {
        let ([first, guests, _], mut lines) = (self.movable_slots(machine, line), [at; PREFETCHED]);
        for (to, slot) in lines.iter_mut().zip((first..guests).rev()) {
            *to = self.eviction(machine, line, at, slot).to;
        }
        lines
    }

    /// Moves an entry of line `at` to its other line, which has room.
    #[inline(always)]
    fn evict<M: Slots>(&self, machine: M, page: &mut [Line], at: u32, entry: Eviction) {
        let (format, buckets) = (self.format, self.format.shape.buckets);
        let at = at as usize + 1;
        let value = format.value(&page[at], entry.slot);
        let to = &mut page[entry.to as usize + 1];
        if entry.bucket >= buckets {
            format.put_counted(machine, to, entry.bucket - buckets + format.first_evictable(), value);
        } else {
            let evictable = entry.bucket - format.first_evictable();
            format.put_counted(machine, to, buckets + evictable, value);
            format.include_evicted(&mut page[at], evictable);
        }
        format.remove(machine, &mut page[at], entry.slot, entry.bucket);
    }

    /// Moves one entry of a full line to its other line, if any has one with room. Returns whether it did.
    #[inline(always)]
    fn move_one<M: Slots>(&self, machine: M, page: &mut [Line], at: u32) -> bool {
        self.move_if(machine, page, at, |page, to| !self.format.full(&page[to as usize + 1]))
    }

    /// Moves an entry of a full line to its other line, after moving an entry out of that. Returns whether it did.
    #[inline(always)]
    fn move_two<M: Slots>(&self, machine: M, page: &mut [Line], at: u32) -> bool {
        self.move_if(machine, page, at, |page, to| self.move_one(machine, page, to))
    }

    /// Moves the first entry of a full line for whose other line `has_room` holds. Returns whether there is one.
    #[inline(always)]
    fn move_if<M: Slots>(
        &self,
        machine: M,
        page: &mut [Line],
        at: u32,
        mut has_room: impl FnMut(&mut [Line], u32) -> bool,
    ) -> bool {
        let [first, guests, used] = self.movable_slots(machine, &page[at as usize + 1]);
        for slot in (first..guests).rev().chain(guests..used) {
            let entry = self.eviction(machine, &page[at as usize + 1], at, slot);
            if has_room(page, entry.to) {
                self.evict(machine, page, at, entry);
                return true;
            }
        }
        false
    }

    /// Inserts a key into the overflow line.
    #[inline(always)]
    fn put_in_overflow(&self, page: &mut [Line], location: &Location, tag_and_count: u32, now: u32) {
        overflow::put(self.format, &mut page[0], self.overflow_fingerprint(location), tag_and_count, now);
        page[location.line as usize + 1][0] |= OVERFLOW_FLAG;
    }
}
