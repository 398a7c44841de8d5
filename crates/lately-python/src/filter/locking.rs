//! How a filter is asked and changed: at once for one key or a few, detached and block by block for a batch.

use std::sync::atomic::Ordering::Relaxed;

use bytemuck::Zeroable;
use pyo3::prelude::*;

use super::Filter;
use crate::batch::{Batch, Stopped};
use crate::calls::caught;
use crate::errors::raise;
use crate::moments::{OwnedMoments, now};
use crate::whole::Threads;
use lately::Error;
use lately::clock::Moments;
use lately::engine::Refresh;
use lately::engine::threads::Chunk;
use lately::filter;

/// Bytes of cells up to which one key may be inserted without letting go of the interpreter. The worst that it may do
/// is to copy or clear them all, which takes some 2 ms; a thread that waits for the interpreter gives others 5.
const SMALL: usize = 8 << 20;

impl Filter {
    /// Asks about one key or a few: at once where the cells are few and nobody writes to them, since to detach and come
    /// back takes longer, some 50 ns, and much more while other threads compute; else detached.
    pub(super) fn ask_now<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl Fn(&filter::AnyFilter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        self.check_place()?;
        caught(|| match self.inner.try_read() {
            Ok(filter) if is_small(&filter) => Ok(ask(&filter).map_err(raise)?),
            tried => {
                drop(tried);
                Ok(py.detach(|| ask(&self.read())).map_err(raise)?)
            }
        })
    }

    /// Changes one key or a few, as [`ask_now`](Self::ask_now) asks.
    pub(super) fn change_now<T: Send>(
        &self,
        py: Python<'_>,
        change: impl Fn(&mut filter::AnyFilter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        caught(|| match self.inner.try_write() {
            // No other process is waited for here.
            Ok(mut filter) if is_small(&filter) && self.shared.is_none() => change(&mut filter).map_err(raise),
            tried => {
                drop(tried);
                py.detach(|| change(&mut *self.write()?).map_err(raise))
            }
        })
    }

    /// Asks about a batch.
    pub(super) fn ask_batch<T: Zeroable + Send>(
        &self,
        py: Python<'_>,
        batch: &Batch,
        threads: usize,
        ask: impl Fn(&filter::AnyFilter, &[u64], Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> PyResult<Vec<T>> {
        match batch.is_short() {
            true => self.ask_now(py, |filter| batch.at_once(|hashes, at, answers| ask(filter, hashes, at, answers))),
            false => {
                self.check_place()?;
                Ok(batch.run(py, threads, |hashes, at, answers| ask(&self.read(), hashes, at, answers))?)
            }
        }
    }

    /// Changes the keys of a batch, in order.
    pub(super) fn change_batch<T: Zeroable + Send>(
        &self,
        py: Python<'_>,
        batch: &Batch,
        change: impl Fn(&mut filter::AnyFilter, &[u64], Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        match batch.is_short() {
            true => {
                let change = |filter: &mut filter::AnyFilter| {
                    batch.at_once(|hashes, at, answers| change(filter, hashes, at, answers))
                };
                self.change_now(py, change).map_err(Stopped::before_all)
            }
            false => {
                batch.run(py, 1, |hashes, at, answers| change(&mut *self.write()?, hashes, at, answers).map_err(raise))
            }
        }
    }

    /// What `duplicated` answers.
    pub fn judge(&self, py: Python<'_>, batch: &Batch, refresh: Refresh, threads: Threads) -> PyResult<Vec<bool>> {
        let seen: Result<Vec<bool>, Stopped<bool>> = if threads.0 > 1 {
            let engine = |keys: &mut Chunk<'_>, at: Moments<'_>, seen: &mut [bool]| {
                self.write()?.engine_mut().duplicated_shared(keys, at, refresh, seen).map_err(raise)
            };
            batch.run_in_order(py, threads.0, engine)
        } else {
            self.change_batch(py, batch, |filter, hashes, at, seen| {
                filter.engine_mut().duplicated(hashes, at, refresh, seen)
            })
        };
        let seen = seen.map_err(|stopped| stopped.with_answers(py))?;
        match self.warn_if_overfull(py) {
            Ok(()) => Ok(seen),
            Err(error) => Err(Stopped::after(error, seen).with_answers(py)),
        }
    }

    /// Refuses the time of one key if it lies too far ahead of the system's clock, which is looked at no more often
    /// than it has to be: it takes a quarter of the time of a key.
    pub(super) fn check_one(&self, py: Python<'_>, moments: &OwnedMoments) -> PyResult<()> {
        let &OwnedMoments::At(moment) = moments else { return Ok(()) };
        if moment <= self.not_ahead.load(Relaxed) {
            return Ok(());
        }
        let clock = self.clock(py)?;
        let now = now();
        clock.check_new(Moments::At(moment), now).map_err(raise)?;
        self.not_ahead.store(clock.until(now), Relaxed);
        Ok(())
    }
}

fn is_small(filter: &filter::AnyFilter) -> bool {
    filter.engine().words().as_slice().len() <= SMALL / 8
}
