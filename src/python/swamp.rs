//! `Swamp`: its constructors, and the two answers that only it has.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::whole::Whole;
use super::{budget, times, wrap};
use crate::clock::Moments;
use crate::engine::Aged;
use crate::filter;
use crate::layout::swamp::Buffered;
use crate::shape::swamp::{Shape, choose};

/// SWAMP: an exact window without slack, that also counts keys.
///
/// A buffer of the last fingerprints and a table of how often each occurs there: a key is there for exactly `window`
/// insertions, and gone with the next.
///
/// Parameters
/// ----------
/// window : int
///     What "lately" means: the last so many insertions, at most 2**32. A span of time is refused: it may hold more keys
///     than there is room for.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be, in (0, 1). Give this or `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has the least rate that fits.
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
/// E. Assaf, R. Ben Basat, G. Einziger, R. Friedman, Pay for a Sliding Bloom Filter and Get Counting, Distinct Elements,
/// and Entropy for Free, INFOCOM 2018. Of W different keys one has the fingerprint of a fresh one with chance
/// 1 - (1 - 1 / (slots * 2**remainder_bits))**W: `fpr`, at every phase.
///
/// Examples
/// --------
/// >>> f = lately.Swamp(window=3, fpr=1e-6)
/// >>> f.duplicated(["a", "b", "a", "c", "d", "e", "a"])
/// array([False, False,  True, False, False, False, False])
/// >>> f.slack
/// 0
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct Swamp;

#[pymethods]
impl Swamp {
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

    /// A filter with the parameters of its table.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     As in the constructor.
    /// slots : int
    ///     Slots of the table: a multiple of 64, more than `window`. It slows down when hardly any are left.
    /// remainder_bits : int
    ///     Bits of a fingerprint that a slot keeps; there are slots * 2**remainder_bits fingerprints, at most 2**63.
    /// seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// Swamp
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.Swamp.from_parameters(1000, slots=1280, remainder_bits=8)
    /// >>> f.nbytes, round(f.fpr, 4)
    /// (4296, 0.003)
    #[classmethod]
    #[pyo3(signature = (window, slots, remainder_bits, *, seed=Whole::new(0)),
        text_signature = "($cls, window, slots, remainder_bits, *, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        slots: Whole,
        remainder_bits: Whole,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::insertions(window)?;
        let (slots, bits, seed) =
            (slots.within("slots")?, remainder_bits.within("remainder_bits")?, seed.within("seed")?);
        let filter = py.detach(|| filter::Filter::new(Shape::new(slots, bits)?, window, seed))?;
        wrap(py, filter)
    }

    /// Tell how often keys were inserted within the window.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
    ///
    /// Returns
    /// -------
    /// ndarray of uint64, shape (n,)
    ///     Never less than the true number. More, with probability at most `fpr`, by the insertions of other keys of the
    ///     window that have the same fingerprint.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.Swamp(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b", "a"])
    /// >>> f.count(["a", "b", "c"])
    /// array([2, 1, 0], dtype=uint64)
    fn count<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let base = slf.as_super().get();
        let count = |hashes: &[u64], _: Moments<'_>, counts: &mut [u64]| {
            base.with(|filter| {
                let Aged { layout, words, .. } = swamp(filter);
                let count = |&hash| layout.count(words.as_slice(), hash);
                counts.iter_mut().zip(hashes.iter().map(count)).for_each(|(count, counted)| *count = counted);
            });
            Ok(())
        };
        Ok(base.batch(py, keys, None, false)?.run(py, 1, count)?.into_pyarray(py))
    }

    /// Estimate how many different keys were inserted within the window.
    ///
    /// Returns
    /// -------
    /// float
    ///     ln(1 - D / R) / ln(1 - 1 / R) for D different fingerprints of R possible ones. Its standard deviation is
    ///     about n / sqrt(2 R) for n keys, under sqrt(n * fpr / 2). Reads all of the table.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.Swamp(window=1000, fpr=0.001)
    /// >>> f.insert(["a", "b", "a"])
    /// >>> round(f.distinct(), 3)
    /// 2.0
    fn distinct(slf: &Bound<'_, Self>, py: Python<'_>) -> f64 {
        let base = slf.as_super().get();
        py.detach(|| {
            base.with(|filter| {
                let Aged { layout, words, .. } = swamp(filter);
                layout.distinct(words.as_slice())
            })
        })
    }
}

/// The filter inside an object of this class.
fn swamp(filter: &filter::Filter) -> &Aged<Buffered> {
    filter.engine_as().expect("every object of the class Swamp is made around one")
}
