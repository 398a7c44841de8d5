//! Converts errors of the core into Python exceptions.

use std::io::ErrorKind;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use lately::Error;
use lately::format::SaveError;

create_exception!(
    lately,
    FormatError,
    PyValueError,
    "The bytes are not a filter, are damaged, or come from a version of lately that this one cannot read."
);

/// Converts an error of the core into the Python exception of its kind.
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Format(_) => FormatError::new_err(message),
        Error::Io { .. } => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// `EINVAL` on every system.
const INVALID_ARGUMENT: i32 = 22;

/// `EBUSY` on every system.
const BUSY: i32 = 16;

/// `ESTALE`. On Windows a shared file stays in its place.
const STALE: i32 = if cfg!(target_os = "linux") { 116 } else { 70 };

/// Converts a failure with a file into the Python exception of its kind, which names the file.
pub fn file_error(error: SaveError, path: &Path) -> PyErr {
    match error {
        SaveError::Filter(Error::Format(message)) => FormatError::new_err(format!("{}: {message}", path.display())),
        SaveError::Filter(error) => raise(error),
        SaveError::Io(error) => match error.raw_os_error() {
            Some(code) => {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, reason, path.display().to_string()))
            }
            None if error.kind() == ErrorKind::TimedOut => {
                PyTimeoutError::new_err(format!("{}: {error}", path.display()))
            }
            // The message comes from lately. A Python error, raised by a signal handler, is passed on as it is.
            None if error.get_ref().is_some_and(|cause| !cause.is::<PyErr>()) => {
                let code = match error.kind() {
                    ErrorKind::StaleNetworkFileHandle => STALE,
                    ErrorKind::ResourceBusy => BUSY,
                    _ => INVALID_ARGUMENT,
                };
                PyOSError::new_err((code, error.to_string(), path.display().to_string()))
            }
            None => error.into(),
        },
    }
}
