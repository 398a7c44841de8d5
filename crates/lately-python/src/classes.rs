//! The classes of the filters: which one those of a family have.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use lately::filter::Family;

/// The class of a family.
pub fn class<'py>(py: Python<'py>, family: &Family) -> PyResult<Bound<'py, PyType>> {
    static LATELY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let lately = LATELY.get_or_try_init(py, || py.import("lately").map(Bound::unbind))?.bind(py);
    let found = family.class.split('.').try_fold(lately.clone().into_any(), |found, name| found.getattr(name))?;
    Ok(found.cast_into()?)
}
