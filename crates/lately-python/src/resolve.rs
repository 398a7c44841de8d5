//! `resolve` and `since`: the verdicts from what the sites of a distributed filter answer.

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrays::{Values, Width, flags};
use super::calls::detached;
use super::whole::Whole;
use crate::errors::raise;
use lately::memory::fallible;
use lately::shard::{self, Ages, Answers, Rule};

/// Reads what `Slice.ages` or `Slice.touch` gave.
pub fn read_ages(ages: &Bound<'_, PyAny>) -> PyResult<Ages> {
    Ok(match Width::read("ages", ages)? {
        Width::Narrow(ages) => Ages::Narrow(ages),
        Width::Wide(ages) => Ages::Wide(ages),
    })
}

/// `lately._core.since`: the generations in which cells were last set, from ages and what they count back from.
///
/// Parameters
/// ----------
/// ages : ndarray of uint8 or uint32, shape (n,)
/// base : int
///     What `Slice.ages` gave.
///
/// Returns
/// -------
/// ndarray of int64, shape (n,)
///     As `Slice.read` gives them; the least int64 too for those that count no more.
#[pyfunction]
pub fn since<'py>(py: Python<'py>, ages: &Bound<'_, PyAny>, base: i64) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let ages = read_ages(ages)?;
    Ok(detached(py, || fallible::collected((0..ages.len()).map(|i| ages.last(i, base))))?
        .map_err(raise)?
        .into_pyarray(py))
}

/// Tests first, then sets (paper 4, section 2) for a whole batch, in order, as if the sites received them key by key.
///
/// Parameters
/// ----------
/// cells : ndarray of uint64, shape (n, k)
///     The cells of n keys.
/// last : ndarray of int64, shape (n, k)
///     What `Slice.read` answered for them before the batch.
/// generations : ndarray of int64, shape (n,)
///     The generation of each key.
/// newest : int
///     The latest generation seen before the batch; the least int64 where there was none.
/// kept : int
///     Generations that a cell counts beyond its own, the filter's `kept`.
/// refresh : bool, default False
///     Whether a key that has been seen sets its cells again, so that its window restarts.
/// least : int, default 0
///     x: how many cells of a duplicate must have an answer, at most k. With 0 a failed site counts as set, with k as
///     empty (paper 4, section 3.2; erratum OIE-2).
/// equal : int, default 1
///     k': how many cells of a duplicate must have been set in one generation (paper 4, "equal timers"), at most k.
/// alive : ndarray of bool, shape (n, k), optional
///     Whether the site of each cell has answered. The default is all.
/// missed : ndarray of int64, shape (n, k), optional
///     The newest generation whose cells each cell's site may have missed; the least int64 if it has all. While it
///     counts, an empty cell there counts as not answered.
/// known : ndarray of int8, shape (n,), optional
///     The verdict that a key was given before, 0 or 1, and is given again; -1 if none.
///
/// Returns
/// -------
/// ndarray of bool, shape (n,)
///     Which keys had been seen, repeats within the batch included. Set the cells of the others; with `refresh` those
///     of all keys.
///
/// Raises
/// ------
/// TypeError
///     If an array is of another type.
/// ValueError
///     If the shapes differ, or a value is out of its range; the message names it.
///
/// Notes
/// -----
/// A cell is live if it is set and at most `kept` generations older than the latest one up to its key. A late key sets
/// its cells in its own generation, and never lowers a younger one (erratum OIE-8).
///
/// Examples
/// --------
/// >>> f = lately.BloomFilter(1000, 0.01)
/// >>> s = lately._core.Slice(f)
/// >>> cells, now = f.cells(["a", "b", "a"]), f.generations(None, 3)
/// >>> lately._core.resolve(cells, s.read(cells), now, newest=0, kept=f.kept)
/// array([False, False,  True])
#[pyfunction]
#[pyo3(signature = (cells, last, generations, *, newest, kept, refresh=false, least=Whole::new(0), equal=Whole::new(1), alive=None, missed=None, known=None),
    text_signature = "(cells, last, generations, *, newest, kept, refresh=False, least=0, equal=1, alive=None, missed=None, known=None)")]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub fn resolve<'py>(
    py: Python<'py>,
    cells: &Bound<'_, PyAny>,
    last: &Bound<'_, PyAny>,
    generations: &Bound<'_, PyAny>,
    newest: i64,
    kept: i64,
    refresh: bool,
    least: Whole,
    equal: Whole,
    alive: Option<&Bound<'_, PyAny>>,
    missed: Option<&Bound<'_, PyAny>>,
    known: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let Values { values: cells, shape } = Values::read("cells", cells)?;
    let &[n, k] = &shape[..] else {
        return Err(PyValueError::new_err(format!("cells must have the shape (n, k), got {shape:?}")));
    };
    let last = Values::read("last", last)?.shaped("last", &shape)?;
    let generations = Values::read("generations", generations)?.shaped("generations", &[n])?;
    let alive = alive.map(|alive| flags("alive", alive, &shape)).transpose()?;
    let missed = missed.map(|missed| Values::read("missed", missed)?.shaped("missed", &shape)).transpose()?;
    let known = known.map(|known| Values::read("known", known)?.shaped("known", &[n])).transpose()?;
    let rule = Rule { newest, kept, refresh, least: least.within("least")?, equal: equal.within("equal")? };
    let seen = detached(py, || {
        let (alive, missed, known) = (alive.as_deref(), missed.as_deref(), known.as_deref());
        let answers = Answers { k, cells: &cells, last: &last, generations: &generations, alive, missed, known };
        let mut seen = fallible::zeroed(n)?;
        shard::resolve(answers, rule, &mut seen).map(|()| seen)
    })?
    .map_err(raise)?;
    Ok(seen.into_pyarray(py))
}
