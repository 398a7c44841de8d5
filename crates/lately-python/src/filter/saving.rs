//! Saves, pickles and copies filters. Python reads the cells in place where it can.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::PyFilter;
use super::object::create;
use super::state::{FilterState, class_of};
use crate::calls::detached;
use crate::cells::Cells;
use crate::errors::{file_error, raise};
use crate::files::FileArgument;
use lately::format::{self, SaveError};
use lately::memory::Words;

impl PyFilter {
    /// Returns preamble and cells of the present state.
    fn preamble_and_cells(&self) -> PyResult<(Vec<u8>, Words)> {
        let filter = self.snapshot()?;
        let cells = filter.engine().to_words().map_err(raise)?;
        Ok((format::preamble(&filter, &[cells.as_slice()]), cells))
    }
}

#[pymethods]
impl PyFilter {
    /// Save to a file. A file that is given by its path is replaced in one step, when all bytes are on disk.
    ///
    /// Parameters
    /// ----------
    /// file : path-like or binary file
    ///     A path, or an object with a method ``write`` that accepts bytes: an open file, `io.BytesIO`,
    ///     `gzip.GzipFile`, the file of a socket. It is written from its present position and not flushed. More may be
    ///     written to it afterwards.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If the file cannot be written, or the path is a device, a pipe or a socket. The old file stays unchanged.
    /// TypeError
    ///     If `file` is neither a path nor a binary file.
    ///
    /// Notes
    /// -----
    /// The state at the start of the call is saved, whatever other threads insert meanwhile.
    ///
    /// Links are followed. A replaced file keeps its mode and, where that is allowed, its owner, but no access lists or
    /// hard links. A new file of a filter with a secret seed contains the secret, so only its owner may read it (mode
    /// 0600). Files that the caller opened and pickles need the same care. On Linux the new file has no name until it
    /// is complete, if the file system supports that; a killed process then leaves no partial file. Ctrl-C stops the
    /// call every 64 MiB, and the old file stays.
    ///
    /// See Also
    /// --------
    /// lately.open : Reads the file, with an example.
    fn save(&self, py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let file = FileArgument::read(file, "write")?;
        detached(py, || {
            let filter = self.snapshot()?;
            match file {
                FileArgument::Path(path) => {
                    let check_signals = || Python::attach(|py| Ok(py.check_signals()?));
                    format::save_interruptibly(&filter, &path, check_signals).map_err(|error| file_error(error, &path))
                }
                FileArgument::Object(mut file) => format::write(&filter, &mut file).map_err(|error| match error {
                    SaveError::Io(error) => error.into(),
                    SaveError::Filter(error) => raise(error),
                }),
            }
        })?
    }

    /// Return the saved form as bytes, which `lately.from_bytes` reads.
    ///
    /// Returns
    /// -------
    /// bytes
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (preamble, words) = detached(py, || self.preamble_and_cells())??;
        let cells: &[u8] = words.as_ref();
        PyBytes::new_with(py, preamble.len() + cells.len(), |bytes| {
            bytes[..preamble.len()].copy_from_slice(&preamble);
            bytes[preamble.len()..].copy_from_slice(cells);
            Ok(())
        })
    }

    /// Copy the filter. The copy shares memory until either is written to. A copy of a shared filter is private.
    ///
    /// Returns
    /// -------
    /// Filter
    fn copy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let filter = slf.get();
        let state = FilterState::new(detached(slf.py(), || filter.snapshot())??, None);
        let copy = create(&slf.get_type(), state)?;
        if let Some(attributes) = slf.getattr_opt(intern!(slf.py(), "__dict__"))? {
            copy.bind(slf.py()).getattr("__dict__")?.call_method1("update", (attributes,))?;
        }
        Ok(copy)
    }

    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::copy(slf)
    }

    fn __deepcopy__(slf: &Bound<'_, Self>, memo: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let (py, copy) = (slf.py(), Self::copy(slf)?);
        if let Some(attributes) = slf.getattr_opt(intern!(py, "__dict__"))? {
            // Stored first, because an attribute may refer to the filter itself.
            memo.set_item(slf.as_ptr() as usize, &copy)?;
            let deep = py.import("copy")?.call_method1("deepcopy", (attributes, memo))?;
            copy.bind(py).getattr("__dict__")?.call_method1("update", (deep,))?;
        }
        Ok(copy)
    }

    /// Return what pickle calls, and its arguments, by the protocol of Python's `copyreg`.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        Self::__reduce_ex__(slf, 2)
    }

    /// Return what pickle calls, and its arguments. A shared filter is pickled as its path, another as its bytes; from
    /// protocol 5 on the cells are a buffer, which can be sent out of band. For a subclass of a user, the class and the
    /// attributes of the object are added.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        let core = py.import("lately._core")?;
        let plain = slf.get_type().is(&class_of(py, detached(py, || filter.read().family())?)?);
        if let Some(shared) = &filter.shared {
            let open = core.getattr("_open_shared")?;
            return match plain {
                true => (open, (shared.path(), shared.timeout)).into_pyobject(py),
                false => {
                    let arguments = (shared.path(), shared.timeout, slf.get_type());
                    (open, arguments, slf.call_method0("__getstate__")?).into_pyobject(py)
                }
            };
        }
        if plain && protocol < 5 {
            return (core.getattr("from_bytes")?, (filter.to_bytes(py)?,)).into_pyobject(py);
        }
        let (preamble, words) = detached(py, || filter.preamble_and_cells())??;
        let preamble = PyBytes::new(py, &preamble);
        let cells = match protocol {
            ..5 => PyBytes::new(py, words.as_ref()).into_any(),
            _ => py.import("pickle")?.call_method1("PickleBuffer", (Cells(words),))?,
        };
        let from_parts = core.getattr("_from_parts")?;
        if plain {
            return (from_parts, (preamble, cells)).into_pyobject(py);
        }
        (from_parts, (preamble, cells, slf.get_type()), slf.call_method0("__getstate__")?).into_pyobject(py)
    }
}
