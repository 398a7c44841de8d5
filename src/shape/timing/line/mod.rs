//! The timing Bloom filter in the line layout: a key's timers in one cache line, or in two of one page, where slices
//! cost it a line for each. What it costs and what it promises.
//!
//! Where this differs from slices: timers of a key share a line, and so the number of keys in it; the rate is not a power
//! of the fill. Equal timers and sizes that grow are for slices alone.
//!
//! A line is 8 words of as many timers as fit. A key takes one timer in each of k consecutive words, counted round the
//! line from one that its hash chooses, so that the words are equally full whatever k is. A line is found by hash, and
//! so lines differ in how many keys they hold: that is what the layout costs. At 30 bits per key a line has 25 live
//! keys, give or take 5.

mod choose;

pub use choose::choose;

use std::collections::BTreeMap;

use super::{check_timers, live_keys};
use crate::Error;
use crate::clock::Window;
use crate::shape::line::{HERMITE, MAX_PAGES, PAGE_BYTES, PAGE_LINES};
use crate::shape::{self, CacheLines, Parameters, fill};

/// Words of a line, in each of which a key takes at most one timer.
pub const WORDS: u32 = 8;
/// Most lines of a key.
pub const MAX_LINES: u32 = 2;

/// Everything that determines the size and the error of a timing Bloom filter in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Timers a key sets: up to 8 in each of its lines, over which they are shared as evenly as can be.
    pub k: u32,
    /// Bits per timer, 2 to 32.
    pub bpt: u32,
    /// Full generations kept, as in slices.
    pub blocks: u32,
    /// Lines of a key, both of one page: 1 or 2.
    pub lines: u32,
    /// Pages of 64 lines.
    pub pages: u64,
}

impl Shape {
    /// A shape whose parameters are in range.
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

    /// The shape of these parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(
            parameters.narrow("k")?,
            parameters.narrow("bpt")?,
            parameters.narrow("blocks")?,
            parameters.wide("pages")?,
            parameters.narrow("lines")?,
        )
    }

    /// Timers that a key sets in one of its lines: the first has the odd one.
    pub fn k_of(&self, line: u32) -> u32 {
        (self.k + self.lines - 1 - line) / self.lines
    }

    /// Bytes of all pages.
    pub fn nbytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    /// Bits of memory per key of a window of `keys` keys.
    pub fn bits_per_key(&self, keys: u64) -> f64 {
        8.0 * self.nbytes() as f64 / keys as f64
    }

    /// Probability that a key never inserted is reported, just before a shift, the worst phase.
    ///
    /// With one line it is exact. Two lines of a page are of separate ranges, so that their loads depend on each other
    /// only by that of the page: the mean over it is taken as in [`shape::line`](crate::shape::line), and is within
    /// 0.1 % of the exact one from 1 % to 0.01 %.
    pub fn false_positive_rate(&self, window: Window) -> f64 {
        self.rate(live_keys(window, self.blocks), &self.of_line())
    }

    /// What a fresh key finds in each of its lines.
    fn of_line(&self) -> Vec<Line> {
        (0..self.lines).map(|line| Line::new(self.k_of(line), self.bpt)).collect()
    }

    /// The same, from what a fresh key finds in each of its lines.
    fn rate(&self, keys: u64, of_line: &[Line]) -> f64 {
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

impl shape::Shape for Shape {
    fn family(&self) -> &'static str {
        "timing-line"
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("k", self.k.into()),
            ("bpt", self.bpt.into()),
            ("blocks", self.blocks.into()),
            ("pages", self.pages),
            ("lines", self.lines.into()),
        ]
    }

    fn kept(&self) -> u32 {
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

/// What a fresh key finds in one line.
struct Line {
    /// For each set of its timers, taken together by how often they are missed: the sign and number of such sets, and
    /// the chance that a key of the line touches one timer of the set at least.
    terms: Vec<(f64, f64)>,
}

impl Line {
    /// Of k timers of a key in a line of timers of so many bits.
    ///
    /// By inclusion and exclusion over the 2^k sets of its timers, all are live with the sum of (-1)^|J| P(none of J
    /// is). A key of the line whose timers begin in word s misses J with (1 - 1/t)^c, where t are the timers of a
    /// word, and c the words of J that it takes too. All that counts of a set is how many of the 8 words s have which
    /// c: that makes at most 13 terms of 256.
    fn new(k: u32, bpt: u32) -> Self {
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

    /// Chance that all timers of a fresh key are live, in one of so many lines that these keys have chosen from: a key
    /// touches none of a set of timers with chance 1 - touch / lines.
    ///
    /// The terms alternate and reach 70, so that 1e-14 may be lost; two keys with the same timers are more likely.
    fn all_live(&self, keys: f64, lines: f64) -> f64 {
        let term = |&(count, touch): &(f64, f64)| count * (keys * (-touch / lines).ln_1p()).exp();
        self.terms.iter().map(term).sum::<f64>().clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn count(insertions: u64) -> Window {
        Window::Count { insertions }
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        for ((k, bpt, blocks, pages, lines), words) in [
            ((0, 4, 3, 10, 1), "k must lie in 1..=8 in lines, got 0"),
            ((9, 4, 3, 10, 1), "k must lie in 1..=8 in lines, got 9"),
            ((1, 4, 3, 10, 2), "k must lie in 2..=16 in lines, got 1"),
            ((17, 4, 3, 10, 2), "k must lie in 2..=16 in lines, got 17"),
            ((3, 4, 3, 10, 0), "lines must lie in 1..=2 in lines, got 0"),
            ((3, 4, 3, 10, u32::MAX), "lines must lie in 1..=2 in lines, got 4294967295"),
            ((3, 4, 3, 0, 1), "pages must lie in 1..=134217727 in lines, got 0"),
            ((3, 1, 3, 10, 1), "bpt must lie in 2..=32, got 1"),
            ((3, 4, 15, 10, 1), "blocks must lie in 1..=14 at bpt=4, got 15"),
        ] {
            let error = Shape::new(k, bpt, blocks, pages, lines).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let largest = Shape::new(16, 2, 2, MAX_PAGES, 2).unwrap();
        assert!((0.0..1e-9).contains(&largest.false_positive_rate(count(1 << 20))));
        assert!((largest.false_positive_rate(count(1 << 62)) - 1.0).abs() < 1e-9);
        assert_eq!((largest.nbytes(), largest.k_of(0), largest.k_of(1)), (MAX_PAGES << 12, 8, 8));
        let odd = Shape::new(7, 2, 2, 1, 2).unwrap();
        assert_eq!((odd.k_of(0), odd.k_of(1)), (4, 3));
    }

    /// Chance that all k timers of a fresh key, which begin in word 0, are live after so many keys of its line: which
    /// of them are, key by key, over all starts and places.
    fn by_enumeration(k: u32, per_word: f64, keys: u32) -> Vec<f64> {
        let mut states = vec![0.0; 1 << k];
        states[0] = 1.0;
        let mut all_live = vec![states[states.len() - 1]];
        for _ in 0..keys {
            let mut next = vec![0.0; 1 << k];
            for start in 0..WORDS {
                let mut after = states.clone();
                for word in (start..start + k).map(|word| word % WORDS).filter(|&word| word < k) {
                    for set in (0..after.len()).filter(|set| set >> word & 1 == 0) {
                        let touched = after[set] / per_word;
                        after[set | 1 << word] += touched;
                        after[set] -= touched;
                    }
                }
                next.iter_mut().zip(after).for_each(|(next, after)| *next += after / f64::from(WORDS));
            }
            states = next;
            all_live.push(states[states.len() - 1]);
        }
        all_live
    }

    /// The weights of a binomial load, by Pascal's triangle in floating point.
    fn binomial(keys: u32, chance: f64) -> Vec<f64> {
        let mut weights = vec![1.0];
        for _ in 0..keys {
            let before = weights.clone();
            weights.push(0.0);
            weights.iter_mut().for_each(|weight| *weight *= 1.0 - chance);
            weights[1..].iter_mut().zip(before).for_each(|(weight, before)| *weight += before * chance);
        }
        weights
    }

    #[test]
    fn one_line_is_what_enumeration_gives() {
        for (k, bpt, keys, pages) in
            [(1, 2, 300, 1), (3, 4, 400, 1), (5, 2, 900, 1), (6, 3, 500, 1), (8, 2, 1000, 1), (4, 32, 200, 2)]
        {
            let of_load = by_enumeration(k, f64::from(64 / bpt), keys);
            let exact: f64 =
                binomial(keys, 1.0 / (64 * pages) as f64).iter().zip(of_load).map(|(weight, live)| weight * live).sum();
            let line = [Line::new(k, bpt)];
            assert!(line[0].terms.len() <= 13);
            let value = Shape::new(k, bpt, 1, pages, 1).unwrap().rate(keys.into(), &line);
            let same_timers = f64::from(keys) / (64 * pages) as f64 / 2_f64.powi(32);
            assert!((value - exact - same_timers).abs() < 1e-9 * exact + 1e-13, "{k} {bpt}: {value} is not {exact}");
        }
    }

    #[test]
    fn two_lines_are_the_mean_over_the_loads_of_a_page() {
        for (k, bpt, keys, pages, off) in
            [(6, 2, 2000, 3, 1e-3), (10, 2, 3000, 8, 2e-3), (7, 4, 2000, 5, 2e-3), (2, 3, 500, 1, 1e-6)]
        {
            let shape = Shape::new(k, bpt, 1, pages, 2).unwrap();
            let lines = [0, 1].map(|line| Line::new(shape.k_of(line), bpt));
            let of_page = |keys: usize| lines.iter().map(|line| line.all_live(keys as f64, 32.0)).product::<f64>();
            let exact: f64 = binomial(keys, 1.0 / pages as f64)
                .iter()
                .enumerate()
                .map(|(keys, weight)| weight * of_page(keys))
                .sum();
            let value = shape.rate(keys.into(), &lines);
            assert!((value / exact - 1.0).abs() < off, "{shape:?}: {value} is not {exact}");
        }
    }

    #[test]
    fn more_keys_and_fewer_pages_are_worse() {
        for (k, bpt, lines) in [(6, 2, 1), (8, 8, 1), (10, 2, 2), (15, 4, 2)] {
            let rate =
                |insertions, pages| Shape::new(k, bpt, 2, pages, lines).unwrap().false_positive_rate(count(insertions));
            let rates = [1, 100, 3000, 10_000, 40_000, 1 << 40, 1 << 60].map(|insertions| rate(insertions, 7));
            assert!(rates.windows(2).all(|pair| pair[1] > pair[0] - 1e-12), "{rates:?}");
            assert!((rates[6] - 1.0).abs() < 1e-9, "{rates:?}");
            assert!([500, 50, 5, 2, 1].map(|pages| rate(9000, pages)).is_sorted());
        }
    }
}
