//! Whole numbers of any size and sign, as users pass them, before a parameter's range is checked.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An int, or words for it if it has more than 128 bits.
pub struct Whole(Result<i128, String>);

impl Whole {
    /// A default.
    pub fn new(value: i128) -> Self {
        Self(Ok(value))
    }

    /// The value of a parameter, or an error that names it.
    pub fn of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be a whole number, got {value}")))
    }

    /// The number, if it fits the parameter's type, or an error that names it.
    pub fn within<T: TryFrom<i128>>(self, name: &str) -> PyResult<T> {
        let given = match self.0 {
            Ok(value) => match T::try_from(value) {
                Ok(value) => return Ok(value),
                Err(_) => value.to_string(),
            },
            Err(given) => given,
        };
        let bits = 8 * size_of::<T>();
        Err(PyValueError::new_err(format!("{name} must lie in 0 .. 2**{bits} - 1, got {given}")))
    }
}

impl FromPyObject<'_, '_> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(value) => Ok(Self(Ok(value))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(Self(Err("an int of more than 128 bits".to_owned())))
            }
            Err(error) => Err(error),
        }
    }
}

/// How many threads share a batch: at least 1, the default.
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
        match value.extract::<Whole>()?.within("threads")? {
            0 => Err(PyValueError::new_err("threads must be at least 1, got 0")),
            threads => Ok(Self(threads)),
        }
    }
}
