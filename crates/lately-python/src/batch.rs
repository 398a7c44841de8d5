//! Runs an operation over a batch of keys, which are hashed block by block, and checks for signals in between.

use std::ops::Range;

use bytemuck::Zeroable;
use numpy::Element;
use pyo3::prelude::*;

use super::calls::detached;
use super::time::moments::OwnedMoments;
use crate::arrays::array_of;
use crate::errors::raise;
use lately::Error;
use lately::clock::Moments;
use lately::engine::threads::Chunk;
use lately::key::Keys;
use lately::memory::fallible;
use lately::parallel::share;

/// Number of keys that are hashed at a time. Their hashes take 32 KiB, two thirds of a first-level cache.
const BLOCK: usize = 4096;
/// Greatest number of keys of a short batch, which runs attached to the interpreter as a single key does.
const MAX_SHORT: usize = 64;
/// Number of keys between two checks for signals such as Ctrl-C, some 20 ms. Threads that work in order are started as
/// often. With a fourth of the keys, masks and insertions of integers by two threads took 6 to 10 % more CPU time.
const SIGNAL_INTERVAL: usize = 1 << 20;

/// An error of an operation on a batch: of the core, or of Python.
pub trait BatchError: Send {
    /// Converts the error into a Python exception.
    fn into_exception(self) -> PyErr;
}

impl BatchError for Error {
    fn into_exception(self) -> PyErr {
        raise(self)
    }
}

impl BatchError for PyErr {
    fn into_exception(self) -> PyErr {
        self
    }
}

/// Keys that were read, and their moments.
pub struct Batch {
    pub keys: Keys,
    pub moments: OwnedMoments,
}

/// A batch that an error or a signal stopped.
pub struct Stopped<T> {
    error: PyErr,
    /// The answers before the stop. Empty for queries that several threads share.
    answers: Vec<T>,
}

impl<T> Stopped<T> {
    /// Creates the stop of a batch after all its keys were inserted.
    pub fn after(error: PyErr, answers: Vec<T>) -> Self {
        Self { error, answers }
    }

    /// Creates the stop of a batch before any of its keys was inserted.
    pub fn before_all(error: PyErr) -> Self {
        Self { error, answers: Vec::new() }
    }
}

impl<T: Element> Stopped<T> {
    /// Returns the error with the answers as its attribute. A second call would report the inserted keys as repeats.
    pub fn with_answers(self, py: Python<'_>) -> PyErr {
        let done = self.answers.len();
        if done == 0 {
            return self.error;
        }
        let value = self.error.value(py);
        let note = format!(
            "lately: the first {done} keys were inserted; the attribute `answers` of this exception has their answers"
        );
        let noted = array_of(py, self.answers).and_then(|answers| value.setattr("answers", answers));
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
    /// Creates a batch of keys without moments.
    pub fn untimed(keys: Keys) -> Self {
        Self { keys, moments: OwnedMoments::Untimed }
    }

    /// Returns the hashes of all keys.
    pub fn hashes(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        detached(py, || {
            let mut hashes = fallible::zeroed(self.keys.len()).map_err(raise)?;
            for (start, hashes) in (0..).step_by(SIGNAL_INTERVAL).zip(hashes.chunks_mut(SIGNAL_INTERVAL)) {
                check_signals_between(start)?;
                self.keys.fill(start, hashes);
            }
            Ok(hashes)
        })?
    }

    /// Returns whether [`run_short`](Self::run_short) accepts the batch.
    pub fn is_short(&self) -> bool {
        self.keys.len() <= MAX_SHORT
    }

    /// Runs `act` on a short batch, and returns its answers, one for each key. Its arguments are all hashes, their
    /// moments and the answers to write.
    pub fn run_short<T: Zeroable>(
        &self,
        act: impl FnOnce(&[u64], Moments<'_>, &mut [T]) -> Result<(), Error>,
    ) -> Result<Vec<T>, Error> {
        let mut hashes = [0; MAX_SHORT];
        let hashes = &mut hashes[..self.keys.len()];
        self.keys.fill(0, hashes);
        let mut answers = fallible::zeroed(hashes.len())?;
        act(hashes, self.moments.of(0..hashes.len()), &mut answers)?;
        Ok(answers)
    }

    /// Runs `act` block by block, and returns its answers, one for each key. Its arguments are a block of hashes, their
    /// moments and the answers to write. With several threads, each takes the next block. An error or a signal stops
    /// the batch.
    ///
    /// `act` locks the filter. The lock is not held while signals are checked, because handlers may use the filter.
    pub fn run<T: Zeroable + Send, E: BatchError>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&[u64], Moments<'_>, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        let begin = || ();
        self.run_with(py, threads, 1, begin, |(), hashes, _, at, answers| act(hashes, at, answers))
    }

    /// Runs `act` chunk by chunk, for an operation in which the order of keys matters, and returns its answers. Its
    /// arguments are a chunk of the keys, which it may divide among threads, their moments and the answers to write.
    pub fn run_in_order<T: Zeroable + Send, E: BatchError>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&mut Chunk<'_>, Moments<'_>, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, Stopped<T>> {
        let run = || {
            let mut answers = fallible::zeroed(self.keys.len()).map_err(|error| Stopped::before_all(raise(error)))?;
            let (mut chunk, mut room) = (Chunk::new(threads, &self.keys), Vec::new());
            for start in (0..self.keys.len()).step_by(SIGNAL_INTERVAL) {
                let keys = start..self.keys.len().min(start + SIGNAL_INTERVAL);
                let hashed = chunk.at(keys.clone());
                let done = check_signals_between(start).and_then(|()| {
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

    /// Runs `act` as [`run`](Self::run) does, with `width` answers for each key. Its arguments are also a state of the
    /// thread, which `begin` creates, and the range of the block's keys in the batch.
    pub fn run_with<T: Zeroable + Send, S, E: BatchError>(
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
            for start in (0..len).step_by(SIGNAL_INTERVAL) {
                let end = len.min(start + SIGNAL_INTERVAL);
                let part = &mut answers[start * width..end * width];
                let done = check_signals_between(start).map_err(|error| (start, error)).and_then(|()| {
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

    /// Runs `act` as [`run_with`](Self::run_with) does, for the keys from `start` on that `answers` has room for. An
    /// error is returned with the first key of its block.
    fn blocks<T: Send, S, E: BatchError>(
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

/// Runs signal handlers between two blocks of a batch, so that Ctrl-C stops it. Does nothing before the first block.
fn check_signals_between(start: usize) -> PyResult<()> {
    if start == 0 {
        return Ok(());
    }
    // This thread does not hold the filter's lock here. Where all cores are busy, threads that wait for the lock would
    // seldom get it between two blocks: `f.inserted` once waited for a minute.
    std::thread::yield_now();
    Python::attach(|py| py.check_signals())
}
