//! Warns once when a filter is [overfull].

use std::ffi::CString;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::create_exception;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use lately::family::{AnyFilter, overfull};

create_exception!(
    lately,
    OverfullWarning,
    PyUserWarning,
    "A filter holds more keys than it was planned for, so false positives are more frequent. No key is missed.\n\n\
     Each filter warns once, with its numbers, and once more after `clear`. A copy is another filter. The call that \
     warns is complete: if the warning is made an error, its keys are inserted, and the answers to them are the \
     attribute ``answers`` of the exception.\n\n\
     Choose a larger `capacity`, or a filter whose memory grows with the keys: an `AgedCuckooFilter` with `fpr`."
);

/// The monitor of the load of a Python filter, which warns, or stores the warning.
pub struct LoadMonitor {
    monitor: overfull::LoadMonitor,
    /// Whether a message is stored instead of raised as a warning.
    deferred: AtomicBool,
    /// The first message that was stored.
    message: OnceLock<String>,
}

impl Deref for LoadMonitor {
    type Target = overfull::LoadMonitor;

    fn deref(&self) -> &overfull::LoadMonitor {
        &self.monitor
    }
}

impl LoadMonitor {
    /// Creates the monitor of a filter that was built, opened or copied.
    pub fn new(filter: &AnyFilter) -> Self {
        let monitor = overfull::LoadMonitor::new(filter);
        Self { monitor, deferred: AtomicBool::new(false), message: OnceLock::new() }
    }

    /// Stores the message from now on instead of warning, and returns it if the filter is overfull.
    pub fn defer(&self) -> Option<String> {
        self.deferred.store(true, Relaxed);
        self.message.get().cloned()
    }

    /// Warns with this message, or stores it if warnings are [deferred](Self::defer).
    pub fn report(&self, py: Python<'_>, message: String) -> PyResult<()> {
        if !self.deferred.load(Relaxed) {
            return warn(py, message);
        }
        // A message from before `clear` stays.
        self.message.get_or_init(|| message);
        Ok(())
    }
}

/// Warns, with the place of the Python call.
fn warn(py: Python<'_>, message: String) -> PyResult<()> {
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<OverfullWarning>(), &message, 1)
}
