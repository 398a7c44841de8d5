//! Runs of keys, block by block: locations are computed once, and lines are prefetched before their keys are processed.

use std::ops::{Deref, Range};

use super::EpochRotation;
use super::format::Line;
use super::pages::{Location, Pages};
use super::slots::Slots;
use crate::inference::Evidence;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// The number of keys of a block. While the keys of one block are processed, the home lines of the next have arrived
/// and show which other lines it needs, and the home lines of the block after that are on their way.
pub const BLOCK: usize = 32;
/// The greatest number of lines, 4 MiB, for which it is enough to prefetch home lines.
const MAX_CACHED_LINES: usize = 1 << 16;

/// Keys of a block that are processed later, by their numbers in the block.
#[derive(Clone, Copy, Default)]
pub struct Deferred {
    keys: [u8; BLOCK],
    len: usize,
}

impl Deferred {
    /// Adds a key if a condition holds, without a branch.
    #[inline(always)]
    pub fn add_if(&mut self, key: u8, condition: bool) {
        self.keys[self.len % BLOCK] = key;
        self.len += usize::from(condition);
    }

    /// Returns the keys, in order.
    #[inline(always)]
    pub fn keys(&self) -> &[u8] {
        &self.keys[..self.len]
    }
}

/// Pages in one rotation. `lines` are their lines, borrowed to read (`&[Line]`) or to write (`&mut [Line]`).
pub struct RunCells<'a, L> {
    pub pages: &'a Pages,
    pub lines: L,
    pub rotation: EpochRotation,
}

impl<L: Deref<Target = [Line]>> RunCells<'_, L> {
    /// Returns the page of a location.
    #[inline(always)]
    pub fn page(&self, location: &Location) -> &[Line] {
        self.pages.page(&self.lines, location.page)
    }

    /// Returns the tag of the open epoch of a page.
    #[inline(always)]
    pub fn tag(&self, location: &Location) -> u32 {
        self.rotation.tag(self.pages, location.page)
    }

    /// Returns how many epochs of a page are retained.
    #[inline(always)]
    pub fn retained(&self, location: &Location) -> u32 {
        self.rotation.retained(self.pages, location.page)
    }
}

impl RunCells<'_, &mut [Line]> {
    /// Returns the page of a location, to write.
    #[inline(always)]
    pub fn page_mut(&mut self, location: &Location) -> &mut [Line] {
        self.pages.page_mut(self.lines, location.page)
    }
}

/// What is done with each key of a run.
pub trait Operation<L> {
    /// Whether keys may be inserted, for which a full line needs room.
    const INSERTS: bool;

    /// Processes key `i` of the batch.
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, L>, i: usize, location: &Location);
}

/// An operation on all keys of a run, in order.
pub struct ForEach<'a, L, O> {
    pub cells: RunCells<'a, L>,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub operation: O,
}

impl<M: Slots, L: Deref<Target = [Line]>, O: Operation<L>> Work<M> for ForEach<'_, L, O> {
    type Output = O;

    #[inline(always)]
    fn run(self, machine: M) -> O {
        let Self { mut cells, hashes, run, mut operation } = self;
        let pages = cells.pages;
        if run.len() == 1 {
            // A single key is processed before the blocks below could be set up.
            operation.apply(machine, &mut cells, run.start, &pages.location(hashes[run.start]));
            return operation;
        }
        let address = Address::of(cells.lines.as_flattened());
        // Includes keys of the next run: a page rotates after some hundred keys, which must not wait for memory.
        let end = hashes.len().min(run.end + run.len().min(2 * BLOCK));
        let far = cells.lines.len() > MAX_CACHED_LINES;
        let (mut blocks, mut rings) = (hashes[run.start..end].chunks(BLOCK), [[Location::default(); BLOCK]; 3]);
        let [mut now, mut next, mut later] = rings.each_mut();
        prefetch_home_lines(pages, address, blocks.next(), now);
        prefetch_home_lines(pages, address, blocks.next(), next);
        if far {
            prefetch_other_lines(machine, pages, &cells.lines, O::INSERTS, &now[..run.len().min(BLOCK)]);
        }
        for start in run.clone().step_by(BLOCK) {
            prefetch_home_lines(pages, address, blocks.next(), later);
            let coming = run.end.saturating_sub(start + BLOCK).min(BLOCK);
            if far {
                prefetch_other_lines(machine, pages, &cells.lines, O::INSERTS, &next[..coming]);
            }
            for (i, location) in (start..run.end).zip(&*now) {
                operation.apply(machine, &mut cells, i, location);
            }
            (now, next, later) = (next, later, now);
        }
        operation
    }
}

/// Computes the locations of keys, and prefetches their home lines.
#[inline(always)]
fn prefetch_home_lines(pages: &Pages, address: Address, hashes: Option<&[u64]>, locations: &mut [Location; BLOCK]) {
    for (location, &hash) in locations.iter_mut().zip(hashes.unwrap_or_default()) {
        *location = pages.location(hash);
        address.fetch(pages.home_line(location) * 8);
    }
}

/// Prefetches the lines that keys need besides their home lines, which have arrived. Few keys need any. Which do cannot
/// be predicted, so the code does not branch on it.
#[inline(always)]
fn prefetch_other_lines<M: Slots>(machine: M, pages: &Pages, lines: &[Line], inserts: bool, locations: &[Location]) {
    let (format, address, mut deferred) = (pages.format, Address::of(lines.as_flattened()), Deferred::default());
    for (key, location) in (0..).zip(locations) {
        let home = &lines[pages.home_line(location)];
        deferred.add_if(key, pages.evicted(home, location.bucket).is_some() | (inserts && format.full(home)));
    }
    for &key in deferred.keys() {
        let location = &locations[usize::from(key)];
        prefetch_alternate_line(pages, address, lines, location);
        let home = &lines[pages.home_line(location)];
        if inserts && format.full(home) {
            let overflow = pages.start(location.page);
            address.fetch(overflow * 8);
            for to in pages.first_evictions(machine, home, location.line) {
                address.fetch((overflow + to as usize + 1) * 8);
            }
        }
    }
}

/// Prefetches the alternate line of a key, if the key may be there.
#[inline(always)]
pub fn prefetch_alternate_line(pages: &Pages, address: Address, lines: &[Line], location: &Location) {
    if let Some(evictable) = pages.evicted(&lines[pages.home_line(location)], location.bucket) {
        let alternate = pages.alternate_line(location.line, evictable, location.fingerprint);
        address.fetch((pages.start(location.page) + alternate as usize + 1) * 8);
    }
}

/// Inserts the keys.
pub struct Insert;

impl Operation<&mut [Line]> for Insert {
    const INSERTS: bool = true;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &mut [Line]>, _: usize, location: &Location) {
        let (pages, tag) = (cells.pages, cells.tag(location));
        pages.insert(machine, cells.page_mut(location), location, tag);
    }
}

/// Writes which keys the pages contain.
pub struct Query<'a> {
    pub present: &'a mut [bool],
}

impl Operation<&[Line]> for Query<'_> {
    const INSERTS: bool = false;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &[Line]>, i: usize, location: &Location) {
        let (pages, page) = (cells.pages, cells.page(location));
        self.present[i] = if cells.rotation.retains_all(pages) {
            pages.contains(machine, page, location)
        } else {
            pages.contains_since(machine, page, location, cells.tag(location), cells.retained(location))
        };
    }
}

/// Writes which keys the pages contain, and inserts the keys; without `refresh` only those that were absent.
pub struct Duplicated<'a> {
    pub refresh: bool,
    pub seen: &'a mut [bool],
    /// The number of keys inserted.
    pub inserted: u64,
}

impl Operation<&mut [Line]> for Duplicated<'_> {
    const INSERTS: bool = true;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &mut [Line]>, i: usize, location: &Location) {
        let (pages, tag) = (cells.pages, cells.tag(location));
        let page = cells.page_mut(location);
        self.seen[i] = if self.refresh {
            pages.insert(machine, page, location, tag)
        } else if pages.fine() {
            machine.run(InsertUnseen { pages, page, location, tag })
        } else {
            let seen = pages.contains(machine, page, location);
            if !seen {
                pages.insert_new(machine, page, location, tag, tag);
            }
            seen
        };
        self.inserted += u64::from(self.refresh || !self.seen[i]);
    }
}

/// Inserts a key unless the page contains it, in a page that may have entries of epochs that are not retained. Returns
/// whether the page contained the key.
struct InsertUnseen<'a> {
    pages: &'a Pages,
    page: &'a mut [Line],
    location: &'a Location,
    tag: u32,
}

impl<M: Slots> Work<M> for InsertUnseen<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, machine: M) -> bool {
        let Self { pages, page, location, tag } = self;
        pages.contains_since(machine, page, location, tag, pages.retained) || pages.insert(machine, page, location, tag)
    }
}

/// Writes the evidence about the keys.
pub struct ReadEvidence<'a> {
    pub evidence: &'a mut [Evidence],
}

impl Operation<&[Line]> for ReadEvidence<'_> {
    const INSERTS: bool = false;

    #[inline(always)]
    fn apply<M: Slots>(&mut self, machine: M, cells: &mut RunCells<'_, &[Line]>, i: usize, location: &Location) {
        let (pages, page) = (cells.pages, cells.page(location));
        let age = pages.age(machine, page, location, cells.tag(location));
        self.evidence[i] = cells.rotation.evidence_at(pages, location.page, age);
        if age.is_some_and(|(_, certain)| !certain) {
            self.evidence[i] = self.evidence[i].with_flagged(pages.flagged_lines(page));
        }
    }
}
