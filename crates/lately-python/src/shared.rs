//! The file of a filter that several processes share, and its lock while one of them writes.

use std::io::{Error as IoError, Result as IoResult};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, RwLockWriteGuard, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use super::calls::{ForkGuard, Lock, LockGuard, detached};
use super::errors::file_error;
use lately::Error;
use lately::claims::Claim;
use lately::family::AnyFilter;
use lately::lock::wait;
use lately::memory::mapped::Place;
use lately::shared::{self, Locked, SharedFile};

/// The open file of a shared filter.
pub struct Shared {
    pub file: Arc<SharedFile>,
    /// How long a call waits for the lock, in nanoseconds.
    pub timeout: u64,
    /// When the path was last checked, by [`milliseconds`].
    checked: AtomicU64,
}

/// How long queries rely on a check of the path, in milliseconds.
const CHECK_INTERVAL: u64 = 100;

/// Returns the milliseconds since the first shared filter of this process was opened.
fn milliseconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_millis() as u64
}

/// The shared files that this process has open. A child closes the ones it inherits.
static OPEN: Lock<Vec<Weak<SharedFile>>> = Lock::new(Vec::new());

impl Shared {
    /// Returns the absolute path that the file was opened by.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Raises an error if the path now leads to another file, to which other processes may write. Checks at most ten
    /// times a second, because a check takes several times as long as the query of a key.
    pub fn check_path(&self) -> PyResult<()> {
        let now = milliseconds();
        if now.saturating_sub(self.checked.load(Relaxed)) < CHECK_INTERVAL {
            return Ok(());
        }
        self.check_path_now()?;
        self.checked.store(now, Relaxed);
        Ok(())
    }

    /// Raises an error if the path now leads to another file, without relying on an earlier check.
    pub fn check_path_now(&self) -> PyResult<()> {
        self.file.check_place().map_err(|error| self.error(error))
    }

    /// Returns the error of a call that did not get the lock of the file in time.
    pub fn timed_out(&self) -> PyErr {
        self.error(self.file.timed_out(Duration::from_nanos(self.timeout)))
    }

    fn error(&self, error: IoError) -> PyErr {
        file_error(error.into(), self.path())
    }
}

/// A filter that is locked for writing against other threads, and if shared against other processes. The lock of the
/// file is released first.
pub struct WriteGuard<'a> {
    file: Option<Locked<'a>>,
    filter: LockGuard<RwLockWriteGuard<'a, AnyFilter>>,
}

impl<'a> WriteGuard<'a> {
    /// Waits for other processes if the filter is shared, then for other threads. The caller is detached from the
    /// interpreter. While this thread waits for other processes it holds no lock: other threads can query and fork.
    pub fn new(filter: &'a Lock<AnyFilter>, shared: Option<&'a Shared>) -> PyResult<Self> {
        let timeout = Duration::from_nanos(shared.map_or(0, |shared| shared.timeout));
        let timed_out =
            || shared.map_or_else(|| unreachable!("without a file nothing is waited for"), Shared::timed_out);
        Self::within(filter, shared, timeout)?.ok_or_else(timed_out)
    }

    /// Locks as [`new`](Self::new) does, or returns `None` if other processes have the file for longer than `timeout`.
    pub fn within(
        filter: &'a Lock<AnyFilter>,
        shared: Option<&'a Shared>,
        timeout: Duration,
    ) -> PyResult<Option<Self>> {
        let Some(shared) = shared else { return Ok(Some(Self { file: None, filter: filter.write() })) };
        let attempt = || {
            let fork = ForkGuard::new();
            Ok(shared.file.try_lock()?.map(|file| (file, fork)))
        };
        match wait(timeout, &mut check_signals, attempt) {
            Ok(Some((file, fork))) => Ok(Some(Self { file: Some(file), filter: filter.write_without_fork(fork) })),
            Ok(None) => Ok(None),
            Err(error) => Err(shared.error(error)),
        }
    }

    /// Claims a key in the places of a shared file, unless it has a claim.
    pub fn claim(&mut self, places: &[Place], hash: u64, lease: u64) -> Result<Option<Claim>, Error> {
        self.file.as_mut().map_or(Ok(None), |file| file.claim(places, hash, lease))
    }
}

impl Deref for WriteGuard<'_> {
    type Target = AnyFilter;

    fn deref(&self) -> &AnyFilter {
        &self.filter
    }
}

impl DerefMut for WriteGuard<'_> {
    fn deref_mut(&mut self) -> &mut AnyFilter {
        &mut self.filter
    }
}

/// Runs signal handlers, and returns an exception that one of them raises.
pub fn check_signals() -> IoResult<()> {
    Ok(Python::attach(|py| py.check_signals())?)
}

/// Opens the filter at a path, shared with all processes that open it like this. `timeout` is in nanoseconds.
pub fn open(py: Python<'_>, path: &Path, timeout: u64) -> PyResult<(AnyFilter, Shared)> {
    detached(py, || {
        let opened = shared::open_within(path, Duration::from_nanos(timeout), &mut check_signals);
        let (filter, file) = opened.map_err(|error| file_error(error, path))?;
        let file = Arc::new(file);
        let mut all = OPEN.write();
        all.retain(|file| file.strong_count() > 0);
        all.push(Arc::downgrade(&file));
        Ok((filter, Shared { file, timeout, checked: AtomicU64::new(milliseconds()) }))
    })?
}

/// Makes a child process close the files it inherits; otherwise it would hold the locks of a parent that dies. Call it
/// after [`calls::register_at_fork`](super::calls::register_at_fork), so that locks are free when a child runs this.
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
