//! The line layout: all generations' bits of a key lie side by side in one cache line, or in a few of one page.
//!
//! A line of 512 bits has a lane for every generation: 8 lanes of 64 bits, 16 of 32 or 32 of 16. A lane is cut into
//! sub-lanes of 16 bits, and a key sets one bit in each. An insertion writes the k newest lanes. A key is held if k
//! lanes in a row, counted by age, have its bits: this is the age-partitioned filter (paper 1) whose slices share their
//! blocks, and with k = 1 the guarded-epoch filter (paper 2). A query reads one line; separate slices cost k + l.
//!
//! The bits of a key in all lanes of a line are one mask: 32 bits of its hash, multiplied by a constant per sub-lane.
//! One comparison with the mask answers for every generation at once. Each lane has constants of its own: with the same
//! positions in all, two keys that collide do so in each of the k lanes, and k = 2 reported five times as many (5e-2
//! instead of 1.04e-2 at 21 bits per key). Two keys of a line have the same mask with chance 2^-32.
//!
//! If a key has several lines, they all lie in one page of 4 KiB, which costs one entry of the translation buffer. Each
//! lies in a range of its own there, so that they differ.
//!
//! # How it ages
//!
//! Rotating all lanes at once would stop the stream for milliseconds. Pages rotate one after the other instead. With P
//! pages and generations of g insertions a *step* is g / P insertions. With step s, page s mod P begins its next
//! generation: its oldest lane is cleared and becomes the newest. Steps are the generations of the [`Clock`], so there
//! is no state but the words.
//!
//! The promise holds page by page. A key written in step s is in k lanes of its page; rotation l + 1 after s clears the
//! oldest of these. A page rotates once in P steps, so that rotation begins with step s + l P + 1 at the earliest:
//! during the l P steps after s the k lanes are there. Any filter here that keeps l P generations promises the same.

mod evidence;
mod kernel;
mod pages;
mod portable;
#[cfg(test)]
mod tests;
mod vectors;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

use std::ops::Range;

use crate::Error;
use crate::clock::Clock;
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::instructions::Instructions;
use crate::layout::{Layout, Part};
use crate::memory::bits::odd_constants;
use crate::memory::prefetch::Address;
use crate::shape::line::{MAX_K, PAGE_LINES, SUBLANE_BITS};
use crate::shape::runs;
pub(crate) use kernel::{InLines, Run, Told};
pub(crate) use pages::{Pages, Spot};
pub(crate) use vectors::Vectors;

/// Words of a cache line.
pub(crate) const LINE: usize = 8;

/// For each pair of sub-lanes of a line, the factor for the 32 bits of a mask: the highest four bits of the product
/// choose in the upper sub-lane, the next four in the lower.
static SUBLANES: [u32; 16] = {
    let (constants, mut high, mut i) = (odd_constants::<16>(8), [0; 16], 0);
    while i < 16 {
        high[i] = (constants[i] >> 32) as u32 | 1;
        i += 1;
    }
    high
};

/// Pages of lines of `LANES` lanes, of which a key has `LINES`.
#[derive(Clone, Copy)]
pub struct LanesInLines<const LANES: usize, const LINES: usize> {
    pages: Pages<LINES>,
    /// Lanes that an insertion writes.
    k: u32,
    /// The bits of a line in these lanes, by the first lane.
    written: &'static [[u64; LINE]; LANES],
    instructions: Instructions,
}

/// Which lane is newest in each page, and which lanes are still kept.
#[derive(Clone, Copy)]
pub struct LanePhase {
    /// The last page whose newest lane is `newest`; later pages are one lane behind.
    turned: u32,
    newest: u32,
    /// Pages after `turned` that rotate once more than the others before the moment of a query.
    more: u32,
    /// The ages kept at that moment, a bit each: of the other pages, and of those.
    kept: [u32; 2],
}

impl LanePhase {
    /// How many lanes a page is behind those that have rotated: one, or none. It is arithmetic, since compilers make a
    /// branch of a comparison, mispredicted half the time (measured: insertions took 1.6 times as long at W = 20,000).
    #[inline(always)]
    fn behind(self, page: u32) -> u32 {
        self.turned.wrapping_sub(page) >> 31
    }
}

impl<const LANES: usize, const LINES: usize> LanesInLines<LANES, LINES> {
    /// All lanes, a bit each.
    const ALL: u32 = u32::MAX >> (32 - LANES);
    /// For each k, the bits of a line in the lanes that an insertion writes, by the first lane. A table, since
    /// computing them takes longer than inserting a key.
    const WRITTEN: &'static [[[u64; LINE]; LANES]; MAX_K as usize] = &{
        let mut written = [[[0; LINE]; LANES]; MAX_K as usize];
        let mut i = 0;
        while i < MAX_K as usize * LANES {
            let (k, first) = (i / LANES + 1, i % LANES);
            let mut age = 0;
            while age < k {
                let (word, bits) = portable::lane_bits::<LANES>((first + age) % LANES);
                written[k - 1][first][word] |= bits;
                age += 1;
            }
            i += 1;
        }
        written
    };

    /// `pages` pages; an insertion writes `k` lanes.
    pub(crate) fn new(pages: u64, k: u32) -> Self {
        Self {
            pages: Pages::new(pages),
            k,
            written: &Self::WRITTEN[k as usize - 1],
            instructions: Instructions::best(),
        }
    }

    /// A run of keys that act on these lines.
    #[inline(always)]
    fn run<'a>(&'a self, phase: LanePhase, hashes: &'a [u64], run: Range<usize>) -> Run<'a, Self, LINES> {
        Run { cells: self, phase, hashes, run }
    }

    /// The newest lane of a page, which an insertion writes first.
    #[inline(always)]
    fn newest(&self, phase: LanePhase, page: u32) -> u32 {
        (phase.newest + phase.behind(page)) % LANES as u32
    }

    /// Whether a key that matches in these lanes, by age, is held: k in a row.
    #[inline(always)]
    fn reported(&self, by_age: u32) -> bool {
        // Like `has_run`, but in two steps without a branch, which suffice for runs of four.
        const { assert!(MAX_K <= 4) };
        let first = u32::min(self.k - 1, 1);
        let runs = by_age & by_age >> first;
        runs & runs >> (self.k - 1 - first) != 0
    }

    /// Lanes by age, the newest first, out of lanes by place, a bit each.
    #[inline(always)]
    fn by_age(&self, phase: LanePhase, page: u32, lanes: u32) -> u32 {
        // Repeated as often as they fit, so that one rotation of the word rotates each copy.
        let by_age = (lanes * (u32::MAX / Self::ALL)).rotate_right(phase.newest + phase.behind(page));
        by_age & Self::ALL
    }

    /// The ages that will be kept at the moment of a query: all, unless it lies in the future.
    #[inline(always)]
    fn kept(&self, phase: LanePhase, page: u32) -> u32 {
        let [kept, turned_again] = phase.kept;
        let before = page.wrapping_sub(phase.turned + 1);
        let before = if page > phase.turned { before } else { before.wrapping_add(self.pages.count as u32) };
        if before < phase.more { turned_again } else { kept }
    }

    /// Each line of the words, with the newest lane of its page.
    fn lines<'a>(&self, words: &'a [u64], phase: LanePhase) -> impl Iterator<Item = (&'a [u64; LINE], u32)> {
        let newest = move |line: usize| self.newest(phase, (line as u64 / PAGE_LINES) as u32);
        words.as_chunks().0.iter().enumerate().map(move |(i, line)| (line, newest(i)))
    }

    /// For a sample of the lines that a fresh key could have, each equally likely: its chances to match by age.
    fn chances(&self, words: &[u64], phase: LanePhase) -> impl Iterator<Item = [f64; LANES]> {
        (0..self.pages.count).flat_map(move |page| self.chances_of(words, phase, page))
    }

    /// The same for the lines of one page.
    fn chances_of(&self, words: &[u64], phase: LanePhase, page: u64) -> impl Iterator<Item = [f64; LANES]> {
        let lines = words.as_chunks::<LINE>().0;
        let newest = self.newest(phase, page as u32) as usize;
        (0..Pages::<LINES>::RANGE).map(move |first| {
            std::array::from_fn(|age| {
                let (word, bits) = portable::lane_bits::<LANES>((newest + age) % LANES);
                let line = |t: u64| &lines[(page * PAGE_LINES + t * Pages::<LINES>::RANGE + first) as usize];
                (0..LINES as u64)
                    .map(|t| sublanes_match((line(t)[word] & bits) >> bits.trailing_zeros(), 32 / LANES as u32))
                    .product()
            })
        })
    }
}

/// Chance that a random bit in each of the lowest `sublanes` sub-lanes is set.
fn sublanes_match(lanes: u64, sublanes: u32) -> f64 {
    // The bits of all of them are counted at once: those of every second, fourth, eighth and sixteenth place.
    let pairs = lanes - (lanes >> 1 & (u64::MAX / 3));
    let fours = (pairs & (u64::MAX / 5)) + (pairs >> 2 & (u64::MAX / 5));
    let eights = (fours + (fours >> 4)) & (u64::MAX / 17);
    let counts = (eights + (eights >> 8)) & (u64::MAX / 257);
    let share = |sublane: u32| f64::from((counts >> (SUBLANE_BITS * sublane)) as u8) / f64::from(SUBLANE_BITS);
    (0..sublanes).map(share).product()
}

impl<const LANES: usize, const LINES: usize> InLines<LINES> for LanesInLines<LANES, LINES> {
    type Phase = LanePhase;
    /// The mask of the key in each of its lines.
    type Taken<V: Vectors> = [V::Mask; LINES];
    /// The lanes that have all bits of a key in each of its lines.
    type Read = u32;
    type Aged = u32;

    #[inline(always)]
    fn pages(&self) -> Pages<LINES> {
        self.pages
    }

    #[inline(always)]
    fn instructions(&self) -> Instructions {
        self.instructions
    }

    #[inline(always)]
    fn taken<V: Vectors>(&self, vectors: V, spot: &Spot<LINES>) -> [V::Mask; LINES] {
        let mut masks = [vectors.mask(spot.seeds[0]); LINES];
        for (mask, seed) in masks[1..].iter_mut().zip(&spot.seeds[1..]) {
            *mask = vectors.mask(*seed);
        }
        masks
    }

    #[inline(always)]
    fn read<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        _: LanePhase,
        spot: &Spot<LINES>,
        masks: &[V::Mask; LINES],
    ) -> u32 {
        let mut missing = vectors.missing(&lines[spot.lines[0]], masks[0]);
        for t in 1..LINES {
            missing = vectors.either(missing, vectors.missing(&lines[spot.lines[t]], masks[t]));
        }
        vectors.complete::<LANES>(missing)
    }

    #[inline(always)]
    fn holds(&self, phase: LanePhase, page: u32, lanes: u32) -> bool {
        self.reported(self.by_age(phase, page, lanes) & self.kept(phase, page))
    }

    #[inline(always)]
    fn holds_now(&self, phase: LanePhase, page: u32, lanes: u32) -> bool {
        self.reported(self.by_age(phase, page, lanes))
    }

    #[inline(always)]
    fn read_age<V: Vectors>(&self, vectors: V, lines: &[[u64; LINE]], phase: LanePhase, spot: &Spot<LINES>) -> u32 {
        self.read(vectors, lines, phase, spot, &self.taken(vectors, spot))
    }

    #[inline(always)]
    fn says(&self, phase: LanePhase, page: u32, lanes: u32) -> Evidence {
        Evidence::generations(self.possible(phase, page, lanes).into()).in_stretch(self.stretch(phase, page).into())
    }

    #[inline(always)]
    fn write<V: Vectors>(
        &self,
        vectors: V,
        lines: &mut [[u64; LINE]],
        phase: LanePhase,
        spot: &Spot<LINES>,
        masks: &[V::Mask; LINES],
    ) {
        let written = &self.written[self.newest(phase, spot.page) as usize];
        for t in 0..LINES {
            vectors.set(&mut lines[spot.lines[t]], masks[t], written);
        }
    }
}

impl<const LANES: usize, const LINES: usize> Told<LanesInLines<LANES, LINES>, LINES> for Code {
    #[inline(always)]
    fn told(cells: &LanesInLines<LANES, LINES>, phase: LanePhase, page: u32, lanes: u32) -> Self {
        Self::of_generations(cells.possible(phase, page, lanes), cells.stretch(phase, page))
    }
}

impl<const LANES: usize, const LINES: usize> Layout for LanesInLines<LANES, LINES> {
    type Phase = LanePhase;

    const SETS_BITS: bool = true;

    /// Steps until every page has rotated all of its lanes.
    fn generations(&self) -> u64 {
        LANES as u64 * self.pages.count
    }

    fn phase(&self, generation: i64, pending: u64) -> LanePhase {
        // Pages are fewer than 2^27, so that nothing is cut off.
        let pages = self.pages.count as i64;
        let kept = |turns: u64| Self::ALL.unbounded_shr(u32::try_from(turns).unwrap_or(u32::MAX));
        let turned = generation.div_euclid(pages);
        // Usually none, and a division costs a fifth of what a single key does.
        let (turns, more) =
            if pending == 0 { (0, 0) } else { (pending / self.pages.count, pending % self.pages.count) };
        LanePhase {
            turned: (generation - turned * pages) as u32,
            newest: turned.wrapping_neg().rem_euclid(LANES as i64) as u32,
            more: more as u32,
            kept: [kept(turns), kept(turns.saturating_add(1))],
        }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: LanePhase, hash: u64) {
        self.pages.fetch(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.pages.fetch(words, hash);
    }

    fn insert(&self, words: &mut [u64], phase: LanePhase, hash: u64) {
        self.insert_run(words, phase, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], phase: LanePhase, hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, phase, &[hash], 0..1, &mut present);
        present[0]
    }

    fn evidence(&self, words: &[u64], phase: LanePhase, hash: u64) -> Evidence {
        let mut evidence = [Evidence::default()];
        self.evidence_run(words, phase, &[hash], &mut evidence);
        evidence[0]
    }

    fn evidence_run(&self, words: &[u64], phase: LanePhase, hashes: &[u64], evidence: &mut [Evidence]) {
        self.run(phase, hashes, 0..hashes.len()).tell(words, evidence);
    }

    fn coded(&self) -> Option<fn(Code) -> Evidence> {
        (LANES <= Code::GENERATIONS).then_some(Code::generations)
    }

    fn codes_run(&self, words: &[u64], phase: LanePhase, hashes: &[u64], codes: &mut [Code]) {
        self.run(phase, hashes, 0..hashes.len()).tell(words, codes);
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(self.rings(words, clock, question)))
    }

    // Inlined, the phase stays in registers: to copy it as a whole has to wait until all of its parts are in memory,
    // for 5 of the 80 ns of a single key.
    #[inline(always)]
    fn insert_run(&self, words: &mut [u64], phase: LanePhase, hashes: &[u64], run: Range<usize>) {
        self.run(phase, hashes, run).insert(words);
    }

    fn query_run(&self, words: &[u64], phase: LanePhase, hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        self.run(phase, hashes, run).query(words, present);
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        phase: LanePhase,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        self.run(phase, hashes, run).duplicated(words, refresh, seen)
    }

    /// Rotates one page, if its words are at hand.
    fn open(&self, words: &mut [u64], generation: i64) {
        let phase = self.phase(generation, 0);
        let (word, bits) = portable::lane_bits::<LANES>(phase.newest as usize);
        let turned = u64::from(phase.turned);
        if !(self.pages.first..self.pages.end).contains(&turned) {
            return;
        }
        let first = ((turned - self.pages.first) * PAGE_LINES) as usize;
        for line in &mut words.as_chunks_mut::<LINE>().0[first..first + PAGE_LINES as usize] {
            line[word] &= !bits;
        }
        // Prefetches the next page to rotate, so that its turn does not wait for memory; after the last page, the
        // first.
        let next = if turned + 1 == self.pages.end { 0 } else { first + PAGE_LINES as usize };
        let address = Address::of(words);
        for line in next..next + PAGE_LINES as usize {
            address.fetch(line * LINE);
        }
    }

    /// Whether the page that rotates is at hand.
    #[inline(always)]
    fn turns(&self, generation: i64) -> bool {
        let turns = || generation.rem_euclid(self.pages.count as i64) as u64;
        self.pages.whole() || (self.pages.first..self.pages.end).contains(&turns())
    }

    /// Into ranges of pages.
    fn cut<'a>(&self, words: &'a mut [u64], parts: usize) -> Vec<Part<'a, Self>> {
        let part = |(pages, words, hashes)| Part { layout: Self { pages, ..*self }, words, hashes };
        self.pages.cut(words, parts).map(part).collect()
    }

    fn unite(&self, words: &mut [u64], others: &[u64], _: Self::Phase) -> Result<(), Error> {
        for (word, other) in words.iter_mut().zip(others) {
            *word |= other;
        }
        Ok(())
    }

    fn fill(&self, words: &[u64], phase: LanePhase) -> Vec<f64> {
        let mut ones = vec![0; LANES];
        for (line, newest) in self.lines(words, phase) {
            for (age, ones) in ones.iter_mut().enumerate() {
                let (word, bits) = portable::lane_bits::<LANES>((newest as usize + age) % LANES);
                *ones += u64::from((line[word] & bits).count_ones());
            }
        }
        let bits_of_a_lane = 64 * words.len() as u64 / LANES as u64;
        ones.into_iter().map(|ones| ones as f64 / bits_of_a_lane as f64).collect()
    }

    /// Lanes of a line match together more often than these rates say, since they share keys: see
    /// [`false_positive_rate`](Layout::false_positive_rate).
    fn match_rates(&self, words: &[u64], phase: LanePhase) -> Vec<f64> {
        let mut sums = vec![0.0; LANES];
        for chances in self.chances(words, phase) {
            sums.iter_mut().zip(chances).for_each(|(sum, chance)| *sum += chance);
        }
        sums.into_iter().map(|sum| sum / (self.pages.count * Pages::<LINES>::RANGE) as f64).collect()
    }

    /// Given the bits, lanes match independently.
    fn false_positive_rate(&self, words: &[u64], phase: LanePhase) -> f64 {
        let rates = self.chances(words, phase).map(|r| runs::false_positive_rate(self.k, &r));
        rates.sum::<f64>() / (self.pages.count * Pages::<LINES>::RANGE) as f64
    }
}
