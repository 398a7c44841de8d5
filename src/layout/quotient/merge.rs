//! What another page of the same keys' places has is taken in.

use super::format::{Line, SPARE_FLAG};
use super::page::Found;
use super::place::{Pages, Place};
use super::slots::Slots;
use super::spare::{self, Overflow};
use crate::instructions::Work;

/// A page takes in another.
pub struct Unite<'a> {
    pub pages: &'a Pages,
    pub number: u32,
    pub page: &'a mut [Line],
    pub other: &'a [Line],
    /// The tag of the open epoch.
    pub now: u32,
}

impl<M: Slots> Work<M> for Unite<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, number, page, other, now } = self;
        let format = pages.format;
        // The prints first, and with them what lines say whose keys were turned away: entries may have to join them.
        spare::merge(format, &mut page[0], &other[0], now, |a, b| format.both(a, b));
        for (line, theirs) in page.iter_mut().zip(other).skip(1) {
            line[0] |= theirs[0] & SPARE_FLAG;
        }
        for (line, theirs) in (0..).zip(&other[1..]) {
            for slot in 0..format.used(theirs) {
                let (place, mark) = pages.entry(machine, number, line, theirs, slot);
                if !pages.is_kept(now, format.marked(mark).0) {
                    continue;
                }
                if format.count_bits > 0 {
                    pages.take_in_counted(machine, page, &place, mark, now);
                } else {
                    pages.take_in(machine, page, &place, mark, now);
                }
            }
        }
    }
}

impl Pages {
    /// What is in a slot of a line: where its key is at home, its tag, and a count above.
    #[inline(always)]
    pub fn entry<M: Slots>(&self, machine: M, page: u32, at: u32, line: &Line, slot: u32) -> (Place, u32) {
        let format = self.format;
        let (bucket, value) = (format.bucket(machine, line, slot), format.value(line, slot));
        let print = format.print(value);
        let (line, bucket) = match bucket.checked_sub(format.shape.buckets) {
            None => (at, bucket),
            Some(movable) => (self.home(at, movable, print), movable + format.movable()),
        };
        (Place { page, line, bucket, print }, format.mark(value))
    }

    /// Takes in an entry; of two tags it keeps the younger.
    #[inline(always)]
    fn take_in<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, tag: u32, now: u32) {
        let format = self.format;
        let younger = |own| format.age(now, tag) < format.age(now, own);
        match self.look_up(machine, page, place) {
            Found::Entry(line, slot) => {
                if younger(format.tag(format.value(&page[line], slot.trailing_zeros()))) {
                    machine.set_tag(format, &mut page[line], slot.trailing_zeros(), tag);
                }
            }
            Found::Spare(Overflow::Print(own)) => {
                spare::renew(format, &mut page[0], self.spare_print(place), if younger(own) { tag } else { own });
            }
            Found::Spare(_) => self.put(machine, page, place, tag, now),
        }
    }
}
