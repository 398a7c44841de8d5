//! What another page of the same keys' places has is taken in.

use super::format::{Line, SPARE_FLAG};
use super::page::Found;
use super::place::{Pages, Place};
use super::spare::{self, Spared};
use crate::instructions::{Machine, Work};

/// A page takes in another.
pub struct Unite<'a> {
    pub pages: &'a Pages,
    pub page: &'a mut [Line],
    pub other: &'a [Line],
    /// The tag of the open epoch.
    pub now: u32,
}

impl Work for Unite<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: Machine>(self, machine: M) {
        let Self { pages, page, other, now } = self;
        let format = pages.format;
        // The prints first, and with them what lines say whose keys were turned away: entries may have to join them.
        spare::unite(&mut page[0], &other[0], |tag| format.age(now, tag));
        for (line, theirs) in page.iter_mut().zip(other).skip(1) {
            line[0] |= theirs[0] & SPARE_FLAG;
        }
        for (line, theirs) in (0..).zip(&other[1..]) {
            for slot in 0..format.used(theirs) {
                let (bucket, value) = (format.bucket(machine, theirs, slot), format.value(theirs, slot));
                let (print, tag) = (format.print(value), format.tag(value));
                let place = match bucket.checked_sub(format.shape.buckets) {
                    None => Place { page: 0, line, bucket, print },
                    Some(movable) => {
                        let bucket = movable + format.movable();
                        Place { page: 0, line: pages.home(line, movable, print), bucket, print }
                    }
                };
                pages.take_in(machine, page, &place, tag, now);
            }
        }
    }
}

impl Pages {
    /// Takes in an entry; of two tags it keeps the younger.
    #[inline(always)]
    fn take_in<M: Machine>(&self, machine: M, page: &mut [Line], place: &Place, tag: u32, now: u32) {
        let format = self.format;
        let younger = |own| format.age(now, tag) < format.age(now, own);
        match self.look_up(machine, page, place) {
            Found::Entry(line, slot) => {
                if younger(format.tag(format.value(&page[line], slot.trailing_zeros()))) {
                    format.set_tag(&mut page[line], slot, tag);
                }
            }
            Found::Spare(Spared::Print(own)) => {
                spare::renew(&mut page[0], place, if younger(own) { tag } else { own });
            }
            Found::Spare(_) => self.put(machine, page, place, tag, now),
        }
    }
}
