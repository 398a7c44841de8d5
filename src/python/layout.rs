//! The layout of a filter, as constructors are told it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Where the bits of a key lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A slice or segment after the other, plain or in blocks.
    Sliced,
    /// All of them side by side in lines.
    Line,
}

impl Layout {
    /// Refuses blocks where there are none.
    pub fn check(self, block_bits: Option<u32>) -> PyResult<()> {
        match (self, block_bits) {
            (Self::Line, Some(_)) => Err(PyValueError::new_err("block_bits does not apply to layout='line'")),
            _ => Ok(()),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Layout {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<&str>()? {
            "sliced" => Ok(Self::Sliced),
            "line" => Ok(Self::Line),
            other => Err(PyValueError::new_err(format!("layout must be 'sliced' or 'line', got {other:?}"))),
        }
    }
}
