//! Hashes containers of keys: chooses the reader for a container.
//!
//! Numbers and strings in the buffers of NumPy and Arrow are hashed in place, when a filter asks for them. Python
//! objects are hashed at once, while the interpreter is held. Every error is raised here, before a filter has changed.
//!
//! Keys contain one another: an array of objects has tuples as elements, and a tuple may hold an array. What lies
//! within is read by the [`Reader`], which counts how deep it is; `DEEPEST` ends that.

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use super::calls::caught;
use lately::key::{KeyHasher, Keys};

pub mod array_view;
mod arrow;
mod hashes;
mod numbers;
pub mod numpy_array;
mod objects;
mod other_types;
mod pandas;
mod polars;
pub mod scalar;

pub use hashes::Hashes;
pub use scalar::hash_key;

/// Reads a batch of keys: array, list, tuple, column, frame or other iterable.
///
/// Each element is a key; a row of a frame or of a 2-D array is one key, equal to the tuple of its elements.
pub fn read_keys(keys: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<Keys> {
    caught(|| read(keys, Reader::new(hasher)))
}

/// Tuples, records and columns may be nested this deep; the stack is limited.
const DEEPEST: u8 = 32;

/// How keys are read: with which hasher, and how deep they are nested.
#[derive(Clone, Copy)]
struct Reader<'a> {
    /// Lent: to copy it takes half as long as to hash a key.
    hasher: &'a KeyHasher,
    depth: u8,
}

impl<'a> Reader<'a> {
    fn new(hasher: &'a KeyHasher) -> Self {
        Self { hasher, depth: 0 }
    }

    /// Hashes a key, which may be part of another.
    fn key(self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        scalar::hash(key, self)
    }

    /// One level deeper.
    fn within(self) -> PyResult<Self> {
        match self.depth {
            DEEPEST => Err(PyValueError::new_err(format!("keys may nest tuples and records at most {DEEPEST} deep"))),
            depth => Ok(Self { depth: depth + 1, ..self }),
        }
    }
}

fn read(keys: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<Keys> {
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
    // Whoever goes through a frame gets the names of its columns.
    let (py, class) = (keys.py(), keys.get_type());
    if class.hasattr(intern!(py, "columns"))? || class.hasattr(intern!(py, "__dataframe__"))? {
        return Err(not_a_known_frame(keys));
    }
    let items = keys.try_iter().map_err(|_| not_a_batch(keys))?;
    let list = py.get_type::<PyList>().call1((items,))?.cast_into::<PyList>()?;
    objects::read_list(&list, reader)
}

/// Whether NumPy is there: nothing is an array before that, and to ask whether it is one would import it.
fn has_numpy(py: Python<'_>) -> PyResult<bool> {
    static HAS: AtomicBool = AtomicBool::new(false);
    if !HAS.load(Ordering::Relaxed) {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        HAS.store(modules.get_item(intern!(py, "numpy")).is_ok_and(|numpy| !numpy.is_none()), Ordering::Relaxed);
    }
    Ok(HAS.load(Ordering::Relaxed))
}

/// Iterables that are a single key, or no list of keys.
fn is_one_key(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>()
        || keys.is_instance_of::<PyDict>()
        || scalar::is_numpy_scalar(keys)?)
}

fn not_a_batch(keys: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "keys must be an array, a list, a column, a frame or another iterable of keys, not {}; \
         for a single key write [key], or use `add` and `in`",
        scalar::type_name(keys)
    ))
}

fn not_a_known_frame(keys: &Bound<'_, PyAny>) -> PyErr {
    let name = scalar::type_name(keys);
    PyTypeError::new_err(match name.ends_with("LazyFrame") {
        true => format!("keys is a {name}, which has no rows yet: collect() first"),
        false => format!(
            "keys is a {name}, a frame that is not understood; give one of pandas, polars or pyarrow, or whatever has \
             the Arrow PyCapsule interface (`compute()` of Dask gives pandas)"
        ),
    })
}

/// Whether this is of a class that another package may have. The package is not imported: if nobody has imported it, or
/// only half, nothing can be of its classes.
pub fn is_of(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    let modules = object.py().import(intern!(object.py(), "sys"))?.getattr(intern!(object.py(), "modules"))?;
    let Ok(module) = modules.get_item(module) else { return Ok(false) };
    match module.getattr_opt(class)? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}

/// The hash of a batch of one key.
fn first(keys: Keys) -> PyResult<u64> {
    if keys.len() != 1 {
        return Err(PyValueError::new_err(format!("a scalar of {} elements cannot be a key", keys.len())));
    }
    let mut hash = [0];
    keys.fill(0, &mut hash);
    Ok(hash[0])
}

/// The same error, prefixed with where it happened.
fn at(py: Python<'_>, place: impl std::fmt::Display, error: PyErr) -> PyErr {
    let message = format!("{place}: {}", error.value(py));
    match error {
        error if error.get_type(py).is(py.get_type::<PyTypeError>()) => PyTypeError::new_err(message),
        error if error.get_type(py).is(py.get_type::<PyValueError>()) => PyValueError::new_err(message),
        other => other,
    }
}
