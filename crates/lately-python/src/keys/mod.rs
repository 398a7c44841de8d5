//! Reads containers of keys: chooses the reader of a container, which returns [`Keys`].
//!
//! Numbers and strings in the buffers of NumPy and Arrow are hashed in place, when a filter needs the hashes. Python
//! objects are hashed while they are read, attached to the interpreter. Every error is raised here, before a filter
//! changes.
//!
//! Keys are nested: an array of objects may contain tuples, and a tuple may contain a NumPy scalar. A [`KeyReader`]
//! reads the parts of a key and counts the depth, which is at most [`MAX_DEPTH`].

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use super::calls::caught;
use lately::key::{KeyHasher, Keys};

#[expect(unsafe_code, reason = "reads the memory of NumPy arrays")]
pub mod array_view;
mod arrow;
pub mod calendar;
pub mod classes;
mod hashes;
mod numbers;
#[expect(unsafe_code, reason = "reads objects of NumPy arrays in place")]
mod numpy_array;
#[expect(unsafe_code, reason = "reads the elements of Python's lists in place")]
mod objects;
mod other_types;
mod pandas;
#[expect(unsafe_code, reason = "reads the value of Python's integers")]
mod plain;
mod polars;
mod scalar;

pub use hashes::Hashes;
pub use scalar::hash_key;

/// Reads a batch of keys: an array, a list, a tuple, a column, a frame or another iterable.
///
/// Each element is a key. A row of a frame or of a 2-D array is one key, equal to the tuple of its elements.
pub fn read_keys(keys: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<Keys> {
    caught(|| read(keys, KeyReader::new(hasher)))
}

/// The greatest depth of nested tuples, records and columns, because the stack is limited.
const MAX_DEPTH: u8 = 32;

/// Reads keys with a hasher, at a depth of nested keys.
#[derive(Clone, Copy)]
struct KeyReader<'a> {
    /// Borrowed, because a copy takes half as long as the hash of a key.
    hasher: &'a KeyHasher,
    depth: u8,
}

impl<'a> KeyReader<'a> {
    fn new(hasher: &'a KeyHasher) -> Self {
        Self { hasher, depth: 0 }
    }

    /// Hashes a key, which may be part of another key.
    fn key(self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        scalar::hash(key, self)
    }

    /// Returns the reader for the parts of a key. An error if it is nested too deep.
    fn within(self) -> PyResult<Self> {
        match self.depth {
            MAX_DEPTH => {
                Err(PyValueError::new_err(format!("keys may nest tuples and records at most {MAX_DEPTH} deep")))
            }
            depth => Ok(Self { depth: depth + 1, ..self }),
        }
    }
}

fn read(keys: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    if let Ok(list) = keys.cast::<PyList>() {
        return objects::read_list(list, reader);
    }
    if has_numpy(keys.py())?
        && let Ok(array) = keys.cast::<PyUntypedArray>()
    {
        return numpy_array::read(array, reader);
    }
    if let Ok(tuple) = keys.cast::<PyTuple>() {
        return objects::read_tuple(tuple, reader);
    }
    if let Ok(hashes) = keys.cast::<Hashes>() {
        return hashes.get().read(*reader.hasher);
    }
    if let Some(read) = pandas::read(keys, reader)? {
        return Ok(read);
    }
    if let Some(read) = polars::read(keys, reader)? {
        return Ok(read);
    }
    if let Some(read) = arrow::read(keys, *reader.hasher)? {
        return Ok(read);
    }
    if is_one_key(keys)? {
        return Err(not_a_batch(keys));
    }
    // Iteration over a frame would yield the names of its columns.
    let (py, class) = (keys.py(), keys.get_type());
    if class.hasattr(intern!(py, "columns"))? || class.hasattr(intern!(py, "__dataframe__"))? {
        return Err(not_a_known_frame(keys));
    }
    let items = keys.try_iter().map_err(|_| not_a_batch(keys))?;
    let list = py.get_type::<PyList>().call1((items,))?.cast_into::<PyList>()?;
    objects::read_list(&list, reader)
}

/// Returns whether NumPy is imported. Before that no object is an array, and the check for one would import NumPy.
fn has_numpy(py: Python<'_>) -> PyResult<bool> {
    static HAS: AtomicBool = AtomicBool::new(false);
    if !HAS.load(Ordering::Relaxed) {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        HAS.store(modules.get_item(intern!(py, "numpy")).is_ok_and(|numpy| !numpy.is_none()), Ordering::Relaxed);
    }
    Ok(HAS.load(Ordering::Relaxed))
}

/// Returns whether an iterable is a single key, or no batch at all.
fn is_one_key(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>()
        || keys.is_instance_of::<PyDict>()
        || classes::is_numpy_scalar(keys)?)
}

/// Returns the error for an object that is not a batch of keys.
fn not_a_batch(keys: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "keys must be an array, a list, a column, a frame or another iterable of keys, not {}; \
         for a single key write [key], or use `add` and `in`",
        classes::type_name(keys)
    ))
}

/// Returns the error for a frame of an unknown package.
fn not_a_known_frame(keys: &Bound<'_, PyAny>) -> PyErr {
    let name = classes::type_name(keys);
    PyTypeError::new_err(match name.ends_with("LazyFrame") {
        true => format!("keys is a {name}, which has no rows yet: collect() first"),
        false => format!(
            "keys is a {name}, which cannot be read: pass a frame of pandas, polars or pyarrow, or one with the Arrow \
             PyCapsule interface. Of Dask, pass `frame.compute()`, or one partition after the other to a filter"
        ),
    })
}

/// Returns the hash of a batch of one key.
fn single_hash(keys: Keys) -> PyResult<u64> {
    if keys.len() != 1 {
        return Err(PyValueError::new_err(format!("a scalar of {} elements cannot be a key", keys.len())));
    }
    let mut hash = [0];
    keys.fill(0, &mut hash);
    Ok(hash[0])
}

/// Returns an error of the same type whose message starts with the place of the error.
fn prefixed(py: Python<'_>, place: impl std::fmt::Display, error: PyErr) -> PyErr {
    let message = format!("{place}: {}", error.value(py));
    match error {
        error if error.get_type(py).is(py.get_type::<PyTypeError>()) => PyTypeError::new_err(message),
        error if error.get_type(py).is(py.get_type::<PyValueError>()) => PyValueError::new_err(message),
        other => other,
    }
}
