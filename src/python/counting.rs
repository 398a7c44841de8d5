//! `CountingBloomFilter`: its constructors.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::budget;
use super::filter::Filter;
use super::times;
use super::whole::Whole;
use super::wrap;
use crate::filter;
use crate::shape::counting::{Shape, choose};
use crate::shape::slices::Slices;

/// Counting Bloom filter with a deletion queue: exactly the last `window` insertions, no slack.
///
/// What the newer filters are measured against, and the one to take when a key has to be forgotten to the insertion. It
/// costs a queue of 64 bits per key of the window beside its 4-bit counters (42 bits at 1 %), where
/// `AgePartitionedBloomFilter` takes 19 to 24 for both.
///
/// Parameters
/// ----------
/// window : int
///     The last so many insertions, at most 2**32. Spans of time are not counted: `AgePartitionedBloomFilter` takes
///     them.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be, with a window of distinct keys and none before
///     that came 15 times, in (0, 1). Give this or `nbytes`.
/// nbytes : int
///     Most bytes to use, the queue's 8 per key included: the filter then has nearly the least rate that fits.
/// seed : int, default 0
///     Seed of the key hashes, in [0, 2**64).
///
/// Raises
/// ------
/// ValueError
///     If a parameter is out of range; the message names it.
/// TypeError
///     If a parameter is of the wrong type.
/// MemoryError
///     If the memory cannot be had.
///
/// Notes
/// -----
/// No key of the window is missed, on any stream: a counter that has reached 15 cannot tell how many keys need it and is
/// never lowered again. **So false positives grow for good** with every key that comes 15 times within a window: these
/// stay, as if in a Bloom filter that never forgets. Of a filter planned at 1 %, a tenth of the window's keys makes a
/// floor of 2e-6, half of it 9e-4, as many as the window 1 %; `false_positive_rate` tells where it stands. Distinct keys
/// alone make no such floor: fewer than 1e-13 of the counters stick per window.
///
/// Papers 1 and 2 name this baseline; with counters that are lowered from 15 (as usual) it loses keys of skewed streams.
///
/// Examples
/// --------
/// >>> f = lately.CountingBloomFilter(window=3, fpr=0.001)
/// >>> f.duplicated(["a", "b", "a", "c", "d", "b"])
/// array([False, False,  True, False, False, False])
/// >>> f.slack
/// 0
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct CountingBloomFilter;

#[pymethods]
impl CountingBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr=None, *, nbytes=None, seed=Whole::new(0)),
        text_signature = "(window, fpr=None, *, nbytes=None, seed=0)")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        nbytes: Option<Whole>,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::insertions(window)?;
        let budget = budget(fpr, nbytes)?;
        let seed = seed.within("seed")?;
        let filter = py.detach(|| filter::Filter::new(choose(window, budget)?, window, seed))?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter of given size.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     As in the constructor.
    /// k : int
    ///     Slices, and counters of a key, at most 128.
    /// slice_cells : int
    ///     Counters of each slice.
    /// seed : int, default 0
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// CountingBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.CountingBloomFilter.from_parameters(1000, k=3, slice_cells=2000)
    /// >>> f.nbytes, round(f.fpr, 3)
    /// (11000, 0.061)
    #[classmethod]
    #[pyo3(signature = (window, k, slice_cells, *, seed=Whole::new(0)),
        text_signature = "($cls, window, k, slice_cells, *, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        slice_cells: Whole,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let window = times::insertions(window)?;
        let slices = Slices::new(k.within("k")?, slice_cells.within("slice_cells")?)?;
        let seed = seed.within("seed")?;
        wrap(class.py(), class.py().detach(|| filter::Filter::new(Shape { slices }, window, seed))?)
    }
}
