//! `FilterSpec`: the attributes of a filter without cells, for a plan and for producers that send keys to sites.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::public_seed;
use super::arrays::{Values, array_of};
use super::build::Given;
use super::calls::detached;
use super::figures::{self, ReprFields};
use super::time::moments::OwnedMoments;
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::clock::{Clock, Moments, system};
use lately::family::{Family, Shape, overfull};
use lately::key::Seed;
use lately::shard::Row;

/// The attributes of an empty filter. No cells are allocated.
///
/// Parameters
/// ----------
/// of : str
/// **given
///     As in `build`.
///
/// Raises
/// ------
/// TypeError, ValueError
///     As the class of the family.
///
/// Examples
/// --------
/// >>> spec = lately._core.FilterSpec("BloomFilter", capacity=10**13, fpr=0.01)
/// >>> spec.nbytes
/// 11981322380944
#[pyclass(frozen, module = "lately._core")]
pub struct FilterSpec {
    shape: Arc<dyn Shape>,
    clock: Clock,
    seed: Seed,
}

impl FilterSpec {
    /// Returns the numbering of cells. An error if filters of this family cannot be sliced.
    pub fn row(&self) -> PyResult<Row> {
        Row::of_shape(&*self.shape, self.clock.clone()).map_err(raise)
    }

    /// Returns a warning if `cells` of the filter's cells with this share of ones make it err more often than planned,
    /// beyond chance.
    pub fn overfull(&self, fill: f64, cells: u64) -> PyResult<Option<String>> {
        let all = self.row()?.count();
        Ok(overfull::of_part(&*self.shape, self.clock.window(), fill, cells, all))
    }
}

#[pymethods]
impl FilterSpec {
    #[new]
    #[pyo3(signature = (of, /, **given))]
    fn new(py: Python<'_>, of: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = Given::of(py, given);
        let ((shape, window), seed) = (given.shape(Some(of))?, given.seed()?);
        let ahead = given.max_ahead(window)?;
        shape.check(window).map_err(raise)?;
        let mut clock = shape.clock(window);
        if let Some(ahead) = ahead {
            clock.set_max_ahead(ahead);
        }
        Ok(Self { shape, clock, seed })
    }

    /// str: path of the class within the package.
    #[getter]
    fn kind(&self) -> &'static str {
        Family::of(&*self.shape).class
    }

    /// dict of str to int: the parameters of the paper, by the names that `from_parameters` takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        figures::parameters(py, self.shape.parameters())
    }

    /// int: keys that the filter is planned for.
    #[getter]
    fn capacity(&self) -> u64 {
        self.clock.window().capacity()
    }

    /// float, int or None: the window in seconds, or in insertions. None if nothing is forgotten.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        figures::window(py, &self.clock)
    }

    /// float or None: how far, in seconds, event times may step back. None for a window of insertions.
    #[getter]
    fn lateness(&self) -> Option<f64> {
        figures::lateness(self.clock.window())
    }

    /// float or None: how far, in seconds, event times may lie ahead of the system's clock. None without a limit.
    #[getter]
    fn max_ahead(&self) -> Option<f64> {
        figures::max_ahead(&self.clock)
    }

    /// int or None: seed of the key hashes. None for a secret, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        public_seed(self.seed)
    }

    /// float: probability that a key never inserted is reported, at the worst phase.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.shape.fpr(self.clock.window()))
    }

    /// float: how long after the window a key may still be reported.
    #[getter]
    fn slack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let window = self.clock.window();
        figures::slack(py, window, self.shape.slack(window))
    }

    /// int: bytes of the cells.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.shape.bytes(self.clock.window())
    }

    /// int: full generations that a cell retains, beside the one in which it was set.
    #[getter]
    fn retained(&self) -> PyResult<i64> {
        Ok(self.row()?.retained())
    }

    /// Return the generations of n moments, in nanoseconds since 1970. Without moments, of the present.
    #[pyo3(signature = (moments, n))]
    fn generations<'py>(
        &self,
        py: Python<'py>,
        moments: Option<&Bound<'_, PyAny>>,
        n: WholeNumber,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (row, n) = (self.row()?, n.within("n")?);
        let moments = moments.map(|moments| Values::read("moments", moments)?.shaped("moments", &[n])).transpose()?;
        let generations = detached(py, || match &moments {
            Some(moments) => row.generations(Moments::Each(moments), n),
            None => row.generations(Moments::Now(system::now()), n),
        })?
        .map_err(raise)?;
        array_of(py, generations)
    }

    /// Read `at` for n keys: nanoseconds since 1970, shape (n,), or None without `at`. Raises what a filter whose
    /// latest time is `latest` would raise; if `new`, for keys to insert.
    #[pyo3(signature = (at, n, *, latest, new))]
    fn moments<'py>(
        &self,
        py: Python<'py>,
        at: Option<&Bound<'_, PyAny>>,
        n: WholeNumber,
        latest: Option<i64>,
        new: bool,
    ) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let (Some(at), n) = (at, n.within("n")?) else { return Ok(None) };
        let moments = OwnedMoments::read(Some(at), self.clock.window(), n)?;
        moments.check(py, &self.clock.clone().resumed(0, latest), new)?;
        moments.into_vec(n).map_err(raise)?.map(|moments| array_of(py, moments)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = ReprFields {
            window: self.clock.window(),
            endless: self.clock.endless(),
            fpr: self.fpr(py)?,
            parameters: self.shape.parameters(),
            nbytes: self.nbytes(),
        };
        Ok(format!("<{} {}>", self.kind(), fields.text(py)?))
    }
}
