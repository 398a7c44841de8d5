//! `Learned`: a prior that learns from the stream.

use numpy::prelude::*;
use numpy::{Element, IntoPyArray, PyArray1, PyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyTuple, PyType};

use super::batch::{Batch, PATIENCE, look_at_signals};
use super::calls::{Lock, detached};
use super::keys::read_keys;
use super::moments::OwnedMoments;
use super::whole::Whole;
use crate::errors::raise;
use lately::clock::Window;
use lately::key::KeyHasher;
use lately::memory::fallible;
use lately::prior::learned;

/// Numbers of insertions, of any shape; ValueError if one is negative or NaN.
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

/// A prior that learns from the stream itself how likely each key is to come.
///
/// At equal memory of both together it does not pay: its bytes, some 16 for each key of a half-life, are better spent
/// on a larger filter with one number for a prior. It is for a filter whose size is given, and for many that share it.
///
/// Insert the keys that the filter is given, after asking the filter, and pass this object to `posterior` and its
/// sister calls. It needs no knowledge of the stream; keys may come in bursts and change their frequencies.
///
/// Parameters
/// ----------
/// half_life : int
///     Insertions after which a sighting counts half, 1 to 2**62. The prior is calibrated at this age: take the window
///     of the filter, `f.capacity`, or the longest window to be asked for.
/// nbytes : int, default 2**20
///     Most bytes to use, 8192 or more.
/// seed : int, default 0
///     Seed of the key hashes, in [0, 2**64).
///
/// Raises
/// ------
/// ValueError
///     If a parameter is out of range; the message names it.
/// MemoryError
///     If the memory cannot be had.
///
/// Notes
/// -----
/// A count-min sketch of decayed counts takes about three quarters of the memory: four 16-bit cells for each key,
/// shared with other keys. A quarter remembers when keys were last inserted, all keys or a sample that fits, at 16
/// bytes each; 4480 bytes hold ages by class of count. `p` follows from the share of keys of the same class that were
/// no older than one half-life. So it tells how lately a key was here rather than how often it will come: the two
/// differ where keys come in bursts. Collisions make `p` less sharp, and too high below some 16 bytes for each key of a
/// half-life: keys never seen take on the counts of others. Few sampled keys make it less accurate: a class with n of
/// them is known to within about 1/(2 sqrt(n)). Keys of more than 2048 sightings are not told apart: p is 1420 /
/// half_life for all of them.
///
/// Counts fade by half in each half-life, and the ages by class in each half-life or 65,536 insertions, whichever is
/// longer. A half-life shorter than the window asked about forgets keys that are in it, and can be worse than no prior:
/// with a quarter of the window, answers cost up to 2.4 times as much on real streams; with four times the window at
/// most 0.83.
///
/// A call costs about as much as the filter's. Each half-life ends with a pass over all cells, so give a short one
/// little memory.
///
/// It is itself a memory of which keys came lately, so it can know more than a small filter beside it. Compare at equal
/// memory of both together; `tune` says how much the prior takes.
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

    /// `ask`'s answer, detached from the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&learned::Learned) -> T + Send) -> PyResult<T> {
        detached(py, || ask(&self.inner.read()))
    }

    /// Hashes a batch of keys, then answers for each; `None` if `ask` cannot.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
        ask: impl Fn(&learned::Learned, &[u64], &mut [f64]) -> Option<()> + Send + Sync,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let keys = read_keys(keys, &self.hasher)?;
        let answers = detached(py, || {
            let (mut answers, mut room) = (
                fallible::zeroed(keys.len()).map_err(raise)?,
                fallible::zeroed(keys.len().min(PATIENCE)).map_err(raise)?,
            );
            // At least once, even without keys.
            for start in (0..keys.len().max(1)).step_by(PATIENCE) {
                look_at_signals(start)?;
                let answers = &mut answers[start..keys.len().min(start + PATIENCE)];
                let hashes = &mut room[..answers.len()];
                keys.fill(start, hashes);
                if ask(&self.inner.read(), hashes, answers).is_none() {
                    return Ok(None);
                }
            }
            Ok::<_, PyErr>(Some(answers))
        })??;
        Ok(answers.map(|answers| answers.into_pyarray(py)))
    }
}

#[pymethods]
impl Learned {
    #[new]
    #[pyo3(signature = (half_life, *, nbytes=Whole::new(1 << 20), seed=Whole::new(0)),
        text_signature = "(half_life, *, nbytes=1048576, seed=0)")]
    fn new(py: Python<'_>, half_life: Whole, nbytes: Whole, seed: Whole) -> PyResult<Self> {
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
    ///     When they were seen: numbers are Unix seconds, or datetimes. Only `rate` needs it.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it. Nothing was learned then.
    /// ValueError
    ///     If `at` is missing a time or does not fit `keys`. Nothing was learned then.
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
        // The window is one of insertions, so without `at` there are no times.
        let moments = OwnedMoments::read(at, Window::Count { insertions: 1 }, keys.len())?;
        Batch { keys, moments }.run(py, 1, |hashes, at, _: &mut [()]| {
            self.inner.write().insert(hashes, at);
            PyResult::Ok(())
        })?;
        Ok(())
    }

    /// The chance that the next insertion is this key.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     As in `insert`.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     The p of a geometric law of ages that is calibrated at the age `half_life`; in (0, 1], never 0.
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
        let probability = |inner: &learned::Learned, hashes: &[u64], out: &mut [f64]| {
            inner.probability(hashes, out);
            Some(())
        };
        Ok(self.answer(py, keys, probability)?.expect("it always knows"))
    }

    /// Insertions of each key per second.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     As in `insert`.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     The rate per insertion behind `probability`, times the stream's mean insertions per second, which fades as
    ///     the ages by class do.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     As `insert`.
    /// ValueError
    ///     If no time has passed between insertions: `insert` was not given `at`.
    ///
    /// Examples
    /// --------
    /// >>> prior = lately.Learned(half_life=1000)
    /// >>> prior.insert(["a", "b"] * 50, at=range(100))
    /// >>> bool(prior.rate(["a"])[0] > 0)
    /// True
    fn rate<'py>(&self, py: Python<'py>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rates = self.answer(py, keys, learned::Learned::rate)?;
        rates.ok_or_else(|| PyValueError::new_err("rate needs times that pass: give at to every insert"))
    }

    /// Expected number of distinct keys among n successive insertions, D(j) of paper 5.
    ///
    /// Parameters
    /// ----------
    /// insertions : float or array of float
    ///     Any shape; 0 or more.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, of the same shape
    ///     From the ages of sampled keys when they came again, bursts included; eq. 18 interpolates. Beyond the oldest
    ///     age seen, at most 16 half-lives, it is a straight line. Until a key comes again, every insertion counts as
    ///     distinct.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If one is negative or NaN.
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
        distinct.into_pyarray(py).call_method1(intern!(py, "reshape"), (array.getattr(intern!(py, "shape"))?,))
    }

    /// int: insertions after which a sighting counts half, and the age at which the prior is calibrated.
    #[getter]
    fn half_life(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::half_life)
    }

    /// int: bytes of counts, sightings and ages together, the whole of what it takes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::nbytes)
    }

    /// int: insertions so far.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::inserted)
    }

    /// int: seed the keys are hashed with.
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, learned::Learned::seed)
    }

    /// All of it as bytes; `Learned.from_bytes` reads them.
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

    /// Read a prior from the bytes that `to_bytes` gave.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///
    /// Returns
    /// -------
    /// Learned
    ///     It goes on exactly where it stopped.
    ///
    /// Raises
    /// ------
    /// FormatError
    ///     If the bytes are no prior, are damaged, or were written by a version this one cannot read.
    ///
    /// Examples
    /// --------
    /// >>> lately.Learned.from_bytes(lately.Learned(half_life=1000).to_bytes()).inserted
    /// 0
    #[classmethod]
    fn from_bytes(class: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        // Bytes never change, so they can be read without holding the interpreter.
        Ok(Self::wrap(detached(class.py(), || learned::Learned::from_bytes(data))?.map_err(raise)?))
    }

    /// What pickle and copy call, and with which arguments.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(py)?,).into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (half_life, nbytes, seed) = self.with(py, |inner| (inner.half_life(), inner.nbytes(), inner.seed()))?;
        Ok(format!("Learned(half_life={half_life}, nbytes={nbytes}, seed={seed})"))
    }
}
