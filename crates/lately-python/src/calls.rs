//! Calls into the core: detaching from the interpreter, locks that are free after `fork`, and caught panics.
//!
//! No panic reaches Python, where it would not be an `Exception`. A panic is a bug in lately; it is raised as
//! [`InternalError`]. A panic during a write poisons the lock, and every later call raises `InternalError` too.

use std::any::Any;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockResult};

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

create_exception!(
    lately,
    InternalError,
    PyRuntimeError,
    "A bug in lately, not in the code that called it. Please report it, with the message."
);

/// Runs `work` detached from the interpreter.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    caught(|| Ok(py.detach(work)))
}

/// Runs `work`, and returns a panic as an [`InternalError`].
#[inline]
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // What was being written during the panic is behind a lock, which is now poisoned.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal_error(&*panic)))
}

#[cold]
fn internal_error(panic: &(dyn Any + Send)) -> PyErr {
    let message = match panic.downcast_ref::<String>() {
        Some(message) => message,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("unknown error"),
    };
    let version = env!("CARGO_PKG_VERSION");
    InternalError::new_err(format!("{message} (a bug in lately {version}: please report it, with this message)"))
}

/// A read-write lock that no thread holds while the process forks, because no thread of the child would release it.
pub struct Lock<T>(RwLock<T>);

/// Read-locked by every thread that holds a [`Lock`], write-locked by a thread that forks.
static FORKS: RwLock<()> = RwLock::new(());

/// Prevents a fork until it is dropped. A thread must not hold two: the second would wait for a thread that waits to
/// fork.
pub struct ForkGuard(#[expect(dead_code, reason = "a guard")] RwLockReadGuard<'static, ()>);

impl ForkGuard {
    /// Waits until no thread is forking.
    pub fn new() -> Self {
        Self(FORKS.read().unwrap_or_else(PoisonError::into_inner))
    }
}

thread_local! {
    /// The write lock on [`FORKS`] of a thread that forks, in the parent and in the child.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// A held [`Lock`]. The process may fork after it is released.
pub struct LockGuard<G> {
    guard: G,
    _fork: ForkGuard,
}

impl<T> Lock<T> {
    /// Creates an unlocked lock.
    pub const fn new(inner: T) -> Self {
        Self(RwLock::new(inner))
    }

    /// Locks for reading. The caller is detached from the interpreter and holds no other lock; otherwise two threads
    /// could wait for each other.
    pub fn read(&self) -> LockGuard<RwLockReadGuard<'_, T>> {
        let fork = ForkGuard::new();
        LockGuard { guard: self.0.read().unwrap_or_else(poisoned), _fork: fork }
    }

    /// Locks for writing, under the conditions of [`read`](Self::read).
    pub fn write(&self) -> LockGuard<RwLockWriteGuard<'_, T>> {
        self.write_without_fork(ForkGuard::new())
    }

    /// Locks for writing, as [`write`](Self::write) does, in a thread that already prevents a fork.
    pub fn write_without_fork(&self, fork: ForkGuard) -> LockGuard<RwLockWriteGuard<'_, T>> {
        LockGuard { guard: self.0.write().unwrap_or_else(poisoned), _fork: fork }
    }

    /// Locks for reading, or returns an error without waiting. The caller stays attached to the interpreter until it
    /// releases the lock. A thread that forks needs the interpreter, so no [`ForkGuard`] is needed.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.0.try_read()
    }

    /// Locks for writing, or returns an error without waiting, under the conditions of [`try_read`](Self::try_read).
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        self.0.try_write()
    }
}

/// Panics, because a call failed while it wrote behind this lock.
fn poisoned<G>(_: PoisonError<G>) -> G {
    resume_unwind(Box::new("an earlier call failed while it wrote to this object; open or build it again"))
}

impl<G: Deref> Deref for LockGuard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for LockGuard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Makes `os.fork` wait until no thread holds a [`Lock`]. A lock is held for one block of keys at most.
pub fn register_at_fork(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let (before, after) = (wrap_pyfunction!(before_fork, module)?, wrap_pyfunction!(after_fork, module)?);
    let hooks = [("before", &before), ("after_in_parent", &after), ("after_in_child", &after)];
    register.call((), Some(&hooks.into_py_dict(py)?))?;
    Ok(())
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    // A thread that holds a lock may be waiting for the interpreter.
    py.detach(|| FORKING.set(Some(FORKS.write().unwrap_or_else(PoisonError::into_inner))));
}

#[pyfunction]
fn after_fork() {
    FORKING.take();
}
