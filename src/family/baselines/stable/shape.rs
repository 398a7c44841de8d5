//! The stable Bloom filter (Deng, Rafiei, *Approximately Detecting Duplicates for Streaming Data using Stable Bloom
//! Filters*, SIGMOD 2006), a baseline of papers 1 and 2. **It promises no window**: it forgets at random.
//!
//! An insertion subtracts one from P random cells of each slice, then sets one cell of each to its maximum. A key is
//! there when none of its cells is zero. The share of zeros falls to a stable point and stays there, however long the
//! stream.
//!
//! Where this differs from that paper:
//! - k slices with P decrements each, not one array with k P: slices are then independent, and the rates exact.
//! - As there, the P cells follow one another from a random one on, which leaves each cell's chance unchanged. The
//!   first one is XXH3 of the insertion's number under the filter's seed, not the next number of a generator. So words
//!   and clock are the whole state, a batch equals its keys in sequence, and a saved filter goes on as if it had not
//!   been saved.
//!
//! The formulas for its fill and for its forgetting are exact in expectation, for distinct keys. One insertion first
//! subtracts one from a cell with chance d = P/m, then sets it to Max with chance p = 1/m, in every one of the k slices
//! of m cells alike. The value of a cell follows from the last events it met. An insertion is one with chance q = p +
//! (1 - p) d: the cell is zero when the last Max events were decrements.

use crate::Error;
use crate::clock::{BY_INSERTION, Window};
use crate::family::budget::{Budget, check_rate, too_much_memory};
use crate::family::search::{bisection, near_the_least};
use crate::family::slice_sizes::Slices;
use crate::family::{CacheLines, Parameters};

/// Greatest share of the keys exactly as old as the window that a filter of [`choose`] forgets; of younger keys it is
/// less.
pub const FORGOTTEN: f64 = 0.1;

/// Numbers of bits that a cell may have.
const WIDTHS: [u32; 4] = [1, 2, 4, 8];

/// Greatest number of slices that [`choose`] considers: 32 at 2^-32 would be half full.
const MAX_SLICES: u32 = 32;

/// Greatest number of cells, and most bytes, that [`choose`] considers.
const MAX_CELLS: u64 = 1 << 56;

/// The shape of a stable filter: everything that determines its size and its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StableShape {
    /// The slices of cells.
    pub slices: Slices,
    /// Bits of a cell, 1, 2, 4 or 8; an insertion sets it to Max = 2^bits - 1.
    pub bits: u32,
    /// P: number of cells decremented in each slice per insertion, at least 1 and at most all.
    pub decrements: u64,
}

impl StableShape {
    /// Creates a shape whose parameters are in range.
    pub fn new(slices: Slices, bits: u32, decrements: u64) -> Result<Self, Error> {
        if !WIDTHS.contains(&bits) {
            return Err(Error::value(format!("bits must be 1, 2, 4 or 8, got {bits}")));
        }
        if !(1..=slices.cells).contains(&decrements) {
            return Err(Error::value(format!(
                "decrements must lie in 1 .. slice_cells = {}, got {decrements}",
                slices.cells
            )));
        }
        Ok(Self { slices, bits, decrements })
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let slices = Slices::new(parameters.read_u32("k")?, parameters.read_u64("slice_cells")?)?;
        Self::new(slices, parameters.read_u32("bits")?, parameters.read_u64("decrements")?)
    }

    /// Returns Max: the value that an insertion sets a cell to.
    pub fn max(&self) -> u32 {
        (1 << self.bits) - 1
    }

    /// Returns (1 - p) d and p: the chances that the last effect of an insertion on a cell is a decrement, or Max.
    fn events(&self) -> (f64, f64) {
        self.events_where(1.0)
    }

    /// Returns the chances of `events` for a cell that is set `often` times as often as the mean of all: p is `often` /
    /// m.
    fn events_where(&self, often: f64) -> (f64, f64) {
        let cells = self.slices.cells as f64;
        let set = (often / cells).min(1.0);
        ((1.0 - set) * self.decrements as f64 / cells, set)
    }

    /// Returns the expected share of zeros at the stable point, to which it falls: (1 / (1 + 1 / (P (1 - 1/m))))^Max
    /// (Theorem 2 there, 1/K - 1/m for slices).
    pub fn zeros(&self) -> f64 {
        let (decremented, set) = self.events();
        (decremented / (decremented + set)).powi(self.max() as i32)
    }

    /// Returns the chance that a fresh key is reported at the stable point; less before.
    pub fn false_positive_rate(&self) -> f64 {
        (1.0 - self.zeros()).powi(self.slices.k as i32)
    }

    /// Returns the chance that a key inserted `age` insertions ago is not reported, when all keys since were others:
    /// 1 - (1 - zeros * P(Bin(age, q) >= Max))^k. A cell that was set to Max is zero when it met at least Max events
    /// since, and the last Max of them were decrements.
    pub fn false_negative_rate(&self, age: f64) -> f64 {
        let (decremented, set) = self.events();
        let forgotten = self.zeros() * at_least(self.max(), age, decremented + set);
        1.0 - (1.0 - forgotten).powi(self.slices.k as i32)
    }

    /// Returns, for each value from 0 to Max + 1, the chance that a cell is below it, `age` insertions after the cell
    /// was set to Max. Then the last events of the cell, as many as lead there, were decrements. The cell is set
    /// `often` times as often as the mean of all cells: 1 if all keys are different.
    pub fn below(&self, age: f64, often: f64) -> Vec<f64> {
        self.worn(age, often, |_| 0.0)
    }

    /// Returns what [`below`](Self::below) does for a cell that was empty `age` insertions ago: it met as many events
    /// as lead there or fewer, all of them decrements.
    pub fn below_from_empty(&self, age: f64, often: f64) -> Vec<f64> {
        self.worn(age, often, |fewer| fewer)
    }

    /// Returns the chances of a cell to be below each value: that of enough decrements to lead there, plus what `fewer`
    /// makes of the chance of fewer events, all of them decrements.
    fn worn(&self, age: f64, often: f64, fewer: impl Fn(f64) -> f64) -> Vec<f64> {
        let (decremented, set) = self.events_where(often);
        let share = decremented / (decremented + set);
        let (mut at_least, mut decrements, mut too_few) = (1.0, 1.0, 0.0);
        let mut below = vec![1.0];
        for met in exactly(age, decremented + set).take(self.max() as usize) {
            at_least -= met;
            too_few += met * decrements;
            decrements *= share;
            below.push((f64::max(at_least, 0.0) * decrements + fewer(too_few)).min(1.0));
        }
        below.push(0.0);
        below.reverse();
        below
    }

    /// Returns the fewest decrements that keep these cells as empty as a rate needs; `None` if that is more than there
    /// are cells.
    fn for_rate(slices: Slices, bits: u32, fpr: f64) -> Option<Self> {
        let zeros = 1.0 - fpr.powf(1.0 / f64::from(slices.k));
        let decremented = zeros.powf(1.0 / f64::from((1u32 << bits) - 1));
        let cells = slices.cells as f64;
        // Rounded up by more than the last digits, so that the requested rate is kept.
        let needed = decremented / (1.0 - decremented) * cells / (cells - 1.0) * (1.0 + 1e-12);
        (needed < cells).then(|| Self { slices, bits, decrements: needed.ceil().max(1.0) as u64 })
    }

    /// Returns the fewest cells that keep the rate and do not forget too soon, by bisection.
    fn smallest(k: u32, bits: u32, window: u64, fpr: f64) -> Option<Self> {
        let made = |cells| {
            let shape = Self::for_rate(Slices { k, cells }, bits, fpr)?;
            (shape.false_negative_rate(window as f64) <= FORGOTTEN).then_some(shape)
        };
        let most = MAX_CELLS / u64::from(k);
        made(most)?;
        made(bisection(1, most, |cells| made(cells).is_some()))
    }

    /// Returns the most decrements that do not forget too soon, by bisection.
    fn emptiest(slices: Slices, bits: u32, window: u64) -> Option<Self> {
        let made = |decrements| Self { slices, bits, decrements };
        let keeps = |decrements| made(decrements).false_negative_rate(window as f64) <= FORGOTTEN;
        keeps(1).then(|| made(bisection(1, slices.cells + 1, |decrements| !keeps(decrements)) - 1))
    }
}

impl crate::family::Shape for StableShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Self { slices, bits, decrements } = *self;
        vec![("k", slices.k.into()), ("slice_cells", slices.cells), ("bits", bits.into()), ("decrements", decrements)]
    }

    fn retained(&self) -> u32 {
        BY_INSERTION
    }

    fn bytes(&self, _: Window) -> u64 {
        8 * self.slices.words(self.bits)
    }

    fn fpr(&self, _: Window) -> f64 {
        self.false_positive_rate()
    }

    /// Returns no bound: a key may be remembered by chance, ever less likely.
    fn slack(&self, _: Window) -> u64 {
        u64::MAX
    }

    /// Returns the keys older than the window that are still reported because they were inserted, over the window. It
    /// sums over all ages beyond the window what false negatives and false positives leave, in steps of 1/64 of a
    /// cell's time between events, which is good to 1e-3.
    fn npws(&self, window: Window) -> f64 {
        let (decremented, set) = self.events();
        let (step, window) = ((1.0 / (64.0 * (decremented + set))).floor().max(1.0), window.capacity() as f64);
        let (mut age, mut sum) = (window, 0.0);
        loop {
            let reported = 1.0 - self.false_negative_rate(age + (step - 1.0) / 2.0) - self.false_positive_rate();
            sum += reported * step;
            age += step;
            if reported < 1e-9 {
                return sum.max(0.0) / window;
            }
        }
    }

    /// Returns one line in each slice, and for an insertion the lines of the cells that decay, which lie together.
    fn cache_lines(&self, _: Window) -> CacheLines {
        let k = f64::from(self.slices.k);
        CacheLines { insert: 2.0 * k, hit: k, miss: self.slices.read_until_free(1.0 - self.zeros()) }
    }
}

/// Returns the shape for a window and a budget: among all k up to 32 and all widths of a cell, those that forget at
/// most [`FORGOTTEN`] of the keys as old as the window.
///
/// - [`Budget::Rate`]: each gets the fewest cells. Of those at most 1.25 times as large as the smallest filter, the one
///   with the fewest slices is chosen, then the one that touches the fewest bits per insertion.
/// - [`Budget::Bytes`]: each gets all bytes and the most decrements. Among those with at most twice the least rate the
///   choice is the same.
pub fn choose(window: Window, budget: Budget) -> Result<StableShape, Error> {
    let window = window.by_insertion()?;
    let kinds = (1..=MAX_SLICES).flat_map(|k| WIDTHS.map(|bits| (k, bits)));
    let touched = |shape: &StableShape| (shape.slices.k, shape.decrements * u64::from(shape.bits));
    match budget {
        Budget::Rate(fpr) => {
            check_rate(fpr)?;
            let each = kinds.filter_map(|(k, bits)| StableShape::smallest(k, bits, window, fpr)).collect();
            near_the_least(each, |shape| shape.slices.words(shape.bits), |least| least + least / 4)
                .min_by_key(touched)
                .ok_or_else(|| too_much_memory(fpr, "2**56 cells"))
        }
        Budget::Bytes(bytes) => {
            if bytes > MAX_CELLS {
                return Err(Error::value(format!("nbytes must be at most 2**56, got {bytes}")));
            }
            let slices = |(k, bits)| Slices { k, cells: bytes / 8 * u64::from(64 / bits) / u64::from(k) };
            let each = kinds
                .map(|kind| (slices(kind), kind.1))
                .filter(|(slices, _)| slices.cells > 0)
                .filter_map(|(slices, bits)| StableShape::emptiest(slices, bits, window))
                .collect();
            near_the_least(each, StableShape::false_positive_rate, |least| 2.0 * least)
                .min_by_key(touched)
                .ok_or_else(|| Error::value(format!("nbytes={bytes} is too little to remember this window by")))
        }
    }
}

/// Returns P(Bin(n, q) >= least), as one less the few terms below.
fn at_least(least: u32, n: f64, q: f64) -> f64 {
    (1.0 - exactly(n, q).take(least as usize).sum::<f64>()).clamp(0.0, 1.0)
}

/// Returns P(Bin(n, q) = i) for i from 0 on.
fn exactly(n: f64, q: f64) -> impl Iterator<Item = f64> {
    let certain = q >= 1.0;
    let mut term = (n * (-q).ln_1p()).exp();
    (0..).map(move |i| {
        let i = f64::from(i);
        if certain {
            return f64::from(u8::from(i == n));
        }
        let exactly = term;
        term *= (n - i).max(0.0) / (i + 1.0) * q / (1.0 - q);
        exactly
    })
}
