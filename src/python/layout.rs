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
    /// All of them side by side at every position: of guarded epochs.
    Transposed,
}

impl Layout {
    /// Refuses blocks where there are none.
    pub fn check(self, block_bits: Option<u32>) -> PyResult<()> {
        match (self, block_bits) {
            (Self::Sliced, _) | (_, None) => Ok(()),
            (Self::Line, _) => Err(PyValueError::new_err("block_bits does not apply to layout='line'")),
            (Self::Transposed, _) => Err(PyValueError::new_err("block_bits does not apply to layout='transposed'")),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Layout {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<&str>()? {
            "sliced" => Ok(Self::Sliced),
            "line" => Ok(Self::Line),
            "transposed" => Ok(Self::Transposed),
            other => {
                Err(PyValueError::new_err(format!("layout must be 'sliced', 'line' or 'transposed', got {other:?}")))
            }
        }
    }
}
