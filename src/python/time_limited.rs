//! `TimeLimitedBloomFilter`: its constructors, and the slices it has grown.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::times;
use super::whole::Whole;
use super::wrap;
use crate::filter;
use crate::layout::time_limited::Slices;
use crate::shape::time_limited::{Shape, choose};

/// Keys per window where nobody has a guess: a few dozen KiB.
const FIRST_GUESS: i128 = 10_000;

/// Time-limited Bloom filter: a window of time for a rate that nobody knows; memory follows the keys that come.
///
/// Parameters
/// ----------
/// window : span of time
///     What "lately" means: a span such as ``"10min"``, a `datetime.timedelta` or a `numpy.timedelta64`.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be at a steady rate, at the worst phase, in (0, 1).
/// capacity : int, optional
///     First guess of the keys within one window, which the first slices are sized for; the default is 10,000. A wrong
///     one costs memory or accuracy for the first window or two.
/// slack : span of time, optional
///     Longest that a key may still be reported after leaving the window. The default is half the window.
/// lateness : span of time, optional
///     How far `at` may step back; the window is kept for late keys too. The default is 0.
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
///     If the memory cannot be had. A filter that cannot grow refuses keys with it, too: those before are inserted.
///
/// Notes
/// -----
/// No key of the window is missed, whatever the rate does. While the rate rises there are more slices than planned, and
/// more chances for a run of matches: `fpr` is then exceeded, in proportion to their number, until sizes have followed,
/// for about one window. `false_positive_rate` says what it is now, and `fill` has one value per live slice.
///
/// `nbytes` is what the slices take now, of memory that may be up to a seventh more. It grows with the rate and comes back
/// as old slices are dropped, which is done by insertions; when the memory has to change, there are for a moment two
/// copies.
///
/// Paper 3: A. Rodrigues, A. Shtul, C. Baquero, P. S. Almeida, Time-limited Bloom Filter, 2023.
///
/// Examples
/// --------
/// >>> f = lately.TimeLimitedBloomFilter("10min", 0.001)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
/// >>> before = f.nbytes
/// >>> f.insert(range(1_000_000), at=2001)
/// >>> f.query(range(1_000_000), at=2601).all(), f.nbytes > 50 * before
/// (np.True_, True)
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct TimeLimitedBloomFilter;

#[pymethods]
impl TimeLimitedBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr, *, capacity=None, slack=None, lateness=None, seed=Whole::new(0)),
        text_signature = "(window, fpr, *, capacity=None, slack=None, lateness=None, seed=0)")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: f64,
        capacity: Option<Whole>,
        slack: Option<&Bound<'_, PyAny>>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::span_window(window, capacity.or(Some(Whole::new(FIRST_GUESS))), lateness)?.check()?;
        let slack = slack.map(|slack| times::length("slack", slack, window)).transpose()?;
        let seed = seed.within("seed")?;
        let filter = py.detach(|| filter::Filter::new(choose(window, fpr, slack)?, window, seed))?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter with the parameters of the paper.
    ///
    /// Parameters
    /// ----------
    /// window : span of time
    ///     As in the constructor; a generation lasts at most the l-th part of window and lateness.
    /// k, l : int
    ///     Consecutive slices that must match, and full generations kept; k + l at most 128.
    /// slice_bits : int
    ///     Bits of each of the first k slices: a multiple of 64, at least 512.
    /// capacity, lateness, seed
    ///     As in the constructor, but `capacity` does not size the first slices here.
    ///
    /// Returns
    /// -------
    /// TimeLimitedBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.TimeLimitedBloomFilter.from_parameters("1h", k=10, l=7, slice_bits=2048)
    /// >>> len(f.fill), f.nbytes
    /// (0, 2904)
    /// >>> f.slice_bits.tolist() == [2048] * 10
    /// True
    #[classmethod]
    #[pyo3(signature = (window, k, l, *, slice_bits, capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "($cls, window, k, l, *, slice_bits, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        l: Whole,
        slice_bits: Whole,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::span_window(window, capacity.or(Some(Whole::new(FIRST_GUESS))), lateness)?;
        let (k, l, slice_bits, seed) =
            (k.within("k")?, l.within("l")?, slice_bits.within("slice_bits")?, seed.within("seed")?);
        let filter = py.detach(|| filter::Filter::new(Shape::new(k, l, slice_bits)?, window, seed))?;
        wrap(py, filter)
    }

    /// ndarray of uint64, shape (slices,): bits of each slice there is, the newest first. Slices that are stale stay until
    /// an insertion makes room; `fill` has the live ones only.
    #[getter]
    fn slice_bits<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        let bits = slf.as_super().get().with(|filter| {
            let slices: &Slices = filter.engine_as().expect("every object of the class is made around one");
            slices.slice_bits()
        });
        bits.into_pyarray(slf.py())
    }
}
