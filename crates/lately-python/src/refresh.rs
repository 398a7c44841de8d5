//! The argument `refresh` of `duplicated` and `seen`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use lately::engine::Refresh;

/// Parses `refresh`: `True`, `False` or `"delivered"`.
pub fn parse(value: &Bound<'_, PyAny>) -> PyResult<Refresh> {
    if let Ok(refresh) = value.extract::<bool>() {
        return Ok(if refresh { Refresh::Always } else { Refresh::Unseen });
    }
    match value.extract::<&str>() {
        Ok("delivered") => Ok(Refresh::Delivered),
        Ok(other) => Err(PyValueError::new_err(format!("refresh must be True, False or 'delivered', got {other:?}"))),
        Err(_) => Err(PyTypeError::new_err(format!("refresh must be True, False or 'delivered', got {value}"))),
    }
}
