//! A batch of keys on its way through a filter: hashed block by block as needed, with checks for signals.

use std::ops::Range;

use bytemuck::Zeroable;
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;

use super::calls::detached;
use super::moments::OwnedMoments;
use crate::errors::raise;
use lately::Error;
use lately::clock::Moments;
use lately::engine::threads::Chunk;
use lately::key::Keys;
use lately::memory::fallible;
use lately::parallel::share;

/// Keys hashed at a time: their hashes take 32 KiB, two thirds of a first-level cache.
const BLOCK: usize = 4096;
/// Most keys of a batch that acts at once, as a single key does: no thread waits for the interpreter much longer.
const FEW: usize = 64;
/// Keys between two checks for signals, so that Ctrl-C works: some 20 ms. Threads that work in order start anew as
/// often: with a fourth of the keys, masks and insertions of integers by two threads took 6 to 10 % more processor
/// time.
pub const PATIENCE: usize = 1 << 20;

/// An error of work on a batch: of the core, or of Python.
pub trait Failure: Send {
    /// Converts the error into a Python exception.
    fn into_exception(self) -> PyErr;
}

impl Failure for Error {
    fn into_exception(self) -> PyErr {
        raise(self)
    }
}

impl Failure for PyErr {
    fn into_exception(self) -> PyErr {
        self
    }
}

/// Keys that have been read, and as many moments.
pub struct Batch {
    pub keys: Keys,
    pub moments: OwnedMoments,
}

/// A batch that ended early, by an error or a signal.
pub struct Stopped<T> {
    error: PyErr,
    /// The answers so far; missing for queries that several threads share.
    answers: Vec<T>,
}

impl<T> Stopped<T> {
    /// A batch whose keys are all inserted, and whose answers an error keeps from being returned.
    pub fn after(error: PyErr, answers: Vec<T>) -> Self {
        Self { error, answers }
    }

    /// One of which no key has acted.
    pub fn before_all(error: PyErr) -> Self {
        Self { error, answers: Vec::new() }
    }
}

impl<T: Element> Stopped<T> {
    /// The error, with the answers as its attribute: a second call would find the inserted keys and report them.
    pub fn with_answers(self, py: Python<'_>) -> PyErr {
        let done = self.answers.len();
        if done == 0 {
            return self.error;
        }
        let value = self.error.value(py);
        let note = format!("lately: the first {done} keys were inserted; `answers` of this exception are theirs");
        let noted = value.setattr("answers", self.answers.into_pyarray(py));
        match noted.and_then(|()| value.call_method1("add_note", (note,))) {
            Ok(_) => self.error,
            Err(error) => error,
        }
    }
}

impl<T> From<Stopped<T>> for PyErr {
    fn from(stopped: Stopped<T>) -> Self {
        stopped.error
    }
}

impl Batch {
    /// Keys without moments.
    pub fn untimed(keys: Keys) -> Self {
        Self { keys, moments: OwnedMoments::Untimed }
    }

    /// The hashes of its keys.
    pub fn hashes(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        detached(py, || {
            let mut hashes = fallible::zeroed(self.keys.len()).map_err(raise)?;
            for (start, hashes) in (0..).step_by(PATIENCE).zip(hashes.chunks_mut(PATIENCE)) {
                look_at_signals(start)?;
                self.keys.fill(start, hashes);
            }
            Ok(hashes)
        })?
    }

    /// Whether it may act [at once](Self::at_once).
    pub fn is_short(&self) -> bool {
        self.keys.len() <= FEW
    }

    /// `act`'s answers to a short batch, one per key. `act` gets all hashes, their moments and a place for the answers.
    pub fn at_once<T: Zeroable>(
        &self,
        act: impl FnOnce(&[u64], Moments<'_>, &mut [T]) -> Result<(), Error>,
    ) -> Result<Vec<T>, Error> {
        let mut hashes = [0; FEW];
        let hashes = &mut hashes[..self.keys.len()];
        self.keys.fill(0, hashes);
        let mut answers = fallible::zeroed(hashes.len())?;
        act(hashes, self.moments.of(0..hashes.len()), &mut answers)?;
        Ok(answers)
    }

    /// `act`'s answers, one per key. `act` gets a block of hashes, their moments and the place for the answers: block
    /// after block, or on several threads that take the blocks in turn. An error or a signal ends the batch.
    ///
    /// `act` locks the filter. The lock is not held while signals are checked, since their handlers may use the filter.
    pub fn run<T: Zeroable + Send, E: Failure>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&[u64], Moments<'_>, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        let begin = || ();
        self.run_with(py, threads, 1, begin, |(), hashes, _, at, answers| act(hashes, at, answers))
    }

    /// [`run`](Self::run) for work that has to happen in order, as if by one thread: `act` gets a stretch of the keys
    /// at a time, their moments and the place for the answers.
    pub fn run_in_order<T: Zeroable + Send, E: Failure>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&mut Chunk<'_>, Moments<'_>, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        let run = || {
            let mut answers = fallible::zeroed(self.keys.len()).map_err(|error| Stopped::before_all(raise(error)))?;
            let (mut stretch, mut room) = (Chunk::new(threads, &self.keys), Vec::new());
            for start in (0..self.keys.len()).step_by(PATIENCE) {
                let keys = start..self.keys.len().min(start + PATIENCE);
                let hashed = stretch.at(keys.clone());
                let done = look_at_signals(start).and_then(|()| {
                    let at = self.moments.of(keys.clone());
                    let at = if threads > 1 { at.for_all(&mut room).map_err(raise)? } else { at };
                    act(hashed, at, &mut answers[keys]).map_err(E::into_exception)
                });
                if let Err(error) = done {
                    answers.truncate(start);
                    return Err(Stopped { error, answers });
                }
            }
            Ok(answers)
        };
        detached(py, run).map_err(Stopped::before_all)?
    }

    /// [`run`](Self::run) with `width` answers a key, and a state per thread that `begin` makes. `act` also gets the
    /// block's range of keys in the batch.
    pub fn run_with<T: Zeroable + Send, S, E: Failure>(
        &self,
        py: Python<'_>,
        threads: usize,
        width: usize,
        begin: impl Fn() -> S + Sync,
        act: impl Fn(&mut S, &[u64], Range<usize>, Moments<'_>, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        let run = || {
            let len = self.keys.len();
            let answers = len.checked_mul(width).ok_or(Error::Memory { bytes: u64::MAX });
            let mut answers = answers.and_then(fallible::zeroed).map_err(|error| Stopped::before_all(raise(error)))?;
            for start in (0..len).step_by(PATIENCE) {
                let end = len.min(start + PATIENCE);
                let part = &mut answers[start * width..end * width];
                let done = look_at_signals(start).map_err(|error| (start, error)).and_then(|()| {
                    self.blocks(start, width, part, threads, &begin, &act)
                        .map_err(|(done, error)| (done, error.into_exception()))
                });
                if let Err((done, error)) = done {
                    answers.truncate(done * width);
                    return Err(Stopped { error, answers });
                }
            }
            Ok(answers)
        };
        detached(py, run).map_err(Stopped::before_all)?
    }

    /// [`run_with`](Self::run_with) for the keys from `start` on, as many as there are answers. An error comes with the
    /// first key of its block.
    fn blocks<T: Send, S, E: Failure>(
        &self,
        start: usize,
        width: usize,
        answers: &mut [T],
        threads: usize,
        begin: &(impl Fn() -> S + Sync),
        act: &(impl Fn(&mut S, &[u64], Range<usize>, Moments<'_>, &mut [T]) -> Result<(), E> + Sync),
    ) -> Result<(), (usize, E)> {
        let blocks = (start..).step_by(BLOCK).zip(answers.chunks_mut(BLOCK * width));
        let begin = || (begin(), [0; BLOCK]);
        share(threads, blocks, begin, |(own, hashes), (start, answers)| {
            let hashes = &mut hashes[..answers.len() / width];
            self.keys.fill(start, hashes);
            let keys = start..start + hashes.len();
            let at = self.moments.of(keys.clone());
            act(own, hashes, keys, at, answers).map_err(|error| (start, error))
        })
    }
}

/// Lets Ctrl-C end a batch, except at its very beginning.
pub fn look_at_signals(start: usize) -> PyResult<()> {
    if start == 0 {
        return Ok(());
    }
    // Nobody holds the filter's lock here. Where all cores are busy, threads that wait for it would hardly get a turn
    // between two blocks: `f.inserted` once waited for a minute.
    std::thread::yield_now();
    Python::attach(|py| py.check_signals())
}
