//! `TimingBloomFilter`: its constructors, and its cells.

use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::budget;
use super::filter::Filter;
use super::layout::Layout;
use super::slice;
use super::times;
use super::whole::Whole;
use super::wrap;
use crate::Error;
use crate::engine::growing;
use crate::filter;
use crate::shape::Budget;
use crate::shape::growing::{Grow, Growing, Limit};
use crate::shape::timing::{Shape, choose, line};

/// Timing Bloom filter: cells that remember when they were set, so that keys go one block at a time.
///
/// Parameters
/// ----------
/// window : int or span of time
///     What "lately" means: the last so many insertions, or a span such as ``"10min"``, a `datetime.timedelta` or a
///     `numpy.timedelta64`.
/// fpr : float
///     Most that the chance of reporting a key never inserted may be, at the worst phase, in (0, 1). Give this or
///     `nbytes`.
/// nbytes : int
///     Most bytes to use: the filter then has the least rate that fits.
/// slack : int or span of time, optional
///     Longest that a key may still be reported after leaving the window, in the unit of `window`: about a
///     block. 0 makes the window exact (the plain timing Bloom filter, B = 1), for some seven times the memory
///     at a million keys. The default is half the window (and never less than 64 insertions).
/// layout : {"sliced", "line"}, default "sliced"
///     "line" puts all timers of a key into one cache line, or into two of one page of 4 KiB: three to five times as fast
///     at a million keys, for 30.8 and 50.7 bits per key at 1 % and 0.1 % where slices take 28.8 and 43.1. A filter then
///     has whole pages, and does not grow.
/// capacity : int, optional
///     Keys expected within a window of time when they come fastest, needed there. More of them, if only for a part of
///     the window, cost accuracy, never the window.
/// lateness : span of time, optional
///     For a window of time, how far `at` may step back; the window is kept for late keys too. The default is 0.
/// grow : {"cardinality", "density"}, optional
///     For a window of time with `fpr`: open another part, of the same size, when more keys come than planned; drop
///     it when all of its keys have expired. "cardinality" opens one when a part has taken the keys that `capacity` plans
///     to be live at once; "density" when so many timers are set as these would set. The default is one size.
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
///     If the memory cannot be had. A filter that cannot grow refuses keys with it, too: those before are inserted.
///
/// Notes
/// -----
/// With `grow` no key of the window is missed in a burst either, and memory comes back: `nbytes` is what the parts
/// take now, and `parts` how many that is, F. Keys go to the newest part and queries ask all, so the chance of a false
/// positive is at most 1 - (1 - fpr)**F: `fpr` is that of one part, and `false_positive_rate` says what it is now. At the
/// planned rate the total stays at `fpr`. In a burst of 100 times the rate, though, there are some 100 parts for a query
/// to ask, until window and slack have passed after it; `TimeLimitedBloomFilter` holds its rate there. By cardinality
/// there are one or two parts at the planned rate, by density mostly one (with timers of many bits the padding counts,
/// and there may be two). A key seen again while an older part holds it goes to the newest as well. Opening and dropping
/// copies the other parts, so for that moment there are two of each.
///
/// Paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*, sections 4 and 5. Paper 5: J. L. Dautrich, C. V.
/// Ravishankar, *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019,
/// section 3, whose block variant this is.
///
/// `fill` is the share of live timers in each of the k slices, of every part, the newest first; in lines of all timers.
///
/// Examples
/// --------
/// >>> f = lately.TimingBloomFilter(window=1000, fpr=0.001, slack=100)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> f.slack, f.parameters["bpt"]
/// (78, 4)
/// >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=50_000)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
/// >>> f = lately.TimingBloomFilter(1_000_000, 0.01, layout="line")
/// >>> f.cache_lines["miss"], round(f.bits_per_key, 1)
/// (1.0, 30.8)
/// >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=5000, grow="density")
/// >>> f.insert(range(50_000), at=0)
/// >>> f.query(range(50_000), at=600).all(), f.parts
/// (np.True_, 7)
/// >>> f.add("a", at=3600)
/// >>> f.parts
/// 1
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct TimingBloomFilter;

#[pymethods]
impl TimingBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr=None, *, nbytes=None, slack=None, layout=Layout::Sliced, capacity=None, lateness=None, grow=None, seed=Whole::new(0)),
        text_signature = "(window, fpr=None, *, nbytes=None, slack=None, layout='sliced', capacity=None, lateness=None, grow=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        nbytes: Option<Whole>,
        slack: Option<&Bound<'_, PyAny>>,
        layout: Layout,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        grow: Option<&str>,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::window(window, capacity, lateness)?.check()?;
        let slack = slack.map(|slack| times::length("slack", slack, window)).transpose()?;
        let budget = budget(fpr, nbytes)?;
        let grow = grow.map(|grow| growth(grow, budget)).transpose()?;
        let seed = seed.within("seed")?;
        let filter = py.detach(|| -> Result<filter::Filter, Error> {
            Ok(match (layout, grow) {
                (Layout::Sliced, None) => filter::Filter::new(choose(window, budget, slack)?, window, seed)?,
                (Layout::Sliced, Some(grow)) => {
                    let part = choose(window, budget, slack)?;
                    filter::Filter::new(Growing { part, limit: Limit::planned(grow, part, window) }, window, seed)?
                }
                (Layout::Line, None) => filter::Filter::new(line::choose(window, budget, slack)?, window, seed)?,
                (Layout::Line, Some(_)) => return Err(Error::value("grow does not apply to layout='line'")),
                (Layout::Transposed, _) => {
                    return Err(Error::value("layout='transposed' is one of guarded epochs: this filter has none"));
                }
            })
        })?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter with the parameters of the papers.
    ///
    /// Parameters
    /// ----------
    /// window : int or span of time
    ///     As in the constructor.
    /// k : int
    ///     Timers a key sets: one in each of k slices, at most 64, or in each of k words of its lines, at most 8 in a line.
    /// bpt : int
    ///     Bits per timer, 2 to 32; a 64-bit word holds 64 // bpt timers.
    /// blocks : int
    ///     Full blocks kept, at most 2**bpt - 2 and 2**24 (2**14 with equal timers). A block is B = ceil((window - 1) / blocks) insertions, or
    ///     the like of time; ``window - 1`` blocks make B = 1, the plain timing Bloom filter. What 2**bpt - 1 has
    ///     beyond it is padding, which spreads the sweep of expired timers over so many blocks.
    /// slice_timers : int, optional
    ///     Timers of each slice, m / k; rounded up to whole words.
    /// pages : int, optional
    ///     Pages of 4 KiB of a filter in lines, instead of `slice_timers`.
    /// lines : {1, 2}, default 1
    ///     Lines of a page that a key has timers in, each in half of its k.
    /// equal_timers : int, default 1
    ///     k': report a key only if so many of its timers are equal (paper 4). From 2 on this lowers the rate of false
    ///     positives, and the promise is off: keys of the window are missed when later ones have set too many of their
    ///     timers, as often as `false_negative_rates` says. `false_positive_rate()` is then an upper bound.
    /// part_keys, part_timers : int, optional
    ///     Grow, as the constructor does with ``grow="cardinality"`` or ``"density"``, by parts of the size given here:
    ///     when so many keys have come to one that it did not hold, or when so many of its timers are set over all slices,
    ///     at least k. `fpr` is that of a part which has taken so much. Neither these nor equal timers apply in lines.
    /// capacity, lateness, seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// TimingBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160)
    /// >>> f.nbytes, f.slack, round(f.fpr, 4)
    /// (1280, 0, 0.0023)
    /// >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160, equal_timers=3)
    /// >>> round(f.fpr, 7), round(float(f.false_negative_rates.mean()), 4)
    /// (1.36e-05, 0.022)
    /// >>> given = {"k": 8, "bpt": 3, "blocks": 6, "slice_timers": 1008, "capacity": 500}
    /// >>> f = lately.TimingBloomFilter.from_parameters("10min", **given, part_keys=500)
    /// >>> f.insert(range(2000), at=0)
    /// >>> f.parts, f.nbytes, round(f.fpr, 5), round(f.false_positive_rate(), 5)
    /// (4, 12336, 0.00055, 0.0022)
    /// >>> f = lately.TimingBloomFilter.from_parameters(1000, k=6, bpt=2, blocks=2, pages=1)
    /// >>> f.nbytes, f.slack, round(f.fpr, 4)
    /// (4096, 500, 0.0077)
    #[classmethod]
    #[pyo3(signature = (window, k, bpt, blocks, slice_timers=None, *, pages=None, lines=Whole::new(1), equal_timers=Whole::new(1), part_keys=None, part_timers=None, capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "($cls, window, k, bpt, blocks, slice_timers=None, *, pages=None, lines=1, equal_timers=1, part_keys=None, part_timers=None, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        bpt: Whole,
        blocks: Whole,
        slice_timers: Option<Whole>,
        pages: Option<Whole>,
        lines: Whole,
        equal_timers: Whole,
        part_keys: Option<Whole>,
        part_timers: Option<Whole>,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::window(window, capacity, lateness)?.check()?;
        let (k, bpt, blocks) = (k.within("k")?, bpt.within("bpt")?, blocks.within("blocks")?);
        let (seed, equal_timers) = (seed.within("seed")?, equal_timers.within("equal_timers")?);
        let slice_timers = match (slice_timers, pages) {
            (Some(timers), None) => timers.within("slice_timers")?,
            (None, Some(pages)) => {
                if equal_timers != 1 || part_keys.is_some() || part_timers.is_some() {
                    let message = "equal_timers, part_keys and part_timers do not apply to pages of lines";
                    return Err(PyValueError::new_err(message));
                }
                let shape = line::Shape::new(k, bpt, blocks, pages.within("pages")?, lines.within("lines")?)?;
                let filter = py.detach(|| filter::Filter::new(shape, window, seed))?;
                return wrap(py, filter);
            }
            _ => return Err(PyTypeError::new_err("give slice_timers or pages, and not both")),
        };
        let shape = Shape::new(k, bpt, blocks, slice_timers, equal_timers)?;
        let limit = match (part_keys, part_timers) {
            (None, None) => None,
            (Some(keys), None) => Some(Limit::Keys(keys.within("part_keys")?)),
            (None, Some(timers)) => Some(Limit::Timers(timers.within("part_timers")?)),
            _ => return Err(PyTypeError::new_err("give part_keys or part_timers, and not both")),
        };
        let filter = py.detach(|| match limit {
            None => filter::Filter::new(shape, window, seed),
            Some(limit) => filter::Filter::new(Growing { part: shape, limit }, window, seed),
        })?;
        wrap(py, filter)
    }

    /// ndarray of float64, shape (blocks + 1,): chance that a key is missed so many blocks after its own, just before
    /// the next begins, at planned load, exact in expectation; zeros unless `equal_timers` is 2 or more. Its mean is
    /// about the share of duplicates missed when they are spread evenly over the window, its maximum the worst case.
    #[getter]
    fn false_negative_rates<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<f64>> {
        let (py, filter) = (slf.py(), slf.as_super().get());
        py.detach(|| filter.read().false_negative_rates()).into_pyarray(py)
    }

    /// int: parts there are now, 1 unless the filter grows; `nbytes` is in proportion.
    #[getter]
    fn parts(slf: &Bound<'_, Self>) -> usize {
        let (py, filter) = (slf.py(), slf.as_super().get());
        py.detach(|| filter.with(|filter| filter.engine_as().map_or(1, |growing: &growing::Growing| growing.parts())))
    }

    /// Which cells are a key's, for `lately.distributed`: a cell's number is its place in the words of all cells.
    ///
    /// Parameters
    /// ----------
    /// keys : array-like, Series, column or frame
    ///     A batch of n keys. See `lately.hash_keys`.
    ///
    /// Returns
    /// -------
    /// ndarray of uint64, shape (n, k)
    ///     The number of its timer in each of the k slices: ``slice * slice_timers + index``; in lines counted likewise,
    ///     through the words.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If a key is of a type that has no canonical form; the message names it.
    /// ValueError
    ///     If the filter grows.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160)
    /// >>> f.cells(["a", "b"]).shape
    /// (2, 8)
    fn cells<'py>(slf: &Bound<'py, Self>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        slice::cells(slf.as_super(), keys)
    }

    /// The generation, or block, that each moment lies in, for `lately.distributed`.
    ///
    /// Parameters
    /// ----------
    /// at : time, n times, or None
    ///     As in `insert`; None is now.
    /// n : int
    ///     How many.
    ///
    /// Returns
    /// -------
    /// ndarray of int64, shape (n,)
    ///     Numbered from the Unix epoch, the same on every machine.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the window counts insertions, the filter grows, or `at` is missing a time or does not fit `n`.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.TimingBloomFilter.from_parameters("10min", k=7, bpt=4, blocks=10, slice_timers=1600, capacity=500)
    /// >>> f.generations([0, 59, 60, -1], 4), f.kept
    /// (array([ 0,  0,  1, -1]), 10)
    #[pyo3(signature = (at, n))]
    fn generations<'py>(
        slf: &Bound<'py, Self>,
        at: Option<&Bound<'_, PyAny>>,
        n: Whole,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        slice::generations(slf.as_super(), at, n)
    }

    /// int: blocks that a timer counts beside its own, for `lately.distributed`.
    #[getter]
    fn kept(slf: &Bound<'_, Self>) -> u32 {
        let (py, filter) = (slf.py(), slf.as_super().get());
        py.detach(|| filter.with(|filter| filter.shape().kept()))
    }
}

/// What tells that a part is full, by its name; memory that follows the keys has no bound to be held to.
fn growth(grow: &str, budget: Budget) -> PyResult<Grow> {
    if let Budget::Bytes(_) = budget {
        return Err(PyTypeError::new_err(
            "grow goes with fpr: nbytes bounds the memory, which is then left to the keys",
        ));
    }
    match grow {
        "cardinality" => Ok(Grow::Cardinality),
        "density" => Ok(Grow::Density),
        _ => Err(PyValueError::new_err(format!("grow must be 'cardinality' or 'density', got {grow:?}"))),
    }
}
