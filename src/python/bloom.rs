//! `BloomFilter`: its constructors, and its cells.

use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::slice;
use super::whole::Whole;
use super::{budget, wrap};
use crate::clock::Window;
use crate::filter;
use crate::shape::bloom::{Shape, choose};

/// Bloom filter, classical or partitioned: has a key **ever** been inserted?
///
/// It has no window (`window` is None) and forgets nothing. Take it for a stream that ends, or to compare with; for an
/// endless one every other filter here.
///
/// Parameters
/// ----------
/// capacity : int
///     Different keys it is planned for. More are taken too, none is lost, and false positives become more: `fpr` is what
///     was planned, `false_positive_rate()` what it has come to.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be with `capacity` different keys, in (0, 1). Give this
///     or `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has at most twice the least rate that fits.
/// partitioned : bool, default False
///     Keep a slice of the bits for each of a key's: a trifle more memory. The default is one array for all.
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
/// Up to a quarter more memory than the least is taken for fewer bits per key, each of which costs a cache line: 10.5
/// bits of memory per key and k = 4 at 1 %, where k = 7 would take 9.6 (`from_parameters` takes any).
///
/// `union` gives exactly the filter that took the keys of both, and its `inserted` is their sum.
///
/// B. H. Bloom, Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970; J. K. Mullin, A Second Look at Bloom
/// Filters, 1983; paper 1, section 4.
///
/// Examples
/// --------
/// >>> f = lately.BloomFilter(capacity=1_000_000, fpr=0.01)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> f.window, f.slack, round(f.bits_per_key, 1)
/// (None, 0, 10.5)
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct BloomFilter;

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, fpr=None, *, nbytes=None, partitioned=false, seed=Whole::new(0)),
        text_signature = "(capacity, fpr=None, *, nbytes=None, partitioned=False, seed=0)")]
    fn new(
        py: Python<'_>,
        capacity: Whole,
        fpr: Option<f64>,
        nbytes: Option<Whole>,
        partitioned: bool,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (capacity, budget, seed) = (capacity.within("capacity")?, budget(fpr, nbytes)?, seed.within("seed")?);
        let filter =
            py.detach(|| filter::Filter::new(choose(capacity, budget, partitioned)?, window(capacity), seed))?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter of given size.
    ///
    /// Parameters
    /// ----------
    /// capacity : int
    ///     As in the constructor.
    /// k : int
    ///     Bits of a key, at most 128.
    /// bits : int, optional
    ///     m: bits of the one array of a classical filter.
    /// slice_bits : int, optional
    ///     Bits of each of the k slices of a partitioned filter, instead of `bits`.
    /// seed : int, default 0
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// BloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.BloomFilter.from_parameters(1000, k=7, bits=9600)
    /// >>> f.nbytes, round(f.fpr, 4)
    /// (1200, 0.01)
    #[classmethod]
    #[pyo3(signature = (capacity, k, *, bits=None, slice_bits=None, seed=Whole::new(0)),
        text_signature = "($cls, capacity, k, *, bits=None, slice_bits=None, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        capacity: Whole,
        k: Whole,
        bits: Option<Whole>,
        slice_bits: Option<Whole>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let (capacity, k, seed) = (capacity.within("capacity")?, k.within("k")?, seed.within("seed")?);
        let shape = match (bits, slice_bits) {
            (Some(bits), None) => Shape::classical(k, bits.within("bits")?)?,
            (None, Some(bits)) => Shape::partitioned(k, bits.within("slice_bits")?)?,
            _ => return Err(PyTypeError::new_err("give bits or slice_bits, and not both")),
        };
        wrap(class.py(), class.py().detach(|| filter::Filter::new(shape, window(capacity), seed))?)
    }

    /// Which cells are a key's, for `lately.distributed`: a cell's number is its place in the words of all cells.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys. See `lately.hash_keys`.
    ///
    /// Returns
    /// -------
    /// ndarray of uint64, shape (n, k)
    ///     Its k bits. Of one array some of them may be the same.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.BloomFilter.from_parameters(1000, k=7, bits=9600)
    /// >>> f.cells(["a", "b"]).shape
    /// (2, 7)
    fn cells<'py>(slf: &Bound<'py, Self>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        slice::cells(slf.as_super(), keys)
    }

    /// The generation of each moment, for `lately.distributed`: of a filter that forgets nothing there is only one.
    ///
    /// Parameters
    /// ----------
    /// at : ignored
    /// n : int
    ///     How many.
    ///
    /// Returns
    /// -------
    /// ndarray of int64, shape (n,)
    ///     Zeros.
    ///
    /// Examples
    /// --------
    /// >>> lately.BloomFilter(1000, 0.01).generations(None, 2)
    /// array([0, 0])
    #[pyo3(signature = (at, n))]
    fn generations<'py>(
        slf: &Bound<'py, Self>,
        at: Option<&Bound<'_, PyAny>>,
        n: Whole,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let _ = at;
        slice::generations(slf.as_super(), None, n)
    }

    /// int: generations that a cell counts beside its own; 2**62, since nothing is forgotten.
    #[getter]
    fn kept(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Ok(slice::row(slf.as_super())?.kept())
    }
}

/// A number of keys to plan for, as a clock has it.
fn window(capacity: u64) -> Window {
    Window::Count { insertions: capacity }
}
