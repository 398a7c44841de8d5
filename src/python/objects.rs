//! The Python object of a filter.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes::class;
use crate::filter::Filter;

/// A filter that no object holds yet: what `Filter.__new__` takes.
#[pyclass(frozen, module = "lately._core")]
pub struct Built(Mutex<Option<Filter>>);

impl Built {
    pub fn new(filter: Filter) -> Self {
        Self(Mutex::new(Some(filter)))
    }

    /// The filter, for the one object that will hold it.
    pub fn take(&self) -> PyResult<Filter> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyTypeError::new_err("an object holds this filter already"))
    }
}

/// The Python object of a filter, of its family's class.
pub fn wrap(py: Python<'_>, filter: Filter) -> PyResult<Py<PyAny>> {
    object(&class(py, filter.family())?, filter)
}

/// The Python object of a filter, of a given class.
pub fn object(class: &Bound<'_, PyType>, filter: Filter) -> PyResult<Py<PyAny>> {
    let base = class.py().get_type::<super::filter::Filter>();
    Ok(base.call_method1(intern!(class.py(), "__new__"), (class, Built::new(filter)))?.unbind())
}
