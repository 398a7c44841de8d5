//! `TimingBloomFilter`: its constructors.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::budget;
use super::filter::Filter;
use super::times;
use super::whole::Whole;
use super::wrap;
use crate::filter::Timing;
use crate::sizing::timing::{Shape, choose};

/// Timing Bloom filter: cells that remember when they were set, so that keys go one block at a time.
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
///     Longest that a key may still be reported after leaving the window, in the unit of `window`: about a
///     block. 0 makes the window exact (the plain timing Bloom filter, B = 1), for some seven times the memory
///     at a million keys. The default is half the window (and never less than 64 insertions).
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
/// Paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*, section 4. Paper 5: J. L. Dautrich, C. V.
/// Ravishankar, *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019,
/// section 3, whose block variant this is.
///
/// `fill` is the share of live timers in each of the k slices.
///
/// Examples
/// --------
/// >>> f = lately.TimingBloomFilter(window=1000, fpr=0.001, slack=100)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> f.slack, f.parameters["bpt"]
/// (78, 4)
/// >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=50_000)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct TimingBloomFilter;

#[pymethods]
impl TimingBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr=None, *, nbytes=None, slack=None, capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "(window, fpr=None, *, nbytes=None, slack=None, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        nbytes: Option<Whole>,
        slack: Option<&Bound<'_, PyAny>>,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::window(window, capacity, lateness)?.check()?;
        let slack = slack.map(|slack| times::length("slack", slack, window)).transpose()?;
        let budget = budget(fpr, nbytes)?;
        let seed = seed.within("seed")?;
        let filter = py.detach(|| Timing::new(choose(window, budget, slack)?, window, seed))?;
        Ok(PyClassInitializer::from(Filter::new(Box::new(filter))).add_subclass(Self))
    }

    /// A filter with the parameters of the papers.
    ///
    /// Parameters
    /// ----------
    /// window : int or span of time
    ///     As in the constructor.
    /// k : int
    ///     Timers a key sets, one in each of k slices, at most 64.
    /// bpt : int
    ///     Bits per timer, 2 to 32; a 64-bit word holds 64 // bpt timers.
    /// blocks : int
    ///     Full blocks kept, at most 2**bpt - 2 and 2**24 (2**14 with equal timers). A block is B = ceil((window - 1) / blocks) insertions, or
    ///     the like of time; ``window - 1`` blocks make B = 1, the plain timing Bloom filter. What 2**bpt - 1 has
    ///     beyond it is padding, which spreads the sweep of expired timers over so many blocks.
    /// slice_timers : int
    ///     Timers of each slice, m / k; rounded up to whole words.
    /// equal_timers : int, default 1
    ///     k': report a key only if so many of its timers are equal (paper 4). From 2 on this lowers the rate of false
    ///     positives, and the promise is off: keys of the window are missed when later ones have set too many of their
    ///     timers, as often as `false_negative_rates` says. `false_positive_rate()` is then an upper bound.
    /// capacity, lateness, seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// TimingBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160)
    /// >>> f.nbytes, f.slack, round(f.fpr, 4)
    /// (1280, 0, 0.0023)
    /// >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160, equal_timers=3)
    /// >>> round(f.fpr, 7), round(float(f.false_negative_rates.mean()), 4)
    /// (1.36e-05, 0.022)
    #[classmethod]
    #[pyo3(signature = (window, k, bpt, blocks, slice_timers, *, equal_timers=Whole::new(1), capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "($cls, window, k, bpt, blocks, slice_timers, *, equal_timers=1, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        bpt: Whole,
        blocks: Whole,
        slice_timers: Whole,
        equal_timers: Whole,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::window(window, capacity, lateness)?.check()?;
        let shape = Shape::new(
            k.within("k")?,
            bpt.within("bpt")?,
            blocks.within("blocks")?,
            slice_timers.within("slice_timers")?,
            equal_timers.within("equal_timers")?,
        )?;
        let seed = seed.within("seed")?;
        let filter = py.detach(|| Timing::new(shape, window, seed))?;
        wrap(py, Box::new(filter))
    }

    /// ndarray of float64, shape (blocks + 1,): chance that a key is missed so many blocks after its own, just before
    /// the next begins, at planned load, exact in expectation; zeros unless `equal_timers` is 2 or more. Its mean is
    /// about the share of duplicates missed when they are spread evenly over the window, its maximum the worst case.
    #[getter]
    fn false_negative_rates<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<f64>> {
        let (py, filter) = (slf.py(), slf.as_super().get());
        py.detach(|| filter.read().false_negative_rates()).into_pyarray(py)
    }
}
