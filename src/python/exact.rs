//! The exact window, as the one-liners use it.

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::batch::{Batch, Stopped};
use super::calls::{Lock, caught, detached};
use super::keys::{Hashes, hash_key};
use super::missing::Missing;
use super::moments::OwnedMoments;
use super::seeds::{GivenSeed, secret};
use super::spans::read_span;
use super::times;
use super::whole::{Threads, Whole};
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::engine::Refresh;
use crate::engine::threads::Stretch;
use crate::exact;
use crate::key::{KeyHasher, Keys, Seed};

const NEEDS_AT: &str = "a window of time needs at: when each key was seen";

/// The exact window behind `duplicated`, `drop_duplicates` and `unique`: which keys were seen lately, without slack and
/// without a rate, but for keys of one 64-bit hash.
#[pyclass(frozen, module = "lately._core")]
pub struct Exact {
    inner: Lock<exact::Exact>,
    window: Window,
    refresh: Refresh,
    missing: Missing,
    hasher: KeyHasher,
    /// The hash of keys that are like no other.
    unlike: Option<u64>,
}

impl Exact {
    fn of(window: Window, refresh: Refresh, missing: Missing, seed: Seed) -> PyResult<Self> {
        let (hasher, unlike) = missing.hashing(KeyHasher::new(seed));
        Ok(Self { inner: Lock::new(exact::Exact::new(window)?), window, refresh, missing, hasher, unlike })
    }

    fn run<'py>(&self, py: Python<'py>, batch: &Batch, threads: Threads) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let act = |hashes: &[u64], at: Moments<'_>, seen: &mut [bool]| {
            self.inner.write().duplicated(hashes, at, self.refresh, self.unlike, seen)
        };
        let seen: Result<Vec<bool>, Stopped<bool>> = match threads.0 {
            1 => batch.run(py, 1, act),
            threads => {
                batch.run_in_order(py, threads, |keys: &mut Stretch<'_>, at, seen| act(keys.hashes()?, at, seen))
            }
        };
        Ok(seen?.into_pyarray(py))
    }

    /// Refuses times that step back too far from the latest.
    fn check(&self, py: Python<'_>, moments: &OwnedMoments) -> PyResult<()> {
        let latest = detached(py, || self.inner.read().latest())?;
        let clock = Clock::new(self.window, 1).with_ahead(None).resumed(0, latest);
        moments.check(py, &clock, true)
    }
}

#[pymethods]
impl Exact {
    #[new]
    #[pyo3(signature = (window, *, lateness=None, refresh=Refresh::Always, missing=Missing::Same, seed),
        text_signature = "(window, *, lateness=None, refresh=True, missing='same', seed)")]
    fn new(
        window: &Bound<'_, PyAny>,
        lateness: Option<&Bound<'_, PyAny>>,
        refresh: Refresh,
        missing: Missing,
        seed: GivenSeed,
    ) -> PyResult<Self> {
        let capacity = if times::counts(window)? { None } else { Some(Whole::new(1)) };
        Self::of(times::window(window, capacity, lateness)?, refresh, missing, seed.0)
    }

    /// Whether a key was seen lately; it is remembered then.
    #[pyo3(signature = (key, *, at=None))]
    fn seen(&self, py: Python<'_>, key: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        if at.is_some() {
            self.check(py, &moments)?;
        }
        let see = |exact: &mut exact::Exact| -> Result<bool, Error> {
            let mut seen = [false];
            exact.duplicated(&[hash], moments.of(0..1), self.refresh, self.unlike, &mut seen)?;
            Ok(seen[0])
        };
        caught(|| match self.inner.try_write() {
            Ok(mut exact) => Ok(see(&mut exact)?),
            tried => {
                drop(tried);
                Ok(py.detach(|| see(&mut self.inner.write()))?)
            }
        })
    }

    /// The same of a batch, in order.
    #[pyo3(signature = (keys, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, threads=1)")]
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        if at.is_none() && matches!(self.window, Window::Time { .. }) {
            return Err(PyTypeError::new_err(NEEDS_AT));
        }
        let keys = self.missing.read_keys(keys, self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, keys.len())?;
        self.check(py, &moments)?;
        self.run(py, &Batch { keys, moments }, threads)
    }
}

/// `lately.duplicated` without a filter: the window and the lateness are those of these keys.
#[pyfunction]
#[pyo3(signature = (keys, window, *, at, refresh, missing, seed, threads))]
pub fn duplicated_exactly<'py>(
    keys: &Bound<'py, PyAny>,
    window: &Bound<'_, PyAny>,
    at: Option<&Bound<'_, PyAny>>,
    refresh: Refresh,
    missing: Missing,
    seed: &Bound<'_, PyAny>,
    threads: Threads,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let py = keys.py();
    let hashes = keys.cast::<Hashes>().ok();
    let seed = match hashes {
        Some(hashes) if seed.eq("random").unwrap_or(false) => hashes.get().seed_of(),
        _ => seed.extract::<GivenSeed>()?.0,
    };
    let span = match at {
        Some(_) => Some(read_span(window, "window")?),
        None if times::counts(window)? => None,
        None => {
            read_span(window, "window")?;
            return Err(PyTypeError::new_err(NEEDS_AT));
        }
    };
    let mut read = missing.read_keys(keys, missing.hashing(KeyHasher::new(seed)).0)?;
    if hashes.is_some() {
        read = spread(read)?;
    }
    let (window, moments) = match span {
        // Nothing beyond the column itself needs to be remembered.
        None if window.gt(read.len())? => {
            (Window::Count { insertions: read.len().max(1) as u64 }, OwnedMoments::Untimed)
        }
        None => (times::window(window, None, None)?, OwnedMoments::Untimed),
        Some(span) => {
            let timed = Window::Time { span, lateness: 0, capacity: 1 };
            let moments = OwnedMoments::read(at, timed, read.len())?;
            moments.warn_of_dates(py)?;
            (Window::Time { span, lateness: moments.steps_back(), capacity: 1 }, moments)
        }
    };
    let exact = Exact::of(window, refresh, missing, seed)?;
    exact.run(py, &Batch { keys: read, moments }, threads)
}

/// Hashes spread by a secret. The table puts keys where their hashes say; hashes of a user's own making may lie close
/// together, or have been chosen to, and would crowd there.
fn spread(keys: Keys) -> PyResult<Keys> {
    let [first, second] = secret()?.map(|word| word | 1);
    // Each step can be undone: different hashes stay different.
    Ok(keys.mapped(move |hash| {
        let mixed = hash.wrapping_mul(first);
        (mixed ^ mixed >> 32).wrapping_mul(second)
    }))
}
