//! The state of a filter before a Python object owns it.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::lazy::get_or_make;
use crate::shared::Shared;
use lately::family::{AnyFilter, Family};

/// The state of a filter that was built, opened or copied, for one call of `Filter.__new__`.
#[pyclass(frozen, module = "lately._core")]
pub struct FilterState(Mutex<Option<(AnyFilter, Option<Shared>)>>);

impl FilterState {
    /// Creates the state of a private filter, or of a filter in a shared file.
    pub fn new(filter: AnyFilter, shared: Option<Shared>) -> Self {
        Self(Mutex::new(Some((filter, shared))))
    }

    /// Moves the filter and its file out. A second call returns an error.
    pub fn take(&self) -> PyResult<(AnyFilter, Option<Shared>)> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        state.ok_or_else(taken)
    }
}

#[pymethods]
impl FilterState {
    /// type: the class of the filter's family.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let family = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((filter, _)) => filter.family(),
            None => return Err(taken()),
        };
        class_of(py, family)
    }
}

/// Returns the error for a state whose filter another object owns.
fn taken() -> PyErr {
    PyTypeError::new_err("another object owns this filter already; copy() that one")
}

/// Returns the Python class of a family.
pub fn class_of<'py>(py: Python<'py>, family: &Family) -> PyResult<Bound<'py, PyType>> {
    static LATELY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let lately = get_or_make(py, &LATELY, || py.import("lately").map(Bound::unbind))?.bind(py);
    let class = family.class.split('.').try_fold(lately.clone().into_any(), |parent, name| parent.getattr(name))?;
    Ok(class.cast_into()?)
}
