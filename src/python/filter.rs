//! The filter classes: one base that does the work, one subclass per family that constructs it.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::keys::{hash_key, read_keys};
use super::saving::{file_error, reduce};
use super::times::{self, OwnedMoments, whole};
use crate::clock::{Clock, Moments, Window};
use crate::filter::{self, AgePartitioned};
use crate::format;
use crate::key::{KeyHasher, Keys};
use crate::sizing::age_partitioned::{Budget, Segment, Shape, choose};
use crate::words::Words;

/// Keys hashed at a time: their hashes take 32 KiB, two thirds of a first-level cache.
const BLOCK: usize = 4096;
/// Keys between two looks at signals, so that Ctrl-C works: some 20 ms.
const PATIENCE: usize = 1 << 20;

/// What every filter does. Not constructed itself: take one of its subclasses.
///
/// A filter answers whether a key was inserted within its window. Keys are anything that `lately.hash_keys` takes;
/// keys that compare equal in Python are one key, whatever holds them. A filter may be used from many threads: queries
/// run side by side, and each key of a batch acts as a whole.
#[pyclass(subclass, frozen, module = "lately")]
pub struct Filter {
    inner: RwLock<Box<dyn filter::Filter>>,
    hasher: KeyHasher,
}

impl Filter {
    fn new(filter: impl filter::Filter + 'static) -> Self {
        Self::boxed(Box::new(filter))
    }

    fn boxed(filter: Box<dyn filter::Filter>) -> Self {
        Self { hasher: KeyHasher::new(filter.seed()), inner: RwLock::new(filter) }
    }

    /// To read. Called detached from the interpreter only, so that no thread waits for it holding the GIL. A panic
    /// while somebody wrote leaves legal cells, whatever it left undone.
    fn read(&self) -> RwLockReadGuard<'_, Box<dyn filter::Filter>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To write; see [`read`](Self::read).
    fn write(&self) -> RwLockWriteGuard<'_, Box<dyn filter::Filter>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its preamble and, shared, its cells, both of one moment.
    pub fn snapshot(&self) -> (Vec<u8>, Words) {
        let filter = self.read();
        (format::preamble(&**filter), filter.engine().words().clone())
    }

    fn clock(&self, py: Python<'_>) -> Clock {
        py.detach(|| *self.read().engine().clock())
    }

    /// Hashes a batch block by block and hands each to `act` with its moments and its place. The lock is taken by
    /// `act`, and not held while signals are looked at: their handlers may use the filter.
    fn batch(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        in_order: bool,
        mut act: impl FnMut(&[u64], Moments<'_>, usize) -> Result<(), crate::Error> + Send,
    ) -> PyResult<usize> {
        let keys: Keys = read_keys(keys, self.hasher)?;
        let clock = self.clock(py);
        let moments = OwnedMoments::read(at, &clock, keys.len())?;
        py.detach(|| {
            clock.check(moments.borrow(), in_order)?;
            let mut hashes = [0; BLOCK];
            for start in (0..keys.len()).step_by(BLOCK) {
                let end = keys.len().min(start + BLOCK);
                let hashes = &mut hashes[..end - start];
                keys.fill(start, hashes);
                act(hashes, moments.borrow().slice(start..end), start)?;
                if end / PATIENCE != start / PATIENCE {
                    Python::attach(|py| py.check_signals())?;
                }
            }
            Ok(keys.len())
        })
    }

    /// Insertions as they are, nanoseconds as seconds.
    fn in_units<'py>(&self, py: Python<'py>, length: u64) -> PyResult<Bound<'py, PyAny>> {
        match self.clock(py).window() {
            Window::Count { .. } => Ok(length.into_pyobject(py)?.into_any()),
            Window::Time { .. } => Ok((length as f64 / 1e9).into_pyobject(py)?.into_any()),
        }
    }
}

/// The Python object of a filter, of its own class.
pub fn wrap(py: Python<'_>, filter: Box<dyn filter::Filter>) -> PyResult<Py<PyAny>> {
    let base = PyClassInitializer::from(Filter::boxed(filter));
    // One kind so far; the next makes this a match.
    Ok(Py::new(py, base.add_subclass(AgePartitionedBloomFilter))?.into_any())
}

#[pymethods]
impl Filter {
    /// Insert keys, in order.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When they were seen, for a window of time: numbers are Unix seconds, or datetimes. The default is now.
    ///     Times may step back by at most `lateness`; a late key is taken as of the latest time seen.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it. Nothing was inserted then.
    /// ValueError
    ///     If `at` is missing a time, steps back too far, or does not fit `keys`. Nothing was inserted then.
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
    #[pyo3(signature = (keys, *, at=None))]
    fn insert(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.batch(py, keys, at, true, |hashes, at, _| self.write().engine_mut().insert(hashes, at))?;
        Ok(())
    }

    /// Tell which keys were inserted within the window.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When to ask for, for a window of time: numbers are Unix seconds, or datetimes. The default is now. The
    ///     filter stays as it is.
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
    #[pyo3(signature = (keys, *, at=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut present = Vec::new();
        self.batch(py, keys, at, false, |hashes, at, start| {
            present.resize(start + hashes.len(), false);
            self.read().engine().query(hashes, at, &mut present[start..])
        })?;
        Ok(present.into_pyarray(py))
    }

    /// Tell for each key in order whether it was there, then insert it.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     When they were seen, as in `insert`.
    /// refresh : bool, default True
    ///     True: every sighting restarts the key's window, and no key of the window is ever missed. False: a duplicate
    ///     is not inserted and leaves the first sighting's window running, so that a key comes through again once it
    ///     was *delivered* longer ago than the window (paper 4, definition 4). A key taken for a duplicate by mistake
    ///     is then not remembered: it may come through later although it was seen within the window.
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
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.001)
    /// >>> f.duplicated(["a", "b", "a"])
    /// array([False, False,  True])
    #[pyo3(signature = (keys, *, at=None, refresh=true))]
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        refresh: bool,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut seen = Vec::new();
        self.batch(py, keys, at, true, |hashes, at, start| {
            seen.resize(start + hashes.len(), false);
            self.write().engine_mut().duplicated(hashes, at, refresh, &mut seen[start..])
        })?;
        Ok(seen.into_pyarray(py))
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
        let moments = OwnedMoments::read(at, &self.clock(py), 1)?;
        py.detach(|| Ok(self.write().engine_mut().insert(&[hash], moments.borrow())?))
    }

    /// Whether one key was inserted within the window; for a window of time, as of now.
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, self.hasher)?;
        let moments = OwnedMoments::read(None, &self.clock(py), 1)?;
        let mut present = [false];
        py.detach(|| self.read().engine().query(&[hash], moments.borrow(), &mut present))?;
        Ok(present[0])
    }

    /// int or float: the window in insertions, or in seconds.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.clock(py).window() {
            Window::Count { insertions: window } | Window::Time { span: window, .. } => self.in_units(py, window),
        }
    }

    /// int or float: how long after leaving the window a key may still be reported, in insertions or seconds.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let slack = py.detach(|| self.read().slack());
        self.in_units(py, slack)
    }

    /// float or None: how far, in seconds, `at` may step back; None for a window of insertions.
    #[getter]
    fn lateness(&self, py: Python<'_>) -> Option<f64> {
        match self.clock(py).window() {
            Window::Count { .. } => None,
            Window::Time { lateness, .. } => Some(lateness as f64 / 1e9),
        }
    }

    /// int: keys the filter is planned for within one window; more of them cost accuracy, never the window.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        match self.clock(py).window() {
            Window::Count { insertions: keys } | Window::Time { capacity: keys, .. } => keys,
        }
    }

    /// float: chance that a key never inserted is reported, at the worst phase and planned load; exact in expectation.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().fpr())
    }

    /// float: keys beyond the window expected to be reported, over the window, at the peak (paper 1, definition 2).
    #[getter]
    fn npws(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().npws())
    }

    /// dict of str to float: slices that Algorithm 1 of paper 1 reads per query of a key of the window, of a false
    /// positive, and of a key reported absent (paper 1, section 5.4).
    #[getter]
    fn expected_accesses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let accesses = py.detach(|| self.read().expected_accesses());
        let dict = PyDict::new(py);
        dict.set_item("window", accesses.in_window)?;
        dict.set_item("false_positive", accesses.false_positive)?;
        dict.set_item("absent", accesses.absent)?;
        Ok(dict)
    }

    /// int: bytes of the cells, the whole of what grows with the window.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.read().engine().words().as_slice().len() as u64 * 8)
    }

    /// float: bits of the cells per key of a full window.
    #[getter]
    fn bits_per_key(&self, py: Python<'_>) -> f64 {
        self.nbytes(py) as f64 * 8.0 / self.capacity(py) as f64
    }

    /// int: insertions so far.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> u64 {
        self.clock(py).inserted()
    }

    /// int: seed the keys are hashed with.
    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }

    /// dict of str to int: the parameters of the paper, by the names of `from_parameters`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = py.detach(|| self.read().parameters());
        let dict = PyDict::new(py);
        for (name, value) in parameters.into_iter().filter(|(_, value)| *value != 0) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// ndarray of float64: share of the bits set in each part that ages as one, the newest first.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        py.detach(|| self.read().engine().fill()).into_pyarray(py)
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
    fn false_positive_rate(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().false_positive_rate())
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
    ///     If it cannot be written; a file that was there is left as it was.
    ///
    /// See Also
    /// --------
    /// lately.open : Reads it, with an example.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| {
            let filter = self.read().clone_box();
            format::save(&*filter, &path).map_err(|error| file_error(error, &path))
        })
    }

    /// The saved form as bytes; `lately.from_bytes` reads it.
    ///
    /// Returns
    /// -------
    /// bytes
    pub fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (preamble, words) = py.detach(|| self.snapshot());
        let cells: &[u8] = words.as_ref();
        PyBytes::new_with(py, preamble.len() + cells.len(), |bytes| {
            bytes[..preamble.len()].copy_from_slice(&preamble);
            bytes[preamble.len()..].copy_from_slice(cells);
            Ok(())
        })
    }

    /// A copy, which shares memory until either is written to.
    ///
    /// Returns
    /// -------
    /// Filter
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let filter = py.detach(|| self.read().clone_box());
        wrap(py, filter)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        reduce(slf, protocol)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, filter) = (slf.py(), slf.get());
        let name = slf.get_type().name()?;
        let unit = match filter.clock(py).window() {
            Window::Count { .. } => "",
            Window::Time { .. } => " s",
        };
        let parameters = py.detach(|| filter.read().parameters());
        let parameters: Vec<String> = parameters
            .into_iter()
            .filter(|(_, value)| *value != 0)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(format!(
            "<{name} window={}{unit} fpr={:.2e} {} nbytes={} inserted={}>",
            filter.window(py)?,
            filter.fpr(py),
            parameters.join(" "),
            filter.nbytes(py),
            filter.inserted(py)
        ))
    }
}

/// Age-partitioned Bloom filter: no key of the window is missed, and old ones fade slice by slice.
///
/// Parameters
/// ----------
/// window : int or span of time
///     What "lately" means: the last so many insertions, or a span such as ``"10min"``, a `datetime.timedelta` or a
///     `numpy.timedelta64`.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be, at the worst phase, in (0, 1). Give this or
///     `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has the least rate that fits.
/// slack : int or span of time, optional
///     Longest that a key may still be reported after leaving the window, in the unit of `window`. The default is half
///     the window (and never less than 64 insertions).
/// block_bits : {64, 512}, optional
///     Set all bits a key has in one slice within one block of so many bits: 512, a cache line, is several times faster
///     than the plain filter. The default is the plain filter.
/// capacity : int, optional
///     Keys expected within a window of time, needed there. More of them cost accuracy, never the window.
/// lateness : span of time, optional
///     For a window of time, how far `at` may step back; the window is kept for late keys too. The default is 0.
/// seed : int, default 0
///     Seed of the key hashes, in [0, 2**64).
///
/// Raises
/// ------
/// ValueError
///     If a parameter is out of range, or no filter meets all of them; the message names it.
/// TypeError
///     If a parameter is of the wrong type.
/// MemoryError
///     If the memory cannot be had.
///
/// Notes
/// -----
/// Paper 1: A. Shtul, C. Baquero, P. S. Almeida, Age-Partitioned Bloom Filters, 2020. Sized with exact fills, so that
/// `fpr` holds just before a shift and the window just after one; the printed formulas promise more than they keep.
///
/// Examples
/// --------
/// >>> f = lately.AgePartitionedBloomFilter(window=1_000_000, fpr=0.001)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> f = lately.AgePartitionedBloomFilter("10min", 0.001, capacity=50_000)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct AgePartitionedBloomFilter;

#[pymethods]
impl AgePartitionedBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr=None, *, nbytes=None, slack=None, block_bits=None, capacity=None, lateness=None, seed=0))]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        nbytes: Option<i128>,
        slack: Option<&Bound<'_, PyAny>>,
        block_bits: Option<i128>,
        capacity: Option<i128>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: i128,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::window(window, capacity, lateness)?.check()?;
        let slack = slack.map(|slack| times::length("slack", slack, window)).transpose()?;
        let budget = match (fpr, nbytes) {
            (Some(fpr), None) => Budget::Rate(fpr),
            (None, Some(nbytes)) => Budget::Bytes(whole("nbytes", nbytes)?),
            _ => return Err(PyTypeError::new_err("give fpr or nbytes, and not both")),
        };
        let block_bits = block_bits.map(|bits| whole("block_bits", bits)).transpose()?;
        let seed = whole("seed", seed)?;
        let filter = py.detach(|| AgePartitioned::new(choose(window, budget, slack, block_bits)?, window, seed))?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter with the parameters of the paper.
    ///
    /// Parameters
    /// ----------
    /// window : int or span of time
    ///     As in the constructor; generations are as long as it needs: ceil((window - 1) / l) insertions.
    /// k, l : int
    ///     Consecutive slices that must match, and full generations kept; k + l at most 128.
    /// slice_bits : int, optional
    ///     m: bits of each slice of a plain filter.
    /// blocks : int, optional
    ///     Blocks of each slice of a blocked filter, instead of `slice_bits`.
    /// block_bits : {64, 512}, default 512
    ///     B: bits of a block.
    /// parts : {1, 2, 4, 8}, default 8
    ///     b: bits a key sets in a block, each in its own part.
    /// capacity, lateness, seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// AgePartitionedBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=10, l=7, slice_bits=2064)
    /// >>> f.nbytes, round(f.npws, 3)
    /// (4488, 0.26)
    #[classmethod]
    #[pyo3(signature = (window, k, l, *, slice_bits=None, blocks=None, block_bits=512, parts=8, capacity=None, lateness=None, seed=0))]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: i128,
        l: i128,
        slice_bits: Option<i128>,
        blocks: Option<i128>,
        block_bits: i128,
        parts: i128,
        capacity: Option<i128>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: i128,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::window(window, capacity, lateness)?.check()?;
        let segment = match (slice_bits, blocks) {
            (Some(bits), None) => Segment::Slice { bits: whole("slice_bits", bits)? },
            (None, Some(blocks)) => Segment::Blocks {
                blocks: whole("blocks", blocks)?,
                block_bits: whole("block_bits", block_bits)?,
                parts: whole("parts", parts)?,
            },
            _ => return Err(PyValueError::new_err("give slice_bits or blocks, and not both")),
        };
        let (k, l, seed) = (whole("k", k)?, whole("l", l)?, whole("seed", seed)?);
        let filter = py.detach(|| AgePartitioned::new(Shape::new(k, l, segment)?, window, seed))?;
        wrap(py, Box::new(filter))
    }
}
