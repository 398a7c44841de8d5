//! A filter between its making and its object.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

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
