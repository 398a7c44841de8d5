//! Opening what was saved or pickled. Cells are lent by Python, and copied only where necessary.

use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::built::Built;
use super::calls::detached;
use super::classes;
use super::files::Place;
use super::objects::{holding, object, wrap};
use super::shared::{self, uninterrupted};
use crate::format;
use crate::memory::{Lender, fallible};

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
///     If it cannot be read.
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
#[pyo3(signature = (file, *, mmap=false, verify=true, shared=false))]
pub fn open(py: Python<'_>, file: &Bound<'_, PyAny>, mmap: bool, verify: bool, shared: bool) -> PyResult<Py<PyAny>> {
    if mmap && shared {
        return Err(PyValueError::new_err("mmap=True is for files that nobody writes to, and shared=True for others"));
    }
    if !verify && !mmap {
        return Err(PyValueError::new_err("verify=False is for mmap=True: else all cells are read anyway"));
    }
    let filter = match Place::of(file, "read")? {
        Place::Path(path) if shared => return open_shared(py, path, None),
        Place::Path(path) if mmap => uninterrupted(py, &path, || format::map(&path, verify))?,
        Place::Path(path) => uninterrupted(py, &path, || format::open(&path))?,
        Place::File(_) if mmap => return Err(PyValueError::new_err("mmap=True needs the path of a file")),
        Place::File(_) if shared => return Err(PyValueError::new_err("shared=True needs the path of a file")),
        Place::File(mut file) => detached(py, || format::read(&mut file).map_err(|error| file.error(error)))??,
    };
    wrap(py, filter)
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
    wrap(py, detached(py, || format::from_bytes(data))??)
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
    let filter = detached(py, || format::from_parts(&preamble, cells))??;
    match class {
        None => wrap(py, filter),
        Some(class) => object(class, filter),
    }
}

/// The filter at a path, shared by all processes that open it so, of its own class or a user's subclass: also what
/// pickle calls.
#[pyfunction(name = "_open_shared")]
#[pyo3(signature = (path, class=None))]
pub fn open_shared(py: Python<'_>, path: PathBuf, class: Option<&Bound<'_, PyType>>) -> PyResult<Py<PyAny>> {
    let (filter, file) = shared::open(py, &path)?;
    let class = match class {
        None => classes::class(py, filter.family())?,
        Some(class) => class.clone(),
    };
    holding(&class, Built::shared(filter, file))
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
        let mut copy = fallible::zeroed::<u8>(buffer.len_bytes())?;
        buffer.copy_to_slice(py, &mut copy)?;
        Ok(Box::new(copy))
    }
}
