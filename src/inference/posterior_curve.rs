//! Posteriors of many keys, each with a prior of its own, by one formula for all of them.
//!
//! Most evidence leaves one span of time in question. Either the key was inserted in it, for which its cells are e
//! times as likely as by chance, or it was not, and then nothing is known of the time before some age. With x the odds
//! of the prior for the span, and y its chance for the window beyond that age, the key came within the window with
//! probability
//!
//! ```text
//! (e x + y) / (1 + e x)
//! ```
//!
//! or, where the window ends in the span and y is the chance for its part of it, y (e x + e) / (1 + e x). A younger
//! span may be in question too, of odds x'. It contains the key with the chance h = e' x' / (1 + e' x'), where e'
//! may depend on whether the older one does, and everything above counts 1 - h times. So a few numbers describe the
//! posterior for every prior. It takes two exponentials, or three, which are computed for several keys at once, right
//! to 1e-10, and the same on every processor.

use crate::instructions::{Instructions, Work};

/// Number of keys at a time.
pub const KEYS: usize = 64;
/// Number of keys with a younger span at a time: those of a vector.
const YOUNGER_KEYS: usize = 8;
/// Greatest prior per insertion whose logarithm has a shorter series.
const SMALL: f64 = 1.0 / 64.0;
/// Greatest exponent: e to this, times what a span explains, is finite or infinite, but never NaN.
const MOST: f64 = 700.0;

/// The posterior of a key as a function of its prior.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PosteriorCurve {
    /// How long the span could take keys.
    exposure: f64,
    /// By which factor an insertion in the span raises the chance of the evidence.
    explains: f64,
    /// The length of the window beyond, or of its part of the span if the window ends there.
    rest: f64,
    /// 1 if the window ends in the span, else 0; NaN if two exponentials do not express the posterior.
    ends: f64,
    /// The exposure of a younger span, and what that explains if the older one contains the key, and if not.
    younger: [f64; 3],
}

impl PosteriorCurve {
    /// The curve of other evidence, whose posteriors are NaN.
    pub const OTHER: Self = Self { exposure: 0.0, explains: 0.0, rest: 0.0, ends: f64::NAN, younger: [0.0; 3] };

    /// Returns the curve of a key that did not come in the ages below `from`; nothing is known of older ages.
    pub fn unknown(from: f64, age: f64) -> Self {
        Self { rest: (age - from).clamp(0.0, f64::MAX), ..Self::default() }
    }

    /// Returns the curve of a key that came in the ages `from..to`, which had `exposure` to take keys, or not below
    /// `unknown`. `None` if the window ends in a span that is longer or shorter than its exposure.
    pub fn of_span((from, to): (f64, f64), exposure: f64, explains: f64, unknown: f64, age: f64) -> Option<Self> {
        if age <= from {
            // The span does not count, except for what a younger span explains.
            Some(Self { exposure, explains, ends: 1.0, ..Self::unknown(from, age) })
        } else if to <= age {
            Some(Self { exposure, explains, ..Self::unknown(unknown, age) })
        } else {
            (exposure == to - from).then(|| Self { exposure, explains, ends: 1.0, ..Self::unknown(from, age) })
        }
    }

    /// Returns this curve with a younger span, within the window, that may contain the key too. `with_older` is what
    /// the span explains if the older one contains the key, `alone` what it explains if not.
    pub fn after(self, exposure: f64, with_older: f64, alone: f64) -> Self {
        Self { younger: [exposure, with_older, alone], ..self }
    }
}

/// A batch of up to [`KEYS`] keys whose posteriors are computed from curves: `curves` contains the curves, `numbers`
/// the curve of each key.
pub struct Posteriors<'a> {
    pub curves: &'a [PosteriorCurve],
    pub numbers: &'a [u32; KEYS],
    /// Chances per insertion, or rates per second; one per key.
    pub priors: &'a [f64],
    pub by_insertion: bool,
    pub posteriors: &'a mut [f64],
}

impl Posteriors<'_> {
    /// Writes the posteriors. Returns the keys whose posteriors are NaN.
    pub fn write(self, instructions: Instructions) -> impl Iterator<Item = usize> + use<> {
        let mut others = instructions.run(self);
        std::iter::from_fn(move || {
            let key = others.trailing_zeros() as usize;
            others &= others.wrapping_sub(1);
            (key < KEYS).then_some(key)
        })
    }
}

impl<Machine> Work<Machine> for Posteriors<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, _: Machine) -> u64 {
        let Self { curves, numbers, priors, by_insertion, posteriors } = self;
        let mut hazards = [0.0; KEYS];
        match priors.first_chunk() {
            Some(priors) => hazards = *priors,
            None => hazards[..priors.len()].copy_from_slice(priors),
        }
        if by_insertion {
            if hazards.iter().fold(false, |any, &p| any | (p > SMALL)) {
                hazards.iter_mut().for_each(|p| *p = if *p > SMALL { minus_ln_1m(*p) } else { minus_ln_1m_small(*p) });
            } else {
                hazards.iter_mut().for_each(|p| *p = minus_ln_1m_small(*p));
            }
        }
        // Number by number, for several keys at once.
        let [mut exposure, mut explains, mut rest, mut ends, mut younger] = [[0.0; KEYS]; 5];
        for (key, &number) in numbers.iter().enumerate().take(priors.len()) {
            let curve = &curves[number as usize];
            exposure[key] = curve.exposure;
            explains[key] = curve.explains;
            rest[key] = curve.rest;
            ends[key] = curve.ends;
            younger[key] = curve.younger[0];
        }
        let (mut all, mut held, mut not_held) = ([0.0; KEYS], [0.0; KEYS], [0.0; KEYS]);
        for key in 0..KEYS {
            let odds = odds(hazards[key], exposure[key], explains[key]);
            let rest = -exp_m1(-exponent(hazards[key], rest[key]));
            let (of_odds, of_rest) = (1.0 - ends[key] + ends[key] * rest, 1.0 - ends[key] + ends[key] * explains[key]);
            not_held[key] = 1.0 / (1.0 + odds);
            held[key] = odds * not_held[key];
            all[key] = (odds * of_odds + of_rest * rest) * not_held[key];
        }
        // A few keys in a hundred have a younger span, if any has: they are brought together.
        let mut left = which(&younger, |exposure| exposure > 0.0);
        while left != 0 {
            let (mut few, mut of) = ([0; YOUNGER_KEYS], [[0.0; YOUNGER_KEYS]; 7]);
            let mut count = 0;
            while left != 0 && count < YOUNGER_KEYS {
                let key = left.trailing_zeros() as usize;
                let [exposure, with_older, alone] = curves[numbers[key] as usize].younger;
                let numbers = [hazards[key], held[key], not_held[key], all[key], exposure, with_older, alone];
                of.iter_mut().zip(numbers).for_each(|(of, number)| of[count] = number);
                (few[count], left, count) = (key, left & (left - 1), count + 1);
            }
            let [hazards, held, not_held, within, exposures, with_older, alone] = of;
            let mut posteriors = [0.0; YOUNGER_KEYS];
            for i in 0..YOUNGER_KEYS {
                let explains = held[i] * with_older[i] + not_held[i] * alone[i];
                let odds = odds(hazards[i], exposures[i], explains);
                posteriors[i] = (odds + within[i]) / (1.0 + odds);
            }
            few.iter().zip(posteriors).take(count).for_each(|(&key, posterior)| all[key] = posterior);
        }
        // Not the least of both, which would never be NaN.
        all.iter_mut().for_each(|posterior| *posterior = if *posterior > 1.0 { 1.0 } else { *posterior });
        match posteriors.first_chunk_mut() {
            Some(posteriors) => *posteriors = all,
            None => posteriors.copy_from_slice(&all[..posteriors.len()]),
        }
        which(&all, f64::is_nan) & (u64::MAX >> (KEYS - posteriors.len().max(1)))
    }
}

/// Returns for which keys `holds` is true, a bit each.
#[inline(always)]
fn which(numbers: &[f64; KEYS], holds: impl Fn(f64) -> bool) -> u64 {
    (0..KEYS).fold(0, |all, key| all | u64::from(holds(numbers[key])) << key)
}

/// Returns the bounded product of a hazard and a length.
#[inline(always)]
fn exponent(hazard: f64, length: f64) -> f64 {
    (hazard * length).min(MOST)
}

/// Returns the odds that a span contains a key. They are finite, because infinite odds have no share.
#[inline(always)]
fn odds(hazard: f64, exposure: f64, explains: f64) -> f64 {
    (exp_m1(exponent(hazard, exposure)) * explains).min(1e300)
}

/// Returns the value of the polynomial with these coefficients, the constant first, by Estrin's scheme.
#[inline(always)]
pub(super) fn polynomial([a, b, c, d, e, f, g, h]: [f64; 8], x: f64) -> f64 {
    let two = x * x;
    (a + b * x) + (c + d * x) * two + ((e + f * x) + (g + h * x) * two) * (two * two)
}

/// Returns e^x - 1 for x from -[`MOST`] to it, without a branch.
#[inline(always)]
fn exp_m1(x: f64) -> f64 {
    /// A number that, when added to another, leaves the nearest whole number in the lowest bits.
    const WHOLE: f64 = 1.5 / f64::EPSILON;
    /// ln 2 in two parts, the first of few bits.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    let shifted = x * std::f64::consts::LOG2_E + WHOLE;
    let whole = shifted - WHOLE;
    let r = x - whole * LN_2[0] - whole * LN_2[1];
    // The series, to r^9: |r| is at most ln 2 / 2.
    const FACTORIALS: [f64; 8] =
        [0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40_320.0, 1.0 / 362_880.0];
    let part = r + r * r * polynomial(FACTORIALS, r);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    power * part + (power - 1.0)
}

/// Returns -ln(1 - p) for p from 0 to [`SMALL`], by its series: the next term is below 2^-49 of it.
#[inline(always)]
fn minus_ln_1m_small(p: f64) -> f64 {
    const RECIPROCALS: [f64; 8] = [1.0, 0.5, 1.0 / 3.0, 0.25, 0.2, 1.0 / 6.0, 1.0 / 7.0, 0.125];
    p * polynomial(RECIPROCALS, p)
}

/// Returns -ln(1 - p) for p from 0 to 1, without a branch; at 1 it is 709, for infinity.
#[inline(always)]
fn minus_ln_1m(p: f64) -> f64 {
    const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u64 = 1f64.to_bits();
    // 1 - p is m / 2^halvings, with m from the root of 1/2 to that of 2.
    let shifted = (1.0 - p).to_bits() + (ONE - LEAST);
    let halvings = 1023 - (shifted >> 52);
    let m = f64::from_bits((shifted & (u64::MAX >> 12)) + LEAST);
    // Exact where the difference to 1 would lose digits.
    let below = if halvings == 0 { p } else { 1.0 - m };
    let z = below / (2.0 - below);
    const ODD_RECIPROCALS: [f64; 8] = [1.0, 1.0 / 3.0, 0.2, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0];
    /// A number whose lowest bits are those of a whole one.
    const WHOLE: f64 = 1.0 / f64::EPSILON;
    let halvings = f64::from_bits(WHOLE.to_bits() | halvings) - WHOLE;
    halvings * std::f64::consts::LN_2 + 2.0 * z * polynomial(ODD_RECIPROCALS, z * z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::Hazard;

    /// Priors from never to always, of all magnitudes.
    fn priors() -> Vec<f64> {
        let some = (0..2000).map(|i| 10f64.powf(-f64::from(i) / 100.0));
        [0.0, 1.0, f64::MIN_POSITIVE, 1e-300, 0.999_999].into_iter().chain(some).collect()
    }

    fn evaluated(instructions: Instructions, curve: PosteriorCurve, priors: &[f64], by_insertion: bool) -> Vec<f64> {
        let mut posteriors = vec![f64::NAN; priors.len()];
        for (priors, posteriors) in priors.chunks(KEYS).zip(posteriors.chunks_mut(KEYS)) {
            let (curves, numbers) = (&[curve], &[0; KEYS]);
            Posteriors { curves, numbers, priors, by_insertion, posteriors }.write(instructions).for_each(drop);
        }
        posteriors
    }

    /// Two spans, 20 and 90 long from the ages 10 and 100 on, and what is unknown from 200 on, by their odds in
    /// sequence.
    fn by_odds(hazard: Hazard, age: f64, [alone, with_older, older]: [f64; 3]) -> f64 {
        let odds = |exposure: f64, explains: f64| (hazard.odds(exposure).min(1e300) * explains).min(1e300);
        let chances = |odds: f64| (odds / (1.0 + odds), 1.0 / (1.0 + odds));
        let (held, not_held) = chances(odds(90.0, older));
        let (younger, not_younger) = chances(odds(20.0, held * with_older + not_held * alone));
        let of_older = held * hazard.share(age - 100.0, 90.0) + not_held * hazard.within(age - 200.0);
        younger + not_younger * of_older
    }

    #[test]
    fn posteriors_are_those_of_the_odds_for_all_priors_on_all_processors() {
        let priors = priors();
        for by_insertion in [true, false] {
            let hazard = if by_insertion { Hazard::per_insertion } else { Hazard::per_second };
            for explains in [[0.0; 3], [1.0; 3], [3.0, 1.5, 40.0], [1e9, 1e4, 1e6], [1e150, 1e5, 1e150], [1e300; 3]] {
                for age in [60.0, 100.0, 150.0, 189.5, 190.0, 195.0, 260.0, 1e7] {
                    let [alone, with_older, older] = explains;
                    let curve = PosteriorCurve::of_span((100.0, 190.0), 90.0, older, 200.0, age).unwrap();
                    let curve = curve.after(20.0, with_older, alone);
                    let portable = evaluated(Instructions::available().next().unwrap(), curve, &priors, by_insertion);
                    for (&p, &got) in priors.iter().zip(&portable) {
                        let expected = by_odds(hazard(p), age, explains);
                        assert!((got - expected).abs() < 1e-10, "{got} for {expected}: {p} {age} {explains:?}");
                        // Small ones are right as well.
                        assert!((got / expected - 1.0).abs() < 1e-9 || expected < 1e-290, "{got} {expected} {p} {age}");
                    }
                    for instructions in Instructions::available() {
                        assert_eq!(evaluated(instructions, curve, &priors, by_insertion), portable, "{instructions:?}");
                    }
                }
            }
        }
    }

    /// Of kinds of evidence in any order, and any number of keys up to [`KEYS`].
    #[test]
    fn a_key_has_the_same_posterior_among_others_and_alone() {
        let curve = PosteriorCurve::of_span((100.0, 190.0), 90.0, 40.0, 200.0, 260.0).unwrap();
        let kinds = [curve, curve.after(20.0, 1.5, 3.0), PosteriorCurve::unknown(10.0, 260.0), PosteriorCurve::OTHER];
        let number = |key: usize| key * key % 7 % 4;
        let kind = |key: usize| kinds[number(key)];
        let priors: Vec<f64> = priors().into_iter().step_by(31).take(KEYS).collect();
        for instructions in Instructions::available() {
            let numbers = &std::array::from_fn(|key| number(key) as u32);
            for keys in [KEYS, 1, 2, 9, KEYS - 1] {
                let (mut posteriors, priors) = (vec![0.5; keys], &priors[..keys]);
                let of_all =
                    Posteriors { curves: &kinds, numbers, priors, by_insertion: true, posteriors: &mut posteriors };
                let others: Vec<usize> = of_all.write(instructions).collect();
                let expected: Vec<usize> = (0..keys).filter(|&key| kind(key).ends.is_nan()).collect();
                assert_eq!(others, expected, "{keys}");
                for (key, posterior) in posteriors.into_iter().enumerate() {
                    let alone = evaluated(instructions, kind(key), &priors[key..=key], true)[0];
                    assert_eq!(posterior.to_bits(), alone.to_bits(), "{instructions:?} {keys} {key}");
                }
            }
        }
    }

    #[test]
    fn ages_that_two_exponentials_do_not_express_have_no_curve() {
        assert_eq!(PosteriorCurve::of_span((10.0, 20.0), 9.0, 2.0, 20.0, 15.0), None);
        let other = evaluated(Instructions::best(), PosteriorCurve::OTHER, &priors(), true);
        assert!(other.into_iter().all(f64::is_nan));
        assert!(PosteriorCurve::of_span((10.0, 20.0), 9.0, 2.0, 20.0, 20.0).is_some());
        assert!(PosteriorCurve::of_span((10.0, 20.0), 10.0, 2.0, 20.0, 15.0).is_some());
        assert!(PosteriorCurve::of_span((10.0, 20.0), 9.0, 2.0, 20.0, 10.0).is_some());
    }
}
