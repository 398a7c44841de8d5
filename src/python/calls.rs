//! Calls into the core: what lets go of the interpreter, locks that `fork` finds free, and a last net.
//!
//! No panic comes out in Python, where it would be no `Exception`: it is a mistake of ours, and the net makes an
//! [`InternalError`] of it. If it struck while somebody wrote, the lock is poisoned, and every later call says so.

use std::any::Any;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockResult};

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use super::filter::Filter;

create_exception!(
    lately,
    InternalError,
    PyRuntimeError,
    "A mistake of lately itself, not of its caller: please report it, with the message."
);

/// Does `work` with the interpreter let go of.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    caught(|| Ok(py.detach(work)))
}

/// Does `work`; a panic is an error.
#[inline]
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // What was written to when it panicked is behind a lock, which is poisoned.
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

/// A lock that nobody holds while the process forks: in the child nobody would ever let go of it.
pub struct Lock<T>(RwLock<T>);

/// Whoever holds a lock holds this to read; whoever forks, to write.
static FORKS: RwLock<()> = RwLock::new(());

thread_local! {
    /// Held by the thread that forks, in the parent and in the child.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// A lock, held. It is let go of first, and `FORKS` after it.
pub struct Held<G> {
    guard: G,
    _fork: RwLockReadGuard<'static, ()>,
}

impl<T> Lock<T> {
    pub fn new(inner: T) -> Self {
        Self(RwLock::new(inner))
    }

    /// To read. Called detached from the interpreter only, so that no thread waits for it holding the GIL, and by no
    /// thread that holds another.
    pub fn read(&self) -> Held<RwLockReadGuard<'_, T>> {
        let fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
        Held { guard: self.0.read().unwrap_or_else(torn), _fork: fork }
    }

    /// To write; see [`read`](Self::read).
    pub fn write(&self) -> Held<RwLockWriteGuard<'_, T>> {
        let fork = FORKS.read().unwrap_or_else(PoisonError::into_inner);
        Held { guard: self.0.write().unwrap_or_else(torn), _fork: fork }
    }

    /// To read at once, or not at all. Called, and let go of, without letting go of the interpreter: whoever forks holds
    /// that.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.0.try_read()
    }

    /// To write at once, or not at all; see [`try_read`](Self::try_read).
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        self.0.try_write()
    }
}

/// What a poisoned lock is good for.
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

/// Has `os.fork` wait until no lock is held, which takes no longer than a block of keys.
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
    // Those who hold it may be waiting for the interpreter.
    py.detach(|| FORKING.set(Some(FORKS.write().unwrap_or_else(PoisonError::into_inner))));
}

#[pyfunction]
fn after_fork() {
    FORKING.take();
}

/// Fails as a mistake of ours would, while it writes to a filter if there is one: for the tests of the net.
#[pyfunction(name = "_fail", signature = (filter=None))]
pub fn fail(py: Python<'_>, filter: Option<&Bound<'_, Filter>>) -> PyResult<()> {
    let filter = filter.map(Bound::get);
    detached(py, || {
        let _torn = filter.map(Filter::write);
        panic!("as the tests ask")
    })
}
