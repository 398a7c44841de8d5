//! The line layout: all generations' bits of a key lie side by side in one cache line, or in a few of one page.
//!
//! A line of 512 bits has a lane for every generation: 8 lanes of 64 bits, 16 of 32 or 32 of 16. A lane is divided into
//! sub-lanes of 16 bits, and a key sets one bit in each. An insertion writes the k newest lanes. A key is reported if k
//! lanes in a row, counted by age, have its bits: this is the age-partitioned Bloom filter (paper 1) whose slices share
//! their blocks, and with k = 1 the guarded-epoch Bloom filter (paper 2). A query reads one line; with separate slices
//! it would read k + l.
//!
//! The bits of a key in all lanes of a line are one mask: 32 bits of its hash, multiplied by a constant per sub-lane.
//! One comparison with the mask tests every generation at once. Each lane has constants of its own. With equal
//! positions in all lanes, two keys that collide would do so in each of the k lanes: k = 2 reported five times as many
//! absent keys (5e-2 instead of 1.04e-2 at 21 bits per key). Two keys of a line have the same mask with chance 2^-32.
//!
//! If a key has several lines, they all lie in one page of 4 KiB, which costs one entry of the translation buffer. Each
//! lies in a range of its own there, so the lines differ.
//!
//! # How it ages
//!
//! Rotating all lanes at once would stop the stream for milliseconds. Pages rotate one after the other instead. With P
//! pages and generations of g insertions a *step* is g / P insertions. In step s, page s mod P begins its next
//! generation: its oldest lane is cleared and becomes the newest. Steps are the generations of the
//! [`Clock`](crate::clock::Clock), so there is no state but the words.
//!
//! The promise holds page by page. A key that is inserted in step s is in k lanes of its page. Rotation l + 1 of the
//! page after s clears the oldest of these lanes. A page rotates once in P steps, so that rotation comes with step s +
//! l P + 1 at the earliest, and the k lanes last through the l P steps after s. This is the promise of every filter
//! that retains l P generations.
//!
//! In a window of time a step also ends by count, and a query counts only the lanes of live steps:
//! [`clock`](crate::clock) has the proof. The mask of these lanes is that of a query as many steps later as the cells
//! retain more than is live.

mod evidence;
mod kernel;
mod layout;
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

use super::shape::{MAX_K, PAGE_LINES, SUBLANE_BITS};
use crate::instructions::Instructions;
use crate::memory::bits::odd_constants;
pub(crate) use pages::Pages;
use pages::{ANY, Location};
pub(crate) use vectors::Vectors;

/// Words of a cache line.
pub(crate) const LINE: usize = 8;

/// For each pair of sub-lanes of a line, the factor for the 32 bits of a mask. The highest four bits of the product
/// choose a bit in the upper sub-lane, the next four a bit in the lower.
static SUBLANES: [u32; 16] = {
    let (constants, mut high, mut i) = (odd_constants::<16>(8), [0; 16], 0);
    while i < 16 {
        high[i] = (constants[i] >> 32) as u32 | 1;
        i += 1;
    }
    high
};

/// Pages of lines of `LANES` lanes each.
#[derive(Clone, Copy)]
pub struct LanesInLines<const LANES: usize> {
    pages: Pages,
    /// The number of lanes that an insertion writes.
    k: u32,
    /// The bits of a line in the lanes that an insertion writes, indexed by the first of these lanes.
    written: &'static [[u64; LINE]; LANES],
    instructions: Instructions,
}

/// Which lane is newest in each page, and which lanes are retained.
#[derive(Clone, Copy)]
pub struct LaneRotation {
    /// The last page whose newest lane is `newest`. Later pages are one lane behind.
    rotated: u32,
    newest: u32,
    /// The number of pages after `rotated` that rotate once more than the others before the moment of a query.
    more: u32,
    /// The ages retained at the moment of a query, a bit for each: in the other pages, and in these `more` pages.
    retained: [u32; 2],
}

impl LaneRotation {
    /// Returns how many lanes, 0 or 1, a page is behind those that have rotated. It is arithmetic: compilers make a
    /// branch of a comparison, which is mispredicted half the time (insertions took 1.6 times as long at W = 20,000).
    #[inline(always)]
    fn behind(self, page: u32) -> u32 {
        self.rotated.wrapping_sub(page) >> 31
    }
}

impl<const LANES: usize> LanesInLines<LANES> {
    /// All lanes, a bit for each.
    const ALL: u32 = u32::MAX >> (32 - LANES);
    /// For each k, the bits of a line in the lanes that an insertion writes, indexed by the first lane. A table,
    /// because computing them takes longer than inserting a key.
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

    /// Returns the layout of `pages` pages, in which an insertion writes `k` lanes of each of its `lines`.
    pub(crate) fn new(pages: u64, k: u32, lines: u32) -> Self {
        Self {
            pages: Pages::new(pages, lines),
            k,
            written: &Self::WRITTEN[k as usize - 1],
            instructions: Instructions::best(),
        }
    }

    /// Returns the newest lane of a page.
    #[inline(always)]
    fn newest(&self, rotation: LaneRotation, page: u32) -> u32 {
        (rotation.newest + rotation.behind(page)) % LANES as u32
    }

    /// Returns whether a key that matches in these lanes, by age, is reported: k lanes in a row must match.
    #[inline(always)]
    fn reported(&self, by_age: u32) -> bool {
        // Two steps without a branch suffice for runs of four; `has_run` has a loop.
        const { assert!(MAX_K <= 4) };
        let first = u32::min(self.k - 1, 1);
        let runs = by_age & by_age >> first;
        runs & runs >> (self.k - 1 - first) != 0
    }

    /// Returns lanes by age, the newest in the lowest bit, from lanes by place.
    #[inline(always)]
    fn by_age(&self, rotation: LaneRotation, page: u32, lanes: u32) -> u32 {
        // The lanes are repeated as often as they fit, so that one rotation of the word rotates each copy.
        let by_age = (lanes * (u32::MAX / Self::ALL)).rotate_right(rotation.newest + rotation.behind(page));
        by_age & Self::ALL
    }

    /// Returns the ages that are retained at the moment of a query: all, unless it lies in the future.
    #[inline(always)]
    fn retained(&self, rotation: LaneRotation, page: u32) -> u32 {
        let [retained, rotated_again] = rotation.retained;
        let before = page.wrapping_sub(rotation.rotated + 1);
        let before = if page > rotation.rotated { before } else { before.wrapping_add(self.pages.count as u32) };
        if before < rotation.more { rotated_again } else { retained }
    }

    /// Returns whether a query in this rotation counts fewer lanes than all.
    #[inline(always)]
    fn is_masked(rotation: LaneRotation) -> bool {
        rotation.more > 0 || rotation.retained[0] != Self::ALL
    }

    /// Returns each line of the words, with the newest lane of its page.
    fn lines<'a>(&self, words: &'a [u64], rotation: LaneRotation) -> impl Iterator<Item = (&'a [u64; LINE], u32)> {
        let newest = move |line: usize| self.newest(rotation, (line as u64 / PAGE_LINES) as u32);
        words.as_chunks().0.iter().enumerate().map(move |(i, line)| (line, newest(i)))
    }

    /// Returns the chances of a fresh key to match, by age, for a sample of the lines that it could have. All lines of
    /// the sample are equally likely.
    fn chances(&self, words: &[u64], rotation: LaneRotation) -> impl Iterator<Item = [f64; LANES]> {
        (0..self.pages.count).flat_map(move |page| self.chances_of(words, rotation, page))
    }

    /// Returns the chances of a fresh key of one page to match, by age, for the lines that it could have.
    fn chances_of(&self, words: &[u64], rotation: LaneRotation, page: u64) -> impl Iterator<Item = [f64; LANES]> {
        let lines = words.as_chunks::<LINE>().0;
        let (newest, range) = (self.newest(rotation, page as u32) as usize, self.pages.range::<ANY>());
        (0..range).map(move |first| {
            std::array::from_fn(|age| {
                let (word, bits) = portable::lane_bits::<LANES>((newest + age) % LANES);
                let line = |t: u64| &lines[(page * PAGE_LINES + t * range + first) as usize];
                (0..self.pages.lines.into())
                    .map(|t| sublanes_match((line(t)[word] & bits) >> bits.trailing_zeros(), 32 / LANES as u32))
                    .product()
            })
        })
    }
}

/// Returns the chance that a random bit in each of the lowest `sublanes` sub-lanes is set.
fn sublanes_match(lanes: u64, sublanes: u32) -> f64 {
    // The bits of all sub-lanes are counted at once: by twos, fours, eights and sixteens.
    let pairs = lanes - (lanes >> 1 & (u64::MAX / 3));
    let fours = (pairs & (u64::MAX / 5)) + (pairs >> 2 & (u64::MAX / 5));
    let eights = (fours + (fours >> 4)) & (u64::MAX / 17);
    let counts = (eights + (eights >> 8)) & (u64::MAX / 257);
    let share = |sublane: u32| f64::from((counts >> (SUBLANE_BITS * sublane)) as u8) / f64::from(SUBLANE_BITS);
    (0..sublanes).map(share).product()
}

impl<const LANES: usize> LanesInLines<LANES> {
    /// Returns the mask of a key in each of its lines.
    #[inline(always)]
    fn probe<V: Vectors, const LINES: usize>(&self, vectors: V, location: &Location<LINES>) -> [V::Mask; LINES] {
        let mut masks = [vectors.mask(location.seeds[0]); LINES];
        let others = 1..self.pages.lines_of::<LINES>();
        for (mask, seed) in masks[others.clone()].iter_mut().zip(&location.seeds[others]) {
            *mask = vectors.mask(*seed);
        }
        masks
    }

    /// Returns the lanes that have all bits of a key in each of its lines.
    #[inline(always)]
    fn read<V: Vectors, const LINES: usize>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        location: &Location<LINES>,
        masks: &[V::Mask; LINES],
    ) -> u32 {
        let mut missing = vectors.missing(&lines[location.lines[0]], masks[0]);
        for t in 1..self.pages.lines_of::<LINES>() {
            missing = vectors.either(missing, vectors.missing(&lines[location.lines[t]], masks[t]));
        }
        vectors.complete::<LANES>(missing)
    }

    /// Returns whether the lines contain a key of this page that these lanes have.
    #[inline(always)]
    fn reports(&self, rotation: LaneRotation, page: u32, lanes: u32) -> bool {
        self.reported(self.by_age(rotation, page, lanes) & self.retained(rotation, page))
    }

    /// Returns whether the lines contain a key of this page, in a rotation without pending generations.
    #[inline(always)]
    fn reports_now(&self, rotation: LaneRotation, page: u32, lanes: u32) -> bool {
        self.reported(self.by_age(rotation, page, lanes))
    }

    /// Writes a key into its lines.
    #[inline(always)]
    fn write<V: Vectors, const LINES: usize>(
        &self,
        vectors: V,
        lines: &mut [[u64; LINE]],
        rotation: LaneRotation,
        location: &Location<LINES>,
        masks: &[V::Mask; LINES],
    ) {
        let written = &self.written[self.newest(rotation, location.page) as usize];
        for t in 0..self.pages.lines_of::<LINES>() {
            vectors.set(&mut lines[location.lines[t]], masks[t], written);
        }
    }
}
