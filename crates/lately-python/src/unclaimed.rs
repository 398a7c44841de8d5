//! A filter between its making and its object.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::shared::Shared;
use lately::filter::AnyFilter;

/// A filter that no object holds yet: what `Filter.__new__` takes.
#[pyclass(frozen, module = "lately._core")]
pub struct Unclaimed(Mutex<Option<(AnyFilter, Option<Shared>)>>);

impl Unclaimed {
    pub fn new(filter: AnyFilter) -> Self {
        Self(Mutex::new(Some((filter, None))))
    }

    /// A filter in a file that processes share.
    pub fn shared(filter: AnyFilter, shared: Shared) -> Self {
        Self(Mutex::new(Some((filter, Some(shared)))))
    }

    /// The filter, for the one object that will hold it, and its file.
    pub fn take(&self) -> PyResult<(AnyFilter, Option<Shared>)> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyTypeError::new_err("an object holds this filter already"))
    }
}
