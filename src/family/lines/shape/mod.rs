//! The age-partitioned and the guarded-epoch Bloom filter in the [line layout](super::cells), in formulas: a
//! lane of every line replaces a slice or a segment, and a query reads one cache line instead of one per slice.
//!
//! The two are one: with guarded epochs an insertion writes one slice. They differ in the names of their parameters.
//!
//! Where this differs from the papers:
//! - Slices do not age all at once but page by page, so that a generation is not a moment but a round of the pages, and
//!   the rate is the same at all times: [`line`](super::cells) has the proof of the promise.
//! - All slices share their blocks (in paper 1, section 6, each has its own), and so the number of keys in them: the
//!   rates are not those of independent slices.
//!
//! A fresh key is compared with lines it chooses by chance, and lines differ: how many keys of each generation fell
//! into one is binomial. Given these loads the lanes of a line match independently, lane a with (1 - (15/16)^L)^b where
//! b is the sub-lanes of a lane and L the load of the k generations that wrote it. Neighbouring lanes share k - 1 of
//! them, so means are taken over all lanes of a run at once. Multiplied out, (15/16) appears to the power of a sum over
//! generations, whose mean is a product: the rate of a line is exact, and no load is ever enumerated.
//!
//! # A window of time
//!
//! Generations also end by count ([`clock`](crate::clock)), so that a burst takes several. Of the l retained ones, t =
//! l / 2 are as long as the window. A step takes a share of the capacity, and P steps are a full generation. When all
//! keys of a window come at once, l - t generations are full and the others empty. No arrival within the capacity gives
//! a greater rate, because more full generations would take more keys.

mod choose;

pub use choose::{choose, choose_for_threads};

use crate::Error;
use crate::clock::{Clock, Plan, Window};
use crate::family::slices::shape::Paper;
use crate::family::{CacheLines, Crowding, Parameters, fill};

/// Lines of a page of 4 KiB, which rotates as one.
pub const PAGE_LINES: u64 = 64;
/// Bytes of a page.
pub const PAGE_BYTES: u64 = 64 * PAGE_LINES;
/// Number of bits of a sub-lane; a key sets one of them.
pub const SUBLANE_BITS: u32 = 16;
/// Greatest number of lines of a key.
pub const MAX_LINES: u32 = 4;
/// Greatest number of lanes that an insertion writes. More of them never pay, and the rate takes 5^k steps.
pub const MAX_K: u32 = 4;
/// Greatest number of pages, half a tebibyte: a clock numbers the rotations of their 32 lanes by 32 bits.
pub const MAX_PAGES: u64 = (1 << 27) - 1;

/// Gauss-Hermite nodes and weights: the mean of a smooth function of a normal deviate.
pub(crate) const HERMITE: [(f64, f64); 3] =
    [(0.0, 2.0 / 3.0), (1.732_050_807_568_877_2, 1.0 / 6.0), (-1.732_050_807_568_877_2, 1.0 / 6.0)];
/// Gauss-Legendre nodes and weights: the mean of a smooth function over 0..1.
const LEGENDRE: [(f64, f64); 3] =
    [(0.112_701_665_379_258_3, 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.887_298_334_620_741_7, 5.0 / 18.0)];

/// The shape of a filter in lines: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineShape {
    /// The paper of the filter.
    pub paper: Paper,
    /// Lanes of a line: 8, 16 or 32. It is k + l.
    pub lanes: u32,
    /// Lanes written by an insertion, and lanes in a row that must match.
    pub k: u32,
    /// Lines of a key, all of one page: 1 to 4.
    pub lines: u32,
    /// Pages, which rotate one after the other.
    pub pages: u64,
}

/// The trace that one generation leaves in a line.
pub struct Generation {
    /// Mean number of keys of the generation in a line.
    load: f64,
    /// The mean of (15/16)^(J load) for J = 0, 1, .., at each place of [`HERMITE`] for the keys of the page.
    powers: [Vec<f64>; 3],
}

impl LineShape {
    /// Creates the shape of an age-partitioned filter whose parameters are in range: k + l 8, 16 or 32.
    pub fn age_partitioned(k: u32, l: u32, pages: u64, lines: u32) -> Result<Self, Error> {
        let lanes = k.saturating_add(l);
        if ![8, 16, 32].contains(&lanes) || l == 0 {
            return Err(Error::value(format!("k + l must be 8, 16 or 32 in the line layout, got k={k}, l={l}")));
        }
        Self::new(Paper::AgePartitioned, lanes, k, lines, pages)
    }

    /// Creates the shape of a guarded-epoch filter whose parameters are in range: r 7, 15 or 31.
    pub fn guarded_epoch(r: u32, pages: u64, lines: u32) -> Result<Self, Error> {
        if ![7, 15, 31].contains(&r) {
            return Err(Error::value(format!("r must be 7, 15 or 31 in the line layout, got {r}")));
        }
        Self::new(Paper::GuardedEpoch, r + 1, 1, lines, pages)
    }

    /// Reads a shape from parameters: r of a guarded-epoch filter, or k and l.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let (pages, lines) = (parameters.read_u64("pages")?, parameters.read_u32("lines")?);
        match parameters.get("r") {
            Some(_) => Self::guarded_epoch(parameters.read_u32("r")?, pages, lines),
            None => Self::age_partitioned(parameters.read_u32("k")?, parameters.read_u32("l")?, pages, lines),
        }
    }

    fn new(paper: Paper, lanes: u32, k: u32, lines: u32, pages: u64) -> Result<Self, Error> {
        for (name, value, most) in
            [("k", k.into(), MAX_K.into()), ("lines", lines.into(), MAX_LINES.into()), ("pages", pages, MAX_PAGES)]
        {
            if !(1..=most).contains(&value) {
                return Err(Error::value(format!("{name} must lie in 1..={most} in the line layout, got {value}")));
            }
        }
        Ok(Self { paper, lanes, k, lines, pages })
    }

    /// Returns the number of full generations retained.
    pub fn l(&self) -> u32 {
        self.lanes - self.k
    }

    /// Returns the number of retained generations of the clock: the steps in which every page rotates l times.
    pub fn retained(&self) -> u32 {
        self.l() * self.pages as u32
    }

    /// Returns the number of generations of a page that are as long as a window of time: the others end by count.
    fn timed(&self) -> u32 {
        self.l() / 2
    }

    /// Returns the number of full generations beside the open one that count at the worst phase.
    fn full(&self, window: Window) -> u32 {
        if let Window::Time { .. } = window { self.l() - self.timed() } else { self.l() }
    }

    /// Returns the greatest number of keys between two rotations of a page, within the capacity.
    pub fn keys_per_generation(&self, window: Window) -> u64 {
        match Plan::new(window, self.timed() * self.pages as u32, self.retained()) {
            Some(plan) => plan.share.saturating_mul(self.pages),
            None => window.keys_in(self.retained(), self.pages as u32),
        }
    }

    /// Returns the probability that a key never inserted is reported in a window of insertions. Pages rotate in a
    /// stagger, so it is constant over time, except for the last step, which counts as full.
    ///
    /// The runs of a line are counted as in [`runs`](crate::family::runs::false_positive_rate): a run is the first if
    /// the lane before it does not match and none lies further ahead. The latter is taken as independent of the run;
    /// lanes so far apart share no more than k - 2 generations. Simulations agree within 1 %.
    pub fn false_positive_rate(&self, keys_per_generation: u64) -> f64 {
        self.rate_of(keys_per_generation, self.l())
    }

    /// Returns the probability that a key never inserted is reported, with `full` full generations.
    fn rate_of(&self, keys_per_generation: u64, full: u32) -> f64 {
        let rate = self.mean_over_phases(|phase| {
            let [current, each] = [phase, 1.0].map(|share| self.generation(share * keys_per_generation as f64));
            self.run_rate(&current, &each, full)
        });
        fill::or_same_hash(rate, keys_per_generation.saturating_mul((self.k + full).into()))
    }

    /// Returns the keys beyond the window that are still reported, as a share of l generations: see
    /// [`runs::npws`](crate::family::runs::npws). With k = 1 it is 1 / 2l, half of the peak that a rotation of all
    /// lines at once has.
    pub fn npws(&self, keys_per_generation: u64) -> f64 {
        let (k, l) = (self.k, self.l());
        let full = self.generation(keys_per_generation as f64);
        let rate = self.run_rate(&full, &full, l);
        // Generation l has its k lanes. Later ones have fewer, and are reported when the younger lanes next to them
        // match.
        let younger = (l + 1..l + k).map(|j| 1.0 - (1.0 - self.all_match(l, j, &full, &full)) * (1.0 - rate));
        let beyond = self.mean_over_phases(|phase| phase);
        (beyond + younger.sum::<f64>()) / f64::from(l)
    }

    /// Returns the mean of a function of the fill of a page's current generation, from 1/P to 1. By the midpoint rule,
    /// the mean over that many steps is the integral that begins and ends half a step later.
    pub fn mean_over_phases(&self, of: impl Fn(f64) -> f64) -> f64 {
        let pages = self.pages as f64;
        if self.pages <= 3 {
            return (1..=self.pages).map(|turned| of(turned as f64 / pages)).sum::<f64>() / pages;
        }
        LEGENDRE.into_iter().map(|(place, weight)| weight * of(place + 0.5 / pages)).sum()
    }

    /// Returns the trace of a generation of `keys` keys in a line. With one line per key the page does not matter;
    /// several lines share their page, and its fill is a deviation that all of them have in common.
    pub fn generation(&self, keys: f64) -> Generation {
        let (pages, range) = (self.pages as f64, (PAGE_LINES / u64::from(self.lines)) as f64);
        let (mean, deviation) = (keys / pages, (keys / pages * (1.0 - 1.0 / pages)).sqrt());
        let powers = 0..=self.k * self.sublanes();
        let empty = |power: u32| (f64::from(power) * (-1.0 / f64::from(SUBLANE_BITS)).ln_1p()).exp_m1();
        let powers = HERMITE.map(|(place, _)| {
            let of_page = (mean + place * deviation).max(0.0);
            let (keys, lines) = if self.lines == 1 { (keys, pages * range) } else { (of_page, range) };
            powers.clone().map(|power| (keys * (empty(power) / lines).ln_1p()).exp()).collect()
        });
        Generation { load: mean / range, powers }
    }

    /// Returns the number of sub-lanes of a lane.
    pub fn sublanes(&self) -> u32 {
        64 * 8 / self.lanes / SUBLANE_BITS
    }

    /// Returns the chance that a fresh key finds k lanes in a row, with `generations` full ones behind the
    /// current.
    pub fn run_rate(&self, current: &Generation, full: &Generation, generations: u32) -> f64 {
        let k = self.k;
        // The chance that a run starts at a lane is equal for all lanes that the current generation is not in.
        let starts: Vec<f64> = (0..=generations.min(k + 1))
            .map(|lane| {
                let longer = if lane == 0 { 0.0 } else { self.all_match(lane - 1, lane + k, current, full) };
                (self.all_match(lane, lane + k, current, full) - longer).max(0.0)
            })
            .collect();
        let mut found_within = vec![0.0; (k + generations) as usize + 1];
        for lane in 0..=generations as usize {
            let none_before = if lane == 0 { 1.0 } else { 1.0 - found_within[lane - 1] };
            let end = lane + k as usize;
            found_within[end] = found_within[end - 1] + none_before * starts[lane.min(starts.len() - 1)];
        }
        found_within[(k + generations) as usize].min(1.0)
    }

    /// Returns the chance that a fresh key matches all of the lanes `from..to`, by age, in all of its lines.
    ///
    /// Given the keys of the page in each generation its lines are independent. Over these the mean is taken generation
    /// by generation, as if it were a product of means: the deviations are of 3 to 10 %, and their products do not
    /// count.
    pub fn all_match(&self, from: u32, to: u32, current: &Generation, full: &Generation) -> f64 {
        let of = |generation: u32| if generation == 0 { current } else { full };
        // The key of one generation that has written just these lanes may have the same mask.
        let same_mask = if to - from == self.k { of(from).load / 2_f64.powi(32) } else { 0.0 };
        let with = |deviating: u32, place: usize| {
            let table = |generation: u32| &of(generation).powers[if generation == deviating { place } else { 0 }][..];
            (self.in_one_line(from, to, &table) + same_mask).min(1.0).powi(self.lines as i32)
        };
        let at_mean = with(0, 0);
        if self.lines == 1 || at_mean == 0.0 {
            return at_mean;
        }
        let raised = |generation: u32| {
            let beside: f64 = (1..3).map(|place| HERMITE[place].1 * with(generation, place)).sum();
            HERMITE[0].1 + beside / at_mean
        };
        (at_mean * ((from + 1).saturating_sub(self.k)..to).map(raised).product::<f64>()).min(1.0)
    }

    /// Returns the rate in one line, from its bits: the mean of the product of (1 - x^L)^b over the lanes, multiplied
    /// out. The terms alternate and reach 2^(b (to - from)), so that 1e-10 may be lost; equal masks are more likely
    /// than that.
    fn in_one_line<'a>(&self, from: u32, to: u32, table: &dyn Fn(u32) -> &'a [f64]) -> f64 {
        self.terms(from, from, to, &mut vec![0; to as usize], table).max(0.0)
    }

    /// Returns the sum over all terms that have these `powers` of x in the lanes before `lane`. A generation is
    /// complete with the last lane it has written.
    fn terms<'a>(&self, lane: u32, from: u32, to: u32, powers: &mut [u32], table: &dyn Fn(u32) -> &'a [f64]) -> f64 {
        let settle = |generation: u32, powers: &[u32]| {
            let written = generation.max(from) as usize..(generation + self.k).min(to) as usize;
            table(generation)[powers[written].iter().sum::<u32>() as usize]
        };
        if lane == to {
            return ((to + 1).saturating_sub(self.k)..to).map(|generation| settle(generation, powers)).product();
        }
        let (mut sum, mut coefficient) = (0.0, 1.0);
        for power in 0..=self.sublanes() {
            powers[lane as usize] = power;
            let settled = if lane + 1 >= self.k { settle(lane + 1 - self.k, powers) } else { 1.0 };
            sum += coefficient * settled * self.terms(lane + 1, from, to, powers, table);
            coefficient *= -f64::from(self.sublanes() - power) / f64::from(power + 1);
        }
        sum
    }
}

impl crate::family::Shape for LineShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = match self.paper {
            Paper::AgePartitioned => vec![("k", self.k.into()), ("l", self.l().into())],
            Paper::GuardedEpoch => vec![("r", self.l().into())],
        };
        parameters.extend([("pages", self.pages), ("lines", self.lines.into())]);
        parameters
    }

    fn retained(&self) -> u32 {
        self.retained()
    }

    /// In a window of time generations end by count too.
    fn crowding(&self) -> Crowding {
        Crowding { distinct: None, by_generation: false, is_sampled: false }
    }

    fn clock(&self, window: Window) -> Clock {
        Clock::with_shares(window, self.timed() * self.pages as u32, self.retained())
    }

    fn bytes(&self, _: Window) -> u64 {
        self.pages * PAGE_BYTES
    }

    fn fpr(&self, window: Window) -> f64 {
        self.rate_of(self.keys_per_generation(window), self.full(window))
    }

    fn slack(&self, window: Window) -> u64 {
        let pages = self.pages as u32;
        match window {
            Window::Count { .. } => window.slack(self.retained(), self.k * pages),
            Window::Time { .. } => window.slack(self.timed() * pages, self.k * pages + Plan::group(self.retained())),
        }
    }

    fn npws(&self, window: Window) -> f64 {
        let npws = self.npws(self.keys_per_generation(window));
        match window {
            Window::Count { .. } => window.npws(self.retained(), f64::from(self.retained()) * npws),
            Window::Time { .. } => {
                let (timed, group) = (self.timed() * self.pages as u32, Plan::group(self.retained()));
                window.npws(timed, f64::from(self.retained()) * npws + f64::from(group))
            }
        }
    }

    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.lines)
    }
}
