//! The base class of all filters. The class of a family, in Python, adds its constructor and what it alone can answer.

mod attributes;
mod batches;
mod claimed;
mod locking;
mod merge;
pub mod object;
pub mod output;
pub mod overfull;
mod saving;
pub mod state;

use std::sync::RwLockReadGuard;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::batch::Batch;
use super::calls::{Lock, LockGuard, detached};
use super::keys::read_keys;
use super::shared::{Shared, WriteGuard};
use super::time::moments::OwnedMoments;
use super::time::window;
use crate::errors::raise;
use claimed::Claims;
use lately::clock::{Clock, Window};
use lately::family::AnyFilter;
use lately::key::{KeyHasher, Keys};
use overfull::LoadMonitor;
use state::FilterState;

/// How long a call waits that must not: the loop of a coroutine stands still meanwhile.
const MOMENT: Duration = Duration::from_millis(2);

/// How often a shared filter is copied without the lock of its file, before the lock is taken.
const ATTEMPTS: usize = 4;

/// What every filter does; `lately.Filter` is its class for users.
#[pyclass(name = "Filter", subclass, frozen, module = "lately._core")]
pub struct PyFilter {
    inner: Lock<AnyFilter>,
    /// The file of a shared filter.
    pub shared: Option<Shared>,
    /// Hasher and window never change, so they are read without the lock.
    pub hasher: KeyHasher,
    pub window: Window,
    /// The latest event time that a comparison with the system's clock has accepted.
    accepted_until: AtomicI64,
    load: LoadMonitor,
    pub claims: Claims,
}

impl PyFilter {
    /// Creates the object of a private filter, or of a filter in a shared file.
    pub fn of(filter: AnyFilter, shared: Option<Shared>) -> Self {
        let (hasher, window, load) = (filter.hasher(), filter.window(), LoadMonitor::new(&filter));
        let accepted_until = AtomicI64::new(i64::MIN);
        Self { inner: Lock::new(filter), shared, hasher, window, accepted_until, load, claims: Claims::default() }
    }

    /// Locks the filter for reading, under the conditions of [`Lock::read`].
    pub fn read(&self) -> LockGuard<RwLockReadGuard<'_, AnyFilter>> {
        self.inner.read()
    }

    /// Locks the filter for writing, and its file if it is shared, under the conditions of [`Lock::read`].
    fn write(&self) -> PyResult<WriteGuard<'_>> {
        WriteGuard::new(&self.inner, self.shared.as_ref())
    }

    /// Runs `work` if the lock of the filter's file is free within a moment; returns `None` if another process has it.
    pub fn try_write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut WriteGuard<'_>) -> PyResult<T> + Send,
    ) -> PyResult<Option<T>> {
        detached(py, || {
            WriteGuard::within(&self.inner, self.shared.as_ref(), MOMENT)?.map(|mut guard| work(&mut guard)).transpose()
        })?
    }

    /// Returns a copy of the present state, under the conditions of [`Lock::read`].
    pub fn snapshot(&self) -> PyResult<AnyFilter> {
        match &self.shared {
            None => Ok(self.read().clone()),
            Some(shared) => self.shared_snapshot(shared),
        }
    }

    /// Copies a shared filter. The lock of its file is taken only if other processes write during every attempt.
    #[cold]
    fn shared_snapshot(&self, shared: &Shared) -> PyResult<AnyFilter> {
        shared.check_path_now()?;
        for _ in 0..ATTEMPTS {
            if let Some(copy) = self.read().snapshot().map_err(raise)? {
                return Ok(copy);
            }
        }
        let mut ours = self.write()?;
        ours.engine_mut().catch_up().map_err(raise)?;
        let copy = ours.snapshot().map_err(raise)?;
        copy.ok_or_else(|| PyRuntimeError::new_err("a process writes to the file of this filter without its lock"))
    }

    /// Raises an error if the path of a shared filter now leads to another file.
    #[inline]
    fn check_path(&self) -> PyResult<()> {
        self.shared.as_ref().map_or(Ok(()), Shared::check_path)
    }

    /// Reads keys without moments.
    pub fn keys(&self, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
        Ok(Batch::untimed(read_keys(keys, &self.hasher)?))
    }

    /// Reads the `window=` of a query: at most the filter's own, which is the default.
    fn query_window(&self, window: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let read = |window| self.window.part(window::length("window", window, self.window)?).map_err(raise);
        window.map_or(Ok(self.window.length()), read)
    }

    /// Calls `read` with the filter, under the conditions of [`Lock::read`].
    pub fn with<T>(&self, read: impl FnOnce(&AnyFilter) -> T) -> T {
        read(&self.read())
    }

    /// Returns the number of keys so far.
    fn keys_so_far(&self, py: Python<'_>) -> PyResult<u64> {
        match self.inner.try_read() {
            Ok(filter) => Ok(filter.engine().inserted()),
            Err(_) => detached(py, || self.read().engine().inserted()),
        }
    }

    /// Returns a copy of the filter's clock.
    pub fn clock(&self, py: Python<'_>) -> PyResult<Clock> {
        match self.inner.try_read() {
            Ok(filter) => Ok(filter.engine().clock()),
            Err(_) => detached(py, || self.read().engine().clock()),
        }
    }

    /// Reads keys and moments, and checks the moments against the filter's clock. With `new` they are to be inserted.
    pub fn batch(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        new: bool,
    ) -> PyResult<Batch> {
        self.batch_of(py, read_keys(keys, &self.hasher)?, at, new)
    }

    /// Reads and checks the moments of keys, as [`batch`](Self::batch) does.
    pub fn batch_of(&self, py: Python<'_>, keys: Keys, at: Option<&Bound<'_, PyAny>>, new: bool) -> PyResult<Batch> {
        let moments = OwnedMoments::read(at, self.window, keys.len())?;
        if !matches!(moments, OwnedMoments::Untimed) {
            let clock = self.clock(py)?;
            moments.check(py, &clock, new)?;
            if new {
                self.load.restart_if_expired(&clock, moments.first(&clock));
            }
        }
        Ok(Batch { keys, moments })
    }

    /// Warns once if the filter holds more keys than it was planned for.
    pub fn warn_if_overfull(&self, py: Python<'_>) -> PyResult<()> {
        if self.load.is_idle() || !self.load.is_due(self.keys_so_far(py)?) {
            return Ok(());
        }
        let message = detached(py, || self.load.check(&self.read()))?;
        message.map_or(Ok(()), |message| self.load.report(py, message))
    }

    /// Forgets which event times were accepted, so that the next is compared with the system's clock.
    fn forget_times(&self) {
        self.accepted_until.store(i64::MIN, Relaxed);
    }
}

#[pymethods]
impl PyFilter {
    #[new]
    #[pyo3(signature = (built, /))]
    fn new(built: &FilterState) -> PyResult<Self> {
        let (filter, shared) = built.take()?;
        Ok(Self::of(filter, shared))
    }
}

/// Panics, during a write to the filter if one is given. The tests of caught panics call it.
#[pyfunction(name = "_fail", signature = (filter=None))]
pub fn fail(py: Python<'_>, filter: Option<&Bound<'_, PyFilter>>) -> PyResult<()> {
    let filter = filter.map(Bound::get);
    detached(py, || {
        let _written = filter.map(PyFilter::write);
        panic!("requested by a test")
    })
}
