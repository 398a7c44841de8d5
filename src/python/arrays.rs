//! NumPy arrays of one type, copied: what is read detached from the interpreter must not change meanwhile.

use numpy::prelude::*;
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::memory::fallible;

/// The values of an array in C order, and its shape.
pub struct Values<T> {
    pub values: Vec<T>,
    pub shape: Vec<usize>,
}

/// Longest array that is copied into one of NumPy's own: to hand over its memory takes an object more.
const SHORT: usize = 64;

/// An array of one dimension.
pub fn array_of<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    if values.len() <= SHORT { PyArray1::from_slice(py, &values) } else { values.into_pyarray(py) }
}

impl<T: Element + Copy> Values<T> {
    /// Reads an array of exactly this type; errors use the name of its parameter.
    pub fn read(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(array) = object.cast::<PyArrayDyn<T>>() else {
            let wanted = T::get_dtype(object.py());
            let given = match object.cast::<PyUntypedArray>() {
                Ok(array) => format!("an array of {}", array.dtype()),
                Err(_) => object.get_type().name()?.to_string(),
            };
            return Err(PyTypeError::new_err(format!("{name} must be an ndarray of {wanted}, not {given}")));
        };
        let array = array.readonly();
        let values = match array.is_c_contiguous() {
            true => fallible::collected(array.as_slice()?.iter().copied())?,
            false => fallible::collected(array.as_array().iter().copied())?,
        };
        Ok(Self { values, shape: array.shape().to_vec() })
    }

    /// Refuses any other shape.
    pub fn shaped(self, name: &str, shape: &[usize]) -> PyResult<Vec<T>> {
        if self.shape == shape {
            return Ok(self.values);
        }
        Err(PyValueError::new_err(format!("{name} must have the shape {shape:?}, got {:?}", self.shape)))
    }
}

/// The values of an array of bool, as bytes of 0 or not 0: in NumPy a bool may be any byte.
pub fn flags(name: &str, object: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Vec<u8>> {
    let array = object.cast::<PyUntypedArray>().ok().filter(|array| array.dtype().kind() == b'b');
    let Some(array) = array else {
        return Err(PyTypeError::new_err(format!(
            "{name} must be an ndarray of bool, not {}",
            object.get_type().name()?
        )));
    };
    Values::read(name, &array.call_method1(intern!(object.py(), "view"), ("u1",))?)?.shaped(name, shape)
}
