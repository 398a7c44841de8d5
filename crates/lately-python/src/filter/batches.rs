//! Insertions and queries: a batch of keys, or one key.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::PyFilter;
use crate::arguments::parse_refresh;
use crate::arrays::{array_of, import_numpy};
use crate::batch::Stopped;
use crate::errors::raise;
use crate::keys::hash_key;
use crate::time::moments::{OwnedMoments, present};
use crate::whole::Threads;
use lately::clock::Moments;
use lately::engine::threads::Chunk;
use lately::engine::{Insertion, Query, Refresh};

#[pymethods]
impl PyFilter {
    /// Insert keys, in order.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     Event times, for a window of time: Unix seconds, or datetimes. The default is now, or `latest` if that is
    ///     later. Times may step back by at most `lateness`. An `AgedCuckooFilter` inserts a late key as of its own
    ///     time, other filters as of `latest`. Times may lie ahead of the system's clock by at most `max_ahead`.
    /// threads : int, default 1
    ///     How many threads share the batch. The filter is the same afterwards, bit for bit. All threads hash. In the
    ///     line layout all of them insert, each into its own pages; into other layouts one thread inserts. Keys that
    ///     are Python objects are hashed by one thread.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If the type of a key has no canonical form; the message names it. Nothing is inserted then.
    /// ValueError
    ///     If a time is missing, steps back too far or lies too far ahead, if `at` does not fit `keys`, or if `threads`
    ///     is less than 1. Nothing is inserted then.
    ///
    /// Notes
    /// -----
    /// Ctrl-C stops the call between blocks of keys. The blocks before it are inserted.
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
                self.write()?.engine_mut().process_shared(keys, Insertion::of_all(at)).map_err(raise)
            };
            batch.run_in_order(py, threads.0, engine)?;
        } else {
            self.write_batch(py, &batch, |filter, hashes, at, _: &mut [()]| filter.engine_mut().insert(hashes, at))?;
        }
        self.warn_if_overfull(py)
    }

    /// Look up which keys were inserted within the window.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     The end of the window, for a window of time: Unix seconds, or datetimes. The default is now, or `latest` if
    ///     that is later or if all keys so far came with event times. The filter does not change.
    /// window : int or span of time, optional
    ///     A shorter window, in the unit of the filter's window, which is the default. For filters that store ages:
    ///     `AgedCuckooFilter` and `TimingBloomFilter`. Every key of this window is reported. A key may be reported
    ///     for one more epoch, or block, of the filter.
    /// threads : int, default 1
    ///     How many threads share the batch, in blocks of 4096 keys. The answers are the same. Keys that are Python
    ///     objects are hashed by one thread.
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
    ///     As `insert`. ValueError also if `window` is longer than the filter's, or if the filter stores no ages.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b"])
    /// >>> f.query(["a", "b", "c"])
    /// array([ True,  True, False])
    /// >>> f = lately.AgedCuckooFilter("1h", 0.001, capacity=10_000)
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
        let window = window.map(|window| self.query_window(Some(window))).transpose()?;
        let batch = self.batch(py, keys, at, false)?;
        let present = self.read_batch(py, &batch, threads.0, |filter, hashes, at, present| {
            filter.engine().query_within(Query { hashes, at, window }, present)
        })?;
        array_of(py, present)
    }

    /// Look up each key in order, and insert it.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     Event times, as in `insert`, or the name of the column of a frame that has them. That column is then no part
    ///     of the keys.
    /// subset : column or list of columns, optional
    ///     Columns of a frame that make the key. The default is all.
    /// refresh : {True, False, "delivered"}, default True
    ///     True: every occurrence restarts the key's window. No key of the window is ever missed.
    ///     False: only an occurrence that is not reported restarts it. A key passes again when its last pass is longer
    ///     ago than the window, and at the latest after window + slack (apart from false positives). A window of
    ///     insertions counts every key of every call. A key that is reported by mistake is not inserted, so it may pass
    ///     later although it occurred within the window.
    ///     "delivered": as False, but a window of insertions counts only keys that are not reported: it is the last
    ///     `window` keys *delivered* (paper 4, definition 4). A key that keeps arriving alone then never passes again.
    /// threads : int, default 1
    ///     How many threads share the batch, as in `insert`. The answers are the same. With ``refresh="delivered"`` and
    ///     a window of insertions they share the hashing only, because whether a key counts depends on the keys before.
    ///
    /// Returns
    /// -------
    /// ndarray of bool, shape (n,)
    ///     True for a key that was inserted within the window; repeats within the batch are included.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As `insert`.
    ///
    /// Notes
    /// -----
    /// Ctrl-C stops the call between blocks of a million keys. The blocks before it are inserted, and their answers are
    /// the attribute ``answers`` of the exception. In a second call those keys would be repeats.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.duplicated(["a", "b", "a"])
    /// array([False, False,  True])
    #[pyo3(signature = (keys, *, at=None, subset=None, refresh=Refresh::Always, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, subset=None, refresh=True, threads=1)")]
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
        subset: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        import_numpy(py)?; // before the keys are inserted
        let names_a_column = at.is_some_and(|at| at.is_instance_of::<PyString>()) && keys.hasattr("columns")?;
        let batch = if subset.is_some() || names_a_column {
            let picked = py.import("lately._frames")?.call_method1("picked", (keys, subset, at))?;
            let (keys, at): (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>) = picked.extract()?;
            self.batch(py, &keys, at.as_ref(), true)?
        } else {
            self.batch(py, keys, at, true)?
        };
        array_of(py, self.duplicated_batch(py, &batch, refresh, threads)?)
    }

    /// Insert one key.
    ///
    /// Parameters
    /// ----------
    /// key : int, float, str, bytes, datetime, tuple, None ...
    ///     A tuple is a row: one key of several fields.
    /// at : time, optional
    ///     Event time, as in `insert`.
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
        self.check_ahead(py, &moments)?;
        self.insert_hash(py, hash, |_| moments.of(0..1))
    }

    /// Look up one key, and insert it, in one step: of threads that race with one new key, exactly one gets False.
    ///
    /// Parameters
    /// ----------
    /// key : int, float, str, bytes, datetime, tuple, None ...
    ///     As in `add`.
    /// at : time, optional
    ///     Event time, as in `insert`.
    /// refresh : {True, False, "delivered"}, default True
    ///     Whether a repeat restarts the key's window; see `duplicated`.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True for a key that was inserted within the window, and with probability at most `fpr` for a new one.
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
        #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
    ) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        self.check_ahead(py, &moments)?;
        let (seen, inserted) = self.write_short(py, |filter| {
            let seen = filter.engine_mut().seen_one(hash, moments.of(0..1), refresh)?;
            Ok((seen, filter.engine().inserted()))
        })?;
        if self.load.is_due(inserted) {
            self.warn_if_overfull(py).map_err(|error| Stopped::after(error, vec![seen]).with_answers(py))?;
        }
        Ok(seen)
    }

    /// Look up whether one key was inserted within the window. A window of time ends now, or at `latest` if that is
    /// later or if all keys came with event times. `query` accepts a time.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        self.contains_hash(py, hash, present(self.window))
    }
}
