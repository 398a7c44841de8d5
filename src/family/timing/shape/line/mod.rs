//! The timing Bloom filter in the line layout, in formulas: a key's timers lie in one cache line, or in two of one
//! page, where slices cost it a line for each.
//!
//! The differences from slices: timers of a key share a line, and so the number of keys in it; the rate is not a power
//! of the fill. Equal timers and sizes that grow are for slices alone.
//!
//! A line is 8 words with as many timers as fit. A key takes one timer in each of k consecutive words, counted round
//! the line from one that its hash chooses, so that the words are equally full whatever k is. A line is found by hash,
//! so lines differ in their number of keys: that is the cost of the layout. At 30 bits per key a line has 25 live keys,
//! give or take 5.

mod choose;

pub use choose::choose;

use std::collections::BTreeMap;

use super::{check_timers, live_keys};
use crate::Error;
use crate::clock::Window;
use crate::family::lines::shape::{HERMITE, MAX_PAGES, PAGE_BYTES, PAGE_LINES};
use crate::family::{self, CacheLines, Parameters, fill};

/// Number of words of a line. A key takes at most one timer in each.
pub const WORDS: u32 = 8;
/// Greatest number of lines of a key.
pub const MAX_LINES: u32 = 2;

/// The shape of a timing Bloom filter in lines: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimingLineShape {
    /// Number of timers that a key sets: up to 8 in each of its lines, over which they are shared as evenly as can be.
    pub k: u32,
    /// Number of bits per timer, 2 to 32.
    pub bpt: u32,
    /// Number of full generations retained, as in slices.
    pub blocks: u32,
    /// Number of lines of a key, both of one page: 1 or 2.
    pub lines: u32,
    /// Number of pages of 64 lines.
    pub pages: u64,
}

impl TimingLineShape {
    /// Creates a shape whose parameters are in range.
    pub fn new(k: u32, bpt: u32, blocks: u32, pages: u64, lines: u32) -> Result<Self, Error> {
        check_timers(bpt, blocks)?;
        for (name, value, least, most) in [
            ("lines", lines.into(), 1, MAX_LINES.into()),
            ("k", k.into(), lines.into(), u64::from(lines) * u64::from(WORDS)),
            ("pages", pages, 1, MAX_PAGES),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Error::value(format!("{name} must lie in {least}..={most} in lines, got {value}")));
            }
        }
        Ok(Self { k, bpt, blocks, lines, pages })
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(
            parameters.read_u32("k")?,
            parameters.read_u32("bpt")?,
            parameters.read_u32("blocks")?,
            parameters.read_u64("pages")?,
            parameters.read_u32("lines")?,
        )
    }

    /// Returns the number of timers that a key sets in one of its lines: the first has the odd one.
    pub fn k_of(&self, line: u32) -> u32 {
        (self.k + self.lines - 1 - line) / self.lines
    }

    /// Returns the bytes of all pages.
    pub fn nbytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    /// Returns the bits of memory per key of a window of `keys` keys.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.nbytes() as f64 / keys as f64
    }

    /// Returns the probability that a key never inserted is reported, just before a rotation, the worst phase.
    /// With one line it is exact. Two lines of a page are of separate ranges, so their loads depend on each other only
    /// by that of the page. The mean over it is taken as in [`family::line`], and is within 0.1 % of the exact one from
    /// 1 % to 0.01 %.
    pub fn false_positive_rate(&self, window: Window) -> f64 {
        self.rate(live_keys(window, self.blocks), &self.of_line())
    }

    /// Returns the rates of each line of a key.
    fn of_line(&self) -> Vec<LineRates> {
        (0..self.lines).map(|line| LineRates::new(self.k_of(line), self.bpt)).collect()
    }

    /// Returns the probability that a key never inserted is reported, from the rates of each of its lines.
    pub fn rate(&self, keys: u64, of_line: &[LineRates]) -> f64 {
        let (pages, range) = (self.pages as f64, (PAGE_LINES / u64::from(self.lines)) as f64);
        let of_page = keys as f64 / pages;
        // Keys of a line with the same 32 bits to choose its timers by.
        let same_timers = of_page / range / 2_f64.powi(32);
        let all_live = |keys: f64, lines: f64| -> f64 {
            of_line.iter().map(|line| (line.all_live(keys, lines) + same_timers).min(1.0)).product()
        };
        let rate = if self.lines == 1 {
            all_live(keys as f64, pages * range)
        } else {
            let deviation = (of_page * (1.0 - 1.0 / pages)).sqrt();
            HERMITE
                .into_iter()
                .map(|(place, weight)| weight * all_live((of_page + place * deviation).max(0.0), range))
                .sum()
        };
        fill::or_same_hash(rate, keys)
    }
}

impl family::Shape for TimingLineShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("k", self.k.into()),
            ("bpt", self.bpt.into()),
            ("blocks", self.blocks.into()),
            ("pages", self.pages),
            ("lines", self.lines.into()),
        ]
    }

    fn retained(&self) -> u32 {
        self.blocks
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(window)
    }

    fn slack(&self, window: Window) -> u64 {
        window.slack(self.blocks, 1)
    }

    fn npws(&self, window: Window) -> f64 {
        window.npws(self.blocks, 1.0)
    }

    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.lines)
    }

    fn false_negative_rates(&self, _: Window) -> Vec<f64> {
        vec![0.0; self.blocks as usize + 1]
    }
}

/// The chances that the timers of a fresh key in one line are live.
pub struct LineRates {
    /// One term for all sets of a key's timers that are missed equally often: the sign and number of these sets, and
    /// the chance that a key of the line touches one timer of the set at least.
    pub terms: Vec<(f64, f64)>,
}

impl LineRates {
    /// Computes the rates for k timers of a key in a line, of `bpt` bits each.
    ///
    /// By inclusion and exclusion over the 2^k sets of its timers, all are live with the sum of (-1)^|J| P(none of J
    /// is). A key of the line whose timers begin in word s misses J with (1 - 1/t)^c, where t are the timers of a
    /// word, and c the words of J that it takes too. All that counts of a set is how many of the 8 words s have which
    /// c: that makes at most 13 terms of 256.
    pub fn new(k: u32, bpt: u32) -> Self {
        let run = |start: u32| (0..k).fold(0u32, |words, i| words | 1 << ((start + i) % WORDS));
        let mut sets = BTreeMap::new();
        for set in 0..1u32 << k {
            let mut shared = [0u32; WORDS as usize + 1];
            (0..WORDS).for_each(|start| shared[(set & run(start)).count_ones() as usize] += 1);
            *sets.entry(shared).or_insert(0.0) += if set.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
        }
        let hit = (-1.0 / f64::from(64 / bpt)).ln_1p();
        let touches = |shared: [u32; WORDS as usize + 1]| {
            let of_words =
                (0..).zip(shared).map(|(words, starts)| f64::from(starts) * (f64::from(words) * hit).exp_m1());
            -of_words.sum::<f64>() / f64::from(WORDS)
        };
        let terms = sets.into_iter().filter(|&(_, count)| count != 0.0);
        Self { terms: terms.map(|(shared, count)| (count, touches(shared))).collect() }
    }

    /// Returns the chance that all timers of a fresh key are live, in one of the `lines` that the `keys` have chosen
    /// from: a key touches none of a set of timers with chance 1 - touch / lines.
    ///
    /// The terms alternate and reach 70, so that 1e-14 may be lost; two keys with the same timers are more likely.
    pub fn all_live(&self, keys: f64, lines: f64) -> f64 {
        let term = |&(count, touch): &(f64, f64)| count * (keys * (-touch / lines).ln_1p()).exp();
        self.terms.iter().map(term).sum::<f64>().clamp(0.0, 1.0)
    }
}
