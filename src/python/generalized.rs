//! `GeneralizedBloomFilter`: its constructors, and how soon it forgets.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::whole::Whole;
use super::{budget, times, wrap};
use crate::filter;
use crate::shape::generalized::{Shape, choose};

/// Generalized Bloom filter: **promises no window.** Every bit forgets gradually, and keys fade.
///
/// An insertion sets k1 bits of the key to one and resets k0 to zero, which wins where both hit. A key is reported when
/// all of them are as it left them: each later key may have changed one, by chance, and so the filter loses some keys
/// of the window and keeps some beyond. `false_negative_rates` tells how many by age.
///
/// Parameters
/// ----------
/// window : int
///     What the sizes are chosen for, and nothing else: of the keys that are the last of so many insertions, a tenth at
///     most is missed, in expectation; of younger ones less, of older ones more. `slack` has no bound here, and is
///     2**64 - 1.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be, in (0, 1): the filter takes the least memory that
///     keeps both. Give this or `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has the least rate that remembers the window so well.
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
/// Rates are expectations at the fill that the filter tends to, where false positives are most likely. A cell that some
/// key wrote is still as it was, i different other keys later, with chance (1 - 1/bits)**(i * (k0 + k1)), or else holds
/// what any cell does. Repeated keys change nothing anew: they make it forget less.
///
/// R. P. Laufer, P. B. Velloso, O. C. Duarte, A Generalized Bloom Filter to Secure Distributed Network Applications, 2011;
/// on streams: paper 5, section 5 (J. Dautrich, C. Ravishankar, Inferring Insertion Times and Optimizing Error Penalties
/// in Time-Decaying Bloom Filters, 2019).
///
/// Examples
/// --------
/// >>> f = lately.GeneralizedBloomFilter(window=10_000, fpr=0.01)
/// >>> f.insert(range(100_000))
/// >>> found = f.query(range(90_000, 100_000))
/// >>> bool(0.9 < found.mean() < 1), bool(found[-1])
/// (True, True)
/// >>> f.false_negative_rates([0, 4_999, 9_999]).round(3)
/// array([0.   , 0.052, 0.1  ])
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct GeneralizedBloomFilter;

#[pymethods]
impl GeneralizedBloomFilter {
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
        let (budget, seed) = (budget(fpr, nbytes)?, seed.within("seed")?);
        let filter = py.detach(|| filter::Filter::new(choose(window, budget)?, window, seed))?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter of given size.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     As in the constructor; here a name only.
    /// bits : int
    ///     m: cells, of one bit each.
    /// k1 : int
    ///     Hashes that set a bit, at most 64.
    /// k0 : int
    ///     Hashes that reset a bit, at most 64.
    /// seed : int, default 0
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// GeneralizedBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GeneralizedBloomFilter.from_parameters(1000, bits=100_000, k1=4, k0=3)
    /// >>> f.nbytes, round(f.fpr, 4)
    /// (12504, 0.0084)
    #[classmethod]
    #[pyo3(signature = (window, bits, *, k1, k0, seed=Whole::new(0)),
        text_signature = "($cls, window, bits, *, k1, k0, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        bits: Whole,
        k1: Whole,
        k0: Whole,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let window = times::insertions(window)?;
        let shape = Shape::new(bits.within("bits")?, k1.within("k1")?, k0.within("k0")?)?;
        let seed = seed.within("seed")?;
        wrap(class.py(), class.py().detach(|| filter::Filter::new(shape, window, seed))?)
    }

    /// Chance that a key is missed, by its age.
    ///
    /// Parameters
    /// ----------
    /// ages : sequence of int, of length n
    ///     Insertions of other keys since its own, in [0, 2**64): the oldest key of a window W has W - 1.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    ///     In expectation, at the fill that the filter tends to. From 0 on it rises to 1 - `fpr`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If an age is negative or too large.
    /// TypeError
    ///     If an age is no int.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GeneralizedBloomFilter.from_parameters(1000, bits=1000, k1=3, k0=3)
    /// >>> f.false_negative_rates([0, 10, 100, 1000]).round(3)
    /// array([0.   , 0.162, 0.784, 0.984])
    fn false_negative_rates<'py>(slf: &Bound<'py, Self>, ages: Vec<Whole>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let ages = ages.into_iter().map(|age| age.within("ages")).collect::<PyResult<Vec<u64>>>()?;
        let (py, filter) = (slf.py(), slf.as_super().get());
        let memory = py.detach(|| {
            filter.with(|filter| {
                let shape: &Shape = filter.shape_as().expect("every object of the class is made around one");
                shape.memory()
            })
        });
        Ok(ages.into_iter().map(|age| memory.missed(age as f64)).collect::<Vec<_>>().into_pyarray(py))
    }
}
