//! `Ranges` and `Scattered`: the sites of the cells of keys, and the verdicts that follow from the sites' answers.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrays::{Values, array_of};
use super::calls::detached;
use super::slice::row_like;
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::memory::fallible;
use lately::shard::{self, Ages, Answer, Earlier, Rule};

/// Chooses one of `parts` for each hash. The choice is independent of the hash's places in any filter.
///
/// Examples
/// --------
/// >>> lately._core.part_of(np.arange(6, dtype=np.uint64), 1)
/// array([0, 0, 0, 0, 0, 0], dtype=uint16)
#[pyfunction]
pub fn part_of<'py>(
    py: Python<'py>,
    hashes: &Bound<'_, PyAny>,
    parts: WholeNumber,
) -> PyResult<Bound<'py, PyArray1<u16>>> {
    let (Values { values: hashes, .. }, parts) = (Values::read("hashes", hashes)?, parts.within("parts")?);
    let of_each = detached(py, || fallible::collected(hashes.iter().map(|&hash| shard::part_of(hash, parts) as u16)))?
        .map_err(raise)?;
    array_of(py, of_each)
}

/// The cells of a filter, or of several, in ranges, one for each site (paper 4, definition 2, section 3.3).
///
/// ``Ranges(like, parts, replicas=1, *, each=False)``: each key goes to one of `replicas` filters that are cut into
/// `parts` ranges. Range p of filter r is on site ``r * parts + p``. With `each` a key goes to a filter for each range,
/// chosen independently (v-h), otherwise to the same filter in all ranges (h-v).
#[pyclass(frozen, module = "lately._core")]
pub struct Ranges {
    inner: shard::Ranges,
}

#[pymethods]
impl Ranges {
    #[new]
    #[pyo3(signature = (like, parts, replicas=WholeNumber::new(1), *, each=false),
        text_signature = "(like, parts, replicas=1, *, each=False)")]
    fn new(like: &Bound<'_, PyAny>, parts: WholeNumber, replicas: WholeNumber, each: bool) -> PyResult<Self> {
        let (parts, replicas) = (parts.within("parts")?, replicas.within("replicas")?);
        Ok(Self { inner: shard::Ranges::new(row_like(like)?, parts, replicas, each).map_err(raise)? })
    }

    /// Scatter the cells of keys to their sites.
    fn scatter(&self, py: Python<'_>, hashes: &Bound<'_, PyAny>) -> PyResult<Scattered> {
        let Values { values: hashes, .. } = Values::read("hashes", hashes)?;
        Ok(Scattered { inner: detached(py, || self.inner.scatter(&hashes))?.map_err(raise)? })
    }
}

/// The cells of n keys by their sites, from `Ranges.scatter`. A cell that a key has twice is there once. Each list of
/// this class has an entry for each site with cells.
///
/// Examples
/// --------
/// A filter on two sites. Each site reads its cells and sets them:
///
/// >>> f = lately.BloomFilter.from_parameters(capacity=1000, k=4, bits=6400, seed=1)
/// >>> slices = [lately._core.Slice(f, part=part, parts=2) for part in (0, 1)]
/// >>> scattered = lately._core.Ranges(f, 2).scatter(lately.hash_keys(["a", "b", "a"], seed=1))
/// >>> answers = [(*slices[site].touch(cells, 0), -(2**63)) for site, cells in scattered.shares()]
/// >>> now = np.zeros(3, dtype=np.int64)
/// >>> oldest, unanswered = scattered.decide(answers, now, "answered", newest=0, kept=2**62)
/// >>> oldest >= 0
/// array([False, False,  True])
#[pyclass(frozen, module = "lately._core")]
pub struct Scattered {
    inner: shard::Scattered,
}

impl Scattered {
    /// Returns the arrays of those sites that have cells.
    fn listed<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        of: impl Fn(usize, u64) -> T + Send,
    ) -> PyResult<Vec<(usize, Bound<'py, PyArray1<T>>)>> {
        let scattered = detached(py, || self.inner.scattered(of))?.map_err(raise)?.into_iter().enumerate();
        scattered.filter(|(_, its)| !its.is_empty()).map(|(site, its)| Ok((site, array_of(py, its)?))).collect()
    }
}

#[pymethods]
impl Scattered {
    /// Return the number of each site and the numbers of its cells, counted from its first, in the order of the keys:
    /// arrays of uint32 if no site has more cells, else of uint64.
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if self.inner.narrow() {
            return PyList::new(py, self.listed(py, |_, cell| cell as u32)?);
        }
        PyList::new(py, self.listed(py, |_, cell| cell)?)
    }

    /// Return for each site the places of its cells: cell j of key i has the place ``i * k + j``.
    fn places<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.listed(py, |at, _| at as i64)?.into_iter().map(|(_, its)| its))
    }

    /// Decide on the keys in order, by the answer of each site: a list of (ages, base, missed), None for a failed site.
    ///
    /// `missed` is the newest generation that the site may have missed. While it counts, an unset cell there has no
    /// answer. In place of ages (`Slice.ages`) there may be generations, of int64: the least int64 for a cell never
    /// set, and one more for one without an answer. A cell is live if it is set and at most `kept` generations older
    /// than the latest one up to its key, or than `newest`, the latest one before the batch.
    ///
    /// `earlier` is what earlier keys of the batch have set: "nothing" that matters, what the answers contain already
    /// ("answered"), the cells of new keys ("new"), or of all ("all"). A late key sets its cells in its own
    /// generation, and lowers no younger one (erratum OIE-8). `least` cells of a duplicate must have an answer (erratum
    /// OIE-2), and `equal` must be set in one generation (k'). `known` has the verdict that each key was given before,
    /// 0 or 1, and is given again; -1 if there is none.
    ///
    /// Returns when the oldest cell of each key that was seen was set, or the least int64 for a new key; and the keys
    /// for which a site had no answer, or only one that proves nothing.
    #[pyo3(signature = (answers, generations, earlier, *, newest, kept, least=WholeNumber::new(0),
        equal=WholeNumber::new(1), known=None),
        text_signature = "($self, answers, generations, earlier, *, newest, kept, least=0, equal=1, known=None)")]
    #[allow(clippy::too_many_arguments, reason = "keywords")]
    #[allow(clippy::type_complexity, reason = "two arrays")]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Option<(Bound<'py, PyAny>, i64, i64)>>,
        generations: &Bound<'_, PyAny>,
        earlier: &str,
        newest: i64,
        kept: i64,
        least: WholeNumber,
        equal: WholeNumber,
        known: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<bool>>)> {
        let n = self.inner.keys();
        let generations = Values::read("generations", generations)?.shaped("generations", &[n])?;
        let known = known.map(|known| Values::read("known", known)?.shaped("known", &[n])).transpose()?;
        let earlier = match earlier {
            "nothing" => Earlier::Nothing,
            "answered" => Earlier::Answered,
            "new" => Earlier::New,
            "all" => Earlier::All,
            _ => return Err(PyValueError::new_err(format!("earlier is none of its words, got {earlier:?}"))),
        };
        let rule =
            Rule { newest, retained: kept, earlier, least: least.within("least")?, equal: equal.within("equal")? };
        let holders: Vec<usize> = (0..self.inner.sites()).filter(|&site| self.inner.counts()[site] > 0).collect();
        if answers.len() != holders.len() {
            let message = format!("there are {} answers of {} sites", answers.len(), holders.len());
            return Err(PyValueError::new_err(message));
        }
        let mut of_sites: Vec<_> = (0..self.inner.sites()).map(|_| None).collect();
        for (site, answer) in holders.into_iter().zip(answers) {
            let read = |(ages, base, missed)| Ok::<_, PyErr>(Answer { ages: read_ages(&ages)?, base, missed });
            of_sites[site] = answer.map(read).transpose()?;
        }
        let (oldest, unanswered) = detached(py, || {
            let (mut oldest, mut unanswered) = (fallible::zeroed(n)?, fallible::zeroed(n)?);
            let write = |i, of_key, unsure| (oldest[i], unanswered[i]) = (of_key, unsure);
            let decided = self.inner.decide(&of_sites, &generations, known.as_deref(), rule, write);
            decided.map(|()| (oldest, unanswered))
        })?
        .map_err(raise)?;
        Ok((array_of(py, oldest)?, array_of(py, unanswered)?))
    }
}

/// Reads what `Slice.ages` or `Slice.touch` returned, or generations.
fn read_ages(ages: &Bound<'_, PyAny>) -> PyResult<Ages> {
    if ages.cast::<PyArray1<u8>>().is_ok() {
        return Ok(Ages::Narrow(Values::read("ages", ages)?.values));
    }
    if ages.cast::<PyArray1<u32>>().is_ok() {
        return Ok(Ages::Wide(Values::read("ages", ages)?.values));
    }
    Ok(Ages::Last(Values::read("ages", ages)?.flat("ages")?))
}
