//! `refresh`, as `duplicated` is told it.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::engine::Refresh;

impl FromPyObject<'_, '_> for Refresh {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(refresh) = value.extract::<bool>() {
            return Ok(if refresh { Self::Always } else { Self::Unseen });
        }
        match value.extract::<&str>() {
            Ok("delivered") => Ok(Self::Delivered),
            Ok(other) => {
                Err(PyValueError::new_err(format!("refresh must be True, False or 'delivered', got {other:?}")))
            }
            Err(_) => Err(PyTypeError::new_err(format!("refresh must be True, False or 'delivered', got {}", *value))),
        }
    }
}
