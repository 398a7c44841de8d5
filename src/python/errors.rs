//! Errors of the core as Python exceptions.

use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::Error;
use crate::format::SaveError;

create_exception!(lately, FormatError, PyValueError, "The bytes are no filter that this version can read.");

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Value(_) => PyValueError::new_err(message),
            Error::Memory { .. } => PyMemoryError::new_err(message),
            Error::Format(_) => FormatError::new_err(message),
        }
    }
}

/// `EINVAL`, the same on all systems.
const INVALID_ARGUMENT: i32 = 22;

/// A failure that names the file.
pub fn file_error(error: SaveError, path: &Path) -> PyErr {
    match error {
        SaveError::Filter(Error::Format(message)) => FormatError::new_err(format!("{}: {message}", path.display())),
        SaveError::Filter(error) => error.into(),
        SaveError::Io(error) => match error.raw_os_error() {
            Some(code) => {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, reason, path.display().to_string()))
            }
            // The message is ours; a Python error, from a signal, passes as it is.
            None if error.get_ref().is_some_and(|cause| !cause.is::<PyErr>()) => {
                PyOSError::new_err((INVALID_ARGUMENT, error.to_string(), path.display().to_string()))
            }
            None => error.into(),
        },
    }
}
