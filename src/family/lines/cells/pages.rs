//! Where the lines of a key are: all in one page of 4 KiB, each in a range of its own there.

use std::ops::{Range, RangeInclusive};

use super::LINE;
use crate::family::lines::shape::{MAX_LINES, PAGE_LINES};
use crate::family::partition::partition;
use crate::instructions::{Machine, Work};
use crate::memory::bits::odd_constants;
use crate::memory::prefetch::Address;

/// Number of keys whose lines are prefetched ahead. A key reads a single line, so hiding its latency takes more keys
/// than where a key reads many.
const AHEAD: usize = 64;

/// Number of hashes that are prefetched ahead of the keys whose locations are computed. Processors prefetch an array
/// too, but lose track of it among accesses to many other lines: queries of a million hashes took 1.4 times as long.
const HASHES_AHEAD: usize = 128;

/// For each line of a key, the factor for its hash. The high half of the product seeds the key's bits in the line, the
/// low half chooses the line.
static CHOICES: [u64; MAX_LINES as usize] = odd_constants(0);

/// Pages of lines: all pages, or those of a partition.
#[derive(Clone, Copy)]
pub(crate) struct Pages {
    /// The number of all pages.
    pub count: u64,
    /// The number of lines of a key, all of them in one page.
    pub lines: u32,
    /// The first page of this partition.
    pub first: u64,
    /// The first page beyond this partition.
    pub end: u64,
}

/// The location of one key: its page, its lines among the words of the partition, and the seeds of its bits there.
#[derive(Clone, Copy)]
pub(crate) struct Location<const LINES: usize> {
    pub page: u32,
    pub lines: [usize; LINES],
    pub seeds: [u32; LINES],
}

/// Stands for a number of lines that is not known before run time.
pub(super) const ANY: usize = MAX_LINES as usize + 1;

/// Number of keys whose locations are computed together, which compilers vectorise.
pub(super) const GROUP: usize = 8;

/// The locations of a group of keys.
#[derive(Clone, Copy)]
pub(super) struct Locations<const LINES: usize> {
    pub pages: [u32; GROUP],
    lines: [[u64; GROUP]; LINES],
    seeds: [[u32; GROUP]; LINES],
}

impl<const LINES: usize> Locations<LINES> {
    const NONE: Self = Self { pages: [0; GROUP], lines: [[0; GROUP]; LINES], seeds: [[0; GROUP]; LINES] };

    /// Returns the location of one key.
    #[inline(always)]
    pub fn at(&self, key: usize) -> Location<LINES> {
        let mut location = Location { page: self.pages[key], lines: [0; LINES], seeds: [0; LINES] };
        for t in 0..LINES {
            (location.lines[t], location.seeds[t]) = (self.lines[t][key] as usize, self.seeds[t][key]);
        }
        location
    }

    /// Prefetches the lines of all keys.
    #[inline(always)]
    fn fetch(&self, pages: &Pages, address: Address) {
        for t in 0..pages.lines_of::<LINES>() {
            for line in self.lines[t] {
                address.fetch(line as usize * LINE);
            }
        }
    }
}

/// The locations of the next keys of a run, computed once: when the lines of a key are prefetched, some `AHEAD` keys
/// before it is processed. Keys of later runs are prefetched too, whatever their generation.
pub(super) struct PrefetchRing<'a, const LINES: usize> {
    pages: Pages,
    address: Address,
    hashes: &'a [u64],
    first: usize,
    locations: [Locations<LINES>; AHEAD / GROUP],
}

impl<'a, const LINES: usize> PrefetchRing<'a, LINES> {
    /// Returns an empty ring.
    #[inline(always)]
    pub fn new(pages: Pages, words: &[u64], hashes: &'a [u64]) -> Self {
        Self { pages, address: Address::of(words), hashes, first: 0, locations: [Locations::NONE; AHEAD / GROUP] }
    }

    /// Begins a run. [`new`](Self::new) cannot do it, because it would have to copy all locations.
    #[inline(always)]
    pub fn begin<M: Machine>(&mut self, machine: M, run: &Range<usize>) {
        machine.run(Begin { ring: self, run });
    }

    /// Returns the locations of the keys from `i` on, a group of the run. They are borrowed: a copy of all of them
    /// costs as many instructions as processing them.
    #[inline(always)]
    pub fn group(&self, i: usize) -> &Locations<LINES> {
        &self.locations[(i - self.first) / GROUP % (AHEAD / GROUP)]
    }

    /// Replaces the group from key `i` on, which has been processed, by a later one.
    #[inline(always)]
    pub fn replace(&mut self, i: usize) {
        self.put(i + AHEAD, true);
    }

    /// Computes the locations of the keys from `i` on, if there are any, and prefetches their lines if `fetch`.
    #[inline(always)]
    fn put(&mut self, i: usize, fetch: bool) {
        let locations = &mut self.locations[(i - self.first) / GROUP % (AHEAD / GROUP)];
        Address::of(self.hashes).fetch(i + HASHES_AHEAD);
        let Some(coming @ &[first, ..]) = self.hashes.get(i..) else { return };
        // The last keys of a batch may be fewer: the first of them is repeated.
        let mut group = [first; GROUP];
        match coming.first_chunk() {
            Some(whole) => group = *whole,
            None => group[..coming.len()].copy_from_slice(coming),
        }
        *locations = self.pages.locations(&group);
        if fetch {
            locations.fetch(&self.pages, self.address);
        }
    }
}

/// Begins a run of a ring. A [`Work`] of its own, because all layouts and operations share it.
struct Begin<'a, 'b, const LINES: usize> {
    ring: &'a mut PrefetchRing<'b, LINES>,
    run: &'a Range<usize>,
}

impl<Machine, const LINES: usize> Work<Machine> for Begin<'_, '_, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Machine) {
        let Self { ring, run } = self;
        ring.first = run.start;
        // The keys of a later run have been prefetched.
        let fetch = run.start == 0;
        for start in run.clone().step_by(GROUP).take(AHEAD / GROUP) {
            ring.put(start, fetch);
        }
    }
}

impl Pages {
    /// Returns `count` pages, all of them in one partition.
    pub fn new(count: u64, lines: u32) -> Self {
        Self { count, lines, first: 0, end: count }
    }

    /// Returns the number of lines of a key, which compilers know unless it is [`ANY`].
    #[inline(always)]
    pub fn lines_of<const LINES: usize>(&self) -> usize {
        if LINES == ANY { self.lines as usize } else { LINES }
    }

    /// Returns the number of lines of a page among which a key has one of its lines.
    #[inline(always)]
    pub fn range<const LINES: usize>(&self) -> u64 {
        PAGE_LINES / self.lines_of::<LINES>() as u64
    }

    /// Returns whether this partition has all pages.
    #[inline(always)]
    pub fn whole(&self) -> bool {
        self.end - self.first == self.count
    }

    /// Returns the location of a key of this partition.
    #[inline(always)]
    pub fn location<const LINES: usize>(&self, hash: u64) -> Location<LINES> {
        let page = self.page(hash);
        let mut location = Location { page: page as u32, lines: [0; LINES], seeds: [0; LINES] };
        for t in 0..self.lines_of::<LINES>() {
            let (line, seed) = self.line(t, page, hash, self.range::<LINES>());
            (location.lines[t], location.seeds[t]) = (line as usize, seed);
        }
        location
    }

    /// Returns the locations of keys of this partition.
    #[inline(always)]
    fn locations<const LINES: usize>(&self, hashes: &[u64; GROUP]) -> Locations<LINES> {
        let mut locations = Locations::NONE;
        for (page, &hash) in locations.pages.iter_mut().zip(hashes) {
            *page = self.page(hash) as u32;
        }
        for t in 0..self.lines_of::<LINES>() {
            for (key, &hash) in hashes.iter().enumerate() {
                (locations.lines[t][key], locations.seeds[t][key]) =
                    self.line(t, self.page(hash), hash, self.range::<LINES>());
            }
        }
        locations
    }

    /// Returns the page of a key. It is [`scale`](crate::memory::bits::scale) in halves, which compilers vectorise:
    /// there are fewer than 2^32 pages.
    #[inline(always)]
    fn page(&self, hash: u64) -> u64 {
        const LOW: u64 = u32::MAX as u64;
        let count = self.count & LOW;
        ((hash >> 32) * count + (((hash & LOW) * count) >> 32)) >> 32
    }

    /// Returns one of the lines of a key, the t-th in the t-th `range` of the page, and the seed of its bits there.
    #[inline(always)]
    fn line(&self, t: usize, page: u64, hash: u64, range: u64) -> (u64, u32) {
        let choice = hash.wrapping_mul(CHOICES[t]);
        let line = (u64::from(choice as u32) * range) >> 32;
        ((page - self.first) * PAGE_LINES + t as u64 * range + line, (choice >> 32) as u32)
    }

    /// Prefetches the lines of a key.
    #[inline(always)]
    pub fn fetch(&self, words: Address, hash: u64) {
        let (page, range) = (self.page(hash), self.range::<ANY>());
        for t in 0..self.lines_of::<ANY>() {
            words.fetch(self.line(t, page, hash, range).0 as usize * LINE);
        }
    }

    /// Divides the pages into at most `count` partitions, and returns each with its words and the hashes of its keys;
    /// none if there would be only one.
    pub fn partitions(
        self,
        words: &mut [u64],
        count: usize,
    ) -> impl Iterator<Item = (Self, &mut [u64], RangeInclusive<u64>)> {
        let partitions = partition(self.count, PAGE_LINES as usize * LINE, words, count);
        partitions
            .map(move |(pages, words, hashes)| (Self { first: pages.start, end: pages.end, ..self }, words, hashes))
    }
}
