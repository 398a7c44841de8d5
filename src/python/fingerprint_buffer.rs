//! `FingerprintBuffer`: its constructors.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::whole::Whole;
use super::{budget, times, wrap};
use crate::filter;
use crate::shape::fingerprint_buffer::{Shape, choose};

/// Fingerprint buffer: a list of the last keys' fingerprints, searched by every query. A baseline.
///
/// The exact window in little memory: a key is there for exactly `window` insertions. But a query searches all of it:
/// 0.25 us for a window of 1000, 2 us for 10,000. For large windows take `Swamp`, which answers at once from half as much
/// memory again.
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
/// The simple buffer of paper 5: J. L. Dautrich, C. V. Ravishankar, Inferring insertion times and optimizing error
/// penalties in time-decaying Bloom filters, 2019, section 6.2. Of W different keys one has the fingerprint of a fresh one with chance
/// 1 - (1 - 1 / (2**bits - 1))**W: `fpr`, at every phase.
///
/// Examples
/// --------
/// >>> f = lately.FingerprintBuffer(window=3, fpr=1e-6)
/// >>> f.duplicated(["a", "b", "a", "c", "d", "e", "a"])
/// array([False, False,  True, False, False, False, False])
/// >>> f.slack
/// 0
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct FingerprintBuffer;

#[pymethods]
impl FingerprintBuffer {
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

    /// A filter with the parameters of the paper.
    ///
    /// Parameters
    /// ----------
    /// window : int
    ///     As in the constructor.
    /// fingerprint_bits : int
    ///     bph: bits of a fingerprint, 1 to 64.
    /// seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// FingerprintBuffer
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.FingerprintBuffer.from_parameters(1000, fingerprint_bits=16)
    /// >>> f.nbytes, round(f.fpr, 4)
    /// (2048, 0.0151)
    #[classmethod]
    #[pyo3(signature = (window, fingerprint_bits, *, seed=Whole::new(0)),
        text_signature = "($cls, window, fingerprint_bits, *, seed=0)")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        fingerprint_bits: Whole,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::insertions(window)?;
        let (bits, seed) = (fingerprint_bits.within("fingerprint_bits")?, seed.within("seed")?);
        let filter = py.detach(|| filter::Filter::new(Shape::new(bits)?, window, seed))?;
        wrap(py, filter)
    }
}
