//! Records of the command: reads the records of blocks, marks the new ones, and returns their bytes.
//!
//! Nothing here needs NumPy, whose import takes longer than the work on many files.

use std::ops::Range;
use std::sync::Arc;
use std::thread::available_parallelism;

use memchr::memchr_iter;
use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use super::batch::Batch;
use super::calls::detached;
use super::filter::PyFilter;
use super::keys::read_keys;
use super::whole::Threads;
use crate::arguments::parse_refresh;
use crate::arrays::array_of;
use crate::reader::{CsvReader, Encoding, JsonReader, LineReader, Reader, RecordOptions, Words, read_shared};
use lately::engine::Refresh;
use lately::key::{KeyHasher, Keys};

/// Reads the records of blocks and the hashes of their keys, for one filter.
///
/// Create it by `lines`, `csv` or `json`. `options` is a dict of `encoding` ("utf-8", "strict utf-8" or a name),
/// `decode` (None, or the function that decodes bytes), `ignore_case`, `longest` (bytes of a record), `places` (between
/// the unit of times and a nanosecond; None: `read` returns all times as text) and `skip_malformed`.
#[pyclass(frozen, module = "lately._core")]
pub struct RecordReader {
    reader: Box<dyn Reader>,
    hasher: KeyHasher,
    threads: usize,
    timed: bool,
}

/// The result of [`RecordReader::read`].
type Read<'py> = (
    (Records, RecordHashes, Option<Bound<'py, PyArray1<i64>>>, Vec<(usize, String)>),
    (Vec<bool>, usize, usize, Option<(u64, String, bool)>),
    (usize, u64),
);

#[pymethods]
impl RecordReader {
    /// Create a reader of lines. Each line is its own key, or `words` of it from one number to another.
    #[staticmethod]
    fn lines(filter: &Bound<'_, PyFilter>, options: Options, words: Vec<(usize, Option<usize>)>) -> PyResult<Self> {
        let words: Vec<_> = words.into_iter().map(|(first, last)| Words { first, last }).collect();
        if words.iter().any(|words| words.first == 0 || words.last.is_some_and(|last| last < words.first)) {
            return Err(PyValueError::new_err("words must be counted from 1, and end where they begin or later"));
        }
        Ok(Self::new(filter, LineReader { words, options: options.parse() }, false))
    }

    /// Create a reader of records of `width` fields. `key` has the numbers of the key's fields, `time` that of the
    /// time's. Lines that start with # are comments if `comments` is the line with the names of the fields.
    #[staticmethod]
    #[pyo3(signature = (filter, options, dialect, *, width, key, time, comments))]
    fn csv(
        filter: &Bound<'_, PyFilter>,
        options: Options,
        dialect: Dialect,
        width: usize,
        key: Vec<usize>,
        time: Option<usize>,
        comments: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        if let Some(field) = key.iter().chain(&time).find(|&&field| field >= width) {
            return Err(PyValueError::new_err(format!("key and time must be less than width={width}, got {field}")));
        }
        let mut reader = csv_reader(dialect, options)?;
        (reader.width, reader.key, reader.time, reader.comments) = (width, key, time, comments);
        Ok(Self::new(filter, reader, time.is_some()))
    }

    /// Create a reader of JSON lines, an object on each.
    #[staticmethod]
    #[pyo3(signature = (filter, options, *, key, time))]
    fn json(filter: &Bound<'_, PyFilter>, options: Options, key: Vec<String>, time: Option<String>) -> Self {
        Self::new(filter, JsonReader::new(&key, time.as_deref(), options.parse()), time.is_some())
    }

    /// Read the fields of one record of CSV, and where it ends. None if it may continue in the next block.
    #[staticmethod]
    fn csv_fields<'py>(
        py: Python<'py>,
        options: Options,
        dialect: Dialect,
        block: &[u8],
        start: usize,
        last: bool,
    ) -> PyResult<Option<(Vec<Bound<'py, PyBytes>>, usize)>> {
        check_start(block, start)?;
        let found = csv_reader(dialect, options)?.fields(block, start, last).map_err(PyValueError::new_err)?;
        Ok(found.map(|(fields, end)| (fields.iter().map(|field| PyBytes::new(py, field)).collect(), end)))
    }

    /// Read the records of a block from `start` on. `number` is the number of the first line. `last` is whether no
    /// block follows; otherwise a record that may continue is left.
    ///
    /// Returns three tuples. The first has the records, the hashes of their keys, an array of their times in
    /// nanoseconds since 1970 or None, and the times that are text, with the index of their record. The second has, for
    /// each field of the key, whether a record has it; the numbers of blank lines and of malformed records; and the
    /// first malformed one: its line, what is wrong, and whether the file cannot be read further. The third has where
    /// the reader stopped, and the number of that line.
    fn read<'py>(&self, block: &Bound<'py, PyBytes>, start: usize, number: u64, last: bool) -> PyResult<Read<'py>> {
        let (py, bytes) = (block.py(), block.as_bytes());
        check_start(bytes, start)?;
        let read = detached(py, || read_shared(&*self.reader, bytes, start, last, &self.hasher, self.threads))?;
        let line = |position: usize| number + memchr_iter(b'\n', &bytes[start..position]).count() as u64;
        let fault = read.fault.map(|fault| (line(fault.position), fault.reason, fault.is_fatal));
        let times = if self.timed { Some(array_of(py, read.moments)?) } else { None };
        let stop = (read.stop, line(read.stop));
        let records = Records { block: block.clone().unbind(), origin: start, number, spans: read.spans };
        let counts = (read.fields_present, read.blank, read.malformed, fault);
        Ok(((records, RecordHashes::new(read.hashes), times, read.texts), counts, stop))
    }
}

fn check_start(block: &[u8], start: usize) -> PyResult<()> {
    if start <= block.len() {
        return Ok(());
    }
    Err(PyIndexError::new_err(format!("start must be at most {}, got {start}", block.len())))
}

fn csv_reader(Dialect { delimiter, quotes }: Dialect, options: Options) -> PyResult<CsvReader> {
    if !delimiter.is_ascii() || matches!(delimiter, b'"' | b'\r' | b'\n') {
        let message = format!("delimiter must be ASCII, and neither a quote nor a line end, got {delimiter}");
        return Err(PyValueError::new_err(message));
    }
    Ok(CsvReader::new(delimiter, quotes, options.parse()))
}

/// The argument `dialect` of [`RecordReader`]: what separates fields, and whether they may be quoted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Dialect {
    delimiter: u8,
    quotes: bool,
}

/// The argument `options` of [`RecordReader`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    encoding: String,
    decode: Option<Py<PyAny>>,
    ignore_case: bool,
    longest: usize,
    places: Option<u32>,
    skip_malformed: bool,
}

impl Options {
    fn parse(self) -> RecordOptions {
        let Self { encoding, decode, ignore_case, longest, places, skip_malformed } = self;
        let encoding = match decode {
            None if encoding == "utf-8" => Encoding::Utf8,
            None => Encoding::StrictUtf8,
            Some(decode) => {
                let call = move |bytes: &[u8]| Python::attach(|py| decode.call1(py, (bytes,)).ok()?.extract(py).ok());
                Encoding::Other(encoding, Arc::new(call))
            }
        };
        // A second has 9 places, which bounds the power of ten.
        RecordOptions { encoding, ignore_case, longest, places: places.map(|places| places.min(9)), skip_malformed }
    }
}

impl RecordReader {
    fn new(filter: &Bound<'_, PyFilter>, reader: impl Reader + 'static, timed: bool) -> Self {
        // A thread for each core, at most 4.
        let threads = available_parallelism().map_or(1, |cores| cores.get().min(4));
        Self { reader: Box::new(reader), hasher: filter.get().hasher, threads, timed }
    }
}

/// Records of a block, in order, which are not copied.
#[pyclass(frozen, sequence, module = "lately._core")]
pub struct Records {
    block: Py<PyBytes>,
    /// Where the line `number` starts.
    origin: usize,
    number: u64,
    spans: Vec<Range<usize>>,
}

#[pymethods]
impl Records {
    fn __len__(&self) -> usize {
        self.spans.len()
    }

    /// Return the bytes of one record.
    fn __getitem__<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.block.bind(py).as_bytes()[self.span(i)?]))
    }

    /// Return the number of the line where record i starts.
    fn line(&self, py: Python<'_>, i: usize) -> PyResult<u64> {
        let before = &self.block.bind(py).as_bytes()[self.origin..self.span(i)?.start];
        Ok(self.number + memchr_iter(b'\n', before).count() as u64)
    }

    /// Return the records whose byte in `which` is not zero.
    fn select(&self, py: Python<'_>, which: &[u8]) -> PyResult<Self> {
        let spans = chosen(&self.spans, which)?.cloned().collect();
        Ok(Self { block: self.block.clone_ref(py), origin: self.origin, number: self.number, spans })
    }

    /// Return the bytes of the records whose byte in `which` is not zero.
    fn chosen<'py>(&self, py: Python<'py>, which: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let block = self.block.bind(py).as_bytes();
        let mut bytes = Vec::new();
        // Neighbours are copied together.
        let mut run = 0..0;
        for span in chosen(&self.spans, which)? {
            if span.start != run.end {
                bytes.extend_from_slice(&block[run]);
                run = span.start..span.start;
            }
            run.end = span.end;
        }
        bytes.extend_from_slice(&block[run]);
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Records {
    fn span(&self, i: usize) -> PyResult<Range<usize>> {
        let missing = || PyIndexError::new_err(format!("no record {i} of {}", self.spans.len()));
        self.spans.get(i).cloned().ok_or_else(missing)
    }
}

/// Returns the items whose byte in `which` is not zero.
fn chosen<'a, T>(items: &'a [T], which: &'a [u8]) -> PyResult<impl Iterator<Item = &'a T>> {
    if which.len() != items.len() {
        let (expected, got) = (items.len(), which.len());
        return Err(PyValueError::new_err(format!("which must have {expected} bytes, one for each record, got {got}")));
    }
    Ok(items.iter().zip(which).filter(|&(_, &mark)| mark != 0).map(|(item, _)| item))
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
        let indices = part.indices(self.part.len() as isize)?;
        if indices.step != 1 {
            return Err(PyValueError::new_err(format!("a slice must have the step 1, got {}", indices.step)));
        }
        let first = self.part.start + indices.start as usize;
        Ok(Self { all: Arc::clone(&self.all), part: first..first + indices.slicelength })
    }

    /// Return the hashes whose byte in `which` is not zero.
    fn select(&self, which: &[u8]) -> PyResult<Self> {
        Ok(Self::new(chosen(&self.all[self.part.clone()], which)?.copied().collect()))
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
}
