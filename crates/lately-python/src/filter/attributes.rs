//! The attributes of a filter: its promises, its parameters, its fill and its `repr`.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyFilter;
use crate::arguments::public_seed;
use crate::arrays::array_of;
use crate::calls::detached;
use crate::figures::{self, ReprFields};

#[pymethods]
impl PyFilter {
    /// int, float or None: the window in insertions, or in seconds. None for a filter that forgets nothing.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        figures::window(py, &self.clock(py)?)
    }

    /// int or float: how long after the window a key may still be reported, in insertions or seconds. Infinite for a
    /// filter that is not certain to forget a key.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        figures::slack(py, self.window, detached(py, || self.read().slack())?)
    }

    /// float or None: how far, in seconds, event times may step back. None for a window of insertions.
    #[getter]
    fn lateness(&self) -> Option<f64> {
        figures::lateness(self.window)
    }

    /// float or None: how far, in seconds, the event times of insertions may lie ahead of the system's clock. None if
    /// any time is accepted, and for a window of insertions.
    #[getter]
    fn max_ahead(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(figures::max_ahead(&self.clock(py)?))
    }

    /// numpy.datetime64 or None: the latest time of an insertion, by `at` or the system's clock, UTC in nanoseconds.
    /// None before the first key, and for a window of insertions.
    #[getter]
    fn latest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        figures::latest(py, &self.clock(py)?)
    }

    /// int: keys that the filter is planned for, within one window or in all. More keys cost accuracy; none is lost.
    #[getter]
    fn capacity(&self) -> u64 {
        self.window.capacity()
    }

    /// float: probability that a key never inserted is reported, at the worst phase and the planned load.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().fpr())
    }

    /// float: expected number of keys reported after the window, divided by the window, at the peak (paper 1,
    /// definition 2).
    #[getter]
    fn npws(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().shape().npws(self.window))
    }

    /// dict of str to float, or None: expected number of slices that Algorithm 1 of paper 1 reads, which stops early:
    /// for a key of the window (``window``), for a key never inserted that is reported (``false_positive``) or not
    /// (``absent``). None for filters without such slices.
    #[getter]
    fn accesses<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        figures::accesses(py, detached(py, || self.read().shape().accesses(self.window))?)
    }

    /// int: bytes of the cells, the only memory that grows with the window.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.read().engine().nbytes() as u64)
    }

    /// float: bits of the cells for each key of a full window.
    #[getter]
    fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.nbytes(py)? as f64 * 8.0 / self.capacity() as f64)
    }

    /// int: keys inserted so far, by which a window of insertions advances. Keys of `duplicated` count whether they are
    /// reported or not; with ``refresh="delivered"`` and a window of insertions only those not reported count.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        self.keys_so_far(py)
    }

    /// int or None: seed of the key hashes. None for a secret, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        public_seed(self.hasher.seed())
    }

    /// str: name of the family and layout, as in `lately.plan` and the command.
    #[getter]
    fn family(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.read().name())
    }

    /// dict of str to int: the parameters of the paper, by the names that `from_parameters` takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        figures::parameters(py, detached(py, || self.read().parameters())?)
    }

    /// ndarray of float64: share of bits that are set, for each generation, the newest first.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        array_of(py, detached(py, || self.read().engine().fill())?)
    }

    /// Compute the probability that a key never inserted is reported now, from the present cells.
    ///
    /// Returns
    /// -------
    /// float
    ///     About `fpr` at most; less with repeated keys and between rotations. Reads all of the filter's memory.
    ///
    /// Examples
    /// --------
    /// >>> lately.AgePartitionedBloomFilter(window=1000, fpr=0.001).false_positive_rate()
    /// 0.0
    fn false_positive_rate(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().false_positive_rate())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, filter) = (slf.py(), slf.get());
        let (window, parameters) = (filter.window(py)?, detached(py, || filter.read().parameters())?);
        let fields = ReprFields {
            window: filter.window,
            endless: window.is_none(),
            fpr: filter.fpr(py)?,
            parameters,
            nbytes: filter.nbytes(py)?,
        };
        Ok(format!("<{} {} inserted={}>", slf.get_type().name()?, fields.text(py)?, filter.inserted(py)?))
    }
}
