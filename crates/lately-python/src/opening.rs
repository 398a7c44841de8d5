//! Opens what was saved or pickled. Cells are read in place from Python's buffers where possible.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::calls::detached;
use super::errors::file_error;
use super::files::{FileArgument, PythonFile};
use super::filter::object::{create, wrap};
use super::filter::state::{FilterState, class_of};
use super::shared::{self, check_signals};
use super::time::span::read_span;
use crate::errors::raise;
use lately::format;
use lately::lock::TIMEOUT;
use lately::memory::{Lender, fallible};

/// Open a saved filter.
///
/// Parameters
/// ----------
/// file : path-like or binary file
///     What `Filter.save` wrote: a path, or an object with a method ``read`` that returns bytes. No byte after the
///     filter is read, so a file may contain several filters in a row.
/// mmap : bool, default False
///     Leave the cells in the file until the filter is first written to. Processes that only query then share one copy
///     of them. Needs a path. The file must not be changed in place meanwhile; `Filter.save` replaces it, which is
///     safe.
/// verify : bool, default True
///     Compare the cells with their checksum. This reads all cells, a tenth of a second for a gigabyte. False is for
///     `mmap` only: the file then opens at once, whatever its size, and cells are read when they are needed. Damage
///     goes unnoticed, and may make the filter miss keys; open the file once more with `verify`, for example in a
///     thread, before you trust it.
/// shared : bool, default False
///     Share one filter among all processes that open it like this: what one inserts, all report. Needs a path, to
///     which all of them write, and a filter of fixed size: an `AgedCuckooFilter` with a window of insertions, or of
///     time with `capacity` or `nbytes`, an `AgePartitionedBloomFilter`, a `GuardedEpochBloomFilter` or a
///     `BloomFilter`. With `capacity` the file has room for twice as many keys. See :doc:`/how-to/processes`.
/// timeout : span of time, default "10s"
///     How long this call, and every later one that writes, waits for a process that has the lock of a shared file. A
///     longer wait raises `TimeoutError`, which names the process.
///
/// Returns
/// -------
/// Filter
///     A filter of the class that was saved, in the state in which it was saved.
///
/// Raises
/// ------
/// FormatError
///     If the file is not a filter, is damaged, or was saved by a version that this one cannot read.
/// OSError
///     If the file cannot be read. `TimeoutError` if a process holds the lock of a shared file for longer than
///     `timeout`.
/// EOFError
///     If a binary file is at its end.
/// TypeError, ValueError
///     If `file` is neither a path nor a binary file, or not a path although `mmap` or `shared` needs one, if filters
///     of this family cannot be shared, or if `verify` is False without `mmap`.
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
        return Err(PyValueError::new_err(
            "give mmap=True or shared=True, and not both: a mapped file must not change",
        ));
    }
    if !verify && !mmap {
        return Err(PyValueError::new_err("verify=False needs mmap=True; without it all cells are read anyway"));
    }
    let file = FileArgument::read(file, "read")?;
    let filter = match file {
        FileArgument::Path(path) if shared => return open_shared(py, path, timeout, None),
        FileArgument::Path(path) => detached(py, || {
            let opened = match mmap {
                true => format::map(&path, verify),
                false => format::open_within(&path, Duration::from_nanos(timeout), &mut check_signals),
            };
            opened.map_err(|error| file_error(error, &path))
        })??,
        FileArgument::Object(_) if mmap => return Err(PyValueError::new_err("mmap=True needs the path of a file")),
        FileArgument::Object(_) if shared => return Err(PyValueError::new_err("shared=True needs the path of a file")),
        FileArgument::Object(file) => return read_from(py, file),
    };
    wrap(py, filter)
}

/// Reads a filter from a binary file, and no byte after it.
fn read_from(py: Python<'_>, mut file: PythonFile) -> PyResult<Py<PyAny>> {
    let read = detached(py, || format::read(&mut file))?;
    wrap(py, read.map_err(|error| file.error(error))?)
}

/// Read a filter from the bytes that `Filter.to_bytes` returned.
///
/// Parameters
/// ----------
/// data : bytes-like
///     The saved form. The cells of a read-only buffer are read in place until the filter is first written to.
///
/// Returns
/// -------
/// Filter
///     A filter of the class that was saved, in the state in which it was saved.
///
/// Raises
/// ------
/// FormatError
///     If the bytes are not a filter, are damaged, or were written by a version that this one cannot read.
///
/// Examples
/// --------
/// >>> f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.01)
/// >>> f.add("a")
/// >>> "a" in lately.from_bytes(f.to_bytes())
/// True
#[pyfunction]
pub fn from_bytes(py: Python<'_>, data: PyBuffer<u8>) -> PyResult<Py<PyAny>> {
    let data = memory(py, data)?;
    wrap(py, detached(py, || format::from_bytes(data))?.map_err(raise)?)
}

/// Creates a filter of this preamble and these cells, of its family's class or a subclass. Pickle calls it.
#[pyfunction(name = "_from_parts")]
#[pyo3(signature = (preamble, cells, class=None))]
pub fn from_parts(
    py: Python<'_>,
    preamble: Vec<u8>,
    cells: PyBuffer<u8>,
    class: Option<&Bound<'_, PyType>>,
) -> PyResult<Py<PyAny>> {
    let cells = memory(py, cells)?;
    let filter = detached(py, || format::from_parts(&preamble, cells))?.map_err(raise)?;
    match class {
        None => wrap(py, filter),
        Some(class) => create(class, FilterState::new(filter, None)),
    }
}

/// Opens the shared filter at a path, as an object of its family's class or a subclass. Pickle calls it too. `timeout`
/// is in nanoseconds.
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
        None => class_of(py, filter.family())?,
        Some(class) => class.clone(),
    };
    create(&class, FilterState::new(filter, Some(file)))
}

/// A Python buffer that is read in place.
struct LentBuffer(PyBuffer<u8>);

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `memory` checked that the buffer is contiguous and read-only. The buffer keeps its memory alive and
        // in place while this object exists. If the owner writes to the memory behind a read-only view, answers change;
        // every pattern of cells is valid, so nothing is read out of bounds.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

/// Returns the memory of a buffer, to read a filter from: in place if the buffer is read-only, otherwise a copy.
fn memory(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Lender> {
    if buffer.readonly() && buffer.is_c_contiguous() && buffer.len_bytes() > 0 {
        Ok(Box::new(LentBuffer(buffer)))
    } else {
        let mut copy = fallible::zeroed::<u8>(buffer.len_bytes()).map_err(raise)?;
        buffer.copy_to_slice(py, &mut copy)?;
        Ok(Box::new(copy))
    }
}
