//! Opening what was saved or pickled. Cells are lent by Python, and copied only where necessary.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::calls::detached;
use super::classes;
use super::errors::file_error;
use super::exact;
use super::files::{Place, PythonFile};
use super::objects::{holding, object, wrap};
use super::shared::{self, look};
use super::spans::read_span;
use super::unclaimed::Unclaimed;
use crate::errors::raise;
use lately::Error;
use lately::format;
use lately::memory::{Lender, fallible};
use lately::shared::TIMEOUT;

/// Open a saved filter.
///
/// Parameters
/// ----------
/// file : path-like or binary file
///     What `Filter.save` wrote: a path, or anything with a method ``read`` that gives bytes. Not a byte beyond the
///     filter is read, so that several may follow one another.
/// mmap : bool, default False
///     Leave the cells in the file until the filter is first written to: many processes that only query then share one
///     copy of them. The file must not be changed in place meanwhile; `Filter.save` replaces it, which is safe. Only
///     with a path.
/// verify : bool, default True
///     Compare the cells with their checksum, for which all of them are read: a tenth of a second for a gigabyte. Only
///     with `mmap` may this be False. The file then answers at once, whatever its size, and is read as it is asked; but
///     damage goes unnoticed, and a key may be missed for it. Open the file once more, with `verify`, before you trust
///     it, in a thread for example. An `AgedQuotientFilter` is read in any case.
/// shared : bool, default False
///     One filter for several processes, each of which opens it so: what one inserts, all see. Only with a path, which
///     is then written to, and for filters whose insertions only set bits: `AgePartitionedBloomFilter`,
///     `GuardedEpochBloomFilter` and `BloomFilter`. See :doc:`/how-to/processes`.
/// timeout : span of time, default "10s"
///     How long a call waits for another process that has the lock of a shared file: this call, and every later one
///     that writes to the filter. A longer wait raises `TimeoutError`, which names the process.
///
/// Returns
/// -------
/// Filter
///     Of the class it was saved from; it goes on exactly where it stopped.
///
/// Raises
/// ------
/// FormatError
///     If the file is no filter, is damaged, or was saved by a version this one cannot read.
/// OSError
///     If it cannot be read; `TimeoutError` if another process has the lock of a shared file for longer than `timeout`.
/// EOFError
///     If a binary file is at its end.
/// TypeError, ValueError
///     If it is neither a path nor a binary file, or no path with `mmap` or `shared`, or if processes cannot share it,
///     or if it is to be read without `verify`.
///
/// Examples
/// --------
/// >>> import os, tempfile
/// >>> path = os.path.join(tempfile.mkdtemp(), "seen.lately")
/// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.01)
/// >>> f.add("a")
/// >>> f.save(path)
/// >>> "a" in lately.open(path)
/// True
#[pyfunction]
#[pyo3(signature = (file, *, mmap=false, verify=true, shared=false, timeout=None),
    text_signature = "(file, *, mmap=False, verify=True, shared=False, timeout='10s')")]
pub fn open(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    mmap: bool,
    verify: bool,
    shared: bool,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let timeout = timeout.map_or(Ok(TIMEOUT.as_nanos() as u64), |timeout| read_span(timeout, "timeout"))?;
    if mmap && shared {
        return Err(PyValueError::new_err("mmap=True is for files that nobody writes to, and shared=True for others"));
    }
    if !verify && !mmap {
        return Err(PyValueError::new_err("verify=False is for mmap=True: else all cells are read anyway"));
    }
    let place = Place::of(file, "read")?;
    if let Place::Path(path) = &place
        && let Some(exact) = exact_at(py, path, mmap || shared)?
    {
        return Ok(exact);
    }
    let filter = match place {
        Place::Path(path) if shared => return open_shared(py, path, timeout, None),
        Place::Path(path) => detached(py, || {
            let opened = match mmap {
                true => format::map(&path, verify),
                false => format::open_within(&path, Duration::from_nanos(timeout), &mut look),
            };
            opened.map_err(|error| file_error(error, &path))
        })??,
        Place::File(_) if mmap => return Err(PyValueError::new_err("mmap=True needs the path of a file")),
        Place::File(_) if shared => return Err(PyValueError::new_err("shared=True needs the path of a file")),
        Place::File(file) => return read_from(py, file),
    };
    wrap(py, filter)
}

/// Opens an exact window by its path, if that is what the file contains.
fn exact_at(py: Python<'_>, path: &Path, mapped: bool) -> PyResult<Option<Py<PyAny>>> {
    let saved = detached(py, || {
        // Whatever is wrong with the file, opening a filter reports it.
        let Ok(true) = std::fs::metadata(path).map(|file| file.is_file()) else { return Ok(None) };
        let Ok(mut file) = File::open(path) else { return Ok(None) };
        let (head, n) = head_of(&mut file).map_err(|error| file_error(error.into(), path))?;
        if !format::exact::is_exact(&head[..n]) {
            return Ok(None);
        }
        if mapped {
            return Err(PyValueError::new_err(
                "an ExactFilter grows in memory: mmap=True and shared=True are for filters",
            ));
        }
        let saved = format::exact::read(&mut (&head[..n]).chain(&mut file)).map_err(|error| file_error(error, path))?;
        if file.read(&mut [0]).map_err(|error| file_error(error.into(), path))? > 0 {
            return Err(raise(Error::format("there are bytes behind the filter")));
        }
        Ok(Some(saved))
    })??;
    saved.map(|saved| exact::wrap(py, saved)).transpose()
}

/// Reads a filter or an exact window from a binary file, and not a byte beyond it.
fn read_from(py: Python<'_>, mut file: PythonFile) -> PyResult<Py<PyAny>> {
    let (head, n) = detached(py, || head_of(&mut file))??;
    let mut source = (&head[..n]).chain(&mut file);
    if format::exact::is_exact(&head[..n]) {
        let read = detached(py, || format::exact::read(&mut source))?;
        return exact::wrap(py, read.map_err(|error| file.error(error))?);
    }
    let read = detached(py, || format::read(&mut source))?;
    wrap(py, read.map_err(|error| file.error(error))?)
}

/// Reads the first bytes of a file, by which its kind is recognised, and their number.
fn head_of(file: &mut impl Read) -> std::io::Result<([u8; 12], usize)> {
    let (mut head, mut n) = ([0; 12], 0);
    while n < head.len() {
        match file.read(&mut head[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((head, n))
}

/// Read a filter from the bytes that `Filter.to_bytes` gave.
///
/// Parameters
/// ----------
/// data : bytes-like
///     If it is read-only, the cells stay in it until the filter is first written to.
///
/// Returns
/// -------
/// Filter
///     Of the class it was saved from; it goes on exactly where it stopped.
///
/// Raises
/// ------
/// FormatError
///     If the bytes are no filter, are damaged, or were written by a version this one cannot read.
///
/// Examples
/// --------
/// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.01)
/// >>> f.add("a")
/// >>> "a" in lately.from_bytes(f.to_bytes())
/// True
#[pyfunction]
pub fn from_bytes(py: Python<'_>, data: PyBuffer<u8>) -> PyResult<Py<PyAny>> {
    let data = lender(py, data)?;
    if format::exact::is_exact((*data).as_ref()) {
        let saved = detached(py, || {
            let mut bytes: &[u8] = (*data).as_ref();
            let saved = format::exact::read(&mut bytes)?;
            if !bytes.is_empty() {
                return Err(Error::format("there are bytes behind the filter").into());
            }
            Ok(saved)
        })?;
        return exact::wrap(py, saved.map_err(format::in_memory).map_err(raise)?);
    }
    wrap(py, detached(py, || format::from_bytes(data))?.map_err(raise)?)
}

/// What pickle calls: the filter of this preamble and these cells, of its own class or a user's subclass.
#[pyfunction(name = "_from_parts")]
#[pyo3(signature = (preamble, cells, class=None))]
pub fn from_parts(
    py: Python<'_>,
    preamble: Vec<u8>,
    cells: PyBuffer<u8>,
    class: Option<&Bound<'_, PyType>>,
) -> PyResult<Py<PyAny>> {
    let cells = lender(py, cells)?;
    let filter = detached(py, || format::from_parts(&preamble, cells))?.map_err(raise)?;
    match class {
        None => wrap(py, filter),
        Some(class) => object(class, filter),
    }
}

/// Opens the filter at a path, shared by all processes that open it so, as an object of its own class or of a user's
/// subclass. Pickle calls it too. `timeout` is in nanoseconds.
#[pyfunction(name = "_open_shared")]
#[pyo3(signature = (path, timeout, class=None))]
pub fn open_shared(
    py: Python<'_>,
    path: PathBuf,
    timeout: u64,
    class: Option<&Bound<'_, PyType>>,
) -> PyResult<Py<PyAny>> {
    let (filter, file) = shared::open(py, &path, timeout)?;
    let class = match class {
        None => classes::class(py, filter.family())?,
        Some(class) => class.clone(),
    };
    holding(&class, Unclaimed::shared(filter, file))
}

/// A Python buffer, lent as memory while it is held.
struct LentBuffer(PyBuffer<u8>);

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `lender` took it contiguous and read-only, and the buffer keeps it in place while it is held. Its
        // owner has promised not to change it. If a read-only view is written to elsewhere, answers change with it, but
        // every pattern of cells is legal, so nothing is read out of bounds.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

/// Memory to read a filter from: the buffer itself if nobody may write to it, else a copy.
fn lender(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Lender> {
    if buffer.readonly() && buffer.is_c_contiguous() && buffer.len_bytes() > 0 {
        Ok(Box::new(LentBuffer(buffer)))
    } else {
        let mut copy = fallible::zeroed::<u8>(buffer.len_bytes()).map_err(raise)?;
        buffer.copy_to_slice(py, &mut copy)?;
        Ok(Box::new(copy))
    }
}
