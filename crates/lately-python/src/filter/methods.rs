//! The calls of every filter, with their texts.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::Filter;
use crate::arrays::array_of;
use crate::batch::Stopped;
use crate::errors::raise;
use crate::keys::hash_key;
use crate::moments::{OwnedMoments, now};
use crate::whole::Threads;
use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::engine::threads::Chunk;
use lately::filter;

#[pymethods]
impl Filter {
    /// Insert keys, in order.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When they were seen, for a window of time: numbers are Unix seconds, or datetimes. The default is now, or
    ///     `latest` where that is later. Times may step back by at most `lateness`; a late key is taken as of the
    ///     latest time seen. They may lie ahead of the system's clock by at most `max_ahead`.
    /// threads : int, default 1
    ///     How many threads share the batch; the filter is the same afterwards, bit for bit. All of them hash. In the
    ///     line layout they insert side by side, each into pages of its own; into any other layout one of them does.
    ///     Keys that are Python objects are hashed by one.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it. Nothing was inserted then.
    /// ValueError
    ///     If `at` is missing a time, steps back or lies ahead too far, or does not fit `keys`, or if `threads` is less
    ///     than 1. Nothing was inserted then.
    ///
    /// Notes
    /// -----
    /// Ctrl-C stops between blocks of keys: those before it are inserted.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b"])
    /// >>> f.inserted
    /// 2
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
        if threads.0 > 1 {
            let engine = |keys: &mut Chunk<'_>, at: Moments<'_>, _: &mut [()]| {
                self.write()?.engine_mut().insert_shared(keys, at).map_err(raise)
            };
            batch.run_in_order(py, threads.0, engine)?;
        } else {
            self.change_batch(py, &batch, |filter, hashes, at, _: &mut [()]| filter.engine_mut().insert(hashes, at))?;
        }
        self.warn_if_overfull(py)
    }

    /// Tell which keys were inserted within the window.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When to ask for, for a window of time: numbers are Unix seconds, or datetimes. The default is now, or
    ///     `latest` where that is later, or where every key so far has come with a time of its own. The filter stays as
    ///     it is.
    /// window : int or span of time, optional
    ///     A shorter window to ask about, in the unit of the filter's own, which is the default. For filters that know
    ///     how old keys are: `AgedQuotientFilter` and `TimingBloomFilter`. Every key of this window is reported, and a
    ///     key may be reported for an epoch, or block, of the filter after it has left it.
    /// threads : int, default 1
    ///     How many threads share the batch, in blocks of 4096 keys; the answers are the same. Keys that are Python
    ///     objects are hashed by one of them.
    ///
    /// Returns
    /// -------
    /// ndarray of bool, shape (n,)
    ///     True for every key of the window, and with probability at most `fpr` for a key never inserted, or gone for
    ///     longer than window + slack.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As `insert`; ValueError also if `window` is longer than the filter's own, or the filter knows no ages.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b"])
    /// >>> f.query(["a", "b", "c"])
    /// array([ True,  True, False])
    /// >>> f = lately.AgedQuotientFilter("1h", 0.001, capacity=10_000)
    /// >>> f.insert(["a", "b"], at=[0, 3000])
    /// >>> f.query(["a", "b"], at=3300, window="10min")
    /// array([False,  True])
    #[pyo3(signature = (keys, *, at=None, window=None, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, window=None, threads=1)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let window = window.map(|window| self.part(Some(window))).transpose()?;
        let batch = self.batch(py, keys, at, false)?;
        let present = self.ask_batch(py, &batch, threads.0, |filter, hashes, at, present| {
            filter.engine().query_within(hashes, at, window, present)
        })?;
        Ok(array_of(py, present))
    }

    /// Tell for each key in order whether it was there, then insert it.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When they were seen, as in `insert`.
    /// refresh : {True, False, "delivered"}, default True
    ///     True: every occurrence restarts the key's window, and no key of the window is ever missed. False: only what
    ///     is let through (not reported) does, so that a key comes through again once it was *last let through* longer
    ///     ago than the window, and after window + slack at the latest but for false positives. The window goes on with
    ///     every key that is asked for, let through or not. A key taken for a duplicate by mistake is then not
    ///     remembered: it may come through later although it was seen within the window. "delivered" is the same but
    ///     for windows of insertions, which go on only with what is let through: the last `window` keys *delivered*
    ///     (paper 4, definition 4). A key that is asked for without end then never comes through again.
    /// threads : int, default 1
    ///     How many threads share the batch, as in `insert`; the answers are the same. With ``refresh="delivered"`` and
    ///     a window of insertions they share the hashing only: which keys count is known one by one.
    ///
    /// Returns
    /// -------
    /// ndarray of bool, shape (n,)
    ///     True where the key was seen lately, repeats within the batch included.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As `insert`.
    ///
    /// Notes
    /// -----
    /// Ctrl-C stops between blocks of keys, of a million each. Those before it are inserted, and the answers to them
    /// are the attribute ``answers`` of the exception: asked again, those keys would be repeats.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.duplicated(["a", "b", "a"])
    /// array([False, False,  True])
    #[pyo3(signature = (keys, *, at=None, refresh=Refresh::Always, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, refresh=True, threads=1)")]
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = crate::refresh::parse)] refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let batch = self.batch(py, keys, at, true)?;
        Ok(array_of(py, self.judge(py, &batch, refresh, threads)?))
    }

    /// Insert one key.
    ///
    /// Parameters
    /// ----------
    /// key : int, float, str, bytes, datetime, tuple, None ...
    ///     A tuple is a row: one key of several fields.
    /// at : time, optional
    ///     When it was seen, as in `insert`.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.add(("10.0.0.1", "/index.html"))
    /// >>> ("10.0.0.1", "/index.html") in f
    /// True
    #[pyo3(signature = (key, *, at=None))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let hash = hash_key(key, &self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        self.check_one(py, &moments)?;
        let inserted = self.change_now(py, |filter| {
            filter.engine_mut().insert(&[hash], moments.of(0..1))?;
            Ok(filter.engine().clock().inserted())
        })?;
        if self.watch.is_due(inserted) { self.warn_if_overfull(py) } else { Ok(()) }
    }

    /// Whether one key was there; then insert it. One step: of threads that ask for one new key, one is told False.
    ///
    /// Parameters
    /// ----------
    /// key : int, float, str, bytes, datetime, tuple, None ...
    ///     As in `add`.
    /// at : time, optional
    ///     When it was seen, as in `insert`.
    /// refresh : {True, False, "delivered"}, default True
    ///     Whether a key that was there is inserted again, so that its window restarts; see `duplicated`.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True if it was inserted within the window, and with probability at most `fpr` if it never was.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.Filter("10min", 0.001)
    /// >>> [f.seen("a", at=time) for time in (0, 599, 2000)]
    /// [False, True, False]
    #[pyo3(signature = (key, *, at=None, refresh=Refresh::Always),
        text_signature = "($self, key, *, at=None, refresh=True)")]
    fn seen(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = crate::refresh::parse)] refresh: Refresh,
    ) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        self.check_one(py, &moments)?;
        let (seen, inserted) = self.change_now(py, |filter| {
            let mut seen = [false];
            filter.engine_mut().duplicated(&[hash], moments.of(0..1), refresh, &mut seen)?;
            Ok((seen[0], filter.engine().clock().inserted()))
        })?;
        if self.watch.is_due(inserted) {
            self.warn_if_overfull(py).map_err(|error| Stopped::after(error, vec![seen]).with_answers(py))?;
        }
        Ok(seen)
    }

    /// Whether one key was inserted within the window; for a window of time as of now, or of the latest time told where
    /// every key has come with its own. `query` takes a time.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let at = match self.window {
            Window::Count { .. } => Moments::Untimed,
            Window::Time { .. } => Moments::Now(now()),
        };
        let query = |filter: &filter::AnyFilter| {
            let mut present = [false];
            filter.engine().query(&[hash], at, &mut present).map(|()| present[0])
        };
        self.ask_now(py, query)
    }
}
