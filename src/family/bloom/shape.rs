//! The Bloom filter, classical and partitioned (Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*,
//! 1970; Mullin, *A Second Look at Bloom Filters*, 1983; paper 1, section 4), a baseline for the other filters. **It
//! has no window**: nothing is ever forgotten.
//!
//! An insertion sets the k bits of a key, anywhere in one array or one in each of k slices; a key is there when all of
//! its bits are set. More keys than planned for are accepted too, and cost accuracy. The generation of its clock never
//! ends ([`ENDLESS`]), so a batch is one run of keys.
//!
//! Where this differs from the papers: no double hashing, whose floor of errors lies too high
//! ([`cells`](crate::family::arrays)).
//!
//! Partitioned, the k slices are filled independently, and the expectation of the product of their fills is the product
//! of the expected ones: [`Slices::false_positive_rate`]. Classical, all k positions share one array, whose fill varies
//! from filter to filter, and the rate is the mean of its k-th power, which lies above the k-th power of its mean: by
//! 2e-3 of it for 100 keys at 1 %, by 2e-6 for 100,000. [`array_rate`] is that mean, exactly.

use crate::Error;
use crate::clock::{ENDLESS, Window};
use crate::family::budget::{Budget, too_few_bytes};
use crate::family::search::bisection;
use crate::family::slice_sizes::Slices;
use crate::family::{CacheLines, Parameters, fill};
use crate::inference::MAX_SLICES;

/// Greatest number of bits of a filter: far above any machine, far enough below 2^64 that no size can overflow.
const MAX_BITS: u64 = 1 << 60;

/// The shape of a Bloom filter: where the k bits of a key may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloomShape {
    /// Anywhere in one array (Bloom, 1970).
    Classical {
        /// Number of positions of a key, some of which may be equal.
        k: u32,
        /// m: number of bits of the array.
        bits: u64,
    },
    /// One in each of k slices (paper 1, section 4).
    Partitioned(Slices),
}

impl BloomShape {
    /// Creates a shape with one array of at least 1 bit and at most 2^60, and k at most [`MAX_SLICES`].
    pub fn classical(k: u32, bits: u64) -> Result<Self, Error> {
        check("bits", k, bits, MAX_BITS)?;
        Ok(Self::Classical { k, bits })
    }

    /// Creates a shape with k slices of `slice_bits` bits each, with at most 2^60 bits together.
    pub fn partitioned(k: u32, slice_bits: u64) -> Result<Self, Error> {
        check("slice_bits", k, slice_bits, MAX_BITS / u64::from(k.max(1)))?;
        Ok(Self::Partitioned(Slices { k, cells: slice_bits }))
    }

    /// Reads a shape from parameters: with `slice_bits` partitioned, else classical.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let k = parameters.read_u32("k")?;
        match parameters.get("slice_bits") {
            Some(bits) => Self::partitioned(k, bits),
            None => Self::classical(k, parameters.read_u64("bits")?),
        }
    }

    /// Returns k, the number of bits of a key.
    pub fn k(&self) -> u32 {
        match *self {
            Self::Classical { k, .. } | Self::Partitioned(Slices { k, .. }) => k,
        }
    }

    /// Returns the bytes of all bits, in whole words.
    pub fn nbytes(&self) -> u64 {
        8 * match self {
            Self::Classical { bits, .. } => bits.div_ceil(64),
            Self::Partitioned(slices) => slices.words(1),
        }
    }

    /// Returns the chance that a fresh key is reported when the filter contains `keys` distinct keys, exactly in
    /// expectation.
    pub fn false_positive_rate(&self, keys: u64) -> f64 {
        let rate = match *self {
            Self::Classical { k, bits } => array_rate(k, bits, keys),
            Self::Partitioned(slices) => slices.false_positive_rate(keys),
        };
        fill::or_same_hash(rate, keys)
    }
}

impl crate::family::Shape for BloomShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (bits, slice_bits) = match *self {
            Self::Classical { bits, .. } => (bits, 0),
            Self::Partitioned(slices) => (0, slices.cells),
        };
        vec![("k", self.k().into()), ("bits", bits), ("slice_bits", slice_bits)]
    }

    /// Checks that the window, which is the number of keys that the filter is planned for, has no span of time.
    fn check(&self, window: Window) -> Result<(), Error> {
        match window {
            Window::Count { insertions: capacity } => check_capacity(capacity),
            Window::Time { .. } => Err(Error::value("a Bloom filter has no window of time")),
        }
    }

    fn retained(&self) -> u32 {
        ENDLESS
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(window.capacity())
    }

    /// Returns no bound, because keys do not leave.
    fn slack(&self, _: Window) -> u64 {
        0
    }

    fn npws(&self, _: Window) -> f64 {
        0.0
    }

    /// Returns one line for each bit: all are prefetched, whatever the first ones turn out to be.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.k())
    }
}

fn check(name: &str, k: u32, bits: u64, most: u64) -> Result<(), Error> {
    if !(1..=MAX_SLICES).contains(&k) {
        return Err(Error::value(format!("k must lie in 1 .. {MAX_SLICES}, got {k}")));
    }
    if !(1..=most).contains(&bits) {
        return Err(Error::value(format!("{name} must lie in 1 .. {most} (2**60 bits in all), got {bits}")));
    }
    Ok(())
}

/// Rejects a capacity that is no window of insertions: zero, or more than any stream has. The error names the capacity.
pub fn check_capacity(capacity: u64) -> Result<(), Error> {
    match (Window::Count { insertions: capacity }).check() {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::value(format!("capacity must lie in 1 .. 2**62 keys, got {capacity}"))),
    }
}

/// Returns the shape that holds `capacity` keys within a budget. [`Slices::for_rate`] and [`Slices::for_cells`] choose
/// k: each bit of a key costs a line of memory, so up to a quarter more memory than the least is taken for a smaller k
/// (10.5 bits per key with k = 4 at 1 %, where k = 7 would take 9.6). One array then has the fewest bits that keep the
/// rate, or all bits there are.
pub fn choose(capacity: u64, budget: Budget, partitioned: bool) -> Result<BloomShape, Error> {
    check_capacity(capacity)?;
    budget.check()?;
    match budget {
        Budget::Rate(fpr) => {
            // The rate that equal hashes leave, less the last digits that rounding may take.
            let rate = (fpr - fill::same_hash(capacity)) * (1.0 - 4.0 * f64::EPSILON);
            if rate <= 0.0 {
                return Err(Error::value(format!(
                    "fpr={fpr} is below the chance that one of {capacity} keys has the hash of another"
                )));
            }
            let slices = Slices::for_rate(capacity, rate)?;
            if partitioned { Ok(BloomShape::Partitioned(slices)) } else { smallest_array(slices.k, capacity, fpr) }
        }
        Budget::Bytes(bytes) if bytes < 8 => Err(too_few_bytes(8, "", bytes)),
        Budget::Bytes(bytes) => {
            let bits = (bytes / 8).saturating_mul(64).min(MAX_BITS);
            let slices = Slices::for_cells(capacity, bits);
            Ok(if partitioned { BloomShape::Partitioned(slices) } else { BloomShape::Classical { k: slices.k, bits } })
        }
    }
}

/// Returns the fewest bits of one array that hold `keys` at a rate of at most `fpr`, by bisection.
pub fn smallest_array(k: u32, keys: u64, fpr: f64) -> Result<BloomShape, Error> {
    let made = |bits| BloomShape::Classical { k, bits };
    let holds = |bits| made(bits).false_positive_rate(keys) <= fpr;
    let (mut too_few, mut enough) = (0, 1);
    while !holds(enough) {
        if enough == MAX_BITS {
            return Err(Error::value(format!("fpr={fpr} for this capacity takes more than 2**60 bits")));
        }
        (too_few, enough) = (enough, enough * 2);
    }
    Ok(made(bisection(too_few, enough, holds)))
}

/// Returns the expectation of (X/m)^k, where X of `bits` = m bits are set after `keys` distinct keys with k positions
/// each, all independent: the chance that a fresh key finds its own k positions set.
///
/// The fresh key has u different positions; each of the n = k `keys` positions thrown hits one that was free with
/// chance u/m, and then one fewer is free. The chain is advanced by powers of two, t(2n) = t(n)^2, in k^3 log n steps.
/// All terms are positive, so small rates keep their digits, where inclusion and exclusion over the u positions loses
/// all below 1e-16 times its largest binomial. The diagonal, (1 - u/m)^n, is computed anew each time, since squaring
/// would double its relative error with every step.
pub fn array_rate(k: u32, bits: u64, keys: u64) -> f64 {
    Array::new(k, bits, keys).rate()
}

/// The Markov chain of [`array_rate`], which can go on key by key.
pub(crate) struct Array {
    k: u32,
    bits: f64,
    /// The chances that a fresh key has 0, 1, 2, ... different positions.
    different: Vec<f64>,
    /// The chances that 0, 1, 2, ... positions are all set.
    all_set: Vec<f64>,
}

impl Array {
    /// Creates the chain after `keys` keys.
    pub(crate) fn new(k: u32, bits: u64, keys: u64) -> Self {
        let different = different_positions(k, bits);
        let (size, m) = (different.len(), bits as f64);
        let mut left = keys.saturating_mul(k.into());
        let mut throws = 1.0;
        let mut step = vec![vec![0.0; size]; size]; // [free before][free after `throws` throws]
        for free in 1..size {
            step[free][free - 1] = free as f64 / m;
        }
        let mut all_set = vec![0.0; size];
        all_set[0] = 1.0;
        while left > 0 {
            for (free, to) in step.iter_mut().enumerate() {
                to[free] = (throws * (-(free as f64) / m).ln_1p()).exp();
            }
            let through = |from: usize, to: &dyn Fn(usize) -> f64, lowest| -> f64 {
                (lowest..=from).map(|middle| step[from][middle] * to(middle)).sum()
            };
            if left % 2 == 1 {
                all_set = (0..size).map(|from| through(from, &|middle| all_set[middle], 0)).collect();
            }
            step = (0..size)
                .map(|from| (0..size).map(|to| through(from, &|middle| step[middle][to], to)).collect())
                .collect();
            (left, throws) = (left / 2, throws * 2.0);
        }
        Self { k, bits: m, different, all_set }
    }

    /// Advances the chain by one key.
    pub(crate) fn insert(&mut self) {
        for _ in 0..self.k {
            for free in (1..self.all_set.len()).rev() {
                let hit = free as f64 / self.bits;
                self.all_set[free] += hit * (self.all_set[free - 1] - self.all_set[free]);
            }
        }
    }

    /// Returns the chance that a fresh key finds its positions set.
    pub(crate) fn rate(&self) -> f64 {
        self.different.iter().zip(&self.all_set).map(|(chance, set)| chance * set).sum::<f64>().min(1.0)
    }
}

/// Returns the chances that k independent positions among `bits` are 0, 1, 2, ... different ones.
pub fn different_positions(k: u32, bits: u64) -> Vec<f64> {
    let mut chances = vec![1.0];
    for _ in 0..k {
        let mut next = vec![0.0; chances.len() + 1];
        for (different, chance) in chances.into_iter().enumerate() {
            let again = different as f64 / bits as f64;
            next[different] += chance * again;
            next[different + 1] += chance * (1.0 - again);
        }
        chances = next;
    }
    chances.truncate(usize::try_from(bits).unwrap_or(usize::MAX).saturating_add(1));
    chances
}
