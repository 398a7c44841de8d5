//! A filter saved, pickled, copied and united with another. Cells are lent to Python, and copied only where necessary.

use std::path::PathBuf;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::calls::detached;
use super::cells::Cells;
use super::classes::class;
use super::errors::file_error;
use super::filter::Filter;
use super::objects::object;
use crate::format;
use crate::memory::Words;

impl Filter {
    /// Its preamble and, shared, its cells, both of one moment.
    fn snapshot(&self) -> (Vec<u8>, Words) {
        let filter = self.read();
        (format::preamble(&filter), filter.engine().words().clone())
    }
}

#[pymethods]
impl Filter {
    /// Save to a file, which is replaced in one step once all is on disk.
    ///
    /// Parameters
    /// ----------
    /// path : path-like
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If it cannot be written, or is a device, a pipe or a socket; what was there is left as it was.
    ///
    /// Notes
    /// -----
    /// Links are followed. A file that is replaced keeps its mode and, where that is allowed, its owner, but no access
    /// lists or hard links. On Linux the new file has no name until it is whole, so that a process that is killed
    /// leaves none behind, where the file system knows such files. Ctrl-C stops between pieces of 64 MiB, and the old
    /// file stays.
    ///
    /// See Also
    /// --------
    /// lately.open : Reads it, with an example.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || {
            let filter = self.read().clone();
            let look = || Python::attach(|py| Ok(py.check_signals()?));
            format::save_in_pieces(&filter, &path, look).map_err(|error| file_error(error, &path))
        })?
    }

    /// The saved form as bytes; `lately.from_bytes` reads it.
    ///
    /// Returns
    /// -------
    /// bytes
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (preamble, words) = detached(py, || self.snapshot())?;
        let cells: &[u8] = words.as_ref();
        PyBytes::new_with(py, preamble.len() + cells.len(), |bytes| {
            bytes[..preamble.len()].copy_from_slice(&preamble);
            bytes[preamble.len()..].copy_from_slice(cells);
            Ok(())
        })
    }

    /// A filter that holds the keys of both.
    ///
    /// Parameters
    /// ----------
    /// other : Filter
    ///     Of the same class, window, seed and parameters. Windows of time are brought to the later of both times, so
    ///     filters of different machines can be united. Windows of insertions can be united only in the same
    ///     generation, since nothing else relates their counts; `inserted` is then the lesser of both, and no window is
    ///     cut short.
    ///
    /// Returns
    /// -------
    /// Filter
    ///     A new one; every key that either would report, it reports. The chance of a false positive is that of as many
    ///     distinct keys as both have taken, so plan `capacity` for all machines together.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter differs, which the message names, or the class has no union.
    ///
    /// Examples
    /// --------
    /// >>> paris, tokyo = (lately.AgePartitionedBloomFilter("1h", 0.001, capacity=10_000) for _ in range(2))
    /// >>> paris.insert(["a"], at=[1000]); tokyo.insert(["b"], at=[1500])
    /// >>> paris.union(tokyo).query(["a", "b", "c"], at=2000)
    /// array([ True,  True, False])
    fn union(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (ours, theirs) = (slf.get(), other.get());
        let united = detached(slf.py(), || {
            // One lock at a time: two threads may unite the same two filters, each in its own order.
            let theirs = theirs.read().clone();
            let mut ours = ours.read().clone();
            ours.unite(&theirs).map(|()| ours)
        })??;
        object(&slf.get_type(), united)
    }

    /// A copy, which shares memory until either is written to.
    ///
    /// Returns
    /// -------
    /// Filter
    fn copy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let filter = slf.get();
        let copy = object(&slf.get_type(), detached(slf.py(), || filter.read().clone())?)?;
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

    /// What pickle calls and with what: from protocol 5 on with the cells as a buffer, which can travel out of band. An
    /// object of a user's own class takes it and its attributes along.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u8) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        let core = py.import("lately._core")?;
        let plain = slf.get_type().is(&class(py, detached(py, || filter.read().family())?)?);
        if plain && protocol < 5 {
            return (core.getattr("from_bytes")?, (filter.to_bytes(py)?,)).into_pyobject(py);
        }
        let (preamble, words) = detached(py, || filter.snapshot())?;
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
