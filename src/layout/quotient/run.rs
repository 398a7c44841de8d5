//! Runs of keys: their places are worked out once, and their lines are on the way when they act.

use std::ops::Range;

use super::Phase;
use super::format::Line;
use super::place::{Pages, Place};
use super::slots::Slots;
use crate::inference::Evidence;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// Keys in flight. A line is nearly all that a key touches, so that many are needed to hide its latency.
const AHEAD: usize = 64;
/// Of those, the ones whose home line is there, and tells whether they need the second one: one in twelve does.
const NEAR: usize = 16;

/// What each key of a run does.
pub trait Act {
    /// The lines at hand.
    fn lines(&self) -> &[Line];

    /// Does it for key `i` of the batch.
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place);
}

/// All keys of a run, one after the other.
pub struct Each<'a, A> {
    pub pages: &'a Pages,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub act: A,
}

impl<M: Slots, A: Act> Work<M> for Each<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self, machine: M) -> A {
        let Self { pages, hashes, run, mut act } = self;
        if run.len() == 1 {
            // Alone, a key is done before a ring for those in flight is there.
            act.act(machine, run.start, &pages.place(hashes[run.start]));
            return act;
        }
        let address = Address::of(act.lines().as_flattened());
        let mut places = [Place::default(); AHEAD];
        for i in run.clone().take(AHEAD) {
            places[i % AHEAD] = pages.place(hashes[i]);
            fetch_home(pages, address, &places[i % AHEAD]);
        }
        for i in run.start..(run.start + NEAR).min(run.end) {
            fetch_second(pages, address, act.lines(), &places[i % AHEAD]);
        }
        for i in run.clone() {
            let place = places[i % AHEAD];
            // Those of the next run too: a page turns after some hundred keys, and memory is not to wait for that.
            if let Some(&hash) = hashes.get(i + AHEAD) {
                places[i % AHEAD] = pages.place(hash);
                fetch_home(pages, address, &places[i % AHEAD]);
            }
            if i + NEAR < run.end {
                fetch_second(pages, address, act.lines(), &places[(i + NEAR) % AHEAD]);
            }
            act.act(machine, i, &place);
        }
        act
    }
}

#[inline(always)]
fn fetch_home(pages: &Pages, address: Address, place: &Place) {
    address.fetch((pages.start(place.page) + place.line as usize + 1) * 8);
}

#[inline(always)]
fn fetch_second(pages: &Pages, address: Address, lines: &[Line], place: &Place) {
    let start = pages.start(place.page);
    if let Some(movable) = pages.sent(&lines[start + place.line as usize + 1], place.bucket) {
        address.fetch((start + pages.second(place.line, movable, place.print) as usize + 1) * 8);
    }
}

/// Inserts.
pub struct Insert<'a> {
    pub pages: &'a Pages,
    pub lines: &'a mut [Line],
    pub phase: Phase,
}

impl Act for Insert<'_> {
    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, _: usize, place: &Place) {
        let tag = self.phase.tag(self.pages, place.page);
        self.pages.add(machine, self.pages.page_mut(self.lines, place.page), place, tag);
    }
}

/// Asks.
pub struct Query<'a> {
    pub pages: &'a Pages,
    pub lines: &'a [Line],
    pub phase: Phase,
    pub present: &'a mut [bool],
}

impl Act for Query<'_> {
    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let page = self.pages.page(self.lines, place.page);
        self.present[i] = if self.phase.all_kept(self.pages) {
            self.pages.contains(machine, page, place)
        } else {
            let (now, kept) = (self.phase.tag(self.pages, place.page), self.phase.kept(self.pages, place.page));
            self.pages.contains_since(machine, page, place, now, kept)
        };
    }
}

/// Asks, and inserts: always with `refresh`, else what was not there.
pub struct Duplicated<'a> {
    pub pages: &'a Pages,
    pub lines: &'a mut [Line],
    pub phase: Phase,
    pub refresh: bool,
    pub seen: &'a mut [bool],
    pub inserted: u64,
}

impl Act for Duplicated<'_> {
    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let tag = self.phase.tag(self.pages, place.page);
        let page = self.pages.page_mut(self.lines, place.page);
        self.seen[i] = if self.refresh {
            self.pages.add(machine, page, place, tag)
        } else if self.pages.fine() {
            machine.run(AddUnseen { pages: self.pages, page, place, tag })
        } else {
            let seen = self.pages.contains(machine, page, place);
            if !seen {
                self.pages.put(machine, page, place, tag, tag);
            }
            seen
        };
        self.inserted += u64::from(self.refresh || !self.seen[i]);
    }
}

/// Inserts a key that is not there, where one that is may count no longer; says whether it is there.
struct AddUnseen<'a> {
    pages: &'a Pages,
    page: &'a mut [Line],
    place: &'a Place,
    tag: u32,
}

impl<M: Slots> Work<M> for AddUnseen<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, machine: M) -> bool {
        let Self { pages, page, place, tag } = self;
        pages.contains_since(machine, page, place, tag, pages.kept) || pages.add(machine, page, place, tag)
    }
}

/// Tells how old keys are.
pub struct Tell<'a> {
    pub pages: &'a Pages,
    pub lines: &'a [Line],
    pub phase: Phase,
    pub evidence: &'a mut [Evidence],
}

impl Act for Tell<'_> {
    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let now = self.phase.tag(self.pages, place.page);
        let page = self.pages.page(self.lines, place.page);
        let told = self.pages.age(machine, page, place, now);
        self.evidence[i] = self.phase.says(self.pages, place.page, told);
        if told.is_some_and(|(_, surely)| !surely) {
            self.evidence[i] = self.evidence[i].of_marked(self.pages.marked(page));
        }
    }
}
