//! Creates the Python object of a filter, of its family's class or a subclass.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::PyFilter;
use super::state::{FilterState, class_of};
use lately::family::AnyFilter;

/// Creates the Python object of a private filter, of its family's class.
pub fn wrap(py: Python<'_>, filter: AnyFilter) -> PyResult<Py<PyAny>> {
    create(&class_of(py, filter.family())?, FilterState::new(filter, None))
}

/// Creates a Python object of a class that owns this state.
pub fn create(class: &Bound<'_, PyType>, state: FilterState) -> PyResult<Py<PyAny>> {
    let base = class.py().get_type::<PyFilter>();
    Ok(base.call_method1(intern!(class.py(), "__new__"), (class, state))?.unbind())
}
