//! Runs of keys, block by block: their places are worked out once, and their lines are there when they act.

use std::ops::Range;

use super::Rotation;
use super::format::Line;
use super::place::{Pages, Place};
use super::slots::Slots;
use crate::inference::Evidence;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// Keys of a block. While those of one act, the home lines of the next are there and tell what else is needed, and
/// those of the one after that are on the way.
pub const BLOCK: usize = 32;
/// So few lines, 4 MiB, are near enough that only home lines are fetched ahead.
const NEAR: usize = 1 << 16;

/// Keys of a block, by their places in it.
#[derive(Clone, Copy, Default)]
pub struct Deferred {
    keys: [u8; BLOCK],
    len: usize,
}

impl Deferred {
    /// Puts a key aside, or does not, without a branch.
    #[inline(always)]
    pub fn put_if(&mut self, key: u8, condition: bool) {
        self.keys[self.len % BLOCK] = key;
        self.len += usize::from(condition);
    }

    /// Those put aside, in order.
    #[inline(always)]
    pub fn keys(&self) -> &[u8] {
        &self.keys[..self.len]
    }
}

/// What each key of a run does.
pub trait Operation {
    /// The lines at hand.
    fn lines(&self) -> &[Line];

    /// Whether it puts keys into lines, and needs room there.
    const PUTS: bool;

    /// Does it for key `i` of the batch.
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place);
}

/// All keys of a run, one after the other.
pub struct ForEach<'a, A> {
    pub pages: &'a Pages,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub act: A,
}

impl<M: Slots, A: Operation> Work<M> for ForEach<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self, machine: M) -> A {
        let Self { pages, hashes, run, mut act } = self;
        if run.len() == 1 {
            // Alone, a key is done before there is room for those in flight.
            act.act(machine, run.start, &pages.place(hashes[run.start]));
            return act;
        }
        let address = Address::of(act.lines().as_flattened());
        // Those of the next run too: a page turns after some hundred keys, and memory is not to wait for that.
        let end = hashes.len().min(run.end + run.len().min(2 * BLOCK));
        let far = act.lines().len() > NEAR;
        let (mut blocks, mut rings) = (hashes[run.start..end].chunks(BLOCK), [[Place::default(); BLOCK]; 3]);
        let [mut now, mut next, mut later] = rings.each_mut();
        fetch_homes(pages, address, blocks.next(), now);
        fetch_homes(pages, address, blocks.next(), next);
        if far {
            fetch_others::<M, A>(machine, pages, address, act.lines(), &now[..run.len().min(BLOCK)]);
        }
        for start in run.clone().step_by(BLOCK) {
            fetch_homes(pages, address, blocks.next(), later);
            let coming = run.end.saturating_sub(start + BLOCK).min(BLOCK);
            if far {
                fetch_others::<M, A>(machine, pages, address, act.lines(), &next[..coming]);
            }
            for (i, place) in (start..run.end).zip(&*now) {
                act.act(machine, i, place);
            }
            (now, next, later) = (next, later, now);
        }
        act
    }
}

/// Works out where keys are at home, and has their lines fetched.
#[inline(always)]
fn fetch_homes(pages: &Pages, address: Address, hashes: Option<&[u64]>, places: &mut [Place; BLOCK]) {
    for (place, &hash) in places.iter_mut().zip(hashes.unwrap_or_default()) {
        *place = pages.place(hash);
        address.fetch(pages.home_of(place) * 8);
    }
}

/// Has the lines fetched that keys are going to need beside their home lines, which are there. Few need any, and which
/// do is not to be a branch.
#[inline(always)]
fn fetch_others<M: Slots, A: Operation>(machine: M, pages: &Pages, address: Address, lines: &[Line], places: &[Place]) {
    let (format, mut aside) = (pages.format, Deferred::default());
    for (key, place) in (0..).zip(places) {
        let home = &lines[pages.home_of(place)];
        aside.put_if(key, pages.sent(home, place.bucket).is_some() | (A::PUTS && format.full(home)));
    }
    for &key in aside.keys() {
        let place = &places[usize::from(key)];
        fetch_second(pages, address, lines, place);
        let home = &lines[pages.home_of(place)];
        if A::PUTS && format.full(home) {
            let spare = pages.start(place.page);
            address.fetch(spare * 8);
            for to in pages.ways_out(machine, home, place.line) {
                address.fetch((spare + to as usize + 1) * 8);
            }
        }
    }
}

/// Has the second line of a key fetched, if it may be there.
#[inline(always)]
pub fn fetch_second(pages: &Pages, address: Address, lines: &[Line], place: &Place) {
    if let Some(movable) = pages.sent(&lines[pages.home_of(place)], place.bucket) {
        let second = pages.second(place.line, movable, place.print);
        address.fetch((pages.start(place.page) + second as usize + 1) * 8);
    }
}

/// Inserts.
pub struct Insert<'a> {
    pub pages: &'a Pages,
    pub lines: &'a mut [Line],
    pub phase: Rotation,
}

impl Operation for Insert<'_> {
    const PUTS: bool = true;

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
    pub phase: Rotation,
    pub present: &'a mut [bool],
}

impl Operation for Query<'_> {
    const PUTS: bool = false;

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
            let (now, kept) = (self.phase.tag(self.pages, place.page), self.phase.retained(self.pages, place.page));
            self.pages.contains_since(machine, page, place, now, kept)
        };
    }
}

/// Asks, and inserts: always with `refresh`, else what was not there.
pub struct Duplicated<'a> {
    pub pages: &'a Pages,
    pub lines: &'a mut [Line],
    pub phase: Rotation,
    pub refresh: bool,
    pub seen: &'a mut [bool],
    pub inserted: u64,
}

impl Operation for Duplicated<'_> {
    const PUTS: bool = true;

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
    pub phase: Rotation,
    pub evidence: &'a mut [Evidence],
}

impl Operation for Tell<'_> {
    const PUTS: bool = false;

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        self.lines
    }

    #[inline(always)]
    fn act<M: Slots>(&mut self, machine: M, i: usize, place: &Place) {
        let now = self.phase.tag(self.pages, place.page);
        let page = self.pages.page(self.lines, place.page);
        let told = self.pages.age(machine, page, place, now);
        self.evidence[i] = self.phase.evidence_at(self.pages, place.page, told);
        if told.is_some_and(|(_, surely)| !surely) {
            self.evidence[i] = self.evidence[i].with_marked(self.pages.marked(page));
        }
    }
}
