//! `Ranges` and `Scattered`: where the cells of keys are, and the verdicts from the answers of the sites that hold
//! them.

use numpy::prelude::*;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrays::{Values, Width};
use super::calls::detached;
use super::resolve::read_ages;
use super::slice::row_like;
use super::whole::Whole;
use crate::errors::raise;
use lately::memory::fallible;
use lately::shard::{self, Answer, Rule};

/// Chooses one of `parts` for each hash, independent of its places in any filter.
///
/// Examples
/// --------
/// >>> lately._core.part_of(np.arange(6, dtype=np.uint64), 1)
/// array([0, 0, 0, 0, 0, 0], dtype=uint16)
#[pyfunction]
pub fn part_of<'py>(py: Python<'py>, hashes: &Bound<'_, PyAny>, parts: Whole) -> PyResult<Bound<'py, PyArray1<u16>>> {
    let (Values { values: hashes, .. }, parts) = (Values::read("hashes", hashes)?, parts.within("parts")?);
    let of_each = detached(py, || fallible::collected(hashes.iter().map(|&hash| shard::part_of(hash, parts) as u16)))?
        .map_err(raise)?;
    Ok(of_each.into_pyarray(py))
}

/// Cells of a filter in ranges, one a site, and possibly of several filters (paper 4, definition 2, section 3.3).
///
/// Parameters
/// ----------
/// like : BloomFilter or TimingBloomFilter, or FilterSpec of one
///     The filter that is cut.
/// parts : int
///     Ranges of its cells.
/// replicas : int, default 1
///     How many such filters there are. Each key goes to one. Range p of filter r is on site ``r * parts + p``.
/// each : bool, default False
///     Whether a key goes to one in each range, chosen independently (v-h), or to the same in all (h-v).
///
/// Raises
/// ------
/// TypeError, ValueError
///     As `Slice`, or if there are more than 65,536 sites.
#[pyclass(frozen, module = "lately._core")]
pub struct Ranges {
    inner: shard::Ranges,
}

#[pymethods]
impl Ranges {
    #[new]
    #[pyo3(signature = (like, parts, replicas=Whole::new(1), *, each=false),
        text_signature = "(like, parts, replicas=1, *, each=False)")]
    fn new(like: &Bound<'_, PyAny>, parts: Whole, replicas: Whole, each: bool) -> PyResult<Self> {
        let (parts, replicas) = (parts.within("parts")?, replicas.within("replicas")?);
        Ok(Self { inner: shard::Ranges::new(row_like(like)?, parts, replicas, each).map_err(raise)? })
    }

    /// Scatter the cells of keys to their sites.
    ///
    /// Parameters
    /// ----------
    /// hashes : ndarray of uint64, shape (n,)
    ///
    /// Returns
    /// -------
    /// Scattered
    fn scatter(&self, py: Python<'_>, hashes: &Bound<'_, PyAny>) -> PyResult<Scattered> {
        let Values { values: hashes, .. } = Values::read("hashes", hashes)?;
        Ok(Scattered { inner: detached(py, || self.inner.scatter(&hashes))?.map_err(raise)? })
    }
}

/// The cells of n keys by their sites, from `Ranges.scatter`. What is a list here has an entry for each site with
/// cells.
///
/// Examples
/// --------
/// A filter on two sites, of which each reads its cells and sets them:
///
/// >>> f = lately.BloomFilter.from_parameters(1000, k=4, bits=6400, seed=1)
/// >>> slices = [lately._core.Slice(f, part=part, parts=2) for part in (0, 1)]
/// >>> scattered = lately._core.Ranges(f, 2).scatter(lately.hash_keys(["a", "b", "a"], seed=1))
/// >>> answers = [(*slices[site].touch(cells, 0), -1) for site, cells in scattered.shares()]
/// >>> now = np.zeros(3, dtype=np.int64)
/// >>> seen, unanswered = scattered.decide(answers, now, newest=0, kept=f.kept)
/// >>> seen
/// array([False, False,  True])
#[pyclass(frozen, module = "lately._core")]
pub struct Scattered {
    inner: shard::Scattered,
}

impl Scattered {
    /// An array with a value for each cell, shape (n, k).
    fn each<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        of: impl Fn(usize) -> T + Send,
    ) -> PyResult<Bound<'py, PyArray2<T>>> {
        let shape = [self.inner.keys(), self.inner.k()];
        let values = detached(py, || fallible::collected((0..shape[0] * shape[1]).map(of)))?.map_err(raise)?;
        values.into_pyarray(py).reshape(shape)
    }

    /// The arrays of those sites that have cells.
    fn listed<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        of: impl Fn(usize, u64) -> T + Send,
    ) -> PyResult<Vec<(usize, Bound<'py, PyArray1<T>>)>> {
        let scattered = detached(py, || self.inner.scattered(of))?.map_err(raise)?.into_iter().enumerate();
        Ok(scattered.filter(|(_, its)| !its.is_empty()).map(|(site, its)| (site, its.into_pyarray(py))).collect())
    }

    fn spread_as<'py, T: numpy::Element + Copy + Sync>(
        &self,
        py: Python<'py>,
        column: &[T],
    ) -> PyResult<Bound<'py, PyList>> {
        let (keys, k) = (self.inner.keys(), self.inner.k());
        if column.len() != keys {
            return Err(PyValueError::new_err(format!("column must have the shape [{keys}], got [{}]", column.len())));
        }
        PyList::new(py, self.listed(py, |at, _| column[at / k])?.into_iter().map(|(_, its)| its))
    }
}

#[pymethods]
impl Scattered {
    /// ndarray of uint16, shape (n, k): the site of each cell.
    #[getter]
    fn sites<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u16>>> {
        self.each(py, |at| self.inner.owner(at) as u16)
    }

    /// ndarray of uint64, shape (n, k): the numbers of the cells in the filter that the sites hold parts of.
    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        self.each(py, |at| self.inner.cells()[at])
    }

    /// ndarray of uint64, shape (n, k): their numbers among the cells of all sites.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        self.each(py, |at| self.inner.name(at))
    }

    /// Give each site's number, and the numbers of its cells, counted from its first, in the order of the keys.
    ///
    /// A cell that a key has twice is there once.
    ///
    /// Returns
    /// -------
    /// list of (int, ndarray)
    ///     The arrays are of uint32 if no site has more cells, else of uint64.
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if self.inner.narrow() {
            return PyList::new(py, self.listed(py, |_, cell| cell as u32)?);
        }
        PyList::new(py, self.listed(py, |_, cell| cell)?)
    }

    /// Give for the cells of each site what belongs to their keys.
    ///
    /// Parameters
    /// ----------
    /// column : ndarray of uint8 or uint32, shape (n,)
    ///
    /// Returns
    /// -------
    /// list of ndarray
    ///     Like `shares`, of the type of `column`.
    fn spread<'py>(&self, py: Python<'py>, column: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyList>> {
        match Width::<u8, u32>::read("column", column)? {
            Width::Narrow(column) => self.spread_as(py, &column),
            Width::Wide(column) => self.spread_as(py, &column),
        }
    }

    /// Decide on the keys in order.
    ///
    /// Parameters
    /// ----------
    /// answers : list of (ages, base, missed), or None
    ///     What each site gave (`Slice.touch`), and the newest generation that it may have missed; None for one that
    ///     failed. Like `shares`.
    /// generations : ndarray of int64, shape (n,)
    /// newest, kept, refresh, least, equal
    ///     As of `resolve`. With `refresh`, which is the default, the sites have set the cells; else nothing was set,
    ///     and each key is decided by itself.
    ///
    /// Returns
    /// -------
    /// seen, unanswered : ndarray of bool, shape (n,)
    ///     Which keys had been seen, and for which a site had no answer, or only one that proves nothing.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     If something does not fit.
    #[pyo3(signature = (answers, generations, *, newest, kept, refresh=true, least=Whole::new(0), equal=Whole::new(1)),
        text_signature = "($self, answers, generations, *, newest, kept, refresh=True, least=0, equal=1)")]
    #[allow(clippy::too_many_arguments, reason = "keywords")]
    #[allow(clippy::type_complexity, reason = "two arrays")]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Option<(Bound<'py, PyAny>, i64, i64)>>,
        generations: &Bound<'_, PyAny>,
        newest: i64,
        kept: i64,
        refresh: bool,
        least: Whole,
        equal: Whole,
    ) -> PyResult<(Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<bool>>)> {
        let n = self.inner.keys();
        let generations = Values::read("generations", generations)?.shaped("generations", &[n])?;
        let rule = Rule { newest, kept, refresh, least: least.within("least")?, equal: equal.within("equal")? };
        let holders: Vec<usize> = (0..self.inner.sites()).filter(|&site| self.inner.counts()[site] > 0).collect();
        if answers.len() != holders.len() {
            let message = format!("there are {} answers of {} sites", answers.len(), holders.len());
            return Err(PyValueError::new_err(message));
        }
        let read = |answer: Option<(Bound<'_, PyAny>, i64, i64)>| {
            answer.map(|(ages, base, missed)| Ok((read_ages(&ages)?, base, missed))).transpose()
        };
        let answers: Vec<_> = answers.into_iter().map(read).collect::<PyResult<_>>()?;
        let decided = detached(py, || {
            let mut of_sites: Vec<_> = (0..self.inner.sites()).map(|_| None).collect();
            for (site, answer) in holders.into_iter().zip(&answers) {
                of_sites[site] =
                    answer.as_ref().map(|(ages, base, missed)| Answer { ages, base: *base, missed: *missed });
            }
            let (mut seen, mut unanswered) = (fallible::zeroed(n)?, fallible::zeroed(n)?);
            self.inner
                .decide(&of_sites, &generations, rule, |i, was, unsure| (seen[i], unanswered[i]) = (was, unsure))
                .map(|()| (seen, unanswered))
        })?
        .map_err(raise)?;
        Ok((decided.0.into_pyarray(py), decided.1.into_pyarray(py)))
    }
}
