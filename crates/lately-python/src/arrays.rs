//! Copies NumPy arrays of one type, because what is read detached from the interpreter must not change meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use numpy::prelude::*;
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn, PyUntypedArray};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::raise;
use lately::memory::fallible;

/// The values of an array in C order, with its shape.
pub struct Values<T> {
    pub values: Vec<T>,
    pub shape: Vec<usize>,
}

/// Greatest length of an array that is copied into NumPy's memory. Passing Rust's memory takes one more Python object.
const SHORT: usize = 64;

/// Imports NumPy and its C interface, or returns the error of the import. Without this check, the first use of an array
/// would panic.
pub fn import_numpy(py: Python<'_>) -> PyResult<()> {
    static IMPORTED: AtomicBool = AtomicBool::new(false);
    if !IMPORTED.load(Ordering::Relaxed) {
        if is_importing_numpy(py)? {
            return Err(PyImportError::new_err(
                "NumPy is being imported, in a call that this one interrupted or is part of: import numpy before",
            ));
        }
        py.import("numpy")?;
        load_interface(py)?;
        IMPORTED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns whether this thread is within its import of NumPy, as in a signal handler that runs meanwhile.
///
/// A second import would wait for locks that the interrupted import holds. The import of another thread ends.
fn is_importing_numpy(py: Python<'_>) -> PyResult<bool> {
    let sys = py.import("sys")?;
    let Ok(numpy) = sys.getattr("modules")?.get_item("numpy") else { return Ok(false) };
    // What stands there may be no module: None forbids the import.
    let Some(spec) = numpy.getattr_opt("__spec__")? else { return Ok(false) };
    let initializing = spec.getattr_opt("_initializing")?;
    if !initializing.is_some_and(|initializing| initializing.is_truthy().unwrap_or(false)) {
        return Ok(false);
    }
    let globals = numpy.getattr("__dict__")?;
    let mut frame = sys.call_method0("_getframe")?;
    while !frame.is_none() {
        if frame.getattr("f_globals")?.is(&globals) {
            return Ok(true);
        }
        frame = frame.getattr("f_back")?;
    }
    Ok(false)
}

/// Loads NumPy's C interface, in a thread of its own.
///
/// Loading it runs Python code under a lock. In the main thread, a signal handler could run within that code, use an
/// array, and wait for the lock for ever.
fn load_interface(py: Python<'_>) -> PyResult<()> {
    fn load(py: Python<'_>) -> PyResult<()> {
        // The thread runs in the main interpreter. NumPy can be loaded in one interpreter of a process only.
        py.import("numpy").map_err(|error| {
            PyImportError::new_err(format!(
                "lately does not run in a subinterpreter; with mod_wsgi set WSGIApplicationGroup %{{GLOBAL}}: {error}"
            ))
        })?;
        PyArray1::<u8>::from_slice(py, &[]).readonly();
        Ok(())
    }
    // A new thread gets no access to an interpreter that ends. No handler runs any more then.
    let ending: bool = py.import("sys")?.call_method0("is_finalizing")?.extract()?;
    match if ending { None } else { thread::Builder::new().spawn(|| Python::attach(load)).ok() } {
        Some(loading) => {
            py.detach(|| loading.join()).map_err(|_| PyImportError::new_err("NumPy has no C interface"))?
        }
        None => load(py),
    }
}

/// Returns a one-dimensional NumPy array of these values. An error if NumPy cannot be imported.
pub fn array_of<T: Element>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyArray1<T>>> {
    import_numpy(py)?;
    Ok(if values.len() <= SHORT { PyArray1::from_slice(py, &values) } else { values.into_pyarray(py) })
}

impl<T: Element + Copy> Values<T> {
    /// Reads an array of exactly this type. Errors name the parameter `name`.
    pub fn read(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        import_numpy(object.py())?;
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
    pub fn flat(self, name: &str) -> PyResult<Vec<T>> {
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

/// Reads a one-dimensional array of numbers of a narrow or of a wide type, as wide ones.
pub fn widened<N, W>(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<W>>
where
    N: Element + Copy + Into<W>,
    W: Element + Copy,
{
    import_numpy(object.py())?;
    if object.cast::<PyArrayDyn<N>>().is_ok() {
        let narrow = Values::<N>::read(name, object)?.flat(name)?;
        return fallible::collected(narrow.into_iter().map(Into::into)).map_err(raise);
    }
    if object.cast::<PyArrayDyn<W>>().is_ok() {
        return Values::read(name, object)?.flat(name);
    }
    let (py, given) = (object.py(), type_given(object)?);
    let (narrow, wide) = (N::get_dtype(py), W::get_dtype(py));
    Err(PyTypeError::new_err(format!("{name} must be an ndarray of {narrow} or {wide}, not {given}")))
}

/// Returns the type of an object that was rejected: of its elements, if it is an array.
pub fn type_given(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(match object.cast::<PyUntypedArray>() {
        Ok(array) => format!("an array of {}", array.dtype()),
        Err(_) => object.get_type().name()?.to_string(),
    })
}
