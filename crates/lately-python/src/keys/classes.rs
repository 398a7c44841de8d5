//! The classes of Python objects: whether an object has a class of NumPy or of another package, and its name.

use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyType};

use crate::lazy::get_or_make;

/// Returns whether an object is an instance of a class of `module`. The module is not imported: before it is, no object
/// has its classes.
pub fn is_instance_of(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    static SYS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = object.py();
    let sys = get_or_make(py, &SYS, || Ok(py.import("sys")?.unbind()))?.bind(py);
    // An import takes microseconds, even of `sys`, and so does the `KeyError` for a module that is absent.
    let modules = sys.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
    let Some(module) = modules.get_item(module)? else { return Ok(false) };
    match module.getattr_opt(class)? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}

/// Returns whether an object is an instance of a class of NumPy.
pub fn is_numpy(object: &Bound<'_, PyAny>, class: &str) -> PyResult<bool> {
    object.is_instance(&object.py().import(intern!(object.py(), "numpy"))?.getattr(class)?)
}

/// Returns whether an object is a NumPy scalar.
pub fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    let import = || Ok(py.import("numpy")?.getattr("generic")?.cast_into()?.unbind());
    object.is_instance(get_or_make(py, &GENERIC, import)?.bind(py))
}

/// Returns a NumPy scalar, or an array without dimensions, as an array of one element.
pub fn one_element<'py>(scalar: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    Ok(scalar.call_method1(intern!(scalar.py(), "reshape"), (1,))?.cast_into()?)
}

/// Returns the name of an object's class, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
