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
        let roomy = |page: &mut [Line]| {
            second.filter(|&(_, to)| {
                let to = to as usize + 1;
                !format.full(&page[to]) || format.count_bits > 0 && pages.merge_one(machine, page, to, now)
            })
        };
        let highest = place.bucket >= format.highest(&page[home]);
        let mut sent = if highest { roomy(page) } else { None };
        if sent.is_none() {
            if pages.move_one(machine, page, line) {
                return format.put_counted(machine, &mut page[home], place.bucket, value);
            }
            sent = roomy(page).or_else(|| second.filter(|&(_, to)| pages.move_one(machine, page, to)));
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
    /// What may leave a line, a slot each: from the highest bucket at home down, then the foreign entries.
    #[inline(always)]
    fn next_move<M: Slots>(&self, machine: M, line: &Line, at: u32, slot: u32, foreign: u32) -> Option<Move> {
        let format = self.format;
        let (bucket, print) = (format.bucket(machine, line, slot), format.print_in(line, slot));
        let to = if slot >= foreign {
            self.home(at, bucket - format.shape.buckets, print)
        } else {
            self.second(at, bucket.checked_sub(format.movable())?, print)
        };
        Some(Move { slot, bucket, to })
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
        let line = &page[at as usize + 1];
        let foreign = self.format.first_foreign(machine, line);
        for slot in (0..foreign).rev().chain(foreign..self.format.used(line)) {
            let Some(entry) = self.next_move(machine, &page[at as usize + 1], at, slot, foreign) else { continue };
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
        let line = &page[at as usize + 1];
        let foreign = self.format.first_foreign(machine, line);
        for slot in (0..foreign).rev().chain(foreign..self.format.used(line)) {
            let Some(entry) = self.next_move(machine, &page[at as usize + 1], at, slot, foreign) else { continue };
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
