//! A filter saved, pickled and copied. Cells are lent to Python, and copied only where necessary.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::calls::detached;
use super::cells::Cells;
use super::classes::class;
use super::errors::file_error;
use super::files::Place;
use super::filter::Filter;
use super::objects::object;
use lately::format;
use lately::memory::Words;

impl Filter {
    /// Its preamble and its cells, both of one moment.
    fn parts(&self) -> PyResult<(Vec<u8>, Words)> {
        let filter = self.snapshot()?;
        Ok((format::preamble(&filter), filter.engine().words().clone()))
    }
}

#[pymethods]
impl Filter {
    /// Save to a file; one given by its path is replaced in one step once all is on disk.
    ///
    /// Parameters
    /// ----------
    /// file : path-like or binary file
    ///     A path, or anything with a method ``write`` that takes bytes: an open file, `io.BytesIO`, `gzip.GzipFile`,
    ///     the file of a socket. It gets the bytes as they come, from where it stands, and is not flushed; more may
    ///     follow.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If it cannot be written, or the path is a device, a pipe or a socket; what was there is left as it was.
    /// TypeError
    ///     If it is neither a path nor a binary file.
    ///
    /// Notes
    /// -----
    /// What is saved is the filter as it is when the call begins, whatever other threads insert meanwhile.
    ///
    /// Links are followed. A file that is replaced keeps its mode and, where that is allowed, its owner, but no access
    /// lists or hard links. A new file of a filter with a secret seed is its owner's alone (mode 0600), since the
    /// secret is in it; who opens files or pickles by other means sees to that. On Linux the new file has no name until
    /// it is whole, so that a process that is killed leaves none behind, where the file system knows such files. Ctrl-C
    /// stops between pieces of 64 MiB, and the old file stays.
    ///
    /// See Also
    /// --------
    /// lately.open : Reads it, with an example.
    fn save(&self, py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = Place::of(file, "write")?;
        detached(py, || {
            let filter = self.snapshot()?;
            match place {
                Place::Path(path) => {
                    let look = || Python::attach(|py| Ok(py.check_signals()?));
                    format::save_in_pieces(&filter, &path, look).map_err(|error| file_error(error, &path))
                }
                Place::File(mut file) => Ok(format::write(&filter, &mut file)?),
            }
        })?
    }

    /// The saved form as bytes; `lately.from_bytes` reads it.
    ///
    /// Returns
    /// -------
    /// bytes
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (preamble, words) = detached(py, || self.parts())??;
        let cells: &[u8] = words.as_ref();
        PyBytes::new_with(py, preamble.len() + cells.len(), |bytes| {
            bytes[..preamble.len()].copy_from_slice(&preamble);
            bytes[preamble.len()..].copy_from_slice(cells);
            Ok(())
        })
    }

    /// A copy, which shares memory until either is written to; of a filter that processes share, one of its own.
    ///
    /// Returns
    /// -------
    /// Filter
    fn copy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let filter = slf.get();
        let copy = object(&slf.get_type(), detached(slf.py(), || filter.snapshot())??)?;
        if let Some(attributes) = slf.getattr_opt(intern!(slf.py(), "__dict__"))? {
            copy.bind(slf.py()).getattr("__dict__")?.call_method1("update", (attributes,))?;
        }
        Ok(copy)
    }

    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::copy(slf)
    }

    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::copy(slf)
    }

    /// What pickle calls and with what. Of a filter that processes share its path travels; of others all, from protocol
    /// 5 on with the cells as a buffer, which can travel out of band. An object of a user's own class takes it and its
    /// attributes along.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        let core = py.import("lately._core")?;
        let plain = slf.get_type().is(&class(py, detached(py, || filter.read().family())?)?);
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
        let (preamble, words) = detached(py, || filter.parts())??;
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
