//! Records of the command: reads the hashes of blocks, marks new records, and returns their bytes.
//!
//! Nothing here needs NumPy, whose import takes longer than the work on many files.

use std::ops::Range;
use std::sync::Arc;
use std::thread::available_parallelism;

use memchr::memchr_iter;
use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use super::batch::Batch;
use super::calls::detached;
use super::filter::PyFilter;
use super::keys::read_keys;
use super::time::instant::of_seconds;
use super::whole::Threads;
use crate::arguments::parse_refresh;
use crate::arrays::array_of;
use crate::reader::{CsvReader, Encoding, JsonReader, LineReader, Reader, RecordBatch, read_shared};
use lately::engine::Refresh;
use lately::key::{KeyHasher, Keys};

/// Reads the records of blocks and the hashes of their keys, for one filter. `lately.cli` reads the records at which it
/// stops.
///
/// Create it by `lines`, `csv` or `json`. `encoding` is "utf-8", "strict utf-8", or the letters of 256 bytes, with
/// U+FFFD for bytes that are not read here. `longest` is the length of the longest record that is read.
#[pyclass(frozen, module = "lately._core")]
pub struct RecordReader {
    reader: Box<dyn Reader + Send + Sync>,
    hasher: KeyHasher,
    threads: usize,
    /// Whether times may be quoted.
    quoted: bool,
}

#[pymethods]
impl RecordReader {
    /// Create a reader of lines. Each line is its own key.
    #[staticmethod]
    fn lines(filter: &Bound<'_, PyFilter>, encoding: &str, longest: usize) -> PyResult<Self> {
        Ok(Self::new(filter, LineReader { encoding: parse_encoding(encoding)?, longest }))
    }

    /// Create a reader of records of `width` fields. `key` has the numbers of the key's fields, `time` that of the
    /// time's.
    #[staticmethod]
    #[pyo3(signature = (filter, encoding, longest, **options),
        text_signature = "(filter, encoding, longest, *, delimiter, quotes, comments, width, key, time)")]
    fn csv(
        filter: &Bound<'_, PyFilter>,
        encoding: &str,
        longest: usize,
        options: Option<CsvOptions>,
    ) -> PyResult<Self> {
        let options = options.ok_or_else(|| PyTypeError::new_err("csv() needs delimiter, quotes, width and key"))?;
        let CsvOptions { delimiter, quotes, comments, width, key, time } = options;
        if let Some(field) = key.iter().chain(&time).find(|&&field| field >= width) {
            return Err(PyValueError::new_err(format!("key and time must be less than width={width}, got {field}")));
        }
        if !delimiter.is_ascii() || matches!(delimiter, b'"' | b'\r' | b'\n') {
            let message = format!("delimiter must be ASCII, and neither a quote nor a line end, got {delimiter}");
            return Err(PyValueError::new_err(message));
        }
        let encoding = parse_encoding(encoding)?;
        Ok(Self::new(filter, CsvReader { delimiter, quotes, width, key, time, comments, encoding, longest }))
    }

    /// Create a reader of JSON lines, an object on each. Returns None if the key has too many fields.
    #[staticmethod]
    #[pyo3(signature = (filter, encoding, longest, *, key, time))]
    fn json(
        filter: &Bound<'_, PyFilter>,
        encoding: &str,
        longest: usize,
        key: Vec<String>,
        time: Option<String>,
    ) -> PyResult<Option<Self>> {
        let reader = JsonReader::new(&key, time.as_deref(), parse_encoding(encoding)?, longest);
        Ok(reader.map(|reader| Self { quoted: true, ..Self::new(filter, reader) }))
    }

    /// Read the records of a block from `start` on, up to the first that is not read here. `number` is the number of
    /// the first line, and `plain` is whether numbers are Unix seconds.
    ///
    /// Returns the records, the hashes of their keys, their times, and a bit for each field of the key, set if a record
    /// has the field. Times are an array of nanoseconds since 1970 if all of them are plain numbers, otherwise a list
    /// of bytes.
    #[allow(clippy::type_complexity, reason = "a tuple of Python")]
    fn read<'py>(
        &self,
        block: &Bound<'py, PyBytes>,
        start: usize,
        number: u64,
        plain: bool,
    ) -> PyResult<(Records, RecordHashes, RecordTimes<'py>, u64)> {
        let (py, bytes) = (block.py(), block.as_bytes());
        if start > bytes.len() {
            return Err(PyIndexError::new_err(format!("start must be at most {}, got {start}", bytes.len())));
        }
        let (records, moments) = detached(py, || {
            let (records, _) = read_shared(&*self.reader, bytes, start, &self.hasher, self.threads);
            let moments = plain.then(|| self.moments(bytes, &records)).flatten();
            (records, moments)
        })?;
        let times = match moments {
            Some(moments) => RecordTimes::Parsed(array_of(py, moments)?),
            None => {
                RecordTimes::Bytes(records.times.iter().map(|range| PyBytes::new(py, &bytes[range.clone()])).collect())
            }
        };
        let lines = Records { block: block.clone().unbind(), origin: start, number, start, ends: records.ends };
        Ok((lines, RecordHashes::new(records.hashes), times, records.fields_present))
    }
}

/// The times of records, parsed or as bytes.
#[derive(IntoPyObject)]
pub enum RecordTimes<'py> {
    Parsed(Bound<'py, PyArray1<i64>>),
    Bytes(Vec<Bound<'py, PyBytes>>),
}

/// The options of [`RecordReader::csv`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CsvOptions {
    delimiter: u8,
    quotes: bool,
    comments: bool,
    width: usize,
    key: Vec<usize>,
    time: Option<usize>,
}

impl RecordReader {
    fn new(filter: &Bound<'_, PyFilter>, reader: impl Reader + Send + Sync + 'static) -> Self {
        Self { reader: Box::new(reader), hasher: filter.get().hasher, threads: threads(), quoted: false }
    }

    /// Returns the nanoseconds since 1970 of times that are all plain numbers of seconds. `None` for other times, and
    /// without times.
    fn moments(&self, block: &[u8], records: &RecordBatch) -> Option<Vec<i64>> {
        let moment = |time: &[u8]| {
            let inner = time.strip_prefix(b"\"").and_then(|time| time.strip_suffix(b"\"")).filter(|_| self.quoted);
            let time = inner.unwrap_or(time);
            // Only forms that Python and Rust parse alike.
            let plain = time.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
            let seconds = std::str::from_utf8(time).ok().filter(|_| plain)?.parse().ok()?;
            let (moment, fits) = of_seconds(seconds);
            fits.then_some(moment)
        };
        (!records.times.is_empty())
            .then(|| records.times.iter().map(|range| moment(&block[range.clone()])).collect())?
    }
}

/// Returns the number of threads that read a block: one for each core, at most 4.
fn threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().min(4))
}

/// Parses the argument `encoding`.
fn parse_encoding(name: &str) -> PyResult<Encoding> {
    match name {
        "utf-8" => return Ok(Encoding::Utf8),
        "strict utf-8" => return Ok(Encoding::StrictUtf8),
        _ => {}
    }
    let letters: Vec<_> = name.chars().map(|letter| Some(letter).filter(|&letter| letter != '\u{fffd}')).collect();
    let is_ascii = |(byte, letter): (u8, &Option<char>)| letter.is_none_or(|letter| letter == char::from(byte));
    match Box::<[_; 256]>::try_from(letters) {
        Ok(letters) if (0..128).zip(letters.iter()).all(is_ascii) => Ok(Encoding::Bytes(letters)),
        _ => Err(PyValueError::new_err(format!(
            "encoding must be 'utf-8', 'strict utf-8' or the letters of 256 bytes, of which the first 128 are ASCII, \
             got {name:?}"
        ))),
    }
}

/// Consecutive records of a block, which are not copied.
#[pyclass(frozen, sequence, module = "lately._core")]
pub struct Records {
    block: Py<PyBytes>,
    /// Where the line `number` starts.
    origin: usize,
    number: u64,
    /// Where the first record starts, and where each ends.
    start: usize,
    ends: Vec<usize>,
}

impl Records {
    /// Returns where record `i` starts.
    fn start_of(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(self.start, |before| self.ends[before])
    }

    /// Returns an index that is less than the number of records, or an error.
    fn check(&self, i: usize) -> PyResult<usize> {
        if i < self.ends.len() {
            Ok(i)
        } else {
            Err(PyIndexError::new_err(format!("no record {i} of {}", self.ends.len())))
        }
    }
}

#[pymethods]
impl Records {
    fn __len__(&self) -> usize {
        self.ends.len()
    }

    /// Return the bytes of one record, or consecutive records.
    fn __getitem__<'py>(&self, py: Python<'py>, i: Index<'py>) -> PyResult<Bound<'py, PyAny>> {
        match i {
            Index::One(i) => {
                let (begin, end) = (self.start_of(self.check(i)?), self.ends[i]);
                Ok(PyBytes::new(py, &self.block.bind(py).as_bytes()[begin..end]).into_any())
            }
            Index::Some(slice) => {
                let range = range(&slice, self.ends.len())?;
                let block = self.block.clone_ref(py);
                let (start, ends) = (self.start_of(range.start), self.ends[range].to_vec());
                let part = Self { block, origin: self.origin, number: self.number, start, ends };
                Ok(Bound::new(py, part)?.into_any())
            }
        }
    }

    /// int: where the records end in the block.
    #[getter]
    fn end(&self) -> usize {
        self.start_of(self.ends.len())
    }

    /// Return the number of the line where record i starts, or of the line after the records if i is their number.
    fn line(&self, py: Python<'_>, i: usize) -> PyResult<u64> {
        let i = if i == self.ends.len() { i } else { self.check(i)? };
        let before = &self.block.bind(py).as_bytes()[self.origin..self.start_of(i)];
        Ok(self.number + memchr_iter(b'\n', before).count() as u64)
    }

    /// Return the bytes of the records whose byte in `which` is not zero.
    fn chosen<'py>(&self, py: Python<'py>, which: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        if which.len() != self.ends.len() {
            return Err(PyValueError::new_err(format!(
                "which must have {} bytes, one for each record, got {}",
                self.ends.len(),
                which.len()
            )));
        }
        let block = self.block.bind(py).as_bytes();
        let mut bytes = Vec::new();
        let (mut begin, mut last) = (self.start, false);
        for (i, &mark) in which.iter().enumerate() {
            let is_chosen = mark != 0;
            if is_chosen != last {
                let here = self.start_of(i);
                if last {
                    bytes.extend_from_slice(&block[begin..here]);
                }
                (begin, last) = (here, is_chosen);
            }
        }
        if last {
            bytes.extend_from_slice(&block[begin..self.start_of(self.ends.len())]);
        }
        Ok(PyBytes::new(py, &bytes))
    }
}

/// The index of a record, or a slice.
#[derive(FromPyObject)]
enum Index<'py> {
    One(usize),
    Some(Bound<'py, PySlice>),
}

/// Returns the range of a slice, which must have no step.
fn range(slice: &Bound<'_, PySlice>, len: usize) -> PyResult<Range<usize>> {
    let indices = slice.indices(len as isize)?;
    if indices.step != 1 {
        return Err(PyValueError::new_err(format!("a slice must have the step 1, got {}", indices.step)));
    }
    let start = (indices.start as usize).min(len);
    Ok(start..start + indices.slicelength)
}

/// Hashes of the keys of records, for one filter. A slice shares them.
#[pyclass(frozen, sequence, module = "lately._core")]
pub struct RecordHashes {
    all: Arc<Vec<u64>>,
    part: Range<usize>,
}

impl RecordHashes {
    fn new(hashes: Vec<u64>) -> Self {
        Self { part: 0..hashes.len(), all: Arc::new(hashes) }
    }

    fn keys(&self) -> Keys {
        let (all, first) = (Arc::clone(&self.all), self.part.start);
        Keys::new(self.part.len(), move |start, out| out.copy_from_slice(&all[first + start..][..out.len()]))
    }
}

#[pymethods]
impl RecordHashes {
    #[new]
    fn of_keys(py: Python<'_>, filter: &Bound<'_, PyFilter>, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
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

    /// Insert the keys. Returns a byte for each, 1 if the key is new to the filter and 0 if it is a repeat.
    #[pyo3(signature = (filter, *, at=None, refresh=Refresh::Always),
        text_signature = "($self, filter, *, at=None, refresh=True)")]
    fn new_to<'py>(
        &self,
        py: Python<'py>,
        filter: &Bound<'py, PyFilter>,
        at: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let filter = filter.get();
        let batch = filter.batch_of(py, self.keys(), at, true)?;
        let seen = filter.duplicated_batch(py, &batch, refresh, Threads::default())?;
        let new: Vec<u8> = seen.iter().map(|&seen| u8::from(!seen)).collect();
        Ok(PyBytes::new(py, &new))
    }

    /// Return a sample of the keys: the index of each key whose `hash * multiplier + addend` starts with `zeros` zero
    /// bits, and that number. An attacker who does not know `multiplier` and `addend` cannot predict the sample. (Any
    /// two keys are sampled as if at random, to a factor of two: Dietzfelbinger 1996.)
    fn sample(&self, multiplier: u64, addend: u64, zeros: u32) -> Vec<(usize, u64)> {
        let mixed = self.all[self.part.clone()].iter().map(|hash| hash.wrapping_mul(multiplier).wrapping_add(addend));
        mixed.enumerate().filter(|(_, mixed)| mixed.leading_zeros() >= zeros).collect()
    }
}
