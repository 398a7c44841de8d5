//! A filter that several processes share: its file, and the lock of it while one of them writes.

use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, RwLockWriteGuard, Weak};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use super::calls::{Held, Lock, detached};
use super::errors::file_error;
use crate::filter;
use crate::format::SaveError;
use crate::shared::{self, Locked, SharedFile};

/// The file of a shared filter.
pub type Shared = Arc<SharedFile>;

/// The files that are open here, so that a child can close what it has inherited of them.
static OPEN: Lock<Vec<Weak<SharedFile>>> = Lock::new(Vec::new());

/// A filter to write to, while no other thread and no other process does. The file is released before the filter.
pub struct Writing<'a> {
    _file: Option<Locked<'a>>,
    filter: Held<RwLockWriteGuard<'a, filter::Filter>>,
}

impl<'a> Writing<'a> {
    /// Waits for other threads, and where processes share the filter for these. Called detached from the interpreter.
    pub fn new(filter: &'a Lock<filter::Filter>, shared: Option<&'a Shared>) -> PyResult<Self> {
        let Some(shared) = shared else { return Ok(Self { _file: None, filter: filter.write() }) };
        loop {
            let filter = filter.write();
            match shared.lock() {
                Ok(locked) => return Ok(Self { _file: Some(locked), filter }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    // Handlers of signals may use the filter.
                    drop(filter);
                    Python::attach(|py| py.check_signals())?;
                }
                Err(error) => return Err(file_error(error.into(), shared.path())),
            }
        }
    }
}

impl Deref for Writing<'_> {
    type Target = filter::Filter;

    fn deref(&self) -> &filter::Filter {
        &self.filter
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut filter::Filter {
        &mut self.filter
    }
}

/// The filter at a path, shared by all processes that open it so, and its file.
pub fn open(py: Python<'_>, path: &Path) -> PyResult<(filter::Filter, Shared)> {
    let (filter, file) = uninterrupted(py, path, || shared::open(path))?;
    let file = Arc::new(file);
    detached(py, || {
        let mut all = OPEN.write();
        all.retain(|file| file.strong_count() > 0);
        all.push(Arc::downgrade(&file));
    })?;
    Ok((filter, file))
}

/// Opens a file, where that may have to wait for another process: until it succeeds, or a signal ends it.
pub fn uninterrupted<T: Send>(
    py: Python<'_>,
    path: &Path,
    open: impl Fn() -> Result<T, SaveError> + Sync,
) -> PyResult<T> {
    loop {
        match detached(py, &open)? {
            Err(SaveError::Io(error)) if error.kind() == ErrorKind::Interrupted => py.check_signals()?,
            opened => return opened.map_err(|error| file_error(error, path)),
        }
    }
}

/// Has a child close what it inherits: else it would hold locks for a parent that dies. To be called after
/// [`calls::register_at_fork`](super::calls::register_at_fork), whose locks are then free.
pub fn register_at_fork(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let hooks = [("after_in_child", wrap_pyfunction!(close_inherited, module)?)];
    register.call((), Some(&hooks.into_py_dict(py)?))?;
    Ok(())
}

#[pyfunction]
fn close_inherited(py: Python<'_>) -> PyResult<()> {
    detached(py, || OPEN.read().iter().filter_map(Weak::upgrade).for_each(|file| file.close_inherited()))
}
