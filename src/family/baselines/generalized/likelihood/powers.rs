//! Sums over ages of the likelihood of a generalized filter's bits, in closed form and without subtraction.
//!
//! Matching bits give a polynomial in q^i with positive coefficients, the others a power of 1 - q^i. So every sum is
//! over x^i (1 - q^i)^e, with x = (1 - p) q^j for the prior and the powers of the polynomial. For twice as many ages,
//! (1 - q^(n + i)) = (1 - q^n) + q^n (1 - q^i) gives
//!
//! ```text
//! F_e(2 n) = F_e(n) + x^n * sum over l of  (e over l) (1 - q^n)^(e - l) q^(n l) F_l(n)
//! ```
//!
//! This is a mean over binomial weights, in which nothing cancels: the recursion of erratum INF-9 for finite sums. The
//! same weights shift a sum over any 2^s ages to its beginning, and any range of ages consists of such sums.

use super::Ones;
use crate::inference::Hazard;

/// Binomial coefficients and ln q, from which the sums are computed.
pub(super) struct Powers {
    binomials: Vec<Vec<f64>>,
    log_untouched: f64,
}

impl Powers {
    /// Creates the coefficients for keys of at most `bits` bits.
    pub(super) fn new(bits: u32, log_untouched: f64) -> Self {
        let mut binomials = vec![vec![1.0]];
        for row in 0..bits as usize {
            let above = &binomials[row];
            let inner = above.windows(2).map(|pair| pair[0] + pair[1]);
            binomials.push([1.0].into_iter().chain(inner).chain([1.0]).collect());
        }
        Self { binomials, log_untouched }
    }

    /// Returns the sums for a key whose bits match, or do not, in these `counts`, for ages below `end`.
    pub(super) fn sums(&self, counts: [u32; 4], ones: Ones, hazard: Hazard, end: f64) -> Sums<'_> {
        let gone = ones.gone();
        // Bits that do not match contribute 1 - q^i, up to a factor.
        let unmatched = ones.chances(0.0, 1.0);
        let mut log_scale: f64 =
            [2, 3].map(|kind| f64::from(counts[kind]) * (unmatched[kind] / gone[kind]).ln()).iter().sum();
        let mut polynomial = vec![hazard.within(1.0)];
        for (kind, own) in [(0, ones.touched), (1, 1.0 - ones.touched)] {
            for _ in 0..counts[kind] {
                polynomial = times(&polynomial, 1.0 - own, own);
                log_scale -= gone[kind].ln();
            }
        }
        polynomial.iter_mut().for_each(|coefficient| *coefficient *= log_scale.exp());
        let log_x = |power: usize| hazard.log_survival(1.0) + power as f64 * self.log_untouched;
        let misses = (counts[2] + counts[3]) as usize;
        let doublings = end.max(1.0).log2() as usize;
        let of_power = |(power, coefficient)| PowerSums {
            coefficient,
            log_x: log_x(power),
            doubled: self.doubled(log_x(power), misses, doublings),
        };
        Sums { powers: self, misses, of_power: polynomial.into_iter().enumerate().map(of_power).collect() }
    }

    /// Returns for each s the sums F_0 to F_misses over the ages below 2^s.
    fn doubled(&self, log_x: f64, misses: usize, doublings: usize) -> Vec<Vec<f64>> {
        // Start with the age 0.
        let mut first = vec![0.0; misses + 1];
        first[0] = 1.0;
        let mut all = vec![first];
        for s in 0..doublings {
            let (ages, sums) = ((s as f64).exp2(), &all[s]);
            let shift = Shift::new(ages * self.log_untouched, misses);
            let moved = (ages * log_x).exp();
            let next = (0..=misses).map(|e| sums[e] + moved * shift.mean(&self.binomials[e], sums)).collect();
            all.push(next);
        }
        all
    }
}

/// Returns a polynomial times a + b y.
fn times(polynomial: &[f64], a: f64, b: f64) -> Vec<f64> {
    let coefficient = |power: usize| polynomial.get(power).copied().unwrap_or(0.0);
    let below = |power: usize| power.checked_sub(1).map_or(0.0, coefficient);
    (0..=polynomial.len()).map(|power| a * coefficient(power) + b * below(power)).collect()
}

/// The powers of q^n and 1 - q^n, which shift sums by n ages.
struct Shift {
    kept: Vec<f64>,
    lost: Vec<f64>,
}

impl Shift {
    fn new(log_kept: f64, most: usize) -> Self {
        let powers = |base: f64| std::iter::successors(Some(1.0), move |power| Some(power * base)).take(most + 1);
        Self { kept: powers(log_kept.exp()).collect(), lost: powers(-log_kept.exp_m1()).collect() }
    }

    /// Returns the mean of sums over the binomial weights of one row of coefficients.
    fn mean(&self, binomials: &[f64], sums: &[f64]) -> f64 {
        let e = binomials.len() - 1;
        (0..=e).map(|l| binomials[l] * self.lost[e - l] * self.kept[l] * sums[l]).sum()
    }
}

/// The sums of one power of the polynomial.
struct PowerSums {
    coefficient: f64,
    log_x: f64,
    doubled: Vec<Vec<f64>>,
}

/// The sums over ages of the likelihood of one key, of whose bits `misses` do not match.
pub(super) struct Sums<'a> {
    powers: &'a Powers,
    misses: usize,
    of_power: Vec<PowerSums>,
}

impl Sums<'_> {
    /// Returns the sum of the likelihood over whole ages from `from` to below `to`, relative to that of a key that is
    /// gone.
    pub(super) fn between(&self, from: f64, to: f64) -> f64 {
        let (mut from, mut sum) = (from, 0.0);
        while from < to {
            let doublings = (to - from).log2().floor();
            sum += self.of_doublings(from, doublings as usize);
            from += doublings.exp2();
        }
        sum
    }

    /// Returns the sum of the likelihood over the 2^doublings ages from `from` on.
    fn of_doublings(&self, from: f64, doublings: usize) -> f64 {
        let shift = Shift::new(from * self.powers.log_untouched, self.misses);
        let binomials = &self.powers.binomials[self.misses];
        let of_power =
            |of: &PowerSums| of.coefficient * (from * of.log_x).exp() * shift.mean(binomials, &of.doubled[doublings]);
        self.of_power.iter().map(of_power).sum()
    }
}
