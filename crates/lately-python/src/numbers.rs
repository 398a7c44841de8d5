//! Numbers that go with keys: priors, penalties, and the distinct-count curve of a prior.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::raise;
use lately::clock::Window;
use lately::inference::{Hazard, PerKey};
use lately::memory::fallible;

/// Numbers that go with the keys of a batch, owned while it runs.
pub struct Numbers<'py> {
    pub name: &'static str,
    pub numbers: Held<'py>,
}

pub enum Held<'py> {
    All(f64),
    Each(PyReadonlyArray1<'py, f64>),
}

impl<'py> Numbers<'py> {
    /// Reads a number, or an array of one per key.
    pub fn read(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = value.extract() {
            return Ok(Self { name, numbers: Held::All(number) });
        }
        let array = value.py().import("numpy")?.call_method1("ascontiguousarray", (value, "float64"));
        let numbers = array.ok().and_then(|array| array.extract().ok()).filter(|_| value.len().is_ok());
        let refused =
            || PyTypeError::new_err(format!("{name} must be a number or an array of one per key, got {value}"));
        Ok(Self { name, numbers: Held::Each(numbers.ok_or_else(refused)?) })
    }

    /// Reads a prior: numbers, or an object that knows them for the keys.
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

    pub fn penalty(name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let numbers = Self::read(name, value)?;
        numbers.borrow()?.check_penalty(name).map_err(raise)?;
        Ok(numbers)
    }

    pub fn borrow(&self) -> PyResult<PerKey<'_>> {
        Ok(match &self.numbers {
            Held::All(number) => PerKey::All(*number),
            Held::Each(array) => PerKey::Each(array.as_slice()?),
        })
    }

    pub fn check_len(&self, keys: usize) -> PyResult<()> {
        self.borrow()?.check_len(self.name, keys).map_err(raise)
    }
}

/// The distinct-count curve of an object that knows the keys.
pub fn read_curve(prior: &Bound<'_, PyAny>, insertions: &[f64]) -> PyResult<Vec<f64>> {
    let insertions = PyArray1::from_slice(prior.py(), insertions);
    let said = Numbers::read("prior.distinct(insertions)", &prior.call_method1("distinct", (&insertions,))?)?;
    said.check_len(insertions.len()?)?;
    let said = said.borrow()?;
    fallible::collected((0..insertions.len()?).map(|i| said.of(i))).map_err(raise)
}

/// The distinct keys among n insertions where each key has the same chance, 1 over how many there are.
pub fn equally_frequent(prior: PerKey<'_>, insertions: &[f64]) -> Option<Vec<f64>> {
    let PerKey::All(chance) = prior else { return None };
    let hazard = Hazard::per_insertion(chance);
    let distinct = |&n: &f64| if chance > 0.0 { (hazard.within(n) / chance).min(n) } else { n };
    Some(insertions.iter().map(distinct).collect())
}
