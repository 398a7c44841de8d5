//! Claims of keys: the work of a claimed key is under way, and the key is inserted when it is done.
//!
//! Claims of a private filter are in memory; those of a filter that processes share are [in its file](lately::claims).
//! Every call is one attempt: it returns `None` where another process has the lock of the file. So no call waits, and a
//! signal handler or a coroutine that claims keys finds no claim half taken.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::Missing;
use super::filter::PyFilter;
use super::keys::hash_key;
use super::shared::WriteGuard;
use super::time::moments::{OwnedMoments, present};
use super::time::span::read_span;
use crate::errors::raise;
use lately::claims::Claim;
use lately::clock::{Clock, Moments, Window};
use lately::memory::mapped::Place;

/// The claim that a block of `once` holds.
#[derive(Clone, Copy)]
enum Held {
    Nothing,
    InMemory,
    InFile(Claim),
    /// A missing key, which no other block can have.
    Missing,
}

/// The claim of one key, for `lately.Claim`.
#[pyclass(frozen, module = "lately._core")]
pub struct KeyClaim {
    filter: Py<PyFilter>,
    hash: u64,
    /// The time of the event, if the caller passed one.
    moments: Option<OwnedMoments>,
    window: Window,
    distinct: bool,
    lease: u64,
    process: u32,
    held: Mutex<Held>,
    /// float: seconds to wait while another block holds a claim of the key.
    #[pyo3(get)]
    wait: f64,
}

/// Returns a moment that the clock accepts: the latest where the given one is too late by now.
fn accepted<'a>(clock: &Clock, at: Moments<'a>) -> Moments<'a> {
    match (clock.check(at, true), clock.latest()) {
        (Err(_), Some(latest)) => Moments::At(latest),
        _ => at,
    }
}

impl KeyClaim {
    fn held(&self) -> Held {
        // A child of a fork inherits the claim of its parent, and must not end it.
        if self.process == std::process::id() { *self.lock() } else { Held::Nothing }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self) -> Moments<'_> {
        self.moments.as_ref().map_or_else(|| present(self.window), |moments| moments.of(0..1))
    }

    /// Returns the places for claims in the file of a shared filter.
    fn places(&self) -> &[Place] {
        self.filter.get().shared.as_ref().map_or(&[], |shared| shared.file.claims())
    }

    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        self.filter.get().contains_hash(py, self.hash, self.at())
    }

    fn taken(&self, held: Held) -> &'static str {
        *self.lock() = held;
        "first"
    }

    /// Runs `act` under the lock of the file; returns `None` where another process has it, until `waited` seconds are
    /// more than a call waits.
    fn locked<T: Send>(
        &self,
        py: Python<'_>,
        waited: f64,
        act: impl FnOnce(&mut WriteGuard<'_>) -> PyResult<T> + Send,
    ) -> PyResult<Option<T>> {
        let filter = self.filter.get();
        match (filter.try_write(py, act)?, &filter.shared) {
            (None, Some(shared)) if waited * 1e9 > shared.timeout as f64 => Err(shared.timed_out()),
            (done, _) => Ok(done),
        }
    }
}

#[pymethods]
impl KeyClaim {
    #[new]
    fn new(
        py: Python<'_>,
        filter: &Bound<'_, PyFilter>,
        key: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        wait: Option<&Bound<'_, PyAny>>,
        lease: &Bound<'_, PyAny>,
        missing: Missing,
    ) -> PyResult<Self> {
        let wait = wait.map_or(Ok(0), |wait| read_span(wait, "wait"))? as f64 / 1e9;
        let lease = match read_span(lease, "lease")? {
            0 => return Err(PyValueError::new_err(format!("lease must be longer than zero, got {lease}"))),
            lease => lease,
        };
        let hasher = filter.get().hasher;
        let hash = hash_key(key, &hasher)?;
        let distinct = missing == Missing::Distinct && hash == hasher.missing();
        let clock = filter.get().clock(py)?;
        let (window, moments) = (clock.window(), OwnedMoments::read(at, clock.window(), 1)?);
        moments.check(py, &clock, true)?;
        let moments = at.map(|_| moments);
        let (process, held) = (std::process::id(), Mutex::new(Held::Nothing));
        Ok(Self { filter: filter.clone().unbind(), hash, moments, window, distinct, lease, process, held, wait })
    }

    /// Claim the key: return "first", "done" or "busy", or None where another process has the lock of the file.
    /// `waited` is the time of earlier attempts, in seconds.
    fn take(&self, py: Python<'_>, waited: f64) -> PyResult<Option<&'static str>> {
        let PyFilter { shared, claims, .. } = self.filter.get();
        if self.distinct {
            return Ok(Some(self.taken(Held::Missing)));
        }
        if self.is_done(py)? {
            return Ok(Some("done"));
        }
        if shared.is_some() {
            return self.locked(py, waited, |guard| {
                let mut seen = [false];
                guard.engine().query(&[self.hash], self.at(), &mut seen).map_err(raise)?;
                if seen[0] {
                    return Ok("done");
                }
                let claim = guard.claim(self.places(), self.hash, self.lease).map_err(raise)?;
                Ok(claim.map_or("busy", |claim| self.taken(Held::InFile(claim))))
            });
        }
        if !claims.own().1.insert(self.hash) {
            return Ok(Some("busy"));
        }
        let taken = self.taken(Held::InMemory);
        // The block that held the last claim may have inserted the key since.
        match self.is_done(py) {
            Ok(false) => Ok(Some(taken)),
            done => {
                self.end();
                done.map(|_| Some("done"))
            }
        }
    }

    /// Insert the key and return True; return None where another process has the lock of the file, and False if the
    /// claim is lost. `waited` is the time of earlier attempts, in seconds.
    fn insert(&self, py: Python<'_>, waited: f64) -> PyResult<Option<bool>> {
        let filter = self.filter.get();
        match self.held() {
            Held::Nothing => return Ok(Some(false)),
            Held::Missing => {}
            Held::InMemory => filter.insert_hash(py, self.hash, |clock| accepted(clock, self.at()))?,
            Held::InFile(_) => {
                let inserted = self.locked(py, waited, |guard| {
                    // Only if no other process has claimed the key since.
                    if !self.renew() {
                        return Ok(false);
                    }
                    let at = accepted(&guard.engine().clock(), self.at());
                    guard.engine_mut().insert(&[self.hash], at).map_err(raise)?;
                    Ok(true)
                })?;
                if inserted == Some(true) {
                    filter.warn_if_overfull(py)?;
                }
                return Ok(inserted);
            }
        }
        Ok(Some(true))
    }

    /// Begin the lease anew. Return False if the claim is lost.
    fn renew(&self) -> bool {
        match self.held() {
            Held::InFile(mut claim) => {
                let renewed = claim.renew(self.places(), self.lease);
                *self.lock() = Held::InFile(claim);
                renewed
            }
            held => !matches!(held, Held::Nothing),
        }
    }

    /// bool: True if another process has claimed the key meanwhile.
    #[getter]
    fn lost(&self) -> bool {
        match self.held() {
            Held::InFile(claim) => claim.is_lost(self.places()),
            held => matches!(held, Held::Nothing),
        }
    }

    /// End the claim, if there is one. Waits for no process.
    fn end(&self) {
        let held = self.held();
        *self.lock() = Held::Nothing;
        match held {
            Held::InFile(claim) => claim.end(self.places()),
            Held::InMemory => drop(self.filter.get().claims.own().1.remove(&self.hash)),
            Held::Nothing | Held::Missing => {}
        }
    }
}

impl Drop for KeyClaim {
    /// Ends a claim whose block never began, for example because a signal handler raised.
    fn drop(&mut self) {
        self.end();
    }
}
