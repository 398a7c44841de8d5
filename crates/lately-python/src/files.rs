//! The argument `file`: a path, or a binary file of Python.

use std::io::{Read, Result, Write};
use std::path::PathBuf;

use pyo3::exceptions::{PyBlockingIOError, PyEOFError, PyOSError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use lately::format::SaveError;

/// Greatest number of bytes that are read or written in one call of Python. Signals are handled between two calls.
const MAX_TRANSFER: usize = 1 << 20;

/// The argument `file`: where a filter is saved, or opened from.
pub enum FileArgument {
    Path(PathBuf),
    Object(PythonFile),
}

impl FileArgument {
    /// Reads the argument. An object must have the method `needed`: `read` or `write`.
    pub fn read(file: &Bound<'_, PyAny>, needed: &str) -> PyResult<Self> {
        if let Ok(path) = file.extract() {
            return Ok(Self::Path(path));
        }
        if !file.hasattr(needed)? {
            let class = file.get_type();
            let message = format!("file must be a path, or a binary file to {needed}, not {}", class.name()?);
            return Err(PyTypeError::new_err(message));
        }
        if file.is_instance(&file.py().import("io")?.getattr("TextIOBase")?)? {
            return Err(PyTypeError::new_err("file must be binary, got a text file: open it with \"rb\" or \"wb\""));
        }
        Ok(Self::Object(PythonFile { file: file.clone().unbind(), moved: 0 }))
    }
}

/// A binary file of Python, for use detached from the interpreter. A call may read or write fewer bytes than requested.
pub struct PythonFile {
    file: Py<PyAny>,
    /// Bytes read or written so far.
    moved: usize,
}

impl PythonFile {
    /// Converts an error into an exception. An exception that the file raised is returned as it is.
    pub fn error(&self, error: SaveError) -> PyErr {
        match error {
            SaveError::Io(error) => error.into(),
            SaveError::Filter(_) if self.moved == 0 => PyEOFError::new_err(
                "the file is at its end, so there is no filter to read: seek(0) first if it was just written",
            ),
            SaveError::Filter(error) => raise(error),
        }
    }

    /// Calls `part`, which reads or writes at most `most` bytes, and returns their number.
    fn transfer(&mut self, most: usize, part: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<usize>) -> Result<usize> {
        let moved = Python::attach(|py| {
            py.check_signals()?;
            part(self.file.bind(py))
        })?;
        if moved > most {
            return Err(PyOSError::new_err(format!("the file returned {moved} bytes for a request of {most}")).into());
        }
        self.moved += moved;
        Ok(moved)
    }
}

/// Returns the error for a non-blocking file that is not ready.
fn would_block() -> PyErr {
    PyBlockingIOError::new_err("the file is non-blocking and not ready: make it blocking")
}

impl Read for PythonFile {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let most = bytes.len().min(MAX_TRANSFER);
        self.transfer(most, |file| {
            let given = file.call_method1(intern!(file.py(), "read"), (most,))?;
            if given.is_none() {
                return Err(would_block());
            }
            let given = given.cast::<PyBytes>()?.as_bytes();
            if let Some(room) = bytes.get_mut(..given.len()) {
                room.copy_from_slice(given);
            }
            Ok(given.len())
        })
    }
}

impl Write for PythonFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let part = &bytes[..bytes.len().min(MAX_TRANSFER)];
        self.transfer(part.len(), |file| {
            let py = file.py();
            let taken = file.call_method1(intern!(py, "write"), (PyBytes::new(py, part),))?;
            if !taken.is_none() {
                return taken.extract();
            }
            // A raw file returns None if it wrote nothing; for other files None has no meaning.
            let raw = file.is_instance(&py.import("io")?.getattr("RawIOBase")?)?;
            if raw { Err(would_block()) } else { Ok(part.len()) }
        })
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
