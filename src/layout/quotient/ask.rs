//! Queries of many keys, a block of them at a time. One in twelve needs more than its home line: those are set aside,
//! and answered when the next block is done. So no key waits for memory, and none for a mispredicted branch.

use std::mem;
use std::ops::Range;

use super::format::Line;
use super::place::Pages;
use super::run::{BLOCK, Deferred, fetch_second};
use super::slots::Slots;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// Asks whether keys are there, where all entries count.
pub struct Ask<'a> {
    pub pages: &'a Pages,
    pub lines: &'a [Line],
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub present: &'a mut [bool],
}

/// Where a key is at home: its line among all at hand. With the line worked out once more, from the place of a key,
/// absent keys took a sixth more time.
#[derive(Clone, Copy, Default)]
struct Home {
    line: usize,
    bucket: u32,
    print: u32,
}

impl<M: Slots> Work<M> for Ask<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, lines, hashes, run, present } = self;
        let address = Address::of(lines.as_flattened());
        let (hashes, present) = (&hashes[run.clone()], &mut present[run]);
        let (mut coming, mut homes) = ([Home::default(); BLOCK], [Home::default(); BLOCK]);
        let mut before = (&[][..], &mut [][..], Deferred::default());
        let mut blocks = hashes.chunks(BLOCK);
        fetch_homes(pages, address, blocks.next().unwrap_or_default(), &mut coming);
        for (hashes, present) in hashes.chunks(BLOCK).zip(present.chunks_mut(BLOCK)) {
            mem::swap(&mut coming, &mut homes);
            fetch_homes(pages, address, blocks.next().unwrap_or_default(), &mut coming);
            let aside = at_home(machine, pages, lines, &homes, present);
            for &key in aside.keys() {
                fetch_second(pages, address, lines, &pages.place(hashes[usize::from(key)]));
            }
            elsewhere(machine, pages, lines, before);
            before = (hashes, present, aside);
        }
        elsewhere(machine, pages, lines, before);
    }
}

/// Works out where keys are at home, and has their lines fetched.
#[inline(always)]
fn fetch_homes(pages: &Pages, address: Address, hashes: &[u64], homes: &mut [Home; BLOCK]) {
    for (home, &hash) in homes.iter_mut().zip(hashes) {
        let place = pages.place(hash);
        let line = pages.home_of(&place);
        address.fetch(line * 8);
        *home = Home { line, bucket: place.bucket, print: place.print };
    }
}

/// Looks keys up at home; says of which more lines have to be asked.
#[inline(always)]
fn at_home<M: Slots>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    homes: &[Home; BLOCK],
    present: &mut [bool],
) -> Deferred {
    let (format, mut aside) = (pages.format, Deferred::default());
    for ((key, home), present) in (0..).zip(homes).zip(present) {
        let line = &lines[home.line];
        *present = format.find(machine, line, home.bucket, home.print) != 0;
        aside.put_if(key, !(*present | format.alone(line, home.bucket)));
    }
    aside
}

/// Looks up the keys of a block that have been set aside.
#[inline(always)]
fn elsewhere<M: Slots>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    (hashes, present, aside): (&[u64], &mut [bool], Deferred),
) {
    for &key in aside.keys() {
        let place = pages.place(hashes[usize::from(key)]);
        let page = pages.page(lines, place.page);
        present[usize::from(key)] = pages.is_elsewhere(machine, page, &place);
    }
}
