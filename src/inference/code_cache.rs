//! Tables of the [cache](super::cache) with a place for every [code](Code).

use super::posterior_curve::KEYS;
use super::{Code, PosteriorCurve};

/// The posterior of each code for one age and prior; NaN if it is not known yet.
pub(crate) struct CodePosteriors(Vec<f64>);

impl Default for CodePosteriors {
    fn default() -> Self {
        Self(vec![f64::NAN; Code::KINDS])
    }
}

impl CodePosteriors {
    /// Writes the posteriors of some keys; `compute` computes those that are not known yet.
    pub fn write(&mut self, codes: &[Code], posteriors: &mut [f64], mut compute: impl FnMut(Code) -> f64) {
        for (posterior, code) in posteriors.iter_mut().zip(codes) {
            *posterior = self.0[code.number()];
        }
        if posteriors.iter().fold(false, |unknown, posterior| unknown | posterior.is_nan()) {
            for (posterior, &code) in posteriors.iter_mut().zip(codes).filter(|(posterior, _)| posterior.is_nan()) {
                let known = &mut self.0[code.number()];
                if known.is_nan() {
                    *known = compute(code);
                }
                *posterior = *known;
            }
        }
    }
}

/// The posterior curves of codes for one age, in the order in which the codes came. Curves of frequent codes therefore
/// lie together in the processor's cache.
pub(crate) struct CodeCurves {
    /// The position of each code in `curves`; 0 if it is not known yet.
    numbers: Vec<u32>,
    curves: Vec<PosteriorCurve>,
}

impl Default for CodeCurves {
    fn default() -> Self {
        Self { numbers: vec![0; Code::KINDS], curves: vec![PosteriorCurve::OTHER] }
    }
}

impl CodeCurves {
    /// Returns the curves, and the position of each key's curve, for up to [`KEYS`] keys; `compute` computes curves
    /// that are not known yet.
    pub fn of(&mut self, codes: &[Code], compute: impl Fn(Code) -> PosteriorCurve) -> (&[PosteriorCurve], [u32; KEYS]) {
        let mut numbers = [0; KEYS];
        for (number, code) in numbers.iter_mut().zip(codes) {
            *number = self.numbers[code.number()];
        }
        if numbers[..codes.len()].contains(&0) {
            for (number, &code) in numbers.iter_mut().zip(codes).filter(|(number, _)| **number == 0) {
                let known = &mut self.numbers[code.number()];
                if *known == 0 {
                    *known = self.curves.len() as u32;
                    self.curves.push(compute(code));
                }
                *number = *known;
            }
        }
        (&self.curves, numbers)
    }
}
