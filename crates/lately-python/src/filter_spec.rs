//! `FilterSpec`: a filter without its cells, for a producer that sends keys to sites.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::Values;
use super::build::Given;
use super::calls::detached;
use super::figures::{ReprFields, in_units, parameters, slack};
use super::moments::{OwnedMoments, now};
use super::seeds::{GivenSeed, shown};
use super::whole::Whole;
use crate::errors::raise;
use lately::clock::{Clock, Moments, Window};
use lately::filter::Family;
use lately::key::Seed;
use lately::memory::fallible;
use lately::shape::Shape;
use lately::shard::Row;

/// What an empty filter is, by the names of its attributes; no cells are allocated.
///
/// Parameters
/// ----------
/// family : str
///     Its name, without a layout.
/// **given
///     What the class would pass on to make it, of a request or of parameters.
///
/// Raises
/// ------
/// TypeError, ValueError
///     As the class.
///
/// Examples
/// --------
/// >>> spec = lately._core.FilterSpec("bloom", capacity=10**13, fpr=0.01, nbytes=None, partitioned=False, seed=0)
/// >>> spec.nbytes
/// 11981322380944
#[pyclass(frozen, module = "lately._core")]
pub struct FilterSpec {
    shape: Arc<dyn Shape>,
    clock: Clock,
    seed: Seed,
}

impl FilterSpec {
    /// Returns the numbering of cells, if the family can be sliced.
    pub fn row(&self) -> PyResult<Row> {
        Row::of_shape(&*self.shape, self.clock).map_err(raise)
    }

    fn window_of_time(&self) -> Option<(u64, u64)> {
        match self.clock.window() {
            Window::Count { .. } => None,
            Window::Time { span, lateness, .. } => Some((span, lateness)),
        }
    }
}

#[pymethods]
impl FilterSpec {
    #[new]
    #[pyo3(signature = (family, /, **given))]
    fn new(py: Python<'_>, family: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = Given::of(py, given);
        let GivenSeed(seed) = given.needed("seed")?;
        let ((shape, window), ahead) = (given.shape(family)?, given.max_ahead()?);
        shape.check(window).map_err(raise)?;
        let clock = Clock::new(window, shape.retained());
        let clock = ahead.map_or(clock, |ahead| clock.with_max_ahead(ahead));
        Ok(Self { shape, clock, seed })
    }

    /// str: the class of such filters, by its path within the package.
    #[getter]
    fn kind(&self) -> &'static str {
        Family::of(&*self.shape).class
    }

    /// dict of str to int: the parameters of the paper, by the names of `from_parameters`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, self.shape.parameters())
    }

    /// int: keys that it is planned for.
    #[getter]
    fn capacity(&self) -> u64 {
        self.clock.window().capacity()
    }

    /// float, int or None: seconds, or insertions; None if nothing is forgotten.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let window = self.clock.window();
        let shown = || in_units(py, window, window.length());
        (!self.clock.endless()).then(shown).transpose()
    }

    /// float or None: how far, in seconds, times may step back; None where there is no window of time.
    #[getter]
    fn lateness(&self) -> Option<f64> {
        self.window_of_time().map(|(_, lateness)| lateness as f64 / 1e9)
    }

    /// float or None: how far, in seconds, times may lie ahead of the system's clock; None where nothing is too far.
    #[getter]
    fn max_ahead(&self) -> Option<f64> {
        self.window_of_time().and(self.clock.max_ahead()).map(|ahead| ahead as f64 / 1e9)
    }

    /// int or None: the seed; None if it is a secret.
    #[getter]
    fn seed(&self) -> Option<u64> {
        shown(self.seed)
    }

    /// float: chance that a key never inserted is reported, at the worst phase.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.shape.fpr(self.clock.window()))
    }

    /// float: how long after leaving the window a key may still be reported.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let window = self.clock.window();
        slack(py, window, self.shape.slack(window))
    }

    /// int: bytes of the cells.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.shape.bytes(self.clock.window())
    }

    /// int: generations that a cell counts beside its own.
    #[getter]
    fn retained(&self) -> PyResult<i64> {
        Ok(self.row()?.retained())
    }

    /// The cells of keys, by their hashes: ndarray of uint64, shape (n, k).
    fn cells<'py>(&self, py: Python<'py>, hashes: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let (row, Values { values: hashes, .. }) = (self.row()?, Values::read("hashes", hashes)?);
        let cells = detached(py, || {
            let mut cells = fallible::zeroed(hashes.len() * row.k())?;
            row.cells(&hashes, &mut cells);
            Ok::<_, lately::Error>(cells)
        })?
        .map_err(raise)?;
        cells.into_pyarray(py).reshape([hashes.len(), row.k()])
    }

    /// The generations of n moments, nanoseconds since 1970; of now where there are none.
    #[pyo3(signature = (moments, n))]
    fn generations<'py>(
        &self,
        py: Python<'py>,
        moments: Option<&Bound<'_, PyAny>>,
        n: Whole,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (row, n) = (self.row()?, n.within("n")?);
        let moments = moments.map(|moments| Values::read("moments", moments)?.shaped("moments", &[n])).transpose()?;
        let generations = detached(py, || match &moments {
            Some(moments) => row.generations(Moments::Each(moments), n),
            None => row.generations(Moments::Now(now()), n),
        })?
        .map_err(raise)?;
        Ok(generations.into_pyarray(py))
    }

    /// Reads `at` for n keys: nanoseconds since 1970, shape (n,), or None if it is not given. They are refused as the
    /// filter would that has seen `latest`, if `new` as those of keys to insert.
    #[pyo3(signature = (at, n, *, latest, new))]
    fn moments<'py>(
        &self,
        py: Python<'py>,
        at: Option<&Bound<'_, PyAny>>,
        n: Whole,
        latest: Option<i64>,
        new: bool,
    ) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let (Some(at), n) = (at, n.within("n")?) else { return Ok(None) };
        let moments = OwnedMoments::read(Some(at), self.clock.window(), n)?;
        moments.check(py, &self.clock.resumed(0, latest), new)?;
        Ok(moments.all(n).map_err(raise)?.map(|moments| moments.into_pyarray(py)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = ReprFields {
            window: self.clock.window(),
            endless: self.clock.endless(),
            fpr: self.fpr(py)?,
            parameters: self.shape.parameters(),
            nbytes: self.nbytes(),
        };
        Ok(format!("<{} {}>", self.kind(), fields.shown(py)?))
    }
}
