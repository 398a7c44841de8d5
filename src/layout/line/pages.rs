//! Which lines a key has: all in one page of 4 KiB, each in a range of its own there.

use std::ops::{Range, RangeInclusive};

use super::LINE;
use crate::layout::cut::cut;
use crate::memory::bits::{odd_constants, scale};
use crate::memory::prefetch::Address;
use crate::shape::line::{MAX_LINES, PAGE_LINES};

/// Keys in flight. A key touches a single line, so more keys are needed to hide its latency than where a key touches
/// many.
const AHEAD: usize = 64;

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

/// The keys of a run and their places, computed once: when the lines of a key are prefetched, `AHEAD` keys before it
/// acts. Keys of later runs are prefetched too, whatever their generation.
pub(super) struct InFlight<'a, const LINES: usize> {
    pages: Pages<LINES>,
    address: Address,
    hashes: &'a [u64],
    spots: [Spot<LINES>; AHEAD],
}

impl<'a, const LINES: usize> InFlight<'a, LINES> {
    /// Starts before the first key of a run.
    #[inline(always)]
    pub fn new(pages: Pages<LINES>, words: &[u64], hashes: &'a [u64], run: &Range<usize>) -> Self {
        let address = Address::of(words);
        if run.start == 0 {
            hashes.iter().take(AHEAD).for_each(|&hash| pages.fetch(address, hash));
        }
        let mut spots = [Spot { page: 0, lines: [0; LINES], seeds: [0; LINES] }; AHEAD];
        for i in run.clone().take(AHEAD) {
            spots[i % AHEAD] = pages.spot(hashes[i]);
        }
        Self { pages, address, hashes, spots }
    }

    /// The place of key `i`, the next of the run.
    #[inline(always)]
    pub fn next(&mut self, i: usize) -> Spot<LINES> {
        let spot = self.spots[i % AHEAD];
        if let Some(&coming) = self.hashes.get(i + AHEAD) {
            let coming = self.pages.spot(coming);
            for line in coming.lines {
                self.address.fetch(line * LINE);
            }
            self.spots[i % AHEAD] = coming;
        }
        spot
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
        let page = scale(hash, self.count);
        let mut spot = Spot { page: page as u32, lines: [0; LINES], seeds: [0; LINES] };
        for (t, constant) in CHOICES.into_iter().enumerate().take(LINES) {
            let choice = hash.wrapping_mul(constant);
            let line = (u64::from(choice as u32) * Self::RANGE) >> 32;
            spot.lines[t] = ((page - self.first) * PAGE_LINES + t as u64 * Self::RANGE + line) as usize;
            spot.seeds[t] = (choice >> 32) as u32;
        }
        spot
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
