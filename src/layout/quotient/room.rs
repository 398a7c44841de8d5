//! Room in a full line.
//!
//! The prefix rule of the prefix filter (Even, Even, Morrison, *Prefix Filter*, VLDB 2022), here with entries that come
//! and go: it is the entry of the highest bucket that has to leave, be it the new one, so that a query has to look into
//! the second line only from that bucket on. It lies there in a foreign bucket of its own, which tells its home.
//!
//! Where the second line is full too, others have to move on first: the entries from the top of the line to their
//! second lines, or foreign entries to their homes, and if need be one entry of the line that they want to move to.
//! What finds no room then goes to the spare. In a filter that counts, entries of one key are [merged](super::count)
//! before any other moves.

use super::format::{Line, SPARE_FLAG};
use super::place::{Pages, Place};
use super::slots::Slots;
use super::spare;
use crate::instructions::Work;

/// Entries that a full line tries first to part with, whose other lines are fetched beforehand.
const WAYS: usize = 2;

/// A key whose home line is full.
pub struct MakeRoom<'a> {
    pub pages: &'a Pages,
    pub page: &'a mut [Line],
    pub place: &'a Place,
    /// Its tag, and a count above.
    pub mark: u32,
    /// The tag of the open epoch.
    pub now: u32,
}

impl<M: Slots> Work<M> for MakeRoom<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, page, place, mark, now } = self;
        let (format, line) = (pages.format, place.line);
        let (value, home) = (place.print | mark << format.fingerprint_bits, line as usize + 1);
        if format.count_bits > 0 && pages.merge_one(machine, page, home, now) {
            return format.put_counted(machine, &mut page[home], place.bucket, value);
        }
        // Where keys have been turned away since the page turned, there is no room, and none will come until it does.
        let since = spare::since(format, &page[0]);
        if since.is_some_and(|since| pages.turn(since) == pages.turn(format.tag(value))) {
            return pages.put_aside(page, place, mark, now);
        }
        let movable = place.bucket.checked_sub(format.movable());
        let second = movable.map(|movable| (movable, pages.second(line, movable, place.print)));
        let highest = place.bucket >= format.highest(&page[home]);
        let mut sent = if highest { pages.with_room(machine, page, second, now) } else { None };
        if sent.is_none() {
            if pages.move_one(machine, page, line) {
                return format.put_counted(machine, &mut page[home], place.bucket, value);
            }
            sent = pages.with_room(machine, page, second, now);
        }
        if let (None, Some((_, to))) = (sent, second)
            && pages.move_one(machine, page, to)
        {
            sent = second;
        }
        if let Some((movable, to)) = sent {
            format.put_counted(machine, &mut page[to as usize + 1], format.shape.buckets + movable, value);
            return format.extend_reach(&mut page[home], movable);
        }
        if pages.move_two(machine, page, line) {
            return format.put_counted(machine, &mut page[home], place.bucket, value);
        }
        pages.put_aside(page, place, mark, now);
    }
}

/// An entry that may leave its line, and where it would go.
#[derive(Clone, Copy)]
struct Move {
    slot: u32,
    bucket: u32,
    to: u32,
}

impl Pages {
    /// The second line of a key, behind the number of its bucket, if it has one and there is room.
    #[inline(always)]
    fn with_room<M: Slots>(
        &self,
        machine: M,
        page: &mut [Line],
        second: Option<(u32, u32)>,
        now: u32,
    ) -> Option<(u32, u32)> {
        let at = second?.1 as usize + 1;
        let merges = self.format.count_bits > 0;
        let room = !self.format.full(&page[at]) || merges && self.merge_one(machine, page, at, now);
        if room { second } else { None }
    }

    /// The slots of what may leave a line, from the first to the last: the highest buckets at home, and from the slot
    /// in the middle on foreign entries.
    #[inline(always)]
    fn movable_slots<M: Slots>(&self, machine: M, line: &Line) -> [u32; 3] {
        let format = self.format;
        [format.first_from(machine, line, format.movable()), format.first_foreign(machine, line), format.used(line)]
    }

    /// The move of an entry that may leave its line.
    #[inline(always)]
    fn way<M: Slots>(&self, machine: M, line: &Line, at: u32, slot: u32) -> Move {
        let (format, buckets) = (self.format, self.format.shape.buckets);
        let (bucket, print) = (format.bucket(machine, line, slot), format.print_in(line, slot));
        let to = if bucket >= buckets {
            self.home(at, bucket - buckets, print)
        } else {
            self.second(at, bucket - format.movable(), print)
        };
        Move { slot, bucket, to }
    }

    /// The lines where the entries would go that a full line parts with first.
    #[inline(always)]
    pub fn ways_out<M: Slots>(&self, machine: M, line: &Line, at: u32) -> [u32; WAYS] {
        let ([first, foreign, _], mut ways) = (self.movable_slots(machine, line), [at; WAYS]);
        for (way, slot) in ways.iter_mut().zip((first..foreign).rev()) {
            *way = self.way(machine, line, at, slot).to;
        }
        ways
    }

    /// Moves an entry to where it belongs, where there is room.
    #[inline(always)]
    fn make<M: Slots>(&self, machine: M, page: &mut [Line], at: u32, entry: Move) {
        let (format, buckets) = (self.format, self.format.shape.buckets);
        let at = at as usize + 1;
        let value = format.value(&page[at], entry.slot);
        let to = &mut page[entry.to as usize + 1];
        if entry.bucket >= buckets {
            format.put_counted(machine, to, entry.bucket - buckets + format.movable(), value);
        } else {
            let movable = entry.bucket - format.movable();
            format.put_counted(machine, to, buckets + movable, value);
            format.extend_reach(&mut page[at], movable);
        }
        format.remove(machine, &mut page[at], entry.slot, entry.bucket);
    }

    /// Moves one entry of a full line to its other line; says whether it could.
    #[inline(always)]
    fn move_one<M: Slots>(&self, machine: M, page: &mut [Line], at: u32) -> bool {
        let [first, foreign, used] = self.movable_slots(machine, &page[at as usize + 1]);
        for slot in (first..foreign).rev().chain(foreign..used) {
            let entry = self.way(machine, &page[at as usize + 1], at, slot);
            if !self.format.full(&page[entry.to as usize + 1]) {
                self.make(machine, page, at, entry);
                return true;
            }
        }
        false
    }

    /// The same where an entry of the other line has to move first.
    #[inline(always)]
    fn move_two<M: Slots>(&self, machine: M, page: &mut [Line], at: u32) -> bool {
        let [first, foreign, used] = self.movable_slots(machine, &page[at as usize + 1]);
        for slot in (first..foreign).rev().chain(foreign..used) {
            let entry = self.way(machine, &page[at as usize + 1], at, slot);
            if self.move_one(machine, page, entry.to) {
                self.make(machine, page, at, entry);
                return true;
            }
        }
        false
    }

    /// Takes a key into the spare.
    #[inline(always)]
    fn put_aside(&self, page: &mut [Line], place: &Place, mark: u32, now: u32) {
        spare::put(self.format, &mut page[0], self.spare_print(place), mark, now);
        page[place.line as usize + 1][0] |= SPARE_FLAG;
    }
}
