//! A filter that several processes share: its file, and the lock of the file while one of them writes.

use std::io::{Error as IoError, Result as IoResult};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, RwLockWriteGuard, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use super::calls::{Held, Lock, NoFork, detached};
use super::errors::file_error;
use super::filter::Filter;
use lately::filter;
use lately::shared::{self, Locked, SharedFile};

/// The file of a shared filter, and how long a call waits for its lock.
pub struct Shared {
    file: Arc<SharedFile>,
    /// In nanoseconds.
    pub timeout: u64,
    /// When the path was last known to lead to the file, by [`milliseconds`].
    checked: AtomicU64,
}

/// How long a query relies on the last check of the path, in milliseconds.
const CHECKS_EVERY: u64 = 100;

/// Returns the milliseconds since the first shared filter of this process was opened.
fn milliseconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_millis() as u64
}

/// The files that are open here. A child closes those it has inherited.
static OPEN: Lock<Vec<Weak<SharedFile>>> = Lock::new(Vec::new());

impl Shared {
    /// Returns the absolute path that the file was opened by.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Raises an error if the path leads to another file by now: other processes may write to that one. Checks at most
    /// ten times a second, because a check takes several times as long as the query of a key.
    pub fn check_place(&self) -> PyResult<()> {
        let now = milliseconds();
        if now.saturating_sub(self.checked.load(Relaxed)) < CHECKS_EVERY {
            return Ok(());
        }
        self.check_place_now()?;
        self.checked.store(now, Relaxed);
        Ok(())
    }

    /// [`check_place`](Self::check_place), however recent the last check is.
    pub fn check_place_now(&self) -> PyResult<()> {
        self.file.check_place().map_err(|error| self.error(error))
    }

    fn error(&self, error: IoError) -> PyErr {
        file_error(error.into(), self.path())
    }
}

/// A filter to write to, while no other thread and no other process does. The file is released before the filter.
pub struct Writing<'a> {
    _file: Option<Locked<'a>>,
    filter: Held<RwLockWriteGuard<'a, filter::AnyFilter>>,
}

impl<'a> Writing<'a> {
    /// Waits for other processes if the filter is shared, then for other threads. Called detached from the interpreter.
    ///
    /// While it waits for other processes it holds no lock of this one, so that other threads can query, and fork.
    pub fn new(filter: &'a Lock<filter::AnyFilter>, shared: Option<&'a Shared>) -> PyResult<Self> {
        let Some(shared) = shared else { return Ok(Self { _file: None, filter: filter.write() }) };
        let timeout = Duration::from_nanos(shared.timeout);
        let attempt = || {
            let fork = NoFork::new();
            Ok(shared.file.try_lock()?.map(|file| (file, fork)))
        };
        match shared::wait(timeout, &mut look, attempt) {
            Ok(Some((file, fork))) => Ok(Self { _file: Some(file), filter: filter.write_without_fork(fork) }),
            Ok(None) => Err(shared.error(shared.file.timed_out(timeout))),
            Err(error) => Err(shared.error(error)),
        }
    }
}

impl Deref for Writing<'_> {
    type Target = filter::AnyFilter;

    fn deref(&self) -> &filter::AnyFilter {
        &self.filter
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut filter::AnyFilter {
        &mut self.filter
    }
}

/// Lets handlers of signals run; an exception that one of them raises is the error.
pub fn look() -> IoResult<()> {
    Ok(Python::attach(|py| py.check_signals())?)
}

/// Opens the filter at a path, shared by all processes that open it so.
pub fn open(py: Python<'_>, path: &Path, timeout: u64) -> PyResult<(filter::AnyFilter, Shared)> {
    detached(py, || {
        let opened = shared::open_within(path, Duration::from_nanos(timeout), &mut look);
        let (filter, file) = opened.map_err(|error| file_error(error, path))?;
        let file = Arc::new(file);
        let mut all = OPEN.write();
        all.retain(|file| file.strong_count() > 0);
        all.push(Arc::downgrade(&file));
        Ok((filter, Shared { file, timeout, checked: AtomicU64::new(milliseconds()) }))
    })?
}

/// Makes a child close what it inherits: else it would hold locks for a parent that dies. Called after
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

/// Returns the path of the file by which processes share a filter, without links, or `None` for a private one.
#[pyfunction]
pub fn shared_path(filter: &Bound<'_, Filter>) -> Option<PathBuf> {
    let path = filter.get().shared.as_ref()?.path();
    Some(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}
