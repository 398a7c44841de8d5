//! One page: the entry of a key lies in its home line, in its alternate line, or in the overflow line.

use super::eviction::MakeRoom;
use super::format::{Line, OVERFLOW_FLAG};
use super::overflow::{self, OverflowMatch};
use super::pages::{Location, Pages};
use super::slots::Slots;
use crate::instructions::Work;
use crate::shape::quotient::MAX_LINES;

/// The result of a search for a key in its page.
pub enum Lookup {
    /// The number of the line in the page, and the slot as a bit.
    Line(usize, u64),
    /// The result of the search in the overflow line.
    Overflow(OverflowMatch),
}

impl Pages {
    /// Returns a bucket, counted from the first evictable one, if the line has evicted entries of it.
    #[inline(always)]
    pub fn evicted(&self, line: &Line, bucket: u32) -> Option<u32> {
        let first = self.format.shape.buckets - self.format.evicted_buckets(line);
        (bucket >= first).then(|| bucket - self.format.first_evictable())
    }

    /// Searches for a key in its page.
    #[inline(always)]
    pub fn look_up<M: Slots>(&self, machine: M, page: &[Line], location: &Location) -> Lookup {
        let (format, at_home) = (self.format, location.line as usize + 1);
        let home = &page[at_home];
        let slot = format.find(machine, home, location.bucket, location.fingerprint);
        if slot != 0 {
            return Lookup::Line(at_home, slot);
        }
        if let Some(evictable) = self.evicted(home, location.bucket) {
            let alternate = self.alternate_line(location.line, evictable, location.fingerprint) as usize + 1;
            let slot = format.find(machine, &page[alternate], format.shape.buckets + evictable, location.fingerprint);
            if slot != 0 {
                return Lookup::Line(alternate, slot);
            }
        }
        Lookup::Overflow(if format.flagged(home) {
            overflow::look_up(format, &page[0], self.overflow_fingerprint(location))
        } else {
            OverflowMatch::Absent
        })
    }

    /// Returns whether the page contains a key, whatever its epoch.
    #[inline(always)]
    pub fn contains<M: Slots>(&self, machine: M, page: &[Line], location: &Location) -> bool {
        let (format, home) = (self.format, &page[location.line as usize + 1]);
        // The home line is nearly always enough. Whether it has the key cannot be predicted, so it is not a branch.
        let found = format.find(machine, home, location.bucket, location.fingerprint);
        if format.is_complete(home, location.bucket) {
            return found != 0;
        }
        found != 0 || self.is_outside_home(machine, page, location)
    }

    /// Returns whether the page contains a key that is not in its home line.
    #[inline(always)]
    pub fn is_outside_home<M: Slots>(&self, machine: M, page: &[Line], location: &Location) -> bool {
        let (format, home) = (self.format, &page[location.line as usize + 1]);
        if let Some(evictable) = self.evicted(home, location.bucket) {
            let alternate = self.alternate_line(location.line, evictable, location.fingerprint) as usize + 1;
            let bucket = format.shape.buckets + evictable;
            if format.find(machine, &page[alternate], bucket, location.fingerprint) != 0 {
                return true;
            }
        }
        format.flagged(home)
            && overflow::look_up(format, &page[0], self.overflow_fingerprint(location)) != OverflowMatch::Absent
    }

    /// Returns whether the page contains a key that was inserted in the last `retained` epochs.
    #[inline(always)]
    pub fn contains_since<M: Slots>(
        &self,
        machine: M,
        page: &[Line],
        location: &Location,
        now: u32,
        retained: u32,
    ) -> bool {
        let (format, home) = (self.format, &page[location.line as usize + 1]);
        let found = format.find(machine, home, location.bucket, location.fingerprint);
        let complete = format.is_complete(home, location.bucket);
        if complete && found == 0 {
            return false;
        }
        if complete && format.count_bits == 0 {
            return format.age(now, format.tag_in(home, found.trailing_zeros())) < retained;
        }
        self.youngest(machine, page, location, now).is_some_and(|age| age < retained)
    }

    /// Returns how many epochs ago a key was last inserted, at least, and whether it is certainly in the page: a key
    /// that may have been rejected is not.
    #[inline(always)]
    pub fn age<M: Slots>(&self, machine: M, page: &[Line], location: &Location, now: u32) -> Option<(u32, bool)> {
        let age = |tag| self.format.age(now, tag);
        let found = match self.look_up(machine, page, location) {
            Lookup::Line(..) if self.format.count_bits > 0 => {
                let entries = self.entries_of(machine, page, location);
                let ages = entries.map(|(line, slot)| age(self.tag_of(page, line, slot)));
                ages.min().map(|age| (age, true))
            }
            Lookup::Line(line, slot) => Some((age(self.tag_of(page, line, slot.trailing_zeros())), true)),
            Lookup::Overflow(OverflowMatch::Absent) => None,
            Lookup::Overflow(OverflowMatch::Fingerprint(tag)) => Some((age(tag), true)),
            Lookup::Overflow(OverflowMatch::Rejected(tag)) => Some((age(tag), false)),
        };
        found.filter(|&(age, _)| age < self.retained)
    }

    /// Returns how many epochs ago a key was last inserted, at least, if the page may contain it. In merged filters,
    /// one may have rejected a key that has an older entry in the other. So all matches count, not only the first.
    #[inline(always)]
    pub fn youngest<M: Slots>(&self, machine: M, page: &[Line], location: &Location, now: u32) -> Option<u32> {
        let found = self.age(machine, page, location, now).map(|(age, _)| age);
        if !self.format.flagged(&page[location.line as usize + 1]) {
            return found;
        }
        let tags = overflow::tags_of(self.format, &page[0], self.overflow_fingerprint(location));
        tags.map(|tag| self.format.age(now, tag)).chain(found).min()
    }

    /// Returns the tag in a slot of a line.
    #[inline(always)]
    pub fn tag_of(&self, page: &[Line], line: usize, slot: u32) -> u32 {
        self.format.tag_in(&page[line], slot)
    }

    /// Inserts a key with this tag, and returns whether the page contained it.
    #[inline(always)]
    pub fn insert<M: Slots>(&self, machine: M, page: &mut [Line], location: &Location, tag: u32) -> bool {
        let format = self.format;
        let present = match self.look_up(machine, page, location) {
            Lookup::Line(line, slot) => {
                // The old tag is not read if all tags are retained.
                let present = !self.fine() || self.is_retained(tag, self.tag_of(page, line, slot.trailing_zeros()));
                machine.set_tag(format, &mut page[line], slot.trailing_zeros(), tag);
                return present;
            }
            Lookup::Overflow(OverflowMatch::Fingerprint(old)) => {
                overflow::renew(format, &mut page[0], self.overflow_fingerprint(location), tag);
                return self.is_retained(tag, old);
            }
            Lookup::Overflow(OverflowMatch::Rejected(old)) => self.is_retained(tag, old),
            Lookup::Overflow(OverflowMatch::Absent) => false,
        };
        self.insert_new(machine, page, location, tag, tag);
        present
    }

    /// Inserts a key that the page does not contain, with a tag, while `now` is the tag of the open epoch.
    #[inline(always)]
    pub fn insert_new<M: Slots>(&self, machine: M, page: &mut [Line], location: &Location, tag: u32, now: u32) {
        let (format, home) = (self.format, location.line as usize + 1);
        if format.full(&page[home]) {
            return machine.run(MakeRoom { pages: self, page, location, tag_and_count: tag, now });
        }
        format.put(machine, &mut page[home], location.bucket, location.fingerprint | tag << format.fingerprint_bits);
    }

    /// Inserts a key as [`insert_new`](Self::insert_new) does, with a tag and a count.
    #[inline(always)]
    pub fn insert_counted<M: Slots>(
        &self,
        machine: M,
        page: &mut [Line],
        location: &Location,
        tag_and_count: u32,
        now: u32,
    ) {
        let (format, home) = (self.format, location.line as usize + 1);
        if format.full(&page[home]) {
            return machine.run(MakeRoom { pages: self, page, location, tag_and_count, now });
        }
        let value = location.fingerprint | tag_and_count << format.fingerprint_bits;
        format.put_counted(machine, &mut page[home], location.bucket, value);
    }

    /// Rotates a page: removes all entries with expired tags, and then puts the page in order while its lines are
    /// cached. Lines that are nearly full evict what the next keys would evict, guests return to home lines that have
    /// room again, and every line recomputes its number of evicted buckets.
    #[inline(always)]
    pub fn rotate_page<M: Slots>(&self, machine: M, page: &mut [Line], expired: u32) {
        let (format, shape) = (self.format, self.format.shape);
        let (overflow, lines) = page.split_first_mut().expect("a page has an overflow line");
        let any = self.epochs_per_rotation_log2;
        let overflow_is_empty = overflow::expire(format, overflow, expired, any);
        for line in &mut *lines {
            format.expire(machine, line, expired, any);
        }
        // About 10 % of the entries of a line expire where tags repeat after eight rotations, and half of that where
        // they repeat after sixteen.
        let (reserve, room) = if format.tag_bits - any <= 3 { (3, 6) } else { (1, 3) };
        for line in 0..self.lines {
            let at = line as usize;
            let mut slot = format.first_guest(machine, &lines[at]);
            while slot > 0 && format.used(&lines[at]) + reserve > shape.slots {
                slot -= 1;
                let bucket = format.bucket(machine, &lines[at], slot);
                if bucket < format.first_evictable() {
                    break;
                }
                let evictable = bucket - format.first_evictable();
                let fingerprint = format.fingerprint_in(&lines[at], slot);
                let alternate = self.alternate_line(line, evictable, fingerprint) as usize;
                if format.used(&lines[alternate]) + reserve < shape.slots {
                    let value = format.value(&lines[at], slot);
                    format.put_counted(machine, &mut lines[alternate], shape.buckets + evictable, value);
                    format.remove(machine, &mut lines[at], slot, bucket);
                }
            }
        }
        let mut evicted_buckets = [0; MAX_LINES as usize + 1];
        for line in 0..self.lines {
            let at = line as usize;
            let first = format.first_guest(machine, &lines[at]);
            for slot in (first..format.used(&lines[at])).rev() {
                let bucket = format.bucket(machine, &lines[at], slot);
                let evictable = bucket - shape.buckets;
                let home = self.home_of_guest(line, evictable, format.fingerprint_in(&lines[at], slot)) as usize;
                if format.used(&lines[home]) + room < shape.slots {
                    let value = format.value(&lines[at], slot);
                    format.put_counted(machine, &mut lines[home], format.first_evictable() + evictable, value);
                    format.remove(machine, &mut lines[at], slot, bucket);
                } else {
                    let buckets = &mut evicted_buckets[home & MAX_LINES as usize];
                    *buckets = u32::max(*buckets, shape.eviction_buckets - evictable);
                }
            }
        }
        for (line, buckets) in lines.iter_mut().zip(evicted_buckets) {
            format.set_evicted_buckets(line, buckets);
            line[0] &= if overflow_is_empty { !OVERFLOW_FLAG } else { u64::MAX };
        }
    }
}

/// The rotation of a page, compiled for each instruction set.
pub struct RotatePage<'a> {
    pub pages: &'a Pages,
    pub page: &'a mut [Line],
    pub expired: u32,
}

impl<M: Slots> Work<M> for RotatePage<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        self.pages.rotate_page(machine, self.page, self.expired);
    }
}
