//! What a filter tells of itself: its attributes, how full it is, and its `repr`.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::calls::detached;
use super::figures::{ReprFields, accesses, cache_lines, in_units, parameters, slack};
use super::filter::Filter;
use super::seeds::shown;
use lately::clock::Window;

#[pymethods]
impl Filter {
    /// int, float or None: the window in insertions, or in seconds; None of a filter that forgets nothing.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let clock = self.clock(py)?;
        match clock.window() {
            _ if clock.endless() => Ok(None),
            Window::Count { insertions: window } | Window::Time { span: window, .. } => {
                in_units(py, self.window, window).map(Some)
            }
        }
    }

    /// int or float: how long after leaving the window a key may still be reported, in insertions or seconds; infinite
    /// of a filter that forgets nothing for sure.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        slack(py, self.window, detached(py, || self.read().slack())?)
    }

    /// float or None: how far, in seconds, `at` may step back; None for a window of insertions.
    #[getter]
    fn lateness(&self) -> Option<f64> {
        match self.window {
            Window::Count { .. } => None,
            Window::Time { lateness, .. } => Some(lateness as f64 / 1e9),
        }
    }

    /// float or None: how far, in seconds, `at` may lie ahead of the system's clock when keys are inserted; None where
    /// nothing is too far, and for a window of insertions.
    #[getter]
    fn max_ahead(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(match self.window {
            Window::Count { .. } => None,
            Window::Time { .. } => self.clock(py)?.max_ahead().map(|ahead| ahead as f64 / 1e9),
        })
    }

    /// numpy.datetime64 or None: the latest time it was told or took from the system's clock, UTC in nanoseconds; None
    /// before the first key, and for a window of insertions.
    #[getter]
    fn latest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let latest = self.clock(py)?.latest();
        latest.map(|latest| py.import("numpy")?.getattr("datetime64")?.call1((latest, "ns"))).transpose()
    }

    /// int: keys the filter is planned for within one window, or in all; more cost accuracy, and none is lost for it.
    #[getter]
    fn capacity(&self) -> u64 {
        self.window.capacity()
    }

    /// float: chance that a key never inserted is reported, at the worst phase and planned load; exact in expectation.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().fpr())
    }

    /// float: keys beyond the window expected to be reported, over the window, at the peak (paper 1, definition 2).
    #[getter]
    fn npws(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.read().npws())
    }

    /// dict of str to float: cache lines that an insertion writes (``insert``), and that a query reads of a key that is
    /// reported (``hit``) and of one that is not (``miss``), while the filter is larger than the cache.
    #[getter]
    fn cache_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        cache_lines(py, detached(py, || self.read().cache_lines())?)
    }

    /// dict of str to float, or None: slices that a query by Algorithm 1 of paper 1, which stops early, is expected to
    /// read: for a key of the window (``window``), for one never inserted that is reported (``false_positive``), and
    /// for one that is not (``absent``). None of filters without such slices. The engine itself reads `cache_lines`.
    #[getter]
    fn accesses<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        accesses(py, detached(py, || self.read().accesses())?)
    }

    /// int: bytes of the cells, the whole of what grows with the window.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.read().engine().words().as_slice().len() as u64 * 8)
    }

    /// float: bits of the cells per key of a full window.
    #[getter]
    fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.nbytes(py)? as f64 * 8.0 / self.capacity() as f64)
    }

    /// int: keys taken so far, by which windows of insertions go on: those inserted, and those `duplicated` was asked
    /// for, let through or not; with ``refresh="delivered"`` and a window of insertions only those let through.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.clock(py)?.inserted())
    }

    /// int or None: seed the keys are hashed with; None of a secret one, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        shown(self.hasher.seed())
    }

    /// str: its family and layout, by the name that `lately.plan` and the command have for them.
    #[getter]
    fn family(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.read().name())
    }

    /// dict of str to int: the parameters of the paper, by the names of `from_parameters`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, detached(py, || self.read().parameters())?)
    }

    /// ndarray of float64: share of the bits set in each part that ages as one, the newest first.
    #[getter]
    fn fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(detached(py, || self.read().engine().fill())?.into_pyarray(py))
    }

    /// Chance that a key never inserted is reported now, from the bits as they are.
    ///
    /// Returns
    /// -------
    /// float
    ///     At most about `fpr`, less with repeated keys and between shifts. Reads all of the filter's memory.
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
        let told = ReprFields {
            window: filter.window,
            endless: window.is_none(),
            fpr: filter.fpr(py)?,
            parameters,
            nbytes: filter.nbytes(py)?,
        };
        Ok(format!("<{} {} inserted={}>", slf.get_type().name()?, told.shown(py)?, filter.inserted(py)?))
    }
}
