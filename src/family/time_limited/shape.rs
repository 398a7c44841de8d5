//! The time-limited Bloom filter (paper 3: Rodrigues, Shtul, Baquero, Almeida, *Time-limited Bloom Filter*, 2023): an
//! age-partitioned filter for a span of time in which an unknown number of keys will come.
//!
//! Each slice has its own size. An insertion sets one bit in each of the k newest; a shift puts a new slice before
//! them, sized by the current rate. A slice whose last update is older than the span is stale: queries skip it, and the
//! next shift drops it. So slices come and go with the rate, and a key is there when k consecutive live slices have its
//! bits.
//!
//! Where this differs from the paper:
//! - A generation ends when its keys are in (equation 5) and also, unlike there, after the l-th part of the span: if
//!   the rate falls, a generation that waits for its keys would keep all of them, and the slack would have no bound.
//! - A shift is made by the insertion that needs it, which also updates the new slice.
//! - The target (equation 6) is at most the number of keys in the filter: keys of one and the same moment have no rate.
//!   In a burst it grows with each generation, so sizes follow within a few times k shifts.
//! - After a gap longer than the span the filter begins anew, with k slices of the first size (or of the largest there
//!   is, if that is smaller). In the paper the next insertion makes the newest slices live again, with all the expired
//!   keys in them.
//! - Lateness lengthens the span: a late key counts as of the latest moment.
//!
//! A shift moves the live slices within their memory. If the rate has changed or another owner holds that memory, it
//! moves them into new memory, so that for that moment the filter takes up to twice its bytes. At a steady rate the
//! filter is moved once per generation: at 1 %, where l = 20, that is 54 bytes per insertion. A shift that cannot have
//! its memory is an error that leaves the filter as it was before the key; the keys before it are inserted.
//!
//! Symbols are those of paper 3, Table 1: slice i, 0 the newest, has m_i bits, capacity c_i and count n_i. The
//! equations lost theirs in print; erratum TLBF-1 has them, TLBF-2 states how they round.

use std::f64::consts::LN_2;

use crate::Error;
use crate::clock::Window;
use crate::family::budget::check_rate;
use crate::family::search::near_the_least;
use crate::family::slices::shape::{Paper, check_slices, rings_within_slack};
use crate::family::{Accesses, CacheLines, Parameters, runs};
use crate::inference::MAX_SLICES;

/// Least number of bits of a slice, a cache line: smaller ones save nothing and lose accuracy to rounding.
pub const MIN_BITS: u64 = 512;

/// Greatest number of bits of a slice, so that no size can overflow.
pub const MAX_BITS: u64 = 1 << 60;

/// The shape of a time-limited filter: the slices that must match, and the generations retained at a steady rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimitedShape {
    /// k: number of slices that a key is inserted into.
    pub k: u32,
    /// l: number of generations in a window; a generation lasts at most the l-th part of the window.
    pub l: u32,
    /// Number of bits of each of the first k slices.
    pub first_bits: u64,
}

impl TimeLimitedShape {
    /// Creates a shape in range: k and l at least 1, k + l at most [`MAX_SLICES`], the first slices of whole words.
    pub fn new(k: u32, l: u32, first_bits: u64) -> Result<Self, Error> {
        check_slices(k, l)?;
        if !(MIN_BITS..=MAX_BITS).contains(&first_bits) || !first_bits.is_multiple_of(64) {
            return Err(Error::value(format!(
                "slice_bits must be a multiple of 64 in {MIN_BITS} .. 2**60, got {first_bits}"
            )));
        }
        Ok(Self { k, l, first_bits })
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(parameters.read_u32("k")?, parameters.read_u32("l")?, parameters.read_u64("slice_bits")?)
    }

    /// Returns the shape of k and l whose first slices are for a steady rate of as many keys per window as the window's
    /// capacity.
    pub fn planned(k: u32, l: u32, window: Window) -> Self {
        Self { k, l, first_bits: bits(window.keys_per_generation(l).saturating_mul(k.into())) }
    }

    /// Returns this shape with first slices for at most this many keys per window.
    pub fn at_first_for(self, keys: u64) -> Self {
        Self { first_bits: self.first_bits.min(bits(keys * u64::from(self.k) / u64::from(self.l))), ..self }
    }

    /// Returns the most that the k + l slices of a steady rate are filled, the newest first, just before a shift.
    ///
    /// A shift comes when a slice has taken its share of the generations it has left, rounded up (equation 4). So of
    /// its capacity c slice i < k has taken at most (i + 1)(c + k - 1) / k, by induction over i, whatever the rate does
    /// and whatever the sizes of the others; and n keys fill it to at most 1 - 2^(-n/c). Rounding counts most in the
    /// smallest slice.
    pub fn fills(self) -> Vec<f64> {
        let (k, c) = (f64::from(self.k), capacity(MIN_BITS) as f64);
        let taken = |i: u32| (f64::from(i + 1) * (c + k - 1.0) / (k * c)).min(1.0);
        (0..self.k + self.l).map(|i| -(-LN_2 * taken(i.min(self.k - 1))).exp_m1()).collect()
    }

    /// Returns a bound for the chance that a key never inserted is reported, while no more than k + l slices are live.
    pub fn false_positive_rate(self) -> f64 {
        runs::false_positive_rate(self.k, &self.fills())
    }

    /// Returns the bits per key of the window just after and just before a shift, when l and l + 1 generations of `g`
    /// keys are there in k + l slices of k g / ln 2 bits (paper 3, Table 2; erratum TLBF-5).
    pub fn bits_per_key(self) -> [f64; 2] {
        let bits = f64::from(self.k) * f64::from(self.k + self.l) / LN_2;
        [bits / f64::from(self.l), bits / f64::from(self.l + 1)]
    }
}

impl crate::family::Shape for TimeLimitedShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("k", self.k.into()), ("l", self.l.into()), ("slice_bits", self.first_bits)]
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        match window.check()? {
            Window::Time { .. } => Ok(()),
            Window::Count { .. } => Err(Error::value("window must be a span of time for a time-limited filter")),
        }
    }

    fn retained(&self) -> u32 {
        self.l
    }

    /// Returns the bytes of the first k slices, their rows in the table and the head of the table.
    fn bytes(&self, _: Window) -> u64 {
        8 * 3 + u64::from(self.k) * (8 * 4 + self.first_bits / 8)
    }

    fn grows(&self) -> bool {
        true
    }

    /// Returns the rate while no more than k + l slices are live, as they are at a steady rate.
    fn fpr(&self, _: Window) -> f64 {
        self.false_positive_rate()
    }

    /// Returns the time for which the slice that was newest with a key, which has its last trace, may be updated: less
    /// than k generations.
    fn slack(&self, window: Window) -> u64 {
        window.slack(self.l, self.k)
    }

    fn npws(&self, window: Window) -> f64 {
        window.npws(self.l, f64::from(self.l) * runs::npws(self.k, self.l, &self.fills()))
    }

    fn accesses(&self, _: Window) -> Option<Accesses> {
        Some(runs::expected_accesses(self.k, self.l, &self.fills()))
    }

    /// Returns one line in each slice: k are written, and a query reads like Algorithm 1, over all slices planned.
    fn cache_lines(&self, _: Window) -> CacheLines {
        let accesses = runs::expected_accesses(self.k, self.l, &self.fills());
        CacheLines { insert: self.k.into(), hit: accesses.in_window, miss: accesses.absent }
    }
}

/// Returns the shape for a window of time, a rate and a slack, which by default is half the window (beyond lateness).
///
/// As for the age-partitioned filter, among the shapes whose bits per key are at most 1.25 times the least the one with
/// the fewest slices is chosen, then the fewest bits.
pub fn choose(window: Window, fpr: f64, slack: Option<u64>) -> Result<TimeLimitedShape, Error> {
    check_rate(fpr)?;
    let bits = |shape: &TimeLimitedShape| shape.bits_per_key()[0];
    let allowed = rings_within_slack(window.check()?, slack, Paper::AgePartitioned)?
        .into_iter()
        .map(|(k, l)| TimeLimitedShape::planned(k, l, window));
    let holding = allowed.filter(|shape| shape.false_positive_rate() <= fpr).collect();
    near_the_least(holding, bits, |least| 1.25 * least)
        .min_by(|a, b| (a.k + a.l).cmp(&(b.k + b.l)).then(bits(a).total_cmp(&bits(b))))
        .ok_or_else(|| Error::value(format!("fpr={fpr} takes more than {MAX_SLICES} slices for this window and slack")))
}

/// Returns c, the most keys that fill a slice of `bits` bits to at most one half, in expectation.
pub fn capacity(bits: u64) -> u64 {
    (-LN_2 / (-1.0 / bits as f64).ln_1p()) as u64
}

/// Returns m, the fewest bits, in whole words, that hold `capacity` keys (equation 8: c / ln 2, which is half a bit too
/// few).
pub fn bits(capacity: u64) -> u64 {
    let exact = -1.0 / (-LN_2 / capacity as f64).exp_m1();
    ((exact as u64).saturating_add(1).clamp(MIN_BITS, MAX_BITS)).next_multiple_of(64)
}

/// The load of a slice that is still being filled: capacity and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// c: number of keys that the slice can take.
    pub capacity: u64,
    /// n: number of keys that the slice has taken.
    pub count: u64,
}

impl Load {
    /// Returns the number of keys that the slice can still take.
    pub fn left(self) -> u64 {
        self.capacity.saturating_sub(self.count)
    }
}

/// Returns g, the keys that may come before the next shift, given the k slices that take them as a shift has left them
/// (equations 4 and 5). Rounded up: a slice with k - i generations to come never has less room than k - i (TLBF-2).
pub fn generation(filling: &[Load]) -> u64 {
    let shares = filling.iter().rev().zip(1..).map(|(load, to_come)| load.left().div_ceil(to_come));
    shares.min().unwrap_or(1).max(1)
}

/// Returns g*, the keys to plan for per generation, from `made` keys in the last `elapsed` nanoseconds (equation 6), if
/// a generation shall last `length`. It is at most the number of keys in the filter: at one and the same moment any
/// rate is infinite.
pub fn target(made: u64, elapsed: u64, length: u64, held: u64) -> u64 {
    let keys = (u128::from(made) * u128::from(length)).div_ceil(u128::from(elapsed.max(1)));
    u64::try_from(keys).unwrap_or(u64::MAX).min(held).max(1)
}

/// Returns c_0, the keys that the new slice will have taken when it leaves position k - 1 (equation 7); `older` are the
/// k - 1 slices that are still being filled, the newest first.
///
/// Generations are as long as the tightest of the older slices allows, until it is full and leaves, then the next,
/// until none allows less than the target.
pub fn new_capacity(older: &[Load], target: u64) -> u64 {
    let k = older.len() as u64 + 1;
    let (mut count, mut shifts) = (0, k);
    let limit = |count: u64, shifts: u64| {
        let share = |(j, load): (u64, &Load)| (load.left().saturating_sub(count).div_ceil(shifts - j), j, load.left());
        (1..shifts).zip(older).map(share).min()
    };
    while let Some((share, j, left)) = limit(count, shifts)
        && share < target
    {
        (count, shifts) = (count.max(left), j);
    }
    count.saturating_add(target.saturating_mul(shifts)).max(k)
}
