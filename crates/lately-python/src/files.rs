//! Files as users pass them: paths, and binary files of Python, whatever is behind them.

use std::io::{Read, Result, Write};
use std::path::PathBuf;

use pyo3::exceptions::{PyBlockingIOError, PyEOFError, PyOSError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use lately::format::SaveError;

/// Bytes passed at a time: signals are seen between two pieces, and a piece is copied.
const PIECE: usize = 1 << 20;

/// Where a filter is saved, or opened from.
pub enum Place {
    Path(PathBuf),
    File(PythonFile),
}

impl Place {
    /// Reads an argument. A file must have the method `needed`: `read` or `write`.
    pub fn of(file: &Bound<'_, PyAny>, needed: &str) -> PyResult<Self> {
        if let Ok(path) = file.extract() {
            return Ok(Self::Path(path));
        }
        if !file.hasattr(needed)? {
            let class = file.get_type();
            let message = format!("file must be a path, or a binary file to {needed}, not {}", class.name()?);
            return Err(PyTypeError::new_err(message));
        }
        if file.is_instance(&file.py().import("io")?.getattr("TextIOBase")?)? {
            return Err(PyTypeError::new_err(
                "file must be binary, and this one holds text: open it with \"rb\" or \"wb\"",
            ));
        }
        Ok(Self::File(PythonFile { file: file.clone().unbind(), moved: 0 }))
    }
}

/// A binary file of Python, used detached from the interpreter. It may move fewer bytes at a time than it is asked to.
pub struct PythonFile {
    file: Py<PyAny>,
    /// Bytes read or written so far.
    moved: usize,
}

impl PythonFile {
    /// The exception for a failure; one of Python itself passes as it is.
    pub fn error(&self, error: SaveError) -> PyErr {
        match error {
            SaveError::Io(error) => error.into(),
            SaveError::Filter(_) if self.moved == 0 => PyEOFError::new_err(
                "the file is at its end, with no filter to read; after writing to it, seek(0) first",
            ),
            SaveError::Filter(error) => raise(error),
        }
    }

    /// Moves a piece of at most `most` bytes.
    fn moved(&mut self, most: usize, piece: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<usize>) -> Result<usize> {
        let moved = Python::attach(|py| {
            py.check_signals()?;
            piece(self.file.bind(py))
        })?;
        if moved > most {
            return Err(PyOSError::new_err(format!("the file moved {moved} bytes of the {most} requested")).into());
        }
        self.moved += moved;
        Ok(moved)
    }
}

/// Returns the error of a file that has no bytes, or no room, for now.
fn would_block() -> PyErr {
    PyBlockingIOError::new_err("the file is non-blocking and not ready: make it blocking")
}

impl Read for PythonFile {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let asked = bytes.len().min(PIECE);
        self.moved(asked, |file| {
            let given = file.call_method1(intern!(file.py(), "read"), (asked,))?;
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
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.moved(piece.len(), |file| {
            let py = file.py();
            let taken = file.call_method1(intern!(py, "write"), (PyBytes::new(py, piece),))?;
            if !taken.is_none() {
                return taken.extract();
            }
            // A raw file returns None if it wrote nothing; for other files None has no meaning.
            let raw = file.is_instance(&py.import("io")?.getattr("RawIOBase")?)?;
            if raw { Err(would_block()) } else { Ok(piece.len()) }
        })
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
