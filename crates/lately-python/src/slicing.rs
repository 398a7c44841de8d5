//! The formulas of a distributed filter, for `lately.distributed`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::calls::detached;
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::Error;
use lately::shard::slicing::{self, Sites};

/// Returns the arrangement of the sites, by its name in paper 4.
fn arranged(kind: &str, sites: u64, inner: u64, k: u32) -> Result<Sites, Error> {
    let (groups, spread) = match kind {
        "horizontal" | "vertical" if inner != 1 => {
            return Err(Error::value(format!("inner is for kind='h-v' and 'v-h', got {inner}")));
        }
        "horizontal" => (sites, 1),
        "vertical" => (1, sites),
        "h-v" => (sites, inner),
        "v-h" => (inner, sites),
        _ => {
            let message = format!("kind must be 'horizontal', 'vertical', 'h-v' or 'v-h', got {kind:?}");
            return Err(Error::value(message));
        }
    };
    Sites::new(groups, spread, k)
}

/// The shape of a filter over several sites: how often it errs, and how many messages it takes.
///
/// The k cells of a key lie anywhere in one array. Those of a timing filter lie in k parts of it, and so on other sites
/// than one another: with many sites that changes little.
///
/// Parameters
/// ----------
/// kind : {"horizontal", "vertical", "h-v", "v-h"}
///     How the filter is sliced (paper 4, section 3).
/// k : int
///     Cells of a key.
/// sites : int
///     S: slices; of a diced filter its outer ones.
/// inner : int, default 1
///     S': slices of each slice of a diced filter.
///
/// Raises
/// ------
/// ValueError, TypeError
///     If a parameter is out of its range, here and in each method.
///
/// Examples
/// --------
/// >>> from lately.distributed import SlicedShape
/// >>> round(SlicedShape("vertical", k=8, sites=40).messages(), 2)
/// 7.33
#[pyclass(frozen, module = "lately.distributed")]
pub struct SlicedShape {
    kind: String,
    sites: Sites,
}

#[pymethods]
impl SlicedShape {
    #[new]
    #[pyo3(signature = (kind, k, sites, *, inner=WholeNumber::new(1)),
        text_signature = "(kind, k, sites, *, inner=1)")]
    fn new(kind: String, k: WholeNumber, sites: WholeNumber, inner: WholeNumber) -> PyResult<Self> {
        let (k, sites, inner) = (k.within("k")?, sites.within("sites")?, inner.within("inner")?);
        let sites = arranged(&kind, sites, inner, k).map_err(raise)?;
        Ok(Self { kind, sites })
    }

    /// Compute the chance that a fresh key is reported while all sites work.
    ///
    /// Parameters
    /// ----------
    /// keys : int
    ///     n: distinct keys held by all slices together, at most 2**40.
    /// cells : int
    ///     m: cells of all slices together.
    ///
    /// Returns
    /// -------
    /// float
    ///     Exact in expectation. For vertical filters it is the rate of the whole filter (paper 4, eq. 3), for others
    ///     eq. 4 averaged over the keys of a slice: Binomial(keys, 1/sites), for "v-h" Binomial(keys, 1/inner) (OIE-5).
    ///
    /// Examples
    /// --------
    /// >>> from lately.distributed import SlicedShape
    /// >>> [round(SlicedShape(kind, 4, 20).fpr(1000, 8000), 4) for kind in ("vertical", "horizontal")]
    /// [0.024, 0.0255]
    fn fpr(&self, py: Python<'_>, keys: WholeNumber, cells: WholeNumber) -> PyResult<f64> {
        let (keys, cells) = (keys.within("keys")?, cells.within("cells")?);
        detached(py, || self.sites.false_positive_rate(keys, cells))?.map_err(raise)
    }

    /// Compute the chances of a wrong answer when some of the sites have failed.
    ///
    /// Parameters
    /// ----------
    /// failed : int
    ///     f: how many of all sites have failed; any f of them are equally likely.
    /// density : float
    ///     Share of the cells that are set and live, in [0, 1].
    /// on_failure : {"duplicate", "distinct"} or int, default "duplicate"
    ///     What to answer for a key whose cells on working sites are all set. Or x, how many cells a duplicate must
    ///     have there: 0 is "duplicate", k is "distinct".
    ///
    /// Returns
    /// -------
    /// fpr, fnr : float
    ///     Chances that a fresh key is reported, and that a key that is held is not.
    ///
    /// Notes
    /// -----
    /// Paper 4, section 3.2, eq. 5 and 6 and the heuristic, with errata OIE-1 and OIE-2. For diced filters the failures
    /// within a slice are hypergeometric; eq. 7 (erratum OIE-3) takes each cell by itself and is a little too low.
    ///
    /// Examples
    /// --------
    /// >>> from lately.distributed import SlicedShape
    /// >>> [round(rate, 4) for rate in SlicedShape("vertical", 8, 40).failure_rates(8, 0.5, on_failure=4)]
    /// [0.0153, 0.0104]
    #[pyo3(signature = (failed, density, *, on_failure=None),
        text_signature = "($self, failed, density, *, on_failure='duplicate')")]
    fn failure_rates(
        &self,
        py: Python<'_>,
        failed: WholeNumber,
        density: f64,
        on_failure: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(f64, f64)> {
        let (failed, least) = (failed.within("failed")?, self.least(on_failure)?);
        detached(py, || self.sites.failure_rates(failed, density, least))?.map_err(raise)
    }

    /// Compute the fewest sites that keep a rate when some of them have failed (paper 4, definition 3).
    ///
    /// Parameters
    /// ----------
    /// failed, density, on_failure
    ///     As in `failure_rates`.
    /// fpr : float
    ///     Greatest allowed chance of reporting a fresh key. Give this or `fnr`.
    /// fnr : float
    ///     Greatest allowed chance of missing a key that is held.
    ///
    /// Returns
    /// -------
    /// int
    ///     The number for a horizontal or vertical filter of these cells, whatever the `sites` of this shape.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For a diced filter, and if no number of sites up to 2**20 keeps the rate.
    ///
    /// Examples
    /// --------
    /// >>> from lately.distributed import SlicedShape
    /// >>> [SlicedShape(kind, 4, 1).least_sites(4, 0.376, fpr=0.15) for kind in ("vertical", "horizontal")]
    /// [11, 31]
    #[pyo3(signature = (failed, density, *, fpr=None, fnr=None, on_failure=None),
        text_signature = "($self, failed, density, *, fpr=None, fnr=None, on_failure='duplicate')")]
    fn least_sites(
        &self,
        py: Python<'_>,
        failed: WholeNumber,
        density: f64,
        fpr: Option<f64>,
        fnr: Option<f64>,
        on_failure: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let bound = match (fpr, fnr) {
            (Some(fpr), None) => slicing::Bound::FalsePositives(fpr),
            (None, Some(fnr)) => slicing::Bound::FalseNegatives(fnr),
            _ => return Err(PyTypeError::new_err("give fpr or fnr, and not both")),
        };
        if !matches!(&*self.kind, "horizontal" | "vertical") {
            return Err(PyValueError::new_err(format!("kind must be 'horizontal' or 'vertical', got {:?}", self.kind)));
        }
        let (failed, least) = (failed.within("failed")?, self.least(on_failure)?);
        let sites = |sites| arranged(&self.kind, sites, 1, self.sites.k);
        detached(py, || slicing::least_sites(sites, failed, density, least, bound))?.map_err(raise)
    }

    /// Compute how many sites a lookup reads, in expectation.
    ///
    /// Parameters
    /// ----------
    /// pipelined : bool, default False
    ///     Read one site after the other, up to the first with an empty cell, instead of all with a cell of the key at
    ///     once.
    /// density : float, default 0.5
    ///     Share of the cells that are set and live; only used if pipelined.
    /// duplicates : float, default 0.0
    ///     Share of the keys that are held; only used if pipelined.
    ///
    /// Returns
    /// -------
    /// float
    ///     1 for a horizontal filter (paper 4, section 3.2, "Parallelism & Pipelining"). Setting a key takes another
    ///     message to each site.
    ///
    /// Examples
    /// --------
    /// >>> from lately.distributed import SlicedShape
    /// >>> [round(SlicedShape("vertical", 4, 20).messages(pipelined=p), 3) for p in (False, True)]
    /// [3.71, 1.773]
    #[pyo3(signature = (*, pipelined=false, density=0.5, duplicates=0.0))]
    fn messages(&self, py: Python<'_>, pipelined: bool, density: f64, duplicates: f64) -> PyResult<f64> {
        detached(py, || self.sites.messages(pipelined, density, duplicates))?.map_err(raise)
    }
}

impl SlicedShape {
    /// Returns x: how many cells of a duplicate must lie on sites that answer.
    fn least(&self, on_failure: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        let Some(on_failure) = on_failure else { return Ok(0) };
        match on_failure.extract::<&str>() {
            Ok("duplicate") => Ok(0),
            Ok("distinct") => Ok(self.sites.k),
            Ok(other) => Err(PyValueError::new_err(format!(
                "on_failure must be 'duplicate', 'distinct' or a number of cells, got {other:?}"
            ))),
            Err(_) => WholeNumber::read(on_failure)?.within("on_failure"),
        }
    }
}

/// Compute the keys to plan each horizontal slice for.
///
/// Parameters
/// ----------
/// keys : int
///     n: distinct keys of all slices together, at most 2**40.
/// slices : int
///     S: how many there are.
///
/// Returns
/// -------
/// int
///     The least c with S P(Binomial(n, 1/S) > c) <= 0.001, which bounds the chance that any slice gets more: n / S
///     plus, for ten slices, some 4 standard deviations.
///
/// Examples
/// --------
/// >>> lately._core.slice_capacity(1_000_000, 10)
/// 101117
#[pyfunction]
pub fn slice_capacity(py: Python<'_>, keys: WholeNumber, slices: WholeNumber) -> PyResult<u64> {
    let (keys, slices) = (keys.within("keys")?, slices.within("slices")?);
    detached(py, || slicing::capacity(keys, slices))?.map_err(raise)
}
