//! Records of the command: blocks of bytes to hashes, hashes to what is new, and what is new to bytes.
//!
//! None of it needs NumPy, whose import takes longer than the work on many a file.

use std::ops::Range;
use std::sync::Arc;
use std::thread::available_parallelism;

use memchr::memchr_iter;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use super::batch::Batch;
use super::calls::detached;
use super::filter::Filter;
use super::instants::of_seconds;
use super::keys::read_keys;
use super::whole::Threads;
use crate::reader::{Csv, Encoding, Found, Json, Lines as LineReader, Reader, read_shared};
use lately::engine::Refresh;
use lately::key::{KeyHasher, Keys};

/// Finds the records of a block and the hashes of their keys, as a filter sees them; `lately.cli` reads what it leaves.
///
/// Made by `lines`, `csv` and `json`. `encoding` is "utf-8", "strict utf-8", "latin-1" or "ascii".
#[pyclass(frozen, module = "lately._core")]
pub struct RecordReader {
    reader: Box<dyn Reader + Send + Sync>,
    hasher: KeyHasher,
    threads: usize,
    /// Whether times may stand in quotes.
    quoted: bool,
}

#[pymethods]
impl RecordReader {
    /// Lines, each of which is its own key.
    #[staticmethod]
    fn lines(filter: &Bound<'_, Filter>, encoding: &str, longest: usize) -> PyResult<Self> {
        Ok(Self::new(filter, LineReader { encoding: encoding_of(encoding)?, longest }))
    }

    /// Records of `width` fields, of which those of the numbers `key` are the key.
    #[staticmethod]
    #[pyo3(signature = (filter, encoding, longest, *, delimiter, quotes, comments, width, key, time))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn csv(
        filter: &Bound<'_, Filter>,
        encoding: &str,
        longest: usize,
        delimiter: u8,
        quotes: bool,
        comments: bool,
        width: usize,
        key: Vec<usize>,
        time: Option<usize>,
    ) -> PyResult<Self> {
        if key.iter().chain(&time).any(|&field| field >= width) {
            return Err(PyValueError::new_err("a field beyond the width"));
        }
        if !delimiter.is_ascii() || matches!(delimiter, b'"' | b'\r' | b'\n') {
            return Err(PyValueError::new_err("a delimiter that is none"));
        }
        let encoding = encoding_of(encoding)?;
        Ok(Self::new(filter, Csv { delimiter, quotes, width, key, time, comments, encoding, longest }))
    }

    /// An object a line; nothing if there are too many fields to look for.
    #[staticmethod]
    #[pyo3(signature = (filter, encoding, longest, *, key, time))]
    fn json(
        filter: &Bound<'_, Filter>,
        encoding: &str,
        longest: usize,
        key: Vec<String>,
        time: Option<String>,
    ) -> PyResult<Option<Self>> {
        let reader = Json::new(&key, time.as_deref(), encoding_of(encoding)?, longest);
        Ok(reader.map(|reader| Self { quoted: true, ..Self::new(filter, reader) }))
    }

    /// The records from a place of a block on, up to the first that is left to others: lines, hashes of keys, the times
    /// (an array of nanoseconds since 1970, or where one is no plain number the bytes of all), and by bits the fields
    /// of the key that some record had. `plain` says that numbers are Unix seconds, and `number` is that of the first
    /// line.
    #[allow(clippy::type_complexity, reason = "Python takes it apart")]
    fn read<'py>(
        &self,
        block: &Bound<'py, PyBytes>,
        start: usize,
        number: u64,
        plain: bool,
    ) -> PyResult<(Lines, Hashed, Times<'py>, u64)> {
        let (py, bytes) = (block.py(), block.as_bytes());
        if start > bytes.len() {
            return Err(PyIndexError::new_err("a start beyond the block"));
        }
        let (found, moments) = detached(py, || {
            let (found, _) = read_shared(&*self.reader, bytes, start, &self.hasher, self.threads);
            let moments = plain.then(|| self.moments(bytes, &found)).flatten();
            (found, moments)
        })?;
        let times = match moments {
            Some(moments) => Times::Read(moments.into_pyarray(py)),
            None => Times::Raw(found.times.iter().map(|range| PyBytes::new(py, &bytes[range.clone()])).collect()),
        };
        let lines = Lines { block: block.clone().unbind(), origin: start, number, start, ends: found.ends };
        Ok((lines, Hashed::new(found.hashes), times, found.met))
    }
}

/// The times of records, read or not.
#[derive(IntoPyObject)]
pub enum Times<'py> {
    Read(Bound<'py, PyArray1<i64>>),
    Raw(Vec<Bound<'py, PyBytes>>),
}

impl RecordReader {
    fn new(filter: &Bound<'_, Filter>, reader: impl Reader + Send + Sync + 'static) -> Self {
        Self { reader: Box::new(reader), hasher: filter.get().hasher, threads: threads(), quoted: false }
    }

    /// Nanoseconds since 1970 of times that are all plain numbers of seconds; of no times, nothing.
    fn moments(&self, block: &[u8], found: &Found) -> Option<Vec<i64>> {
        let moment = |time: &[u8]| {
            let inner = time.strip_prefix(b"\"").and_then(|time| time.strip_suffix(b"\"")).filter(|_| self.quoted);
            let time = inner.unwrap_or(time);
            // What Python and Rust read alike.
            let plain = time.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
            let seconds = std::str::from_utf8(time).ok().filter(|_| plain)?.parse().ok()?;
            let (moment, fits) = of_seconds(seconds);
            fits.then_some(moment)
        };
        (!found.times.is_empty()).then(|| found.times.iter().map(|range| moment(&block[range.clone()])).collect())?
    }
}

/// One a core, as long as more of them find something to do.
fn threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().min(4))
}

fn encoding_of(name: &str) -> PyResult<Encoding> {
    match name {
        "utf-8" => Ok(Encoding::Utf8),
        "strict utf-8" => Ok(Encoding::StrictUtf8),
        "latin-1" => Ok(Encoding::Latin1),
        "ascii" => Ok(Encoding::Ascii),
        _ => Err(PyValueError::new_err(format!("no encoding {name:?}"))),
    }
}

/// Records that follow one another in a block, without a copy of each.
#[pyclass(frozen, sequence, module = "lately._core")]
pub struct Lines {
    block: Py<PyBytes>,
    /// Where the line `number` begins.
    origin: usize,
    number: u64,
    /// Where the first record begins, and where each ends.
    start: usize,
    ends: Vec<usize>,
}

impl Lines {
    /// Where record `i` begins.
    fn begin(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(self.start, |before| self.ends[before])
    }

    fn check(&self, i: usize) -> PyResult<usize> {
        if i < self.ends.len() { Ok(i) } else { Err(PyIndexError::new_err("a record beyond the last")) }
    }
}

#[pymethods]
impl Lines {
    fn __len__(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of one record, or records that follow one another.
    fn __getitem__<'py>(&self, py: Python<'py>, i: Part<'py>) -> PyResult<Bound<'py, PyAny>> {
        match i {
            Part::One(i) => {
                let (begin, end) = (self.begin(self.check(i)?), self.ends[i]);
                Ok(PyBytes::new(py, &self.block.bind(py).as_bytes()[begin..end]).into_any())
            }
            Part::Some(slice) => {
                let range = range(&slice, self.ends.len())?;
                let block = self.block.clone_ref(py);
                let (start, ends) = (self.begin(range.start), self.ends[range].to_vec());
                let part = Self { block, origin: self.origin, number: self.number, start, ends };
                Ok(Bound::new(py, part)?.into_any())
            }
        }
    }

    /// Where they end in the block.
    #[getter]
    fn end(&self) -> usize {
        self.begin(self.ends.len())
    }

    /// The number of the line where a record begins, or for as many as there are, of the line behind them all.
    fn line(&self, py: Python<'_>, i: usize) -> PyResult<u64> {
        let i = if i == self.ends.len() { i } else { self.check(i)? };
        let before = &self.block.bind(py).as_bytes()[self.origin..self.begin(i)];
        Ok(self.number + memchr_iter(b'\n', before).count() as u64)
    }

    /// Those that are marked by a byte that is not zero, one after the other.
    fn chosen<'py>(&self, py: Python<'py>, which: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        if which.len() != self.ends.len() {
            return Err(PyValueError::new_err(format!("{} marks for {} records", which.len(), self.ends.len())));
        }
        let block = self.block.bind(py).as_bytes();
        let mut bytes = Vec::new();
        let (mut begin, mut last) = (self.start, false);
        for (i, &mark) in which.iter().enumerate() {
            let goes = mark != 0;
            if goes != last {
                let here = self.begin(i);
                if last {
                    bytes.extend_from_slice(&block[begin..here]);
                }
                (begin, last) = (here, goes);
            }
        }
        if last {
            bytes.extend_from_slice(&block[begin..self.begin(self.ends.len())]);
        }
        Ok(PyBytes::new(py, &bytes))
    }
}

/// An index.
#[derive(FromPyObject)]
enum Part<'py> {
    One(usize),
    Some(Bound<'py, PySlice>),
}

fn range(slice: &Bound<'_, PySlice>, len: usize) -> PyResult<Range<usize>> {
    let found = slice.indices(len as isize)?;
    if found.step != 1 {
        return Err(PyValueError::new_err("a slice with a step"));
    }
    let start = (found.start as usize).min(len);
    Ok(start..start + found.slicelength)
}

/// Hashes of keys, in order, as one filter sees them; a slice shares them.
#[pyclass(frozen, sequence, module = "lately._core")]
pub struct Hashed {
    all: Arc<Vec<u64>>,
    part: Range<usize>,
}

impl Hashed {
    fn new(hashes: Vec<u64>) -> Self {
        Self { part: 0..hashes.len(), all: Arc::new(hashes) }
    }

    fn keys(&self) -> Keys {
        let (all, first) = (Arc::clone(&self.all), self.part.start);
        Keys::new(self.part.len(), move |start, out| out.copy_from_slice(&all[first + start..][..out.len()]))
    }
}

#[pymethods]
impl Hashed {
    #[new]
    fn of_keys(py: Python<'_>, filter: &Bound<'_, Filter>, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::new(Batch::untimed(read_keys(keys, &filter.get().hasher)?).hashes(py)?))
    }

    fn __len__(&self) -> usize {
        self.part.len()
    }

    fn __getitem__(&self, part: &Bound<'_, PySlice>) -> PyResult<Self> {
        let within = range(part, self.part.len())?;
        let first = self.part.start;
        Ok(Self { all: Arc::clone(&self.all), part: first + within.start..first + within.end })
    }

    /// A byte for each: 1 where it is new to the filter, which knows all of them afterwards, and 0 where it is not.
    #[pyo3(signature = (filter, *, at=None, refresh=Refresh::Always),
        text_signature = "($self, filter, *, at=None, refresh=True)")]
    fn new_to<'py>(
        &self,
        py: Python<'py>,
        filter: &Bound<'py, Filter>,
        at: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = crate::refresh::parse)] refresh: Refresh,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let filter = filter.get();
        let batch = filter.timed(py, self.keys(), at, true)?;
        let seen = filter.judge(py, &batch, refresh, Threads::default())?;
        let new: Vec<u8> = seen.iter().map(|&seen| u8::from(!seen)).collect();
        Ok(PyBytes::new(py, &new))
    }

    /// A sample that nobody can foresee who does not know `multiplier` and `addend`: the place of each whose `hash *
    /// multiplier + addend` begins with so many zero bits, and that number. (Dietzfelbinger 1996: any two keys are then
    /// chosen as if by chance, to a factor of two.)
    fn sample(&self, multiplier: u64, addend: u64, zeros: u32) -> Vec<(usize, u64)> {
        let mixed = self.all[self.part.clone()].iter().map(|hash| hash.wrapping_mul(multiplier).wrapping_add(addend));
        mixed.enumerate().filter(|(_, mixed)| mixed.leading_zeros() >= zeros).collect()
    }
}
