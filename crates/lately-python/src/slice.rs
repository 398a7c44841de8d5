//! `Slice`: what a site of a distributed filter holds.

use numpy::prelude::*;
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arrays::{Values, array_of, widened};
use super::calls::{Lock, detached};
use super::filter::PyFilter;
use super::filter_spec::FilterSpec;
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::clock::Moments;
use lately::memory::fallible;
use lately::shard::{self, Ages, Row};

/// Part of the cells of a filter, by their numbers: what one site of a distributed filter holds (paper 4, definition 2
/// and section 4, with erratum OIE-8). Threads may share it.
///
/// ``Slice(like, part=0, parts=1)`` holds the words ``ceil(part * W / parts)`` to ``ceil((part + 1) * W / parts)`` of
/// the W of `like`, a `BloomFilter` or `TimingBloomFilter` of fixed size or the `FilterSpec` of one. It is empty.
///
/// Examples
/// --------
/// >>> f = lately.BloomFilter(1000, 0.01, seed=1)
/// >>> s = lately._core.Slice(f, part=1, parts=3)
/// >>> s.touch(np.arange(3, dtype=np.uint64), 0)
/// (array([255, 255, 255], dtype=uint8), 0)
/// >>> s.ages(np.arange(4, dtype=np.uint64))
/// (array([  0,   0,   0, 255], dtype=uint8), 0)
/// >>> lately._core.Slice.from_words(f, s.words(), newest=s.newest, part=1, parts=3).fill == s.fill
/// True
#[pyclass(frozen, module = "lately._core")]
pub struct Slice {
    inner: Lock<shard::Shard>,
    /// The numbers of the cells. They never change, so they need no lock.
    cells: std::ops::Range<u64>,
}

impl Slice {
    fn new_from(inner: shard::Shard) -> Self {
        let cells = inner.cells();
        Self { inner: Lock::new(inner), cells }
    }
}

/// Converts ages, and the generation that they count back from, for NumPy.
fn to_python((ages, base): (Ages, i64), py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, i64)> {
    match ages {
        Ages::Narrow(ages) => Ok((array_of(py, ages)?.into_any(), base)),
        Ages::Wide(ages) => Ok((array_of(py, ages)?.into_any(), base)),
        Ages::Last(last) => Ok((array_of(py, last)?.into_any(), base)),
    }
}

/// Returns the numbering of the cells of a filter, or of a `FilterSpec`.
pub fn row_like(like: &Bound<'_, PyAny>) -> PyResult<Row> {
    if let Ok(spec) = like.cast::<FilterSpec>() {
        return spec.get().row();
    }
    let not_a_filter = || format!("like must be a filter or a FilterSpec, not {}", like.get_type());
    let filter = like.cast::<PyFilter>().map_err(|_| PyTypeError::new_err(not_a_filter()))?.get();
    detached(like.py(), || filter.with(Row::of))?.map_err(raise)
}

/// Returns the cells of keys, of shape (n, k), for tests of slices.
#[pyfunction]
pub fn cells<'py>(filter: &Bound<'py, PyFilter>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (py, row) = (filter.py(), row_like(filter)?);
    let batch = filter.get().keys(keys)?;
    let write = |(): &mut (), hashes: &[u64], _, _: Moments<'_>, cells: &mut [u64]| {
        row.cells(hashes, cells);
        PyResult::Ok(())
    };
    array_of(py, batch.run_with(py, 1, row.k(), || (), write)?)?.reshape([batch.keys.len(), row.k()])
}

fn read_keys(hashes: &Bound<'_, PyAny>, generations: &Bound<'_, PyAny>) -> PyResult<(Vec<u64>, Vec<i64>)> {
    let hashes = Values::read("hashes", hashes)?.flat("hashes")?;
    Ok((hashes, Values::read("generations", generations)?.flat("generations")?))
}

#[pymethods]
impl Slice {
    #[new]
    #[pyo3(signature = (like, *, part=WholeNumber::new(0), parts=WholeNumber::new(1)),
        text_signature = "(like, *, part=0, parts=1)")]
    fn new(py: Python<'_>, like: &Bound<'_, PyAny>, part: WholeNumber, parts: WholeNumber) -> PyResult<Self> {
        let (row, part, parts) = (row_like(like)?, part.within("part")?, parts.within("parts")?);
        Ok(Self::new_from(detached(py, || shard::Shard::new(row, part, parts))?.map_err(raise)?))
    }

    /// Make a slice from a copy of `words`, which `Slice.words` returned when `newest` was the newest generation.
    #[staticmethod]
    #[pyo3(signature = (like, words, *, newest, part=WholeNumber::new(0), parts=WholeNumber::new(1)),
        text_signature = "(like, words, *, newest, part=0, parts=1)")]
    fn from_words(
        py: Python<'_>,
        like: &Bound<'_, PyAny>,
        words: &Bound<'_, PyAny>,
        newest: i64,
        part: WholeNumber,
        parts: WholeNumber,
    ) -> PyResult<Self> {
        let (row, part, parts) = (row_like(like)?, part.within("part")?, parts.within("parts")?);
        let words = Values::read("words", words)?.flat("words")?;
        Ok(Self::new_from(detached(py, || shard::Shard::from_words(row, part, parts, &words, newest))?.map_err(raise)?))
    }

    /// Return the first cell of each of the slices of a filter, and the number of all cells.
    ///
    /// Examples
    /// --------
    /// >>> lately._core.Slice.bounds(lately.BloomFilter.from_parameters(capacity=1000, k=4, bits=1000), 3)
    /// array([   0,  384,  704, 1000], dtype=uint64)
    #[staticmethod]
    #[pyo3(signature = (like, parts), text_signature = "(like, parts)")]
    fn bounds<'py>(
        py: Python<'py>,
        like: &Bound<'_, PyAny>,
        parts: WholeNumber,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        array_of(py, row_like(like)?.bounds(parts.within("parts")?).map_err(raise)?)
    }

    /// Return how many generations before the newest one of this slice cells were last set, and that newest generation.
    ///
    /// `cells` are an array of uint32 or uint64, counted from the first cell of the slice. Ages are of uint8, or of
    /// uint32 if the window has more than 254 generations; the greatest number stands for a cell that counts no more.
    fn ages<'py>(&self, py: Python<'py>, cells: &Bound<'_, PyAny>) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let cells = widened::<u32, u64>("cells", cells)?;
        to_python(detached(py, || self.inner.read().ages(&cells))?.map_err(raise)?, py)
    }

    /// Return what `ages` does, and set each cell before the next is read: in generation `newest`, or as many
    /// generations earlier as `behind` has.
    ///
    /// Generations up to `newest` open. A late cell keeps its own generation, unless it was set in a later one. An age
    /// is a byte as long as the window and the batch together have fewer than 255 generations. Errors come before
    /// effects.
    #[pyo3(signature = (cells, newest, behind=None), text_signature = "($self, cells, newest, behind=None)")]
    fn touch<'py>(
        &self,
        py: Python<'py>,
        cells: &Bound<'_, PyAny>,
        newest: i64,
        behind: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, i64)> {
        let behind = behind.map(|behind| widened::<u8, u32>("behind", behind)).transpose()?;
        let cells = widened::<u32, u64>("cells", cells)?;
        if let Some(behind) = &behind
            && behind.len() != cells.len()
        {
            let message = format!("behind must have the shape ({},), got ({},)", cells.len(), behind.len());
            return Err(PyValueError::new_err(message));
        }
        to_python(detached(py, || self.inner.write().touch(&cells, newest, behind.as_deref()))?.map_err(raise)?, py)
    }

    /// Return when the oldest cell of each key was set, or the least int64 if the key is new as of its generation.
    ///
    /// For a slice that is a whole filter. Keys are given by their hashes, of uint64, with generations of int64.
    fn oldest<'py>(
        &self,
        py: Python<'py>,
        hashes: &Bound<'_, PyAny>,
        generations: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (hashes, generations) = read_keys(hashes, generations)?;
        let oldest = detached(py, || self.inner.read().oldest(&hashes, &generations))?.map_err(raise)?;
        array_of(py, oldest)
    }

    /// Return for each key in order whether it was there, and set its cells in its generation if not; see `oldest`.
    fn duplicated<'py>(
        &self,
        py: Python<'py>,
        hashes: &Bound<'_, PyAny>,
        generations: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (hashes, generations) = read_keys(hashes, generations)?;
        let seen = detached(py, || self.inner.write().duplicated(&hashes, &generations))?.map_err(raise)?;
        array_of(py, seen)
    }

    /// Set the cells of keys, each in its generation; see `oldest`.
    fn insert(&self, py: Python<'_>, hashes: &Bound<'_, PyAny>, generations: &Bound<'_, PyAny>) -> PyResult<()> {
        let (hashes, generations) = read_keys(hashes, generations)?;
        detached(py, || self.inner.write().insert(&hashes, &generations))?.map_err(raise)
    }

    /// Return a copy of the words that hold the cells, for `from_words`.
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let words = detached(py, || fallible::collected(self.inner.read().words().iter().copied()))?;
        array_of(py, words.map_err(raise)?)
    }

    /// int: the number of the first cell.
    #[getter]
    fn start(&self) -> u64 {
        self.cells.start
    }

    /// int: one more than the number of the last cell.
    #[getter]
    fn stop(&self) -> u64 {
        self.cells.end
    }

    /// int: bytes of the cells.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || 8 * self.inner.read().words().len())
    }

    /// float: share of the cells that are set and live.
    #[getter]
    fn fill(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || self.inner.read().fill())
    }

    /// Return a warning if the cells make the filter of `like` err more often than planned, beyond chance.
    fn overfull(&self, py: Python<'_>, like: &Bound<'_, FilterSpec>) -> PyResult<Option<String>> {
        let like = like.get();
        detached(py, || like.overfull(self.inner.read().fill(), self.cells.end - self.cells.start))?
    }

    /// int: the newest generation that was opened here; the least int64 before the first, and 0 for a Bloom filter.
    #[getter]
    fn newest(&self, py: Python<'_>) -> PyResult<i64> {
        detached(py, || self.inner.read().newest())
    }
}
