//! `GuardedEpochBloomFilter`: its constructors.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::filter::Filter;
use super::whole::Whole;
use super::{Layout, budget, times, wrap};
use crate::Error;
use crate::filter;
use crate::shape::guarded_epoch::{Segment, Shape, Transposed, choose, choose_transposed};
use crate::shape::line::{self, Family};

/// Guarded-epoch Bloom filter: fewest bits; no key of the window is missed, and old ones go an epoch at a time.
///
/// r + 1 Bloom filters in a ring, of which the newest is filled and the oldest cleared after every epoch of
/// ceil((window - 1) / r) insertions. A query asks all of them.
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
///     Most bytes to use: the filter then has the least rate that fits, but for a 64th of it.
/// slack : int or span of time, optional
///     Longest that a key may still be reported after leaving the window, in the unit of `window`: more segments, when
///     memory alone would take fewer. The default is half the window (and never less than 64 insertions).
/// block_bits : {64, 512}, optional
///     Set all bits a key has in one segment within one block of so many bits: 512, a cache line, is several times
///     faster than the plain filter and takes about 1.3 bits per key more at 1 %, 4.6 at 0.1 %. The default is the
///     plain filter.
/// layout : {"sliced", "line", "transposed"}, default "sliced"
///     "line" puts what all segments hold of a key side by side into one cache line, or into up to four of one page of
///     4 KiB: many times faster, in a few bits more. A filter then has whole pages, and `block_bits` does not apply.
///     "transposed" puts what all segments hold at one position side by side: the plain filter with an r of 7, 15, 31
///     or 63, in about the same bits, with queries that read k places instead of k in every segment.
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
/// Paper 2: F. Alpay, L. Sarıoğlu, Guarded Epoch Bloom Filters for Sliding-Window Membership, 2026. Between
/// r * epoch + 1 and (r + 1) * epoch insertions are retained; `fpr` holds at the end of an epoch.
///
/// Examples
/// --------
/// >>> f = lately.GuardedEpochBloomFilter(window=1_000_000, fpr=0.01)
/// >>> f.duplicated(["a", "b", "a"])
/// array([False, False,  True])
/// >>> round(f.bits_per_key, 1), f.slack
/// (15.9, 166669)
/// >>> f = lately.GuardedEpochBloomFilter("10min", 0.001, capacity=50_000)
/// >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
/// array([False,  True, False])
#[pyclass(extends = Filter, frozen, module = "lately")]
pub struct GuardedEpochBloomFilter;

#[pymethods]
impl GuardedEpochBloomFilter {
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
                    filter::Filter::new(line::choose(window, budget, slack, Family::GuardedEpoch)?, window, seed)?
                }
                Layout::Transposed => filter::Filter::new(choose_transposed(window, budget, slack)?, window, seed)?,
            })
        })?;
        Ok(PyClassInitializer::from(Filter::new(filter)).add_subclass(Self))
    }

    /// A filter with the parameters of the paper.
    ///
    /// Parameters
    /// ----------
    /// window : int or span of time
    ///     As in the constructor; epochs are as long as it needs: ceil((window - 1) / r) insertions.
    /// r : int
    ///     Full epochs kept; the filter has r + 1 segments, at most 128.
    /// k : int, optional
    ///     Bits a key sets in a segment of a plain filter, each in its own part: 1 to 64. Goes with `segment_bits`.
    /// segment_bits : int, optional
    ///     s: bits of each segment of a plain filter.
    /// blocks : int, optional
    ///     Blocks of each segment of a blocked filter, instead of `k` and `segment_bits`.
    /// block_bits : {64, 512}, default 512
    ///     Bits of a block.
    /// parts : {1, 2, 4, 8}, default 8
    ///     Bits a key sets in a block, each in its own part.
    /// pages : int, optional
    ///     Pages of 4 KiB of a filter in lines, instead of `k` and `segment_bits`; r is then 7, 15 or 31.
    /// lines : {1, 2, 3, 4}, default 1
    ///     Lines of a page that a key has bits in.
    /// positions : int, optional
    ///     Positions of a transposed filter, of r + 1 bits each, instead of `segment_bits`; r is then 7, 15, 31 or 63.
    /// capacity, lateness, seed
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// GuardedEpochBloomFilter
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter is out of range; the message names it.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.GuardedEpochBloomFilter.from_parameters(20_000, r=8, k=8, segment_bits=31_111)
    /// >>> f.slack, round(f.fpr, 4)
    /// (2500, 0.0228)
    #[classmethod]
    #[pyo3(signature = (window, r, *, k=None, segment_bits=None, blocks=None, block_bits=Whole::new(512), parts=Whole::new(8), pages=None, lines=Whole::new(1), positions=None, capacity=None, lateness=None, seed=Whole::new(0)),
        text_signature = "($cls, window, r, *, k=None, segment_bits=None, blocks=None, block_bits=512, parts=8, pages=None, lines=1, positions=None, capacity=None, lateness=None, seed=0)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor's keywords")]
    fn from_parameters(
        class: &Bound<'_, PyType>,
        window: &Bound<'_, PyAny>,
        r: Whole,
        k: Option<Whole>,
        segment_bits: Option<Whole>,
        blocks: Option<Whole>,
        block_bits: Whole,
        parts: Whole,
        pages: Option<Whole>,
        lines: Whole,
        positions: Option<Whole>,
        capacity: Option<Whole>,
        lateness: Option<&Bound<'_, PyAny>>,
        seed: Whole,
    ) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let window = times::window(window, capacity, lateness)?.check()?;
        let (r, seed) = (r.within("r")?, seed.within("seed")?);
        let segment = match (k, segment_bits, blocks, pages, positions) {
            (None, None, None, Some(pages), None) => {
                let shape = line::Shape::guarded_epoch(r, pages.within("pages")?, lines.within("lines")?)?;
                let filter = py.detach(|| filter::Filter::new(shape, window, seed))?;
                return wrap(py, filter);
            }
            (Some(k), None, None, None, Some(positions)) => {
                let shape = Transposed::new(r, k.within("k")?, positions.within("positions")?)?;
                return wrap(py, py.detach(|| filter::Filter::new(shape, window, seed))?);
            }
            (Some(k), Some(bits), None, None, None) => {
                Segment::Bloom { bits: bits.within("segment_bits")?, k: k.within("k")? }
            }
            (None, None, Some(blocks), None, None) => Segment::Blocks {
                blocks: blocks.within("blocks")?,
                block_bits: block_bits.within("block_bits")?,
                parts: parts.within("parts")?,
            },
            _ => {
                return Err(PyValueError::new_err(
                    "give one of k and segment_bits, blocks, pages, and k and positions",
                ));
            }
        };
        let filter = py.detach(|| filter::Filter::new(Shape::new(r, segment)?, window, seed))?;
        wrap(py, filter)
    }
}
