//! A batch of keys on its way through a filter: hashed block by block where it is used, with an eye on signals.

use std::ops::Range;

use pyo3::prelude::*;

use super::moments::OwnedMoments;
use crate::Error;
use crate::clock::Moments;
use crate::engine::threads::{Shared, share};
use crate::key::Keys;

/// Keys hashed at a time: their hashes take 32 KiB, two thirds of a first-level cache.
const BLOCK: usize = 4096;
/// Keys that threads hash before they act in order: their hashes take 2 MiB, and it takes threads a hundred times as
/// long as to begin.
const STRETCH: usize = 1 << 18;
/// Keys between two looks at signals, so that Ctrl-C works: some 20 ms.
const PATIENCE: usize = 1 << 20;

/// Keys that have been read, and their moments, which fit them.
pub struct Batch {
    pub keys: Keys,
    pub moments: OwnedMoments,
}

impl Batch {
    /// What `act` answers to each key. It is called with a block of hashes, their moments and the place for the answers;
    /// block after block, or on several threads, which take the blocks in turn. An error or a signal ends it.
    ///
    /// `act` takes the lock of the filter, which is not held while signals are looked at: their handlers may use it.
    pub fn run<T: Clone + Default + Send>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&[u64], Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> PyResult<Vec<T>> {
        let begin = || ();
        self.run_with(py, threads, 1, begin, |(), hashes, _, at, answers| act(hashes, at, answers))
    }

    /// [`run`](Self::run) for what has to be done in order, as if by one thread: `act` is called with a stretch of the
    /// keys at a time, their moments and the place for the answers.
    pub fn run_in_order<T: Clone + Default + Send>(
        &self,
        py: Python<'_>,
        threads: usize,
        act: impl Fn(&mut Shared<'_>, Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> PyResult<Vec<T>> {
        py.detach(|| {
            let mut answers = vec![T::default(); self.keys.len()];
            let (mut shared, mut room) = (Shared::new(threads, &self.keys), Vec::new());
            for (start, answers) in (0..).step_by(STRETCH).zip(answers.chunks_mut(STRETCH)) {
                if start > 0 {
                    Python::attach(|py| py.check_signals())?;
                }
                let keys = start..start + answers.len();
                act(shared.stretch(keys.clone()), self.moments.of(keys, &mut room), answers)?;
            }
            Ok(answers)
        })
    }

    /// [`run`](Self::run) with `width` answers a key, and for each thread something of its own that `begin` makes. `act`
    /// is told which keys of the batch a block has, too.
    pub fn run_with<T: Clone + Default + Send, S>(
        &self,
        py: Python<'_>,
        threads: usize,
        width: usize,
        begin: impl Fn() -> S + Sync,
        act: impl Fn(&mut S, &[u64], Range<usize>, Moments<'_>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> PyResult<Vec<T>> {
        py.detach(|| {
            let len = self.keys.len();
            // Zeros from the allocator, so that whoever writes an answer is the first to touch its page.
            let mut answers = vec![T::default(); len * width];
            for start in (0..len).step_by(PATIENCE) {
                if start > 0 {
                    Python::attach(|py| py.check_signals())?;
                }
                let end = len.min(start + PATIENCE);
                self.stretch(start, width, &mut answers[start * width..end * width], threads, &begin, &act)?;
            }
            Ok(answers)
        })
    }

    /// [`run_with`](Self::run_with) for as many keys from `start` on as there are answers.
    fn stretch<T: Send, S>(
        &self,
        start: usize,
        width: usize,
        answers: &mut [T],
        threads: usize,
        begin: &(impl Fn() -> S + Sync),
        act: &(impl Fn(&mut S, &[u64], Range<usize>, Moments<'_>, &mut [T]) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        let blocks = (start..).step_by(BLOCK).zip(answers.chunks_mut(BLOCK * width));
        let begin = || (begin(), [0; BLOCK], Vec::new());
        share(threads, blocks, begin, |(own, hashes, room), (start, answers)| {
            let hashes = &mut hashes[..answers.len() / width];
            self.keys.fill(start, hashes);
            let keys = start..start + hashes.len();
            act(own, hashes, keys.clone(), self.moments.of(keys, room), answers)
        })
    }
}
