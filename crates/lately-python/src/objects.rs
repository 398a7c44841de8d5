//! The Python object of a filter.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes::class;
use super::filter::Filter;
use super::unclaimed::Unclaimed;
use lately::filter;

/// The Python object of a filter, of its family's class.
pub fn wrap(py: Python<'_>, filter: filter::AnyFilter) -> PyResult<Py<PyAny>> {
    object(&class(py, filter.family())?, filter)
}

/// The Python object of a filter, of a given class.
pub fn object(class: &Bound<'_, PyType>, filter: filter::AnyFilter) -> PyResult<Py<PyAny>> {
    holding(class, Unclaimed::new(filter))
}

/// The Python object of what was built, of a given class.
pub fn holding(class: &Bound<'_, PyType>, built: Unclaimed) -> PyResult<Py<PyAny>> {
    let base = class.py().get_type::<Filter>();
    Ok(base.call_method1(intern!(class.py(), "__new__"), (class, built))?.unbind())
}
