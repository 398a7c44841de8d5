//! Whole numbers of any size and sign, as users pass them, before a parameter's range is checked.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

/// An int, or a float that is whole, such as 1e6. Another value is rejected later, when the parameter's name is known.
pub struct WholeNumber(Given);

enum Given {
    Number(i128),
    /// An int of more than 128 bits.
    Large,
    /// Another value, as an error shows it.
    Other(String),
}

impl WholeNumber {
    /// Returns the default value of a parameter.
    pub fn new(value: i128) -> Self {
        Self(Given::Number(value))
    }

    /// Reads the argument of a parameter.
    pub fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(match value.extract::<i128>() {
            Ok(value) => Given::Number(value),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Given::Large,
            // A float that is whole counts as an int; NumPy's floats of 64 bits are floats.
            Err(_) => match value.cast::<PyFloat>().map(|float| float.value()) {
                Ok(float) if float.trunc() == float && float.abs() < 2f64.powi(126) => Given::Number(float as i128),
                _ => Given::Other(match value.is_instance_of::<PyString>() {
                    true => value.repr()?.to_string(),
                    false => value.str()?.to_string(),
                }),
            },
        }))
    }

    /// Returns whether it is a number at all.
    pub fn is_number(&self) -> bool {
        !matches!(self.0, Given::Other(_))
    }

    /// Returns the number, if it fits the parameter's type, or an error that names the parameter.
    pub fn within<T: TryFrom<i128>>(self, name: &str) -> PyResult<T> {
        let given = match self.0 {
            Given::Number(value) => match T::try_from(value) {
                Ok(value) => return Ok(value),
                Err(_) => value.to_string(),
            },
            Given::Large => "an int of more than 128 bits".to_owned(),
            Given::Other(given) => {
                let what = if name == "nbytes" { "whole number of bytes, such as 4096" } else { "whole number" };
                return Err(PyTypeError::new_err(format!("{name} must be a {what}, got {given}")));
            }
        };
        let bits = 8 * size_of::<T>();
        Err(PyValueError::new_err(format!("{name} must lie in 0 .. 2**{bits} - 1, got {given}")))
    }
}

impl FromPyObject<'_, '_> for WholeNumber {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Self::read(&value)
    }
}

/// The argument `threads`: how many threads share a batch, at least 1, the default.
#[derive(Clone, Copy)]
pub struct Threads(pub usize);

impl Default for Threads {
    fn default() -> Self {
        Self(1)
    }
}

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<WholeNumber>()?.within("threads")? {
            0 => Err(PyValueError::new_err("threads must be at least 1, got 0")),
            threads => Ok(Self(threads)),
        }
    }
}
