//! The classes of `lately.filters`: which one the filters of a family have.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::filter::Family;

/// The class of a family.
pub fn class<'py>(py: Python<'py>, family: &Family) -> PyResult<Bound<'py, PyType>> {
    static FILTERS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let filters = FILTERS.get_or_try_init(py, || py.import("lately.filters").map(Bound::unbind))?;
    Ok(filters.bind(py).getattr(family.class)?.cast_into()?)
}
