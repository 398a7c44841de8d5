//! Copies NumPy arrays of one type. What is read detached from the interpreter must not change meanwhile.

use numpy::prelude::*;
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::raise;
use lately::memory::fallible;

/// The values of an array in C order, and its shape.
pub struct Values<T> {
    pub values: Vec<T>,
    pub shape: Vec<usize>,
}

/// Longest array that is copied into NumPy's memory. To hand over Rust's memory takes one more Python object.
const SHORT: usize = 64;

/// Returns a one-dimensional NumPy array of these values.
pub fn array_of<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    if values.len() <= SHORT { PyArray1::from_slice(py, &values) } else { values.into_pyarray(py) }
}

impl<T: Element + Copy> Values<T> {
    /// Reads an array of exactly this type. Errors name the parameter `name`.
    pub fn read(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(array) = object.cast::<PyArrayDyn<T>>() else {
            let (wanted, given) = (T::get_dtype(object.py()), type_given(object)?);
            return Err(PyTypeError::new_err(format!("{name} must be an ndarray of {wanted}, not {given}")));
        };
        let array = array.readonly();
        let values = match array.is_c_contiguous() {
            true => fallible::collected(array.as_slice()?.iter().copied()).map_err(raise)?,
            false => fallible::collected(array.as_array().iter().copied()).map_err(raise)?,
        };
        Ok(Self { values, shape: array.shape().to_vec() })
    }

    /// Returns the values of a one-dimensional array, or an error.
    fn flat(self, name: &str) -> PyResult<Vec<T>> {
        match self.shape[..] {
            [_] => Ok(self.values),
            _ => Err(PyValueError::new_err(format!("{name} must have one dimension, got {}", self.shape.len()))),
        }
    }

    /// Returns the values of an array of this shape, or an error.
    pub fn shaped(self, name: &str, shape: &[usize]) -> PyResult<Vec<T>> {
        if self.shape == shape {
            return Ok(self.values);
        }
        Err(PyValueError::new_err(format!("{name} must have the shape {shape:?}, got {:?}", self.shape)))
    }
}

/// Numbers in one of two types: a narrow one, where they fit, or a wide one.
pub enum Width<N, W> {
    Narrow(Vec<N>),
    Wide(Vec<W>),
}

impl<N: Element + Copy, W: Element + Copy> Width<N, W> {
    /// Reads a one-dimensional array of either type. Errors name the parameter `name`.
    pub fn read(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.cast::<PyArrayDyn<N>>().is_ok() {
            return Ok(Self::Narrow(Values::read(name, object)?.flat(name)?));
        }
        if object.cast::<PyArrayDyn<W>>().is_ok() {
            return Ok(Self::Wide(Values::read(name, object)?.flat(name)?));
        }
        let (py, given) = (object.py(), type_given(object)?);
        let (narrow, wide) = (N::get_dtype(py), W::get_dtype(py));
        Err(PyTypeError::new_err(format!("{name} must be an ndarray of {narrow} or {wide}, not {given}")))
    }

    /// Returns the number of numbers.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(values) => values.len(),
            Self::Wide(values) => values.len(),
        }
    }
}

/// Returns the type of an object that was rejected: of its elements, if it is an array.
fn type_given(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(match object.cast::<PyUntypedArray>() {
        Ok(array) => format!("an array of {}", array.dtype()),
        Err(_) => object.get_type().name()?.to_string(),
    })
}

/// Reads an array of bool as bytes that are 0 or not 0. In NumPy a bool may be any byte.
pub fn flags(name: &str, object: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Vec<u8>> {
    let array = object.cast::<PyUntypedArray>().ok().filter(|array| array.dtype().kind() == b'b');
    let Some(array) = array else {
        return Err(PyTypeError::new_err(format!("{name} must be an ndarray of bool, not {}", type_given(object)?)));
    };
    Values::read(name, &array.call_method1(intern!(object.py(), "view"), ("u1",))?)?.shaped(name, shape)
}
