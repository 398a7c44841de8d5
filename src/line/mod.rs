//! The line layout: what all generations hold of a key lies side by side in one cache line, or in a few of one page.
//!
//! A line of 512 bits has a lane for every generation: 8 lanes of 64 bits, 16 of 32 or 32 of 16. A lane is cut into
//! sub-lanes of 16 bits, and a key sets one bit in each. An insertion writes the k newest lanes, and a key is there when
//! k lanes in a row, counted by age, have its bits: the age-partitioned filter (paper 1) whose slices share their blocks,
//! and with k = 1 the guarded-epoch filter (paper 2). A query reads one line where slices apart cost k + l.
//!
//! The bits of a key in all lanes of a line are one mask, made by one multiplication of 32 bits of its hash with constants
//! of the sub-lanes, and one comparison with it answers for every generation at once. Positions in different lanes are
//! as good as independent, and two keys of a line have the same mask with chance 2^-32. With several lines per key all are of one page of 4 KiB, which costs one entry of the
//! translation buffer.
//!
//! # How it ages
//!
//! Turning all lanes at once would stop the stream for milliseconds. Pages turn one after the other instead: with P
//! pages and generations of g insertions a *step* is g / P insertions, and with step s the page s mod P begins its next
//! generation: its oldest lane is cleared and becomes the newest. Steps are the generations of the
//! [`Clock`](crate::clock::Clock), so there is nothing to keep but the words.
//!
//! The promise is the same page by page. The lanes of a key written in some step survive l turns of its page, and are
//! short of the k-th match with turn l + 1, which comes l P + 1 steps later at the earliest: l P whole steps and one
//! insertion are kept, as in any filter here that keeps l P generations.

mod kernel;
mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use std::ops::Range;

use crate::Error;
use crate::bits::{Address, odd_constants, ones, scale};
use crate::layout::Layout;

/// Words of a cache line.
pub const LINE: usize = 8;
/// Most lines of a page: 4 KiB.
pub const PAGE_LINES: u64 = 64;
/// Most lines of a key.
pub const MAX_LINES: usize = 4;
/// Bits of a sub-lane, of which a key sets one.
pub const SUBLANE: u32 = 16;

/// Which lines of its page a key has, and then what its bits in each of them are made from.
static CHOICES: [u64; 1 + MAX_LINES] = odd_constants(0);
/// For each two sub-lanes of a line, what a key's 32 bits are multiplied with: of the product the highest four bits
/// choose in the upper, the next four in the lower.
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
pub struct Lines<const LANES: usize, const LINES: usize> {
    pages: u64,
    /// Lines of a page, a power of two from `LINES` to [`PAGE_LINES`].
    page_lines: u64,
    /// Lanes written.
    k: u32,
    instructions: Instructions,
}

/// What the processor can do, looked up once per filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let bmi = has!("bmi1") && has!("bmi2");
            if bmi && has!("avx512f") && has!("avx512bw") {
                return Self::Avx512;
            }
            if bmi && has!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }
}

/// Which lane is newest, page by page, and which lanes are still kept.
#[derive(Clone, Copy)]
pub struct Phase {
    /// The last page that has begun the generation `newest` is the lane of; those behind it are one lane back.
    turned: u64,
    newest: u32,
    /// Turns of every page to come before the moment of a query, and pages after `turned` that have one more.
    turns: u64,
    more: u64,
}

/// Where one key's bits are: its page, the first word of each of its lines, and what its bits there are made from.
#[derive(Clone, Copy)]
struct Spot<const LINES: usize> {
    page: u64,
    starts: [usize; LINES],
    seeds: [u32; LINES],
}

impl<const LANES: usize, const LINES: usize> Lines<LANES, LINES> {
    /// `pages` pages of `page_lines` lines; an insertion writes `k` lanes.
    pub fn new(pages: u64, page_lines: u64, k: u32) -> Self {
        Self { pages, page_lines, k, instructions: Instructions::best() }
    }

    /// The words of the lines of a key. They are a walk through the page by an odd stride, and so distinct.
    #[inline(always)]
    fn starts(&self, hash: u64) -> (u64, [usize; LINES]) {
        let page = scale(hash, self.pages);
        let choice = hash.wrapping_mul(CHOICES[0]);
        let (first, stride) = (choice >> 58, choice >> 52 | 1);
        let line = |t: usize| page * self.page_lines + (first.wrapping_add(t as u64 * stride) & (self.page_lines - 1));
        (page, std::array::from_fn(|t| LINE * line(t) as usize))
    }

    #[inline(always)]
    fn spot(&self, hash: u64) -> Spot<LINES> {
        let (page, starts) = self.starts(hash);
        let seed = |t: usize| (hash.wrapping_mul(CHOICES[1 + t]) >> 32) as u32;
        Spot { page, starts, seeds: std::array::from_fn(seed) }
    }

    #[inline(always)]
    fn fetch(&self, words: Address, hash: u64) {
        for start in self.starts(hash).1 {
            words.fetch(start);
        }
    }

    /// The lane of a page that an insertion writes first.
    #[inline(always)]
    fn newest(&self, phase: Phase, page: u64) -> u32 {
        (phase.newest + u32::from(page > phase.turned)) % LANES as u32
    }

    /// The lanes of a page that an insertion writes, a bit each.
    #[inline(always)]
    fn written(&self, phase: Phase, page: u64) -> u32 {
        let newest = self.newest(phase, page);
        let lanes = ((1u64 << self.k) - 1) << newest;
        (lanes | lanes >> LANES) as u32 & (u32::MAX >> (32 - LANES))
    }

    /// The word of a line that a lane is in, and its bits there.
    #[inline(always)]
    fn lane(lane: u32) -> (usize, u64) {
        let per_word = (LANES / LINE) as u32;
        let bits = u64::MAX >> (64 - 64 / per_word);
        ((lane / per_word) as usize, bits << (lane % per_word * (64 / per_word)))
    }

    /// The lanes of a key by age, the newest first, out of `lanes`, by place: those still kept that have its bits.
    #[inline(always)]
    fn by_age(&self, phase: Phase, page: u64, lanes: u32) -> u32 {
        let newest = self.newest(phase, page);
        let lanes = u64::from(lanes);
        let by_age = (lanes >> newest | lanes << LANES >> newest) & (u64::MAX >> (64 - LANES));
        if phase.turns == 0 && phase.more == 0 {
            return by_age as u32;
        }
        by_age as u32 & self.kept(phase, page)
    }

    /// The ages that will be kept at the moment of a query in the future.
    #[cold]
    fn kept(&self, phase: Phase, page: u64) -> u32 {
        let behind = (page + self.pages - phase.turned - 1) % self.pages;
        let turns = phase.turns + u64::from(behind < phase.more);
        ones((LANES as u64).saturating_sub(turns) as u32) as u32
    }

    /// The words of one lane, each with the lane's bits there, of the lines of a page.
    fn lane_of_page(&self, page: u64, lane: u32) -> (impl Iterator<Item = usize> + use<LANES, LINES>, u64) {
        let (word, bits) = Self::lane(lane);
        let first = page * self.page_lines;
        ((first..first + self.page_lines).map(move |line| line as usize * LINE + word), bits)
    }
}

impl<const LANES: usize, const LINES: usize> Layout for Lines<LANES, LINES> {
    type Phase = Phase;

    /// Steps until every page has turned all of its lanes.
    fn generations(&self) -> u64 {
        LANES as u64 * self.pages
    }

    fn phase(&self, generation: i64, pending: u64) -> Phase {
        let pages = i128::from(self.pages);
        let turns = i128::from(generation).div_euclid(pages);
        Phase {
            turned: i128::from(generation).rem_euclid(pages) as u64,
            newest: (-turns).rem_euclid(LANES as i128) as u32,
            turns: pending / self.pages,
            more: pending % self.pages,
        }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: Phase, hash: u64) {
        self.fetch(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.fetch(words, hash);
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], phase: Phase, hash: u64) {
        kernel::insert::<portable::Portable, LANES, LINES>(self, words, phase, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], phase: Phase, hash: u64) -> bool {
        let mut present = [false];
        kernel::query::<portable::Portable, LANES, LINES>(self, words, phase, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], phase: Phase, hashes: &[u64], run: Range<usize>) {
        match self.instructions {
            Instructions::Portable => {
                kernel::insert::<portable::Portable, LANES, LINES>(self, words, phase, hashes, run)
            }
            // SAFETY: the processor has the instructions, or `Instructions::best` had not said so.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { avx2::insert(self, words, phase, hashes, run) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { avx512::insert(self, words, phase, hashes, run) },
        }
    }

    fn query_run(&self, words: &[u64], phase: Phase, hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        match self.instructions {
            Instructions::Portable => {
                kernel::query::<portable::Portable, LANES, LINES>(self, words, phase, hashes, run, present)
            }
            // SAFETY: the processor has the instructions, or `Instructions::best` had not said so.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { avx2::query(self, words, phase, hashes, run, present) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { avx512::query(self, words, phase, hashes, run, present) },
        }
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        phase: Phase,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        match self.instructions {
            Instructions::Portable => {
                kernel::duplicated::<portable::Portable, LANES, LINES>(self, words, phase, hashes, run, refresh, seen)
            }
            // SAFETY: the processor has the instructions, or `Instructions::best` had not said so.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { avx2::duplicated(self, words, phase, hashes, run, refresh, seen) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { avx512::duplicated(self, words, phase, hashes, run, refresh, seen) },
        }
    }

    /// Turns one page.
    fn open(&self, words: &mut [u64], generation: i64) {
        let phase = self.phase(generation, 0);
        let (lane, bits) = self.lane_of_page(phase.turned, phase.newest);
        for word in lane {
            words[word] &= !bits;
        }
    }

    fn unite(&self, words: &mut [u64], others: &[u64]) -> Result<(), Error> {
        for (word, other) in words.iter_mut().zip(others) {
            *word |= other;
        }
        Ok(())
    }

    fn fill(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        let share = |age| {
            let ones = |page| {
                let (lane, bits) = self.lane_of_page(page, (self.newest(phase, page) + age) % LANES as u32);
                lane.map(|word| u64::from((words[word] & bits).count_ones())).sum::<u64>()
            };
            (0..self.pages).map(ones).sum::<u64>() as f64 / (64 * words.len() / LANES) as f64
        };
        (0..LANES as u32).map(share).collect()
    }

    /// Of each lane, over all lines: the fresh key's chance that all its sub-lanes match there, to the power of its lines.
    fn match_rates(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        let rate = |age| {
            let of_page = |page| {
                let (lane, bits) = self.lane_of_page(page, (self.newest(phase, page) + age) % LANES as u32);
                lane.map(|word| sublanes_match((words[word] & bits) >> bits.trailing_zeros(), bits.count_ones()))
                    .sum::<f64>()
            };
            let mean = (0..self.pages).map(of_page).sum::<f64>() / (self.pages * self.page_lines) as f64;
            mean.powi(LINES as i32)
        };
        (0..LANES as u32).map(rate).collect()
    }
}

/// Chance that a random bit of each of the sub-lanes in the lowest `bits` bits is set.
fn sublanes_match(lane: u64, bits: u32) -> f64 {
    let share = |sublane: u32| (lane >> (SUBLANE * sublane) & 0xffff).count_ones() as f64 / f64::from(SUBLANE);
    (0..bits / SUBLANE).map(share).product()
}

#[cfg(test)]
mod scratch {
    use super::*;
    use crate::batch::{Aged, Engine};
    use crate::clock::{Clock, Moments, Window};
    use crate::words::Words;
    use std::time::Instant;

    fn bench<const N: usize, const T: usize>(w: u64, bits: f64, k: u32, isa: Instructions) {
        let l = N as u64 - u64::from(k);
        let pages = (w as f64 * bits / 32768.0).ceil() as u64;
        let mut layout = Lines::<N, T>::new(pages, 64, k);
        layout.instructions = isa;
        let window = Window::Count { insertions: w };
        let mut f = Aged {
            layout,
            words: Words::zeroed((pages * 512) as usize).unwrap(),
            clock: Clock::new(window, (l * pages) as u32),
        };
        let key = |i: u64| {
            let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let n = 2 * w;
        let keys: Vec<u64> = (0..n + 2_000_000).map(key).collect();
        let t = Instant::now();
        for c in keys[..n as usize].chunks(4096) {
            f.insert(c, Moments::Untimed).unwrap();
        }
        let ins = t.elapsed().as_nanos() as f64 / n as f64;
        let last = &keys[(n - w) as usize..n as usize];
        let mut present = vec![false; 4096];
        let (mut missing, mut fresh) = (0, 0);
        let t = Instant::now();
        for c in last.chunks(4096) {
            f.query(c, Moments::Untimed, &mut present[..c.len()]).unwrap();
            missing += present[..c.len()].iter().filter(|x| !**x).count();
        }
        let hit = t.elapsed().as_nanos() as f64 / w as f64;
        let t = Instant::now();
        for c in keys[n as usize..].chunks(4096) {
            f.query(c, Moments::Untimed, &mut present[..c.len()]).unwrap();
            fresh += present[..c.len()].iter().filter(|x| **x).count();
        }
        let miss = t.elapsed().as_nanos() as f64 / 2e6;
        let t = Instant::now();
        for c in keys[n as usize..].chunks(4096) {
            f.duplicated(c, Moments::Untimed, true, &mut present[..c.len()]).unwrap();
        }
        let dup = t.elapsed().as_nanos() as f64 / 2e6;
        // roof
        let words = f.words.as_slice();
        let lines = words.len() / 8;
        let t = Instant::now();
        let a = Address::of(words);
        let mut sum = 0;
        let mut at = [0usize; 64];
        for i in 0..2_000_000usize {
            let h = keys[i];
            let word = scale(h, lines as u64) as usize * 8;
            sum += words[at[i % 64]];
            a.fetch(word);
            at[i % 64] = word;
        }
        let roof = t.elapsed().as_nanos() as f64 / 2e6;
        println!(
            "{isa:?} N={N} T={T} k={k} W={w} bits={bits} missing={missing} fpr={:.2e} insert {ins:.1} hit {hit:.1} miss {miss:.1} dup {dup:.1} roof {roof:.1} {}",
            fresh as f64 / 2e6,
            sum & 1
        );
    }

    #[test]
    #[ignore]
    fn speed() {
        for isa in [Instructions::Avx512, Instructions::Avx2, Instructions::Portable] {
            bench::<8, 1>(1_000_000, 21.0, 2, isa);
            bench::<16, 2>(1_000_000, 27.0, 3, isa);
            bench::<8, 2>(1_000_000, 17.5, 1, isa);
        }
        bench::<8, 1>(50_000_000, 21.0, 2, Instructions::Avx512);
        bench::<16, 2>(50_000_000, 27.0, 3, Instructions::Avx512);
    }
}
