//! The generalized Bloom filter (Laufer, Velloso, Duarte, *A Generalized Bloom Filter to Secure Distributed Network
//! Applications*, 2011), on streams as in paper 5, section 5. **It promises no window**: every bit forgets gradually.
//!
//! k1 hashes of a key set bits to one, k0 reset bits to zero, and where both hit, zero wins. A key matches when its
//! zeros are zero and its ones are one: it was inserted lately, as long as no later key changed one of its bits. How
//! lately is a matter of chance, described by [`Memory`], and of the query, which may have any window: the matching
//! bits are [evidence](super::likelihood::Matches) for it. The window of the filter is what its shape was
//! chosen for, and nothing else.
//!
//! Where this differs from the papers: no double hashing, whose floor of errors lies too high
//! ([`cells`](crate::family::arrays)).
//!
//! An insertion leaves a cell untouched with chance q = (1 - 1/m)^(k0 + k1) (paper 5, equation 30). After i insertions
//! of other keys a cell still has the value its key wrote with chance q^i, and else that of any cell: a one with chance
//! p = q1 / (q0 + q1), which is also the fill that the filter tends to (equation 31). So a zero of the key matches with
//! chance 1 - p + p q^i and a one with p + (1 - p) q^i, and the product over its cells (equation 32) is a polynomial in
//! q^i with positive coefficients: [`Memory`]. Its constant is the chance that a fresh key matches.
//!
//! Cells are a set: a key has as many as its hashes hit different ones, less than k0 + k1 at times (erratum INF-7). The
//! coefficients are means over that number. One approximation remains, the product itself, since the cells of a key
//! share the insertions between: it is off by less than (k0 + k1)^2 / m of the probability, as the tests show by the
//! exact chain of all cells. Ages count insertions of different other keys: on a stream with repeats i insertions are
//! D(i) < i of them, and less is forgotten (erratum INF-10).

use crate::Error;
use crate::clock::Window;
use crate::family::baselines::stable::shape::FORGOTTEN;
use crate::family::budget::Budget;
use crate::family::search::{self, Candidate};
use crate::family::{CacheLines, Parameters};

/// Greatest number of hashes of each kind: with 64 and 64 a fresh key matches with chance 2^-128.
const MAX_HASHES: u32 = 64;

/// Greatest number of hashes of each kind that [`choose`] considers: 32 and 32 reach the chance of equal 64-bit hashes.
const MAX_CHOSEN: u32 = 32;

/// Greatest number of bits of a filter: far above any machine, far enough below 2^64 that no size can overflow.
const MAX_BITS: u64 = 1 << 60;

/// The shape of a generalized filter: everything that determines its size and its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneralizedShape {
    /// m: number of cells, of one bit each.
    pub bits: u64,
    /// Number of hashes that set a cell.
    pub k1: u32,
    /// Number of hashes that reset a cell, which wins where both hit.
    pub k0: u32,
}

impl GeneralizedShape {
    /// Creates a shape whose parameters are in range: 2 to 2^60 bits, and 1 to 64 hashes of each kind.
    pub fn new(bits: u64, k1: u32, k0: u32) -> Result<Self, Error> {
        if !(2..=MAX_BITS).contains(&bits) {
            return Err(Error::value(format!("bits must lie in 2 .. 2**60, got {bits}")));
        }
        for (name, hashes) in [("k1", k1), ("k0", k0)] {
            if !(1..=MAX_HASHES).contains(&hashes) {
                return Err(Error::value(format!("{name} must lie in 1 .. {MAX_HASHES}, got {hashes}")));
            }
        }
        Ok(Self { bits, k1, k0 })
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(parameters.read_u64("bits")?, parameters.read_u32("k1")?, parameters.read_u32("k0")?)
    }

    /// Returns ln (1 - 1/m)^hashes: the logarithm of the chance that all of these hashes miss a cell.
    pub fn log_missed(&self, hashes: u32) -> f64 {
        f64::from(hashes) * (-1.0 / self.bits as f64).ln_1p()
    }

    /// Returns the expected share of ones that the filter tends to, q1 / (q0 + q1), from none (paper 5, equations 28 to
    /// 31).
    ///
    /// The share is a little less than k1 / (k0 + k1). Up to that share, more ones make a fresh key match more often:
    /// so the rate is worst in the end, not on the way.
    pub fn steady_fill(&self) -> f64 {
        let reset = -self.log_missed(self.k0).exp_m1();
        let set = -self.log_missed(self.k1).exp_m1() * self.log_missed(self.k0).exp();
        set / (reset + set)
    }

    /// Returns the memory of the filter once its fill is steady.
    pub fn memory(&self) -> Memory {
        let coefficients = self.match_coefficients(self.steady_fill());
        Memory { coefficients, log_untouched: self.log_missed(self.k0 + self.k1) }
    }

    /// Returns the chance that a fresh key matches if a share `ones` of the cells is set.
    pub fn match_rate(&self, ones: f64) -> f64 {
        self.match_coefficients(ones)[0]
    }

    /// Returns the chance that a fresh key is reported, in expectation, once the fill is steady; less before.
    pub fn false_positive_rate(&self) -> f64 {
        self.match_rate(self.steady_fill())
    }

    /// Returns the coefficients of the chance that a key matches, as a polynomial in the chance that a cell of it is
    /// untouched since, if any other cell is set with chance `ones`.
    ///
    /// The hashes of a key are taken in sequence, those that reset first, with the number of different cells so far: a
    /// new cell matches when it is untouched, or else by chance; one that was hit before adds nothing.
    fn match_coefficients(&self, ones: f64) -> Vec<f64> {
        let hashes = (self.k0 + self.k1) as usize;
        let mut by_cells = vec![vec![0.0; hashes + 1]; hashes + 1]; // [different cells][power of the untouched]
        by_cells[0][0] = 1.0;
        for hash in 0..hashes {
            let chance = if hash < self.k0 as usize { 1.0 - ones } else { ones };
            for cells in (0..=hash).rev() {
                let again = (cells as f64 / self.bits as f64).min(1.0);
                for power in 0..=cells {
                    let before = by_cells[cells][power];
                    by_cells[cells][power] = before * again;
                    by_cells[cells + 1][power] += before * (1.0 - again) * chance;
                    by_cells[cells + 1][power + 1] += before * (1.0 - again) * (1.0 - chance);
                }
            }
        }
        (0..=hashes).map(|power| by_cells.iter().map(|of_cells| of_cells[power]).sum()).collect()
    }
}

impl crate::family::Shape for GeneralizedShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("bits", self.bits), ("k1", self.k1.into()), ("k0", self.k0.into())]
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        insertions(window).map(|_| ())
    }

    /// Returns a number that has no effect, because bits fade with the insertions.
    fn retained(&self) -> u32 {
        1
    }

    fn bytes(&self, _: Window) -> u64 {
        8 * self.bits.div_ceil(64)
    }

    fn fpr(&self, _: Window) -> f64 {
        self.false_positive_rate()
    }

    /// Returns no bound: a key may match long after, ever less likely.
    fn slack(&self, _: Window) -> u64 {
        u64::MAX
    }

    fn npws(&self, window: Window) -> f64 {
        let window = window.capacity() as f64;
        self.memory().remembered_from(window) / window
    }

    /// Returns one line for each hash: all are prefetched, whatever the first ones turn out to be.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.k0 + self.k1)
    }

    /// Returns the rates of the key just inserted and of the oldest of the window, a generation of the clock before it;
    /// [`Memory`] has those of all ages between and beyond.
    fn false_negative_rates(&self, window: Window) -> Vec<f64> {
        vec![0.0, self.memory().missed((window.capacity() - 1) as f64)]
    }
}

/// The memory of a filter: the chance that a key matches, by its age, the number of other keys inserted since.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The coefficients of the powers of q^age, all positive; they add up to 1, since a key just inserted matches.
    pub coefficients: Vec<f64>,
    /// ln q, where q is the chance that an insertion leaves a cell untouched.
    pub log_untouched: f64,
}

impl Memory {
    /// Returns the chance that a key of this age matches.
    pub fn matches(&self, age: f64) -> f64 {
        self.sum(|power| (power * age * self.log_untouched).exp()).min(1.0)
    }

    /// Returns the chance that a key of this age does not match: a false negative, if it is looked up within a window.
    pub fn missed(&self, age: f64) -> f64 {
        self.sum(|power| -(power * age * self.log_untouched).exp_m1()).min(1.0)
    }

    /// Returns the expected number of keys of age `from` and more that match because they were inserted: beyond the
    /// rate of fresh keys.
    pub fn remembered_from(&self, from: f64) -> f64 {
        self.sum(|power| {
            let log = power * self.log_untouched;
            if power == 0.0 { 0.0 } else { (from * log).exp() / -log.exp_m1() }
        })
    }

    fn sum(&self, term: impl Fn(f64) -> f64) -> f64 {
        self.coefficients.iter().zip(0..).map(|(share, power)| share * term(f64::from(power))).sum()
    }
}

/// Returns the shape for a window and a budget, among all k1 and k0 up to 32.
///
/// - [`Budget::Rate`]: the fewest bits in which some shape keeps the rate and forgets at most [`FORGOTTEN`] of the keys
///   as old as the window; of equally small ones the one with the least k1, then k0.
/// - [`Budget::Bytes`]: of the shapes in all the bits that forget at most as many, the one of the least rate; where
///   none does, the one whose errors of both kinds add up to least.
///
/// Both kinds of error fall with the number of bits, and trade through the number of hashes.
pub fn choose(window: Window, budget: Budget) -> Result<GeneralizedShape, Error> {
    budget.check()?;
    let window = insertions(window)?;
    let kinds = (1..=MAX_CHOSEN).flat_map(|k1| (1..=MAX_CHOSEN).map(move |k0| HashCounts { k1, k0, window }));
    let kinds: Vec<HashCounts> = kinds.collect();
    match budget {
        Budget::Rate(fpr) => search::for_rate(&kinds, fpr, MAX_BITS, |least| least)
            .ok_or_else(|| Error::value(format!("fpr={fpr} takes more than {MAX_CHOSEN} hashes or 2**60 bits"))),
        Budget::Bytes(bytes) => {
            let bits = (bytes / 8).saturating_mul(64).min(MAX_BITS);
            let keeping = search::for_memory(&kinds, bits, |least| least);
            keeping
                .or_else(|| least_errors(&kinds, bits, window))
                .ok_or_else(|| Error::value(format!("nbytes={bytes} is too little to remember this window by")))
        }
    }
}

/// Returns the shape whose errors of both kinds add up to least, when the bits are too few to remember the window:
/// errors of fresh keys, and of keys as old as the window. It must separate a tenth of the latter from the former. (At
/// 5 bits per key, as in paper 5, the errors add up to .55.)
fn least_errors(kinds: &[HashCounts], bits: u64, window: u64) -> Option<GeneralizedShape> {
    let errors = |shape: &GeneralizedShape| {
        let memory = shape.memory();
        memory.coefficients[0] + memory.missed((window - 1) as f64)
    };
    let shapes = kinds.iter().filter_map(|kind| GeneralizedShape::new(bits, kind.k1, kind.k0).ok());
    let least = shapes.map(|shape| (errors(&shape), shape)).min_by(|(a, _), (b, _)| a.total_cmp(b));
    least.filter(|&(errors, _)| errors <= 1.0 - FORGOTTEN).map(|(_, shape)| shape)
}

/// A shape without its bits, and the window whose keys it is to remember.
struct HashCounts {
    k1: u32,
    k0: u32,
    window: u64,
}

impl Candidate for HashCounts {
    type Shape = GeneralizedShape;

    fn rank(&self) -> u32 {
        MAX_HASHES * self.k1 + self.k0
    }

    fn shape(&self, bits: u64) -> GeneralizedShape {
        GeneralizedShape { bits, k1: self.k1, k0: self.k0 }
    }

    fn memory_of_unit(&self) -> u64 {
        1
    }

    fn rate_at_most(&self, shape: &GeneralizedShape, limit: f64) -> Option<f64> {
        let ones = shape.steady_fill();
        // With fewer different cells more fresh keys match. So this rejects most shapes, without the sums of the rest.
        let least = (1.0 - ones).powi(self.k0 as i32) * ones.powi(self.k1 as i32);
        if shape.bits < 2 || least > limit * (1.0 + 1e-9) {
            return None;
        }
        let memory = shape.memory();
        let keeps = memory.missed((self.window - 1) as f64) <= FORGOTTEN;
        keeps.then_some(memory.coefficients[0]).filter(|&rate| rate <= limit)
    }
}

/// Returns the insertions of a window, because the filter forgets by insertions alone.
pub fn insertions(window: Window) -> Result<u64, Error> {
    match window.check()? {
        Window::Count { insertions } => Ok(insertions),
        Window::Time { .. } => Err(Error::value(
            "window must be a number of insertions for this filter; for a span of time take AgePartitionedBloomFilter",
        )),
    }
}
