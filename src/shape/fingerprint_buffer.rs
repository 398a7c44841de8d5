//! The shape of a fingerprint buffer (paper 5, section 6.2): what it costs and what it promises.

use super::budget::{Budget, too_few_bytes};
use super::fill;
use super::runs::Accesses;
use super::swamp::fingerprints;
use crate::Error;
use crate::clock::Window;

/// Fingerprints that a query looks at together.
pub const GROUP: u64 = 64;

/// Everything but the window that determines the size and the error of a fingerprint buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// bph: bits of a fingerprint, 1 to 64.
    pub fingerprint_bits: u32,
}

impl Shape {
    /// A shape whose parameter is in range.
    pub fn new(fingerprint_bits: u32) -> Result<Self, Error> {
        if !(1..=64).contains(&fingerprint_bits) {
            return Err(Error::value(format!("fingerprint_bits must lie in 1 .. 64, got {fingerprint_bits}")));
        }
        Ok(Self { fingerprint_bits })
    }

    /// The insertions of a window that can be kept.
    pub fn check_window(&self, window: Window) -> Result<u64, Error> {
        window.by_insertion()
    }

    /// R: different fingerprints, 2^bph - 1, since 0 is an empty place.
    pub fn fingerprints(&self) -> u64 {
        u64::MAX >> (64 - self.fingerprint_bits)
    }

    /// Bytes of the buffer, in whole groups of [`GROUP`] fingerprints.
    pub fn nbytes(&self, window: u64) -> u64 {
        8 * u64::from(self.fingerprint_bits) * window.div_ceil(GROUP)
    }

    /// Bits of memory per key of a window of `window` insertions.
    pub fn bits_per_key(&self, window: u64) -> f64 {
        8.0 * self.nbytes(window) as f64 / window as f64
    }

    /// Probability that a key never inserted is reported once the window is full of different keys: that one of them
    /// has its fingerprint, 1 - (1 - 1/R)^W; the hash collisions of paper 5, section 6.2. The same at every phase.
    pub fn false_positive_rate(&self, window: u64) -> f64 {
        fill::slice(self.fingerprints(), window)
    }

    /// Mean number of groups that a query reads until it finds the fingerprint, or all n of them.
    ///
    /// A fresh key matches each group with the same chance h, so its search reads the first g + 1 groups with chance
    /// (1 - h)^g. A key of the window lies in any of them alike, and its search ends there at the latest.
    pub fn expected_accesses(&self, window: u64) -> Accesses {
        let groups = window.div_ceil(GROUP) as f64;
        let hit = fill::slice(self.fingerprints(), GROUP);
        if groups * hit < 1e-6 {
            // The closed forms cancel; this is their limit, off by at most a share of groups * hit.
            let half = (groups + 1.0) / 2.0;
            return Accesses { in_window: half, false_positive: half, absent: groups };
        }
        let found = -(groups * (-hit).ln_1p()).exp_m1();
        // The sum of (1 - h)^g over g = 0 .. n - 1, and the mean over j = 1 .. n of the same sum up to j.
        let read = found / hit;
        Accesses {
            // Rounded, either may come out a trifle below the one group that is read for certain.
            in_window: ((1.0 - (1.0 - hit) * read / groups) / hit).max(1.0),
            false_positive: ((read - groups * (1.0 - found)) / found).max(1.0),
            absent: groups,
        }
    }
}

/// The shape for a window and a budget: the fewest bits with the rate, or the most in the bytes.
pub fn choose(window: Window, budget: Budget) -> Result<Shape, Error> {
    let insertions = window.by_insertion()?;
    match budget {
        Budget::Rate(fpr) => {
            // R = 2^bits - 1 is at least as many as needed.
            Shape::new(u64::BITS - fingerprints(insertions, fpr)?.leading_zeros())
        }
        Budget::Bytes(bytes) => {
            let bit = 8 * insertions.div_ceil(GROUP);
            let bits = (bytes / bit).min(64) as u32;
            Shape::new(bits).map_err(|_| too_few_bytes(bit, " for this window", bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(insertions: u64) -> Window {
        Window::Count { insertions }
    }

    #[test]
    fn bits_are_the_fewest_that_hold_the_rate_and_the_most_that_fit() {
        for window in [1, 64, 65, 1000, 1 << 32] {
            for fpr in [0.9, 0.5, 0.01, 1e-6] {
                let shape = choose(count(window), Budget::Rate(fpr)).unwrap();
                assert!(shape.false_positive_rate(window) <= fpr);
                let fewer = Shape::new(shape.fingerprint_bits - 1);
                assert!(fewer.is_err() || fewer.unwrap().false_positive_rate(window) > fpr);
                let bytes = shape.nbytes(window);
                assert_eq!(choose(count(window), Budget::Bytes(bytes)), Ok(shape));
                assert!(choose(count(window), Budget::Bytes(bytes - 1)) != Ok(shape));
            }
        }
        assert_eq!(choose(count(7), Budget::Bytes(u64::MAX)), Shape::new(64));
    }

    #[test]
    fn accesses_equal_the_sums_over_the_groups() {
        for (bits, window) in [(1, 64), (3, 64 * 4), (9, 64 * 7), (20, 64), (12, 64 * 50), (40, 64 * 9)] {
            let shape = Shape::new(bits).unwrap();
            let miss = (1.0 - 1.0 / shape.fingerprints() as f64).powi(GROUP as i32);
            let groups = window / GROUP;
            let reads = |own: u64| (0..own).map(|g| miss.powi(g as i32)).sum::<f64>();
            let in_window = (1..=groups).map(reads).sum::<f64>() / groups as f64;
            let found = |g: u64| miss.powi(g as i32) * (1.0 - miss);
            let false_positive =
                (0..groups).map(|g| (g + 1) as f64 * found(g)).sum::<f64>() / (0..groups).map(found).sum::<f64>();
            let accesses = shape.expected_accesses(window);
            assert!((accesses.in_window / in_window - 1.0).abs() < 1e-6, "{accesses:?} {in_window}");
            assert!((accesses.false_positive / false_positive - 1.0).abs() < 1e-6, "{accesses:?} {false_positive}");
            assert_eq!(accesses.absent, groups as f64);
        }
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let message = |result: Result<Shape, Error>| result.unwrap_err().to_string();
        for bits in [0, 65, u32::MAX] {
            assert!(message(Shape::new(bits)).starts_with("fingerprint_bits must lie in 1 .. 64"));
        }
        let timed = Window::Time { span: 1, lateness: 0, capacity: 1 };
        assert!(message(choose(timed, Budget::Rate(0.1))).contains("span of time"));
        assert!(message(choose(count(65), Budget::Bytes(15))).starts_with("nbytes must be at least 16"));
        for fpr in [0.0, 1.0, f64::NAN, 1e-30] {
            assert!(message(choose(count(1000), Budget::Rate(fpr))).starts_with("fpr"));
        }
    }
}
