//! `Slice`: what a site of a distributed filter holds.

use std::sync::RwLockReadGuard;

use numpy::prelude::*;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayDyn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arrays::{Values, Width};
use super::calls::{Lock, LockGuard, detached};
use super::filter::PyFilter;
use super::filter_spec::FilterSpec;
use super::whole::Whole;
use crate::errors::raise;
use lately::clock::Moments;
use lately::memory::fallible;
use lately::shard::{self, Ages, Row};

/// Part of the cells of a filter, by their numbers: what one site of a distributed filter holds.
///
/// It knows no keys: ``like.cells(keys)`` tells which cells a key has. The words of all parts, concatenated, are those
/// of the whole filter.
///
/// Parameters
/// ----------
/// like : BloomFilter or TimingBloomFilter, or FilterSpec of one
///     The filter whose cells these are a part of. Only its parameters are used; the slice is empty.
/// part : int, default 0
///     Which part, in [0, parts).
/// parts : int, default 1
///     How many there are, S: this one holds the words ``ceil(part * W / S)`` to ``ceil((part + 1) * W / S)`` of W.
///
/// Raises
/// ------
/// TypeError
///     If `like` is no filter.
/// ValueError
///     If it is of another family, or grows; if `parts` are more than there are words, or `part` is not one of them.
/// MemoryError
///     If the memory cannot be had.
///
/// Notes
/// -----
/// Paper 4, definition 2 and section 4, with erratum OIE-8. Threads may share it: a call acts as a whole.
///
/// Examples
/// --------
/// >>> f = lately.TimingBloomFilter("10min", 0.01, capacity=1000, seed=1)
/// >>> s = lately._core.Slice(f)
/// >>> cells, now = f.cells(["a", "b"]), f.generations(0, 2)
/// >>> s.set(cells[:1], now[:1])
/// >>> (s.read(cells) == now[:, None]).all(axis=1)
/// array([ True, False])
#[pyclass(frozen, module = "lately._core")]
pub struct Slice {
    inner: Lock<shard::Shard>,
    /// Never changes, so it needs no lock.
    like: Row,
    cells: std::ops::Range<u64>,
    part: u64,
    parts: u64,
}

impl Slice {
    fn new_from(inner: shard::Shard) -> Self {
        let (like, cells, part, parts) = (*inner.row(), inner.cells(), inner.part(), inner.parts());
        Self { inner: Lock::new(inner), like, cells, part, parts }
    }

    /// To read. Like the lock of a filter, only taken detached from the interpreter.
    fn inner(&self) -> LockGuard<RwLockReadGuard<'_, shard::Shard>> {
        self.inner.read()
    }
}

/// Gives ages to NumPy, and the generation that they count back from.
fn to_python((ages, base): (Ages, i64), py: Python<'_>) -> (Bound<'_, PyAny>, i64) {
    let ages = match ages {
        Ages::Narrow(ages) => ages.into_pyarray(py).into_any(),
        Ages::Wide(ages) => ages.into_pyarray(py).into_any(),
    };
    (ages, base)
}

/// The cells of a filter as one row.
fn row(filter: &Bound<'_, PyFilter>) -> PyResult<Row> {
    let base = filter.get();
    detached(filter.py(), || base.with(Row::of))?.map_err(raise)
}

/// The cells of a filter, or of one that is only outlined.
pub fn row_like(like: &Bound<'_, PyAny>) -> PyResult<Row> {
    match like.cast::<FilterSpec>() {
        Ok(outline) => outline.get().row(),
        Err(_) => row(like.cast().map_err(|_| {
            PyTypeError::new_err(format!("like must be a filter, or the outline of one, not {}", like.get_type()))
        })?),
    }
}

/// `BloomFilter.cells` and `TimingBloomFilter.cells`.
#[pyfunction]
pub fn cells<'py>(filter: &Bound<'py, PyFilter>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (py, row) = (filter.py(), row(filter)?);
    let batch = filter.get().keys(keys)?;
    let write = |(): &mut (), hashes: &[u64], _, _: Moments<'_>, cells: &mut [u64]| {
        row.cells(hashes, cells);
        PyResult::Ok(())
    };
    batch.run_with(py, 1, row.k(), || (), write)?.into_pyarray(py).reshape([batch.keys.len(), row.k()])
}

/// `BloomFilter.generations` and `TimingBloomFilter.generations`.
#[pyfunction]
#[pyo3(signature = (filter, at, n))]
pub fn generations<'py>(
    filter: &Bound<'py, PyFilter>,
    at: Option<&Bound<'_, PyAny>>,
    n: Whole,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (py, n) = (filter.py(), n.within("n")?);
    let (row, moments) = (row(filter)?, filter.get().moments(at, n)?);
    Ok(detached(py, || row.generations(moments.of(0..n), n))?.map_err(raise)?.into_pyarray(py))
}

#[pymethods]
impl Slice {
    #[new]
    #[pyo3(signature = (like, *, part=Whole::new(0), parts=Whole::new(1)),
        text_signature = "(like, *, part=0, parts=1)")]
    fn new(py: Python<'_>, like: &Bound<'_, PyAny>, part: Whole, parts: Whole) -> PyResult<Self> {
        let (row, part, parts) = (row_like(like)?, part.within("part")?, parts.within("parts")?);
        Ok(Self::new_from(detached(py, || shard::Shard::new(row, part, parts))?.map_err(raise)?))
    }

    /// The slice that had these words.
    ///
    /// Parameters
    /// ----------
    /// like : BloomFilter or TimingBloomFilter
    ///     A filter of the same parameters as the slice was made from.
    /// words : ndarray of uint64, shape (nbytes // 8,)
    ///     What `words` gave. Other words are legal too; they hold cells that nobody set.
    /// newest : int
    ///     What `newest` was.
    /// part, parts : int
    ///     As in the constructor.
    ///
    /// Returns
    /// -------
    /// Slice
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError, MemoryError
    ///     As the constructor, or if the number of `words` is not that of this part.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.BloomFilter(1000, 0.01)
    /// >>> s = lately._core.Slice(f, part=1, parts=3)
    /// >>> lately._core.Slice.from_words(f, s.words(), newest=s.newest, part=1, parts=3).nbytes == s.nbytes
    /// True
    #[staticmethod]
    #[pyo3(signature = (like, words, *, newest, part=Whole::new(0), parts=Whole::new(1)),
        text_signature = "(like, words, *, newest, part=0, parts=1)")]
    fn from_words(
        py: Python<'_>,
        like: &Bound<'_, PyAny>,
        words: &Bound<'_, PyAny>,
        newest: i64,
        part: Whole,
        parts: Whole,
    ) -> PyResult<Self> {
        let (row, part, parts) = (row_like(like)?, part.within("part")?, parts.within("parts")?);
        let Values { values: words, shape } = Values::read("words", words)?;
        if shape.len() != 1 {
            return Err(PyValueError::new_err(format!("words must have one dimension, got {}", shape.len())));
        }
        Ok(Self::new_from(detached(py, || shard::Shard::from_words(row, part, parts, &words, newest))?.map_err(raise)?))
    }

    /// Where the cells of a filter are cut.
    ///
    /// Parameters
    /// ----------
    /// like : BloomFilter or TimingBloomFilter
    /// parts : int
    ///     How many slices there are.
    ///
    /// Returns
    /// -------
    /// ndarray of uint64, shape (parts + 1,)
    ///     The first cell of each, and the number of all cells.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As the constructor.
    ///
    /// Examples
    /// --------
    /// >>> lately._core.Slice.bounds(lately.BloomFilter.from_parameters(1000, k=4, bits=1000), 3)
    /// array([   0,  384,  704, 1000], dtype=uint64)
    #[staticmethod]
    #[pyo3(signature = (like, parts), text_signature = "(like, parts)")]
    fn bounds<'py>(py: Python<'py>, like: &Bound<'_, PyAny>, parts: Whole) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(row_like(like)?.bounds(parts.within("parts")?).map_err(raise)?.into_pyarray(py))
    }

    /// Tell when cells were set.
    ///
    /// Parameters
    /// ----------
    /// cells : ndarray of uint64, any shape
    ///     Their numbers, in [start, stop).
    ///
    /// Returns
    /// -------
    /// ndarray of int64, of the same shape
    ///     The generation in which each was last set, which may have left the window. The least int64 if it was never
    ///     set, or so long ago that its timer is gone. For a Bloom filter, 0 if it is set.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If `cells` is no such array.
    /// ValueError
    ///     If one is not of this slice; the message names it.
    fn read<'py>(&self, py: Python<'py>, cells: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        let Values { values: cells, shape } = Values::read("cells", cells)?;
        let last = detached(py, || {
            let mut last = fallible::zeroed(cells.len())?;
            self.inner().read(&cells, &mut last).map(|()| last)
        })?
        .map_err(raise)?;
        last.into_pyarray(py).reshape(shape)
    }

    /// Set cells, row after row.
    ///
    /// Parameters
    /// ----------
    /// cells : ndarray of uint64, shape (n,) or (n, k)
    ///     Their numbers, in [start, stop).
    /// generations : int, or ndarray of int64, shape (n,)
    ///     The generation of each row. A newer one than all before opens the generations up to it. In an older one,
    ///     cells set since stay as they are (paper 4, section 4; erratum OIE-8), and nothing is set if it is no longer
    ///     kept.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     If `cells` or `generations` are no such arrays.
    /// ValueError
    ///     If a cell is not of this slice, or a generation is the least int64, or not 0 for a Bloom filter; the message
    ///     names it. Nothing was set then.
    fn set(&self, py: Python<'_>, cells: &Bound<'_, PyAny>, generations: &Bound<'_, PyAny>) -> PyResult<()> {
        let Values { values: cells, shape } = Values::read("cells", cells)?;
        let (&[rows] | &[rows, _]) = &shape[..] else {
            return Err(PyValueError::new_err(format!("cells must have one or two dimensions, got {}", shape.len())));
        };
        let (width, generations) = match generations.extract() {
            Ok(generation) => (cells.len(), vec![generation]),
            Err(_) => {
                let generations = Values::read("generations", generations)?.shaped("generations", &[rows])?;
                (shape.get(1).copied().unwrap_or(1), generations)
            }
        };
        detached(py, || self.inner.write().set(&cells, width, &generations))?.map_err(raise)?;
        Ok(())
    }

    /// Tell how long ago cells were last set, in the form in which sites say so.
    ///
    /// Parameters
    /// ----------
    /// cells : ndarray of uint32 or uint64, shape (n,)
    ///     Their numbers, counted from the first of this slice.
    ///
    /// Returns
    /// -------
    /// ages : ndarray of uint8 or uint32, shape (n,)
    ///     How many generations before `base` each was last set. The greatest number of the type if it was never set,
    ///     or so long ago that it counts for no key any more. A byte is enough as long as the window has fewer than
    ///     255 generations, or none.
    /// base : int
    ///     The newest generation that the slice has heard of.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As `read`.
    fn ages<'py>(&self, py: Python<'py>, cells: &Bound<'_, PyAny>) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let ages = match Width::<u32, u64>::read("cells", cells)? {
            Width::Narrow(cells) => detached(py, || self.inner().ages(&cells))?.map_err(raise)?,
            Width::Wide(cells) => detached(py, || self.inner().ages(&cells))?.map_err(raise)?,
        };
        Ok(to_python(ages, py))
    }

    /// Do as `ages`, and set each cell before the next is looked at.
    ///
    /// Parameters
    /// ----------
    /// cells : ndarray of uint32 or uint64, shape (n,)
    ///     As in `ages`.
    /// newest : int
    ///     The newest generation of them, in which they are set. Those up to it open.
    /// behind : ndarray of uint8 or uint32, shape (n,), optional
    ///     How many generations earlier each is set. Others that come late are as in `set`.
    ///
    /// Returns
    /// -------
    /// ages : ndarray of uint8 or uint32, shape (n,)
    ///     As `ages`, but for cells that count for one of these: a byte is enough as long as the window and the batch
    ///     together have fewer than 255 generations.
    /// base : int
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As `set`; nothing was set then.
    #[pyo3(signature = (cells, newest, behind=None), text_signature = "($self, cells, newest, behind=None)")]
    fn touch<'py>(
        &self,
        py: Python<'py>,
        cells: &Bound<'_, PyAny>,
        newest: i64,
        behind: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let behind = match behind.map(|behind| Width::<u8, _>::read("behind", behind)).transpose()? {
            Some(Width::Narrow(behind)) => Some(fallible::collected(behind.into_iter().map(u32::from)).map_err(raise)?),
            Some(Width::Wide(behind)) => Some(behind),
            None => None,
        };
        let cells = Width::<u32, u64>::read("cells", cells)?;
        if let Some(behind) = &behind
            && behind.len() != cells.len()
        {
            let message = format!("behind must have the shape ({},), got ({},)", cells.len(), behind.len());
            return Err(PyValueError::new_err(message));
        }
        let ages = match cells {
            Width::Narrow(cells) => {
                detached(py, || self.inner.write().touch(&cells, newest, behind.as_deref()))?.map_err(raise)?
            }
            Width::Wide(cells) => {
                detached(py, || self.inner.write().touch(&cells, newest, behind.as_deref()))?.map_err(raise)?
            }
        };
        Ok(to_python(ages, py))
    }

    /// A copy of the words that hold the cells, for `from_words`.
    ///
    /// Returns
    /// -------
    /// ndarray of uint64, shape (nbytes // 8,)
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(detached(py, || fallible::collected(self.inner().words().iter().copied()))?.map_err(raise)?.into_pyarray(py))
    }

    /// int: the number of its first cell.
    #[getter]
    fn start(&self) -> u64 {
        self.cells.start
    }

    /// int: one more than the number of its last cell.
    #[getter]
    fn stop(&self) -> u64 {
        self.cells.end
    }

    /// int: bytes of the cells.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || 8 * self.inner().words().len())
    }

    /// int: cells of a key, in all slices together.
    #[getter]
    fn k(&self) -> usize {
        self.like.k()
    }

    /// int: which part this is.
    #[getter]
    fn part(&self) -> u64 {
        self.part
    }

    /// int: the number of parts.
    #[getter]
    fn parts(&self) -> u64 {
        self.parts
    }

    /// float: share of the cells that are set and live.
    #[getter]
    fn fill(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.inner().fill())
    }

    /// int: the newest generation it has heard of; the least int64 before the first, and 0 for a Bloom filter.
    #[getter]
    fn newest(&self, py: Python<'_>) -> PyResult<i64> {
        detached(py, || self.inner().newest())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (cells, nbytes) = (&self.cells, self.nbytes(py)?);
        Ok(format!("<Slice {} of {} cells={}..{} nbytes={nbytes}>", self.part, self.parts, cells.start, cells.end))
    }
}
