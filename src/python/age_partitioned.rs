//! `AgePartitionedBloomFilter`: its constructors.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::whole::Whole;
use super::{Layout, budget, times, wrap};
use crate::Error;
use crate::filter;
use crate::shape::age_partitioned::{Segment, Shape, choose};
use crate::shape::line::{self, Family};

/// Age-partitioned Bloom filter: no key of the window is missed, and old ones fade slice by slice.
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
///     Longest that a key may still be reported after leaving the window, in the unit of `window`. The default is half
///     the window (and never less than 64 insertions).
/// block_bits : {64, 512}, optional
///     Set all bits a key has in one slice within one block of so many bits: 512, a cache line, is several times faster
///     than the plain filter. The default is the plain filter.
/// layout : {"sliced", "line"}, default "sliced"
///     "line" puts what all slices hold of a key side by side into one cache line, or into up to four of one page of
///     4 KiB: faster again, in less memory than one line per slice at small rates. A filter then has whole pages, and
///     `block_bits` does not apply.
/// capacity : int, optional
///     Keys expected within a window of time when they come fastest, needed there. More of them, if only for a part of
///     the window, cost accuracy, never the window.
/// lateness : span of time, optional
///     For a window of time, how far `at` may step back; the window is kept for late keys too. The default is 0.
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
/// Paper 1: A. Shtul, C. Baquero, P. S. Almeida, Age-Partitioned Bloom Filters, 2020. Sized with exact fills, so that
/// `fpr` holds just before a shift and the window just after one; the printed formulas promise more than they keep.
///
/// Examples
/// --------
/// >>> f = lately.AgePartitionedBloomFilter(window=1_000_000, fpr=0.001)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> f = lately.AgePartitionedBloomFilter("10min", 0.001, capacity=50_000)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct AgePartitionedBloomFilter;

#[pymethods]
impl AgePartitionedBloomFilter {
    #[new]
    #[pyo3(signature = (window, fpr=None, *, nbytes=None, slack=None, block_bits=None, layout=Layout::Sliced, capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "(window, fpr=None, *, nbytes=None, slack=None, block_bits=None, layout='sliced', capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn new(
        py: Python<'_>,
        window: &Bound<'_, PyAny>,
        fpr: Option<f64>,
        nbytes: Option<Whole>,
        slack: Option<&Bound<'_, PyAny>>,
        block_bits: Option<Whole>,
        layout: Layout,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<PyClassInitializer<Self>> {
        let window = times::window(window, capacity, lateness)?.check()?;
        let slack = slack.map(|slack| times::length("slack", slack, window)).transpose()?;
        let budget = budget(fpr, nbytes)?;
        let block_bits = block_bits.map(|bits| bits.within("block_bits")).transpose()?;
        let seed = seed.within("seed")?;
        layout.check(block_bits)?;
        let filter = py.detach(|| -> Result<filter::Filter, Error> {
            Ok(match layout {
                Layout::Sliced => filter::Filter::new(choose(window, budget, slack, block_bits)?, window, seed)?,
                Layout::Line => {
                    filter::Filter::new(line::choose(window, budget, slack, Family::AgePartitioned)?, window, seed)?
                }
                Layout::Transposed => {
                    return Err(Error::value("layout='transposed' is one of guarded epochs: this filter has none"));
                }
            })
        })?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter with the parameters of the paper.
    ///
    /// Parameters
    /// ----------
    /// window : int or span of time
    ///     As in the constructor; generations are as long as it needs: ceil((window - 1) / l) insertions.
    /// k, l : int
    ///     Consecutive slices that must match, and full generations kept; k + l at most 128.
    /// slice_bits : int, optional
    ///     m: bits of each slice of a plain filter.
    /// blocks : int, optional
    ///     Blocks of each slice of a blocked filter, instead of `slice_bits`.
    /// block_bits : {64, 512}, default 512
    ///     B: bits of a block.
    /// parts : {1, 2, 4, 8}, default 8
    ///     b: bits a key sets in a block, each in its own part.
    /// pages : int, optional
    ///     Pages of 4 KiB of a filter in lines, instead of `slice_bits`; k + l is then 8, 16 or 32, and k at most 4.
    /// lines : {1, 2, 3, 4}, default 1
    ///     Lines of a page that a key has bits in.
    /// capacity, lateness, seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// AgePartitionedBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=10, l=7, slice_bits=2064)
    /// >>> f.nbytes, round(f.npws, 3)
    /// (4488, 0.261)
    #[classmethod]
    #[pyo3(signature = (window, k, l, *, slice_bits=None, blocks=None, block_bits=Whole::new(512), parts=Whole::new(8), pages=None, lines=Whole::new(1), capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "($cls, window, k, l, *, slice_bits=None, blocks=None, block_bits=512, parts=8, pages=None, lines=1, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        k: Whole,
        l: Whole,
        slice_bits: Option<Whole>,
        blocks: Option<Whole>,
        block_bits: Whole,
        parts: Whole,
        pages: Option<Whole>,
        lines: Whole,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::window(window, capacity, lateness)?.check()?;
        let (k, l, seed) = (k.within("k")?, l.within("l")?, seed.within("seed")?);
        let segment = match (slice_bits, blocks, pages) {
            (None, None, Some(pages)) => {
                let shape = line::Shape::age_partitioned(k, l, pages.within("pages")?, lines.within("lines")?)?;
                let filter = py.detach(|| filter::Filter::new(shape, window, seed))?;
                return wrap(py, filter);
            }
            (Some(bits), None, None) => Segment::Slice { bits: bits.within("slice_bits")? },
            (None, Some(blocks), None) => Segment::Blocks {
                blocks: blocks.within("blocks")?,
                block_bits: block_bits.within("block_bits")?,
                parts: parts.within("parts")?,
            },
            _ => return Err(PyValueError::new_err("give one of slice_bits, blocks and pages")),
        };
        let filter = py.detach(|| filter::Filter::new(Shape::new(k, l, segment)?, window, seed))?;
        wrap(py, filter)
    }
}
