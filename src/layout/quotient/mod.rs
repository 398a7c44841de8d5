//! The aged quotient filter: fingerprints with the tags of their epochs, in cache lines.
//!
//! A page of 8 KiB has 127 lines of entries and a spare one. A hash is read as a number of mixed radix: page, line,
//! bucket, fingerprint. A line is a small quotient filter (Bender et al., *Don't Thrash: How to Cache Your Hash on
//! Flash*, VLDB 2012, here as the vector quotient filter and the pocket dictionary have it, in one cache line): its
//! entries lie in the order of their buckets, and a bit of each bucket and a bit of each slot tell where the run of a
//! bucket is. An entry is a fingerprint and the tag of the epoch in which its key was last inserted. A repeat finds its
//! entry and rewrites the tag: it takes no new space. A query does not look at tags at all.
//!
//! Lines fill unevenly. A full one sends the entry of its highest bucket to a second line of the page, where it lies in
//! a foreign bucket that says whose it is: only queries of the highest buckets, as many as the home line's *reach* has,
//! read a second line, 7 to 9 % of all where a page is as full as planned. What finds no room in its page goes to the
//! spare line; where that is full, lines that had to turn a key away say yes to all until the tag of that time expires.
//! An insertion never fails.
//!
//! # How it ages
//!
//! As the [line layout](crate::layout::line): pages turn one after the other. With T bits of a tag there are r = 2^T -
//! 1 full epochs and the open one; with P pages and epochs of g insertions a *step* is g / P insertions, and with step
//! s the page s mod P begins its next epoch. Its tag is the number of turns of its page, modulo 2^T, and the turn
//! forgets whatever has this tag from 2^T turns ago. Steps are the generations of the [`Clock`].
//!
//! # The promise
//!
//! A key that is inserted in step s is then in an entry of its place, in a print of its page's spare, or turned away
//! by a line that says yes to all, and each has the tag of its page in step s: turn number t. What happens later moves
//! entries between the two lines that queries of their place look at, and gives them younger tags; a repeat of the key
//! does so as well. None takes an entry or a tag out but turn t + 2^T of the page, or a later one if the tag is
//! younger. The page turns once in P steps, so that turn t + 1 comes with step s + 1 at the earliest and turn t + 2^T
//! with step s + 1 + r P: as long as the r P steps after s last, the key is reported. It is the promise of any filter
//! here that keeps r P generations.
//!
//! # How it grows
//!
//! Of a filter that may grow the pages double while more keys come than planned for; the two, four, .. pages that one
//! has become turn together, as one, so that all the above holds with groups of pages in the place of pages.
//!
//! Deletion is not offered. Two keys may share an entry, and who takes it out for one forgets the other.

mod ask;
mod count;
mod evidence;
mod format;
mod grow;
mod line;
mod merge;
mod page;
mod place;
mod room;
mod run;
mod slots;
mod spare;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

use std::ops::Range;

use crate::Error;
use crate::clock::Clock;
use crate::inference::{Evidence, Likelihood, Question};
use crate::instructions::Instructions;
use crate::layout::abilities::{Check, Divide, Infer, Merge, Partition, Resize, Shorten};
use crate::layout::{Abilities, Layout, Occupancy};
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::shape::quotient::QuotientShape;
use ask::Ask;
use count::CountInsert;
use format::Line;
use grow::Limits;
use merge::Unite;
use page::Turn;
use place::Pages;
use run::{Duplicated, ForEach, Insert, Query, Tell};

/// Pages of lines of entries.
#[derive(Clone, Copy)]
pub struct Quotient {
    pages: Pages,
    instructions: Instructions,
    /// How full it may be until it grows, if it does.
    limits: Option<Limits>,
}

/// Which epoch is open, page by page, and which are still kept.
#[derive(Clone, Copy)]
pub struct Rotation {
    /// The last group of pages that has begun the epoch whose tag is `newest`; those behind it are one epoch back.
    turned: u32,
    newest: u32,
    /// Groups after `turned` that turn once more than the others before the moment of a query, or have turned once less
    /// since the beginning of its window.
    more: u32,
    /// The number of epochs that count: of the others, and of those.
    kept: [u32; 2],
}

impl Rotation {
    /// The tag of what a page takes now.
    #[inline(always)]
    fn tag(self, pages: &Pages, page: u32) -> u32 {
        // The sign of the difference: from a comparison compilers make a branch, which is as good as random.
        let back = self.turned.wrapping_sub(pages.group(page)) >> 31;
        pages.format.age(self.newest, back + pages.behind_first(page))
    }

    /// Whether all that is there now counts.
    #[inline(always)]
    fn all_kept(self, pages: &Pages) -> bool {
        self.more == 0 && self.kept[0] == 1 << pages.format.tag_bits
    }

    /// How many epochs, the open one first, count for a query.
    #[inline(always)]
    fn retained(self, pages: &Pages, page: u32) -> u32 {
        let group = pages.group(page);
        let before = group.wrapping_sub(self.turned + 1);
        let before = if group > self.turned { before } else { before.wrapping_add(pages.count as u32) };
        self.kept[usize::from(before < self.more)]
    }
}

impl Pages {
    /// The lines of a page, the spare first.
    #[inline(always)]
    fn page<'a>(&self, lines: &'a [Line], page: u32) -> &'a [Line] {
        &lines[self.start(page)..][..self.stride()]
    }

    /// The same, to write.
    #[inline(always)]
    fn page_mut<'a>(&self, lines: &'a mut [Line], page: u32) -> &'a mut [Line] {
        &mut lines[self.start(page)..][..self.stride()]
    }

    /// All pages at hand, with their numbers.
    fn all<'a>(&self, lines: &'a [Line]) -> impl Iterator<Item = (u32, &'a [Line])> + use<'a> {
        ((self.first << self.level) as u32..).zip(lines.chunks_exact(self.stride()))
    }
}

impl Quotient {
    /// The lines of a shape.
    pub fn new(shape: QuotientShape) -> Self {
        Self { pages: Pages::new(shape), instructions: Instructions::best(), limits: None }
    }
}

impl Layout for Quotient {
    type Rotation = Rotation;

    /// Steps until every page has turned through all of its tags.
    fn generations(&self) -> u64 {
        u64::from(self.pages.kept) * self.pages.steps()
    }

    fn rotation(&self, generation: i64, pending: u64) -> Rotation {
        // Pages are fewer than 2^29, so that nothing is cut off.
        let pages = self.pages.count as i64;
        let kept = |turns: u64| self.pages.kept.saturating_sub(u32::try_from(turns).unwrap_or(u32::MAX));
        if self.pages.fine() {
            // No page is behind another.
            let newest = self.pages.format.age(generation as u32, 0);
            return Rotation { turned: u32::MAX >> 1, newest, more: 0, kept: [kept(pending); 2] };
        }
        let epoch = generation.div_euclid(pages);
        let (turns, more) =
            if pending == 0 { (0, 0) } else { (pending / self.pages.count, pending % self.pages.count) };
        Rotation {
            turned: (generation - epoch * pages) as u32,
            newest: self.pages.format.age(epoch as u32, 0),
            more: more as u32,
            kept: [kept(turns), kept(turns.saturating_add(1))],
        }
    }

    #[inline(always)]
    fn prefetch_insert(&self, words: Address, _phase: Rotation, hash: u64) {
        self.prefetch_query(words, hash);
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        let place = self.pages.place(hash);
        words.fetch(self.pages.home_of(&place) * 8);
    }

    fn insert(&self, words: &mut [u64], phase: Rotation, hash: u64) {
        self.insert_run(words, phase, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], phase: Rotation, hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, phase, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], phase: Rotation, hashes: &[u64], run: Range<usize>) {
        let (pages, lines) = (&self.pages, words.as_chunks_mut().0);
        if self.counts() {
            self.instructions.run(ForEach {
                pages,
                hashes,
                run,
                act: CountInsert { pages, lines, phase, seen: &mut [] },
            });
        } else {
            self.instructions.run(ForEach { pages, hashes, run, act: Insert { pages, lines, phase } });
        }
    }

    fn query_run(&self, words: &[u64], phase: Rotation, hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        let (pages, lines) = (&self.pages, words.as_chunks().0);
        if run.len() > run::BLOCK && phase.all_kept(pages) {
            self.instructions.run(Ask { pages, lines, hashes, run, present });
        } else {
            self.instructions.run(ForEach { pages, hashes, run, act: Query { pages, lines, phase, present } });
        }
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        phase: Rotation,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        let (pages, lines) = (&self.pages, words.as_chunks_mut().0);
        if self.counts() && refresh {
            let inserted = run.len() as u64;
            self.instructions.run(ForEach { pages, hashes, run, act: CountInsert { pages, lines, phase, seen } });
            return inserted;
        }
        let act = Duplicated { pages, lines, phase, refresh, seen, inserted: 0 };
        self.instructions.run(ForEach { pages, hashes, run, act }).inserted
    }

    /// Turns the pages whose turn it is, if their words are at hand.
    fn open(&self, words: &mut [u64], generation: i64) {
        let (phase, pages, address) = (self.rotation(generation, 0), &self.pages, Address::of(words));
        // The next is fetched meanwhile, so that its turn does not wait for memory.
        let mut turning = pages.turning(generation).chain(pages.turning(generation + 1).take(1)).peekable();
        for _ in 0..pages.turning(generation).count() {
            let (Some(group), next) = (turning.next(), turning.peek()) else { return };
            if let Some(&next) = next {
                let first = pages.start((next as u32) << pages.level);
                (first..first + pages.stride()).for_each(|line| address.fetch(line * 8));
            }
            let first = (group as u32) << pages.level;
            let gone = pages.gone(phase.tag(pages, first));
            for page in first..first + pages.of_group() as u32 {
                let page = pages.page_mut(words.as_chunks_mut().0, page);
                self.instructions.run(Turn { pages, page, gone });
            }
        }
    }

    /// Whether a page turns that is at hand, or tags of all pages change.
    #[inline(always)]
    fn rotates(&self, generation: i64) -> bool {
        let turns = || self.pages.turning(generation).next().is_some();
        self.pages.fine() || self.pages.whole() || turns()
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
    /// Share of the slots in use by each epoch.
    fn fill(&self, words: &[u64], phase: Rotation) -> Vec<f64> {
        let slots = words.len() as f64 / 8.0 * f64::from(self.pages.lines * self.pages.format.shape.slots)
            / f64::from(self.pages.lines + 1);
        // Where all slots are in use, the spare holds more.
        let share = |entries| (entries as f64 / slots).min(1.0);
        self.entries(words.as_chunks().0, phase).into_iter().map(share).collect()
    }

    fn match_rates(&self, words: &[u64], phase: Rotation) -> Vec<f64> {
        let places = self.pages.all_places();
        self.entries(words.as_chunks().0, phase).into_iter().map(|entries| entries as f64 / places).collect()
    }

    fn false_positive_rate(&self, words: &[u64], phase: Rotation) -> f64 {
        self.rate(words.as_chunks().0, phase)
    }
}

impl Shorten<Rotation> for Quotient {
    fn rotation_within(&self, generation: i64, back: u64) -> Rotation {
        if self.pages.fine() {
            return Rotation { kept: [back as u32 + 1; 2], ..self.rotation(generation, 0) };
        }
        // In `back` steps each page turns `turns` times; those that turned in the last few steps, once more.
        let (turns, few) = (back / self.pages.count, back % self.pages.count);
        let (kept, more) = (turns as u32 + 1, if few > 0 { (self.pages.count - few) as u32 } else { 0 });
        Rotation { more, kept: [kept + u32::from(few > 0), kept], ..self.rotation(generation, 0) }
    }
}

impl Infer<Rotation> for Quotient {
    fn evidence_run(&self, words: &[u64], phase: Rotation, hashes: &[u64], evidence: &mut [Evidence]) {
        let act = Tell { pages: &self.pages, lines: words.as_chunks().0, phase, evidence };
        self.instructions.run(ForEach { pages: &self.pages, hashes, run: 0..hashes.len(), act });
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Box<dyn Likelihood> {
        Box::new(self.epochs(words.as_chunks().0, clock, question))
    }
}

impl Divide<Self> for Quotient {
    fn partitions<'a>(&self, words: &'a mut [u64], count: usize) -> Vec<Partition<'a, Self>> {
        let partition = |(pages, words, hashes)| Partition { layout: Self { pages, ..*self }, words, hashes };
        self.pages.partitions(words, count).map(partition).collect()
    }
}

impl Resize<Self> for Quotient {
    fn resize_interval(&self) -> u64 {
        self.looks()
    }

    fn resized(&self, words: &[u64], phase: Rotation) -> Option<(Self, Words)> {
        let lines = words.as_chunks().0;
        let level = self.target_level(lines);
        // Without memory for it, it stays as it is: full lines say yes.
        if level == self.pages.level { None } else { self.at_level(level, lines, phase).ok() }
    }

    fn resize_to_match(&self, other: &Self, words: &[u64], phase: Rotation) -> Result<Option<(Self, Words)>, Error> {
        let level = other.pages.level;
        (level > self.pages.level).then(|| self.at_level(level, words.as_chunks().0, phase)).transpose()
    }
}

impl Merge<Rotation> for Quotient {
    /// An entry that both have gets the younger tag.
    fn merge(&self, words: &mut [u64], others: &[u64], phase: Rotation) {
        let (lines, others) = (words.as_chunks_mut().0, others.as_chunks().0);
        for (page, other) in self.pages.all(others) {
            let now = phase.tag(&self.pages, page);
            let into = self.pages.page_mut(lines, page);
            self.instructions.run(Unite { pages: &self.pages, number: page, page: into, other, now });
        }
    }
}

impl Check for Quotient {
    /// Bits of which others could make no lines of entries are refused.
    fn check(&self, words: &[u64], _: &Clock) -> Result<(), Error> {
        let sound = |page: &[Line]| page[1..].iter().all(|line| self.pages.format.sound(line));
        match self.pages.all(words.as_chunks().0).all(|(_, page)| sound(page)) {
            true => Ok(()),
            false => Err(Error::format("the cells are no lines of entries")),
        }
    }
}
