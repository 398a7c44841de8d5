//! Batches of Python objects.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyInt, PyList, PyTuple};

use super::{Keys, Reader, at};
use crate::memory::fallible;

/// Objects between two checks for Ctrl-C: about a millisecond.
const SIGNALS_EVERY: usize = 1 << 16;

/// Hashes the elements of a list, which may change meanwhile: those that it has when their turn comes, and no more than
/// it had at first.
pub fn read_list(list: &Bound<'_, PyList>, reader: Reader<'_>) -> PyResult<Keys> {
    let (py, len) = (list.py(), list.len());
    let mut hashes = Hashes::with_room(len, reader)?;
    with_critical_section(list, || {
        for index in 0..len {
            hashes.look_at_signals(py)?;
            // SAFETY: a list, and a thread that is attached; it gives null, and sets an error, if there is no such
            // element any more. Nobody else changes the list before `push` has looked at the object.
            let object = unsafe { Borrowed::from_ptr_or_opt(py, ffi::PyList_GetItem(list.as_ptr(), index as isize)) };
            let Some(object) = object else {
                drop(PyErr::take(py));
                break;
            };
            hashes.push(object)?;
        }
        Ok(hashes.into_keys())
    })
}

/// Hashes the elements of a tuple.
pub fn read_tuple(tuple: &Bound<'_, PyTuple>, reader: Reader<'_>) -> PyResult<Keys> {
    let mut hashes = Hashes::with_room(tuple.len(), reader)?;
    for object in tuple.iter_borrowed() {
        hashes.look_at_signals(tuple.py())?;
        hashes.push(object)?;
    }
    Ok(hashes.into_keys())
}

/// The hashes of objects, one after the other.
pub struct Hashes<'a> {
    reader: Reader<'a>,
    /// Hashes, and then from `hashed` on integers, which are hashed together.
    found: Vec<u64>,
    hashed: usize,
}

impl<'a> Hashes<'a> {
    /// None yet, and room for so many.
    pub fn with_room(len: usize, reader: Reader<'a>) -> PyResult<Self> {
        Ok(Self { reader, found: fallible::with_room(len)?, hashed: 0 })
    }

    /// Lets Ctrl-C end the batch, now and then.
    #[inline(always)]
    pub fn look_at_signals(&self, py: Python<'_>) -> PyResult<()> {
        if self.found.len() % SIGNALS_EVERY == SIGNALS_EVERY - 1 { py.check_signals() } else { Ok(()) }
    }

    /// Hashes one more. It is lent by what may change as soon as Python runs, and no Python runs before it is hashed or
    /// there is a reference to it.
    #[inline(always)]
    pub fn push(&mut self, object: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
        if let Some(integer) = small_integer(&object) {
            self.found.push(integer as u64);
            return Ok(());
        }
        let (object, index) = (object.to_owned(), self.found.len());
        let hash = self.reader.key(&object).map_err(|error| at(object.py(), format!("key {index}"), error))?;
        self.hash_integers();
        self.found.push(hash);
        self.hashed = self.found.len();
        Ok(())
    }

    #[inline]
    fn hash_integers(&mut self) {
        if self.hashed < self.found.len() {
            self.reader.hasher.integers(&mut self.found[self.hashed..]);
        }
    }

    /// All of them.
    pub fn into_keys(mut self) -> Keys {
        self.hash_integers();
        Keys::made(self.found)
    }
}

/// The value of an `int`, but of no subclass, if it fits.
#[inline]
fn small_integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    if !object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: a live `int`, read by a thread that is attached. No Python runs, and nothing is raised: what does not fit
    // is told by `overflow`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(value)
}
