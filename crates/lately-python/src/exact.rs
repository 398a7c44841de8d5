//! The exact window: the class behind `lately.ExactFilter`, and the call behind the one-liners.

use std::sync::{Mutex, PoisonError};

use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::{Missing, SeedArgument, parse_refresh, public_seed, random_secret};
use super::batch::{Batch, Stopped};
use super::calls::{Lock, caught, detached};
use super::claims::Claims;
use super::errors::file_error;
use super::figures;
use super::files::FileArgument;
use super::keys::{Hashes, hash_key};
use super::time::moments::{OwnedMoments, present};
use super::time::span::read_span;
use super::time::window::{self, read_max_ahead};
use super::whole::{Threads, WholeNumber};
use crate::arrays::{array_of, import_numpy};
use crate::errors::raise;
use lately::clock::{Clock, Moments, Window};
use lately::engine::Refresh;
use lately::engine::threads::Chunk;
use lately::family::exact;
use lately::format::exact::{Saved, Written};
use lately::key::{KeyHasher, Keys, Seed};
use lately::{Error, format};

/// The exact window of `lately.ExactFilter` and of the one-liners. It has no slack and no false positives, except for
/// keys with equal 64-bit hashes.
#[pyclass(name = "ExactFilter", frozen, subclass, module = "lately._core")]
pub struct PyExactFilter {
    inner: Lock<exact::Exact>,
    window: Window,
    missing: Missing,
    pub hasher: KeyHasher,
    /// The hash of keys that equal no other key.
    unequal: Option<u64>,
    pub claims: Claims,
}

/// The state of an exact window that was opened or copied, for one call of `ExactFilter.__new__`.
#[pyclass(frozen, module = "lately._core")]
pub struct ExactState(Mutex<Option<Saved>>);

impl PyExactFilter {
    fn of(saved: Saved) -> Self {
        let missing = if saved.distinct { Missing::Distinct } else { Missing::Same };
        let (hasher, unequal) = missing.hashing(KeyHasher::new(saved.seed));
        let window = saved.exact.window();
        Self { inner: Lock::new(saved.exact), window, missing, hasher, unequal, claims: Claims::default() }
    }

    /// Returns a copy of the state.
    fn state(&self) -> Saved {
        let distinct = self.missing == Missing::Distinct;
        Saved { exact: self.inner.read().clone(), distinct, seed: self.hasher.seed() }
    }

    /// Reads the state in its saved form.
    fn written(&self) -> PyResult<Written> {
        Written::of(&self.inner.read(), self.missing == Missing::Distinct, self.hasher.seed()).map_err(raise)
    }

    /// Reads keys and moments, and checks the moments against the clock. With `new` they are to be inserted.
    fn batch(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        new: bool,
    ) -> PyResult<Batch> {
        let keys = self.missing.read_keys(keys, self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, keys.len())?;
        moments.check(py, &self.clock(py)?, new)?;
        Ok(Batch { keys, moments })
    }

    fn run<'py>(
        &self,
        py: Python<'py>,
        batch: &Batch,
        refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        import_numpy(py)?; // before the keys are inserted
        let duplicated = |hashes: &[u64], at: Moments<'_>, seen: &mut [bool]| {
            self.duplicated_in(&mut self.inner.write(), hashes, at, refresh, seen)
        };
        let seen: Result<Vec<bool>, Stopped<bool>> = match threads.0 {
            1 => batch.run(py, 1, duplicated),
            threads => {
                batch.run_in_order(py, threads, |keys: &mut Chunk<'_>, at, seen| duplicated(keys.hashes()?, at, seen))
            }
        };
        array_of(py, seen.map_err(|stopped| stopped.with_answers(py))?)
    }

    /// Looks up and inserts a block of keys. Returns an error if another thread moved the clock past their times.
    fn duplicated_in(
        &self,
        exact: &mut exact::Exact,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        if matches!(self.window, Window::Time { .. }) {
            exact.clock().check(at, true)?;
        }
        exact.duplicated(hashes, at, refresh, self.unequal, seen)
    }

    pub fn clock(&self, py: Python<'_>) -> PyResult<Clock> {
        match self.inner.try_read() {
            Ok(exact) => Ok(exact.clock()),
            Err(_) => detached(py, || self.inner.read().clock()),
        }
    }

    /// Returns whether a key was seen within the window.
    pub fn contains_hash(&self, py: Python<'_>, hash: u64, at: Moments<'_>) -> PyResult<bool> {
        self.write_short(py, |exact| {
            let mut seen = [false];
            exact.query(&[hash], at, self.unequal, &mut seen)?;
            Ok(seen[0])
        })
    }

    /// Inserts a key at the moment that `at` chooses by the clock.
    pub fn insert_hash<'a>(
        &self,
        py: Python<'_>,
        hash: u64,
        at: impl Fn(&Clock) -> Moments<'a> + Sync,
    ) -> PyResult<()> {
        self.write_short(py, |exact| {
            let at = at(&exact.clock());
            self.duplicated_in(exact, &[hash], at, Refresh::Always, &mut [false])
        })
    }

    /// Runs short work on the window. If another thread has the lock, this one waits detached from the interpreter.
    fn write_short<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&mut exact::Exact) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        caught(|| match self.inner.try_write() {
            Ok(mut exact) => work(&mut exact).map_err(raise),
            tried => {
                drop(tried);
                py.detach(|| work(&mut self.inner.write())).map_err(raise)
            }
        })
    }
}

#[pymethods]
impl PyExactFilter {
    #[new]
    #[pyo3(signature = (window, *, lateness=None, max_ahead=None, missing=Missing::Same, seed=None),
        text_signature = "(window, *, lateness=None, max_ahead=None, missing='same', seed=0)")]
    fn new(
        window: &Bound<'_, PyAny>,
        lateness: Option<&Bound<'_, PyAny>>,
        max_ahead: Option<&Bound<'_, PyAny>>,
        missing: Missing,
        seed: Option<SeedArgument>,
    ) -> PyResult<Self> {
        if let Ok(state) = window.cast::<ExactState>() {
            let state = state.get().0.lock().unwrap_or_else(PoisonError::into_inner).take();
            let owned = || PyValueError::new_err("another object owns this exact window already; copy() that one");
            return state.map(Self::of).ok_or_else(owned);
        }
        let capacity = if window::is_count(window)? { None } else { Some(WholeNumber::new(1)) };
        let window = window::read(window, capacity, lateness)?;
        let max_ahead = read_max_ahead(max_ahead)?.unwrap_or(window.default_max_ahead());
        let exact = exact::Exact::new(window).map_err(raise)?.with_max_ahead(max_ahead);
        let seed = seed.map_or(Seed::Public(0), |seed| seed.0);
        Ok(Self::of(Saved { exact, distinct: missing == Missing::Distinct, seed }))
    }

    #[pyo3(signature = (key, *, at=None, refresh=Refresh::Always),
        text_signature = "($self, key, *, at=None, refresh=True)")]
    fn seen(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
    ) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        if at.is_some() {
            moments.check(py, &self.clock(py)?, true)?;
        }
        self.write_short(py, |exact| {
            let mut seen = [false];
            self.duplicated_in(exact, &[hash], moments.of(0..1), refresh, &mut seen)?;
            Ok(seen[0])
        })
    }

    #[pyo3(signature = (key, *, at=None))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.seen(py, key, at, Refresh::Always).map(|_| ())
    }

    #[pyo3(signature = (keys, *, at=None, refresh=Refresh::Always, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, refresh=True, threads=1)")]
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let batch = self.batch(py, keys, at, true)?;
        self.run(py, &batch, refresh, threads)
    }

    #[pyo3(signature = (keys, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, threads=1)")]
    fn insert(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        threads: Threads,
    ) -> PyResult<()> {
        let batch = self.batch(py, keys, at, true)?;
        self.run(py, &batch, Refresh::Always, threads).map(|_| ())
    }

    #[pyo3(signature = (keys, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, threads=1)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let batch = self.batch(py, keys, at, false)?;
        let seen: Vec<bool> = batch.run(py, threads.0, |hashes: &[u64], at, seen: &mut [bool]| {
            self.inner.read().query(hashes, at, self.unequal, seen)
        })?;
        array_of(py, seen)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains_hash(py, hash_key(key, &self.hasher)?, present(self.window))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || self.inner.read().count(present(self.window)))
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            let mut exact = self.inner.write();
            *exact = exact.cleared().map_err(raise)?;
            Ok(())
        })?
    }

    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        figures::length(py, self.window, self.window.length())
    }

    #[getter]
    fn lateness(&self) -> Option<f64> {
        figures::lateness(self.window)
    }

    #[getter]
    fn max_ahead(&self) -> Option<f64> {
        figures::max_ahead(&self.inner.read().clock())
    }

    #[getter]
    fn latest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        figures::latest(py, &self.clock(py)?)
    }

    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.inner.read().inserted())
    }

    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || self.inner.read().nbytes())
    }

    #[getter]
    fn missing(&self) -> &'static str {
        if self.missing == Missing::Distinct { "distinct" } else { "same" }
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        public_seed(self.hasher.seed())
    }

    fn save(&self, py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let file = FileArgument::read(file, "write")?;
        detached(py, || {
            let written = self.written()?;
            match file {
                FileArgument::Path(path) => {
                    format::exact::save(&written, &path).map_err(|error| file_error(error, &path))
                }
                FileArgument::Object(mut file) => Ok(written.write(&mut file)?),
            }
        })?
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let written = detached(py, || self.written())??;
        PyBytes::new_with(py, written.nbytes(), |mut bytes| Ok(written.write(&mut bytes)?))
    }

    /// Returns a copy of the state, for another object.
    fn _state_copy(&self, py: Python<'_>) -> PyResult<ExactState> {
        detached(py, || ExactState(Mutex::new(Some(self.state()))))
    }
}

/// Creates the Python object of an exact window that was opened.
pub fn wrap(py: Python<'_>, saved: Saved) -> PyResult<Py<PyAny>> {
    let class = py.import("lately.filters")?.getattr("ExactFilter")?;
    let base = py.get_type::<PyExactFilter>();
    Ok(base.call_method1("__new__", (class, ExactState(Mutex::new(Some(saved)))))?.unbind())
}

/// Computes `lately.duplicated` with an exact window, for times in order. Its greatest size is that of these keys.
#[pyfunction]
#[pyo3(signature = (keys, window, *, at, refresh, missing, seed, threads))]
pub fn duplicated_exactly<'py>(
    keys: &Bound<'py, PyAny>,
    window: &Bound<'_, PyAny>,
    at: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
    missing: Missing,
    seed: &Bound<'_, PyAny>,
    threads: Threads,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let py = keys.py();
    let hashes = keys.cast::<Hashes>().ok();
    let seed = match hashes {
        Some(hashes) if seed.eq("random").unwrap_or(false) => hashes.get().key_seed(),
        _ => seed.extract::<SeedArgument>()?.0,
    };
    let span = match at {
        Some(_) => Some(read_span(window, "window")?),
        None if window::is_count(window)? => None,
        None => {
            read_span(window, "window")?;
            return Err(PyTypeError::new_err("a window of time needs at: when each key was seen"));
        }
    };
    let mut read = missing.read_keys(keys, missing.hashing(KeyHasher::new(seed)).0)?;
    if hashes.is_some() {
        read = scatter_hashes(read)?;
    }
    let (window, moments) = match span {
        // No more keys than these need to be stored.
        None if window.gt(read.len())? => {
            (Window::Count { insertions: read.len().max(1) as u64 }, OwnedMoments::Untimed)
        }
        None => (window::read(window, None, None)?, OwnedMoments::Untimed),
        Some(span) => {
            let timed = Window::Time { span, lateness: 0, capacity: 1 };
            (timed, OwnedMoments::read(at, timed, read.len())?)
        }
    };
    let exact = exact::Exact::new(window).map_err(raise)?.with_max_ahead(None);
    let exact = PyExactFilter::of(Saved { exact, distinct: missing == Missing::Distinct, seed });
    exact.run(py, &Batch { keys: read, moments }, refresh, threads)
}

/// Scatters hashes by a secret. The table places keys by their hashes. Hashes of a caller may lie close together, by
/// chance or because an attacker chose them, and would fill a part of the table.
fn scatter_hashes(keys: Keys) -> PyResult<Keys> {
    let [first, second] = random_secret()?.map(|word| word | 1);
    // Each step is reversible, so different hashes stay different.
    Ok(keys.mapped(move |hash| {
        let mixed = hash.wrapping_mul(first);
        (mixed ^ mixed >> 32).wrapping_mul(second)
    }))
}
