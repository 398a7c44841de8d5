//! The base class of all filters, which does the work; a family's class in Python constructs it.

mod locking;
mod methods;

use std::sync::RwLockReadGuard;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::batch::Batch;
use super::calls::{Held, Lock, detached};
use super::keys::read_keys;
use super::moments::OwnedMoments;
use super::overfull::LoadMonitor;
use super::shared::{Shared, Writing};
use super::times;
use super::unclaimed::Unclaimed;
use crate::errors::raise;
use lately::clock::{Clock, Window};
use lately::filter;
use lately::key::{KeyHasher, Keys};

/// How often a shared filter is copied without the lock of its file, before the lock is taken.
const ATTEMPTS: usize = 4;

/// What every filter does; `lately.Filter` is its class for users.
#[pyclass(subclass, frozen, module = "lately._core")]
pub struct Filter {
    inner: Lock<filter::AnyFilter>,
    /// Its file, where processes share it.
    pub(super) shared: Option<Shared>,
    /// Hasher and window never change, so nobody needs the lock for them.
    pub(super) hasher: KeyHasher,
    pub(super) window: Window,
    /// A time that was not too far ahead when the system's clock was last asked for one key.
    not_ahead: AtomicI64,
    pub(super) watch: LoadMonitor,
}

impl Filter {
    fn new((filter, shared): (filter::AnyFilter, Option<Shared>)) -> Self {
        let (hasher, window) = (KeyHasher::new(filter.seed()), filter.window());
        let watch = LoadMonitor::new(&filter);
        Self { inner: Lock::new(filter), shared, hasher, window, not_ahead: AtomicI64::new(i64::MIN), watch }
    }

    /// To read; see [`Lock::read`].
    pub fn read(&self) -> Held<RwLockReadGuard<'_, filter::AnyFilter>> {
        self.inner.read()
    }

    /// To write; see [`read`](Self::read).
    pub(super) fn write(&self) -> PyResult<Writing<'_>> {
        Writing::new(&self.inner, self.shared.as_ref())
    }

    /// Returns a copy of this moment; called as [`read`](Self::read).
    pub(super) fn snapshot(&self) -> PyResult<filter::AnyFilter> {
        match &self.shared {
            None => Ok(self.read().clone()),
            Some(shared) => self.shared_snapshot(shared),
        }
    }

    /// Copies a filter that processes share: without the lock of the file unless they write to it all the while.
    #[cold]
    fn shared_snapshot(&self, shared: &Shared) -> PyResult<filter::AnyFilter> {
        shared.check_place_now()?;
        for _ in 0..ATTEMPTS {
            if let Some(copy) = self.read().snapshot().map_err(raise)? {
                return Ok(copy);
            }
        }
        let copy = self.write()?.snapshot().map_err(raise)?;
        copy.ok_or_else(|| PyRuntimeError::new_err("a process writes to the file of this filter without its lock"))
    }

    /// Raises an error if this filter is shared, and its path leads to another file by now.
    #[inline]
    pub(super) fn check_place(&self) -> PyResult<()> {
        self.shared.as_ref().map_or(Ok(()), Shared::check_place)
    }

    /// Reads keys without moments, for a subclass.
    pub(super) fn keys(&self, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
        Ok(Batch::untimed(read_keys(keys, &self.hasher)?))
    }

    /// Reads n moments, which lie within its window or not.
    pub(super) fn moments(&self, at: Option<&Bound<'_, PyAny>>, n: usize) -> PyResult<OwnedMoments> {
        OwnedMoments::read(at, self.window, n)
    }

    /// The length of a window to ask for: a part of its own, or all of it.
    pub(super) fn part(&self, window: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let asked = |window| self.window.part(times::length("window", window, self.window)?).map_err(raise);
        window.map_or(Ok(self.window.length()), asked)
    }

    /// What a subclass alone can ask of its filter; called detached, as [`read`](Self::read).
    pub(super) fn with<T>(&self, ask: impl FnOnce(&filter::AnyFilter) -> T) -> T {
        ask(&self.read())
    }

    pub(super) fn clock(&self, py: Python<'_>) -> PyResult<Clock> {
        match self.inner.try_read() {
            Ok(filter) => Ok(filter.engine().clock()),
            Err(_) => detached(py, || self.read().engine().clock()),
        }
    }

    /// Reads keys and moments, which are refused here or not at all.
    pub(super) fn batch(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        new: bool,
    ) -> PyResult<Batch> {
        self.timed(py, read_keys(keys, &self.hasher)?, at, new)
    }

    /// [`batch`](Self::batch) of keys that are read already.
    pub(super) fn timed(
        &self,
        py: Python<'_>,
        keys: Keys,
        at: Option<&Bound<'_, PyAny>>,
        new: bool,
    ) -> PyResult<Batch> {
        let moments = OwnedMoments::read(at, self.window, keys.len())?;
        let clock = self.clock(py)?;
        moments.check(py, &clock, new)?;
        if new {
            self.watch.begin_if_old(&clock, moments.first());
        }
        Ok(Batch { keys, moments })
    }

    /// Warns, if the filter has just been found to be overfull.
    fn warn_if_overfull(&self, py: Python<'_>) -> PyResult<()> {
        if self.watch.is_over() || !self.watch.is_due(self.clock(py)?.inserted()) {
            return Ok(());
        }
        let message = detached(py, || self.watch.look(&self.read()))?;
        message.map_or(Ok(()), |message| self.watch.say(py, message))
    }

    /// What its keys are counted by.
    pub fn watch(&self) -> &LoadMonitor {
        &self.watch
    }

    /// Asks the system's clock again, since the times of before are forgotten.
    pub(super) fn forget_times(&self) {
        self.not_ahead.store(i64::MIN, Relaxed);
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (built, /))]
    fn made(built: &Unclaimed) -> PyResult<Self> {
        built.take().map(Self::new)
    }
}

/// Panics, while it writes to the filter if there is one: for the tests of the net.
#[pyfunction(name = "_fail", signature = (filter=None))]
pub fn fail(py: Python<'_>, filter: Option<&Bound<'_, Filter>>) -> PyResult<()> {
    let filter = filter.map(Bound::get);
    detached(py, || {
        let _torn = filter.map(Filter::write);
        panic!("as the tests ask")
    })
}
