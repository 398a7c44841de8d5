//! `StableBloomFilter`: its constructors.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::budget;
use super::filter::Filter;
use super::times;
use super::whole::Whole;
use super::wrap;
use crate::filter;
use crate::shape::slices::Slices;
use crate::shape::stable::{Shape, choose};

/// Stable Bloom filter: **promises no window.** Keys are forgotten at random, some of them soon after they came.
///
/// Here to be compared with. Every insertion takes one from random cells and sets its own to their maximum, so that the
/// filter is never full; its rate of false positives holds however long the stream is.
///
/// Parameters
/// ----------
/// window : int
///     Nominal, at most 2**32: of the keys inserted exactly so many insertions ago, a tenth at most is forgotten, in
///     expectation; of younger ones less, of older ones more. Some keys are remembered much longer: `slack` has no bound
///     here, and is 2**64 - 1.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be at the stable point, in (0, 1). Give this or
///     `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has nearly the least rate that fits.
/// seed : int, default 0
///     Seed of the key hashes and of the decay, in [0, 2**64). What is forgotten follows from it and the keys.
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
/// F. Deng, D. Rafiei, Approximately Detecting Duplicates for Streaming Data using Stable Bloom Filters, 2006.
///
/// Examples
/// --------
/// >>> f = lately.StableBloomFilter(window=10_000, fpr=0.01)
/// >>> f.insert(range(100_000))
/// >>> found = f.query(range(90_000, 100_000))
/// >>> bool(0.9 < found.mean() < 1), bool(found[-1])
/// (True, True)
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct StableBloomFilter;

#[pymethods]
impl StableBloomFilter {
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

    /// A filter of given size and decay.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     As in the constructor; here a name only.
    /// k : int
    ///     Slices, and cells of a key, at most 128.
    /// slice_cells : int
    ///     m: cells of each slice.
    /// bits : {1, 2, 4, 8}
    ///     Bits of a cell; a key's are set to Max = 2**bits - 1.
    /// decrements : int
    ///     P: cells of each slice that every insertion takes one from, at most all.
    /// seed : int, default 0
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// StableBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.StableBloomFilter.from_parameters(20_000, k=2, slice_cells=35_000, bits=4, decrements=30)
    /// >>> f.nbytes, round(f.fpr, 3)
    /// (35000, 0.151)
    #[classmethod]
    #[pyo3(signature = (window, k, slice_cells, *, bits, decrements, seed=Whole::new(0)),
        text_signature = "($cls, window, k, slice_cells, *, bits, decrements, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        slice_cells: Whole,
        bits: Whole,
        decrements: Whole,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let window = times::insertions(window)?;
        let slices = Slices::new(k.within("k")?, slice_cells.within("slice_cells")?)?;
        let shape = Shape::new(slices, bits.within("bits")?, decrements.within("decrements")?)?;
        let seed = seed.within("seed")?;
        wrap(class.py(), class.py().detach(|| filter::Filter::new(shape, window, seed))?)
    }
}
