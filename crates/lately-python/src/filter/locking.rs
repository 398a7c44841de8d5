//! Reads and writes under the filter's lock: at once for a few keys, detached and block by block for a batch.

use std::sync::atomic::Ordering::Relaxed;

use bytemuck::Zeroable;
use pyo3::prelude::*;

use super::PyFilter;
use crate::batch::{Batch, Stopped};
use crate::calls::caught;
use crate::errors::raise;
use crate::time::moments::OwnedMoments;
use crate::whole::Threads;
use lately::Error;
use lately::clock::{Clock, Moments, Window};
use lately::engine::threads::Chunk;
use lately::engine::{Insertion, Refresh};
use lately::family::AnyFilter;

/// Greatest number of bytes that an insertion may write without detaching from the interpreter: most filters copy or
/// clear all cells at worst, which takes some 2 ms; the interpreter itself switches threads every 5 ms.
const SMALL: usize = 8 << 20;

impl PyFilter {
    /// Reads the answers to a few keys. If the cells are few and no thread writes to them, it stays attached to the
    /// interpreter: to detach and attach again takes some 50 ns, and much more while other threads compute.
    pub(super) fn read_short<T: Send>(
        &self,
        py: Python<'_>,
        read: impl Fn(&AnyFilter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        self.check_path()?;
        caught(|| match self.inner.try_read() {
            Ok(filter) if is_small(&filter) => Ok(read(&filter).map_err(raise)?),
            tried => {
                drop(tried);
                Ok(py.detach(|| read(&self.read())).map_err(raise)?)
            }
        })
    }

    /// Writes a few keys, and stays attached to the interpreter as [`read_short`](Self::read_short) does.
    pub(super) fn write_short<T: Send>(
        &self,
        py: Python<'_>,
        write: impl Fn(&mut AnyFilter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        caught(|| match self.inner.try_write() {
            // A shared filter waits for other processes, which is done detached.
            Ok(mut filter) if is_small(&filter) && self.shared.is_none() => write(&mut filter).map_err(raise),
            tried => {
                drop(tried);
                py.detach(|| write(&mut *self.write()?).map_err(raise))
            }
        })
    }

    /// Returns whether the filter contains a key.
    #[inline]
    pub fn contains_hash(&self, py: Python<'_>, hash: u64, at: Moments<'_>) -> PyResult<bool> {
        self.read_short(py, |filter| filter.engine().contains_one(hash, at))
    }

    /// Inserts a key at the moment that `at` chooses by the filter's clock.
    #[inline]
    pub fn insert_hash<'a>(
        &self,
        py: Python<'_>,
        hash: u64,
        at: impl Fn(&Clock) -> Moments<'a> + Sync,
    ) -> PyResult<()> {
        let inserted = self.write_short(py, |filter| {
            let at = match self.window {
                Window::Count { .. } => Moments::Untimed,
                Window::Time { .. } => at(&filter.engine().clock()),
            };
            filter.engine_mut().insert_one(hash, at)?;
            Ok(filter.engine().inserted())
        })?;
        if self.load.is_due(inserted) { self.warn_if_overfull(py) } else { Ok(()) }
    }

    /// Reads the answers to a batch.
    pub(super) fn read_batch<T: Zeroable + Send>(
        &self,
        py: Python<'_>,
        batch: &Batch,
        threads: usize,
        read: impl Fn(&AnyFilter, &[u64], Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> PyResult<Vec<T>> {
        match batch.is_short() {
            true => {
                self.read_short(py, |filter| batch.run_short(|hashes, at, answers| read(filter, hashes, at, answers)))
            }
            false => {
                self.check_path()?;
                Ok(batch.run(py, threads, |hashes, at, answers| read(&self.read(), hashes, at, answers))?)
            }
        }
    }

    /// Writes the keys of a batch in order, and returns the answers.
    pub(super) fn write_batch<T: Zeroable + Send>(
        &self,
        py: Python<'_>,
        batch: &Batch,
        write: impl Fn(&mut AnyFilter, &[u64], Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        match batch.is_short() {
            true => {
                let write =
                    |filter: &mut AnyFilter| batch.run_short(|hashes, at, answers| write(filter, hashes, at, answers));
                self.write_short(py, write).map_err(Stopped::before_all)
            }
            false => {
                batch.run(py, 1, |hashes, at, answers| write(&mut *self.write()?, hashes, at, answers).map_err(raise))
            }
        }
    }

    /// Returns for each key in order whether it was inserted within the window, and inserts it.
    pub fn duplicated_batch(
        &self,
        py: Python<'_>,
        batch: &Batch,
        refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Vec<bool>> {
        let seen: Result<Vec<bool>, Stopped<bool>> = if threads.0 > 1 {
            let engine = |keys: &mut Chunk<'_>, at: Moments<'_>, seen: &mut [bool]| {
                let insertion = Insertion { at, refresh: Some(refresh), seen };
                self.write()?.engine_mut().process_shared(keys, insertion).map_err(raise)
            };
            batch.run_in_order(py, threads.0, engine)
        } else {
            self.write_batch(py, batch, |filter, hashes, at, seen| {
                filter.engine_mut().duplicated(hashes, at, refresh, seen)
            })
        };
        let seen = seen.map_err(|stopped| stopped.with_answers(py))?;
        match self.warn_if_overfull(py) {
            Ok(()) => Ok(seen),
            Err(error) => Err(Stopped::after(error, seen).with_answers(py)),
        }
    }

    /// Rejects the time of one key if it lies too far ahead of the system's clock. Earlier times than an accepted one
    /// are accepted without reading the clock, which would take a quarter of the time of a key.
    pub(super) fn check_ahead(&self, py: Python<'_>, moments: &OwnedMoments) -> PyResult<()> {
        let &OwnedMoments::At(moment) = moments else { return Ok(()) };
        if moment <= self.accepted_until.load(Relaxed) {
            return Ok(());
        }
        let until = self.clock(py)?.check_new(Moments::At(moment)).map_err(raise)?;
        self.accepted_until.store(until, Relaxed);
        Ok(())
    }
}

fn is_small(filter: &AnyFilter) -> bool {
    filter.engine().most_written() <= SMALL
}
