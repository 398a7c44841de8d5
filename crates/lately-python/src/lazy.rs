//! Values that the first call computes by Python code.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the value of a cell, which the first call computes.
///
/// The Python code runs without the cell's lock. Otherwise a signal handler that runs within it and calls this function
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
