//! Claims of keys: the work of a claimed key is under way, and the key is inserted when it is done.
//!
//! Claims of a private filter are in memory; those of a filter that processes share are [in its file](lately::claims).
//! Every call is one attempt: it returns `None` where another process has the lock of the file. So no call waits, and a
//! signal handler or a coroutine that claims keys finds no claim half taken.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use super::filter::PyFilter;
use super::keys::hash_key;
use super::shared::Shared;
use super::time::moments::{OwnedMoments, present};
use crate::errors::raise;
use lately::claims::Claim;
use lately::clock::{Clock, Moments, Window};
use lately::shared::SharedFile;

/// The claims of a private filter: the number of each claim and the process that took it, by the hash of its key.
#[derive(Default)]
pub struct Claims(Mutex<HashMap<u64, (u64, u32)>>);

impl Claims {
    /// Claims a key, unless it has a claim. Claims of another process are those that a child inherited.
    fn take(&self, hash: u64) -> Option<u64> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = (NUMBERS.fetch_add(1, Relaxed), process);
        match claims.entry(hash) {
            Entry::Occupied(other) if other.get().1 == process => return None,
            Entry::Occupied(mut other) => drop(other.insert(claim)),
            Entry::Vacant(place) => drop(place.insert(claim)),
        }
        Some(claim.0)
    }

    fn end(&self, hash: u64, number: u64) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.get(&hash).is_some_and(|claim| claim.0 == number) {
            claims.remove(&hash);
        }
    }
}

/// What a block holds.
#[derive(Clone, Copy)]
enum Held {
    Nothing,
    InMemory(u64),
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self) -> Moments<'_> {
        self.moments.as_ref().map_or_else(|| present(self.window), |moments| moments.of(0..1))
    }

    /// Returns the file of a shared filter.
    fn file(&self) -> Option<&SharedFile> {
        self.filter.get().shared.as_ref().map(|shared| &*shared.file)
    }

    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        self.filter.get().contains_hash(py, self.hash, self.at())
    }

    fn taken(&self, held: Held) -> &'static str {
        *self.lock() = held;
        "first"
    }

    /// Claims the key in the file of a shared filter; `None` where another process has its lock.
    fn take_in_file(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.filter.get().try_write(py, |guard| {
            let mut seen = [false];
            guard.engine().query(&[self.hash], self.at(), &mut seen).map_err(raise)?;
            if seen[0] {
                return Ok("done");
            }
            let places = self.file().map_or(&[][..], SharedFile::claims);
            let claim = guard.claim(places, self.hash, self.lease).map_err(raise)?;
            Ok(claim.map_or("busy", |claim| self.taken(Held::InFile(claim))))
        })
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
        distinct: bool,
        lease: u64,
    ) -> PyResult<Self> {
        let hasher = filter.get().hasher;
        let hash = hash_key(key, &hasher)?;
        let distinct = distinct && hash == hasher.missing();
        let clock = filter.get().clock(py)?;
        let (window, moments) = (clock.window(), OwnedMoments::read(at, clock.window(), 1)?);
        moments.check(py, &clock, true)?;
        let moments = at.map(|_| moments);
        let (process, held) = (std::process::id(), Mutex::new(Held::Nothing));
        Ok(Self { filter: filter.clone().unbind(), hash, moments, window, distinct, lease, process, held })
    }

    /// Claim the key: return "first", "done" or "busy", or None where another process has the lock of the file.
    fn take(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        if self.distinct {
            return Ok(Some(self.taken(Held::Missing)));
        }
        if self.is_done(py)? {
            return Ok(Some("done"));
        }
        let PyFilter { shared, claims, .. } = self.filter.get();
        if shared.is_some() {
            return self.take_in_file(py);
        }
        let Some(number) = claims.take(self.hash) else { return Ok(Some("busy")) };
        // The block that held the last claim may have inserted the key since.
        match self.is_done(py) {
            Ok(false) => Ok(Some(self.taken(Held::InMemory(number)))),
            done => {
                claims.end(self.hash, number);
                done.map(|_| Some("done"))
            }
        }
    }

    /// Insert the key and return True; return None where another process has the lock of the file, and False if the
    /// claim is lost.
    fn insert(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let (filter, mut held) = (self.filter.get(), self.held());
        match &mut held {
            Held::Nothing => return Ok(Some(false)),
            Held::Missing => {}
            Held::InFile(claim) => {
                let renewed = filter.try_write(py, |guard| {
                    // Only if no other process has claimed the key since.
                    if !self.file().is_some_and(|file| claim.renew(file.claims(), self.lease)) {
                        return Ok(false);
                    }
                    *self.lock() = Held::InFile(*claim);
                    let at = accepted(&guard.engine().clock(), self.at());
                    guard.engine_mut().insert(&[self.hash], at).map_err(raise)?;
                    Ok(true)
                })?;
                if renewed == Some(true) {
                    filter.warn_if_overfull(py)?;
                }
                return Ok(renewed);
            }
            Held::InMemory(_) => filter.insert_hash(py, self.hash, |clock| accepted(clock, self.at()))?,
        }
        Ok(Some(true))
    }

    /// Begin the lease anew. Return False if the claim is lost.
    fn renew(&self) -> bool {
        match (self.file(), self.held()) {
            (_, Held::Nothing) => false,
            (Some(file), Held::InFile(mut claim)) => {
                let renewed = claim.renew(file.claims(), self.lease);
                if renewed {
                    *self.lock() = Held::InFile(claim);
                }
                renewed
            }
            _ => true,
        }
    }

    /// bool: True if another process has claimed the key meanwhile.
    #[getter]
    fn lost(&self) -> bool {
        match (self.file(), self.held()) {
            (Some(file), Held::InFile(claim)) => claim.is_lost(file.claims()),
            (_, held) => matches!(held, Held::Nothing),
        }
    }

    /// End the claim, if there is one. Waits for no process.
    fn end(&self) {
        match (self.file(), self.held()) {
            (Some(file), Held::InFile(claim)) => claim.end(file.claims()),
            (_, Held::InMemory(number)) => self.filter.get().claims.end(self.hash, number),
            _ => {}
        }
        if self.process == std::process::id() {
            *self.lock() = Held::Nothing;
        }
    }

    /// Raise the error of a call that did not get the lock of the file in time.
    fn timed_out(&self) -> PyResult<()> {
        let no_lock = || PyTimeoutError::new_err("only a filter that processes share has a lock to wait for");
        Err(self.filter.get().shared.as_ref().map_or_else(no_lock, Shared::timed_out))
    }

    /// float: seconds that a call waits for the lock of the file.
    #[getter]
    fn timeout(&self) -> f64 {
        self.filter.get().shared.as_ref().map_or(0.0, |shared| shared.timeout as f64 / 1e9)
    }
}

impl Drop for KeyClaim {
    /// Ends a claim whose block never began, for example because a signal handler raised.
    fn drop(&mut self) {
        self.end();
    }
}
