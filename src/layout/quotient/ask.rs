//! Questions about many keys, a block of them at a time. One key in twelve needs more than its home line: those are set
//! aside, and answered when the next block is done. So no key waits for memory, and none for a mispredicted branch.

use std::mem;
use std::ops::Range;

use super::Phase;
use super::format::Line;
use super::place::{Pages, Place};
use super::run::{Aside, BLOCK, fetch_second};
use super::slots::Slots;
use crate::inference::Evidence;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// What is asked for of each key.
pub trait Wanted {
    /// What is said of a key.
    type Answer;

    /// Whether entries elsewhere count too where a home line has one.
    #[inline(always)]
    fn wants_all(&self, _: &Pages) -> bool {
        false
    }

    /// The answer where no more than the home line has to be asked, by the bit of the key's slot there, if it has one.
    fn at_home(&self, pages: &Pages, page: u32, line: &Line, slot: u64) -> Self::Answer;

    /// The answer by all lines of its page.
    fn anywhere<M: Slots>(&self, machine: M, pages: &Pages, page: &[Line], place: &Place) -> Self::Answer;
}

/// Whether keys are there, where all entries count.
pub struct There;

impl Wanted for There {
    type Answer = bool;

    #[inline(always)]
    fn at_home(&self, _: &Pages, _: u32, _: &Line, slot: u64) -> bool {
        slot != 0
    }

    #[inline(always)]
    fn anywhere<M: Slots>(&self, machine: M, pages: &Pages, page: &[Line], place: &Place) -> bool {
        pages.is_elsewhere(machine, page, place)
    }
}

/// How old keys are.
pub struct Ages(pub Phase);

impl Wanted for Ages {
    type Answer = Evidence;

    #[inline(always)]
    fn wants_all(&self, pages: &Pages) -> bool {
        pages.format.count_bits > 0
    }

    #[inline(always)]
    fn at_home(&self, pages: &Pages, page: u32, line: &Line, slot: u64) -> Evidence {
        // A tag is read in any case, since half of the keys may be there.
        let tag = pages.format.tag_in(line, slot.trailing_zeros() % 64);
        let age = pages.format.age(self.0.tag(pages, page), tag);
        self.0.says(pages, page, (slot != 0 && age < pages.kept).then_some((age, true)))
    }

    #[inline(always)]
    fn anywhere<M: Slots>(&self, machine: M, pages: &Pages, page: &[Line], place: &Place) -> Evidence {
        let told = pages.age(machine, page, place, self.0.tag(pages, place.page));
        let evidence = self.0.says(pages, place.page, told);
        match told {
            Some((_, false)) => evidence.of_marked(pages.marked(page)),
            _ => evidence,
        }
    }
}

/// Asks it of all keys of a run.
pub struct Ask<'a, W: Wanted> {
    pub pages: &'a Pages,
    pub lines: &'a [Line],
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub wanted: W,
    pub answers: &'a mut [W::Answer],
}

/// Where a key is at home: its page, and its line among all at hand.
#[derive(Clone, Copy, Default)]
struct Home {
    line: usize,
    page: u32,
    bucket: u32,
    print: u32,
}

impl<M: Slots, W: Wanted> Work<M> for Ask<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, lines, hashes, run, wanted, answers } = self;
        let address = Address::of(lines.as_flattened());
        let (hashes, answers) = (&hashes[run.clone()], &mut answers[run]);
        let (mut coming, mut homes) = ([Home::default(); BLOCK], [Home::default(); BLOCK]);
        let mut before = (&[][..], &mut [][..], Aside::default());
        let mut blocks = hashes.chunks(BLOCK);
        fetch_homes(pages, address, blocks.next().unwrap_or_default(), &mut coming);
        for (hashes, answers) in hashes.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
            mem::swap(&mut coming, &mut homes);
            fetch_homes(pages, address, blocks.next().unwrap_or_default(), &mut coming);
            let aside = ask_homes(machine, pages, lines, &wanted, &homes, answers);
            for &key in aside.keys() {
                fetch_second(pages, address, lines, &pages.place(hashes[usize::from(key)]));
            }
            ask_others(machine, pages, lines, &wanted, before);
            before = (hashes, answers, aside);
        }
        ask_others(machine, pages, lines, &wanted, before);
    }
}

/// Works out where keys are at home, and has their lines fetched.
#[inline(always)]
fn fetch_homes(pages: &Pages, address: Address, hashes: &[u64], homes: &mut [Home; BLOCK]) {
    for (home, &hash) in homes.iter_mut().zip(hashes) {
        let place = pages.place(hash);
        let line = pages.home_of(&place);
        address.fetch(line * 8);
        *home = Home { line, page: place.page, bucket: place.bucket, print: place.print };
    }
}

/// Asks the home lines; says of which keys others have to be asked.
#[inline(always)]
fn ask_homes<M: Slots, W: Wanted>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    wanted: &W,
    homes: &[Home; BLOCK],
    answers: &mut [W::Answer],
) -> Aside {
    let (format, wants_all, mut aside) = (pages.format, wanted.wants_all(pages), Aside::default());
    for ((key, home), answer) in (0..).zip(homes).zip(answers) {
        let line = &lines[home.line];
        let slot = format.find(machine, line, home.bucket, home.print);
        *answer = wanted.at_home(pages, home.page, line, slot);
        let alone = home.bucket + format.reach(line) < format.shape.buckets && !format.flagged(line);
        let enough = if wants_all { (slot == 0) & alone } else { (slot != 0) | alone };
        aside.put_if(key, !enough);
    }
    aside
}

/// Asks all lines about the keys of a block that have been set aside.
#[inline(always)]
fn ask_others<M: Slots, W: Wanted>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    wanted: &W,
    (hashes, answers, aside): (&[u64], &mut [W::Answer], Aside),
) {
    for &key in aside.keys() {
        let place = pages.place(hashes[usize::from(key)]);
        let page = pages.page(lines, place.page);
        answers[usize::from(key)] = wanted.anywhere(machine, pages, page, &place);
    }
}
