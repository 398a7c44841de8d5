//! Reads priors, penalties and edges: one number, or an array.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::import_numpy;
use crate::errors::raise;
use lately::clock::Window;
use lately::inference::{Hazard, PerKey};
use lately::memory::fallible;

/// An argument that is one number for all keys, or one for each, with its name for messages.
pub struct NumbersArgument<'py> {
    pub name: &'static str,
    pub numbers: Numbers<'py>,
}

/// One number for all keys, or one for each.
pub enum Numbers<'py> {
    All(f64),
    Each(PyReadonlyArray1<'py, f64>),
}

impl<'py> NumbersArgument<'py> {
    /// Reads a number, or an array with a number for each key.
    pub fn read(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = value.extract() {
            return Ok(Self { name, numbers: Numbers::All(number) });
        }
        let array = value.py().import("numpy")?.call_method1("ascontiguousarray", (value, "float64"));
        let numbers = array.ok().and_then(|array| array.extract().ok()).filter(|_| value.len().is_ok());
        let error = || {
            PyTypeError::new_err(format!("{name} must be a number or an array with one for each key, got {value:?}"))
        };
        Ok(Self { name, numbers: Numbers::Each(numbers.ok_or_else(error)?) })
    }

    /// Reads a prior: numbers, or an object with a method that returns them for the keys.
    pub fn of_keys(prior: &Bound<'py, PyAny>, keys: &Bound<'py, PyAny>, window: Window) -> PyResult<Self> {
        let method = match window {
            Window::Count { .. } => "probability",
            Window::Time { .. } => "rate",
        };
        let numbers = match prior.hasattr(method)? {
            true => Self::read("prior", &prior.call_method1(method, (keys,))?)?,
            false => Self::read("prior", prior)?,
        };
        numbers.borrow()?.check_prior(window).map_err(raise)?;
        Ok(numbers)
    }

    /// Reads a penalty.
    pub fn penalty(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let numbers = Self::read(name, value)?;
        numbers.borrow()?.check_penalty(name).map_err(raise)?;
        Ok(numbers)
    }

    /// Returns the numbers for the core.
    pub fn borrow(&self) -> PyResult<PerKey<'_>> {
        Ok(match &self.numbers {
            Numbers::All(number) => PerKey::All(*number),
            Numbers::Each(array) => PerKey::Each(array.as_slice()?),
        })
    }

    /// Checks that an array has one number for each key.
    pub fn check_len(&self, keys: usize) -> PyResult<()> {
        self.borrow()?.check_len(self.name, keys).map_err(raise)
    }
}

/// Calls the method `distinct` of a prior, its distinct-count curve.
pub fn read_curve(prior: &Bound<'_, PyAny>, insertions: &[f64]) -> PyResult<Vec<f64>> {
    import_numpy(prior.py())?;
    let insertions = PyArray1::from_slice(prior.py(), insertions);
    let result = prior.call_method1("distinct", (&insertions,))?;
    let distinct = NumbersArgument::read("prior.distinct(insertions)", &result)?;
    distinct.check_len(insertions.len()?)?;
    let distinct = distinct.borrow()?;
    fallible::collected((0..insertions.len()?).map(|i| distinct.of(i))).map_err(raise)
}

/// Returns the expected number of distinct keys among n insertions of equally frequent keys. `None` for several priors.
pub fn equally_frequent(prior: PerKey<'_>, insertions: &[f64]) -> Option<Vec<f64>> {
    let PerKey::All(chance) = prior else { return None };
    let hazard = Hazard::per_insertion(chance);
    let distinct = |&n: &f64| if chance > 0.0 { (hazard.within(n) / chance).min(n) } else { n };
    Some(insertions.iter().map(distinct).collect())
}
