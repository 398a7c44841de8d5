//! Calls into the core: detaching from the interpreter, locks that are free after `fork`, and a last safety net.
//!
//! No panic reaches Python, where it would be no `Exception`. A panic is a bug in lately, and the net turns it into an
//! [`InternalError`]. If it strikes during a write, the lock is poisoned, and every later call says so.

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
    "A mistake of lately itself, not of its caller: please report it, with the message."
);

/// Does `work` detached from the interpreter.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    caught(|| Ok(py.detach(work)))
}

/// Does `work`; a panic is an error.
#[inline]
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // Anything being written during a panic is behind a lock, which is now poisoned.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal_error(&*panic)))
}

#[cold]
fn internal_error(panic: &(dyn Any + Send)) -> PyErr {
    let message = match panic.downcast_ref::<String>() {
        Some(message) => message,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("no reason was given"),
    };
    let version = env!("CARGO_PKG_VERSION");
    InternalError::new_err(format!("{message} (a mistake in lately {version}: please report it, with this message)"))
}

/// A lock that no thread holds while the process forks: in the child no thread would release it.
pub struct Lock<T>(RwLock<T>);

/// A thread with a lock holds this for reading; a thread that forks holds it for writing.
static FORKS: RwLock<()> = RwLock::new(());

/// Keeps the process from forking until it is dropped. A thread takes it once, since a second time would wait for a
/// thread that waits to fork.
pub struct NoFork(#[expect(dead_code, reason = "a guard")] RwLockReadGuard<'static, ()>);

impl NoFork {
    /// Waits for a thread that forks, which takes no longer than the fork.
    pub fn new() -> Self {
        Self(FORKS.read().unwrap_or_else(PoisonError::into_inner))
    }
}

thread_local! {
    /// Held by the thread that forks, in the parent and in the child.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// A lock that is held, released before the process may fork.
pub struct Held<G> {
    guard: G,
    _fork: NoFork,
}

impl<T> Lock<T> {
    pub const fn new(inner: T) -> Self {
        Self(RwLock::new(inner))
    }

    /// Waits for the lock, to read. Only called detached from the interpreter, so that no thread waits for the lock
    /// while it holds the GIL, and by no thread that holds another lock.
    pub fn read(&self) -> Held<RwLockReadGuard<'_, T>> {
        let fork = NoFork::new();
        Held { guard: self.0.read().unwrap_or_else(torn), _fork: fork }
    }

    /// Waits for the lock, to write; see [`read`](Self::read).
    pub fn write(&self) -> Held<RwLockWriteGuard<'_, T>> {
        self.write_without_fork(NoFork::new())
    }

    /// [`write`](Self::write) for a thread that keeps the process from forking already.
    pub fn write_without_fork(&self, fork: NoFork) -> Held<RwLockWriteGuard<'_, T>> {
        Held { guard: self.0.write().unwrap_or_else(torn), _fork: fork }
    }

    /// Takes the lock at once, to read, or returns an error. Called and released without detaching from the
    /// interpreter, which a thread that forks needs.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.0.try_read()
    }

    /// Takes the lock at once, to write, or returns an error; see [`try_read`](Self::try_read).
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        self.0.try_write()
    }
}

/// Handles a poisoned lock.
fn torn<G>(_: PoisonError<G>) -> G {
    resume_unwind(Box::new("an earlier call failed while it wrote to this object, which is no longer to be trusted"))
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Makes `os.fork` wait until no lock is held, which takes no longer than a block of keys.
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
