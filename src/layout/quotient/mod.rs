//! The aged quotient filter: fingerprints with the tags of their epochs, in cache lines.
//!
//! A page of 8 KiB has 127 lines of entries and an overflow line. A hash, read as a number of mixed radix, gives page,
//! line, bucket and fingerprint. A line is a small quotient filter (Bender et al., *Don't Thrash: How to Cache Your
//! Hash on Flash*, VLDB 2012) in one cache line, as in the vector quotient filter and the pocket dictionary. Its
//! entries lie in the order of their buckets. A bit of each bucket and a bit of each slot encode where the run of a
//! bucket lies. An entry is a fingerprint and the tag of the epoch in which its key was last inserted. A repeat finds
//! its entry and rewrites the tag, so it takes no new space. A query does not read tags.
//!
//! Lines fill unevenly. A full line evicts the entry of its highest bucket to its *alternate line* in the page. There
//! the entry lies in a *guest bucket*, from which its home line can be computed. Only queries of the highest buckets
//! read an alternate line: a line stores how many buckets these are. In a page that is as full as planned, these are 7
//! to 9 % of all queries. An entry without room in its page goes to the *overflow line*. If that is full too, the key
//! is *rejected*: lines of rejected keys report every key until the tag of that time expires. An insertion never fails.
//!
//! # How it ages
//!
//! As in the [line layout](crate::family::lines::cells), pages rotate one after the other. A tag of T bits distinguishes 2^T
//! epochs: the open one and r full ones before it. With P pages and epochs of g insertions, a *step* is g / P
//! insertions. In step s, page s mod P begins its next epoch, whose tag is the number of its rotations modulo 2^T. The
//! rotation removes all entries that have this tag from 2^T rotations ago. Steps are the generations of the [`Clock`].
//!
//! # The promise
//!
//! A key that is inserted in step s is then in an entry at its location, in the overflow line of its page, or rejected
//! by its home line. Each has the tag of its page in step s, that of rotation number t. Later insertions move entries
//! between the two lines that queries of their location read, and give them younger tags, as a repeat of the key does.
//! Only rotation t + 2^T of the page removes an entry or a tag, or a later rotation if the tag is younger. The page
//! rotates once in P steps. So rotation t + 1 comes with step s + 1 at the earliest, and rotation t + 2^T with step s +
//! 1 + r P. The key is therefore reported through the r P steps after s. This is the promise of every filter that
//! retains r P generations.
//!
//! # How it grows
//!
//! In a filter that may grow, the pages double while more keys come than planned for. The two, four, .. pages that one
//! page has become rotate together, as one group, and all of the above holds for groups of pages.
//!
//! Deletion is not offered. Two keys may share an entry, and removing it for one key would also remove the other.

mod count;
mod eviction;
mod evidence;
mod format;
mod grow;
mod line;
mod merge;
mod overflow;
mod page;
mod pages;
mod query;
mod run;
mod slots;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

use std::ops::{Deref, Range};

use crate::Error;
use crate::clock::Clock;
use crate::family::abilities::{Check, Divide, Infer, Merge, Partition, Resize, Shorten};
use crate::family::{Abilities, Layout, Occupancy};
use crate::inference::{Evidence, Likelihood, Question};
use crate::instructions::Instructions;
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::shape::quotient::QuotientShape;
use count::CountInsert;
use format::Line;
use grow::Limits;
use merge::MergePage;
use page::RotatePage;
use pages::Pages;
use query::QueryBlocks;
use run::{Duplicated, ForEach, Insert, Operation, Query, ReadEvidence, RunCells};

/// Pages of lines of entries.
#[derive(Clone, Copy)]
pub struct Quotient {
    pages: Pages,
    instructions: Instructions,
    /// How full the pages may be before they double; `None` if the filter does not grow.
    limits: Option<Limits>,
}

/// Which epoch is open in each page, and how many epochs are retained.
#[derive(Clone, Copy)]
pub struct EpochRotation {
    /// The last group of pages that is in the epoch whose tag is `newest`. Later groups are one epoch behind.
    rotated: u32,
    newest: u32,
    /// The number of groups after `rotated` that retain one epoch less than the others. They rotate once more before
    /// the moment of a query, or have rotated once less since the beginning of its window.
    more: u32,
    /// The number of epochs retained: in the other groups, and in these `more` groups.
    retained: [u32; 2],
}

impl EpochRotation {
    /// Returns the tag of keys that are inserted into a page now.
    #[inline(always)]
    fn tag(self, pages: &Pages, page: u32) -> u32 {
        // The sign of the difference. Compilers make a branch of a comparison, which is mispredicted half the time.
        let back = self.rotated.wrapping_sub(pages.group(page)) >> 31;
        pages.format.age(self.newest, back + pages.behind_first(page))
    }

    /// Returns whether all epochs are retained in all pages, so that tags need not be read.
    #[inline(always)]
    fn retains_all(self, pages: &Pages) -> bool {
        self.more == 0 && self.retained[0] == 1 << pages.format.tag_bits
    }

    /// Returns how many epochs of a page, the open one included, are retained for a query.
    #[inline(always)]
    fn retained(self, pages: &Pages, page: u32) -> u32 {
        let group = pages.group(page);
        let before = group.wrapping_sub(self.rotated + 1);
        let before = if group > self.rotated { before } else { before.wrapping_add(pages.count as u32) };
        self.retained[usize::from(before < self.more)]
    }
}

impl Quotient {
    /// Returns the layout of a shape.
    pub fn new(shape: QuotientShape) -> Self {
        Self { pages: Pages::new(shape), instructions: Instructions::best(), limits: None }
    }

    /// Applies an operation to the keys of a run, in order, and returns it.
    #[inline(always)]
    fn for_each<L: Deref<Target = [Line]>, O: Operation<L>>(
        &self,
        lines: L,
        rotation: EpochRotation,
        hashes: &[u64],
        run: Range<usize>,
        operation: O,
    ) -> O {
        let cells = RunCells { pages: &self.pages, lines, rotation };
        self.instructions.run(ForEach { cells, hashes, run, operation })
    }
}

impl Layout for Quotient {
    type Rotation = EpochRotation;

    /// Returns the number of steps until every page has used all of its tags.
    fn generations(&self) -> u64 {
        u64::from(self.pages.retained) * self.pages.steps()
    }

    fn rotation(&self, generation: i64, pending: u64) -> EpochRotation {
        // There are fewer than 2^29 pages, so no conversion truncates.
        let pages = self.pages.count as i64;
        let retained =
            |rotations: u64| self.pages.retained.saturating_sub(u32::try_from(rotations).unwrap_or(u32::MAX));
        if self.pages.fine() {
            // No page is behind another.
            let newest = self.pages.format.age(generation as u32, 0);
            return EpochRotation { rotated: u32::MAX >> 1, newest, more: 0, retained: [retained(pending); 2] };
        }
        let epoch = generation.div_euclid(pages);
        let (rotations, more) =
            if pending == 0 { (0, 0) } else { (pending / self.pages.count, pending % self.pages.count) };
        EpochRotation {
            rotated: (generation - epoch * pages) as u32,
            newest: self.pages.format.age(epoch as u32, 0),
            more: more as u32,
            retained: [retained(rotations), retained(rotations.saturating_add(1))],
        }
    }

    #[inline(always)]
    fn prefetch_insert(&self, words: Address, _rotation: EpochRotation, hash: u64) {
        self.prefetch_query(words, hash);
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        words.fetch(self.pages.home_line(&self.pages.location(hash)) * 8);
    }

    fn insert(&self, words: &mut [u64], rotation: EpochRotation, hash: u64) {
        self.insert_run(words, rotation, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], rotation: EpochRotation, hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, rotation, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], rotation: EpochRotation, hashes: &[u64], run: Range<usize>) {
        let lines = words.as_chunks_mut().0;
        if self.counts() {
            self.for_each(lines, rotation, hashes, run, CountInsert { seen: &mut [] });
        } else {
            self.for_each(lines, rotation, hashes, run, Insert);
        }
    }

    fn query_run(
        &self,
        words: &[u64],
        rotation: EpochRotation,
        hashes: &[u64],
        run: Range<usize>,
        present: &mut [bool],
    ) {
        let (pages, lines) = (&self.pages, words.as_chunks().0);
        if run.len() > run::BLOCK && rotation.retains_all(pages) {
            self.instructions.run(QueryBlocks { pages, lines, hashes, run, present });
        } else {
            self.for_each(lines, rotation, hashes, run, Query { present });
        }
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        rotation: EpochRotation,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        let lines = words.as_chunks_mut().0;
        if self.counts() && refresh {
            let inserted = run.len() as u64;
            self.for_each(lines, rotation, hashes, run, CountInsert { seen });
            return inserted;
        }
        self.for_each(lines, rotation, hashes, run, Duplicated { refresh, seen, inserted: 0 }).inserted
    }

    /// Rotates the groups of pages whose epoch ends, if they belong to this partition.
    fn open(&self, words: &mut [u64], generation: i64) {
        let (rotation, pages, address) = (self.rotation(generation, 0), &self.pages, Address::of(words));
        // The next page is prefetched meanwhile, so that its rotation does not wait for memory.
        let mut rotating = pages.rotating(generation).chain(pages.rotating(generation + 1).take(1)).peekable();
        for _ in 0..pages.rotating(generation).count() {
            let (Some(group), next) = (rotating.next(), rotating.peek()) else { return };
            if let Some(&next) = next {
                let first = pages.start((next as u32) << pages.level);
                (first..first + pages.stride()).for_each(|line| address.fetch(line * 8));
            }
            let first = (group as u32) << pages.level;
            let expired = pages.expired(rotation.tag(pages, first));
            for page in first..first + pages.of_group() as u32 {
                let page = pages.page_mut(words.as_chunks_mut().0, page);
                self.instructions.run(RotatePage { pages, page, expired });
            }
        }
    }

    /// Returns whether a page of this partition rotates, or the tags of all pages change.
    #[inline(always)]
    fn rotates(&self, generation: i64) -> bool {
        let any = || self.pages.rotating(generation).next().is_some();
        self.pages.fine() || self.pages.is_whole() || any()
    }

    #[inline(always)]
    fn abilities(&self) -> Abilities<'_, Self> {
        let grows = self.limits.is_some();
        Abilities {
            shorten: Some(self),
            infer: Some(self),
            count: self.counts().then_some(self as _),
            divide: (!grows).then_some(self as _),
            resize: grows.then_some(self as _),
            merge: Some(self),
            check: Some(self),
            ..Abilities::NONE
        }
    }
}

impl Occupancy for Quotient {
    /// Returns the share of the slots that each epoch uses.
    fn fill(&self, words: &[u64], rotation: EpochRotation) -> Vec<f64> {
        let slots = words.len() as f64 / 8.0 * f64::from(self.pages.lines * self.pages.format.shape.slots)
            / f64::from(self.pages.lines + 1);
        // If all slots are in use, the overflow lines contain more keys.
        let share = |entries| (entries as f64 / slots).min(1.0);
        self.entries(words.as_chunks().0, rotation).into_iter().map(share).collect()
    }

    fn match_rates(&self, words: &[u64], rotation: EpochRotation) -> Vec<f64> {
        let locations = self.pages.all_locations();
        self.entries(words.as_chunks().0, rotation).into_iter().map(|entries| entries as f64 / locations).collect()
    }

    fn false_positive_rate(&self, words: &[u64], rotation: EpochRotation) -> f64 {
        self.rate(words.as_chunks().0, rotation)
    }
}

impl Shorten<EpochRotation> for Quotient {
    fn rotation_within(&self, generation: i64, back: u64) -> EpochRotation {
        if self.pages.fine() {
            return EpochRotation { retained: [back as u32 + 1; 2], ..self.rotation(generation, 0) };
        }
        // In `back` steps each page rotates this many times, and those that rotated in the last few steps once more.
        let (rotations, few) = (back / self.pages.count, back % self.pages.count);
        let (least, more) = (rotations as u32 + 1, if few > 0 { (self.pages.count - few) as u32 } else { 0 });
        EpochRotation { more, retained: [least + u32::from(few > 0), least], ..self.rotation(generation, 0) }
    }
}

impl Infer<EpochRotation> for Quotient {
    fn evidence_run(&self, words: &[u64], rotation: EpochRotation, hashes: &[u64], evidence: &mut [Evidence]) {
        self.for_each(words.as_chunks().0, rotation, hashes, 0..hashes.len(), ReadEvidence { evidence });
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Box<dyn Likelihood> {
        Box::new(self.epochs(words.as_chunks().0, clock, question))
    }
}

impl Divide<Self> for Quotient {
    fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
        for (pages, words, hashes) in self.pages.partitions(words, count) {
            each(Partition { layout: Self { pages, ..*self }, words, hashes });
        }
    }
}

impl Resize<Self> for Quotient {
    fn resize_interval(&self) -> u64 {
        self.interval()
    }

    fn resized(&self, words: &[u64], rotation: EpochRotation) -> Option<(Self, Words)> {
        let lines = words.as_chunks().0;
        let level = self.target_level(lines);
        // Without memory for another level the filter stays as it is, and its full lines reject keys.
        if level == self.pages.level { None } else { self.at_level(level, lines, rotation).ok() }
    }

    fn resize_to_match(
        &self,
        other: &Self,
        words: &[u64],
        rotation: EpochRotation,
    ) -> Result<Option<(Self, Words)>, Error> {
        let level = other.pages.level;
        (level > self.pages.level).then(|| self.at_level(level, words.as_chunks().0, rotation)).transpose()
    }
}

impl Merge<EpochRotation> for Quotient {
    /// Merges all pages. An entry that both filters contain gets the younger tag.
    fn merge(&self, words: &mut [u64], others: &[u64], rotation: EpochRotation) {
        let (lines, others) = (words.as_chunks_mut().0, others.as_chunks().0);
        for (page, other) in self.pages.all(others) {
            let now = rotation.tag(&self.pages, page);
            let into = self.pages.page_mut(lines, page);
            self.instructions.run(MergePage { pages: &self.pages, number: page, page: into, other, now });
        }
    }
}

impl Check for Quotient {
    /// Rejects bits with which operations could leave the line or the page.
    fn check(&self, words: &[u64], _: &Clock) -> Result<(), Error> {
        let sound = |page: &[Line]| page[1..].iter().all(|line| self.pages.format.is_sound(line));
        match self.pages.all(words.as_chunks().0).all(|(_, page)| sound(page)) {
            true => Ok(()),
            false => Err(Error::format("the cells are damaged: the runs of a line do not end where they should")),
        }
    }
}
