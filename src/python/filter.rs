//! The base class of all filters, which does the work; a family's class in Python constructs it.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

use numpy::{IntoPyArray, PyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use super::batch::{Batch, Stopped};
use super::build::Built;
use super::calls::{Held, Lock, caught, detached};
use super::cells::Cells;
use super::classes::class;
use super::errors::file_error;
use super::figures::{cache_lines, in_units, parameters, slack};
use super::keys::{hash_key, read_keys};
use super::moments::{OwnedMoments, now};
use super::seeds::shown;
use super::whole::Threads;
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::engine::Refresh;
use crate::engine::threads::Stretch;
use crate::filter;
use crate::format;
use crate::key::KeyHasher;
use crate::memory::Words;

/// What every filter does. Not constructed itself: take one of its subclasses.
///
/// A filter answers whether a key was inserted within its window. Keys are anything that `lately.hash_keys` takes;
/// keys that compare equal in Python are one key, whatever holds them. A filter may be used from many threads: queries
/// run side by side, and each key of a batch acts as a whole. (Threads that insert into one window of time with times
/// of their own move one clock: a batch that others leave behind by more than `lateness` stops with an error half-way.)
/// `os.fork` waits until no thread is within a block of keys: the child has a filter of its own, as it was between two.
#[pyclass(subclass, frozen, module = "lately")]
pub struct Filter {
    inner: Lock<filter::Filter>,
    /// Hasher and window never change, so nobody needs the lock for them.
    hasher: KeyHasher,
    window: Window,
    /// A time that was not too far ahead when the system's clock was last asked for one key.
    not_ahead: AtomicI64,
}

/// Bytes of cells up to which one key may be inserted without letting go of the interpreter. The worst that it may do
/// is to copy or clear them all, which takes some 2 ms; a thread that waits for the interpreter gives others 5.
const SMALL: usize = 8 << 20;

impl Filter {
    pub fn new(filter: filter::Filter) -> Self {
        let (hasher, window) = (KeyHasher::new(filter.seed()), filter.window());
        Self { inner: Lock::new(filter), hasher, window, not_ahead: AtomicI64::new(i64::MIN) }
    }

    /// To read; see [`Lock::read`].
    pub fn read(&self) -> Held<RwLockReadGuard<'_, filter::Filter>> {
        self.inner.read()
    }

    /// To write; see [`read`](Self::read).
    pub(super) fn write(&self) -> Held<RwLockWriteGuard<'_, filter::Filter>> {
        self.inner.write()
    }

    /// Asks about one key: at once where the cells are few and nobody writes to them, since to detach and come back
    /// takes longer, some 50 ns, and much more while other threads compute; else detached.
    fn ask_one<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl Fn(&filter::Filter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        caught(|| match self.inner.try_read() {
            Ok(filter) if is_small(&filter) => Ok(ask(&filter)?),
            tried => {
                drop(tried);
                Ok(py.detach(|| ask(&self.read()))?)
            }
        })
    }

    /// Changes one key, as [`ask_one`](Self::ask_one) asks.
    fn change_one<T: Send>(
        &self,
        py: Python<'_>,
        change: impl Fn(&mut filter::Filter) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        caught(|| match self.inner.try_write() {
            Ok(mut filter) if is_small(&filter) => Ok(change(&mut filter)?),
            tried => {
                drop(tried);
                Ok(py.detach(|| change(&mut self.write()))?)
            }
        })
    }

    /// Reads keys without moments, for a subclass.
    pub(super) fn keys(&self, keys: &Bound<'_, PyAny>) -> PyResult<Batch> {
        Ok(Batch::untimed(read_keys(keys, self.hasher)?))
    }

    /// Reads n moments, which lie within its window or not.
    pub(super) fn moments(&self, at: Option<&Bound<'_, PyAny>>, n: usize) -> PyResult<OwnedMoments> {
        OwnedMoments::read(at, self.window, n)
    }

    /// What a subclass alone can ask of its filter; called detached, as [`read`](Self::read).
    pub(super) fn with<T>(&self, ask: impl FnOnce(&filter::Filter) -> T) -> T {
        ask(&self.read())
    }

    /// Its preamble and, shared, its cells, both of one moment.
    fn snapshot(&self) -> (Vec<u8>, Words) {
        let filter = self.read();
        (format::preamble(&filter), filter.engine().words().clone())
    }

    fn clock(&self, py: Python<'_>) -> PyResult<Clock> {
        detached(py, || *self.read().engine().clock())
    }

    /// Reads keys and moments, which are refused here or not at all.
    pub(super) fn batch(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        new: bool,
    ) -> PyResult<Batch> {
        let keys = read_keys(keys, self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, keys.len())?;
        let clock = self.clock(py)?;
        detached(py, || moments.check(&clock, new))??;
        Ok(Batch { keys, moments })
    }

    /// Refuses the time of one key if it lies too far ahead of the system's clock, which is looked at no more often than
    /// it has to be: it takes a quarter of the time of a key.
    fn check_one(&self, py: Python<'_>, moments: &OwnedMoments) -> PyResult<()> {
        let &OwnedMoments::At(moment) = moments else { return Ok(()) };
        if moment <= self.not_ahead.load(Relaxed) {
            return Ok(());
        }
        let clock = self.clock(py)?;
        let now = now();
        clock.check_new(Moments::At(moment), now)?;
        let until = match (clock.ahead(), clock.latest()) {
            (None, _) => i64::MAX,
            (Some(_), None) => moment,
            (Some(ahead), Some(latest)) => latest.max(now).saturating_add_unsigned(ahead),
        };
        self.not_ahead.store(until, Relaxed);
        Ok(())
    }
}

fn is_small(filter: &filter::Filter) -> bool {
    filter.engine().words().as_slice().len() <= SMALL / 8
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (built, /))]
    fn made(built: &Built) -> PyResult<Self> {
        built.take().map(Self::new)
    }

    /// Insert keys, in order.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When they were seen, for a window of time: numbers are Unix seconds, or datetimes. The default is now, or
    ///     `latest` where that is later. Times may step back by at most `lateness`; a late key is taken as of the latest
    ///     time seen. They may lie ahead of the system's clock by at most `ahead`.
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
            let engine = |keys: &mut Stretch<'_>, at: Moments<'_>, _: &mut [()]| {
                self.write().engine_mut().insert_shared(keys, at)
            };
            batch.run_in_order(py, threads.0, engine)?;
        } else {
            batch.run(py, 1, |hashes, at, _: &mut [()]| self.write().engine_mut().insert(hashes, at))?;
        }
        Ok(())
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
    ///     As `insert`.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b"])
    /// >>> f.query(["a", "b", "c"])
    /// array([ True,  True, False])
    #[pyo3(signature = (keys, *, at=None, threads=Threads::default()),
        text_signature = "($self, keys, *, at=None, threads=1)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let query =
            |hashes: &[u64], at: Moments<'_>, present: &mut [bool]| self.read().engine().query(hashes, at, present);
        Ok(self.batch(py, keys, at, false)?.run(py, threads.0, query)?.into_pyarray(py))
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
        refresh: Refresh,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let batch = self.batch(py, keys, at, true)?;
        let seen: Result<Vec<bool>, Stopped<bool>> = if threads.0 > 1 {
            let engine = |keys: &mut Stretch<'_>, at: Moments<'_>, seen: &mut [bool]| {
                self.write().engine_mut().duplicated_shared(keys, at, refresh, seen)
            };
            batch.run_in_order(py, threads.0, engine)
        } else {
            let duplicated = |hashes: &[u64], at: Moments<'_>, seen: &mut [bool]| {
                self.write().engine_mut().duplicated(hashes, at, refresh, seen)
            };
            batch.run(py, 1, duplicated)
        };
        Ok(seen.map_err(|stopped| stopped.with_answers(py))?.into_pyarray(py))
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
        let hash = hash_key(key, self.hasher)?;
        let moments = OwnedMoments::read(at, self.window, 1)?;
        self.check_one(py, &moments)?;
        self.change_one(py, |filter| filter.engine_mut().insert(&[hash], moments.of(0..1, &mut Vec::new())))
    }

    /// Whether one key was inserted within the window; for a window of time as of now, or of the latest time told where
    /// every key has come with its own. `query` takes a time.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, self.hasher)?;
        let at = match self.window {
            Window::Count { .. } => Moments::Untimed,
            Window::Time { .. } => Moments::Now(now()),
        };
        let query = |filter: &filter::Filter| {
            let mut present = [false];
            filter.engine().query(&[hash], at, &mut present).map(|()| present[0])
        };
        self.ask_one(py, query)
    }

    /// int, float or None: the window in insertions, or in seconds; None of a filter that forgets nothing.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let clock = self.clock(py)?;
        match clock.window() {
            _ if clock.endless() => Ok(None),
            Window::Count { insertions: window } | Window::Time { span: window, .. } => {
                in_units(py, self.window, window).map(Some)
            }
        }
    }

    /// int or float: how long after leaving the window a key may still be reported, in insertions or seconds; infinite
    /// of a filter that forgets nothing for sure.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        slack(py, self.window, detached(py, || self.read().slack())?)
    }

    /// float or None: how far, in seconds, `at` may step back; None for a window of insertions.
    #[getter]
    fn lateness(&self) -> Option<f64> {
        match self.window {
            Window::Count { .. } => None,
            Window::Time { lateness, .. } => Some(lateness as f64 / 1e9),
        }
    }

    /// float or None: how far, in seconds, `at` may lie ahead of the system's clock when keys are inserted; None where
    /// nothing is too far, and for a window of insertions.
    #[getter]
    fn ahead(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(match self.window {
            Window::Count { .. } => None,
            Window::Time { .. } => self.clock(py)?.ahead().map(|ahead| ahead as f64 / 1e9),
        })
    }

    /// numpy.datetime64 or None: the latest time it was told or took from the system's clock, UTC in nanoseconds; None
    /// before the first key, and for a window of insertions.
    #[getter]
    fn latest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let latest = self.clock(py)?.latest();
        latest.map(|latest| py.import("numpy")?.getattr("datetime64")?.call1((latest, "ns"))).transpose()
    }

    /// int: keys the filter is planned for within one window, or in all; more cost accuracy, and none is lost for it.
    #[getter]
    fn capacity(&self) -> u64 {
        self.window.capacity()
    }

    /// float: chance that a key never inserted is reported, at the worst phase and planned load; exact in expectation.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().fpr())
    }

    /// float: keys beyond the window expected to be reported, over the window, at the peak (paper 1, definition 2).
    #[getter]
    fn npws(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().npws())
    }

    /// dict of str to float: cache lines that an insertion writes (``insert``), and that a query reads of a key that is
    /// reported (``hit``) and of one that is not (``miss``), while the filter is larger than the cache.
    #[getter]
    fn cache_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        cache_lines(py, detached(py, || self.read().cache_lines())?)
    }

    /// int: bytes of the cells, the whole of what grows with the window.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.read().engine().words().as_slice().len() as u64 * 8)
    }

    /// float: bits of the cells per key of a full window.
    #[getter]
    fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.nbytes(py)? as f64 * 8.0 / self.capacity() as f64)
    }

    /// int: keys taken so far, by which windows of insertions go on: those inserted, and those `duplicated` was asked
    /// for, let through or not; with ``refresh="delivered"`` and a window of insertions only those let through.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.clock(py)?.inserted())
    }

    /// int or None: seed the keys are hashed with; None of a secret one, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        shown(self.hasher.seed())
    }

    /// str: its family and layout, by the name that `lately.plan` and the command have for them.
    #[getter]
    fn family(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.read().name())
    }

    /// dict of str to int: the parameters of the paper, by the names of `from_parameters`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, detached(py, || self.read().parameters())?)
    }

    /// ndarray of float64: share of the bits set in each part that ages as one, the newest first.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(detached(py, || self.read().engine().fill())?.into_pyarray(py))
    }

    /// Chance that a key never inserted is reported now, from the bits as they are.
    ///
    /// Returns
    /// -------
    /// float
    ///     At most about `fpr`, less with repeated keys and between shifts. Reads all of the filter's memory.
    ///
    /// Examples
    /// --------
    /// >>> lately.AgePartitionedBloomFilter(window=1000, fpr=0.001).false_positive_rate()
    /// 0.0
    fn false_positive_rate(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().false_positive_rate())
    }

    /// Save to a file, which is replaced in one step once all is on disk.
    ///
    /// Parameters
    /// ----------
    /// path : path-like
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If it cannot be written, or is a device, a pipe or a socket; what was there is left as it was.
    ///
    /// Notes
    /// -----
    /// Links are followed. A file that is replaced keeps its mode and, where that is allowed, its owner, but no access
    /// lists or hard links. On Linux the new file has no name until it is whole, so that a process that is killed
    /// leaves none behind, where the file system knows such files. Ctrl-C stops between pieces of 64 MiB, and the old
    /// file stays.
    ///
    /// See Also
    /// --------
    /// lately.open : Reads it, with an example.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        detached(py, || {
            let filter = self.read().clone();
            let look = || Python::attach(|py| Ok(py.check_signals()?));
            format::save_in_pieces(&filter, &path, look).map_err(|error| file_error(error, &path))
        })?
    }

    /// The saved form as bytes; `lately.from_bytes` reads it.
    ///
    /// Returns
    /// -------
    /// bytes
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (preamble, words) = detached(py, || self.snapshot())?;
        let cells: &[u8] = words.as_ref();
        PyBytes::new_with(py, preamble.len() + cells.len(), |bytes| {
            bytes[..preamble.len()].copy_from_slice(&preamble);
            bytes[preamble.len()..].copy_from_slice(cells);
            Ok(())
        })
    }

    /// A filter that holds the keys of both.
    ///
    /// Parameters
    /// ----------
    /// other : Filter
    ///     Of the same class, window, seed and parameters. Windows of time are brought to the later of both times, so
    ///     filters of different machines can be united. Windows of insertions can be united only in the same
    ///     generation, since nothing else relates their counts; `inserted` is then the lesser of both, and no window is
    ///     cut short.
    ///
    /// Returns
    /// -------
    /// Filter
    ///     A new one; every key that either would report, it reports. The chance of a false positive is that of as many
    ///     distinct keys as both have taken, so plan `capacity` for all machines together.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter differs, which the message names, or the class has no union.
    ///
    /// Examples
    /// --------
    /// >>> paris, tokyo = (lately.AgePartitionedBloomFilter("1h", 0.001, capacity=10_000) for _ in range(2))
    /// >>> paris.insert(["a"], at=[1000]); tokyo.insert(["b"], at=[1500])
    /// >>> paris.union(tokyo).query(["a", "b", "c"], at=2000)
    /// array([ True,  True, False])
    fn union(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (ours, theirs) = (slf.get(), other.get());
        let united = detached(slf.py(), || {
            // One lock at a time: two threads may unite the same two filters, each in its own order.
            let theirs = theirs.read().clone();
            let mut ours = ours.read().clone();
            ours.unite(&theirs).map(|()| ours)
        })??;
        object(&slf.get_type(), united)
    }

    /// A copy, which shares memory until either is written to.
    ///
    /// Returns
    /// -------
    /// Filter
    fn copy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let filter = slf.get();
        let copy = object(&slf.get_type(), detached(slf.py(), || filter.read().clone())?)?;
        if let Some(attributes) = slf.getattr_opt(intern!(slf.py(), "__dict__"))? {
            copy.bind(slf.py()).getattr("__dict__")?.call_method1("update", (attributes,))?;
        }
        Ok(copy)
    }

    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::copy(slf)
    }

    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::copy(slf)
    }

    /// What pickle calls and with what: from protocol 5 on with the cells as a buffer, which can travel out of band. An
    /// object of a user's own class takes it and its attributes along.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        let core = py.import("lately._core")?;
        let plain = slf.get_type().is(&class(py, detached(py, || filter.read().family())?)?);
        if plain && protocol < 5 {
            return (core.getattr("from_bytes")?, (filter.to_bytes(py)?,)).into_pyobject(py);
        }
        let (preamble, words) = detached(py, || filter.snapshot())?;
        let preamble = PyBytes::new(py, &preamble);
        let cells = match protocol {
            ..5 => PyBytes::new(py, words.as_ref()).into_any(),
            _ => py.import("pickle")?.call_method1("PickleBuffer", (Cells(words),))?,
        };
        let from_parts = core.getattr("_from_parts")?;
        if plain {
            return (from_parts, (preamble, cells)).into_pyobject(py);
        }
        (from_parts, (preamble, cells, slf.get_type()), slf.call_method0("__getstate__")?).into_pyobject(py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, filter) = (slf.py(), slf.get());
        let name = slf.get_type().name()?;
        let window = match (filter.window(py)?, filter.window) {
            (None, _) => format!("capacity={}", filter.capacity()),
            (Some(window), Window::Count { .. }) => format!("window={window}"),
            (Some(window), Window::Time { .. }) => format!("window={window} s"),
        };
        let parameters = detached(py, || filter.read().parameters())?;
        let parameters: Vec<String> = parameters
            .into_iter()
            .filter(|(_, value)| *value != 0)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(format!(
            "<{name} {window} fpr={:.2e} {} nbytes={} inserted={}>",
            filter.fpr(py)?,
            parameters.join(" "),
            filter.nbytes(py)?,
            filter.inserted(py)?
        ))
    }
}

/// The Python object of a filter, of its family's class.
pub fn wrap(py: Python<'_>, filter: filter::Filter) -> PyResult<Py<PyAny>> {
    object(&class(py, filter.family())?, filter)
}

/// The Python object of a filter, of a given class.
pub fn object(class: &Bound<'_, PyType>, filter: filter::Filter) -> PyResult<Py<PyAny>> {
    let base = class.py().get_type::<Filter>();
    Ok(base.call_method1(intern!(class.py(), "__new__"), (class, Built::new(filter)))?.unbind())
}

/// Panics, while it writes to the filter if there is one: for the tests of the net.
#[pyfunction(name = "_fail", signature = (filter=None))]
pub fn fail(py: Python<'_>, filter: Option<&Bound<'_, Filter>>) -> PyResult<()> {
    let filter = filter.map(Bound::get);
    detached(py, || {
        let _torn = filter.map(Filter::write);
        panic!("as the tests ask")
    })
}
