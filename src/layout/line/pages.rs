//! Which lines a key has: all in one page of 4 KiB, each in a range of its own there.

use std::ops::{Range, RangeInclusive};

use super::LINE;
use crate::layout::cut::cut;
use crate::memory::bits::odd_constants;
use crate::memory::prefetch::Address;
use crate::shape::line::{MAX_LINES, PAGE_LINES};

/// Keys in flight. A key touches a single line, so more keys are needed to hide its latency than where a key touches
/// many.
const AHEAD: usize = 64;

/// How many keys before their places are computed their hashes are prefetched. Processors do that too, but lose track
/// of an array among so many lines elsewhere: queries of a million hashes took 1.4 times as long.
const HASHES_AHEAD: usize = 128;

/// For each line of a key, the factor for its hash: the high half of the product seeds the key's bits there, the low
/// half chooses the line.
static CHOICES: [u64; MAX_LINES as usize] = odd_constants(0);

/// Pages of lines, of which a key has `LINES`: all pages, or those at hand.
#[derive(Clone, Copy)]
pub(crate) struct Pages<const LINES: usize> {
    /// How many pages there are in all.
    pub count: u64,
    /// The first page at hand, and the first beyond.
    pub first: u64,
    pub end: u64,
}

/// The place of one key: its page, its lines, and the seeds of its bits there.
#[derive(Clone, Copy)]
pub(crate) struct Spot<const LINES: usize> {
    pub page: u32,
    pub lines: [usize; LINES],
    pub seeds: [u32; LINES],
}

/// Keys whose places are computed together, which compilers vectorise.
pub(super) const GROUP: usize = 8;

/// The places of some keys.
#[derive(Clone, Copy)]
pub(super) struct Spots<const LINES: usize> {
    pub pages: [u32; GROUP],
    lines: [[u64; GROUP]; LINES],
    seeds: [[u32; GROUP]; LINES],
}

impl<const LINES: usize> Spots<LINES> {
    const NONE: Self = Self { pages: [0; GROUP], lines: [[0; GROUP]; LINES], seeds: [[0; GROUP]; LINES] };

    /// The place of one of them.
    #[inline(always)]
    pub fn at(&self, key: usize) -> Spot<LINES> {
        let mut spot = Spot { page: self.pages[key], lines: [0; LINES], seeds: [0; LINES] };
        for t in 0..LINES {
            (spot.lines[t], spot.seeds[t]) = (self.lines[t][key] as usize, self.seeds[t][key]);
        }
        spot
    }

    /// Prefetches the lines of the first `keys` of them.
    #[inline(always)]
    fn fetch(&self, address: Address, keys: usize) {
        for lines in &self.lines {
            lines.iter().take(keys).for_each(|&line| address.fetch(line as usize * LINE));
        }
    }
}

/// The keys of a run and their places, computed once: when the lines of a key are prefetched, some `AHEAD` keys before
/// it acts. Keys of later runs are prefetched too, whatever their generation.
pub(super) struct InFlight<'a, const LINES: usize> {
    pages: Pages<LINES>,
    address: Address,
    hashes: &'a [u64],
    first: usize,
    spots: [Spots<LINES>; AHEAD / GROUP],
}

impl<'a, const LINES: usize> InFlight<'a, LINES> {
    /// No keys yet.
    #[inline(always)]
    pub fn new(pages: Pages<LINES>, words: &[u64], hashes: &'a [u64]) -> Self {
        Self { pages, address: Address::of(words), hashes, first: 0, spots: [Spots::NONE; AHEAD / GROUP] }
    }

    /// Begins a run. Not in the function that makes it, which would have to copy all places out.
    #[inline(always)]
    pub fn begin(&mut self, run: &Range<usize>) {
        self.first = run.start;
        // Those of a later run have been prefetched.
        let fetched = if run.start == 0 { GROUP } else { 0 };
        for start in run.clone().step_by(GROUP).take(AHEAD / GROUP) {
            self.put(start, fetched);
        }
    }

    /// The places of the keys from `i` on, a group of the run. They stay where they are: a copy of all of them costs as
    /// many instructions as what is done with them.
    #[inline(always)]
    pub fn group(&self, i: usize) -> &Spots<LINES> {
        &self.spots[(i - self.first) / GROUP % (AHEAD / GROUP)]
    }

    /// Gives the room of this group, which has acted, to a later one.
    #[inline(always)]
    pub fn pass(&mut self, i: usize) {
        self.put(i + AHEAD, GROUP);
    }

    /// Computes the places of the keys from `i` on, if there are any, and prefetches the lines of the first `fetched`.
    #[inline(always)]
    fn put(&mut self, i: usize, fetched: usize) {
        let place = &mut self.spots[(i - self.first) / GROUP % (AHEAD / GROUP)];
        Address::of(self.hashes).fetch(i + HASHES_AHEAD);
        let Some(coming) = self.hashes.get(i..).filter(|coming| !coming.is_empty()) else { return };
        if let Some(group) = coming.first_chunk() {
            *place = self.pages.spots(group);
            return place.fetch(self.address, fetched);
        }
        let mut group = [coming[0]; GROUP];
        group[..coming.len()].copy_from_slice(coming);
        *place = self.pages.spots(&group);
        place.fetch(self.address, fetched.min(coming.len()));
    }
}

impl<const LINES: usize> Pages<LINES> {
    /// Lines of a page from which a key chooses one of its lines.
    pub const RANGE: u64 = PAGE_LINES / LINES as u64;

    pub fn new(count: u64) -> Self {
        Self { count, first: 0, end: count }
    }

    /// Whether all of them are at hand.
    #[inline(always)]
    pub fn whole(&self) -> bool {
        self.end - self.first == self.count
    }

    /// The place of a key whose page is at hand.
    #[inline(always)]
    pub fn spot(&self, hash: u64) -> Spot<LINES> {
        let page = self.page(hash);
        let mut spot = Spot { page: page as u32, lines: [0; LINES], seeds: [0; LINES] };
        for t in 0..LINES {
            let (line, seed) = self.line(t, page, hash);
            (spot.lines[t], spot.seeds[t]) = (line as usize, seed);
        }
        spot
    }

    /// The places of keys whose pages are at hand.
    #[inline(always)]
    fn spots(&self, hashes: &[u64; GROUP]) -> Spots<LINES> {
        let mut spots = Spots::NONE;
        for (page, &hash) in spots.pages.iter_mut().zip(hashes) {
            *page = self.page(hash) as u32;
        }
        for t in 0..LINES {
            for (key, &hash) in hashes.iter().enumerate() {
                (spots.lines[t][key], spots.seeds[t][key]) = self.line(t, self.page(hash), hash);
            }
        }
        spots
    }

    /// The page of a key. It is [`scale`](crate::memory::bits::scale) in halves, which compilers vectorise: there are
    /// fewer than 2^32 pages.
    #[inline(always)]
    fn page(&self, hash: u64) -> u64 {
        const LOW: u64 = u32::MAX as u64;
        let count = self.count & LOW;
        ((hash >> 32) * count + (((hash & LOW) * count) >> 32)) >> 32
    }

    /// One of the lines of a key, and the seed of its bits there.
    #[inline(always)]
    fn line(&self, t: usize, page: u64, hash: u64) -> (u64, u32) {
        let choice = hash.wrapping_mul(CHOICES[t]);
        let line = (u64::from(choice as u32) * Self::RANGE) >> 32;
        ((page - self.first) * PAGE_LINES + t as u64 * Self::RANGE + line, (choice >> 32) as u32)
    }

    /// Prefetches the lines of a key.
    #[inline(always)]
    pub fn fetch(&self, words: Address, hash: u64) {
        for line in self.spot(hash).lines {
            words.fetch(line * LINE);
        }
    }

    /// Cuts the pages into at most `parts`: each with its words, and the hashes of its keys. Returns none if there
    /// would be only one.
    pub fn cut(self, words: &mut [u64], parts: usize) -> impl Iterator<Item = (Self, &mut [u64], RangeInclusive<u64>)> {
        let cut = cut(self.count, PAGE_LINES as usize * LINE, words, parts);
        cut.map(move |(pages, words, hashes)| (Self { first: pages.start, end: pages.end, ..self }, words, hashes))
    }
}
