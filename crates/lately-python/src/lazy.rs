//! Values that the first call makes, by Python code.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the value of a cell, made by the first call.
///
/// Python code that makes it runs without the cell's lock: a signal handler that ran within it and called this too
/// would wait for the lock for ever.
pub fn get_or_make<'a, T>(
    py: Python<'_>,
    cell: &'a PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    match cell.get(py) {
        Some(value) => Ok(value),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(py, || made))
        }
    }
}
