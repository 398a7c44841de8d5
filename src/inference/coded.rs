//! What follows from [codes](Code), memoised: tables with a place for every code, of one age that is asked for.

use super::posterior_curve::KEYS;
use super::{Code, PosteriorCurve};

/// What follows from codes.
pub(crate) struct Coded {
    age: f64,
    shared: Option<(f64, Shared)>,
    posterior_curve: Option<CodedBlock>,
}

impl Coded {
    /// Nothing yet, of this age.
    pub fn new(age: f64) -> Self {
        Self { age, shared: None, posterior_curve: None }
    }

    /// Whether it is of this age.
    pub fn is_of(&self, age: f64) -> bool {
        self.age == age
    }

    /// Posteriors of a prior that all keys share.
    pub fn shared(&mut self, p: f64) -> &mut Shared {
        self.shared = self.shared.take().filter(|&(of, _)| of == p);
        &mut self.shared.get_or_insert_with(|| (p, Shared(vec![f64::NAN; Code::KINDS]))).1
    }

    /// What evidence tells by the keys' own priors.
    pub fn posterior_curve(&mut self) -> &mut CodedBlock {
        self.posterior_curve
            .get_or_insert_with(|| CodedBlock { numbers: vec![0; Code::KINDS], told: vec![PosteriorCurve::OTHER] })
    }
}

/// Posteriors; no numbers where they are not known yet.
pub(crate) struct Shared(Vec<f64>);

impl Shared {
    /// Writes the posteriors of some keys; `work_out` works them out.
    pub fn write(&mut self, codes: &[Code], posteriors: &mut [f64], mut work_out: impl FnMut(Code) -> f64) {
        for (posterior, code) in posteriors.iter_mut().zip(codes) {
            *posterior = self.0[code.number()];
        }
        if posteriors.iter().fold(false, |unknown, posterior| unknown | posterior.is_nan()) {
            for (posterior, &code) in posteriors.iter_mut().zip(codes).filter(|(posterior, _)| posterior.is_nan()) {
                let known = &mut self.0[code.number()];
                if known.is_nan() {
                    *known = work_out(code);
                }
                *posterior = *known;
            }
        }
    }
}

/// What codes tell, in the order in which they came: that of frequent ones lies together in the cache.
pub(crate) struct CodedBlock {
    /// The place of a code in `told`; 0 where it is not known yet.
    numbers: Vec<u32>,
    told: Vec<PosteriorCurve>,
}

impl CodedBlock {
    /// What the codes of up to [`KEYS`] keys tell, and the place of each key's; `work_out` works it out.
    pub fn of(
        &mut self,
        codes: &[Code],
        work_out: impl Fn(Code) -> PosteriorCurve,
    ) -> (&[PosteriorCurve], [u32; KEYS]) {
        let mut numbers = [0; KEYS];
        for (number, code) in numbers.iter_mut().zip(codes) {
            *number = self.numbers[code.number()];
        }
        if numbers[..codes.len()].contains(&0) {
            for (number, &code) in numbers.iter_mut().zip(codes).filter(|(number, _)| **number == 0) {
                let known = &mut self.numbers[code.number()];
                if *known == 0 {
                    *known = self.told.len() as u32;
                    self.told.push(work_out(code));
                }
                *number = *known;
            }
        }
        (&self.told, numbers)
    }
}
