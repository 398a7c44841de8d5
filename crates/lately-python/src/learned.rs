//! `lately.Learned`: a prior that is learned from the stream.

use numpy::prelude::*;
use numpy::{Element, PyArray1, PyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyTuple, PyType};

use super::batch::Batch;
use super::calls::{Lock, detached};
use super::keys::read_keys;
use super::time::moments::OwnedMoments;
use super::whole::WholeNumber;
use crate::arrays::array_of;
use crate::errors::raise;
use lately::clock::Window;
use lately::key::KeyHasher;
use lately::memory::fallible;
use lately::prior::learned;

/// Read numbers of insertions, of any shape. Raises ValueError if one is negative or NaN.
#[pyfunction]
pub fn read_insertions<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let py = values.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (values, f64::get_dtype(py)))?;
    let array = array.cast_into::<PyArrayDyn<f64>>()?;
    if let Some(&wrong) = array.readonly().as_array().iter().find(|&&value| value.is_nan() || value < 0.0) {
        let message = format!("insertions must be 0 or more, got {}", PyFloat::new(py, wrong));
        return Err(PyValueError::new_err(message));
    }
    Ok(array)
}

/// A prior that is learned from the stream: how likely each key is to arrive next.
///
/// At equal memory of filter and prior it does not pay. Its bytes, some 16 for each key of a half-life, are better
/// spent on a larger filter with one number as prior. Use it for a filter whose size is fixed, or for many filters that
/// share one prior.
///
/// Query the filter first, then insert the same keys here and there. Pass this object as `prior` to `posterior`,
/// `decide`, `age` and `age_probability`. Nothing about the stream must be known; keys may arrive in bursts and change
/// their frequencies.
///
/// Parameters
/// ----------
/// half_life : int
///     Insertions after which an occurrence counts half, 1 to 2**62. The prior is calibrated at this age: choose the
///     window of the filter, `f.capacity`, or the longest window of a query.
/// nbytes : int, default 2**20
///     Greatest number of bytes to use, 8192 or more.
/// seed : int, default 0
///     Seed of the key hashes, in [0, 2**64).
///
/// Raises
/// ------
/// ValueError
///     If a parameter is out of range; the message names it.
/// MemoryError
///     If the memory cannot be allocated.
///
/// Notes
/// -----
/// A count-min sketch of decayed counts takes about three quarters of the memory: four 16-bit cells for each key,
/// shared with other keys. A quarter stores when keys were last inserted, for all keys or a sample that fits, at 16
/// bytes each. 4480 bytes contain ages by class of count. `p` is computed from the share of keys of the same class that
/// were at most one half-life old. It therefore measures how lately a key arrived rather than how often it will arrive;
/// the two differ if keys arrive in bursts. Collisions make `p` less precise, and too high with fewer than 16 bytes for
/// each key of a half-life, because new keys inherit the counts of others. A small sample makes it less accurate: a
/// class of n sampled keys has an error of about 1/(2 sqrt(n)). Keys of more than 2048 occurrences have one `p`, 1420 /
/// half_life.
///
/// Counts are halved in each half-life, and the ages by class in each half-life or 65,536 insertions, whichever is
/// longer. A half-life shorter than the window forgets keys of the window, and can be worse than no prior. On real
/// streams, decisions cost up to 2.4 times as much with a quarter of the window, and at most 0.83 times as much with
/// four windows.
///
/// A call costs about as much as one of the filter. Each half-life ends with a pass over all cells, so choose little
/// memory for a short half-life.
///
/// The prior itself stores which keys arrived lately, so it may contain more than a small filter. Compare both at equal
/// total memory; `tune` includes the memory of the prior.
///
/// Examples
/// --------
/// >>> prior = lately.Learned(half_life=1000)
/// >>> prior.insert([7, 1, 7, 2, 7, 3] * 100)
/// >>> p = prior.probability([7, "never seen"])
/// >>> bool(p[0] > 100 * p[1] > 0)
/// True
#[pyclass(frozen, module = "lately")]
pub struct Learned {
    inner: Lock<learned::Learned>,
    hasher: KeyHasher,
}

impl Learned {
    fn wrap(inner: learned::Learned) -> Self {
        Self { hasher: KeyHasher::new(inner.seed()), inner: Lock::new(inner) }
    }

    /// Calls `read` with the prior, detached from the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&learned::Learned) -> T + Send) -> PyResult<T> {
        detached(py, || read(&self.inner.read()))
    }

    /// Returns a number for each key of a batch, which `compute` writes.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        compute: impl Fn(&learned::Learned, &[u64], &mut [f64]) -> PyResult<()> + Sync,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let batch = Batch::untimed(read_keys(keys, &self.hasher)?);
        let numbers: Vec<f64> = batch.run(py, 1, |hashes, _, numbers| compute(&self.inner.read(), hashes, numbers))?;
        array_of(py, numbers)
    }
}

#[pymethods]
impl Learned {
    #[new]
    #[pyo3(signature = (half_life, *, nbytes=WholeNumber::new(1 << 20), seed=WholeNumber::new(0)),
        text_signature = "(half_life, *, nbytes=1048576, seed=0)")]
    fn new(py: Python<'_>, half_life: WholeNumber, nbytes: WholeNumber, seed: WholeNumber) -> PyResult<Self> {
        let (half_life, nbytes, seed) =
            (half_life.within("half_life")?, nbytes.within("nbytes")?, seed.within("seed")?);
        Ok(Self::wrap(detached(py, || learned::Learned::new(nbytes, half_life, seed))?.map_err(raise)?))
    }

    /// Learn from keys, in the order in which they were inserted.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    /// at : time or n times, optional
    ///     Event times: Unix seconds, or datetimes. Only `rate` needs them.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If the type of a key has no canonical form; the message names it. Nothing is learned then.
    /// ValueError
    ///     If a time is missing or `at` does not fit `keys`. Nothing is learned then.
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> prior.insert(["a", "b"])
    /// >>> prior.inserted
    /// 2
    #[pyo3(signature = (keys, *, at=None))]
    fn insert(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let keys = read_keys(keys, &self.hasher)?;
        // As for a window of insertions, keys without `at` have no times.
        let moments = OwnedMoments::read(at, Window::Count { insertions: 1 }, keys.len())?;
        Batch { keys, moments }.run(py, 1, |hashes, at, _: &mut [()]| {
            self.inner.write().insert(hashes, at);
            PyResult::Ok(())
        })?;
        Ok(())
    }

    /// Compute the probability that the next insertion is this key.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     As in `insert`.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     The p of a geometric law of ages, calibrated at the age `half_life`; in (0, 1], never 0.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     As `insert`.
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> prior.insert(["often", "often", "once"])
    /// >>> often, once = prior.probability(["often", "once"])
    /// >>> bool(often > once > 0)
    /// True
    fn probability<'py>(&self, py: Python<'py>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.numbers(py, keys, |prior, hashes, numbers| {
            prior.probability(hashes, numbers);
            Ok(())
        })
    }

    /// Compute the insertions of each key per second.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     As in `insert`.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     The rate per insertion behind `probability`, times the mean insertions of the stream per second, whose older
    ///     part is halved as the ages by class are.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     As `insert`.
    /// ValueError
    ///     If no time passed between insertions: pass `at` to every `insert`.
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> prior.insert(["a", "b"] * 50, at=range(100))
    /// >>> bool(prior.rate(["a"])[0] > 0)
    /// True
    fn rate<'py>(&self, py: Python<'py>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rate = |prior: &learned::Learned, hashes: &[u64], numbers: &mut [f64]| {
            let error = || PyValueError::new_err("rate needs event times: pass at= to every insert");
            prior.rate(hashes, numbers).ok_or_else(error)
        };
        // An empty batch needs times too.
        self.with(py, |prior| rate(prior, &[], &mut []))??;
        self.numbers(py, keys, rate)
    }

    /// Compute the expected number of distinct keys among n successive insertions, D(j) of paper 5.
    ///
    /// Parameters
    /// ----------
    /// insertions : float or array of float
    ///     Any shape; 0 or more.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, of the same shape
    ///     Computed from the ages of sampled keys at their repeats, bursts included; eq. 18 interpolates. A straight
    ///     line beyond the greatest age in the sample, which is at most 16 half-lives. Before the first repeat every
    ///     insertion counts as distinct.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a number is negative or NaN.
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> prior.insert(["a", "b", "c"] * 1000)
    /// >>> prior.distinct([0, 1, 1000]).round(1)
    /// array([0., 1., 3.])
    fn distinct<'py>(&self, py: Python<'py>, insertions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = read_insertions(insertions)?;
        let values = fallible::collected(array.readonly().as_array().iter().copied()).map_err(raise)?;
        let mut distinct = fallible::zeroed(values.len()).map_err(raise)?;
        self.with(py, |inner| inner.distinct(&values, &mut distinct))?;
        array_of(py, distinct)?.call_method1(intern!(py, "reshape"), (array.getattr(intern!(py, "shape"))?,))
    }

    /// int: insertions after which an occurrence counts half, and the age at which the prior is calibrated.
    #[getter]
    fn half_life(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::half_life)
    }

    /// int: bytes of counts, last insertions and ages, which is all the memory of the prior.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::nbytes)
    }

    /// int: insertions so far.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::inserted)
    }

    /// int: seed of the key hashes.
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::seed)
    }

    /// Return the prior as bytes, which `Learned.from_bytes` reads.
    ///
    /// Returns
    /// -------
    /// bytes
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> lately.Learned.from_bytes(prior.to_bytes())
    /// Learned(half_life=1000, nbytes=1048576, seed=0)
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, learned::Learned::to_bytes)?.map_err(raise)?))
    }

    /// Read a prior from the bytes that `to_bytes` returned.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///
    /// Returns
    /// -------
    /// Learned
    ///     The prior in the state in which it was saved.
    ///
    /// Raises
    /// ------
    /// FormatError
    ///     If the bytes are not a prior, are damaged, or were written by a version that this one cannot read.
    ///
    /// Examples
    /// --------
    /// >>> lately.Learned.from_bytes(lately.Learned(half_life=1000).to_bytes()).inserted
    /// 0
    #[classmethod]
    fn from_bytes(class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        // A bytes object never changes, so it can be read detached from the interpreter.
        Ok(Self::wrap(detached(class.py(), || learned::Learned::from_bytes(data))?.map_err(raise)?))
    }

    /// Return what pickle and copy call, and its arguments.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(py)?,).into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (half_life, nbytes, seed) = self.with(py, |inner| (inner.half_life(), inner.nbytes(), inner.seed()))?;
        Ok(format!("Learned(half_life={half_life}, nbytes={nbytes}, seed={seed})"))
    }
}
