//! The prior of a key's age: geometric on a clock of insertions (paper 5, equation 4), exponential on one of time.
//!
//! On either clock, a key of age a or more is older than a + x with probability exp(-hazard x), whatever a is. So one
//! formula serves both clocks. Cells that distinguish only spans of ages leave the prior within a span unchanged.

/// The hazard of a key: the decay rate of the chance that it has not been inserted, per insertion of any key or per
/// second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hazard {
    rate: f64,
    /// Whether ages are whole numbers.
    whole: bool,
}

impl Hazard {
    /// Returns the hazard of a key whose chance to be the next insertion is `p`.
    pub fn per_insertion(p: f64) -> Self {
        Self { rate: -(-p).ln_1p(), whole: true }
    }

    /// Returns the hazard of a key inserted `rate` times per second.
    pub fn per_second(rate: f64) -> Self {
        Self { rate, whole: false }
    }

    /// Returns whether the key is never inserted.
    pub fn is_zero(self) -> bool {
        self.rate == 0.0
    }

    /// Returns the chance that a span of `length` insertions, or seconds, contains the key.
    pub fn within(self, length: f64) -> f64 {
        if self.rate == 0.0 || length <= 0.0 { 0.0 } else { -(-self.rate * length).exp_m1() }
    }

    /// Returns the logarithm of the chance that a span of this length does not contain the key.
    pub(crate) fn log_survival(self, length: f64) -> f64 {
        // Bounded, so that a length of 0 gives 0, not infinity times 0: a key this frequent has come.
        -self.rate.min(1e3) * length
    }

    /// Returns the odds that a span of this length contains the key.
    pub fn odds(self, length: f64) -> f64 {
        if self.rate == 0.0 || length <= 0.0 { 0.0 } else { (self.rate * length).exp_m1() }
    }

    /// Returns the chance that the key comes in the first `part` of a span, given that the span contains it.
    pub fn share(self, part: f64, length: f64) -> f64 {
        if part <= 0.0 {
            return 0.0;
        }
        if length == f64::INFINITY {
            return self.within(part);
        }
        if part >= length {
            return 1.0;
        }
        let whole = self.within(length);
        // The key is so rare that its chances underflow: in the limit all ages are equally probable.
        if whole < f64::MIN_POSITIVE { part / length } else { (self.within(part) / whole).min(1.0) }
    }

    /// Returns the chance of the youngest age in a span, given that it contains the key: per second on a clock of
    /// time.
    pub fn peak(self, length: f64) -> f64 {
        let first = if self.whole { self.within(1.0) } else { self.rate };
        let whole = self.within(length);
        if whole < f64::MIN_POSITIVE { 1.0 / length } else { first / whole }
    }

    /// Returns the mean age within a span that contains the key, counted from the young end of the span.
    pub fn mean(self, length: f64) -> f64 {
        if self.whole {
            // A whole age is the exponential one rounded down; the fraction cut off is independent of the rest.
            (self.mean_time(length) - self.mean_time(1.0)).max(0.0)
        } else {
            self.mean_time(length)
        }
    }

    /// Returns the mean of an exponential distribution truncated at `length`.
    fn mean_time(self, length: f64) -> f64 {
        let x = self.rate * length;
        if x.is_nan() || x == f64::INFINITY {
            return 1.0 / self.rate;
        }
        // 1 / x - 1 / (e^x - 1), by its series where the difference would lose digits; the next term is below 1e-13.
        let share =
            if x < 0.1 { 0.5 - x / 12.0 + x.powi(3) / 720.0 - x.powi(5) / 30240.0 } else { 1.0 / x - 1.0 / x.exp_m1() };
        length * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_the_sum_of_its_terms() {
        for p in [1e-9, 1e-4, 0.01, 0.3, 0.9, 1.0f64] {
            let hazard = Hazard::per_insertion(p);
            for length in [1u32, 2, 7, 1000] {
                let terms = |i: u32| p * (1.0 - p).powi(i as i32);
                let whole: f64 = (0..length).map(terms).sum();
                let mean = (0..length).map(|i| f64::from(i) * terms(i)).sum::<f64>() / whole;
                let length = f64::from(length);
                assert!((hazard.within(length) / whole - 1.0).abs() < 1e-12, "{p} {length}");
                assert!((hazard.mean(length) - mean).abs() < 1e-9 * (1.0 + mean), "{p} {length}");
                assert!((hazard.peak(length) - p / whole).abs() < 1e-12 / length, "{p} {length}");
                assert!((hazard.share(1.0, length) - p / whole).abs() < 1e-12, "{p} {length}");
            }
        }
    }

    #[test]
    fn the_mean_is_smooth_where_the_series_takes_over() {
        let means = [0.1 - 1e-9, 0.1 + 1e-9].map(|rate| Hazard::per_second(rate).mean(1.0));
        // The slope is -1/12.
        assert!((means[0] - means[1] - 2e-9 / 12.0).abs() < 1e-12, "{means:?}");
    }

    #[test]
    fn the_extremes_are_limits() {
        let never = Hazard::per_insertion(0.0);
        assert_eq!([never.within(f64::INFINITY), never.odds(1e300), never.share(5.0, f64::INFINITY)], [0.0; 3]);
        assert_eq!(never.share(2.0, 8.0), 0.25);
        let always = Hazard::per_insertion(1.0);
        assert_eq!([always.within(1.0), always.share(1.0, f64::INFINITY), always.peak(9.0)], [1.0; 3]);
        assert_eq!([always.mean(9.0), always.mean(f64::INFINITY), always.within(0.0)], [0.0; 3]);
        let rare = Hazard::per_insertion(1e-300);
        assert!((rare.share(250.0, 1000.0) - 0.25).abs() < 1e-12);
        assert!((rare.mean(1001.0) - 500.0).abs() < 1e-9);
    }
}
