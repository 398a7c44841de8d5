//! Numbers for the keys of a batch: priors and penalties.

use std::ops::Range;

use crate::Error;
use crate::clock::Window;
use crate::instructions::{Instructions, Work};

/// One number for all keys of a batch, or one for each.
#[derive(Debug, Clone, Copy)]
pub enum PerKey<'a> {
    /// One number for all keys.
    All(f64),
    /// One number per key.
    Each(&'a [f64]),
}

impl PerKey<'_> {
    /// Rejects a prior that is no probability or, on a clock of time, no rate.
    pub fn check_prior(self, window: Window) -> Result<(), Error> {
        match window {
            Window::Count { .. } => self.check("prior", 1.0, "a probability, in 0 ..= 1"),
            Window::Time { .. } => self.check("prior", f64::MAX, "a rate per second, finite and not negative"),
        }
    }

    /// Rejects a penalty, the parameter `name`, that is negative or not finite.
    pub fn check_penalty(self, name: &str) -> Result<(), Error> {
        self.check(name, f64::MAX, "a penalty, finite and not negative")
    }

    fn check(self, name: &str, most: f64, what: &str) -> Result<(), Error> {
        let (all, single) = match &self {
            Self::All(number) => (std::slice::from_ref(number), true),
            Self::Each(all) => (*all, false),
        };
        if Instructions::best().run(OutOfRange { all, most }) == 0 {
            return Ok(());
        }
        let wrong = |number: &f64| !(0.0..=most).contains(number);
        let place = all.iter().position(wrong).expect("one of them is wrong");
        let index = if single { String::new() } else { format!("[{place}]") };
        Err(Error::value(format!("{name}{index} must be {what}, got {}", all[place])))
    }

    /// Rejects values of the parameter `name` unless there is one per key.
    pub fn check_len(self, name: &str, keys: usize) -> Result<(), Error> {
        match self {
            Self::Each(all) if all.len() != keys => {
                let given = all.len();
                Err(Error::value(format!("{name} has {given} values for {keys} keys: one each, or a single one")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of one key.
    pub fn of(self, key: usize) -> f64 {
        match self {
            Self::All(number) => number,
            Self::Each(all) => all[key],
        }
    }

    /// Returns the numbers of a range of keys.
    pub fn slice(self, keys: Range<usize>) -> Self {
        match self {
            Self::All(_) => self,
            Self::Each(all) => Self::Each(&all[keys]),
        }
    }
}

/// A count of the numbers that are not from 0 to `most`: compilers vectorise it.
struct OutOfRange<'a> {
    all: &'a [f64],
    most: f64,
}

impl<Machine> Work<Machine> for OutOfRange<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, _: Machine) -> u64 {
        let right = |number: &f64| u64::from((0.0..=self.most).contains(number));
        self.all.len() as u64 - self.all.iter().map(right).sum::<u64>()
    }
}
