//! The aged cuckoo filter: fingerprints with the tags of their epochs, in buckets of one cache line.
//!
//! A hash, read as a number of mixed radix, gives a page, a line there and a fingerprint. The fingerprint gives the
//! key's second line in the page, which can be computed from either (partial-key cuckoo hashing: Fan et al., *Cuckoo
//! Filter: Practically Better Than Bloom*, CoNEXT 2014). An entry is a fingerprint and the tag of the epoch in which
//! its key was last inserted. It lies in one of the two lines. A line has up to 28 slots, which are searched at once.
//!
//! An insertion looks into both lines. If it finds the fingerprint it rewrites the entry with the tag of the open
//! epoch. Otherwise it writes the entry into a free slot of the line that is less full. If both are full, it moves an
//! entry of these lines, with its tag, to that entry's other line. Where two moves make no room, the key is *rejected*:
//! both lines carry the tag of that epoch as their rejection, and report every key until it expires. An insertion never
//! fails, and costs accuracy at most.
//!
//! # How it ages
//!
//! Epochs are the generations of the [`Clock`]. An entry is *live* while its tag is that of the open epoch or of one of
//! the r epochs before it. Nothing is written when an epoch opens: ages are read. There are 255 tags, which are used
//! again. So a [sweep](shape::sweeps) of a share of the lines with each epoch clears expired tags before their age
//! becomes 0 again. Lines that take no more keys need none: a tag younger than their last insertion is an expired one.
//!
//! # The promise
//!
//! Of a key inserted in epoch e there is, from then on, an entry with its fingerprint and a tag of e or younger in one
//! of its two lines, or both carry a rejection of e or younger. The insertion makes it so. A move writes the copy, with
//! its tag, into the other of the two lines of its fingerprint, before its slot is used. A repeat or a false match only
//! makes a tag younger, and so does a merge. A slot is overwritten only if its entry has expired, or was moved. A query
//! reads both lines, so the key is reported through epoch e + r.
//!
//! # The rate
//!
//! A fresh key is reported if one of the live entries of its two lines has its fingerprint: 2 S a / 2^f for S slots, a
//! load of a and fingerprints of f bits, an upper bound at the fullest moment.

mod growth;
mod likelihood;
mod line;
mod operations;
mod pages;
#[cfg(not(test))]
pub(crate) mod row;
pub mod shape;
mod table;
mod vectors;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::clock::Clock;
use crate::family::abilities::{Late, Partition, Still};
use crate::family::partition::partition;
use crate::family::{Abilities, Layout};
use crate::inference::{Evidence, Likelihood, Question};
use crate::instructions::{Instructions, Portable};
use crate::memory::prefetch::{AHEAD, Address};
use line::{Line, Now, Tags};
use operations::{Contains, Duplicated, ForEach, Full, Operation, Query, Seen};
use pages::Pages;
use shape::AgedCuckooShape;
use table::Table;

/// Number of lines whose tags are counted, at most.
const SAMPLE: usize = 1 << 16;

/// The layout of an aged cuckoo filter: entries in lines, which lie in pages.
#[derive(Clone, Copy, Debug)]
pub struct AgedCuckoo {
    pages: Pages,
    /// The number of full epochs that are retained.
    retained: u32,
    instructions: Instructions,
}

impl AgedCuckoo {
    /// Returns the layout of a shape.
    pub fn new(shape: AgedCuckooShape) -> Self {
        let AgedCuckooShape { format, epochs, pages, lines, .. } = shape;
        let pages = Pages { count: pages, lines, first: 0, format };
        Self { pages, retained: epochs, instructions: Instructions::best() }
    }

    /// Applies an operation to the keys of a run, in order. Returns the number of keys done.
    #[inline(always)]
    fn for_each(
        &self,
        address: Address,
        now: Now,
        hashes: &[u64],
        run: Range<usize>,
        operation: &mut impl Operation,
    ) -> usize {
        let pages = &self.pages;
        operations::run(self.instructions, pages.format, ForEach { pages, now, hashes, run, operation, address })
    }

    /// Inserts the keys of a run, without `refresh` only those that the lines do not contain, until one ends the run
    /// because it finds no room. Writes to `seen`, if it is not empty, which keys the lines contained. Returns the
    /// number of keys done, and that of insertions.
    fn process(
        &self,
        words: &mut [u64],
        now: Now,
        hashes: &[u64],
        run: Range<usize>,
        (refresh, full): (bool, Full),
        seen: &mut [bool],
    ) -> (usize, u64) {
        let address = Address::of(words);
        let mut operation = Duplicated { lines: lines_mut(words), seen, refresh, full, inserted: 0 };
        (self.for_each(address, now, hashes, run, &mut operation), operation.inserted)
    }

    /// Inserts keys as [`process`](Self::process) does, in one rotation or each in its own. Without `seen` inserts all
    /// of them. Returns the number of keys done.
    fn process_each(
        &self,
        words: &mut [u64],
        nows: &[Now],
        hashes: &[u64],
        seen: Option<(bool, &mut [bool])>,
        full: Full,
    ) -> usize {
        let (refresh, seen) = seen.unwrap_or((true, &mut []));
        if let &[now] = nows {
            return self.process(words, now, hashes, 0..hashes.len(), (refresh, full), seen).0;
        }
        let address = Address::of(words);
        hashes.iter().take(AHEAD).for_each(|&hash| self.prefetch_query(address, hash));
        for (i, (&hash, &now)) in hashes.iter().zip(nows).enumerate() {
            if let Some(&coming) = hashes.get(i + AHEAD) {
                self.prefetch_query(address, coming);
            }
            let contained = !refresh && self.contains(words, now, hash);
            let Some(was_seen) = (if contained { Some(true) } else { self.seen_some(words, now, hash, full) }) else {
                return i;
            };
            if let Some(seen) = seen.get_mut(i) {
                *seen = was_seen;
            }
        }
        hashes.len()
    }

    /// Returns whether the lines contain a key, and inserts it; `None` if there is no room for it.
    #[inline(always)]
    fn seen_some(&self, words: &mut [u64], now: Now, hash: u64, full: Full) -> Option<bool> {
        let (pages, lines) = (&self.pages, lines_mut(words));
        operations::run(self.instructions, pages.format, Seen { pages, now, lines, hash, full })
    }

    /// Rejects a key that finds no room: its lines report every key until the epoch expires. Returns whether they did
    /// so before.
    #[cold]
    fn reject(&self, words: &mut [u64], now: Now, hash: u64) -> bool {
        let (table, place) = (Table::portably(&self.pages, now), self.pages.place(hash));
        let rejects = table.rejects(lines(words), place);
        table.reject(lines_mut(words), place, now.own);
        rejects
    }

    /// Clears the expired tags of the share of the lines that is due with `generation`.
    fn sweep(&self, words: &mut [u64], generation: i64, now: Now) {
        let sweeps = shape::sweeps(self.retained);
        let lines = self.pages.swept(lines_mut(words), generation.rem_euclid(sweeps as i64) as u64, sweeps);
        lines.iter_mut().for_each(|line| line::sweep(self.pages.format, Portable, line, now.live));
    }

    /// Merges the entries of other lines that have the tags of `live`, and their rejections.
    fn merge_lines(&self, words: &mut [u64], others: &[u64], now: Now, live: Tags) {
        let (table, words) = (Table::portably(&self.pages, now), lines_mut(words));
        (0..).zip(lines(others)).for_each(|(line, other)| table.merge_line(words, line, other, live));
    }

    /// Writes the tags of the same ages as before, where the open epoch has another number.
    fn realign(&self, words: &mut [u64], from: Now, to: Now) {
        let slots = self.pages.format.slots();
        for line in lines_mut(words) {
            let (tags, others) = line.split_at_mut(slots);
            tags.iter_mut().chain(others.last_mut()).for_each(|tag| *tag = from.realigned(*tag, to));
        }
    }

    /// Returns the bits of a fingerprint, the number of pages and that of the lines of a page.
    fn numbers(&self) -> [u64; 3] {
        [self.pages.format.fingerprint_bits.into(), self.pages.count, self.pages.lines.into()]
    }

    /// Returns the number of words of all lines.
    fn words(&self) -> usize {
        self.pages.all_lines() as usize * (size_of::<Line>() / 8)
    }

    /// Returns the number of slots of all lines.
    fn all_slots(&self) -> f64 {
        self.pages.all_lines() as f64 * f64::from(self.pages.format.slots)
    }

    /// Returns the number of live entries by age, the youngest first, and that of lines that reject keys, by the age of
    /// their rejection. They are those of a sample of the lines, as if it were all of them.
    fn live(&self, lines: &[Line], now: Now, sample: usize) -> [Vec<f64>; 2] {
        let (mut ages, slots) = ([(); 2].map(|()| vec![0u64; self.retained as usize + 1]), self.pages.format.slots());
        let (sampled, scale) = sampled(lines, sample);
        for line in sampled {
            let [of_entries, of_rejections] = &mut ages;
            for (tags, ages) in [(&line[..slots], of_entries), (&[line::rejection(line)], of_rejections)] {
                for &tag in tags {
                    if now.live.contain(tag) {
                        ages[usize::from(now.age(tag))] += 1;
                    }
                }
            }
        }
        ages.map(|ages| ages.into_iter().map(|number| number as f64 * scale).collect())
    }

    /// Returns the number of live entries, of a sample of the lines as if it were all of them.
    fn live_entries(&self, lines: &[Line], now: Now, sample: usize) -> f64 {
        let (sampled, scale) = sampled(lines, sample);
        let live = sampled.map(|line| self.pages.format.live(Portable, line, now.live).count_ones());
        f64::from(live.sum::<u32>()) * scale
    }

    /// Returns the chance that a fresh key matches one of these entries. An entry takes two of all pairs of a line and
    /// a fingerprint.
    fn chance(&self, entries: f64) -> f64 {
        2.0 * entries / (self.pages.all_lines() as f64 * 2f64.powi(self.pages.format.fingerprint_bits as i32))
    }

    /// Returns the chance that a fresh key matches an entry of each age, the youngest first, and that its lines reject.
    fn chances(&self, words: &[u64], now: Now) -> (Vec<f64>, f64) {
        let [ages, rejections] = self.live(lines(words), now, SAMPLE);
        let share = rejections.iter().sum::<f64>() / self.pages.all_lines() as f64;
        (ages.into_iter().map(|entries| self.chance(entries)).collect(), share * share)
    }
}

/// Returns the likelihood of the entries of one table, or of several that answer together.
fn likelihood_of<'a>(
    clock: &Clock,
    tables: impl IntoIterator<Item = (AgedCuckoo, Now, &'a [u64])>,
) -> Box<dyn Likelihood> {
    let ([mut matches, mut rejections], mut entries, mut all_lines) = ([const { Vec::new() }; 2], 0.0, 0.0);
    for (table, now, words) in tables {
        let [of_entries, of_rejections] = table.live(lines(words), now, SAMPLE);
        entries += of_entries.iter().sum::<f64>();
        all_lines += table.pages.all_lines() as f64;
        let chances = of_entries.into_iter().map(|entries| table.chance(entries)).collect();
        for (sums, numbers) in [(&mut matches, chances), (&mut rejections, of_rejections)] {
            sums.resize(numbers.len(), 0.0);
            sums.iter_mut().zip::<Vec<f64>>(numbers).for_each(|(sum, number)| *sum += number);
        }
    }
    Box::new(likelihood::EntryLikelihood::new(clock, &matches, entries, &rejections, all_lines))
}

/// Returns about `sample` of the lines, evenly spaced, and how many lines there are for each of them.
fn sampled(lines: &[Line], sample: usize) -> (impl Iterator<Item = &Line>, f64) {
    let sampled = lines.iter().step_by(lines.len().div_ceil(sample).max(1));
    let scale = lines.len() as f64 / sampled.len() as f64;
    (sampled, scale)
}

fn lines(words: &[u64]) -> &[Line] {
    bytemuck::cast_slice(words)
}

fn lines_mut(words: &mut [u64]) -> &mut [Line] {
    bytemuck::cast_slice_mut(words)
}

impl Layout for AgedCuckoo {
    type Rotation = Now;

    fn generations(&self) -> u64 {
        u64::from(self.retained) + 1
    }

    #[inline(always)]
    fn rotation(&self, generation: i64, pending: u64) -> Now {
        let retained = u64::from(self.retained).checked_sub(pending);
        Now::new(generation, retained.map(|retained| retained as u32))
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        let place = self.pages.place(hash);
        words.fetch(place.first as usize * 8);
        words.fetch(place.second as usize * 8);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], now: Now, hash: u64) {
        self.seen(words, now, hash);
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], now: Now, hash: u64) -> bool {
        let (pages, lines) = (&self.pages, lines(words));
        operations::run(self.instructions, pages.format, Contains { pages, reported: now.reported, lines, hash })
    }

    #[inline(always)]
    fn seen(&self, words: &mut [u64], now: Now, hash: u64) -> bool {
        self.seen_some(words, now, hash, Full::Rejects).unwrap_or(true)
    }

    fn insert_run(&self, words: &mut [u64], now: Now, hashes: &[u64], run: Range<usize>) {
        self.process(words, now, hashes, run, (true, Full::Rejects), &mut []);
    }

    fn query_run(&self, words: &[u64], now: Now, hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        self.for_each(Address::of(words), now, hashes, run, &mut Query { lines: lines(words), present });
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        now: Now,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        self.process(words, now, hashes, run, (refresh, Full::Rejects), seen).1
    }

    fn evidence(&self, words: &[u64], now: Now, hash: u64) -> Evidence {
        let found = Table::portably(&self.pages, now).find(lines(words), self.pages.place(hash));
        Evidence::epochs(found.map(|(tag, is_entry)| (now.age(tag).into(), is_entry)))
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        self.sweep(words, generation, self.rotation(generation, 0));
    }

    /// Returns a bound without a division, since it is computed for each single key from Python.
    fn most_opened(&self, words: usize) -> usize {
        (words >> shape::sweeps(self.retained).ilog2()) + 1
    }

    fn abilities(&self) -> Abilities<'_, Self> {
        // Merges the live entries and the rejections of each line.
        let merge = |cells: &Self, words: &mut [u64], others: &[u64], now: Now| {
            cells.merge_lines(words, others, now, now.live);
        };
        Abilities { late: Some(self), still: Some(self), merge: Some(merge) }
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
        for (pages, words, hashes) in partition(self.pages.count, self.pages.lines as usize * 8, words, count) {
            let layout = Self { pages: Pages { first: pages.start, ..self.pages }, ..*self };
            each(Partition { layout, words, hashes });
        }
    }

    /// Returns the share of the slots that each epoch uses.
    fn fill(&self, words: &[u64], now: Now) -> Vec<f64> {
        let slots = (lines(words).len() * self.pages.format.slots()) as f64;
        let [entries, _] = self.live(lines(words), now, SAMPLE);
        entries.into_iter().map(|entries| entries / slots).collect()
    }

    fn entries(&self, words: &[u64], now: Now) -> Option<Vec<f64>> {
        let [entries, _] = self.live(lines(words), now, usize::MAX);
        Some(entries)
    }

    fn match_rates(&self, words: &[u64], now: Now) -> Vec<f64> {
        self.chances(words, now).0
    }

    fn false_positive_rate(&self, words: &[u64], now: Now) -> f64 {
        let (matches, rejected) = self.chances(words, now);
        1.0 - (1.0 - rejected) * (1.0 - matches.into_iter().sum::<f64>().min(1.0))
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(likelihood_of(clock, [(*self, self.rotation(clock.generation(), 0), words)]))
    }
}

impl Late<Now> for AgedCuckoo {
    fn rotation_of(&self, generation: i64, own: u64, oldest: u64) -> Now {
        let within = |back: u64| back.min(self.retained.into()) as u8;
        self.rotation(generation, 0).late(within(own), within(oldest))
    }

    fn process_late(&self, words: &mut [u64], nows: &[Now], hashes: &[u64], seen: Option<(bool, &mut [bool])>) {
        self.process_each(words, nows, hashes, seen, Full::Rejects);
    }
}

impl Still<Now> for AgedCuckoo {
    fn process_still(
        &self,
        words: &mut [u64],
        now: Now,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> (usize, u64) {
        self.process(words, now, hashes, run, (refresh, Full::EndsStill), seen)
    }
}
