//! The cells of a filter as a Python buffer, which pickle passes on without a copy.

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use lately::memory::Words;

/// The cells of a filter, lent to Python. The filter copies them before it writes to them again.
#[pyclass(frozen)]
pub struct Cells(pub Words);

#[pymethods]
impl Cells {
    /// # Safety
    /// Called by the interpreter, with a `view` to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: std::ffi::c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let bytes: &[u8] = slf.get().0.as_ref();
        let (start, len) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as ffi::Py_ssize_t);
        // SAFETY: `view` is valid by the protocol. The memory lives as long as this object, which the view keeps alive,
        // and is marked read-only. Words never move or change while they are shared.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
