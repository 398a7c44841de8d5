//! Batches of Python objects.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::{Keys, Reader, at};
use crate::memory::fallible;
use crate::memory::prefetch::Address;

/// Objects between two checks for Ctrl-C: about a millisecond.
const SIGNALS_EVERY: usize = 1 << 16;
/// Objects that are fetched together. Where they do not lie in the order of the list, as is the case after a sort, 1
/// million integers take 12 ns each and URLs 15; fetched one by one they took 55 and 120, by 32 they take 16 and 20.
const TOGETHER: usize = 64;
/// Words of an object that are fetched, as far as three lines go: a string of a hundred letters.
const LINES: [usize; 3] = [0, 8, 16];

/// Hashes the elements of a list, which may change meanwhile: those that it has when their turn comes, and no more than
/// it had at first.
pub fn read_list(list: &Bound<'_, PyList>, reader: Reader<'_>) -> PyResult<Keys> {
    let py = list.py();
    with_critical_section(list, || {
        read(py, list.len(), reader, |index| {
            // SAFETY: a list, and a thread that is attached; it gives null, and sets an error, if there is no such
            // element any more. Nobody else changes the list before Python runs.
            let object = unsafe { Borrowed::from_ptr_or_opt(py, ffi::PyList_GetItem(list.as_ptr(), index as isize)) };
            if object.is_none() {
                drop(PyErr::take(py));
            }
            object
        })
    })
}

/// Hashes the elements of a tuple.
pub fn read_tuple(tuple: &Bound<'_, PyTuple>, reader: Reader<'_>) -> PyResult<Keys> {
    read(tuple.py(), tuple.len(), reader, |index| tuple.get_borrowed_item(index).ok())
}

/// Hashes objects that are lent, until Python runs; where there is none any more, they end.
pub fn read<'a, 'py>(
    py: Python<'py>,
    len: usize,
    reader: Reader<'_>,
    lend: impl Fn(usize) -> Option<Borrowed<'a, 'py, PyAny>>,
) -> PyResult<Keys> {
    let mut hashes = Hashes { reader, found: fallible::with_room(len)?, hashed: 0 };
    'all: for start in (0..len).step_by(TOGETHER) {
        if start % SIGNALS_EVERY == SIGNALS_EVERY - TOGETHER {
            py.check_signals()?;
        }
        let (places, mut lent) = (start..len.min(start + TOGETHER), [None; TOGETHER]);
        for (place, lent) in places.clone().zip(&mut lent) {
            *lent = lend(place);
            let Some(object) = lent else { break };
            LINES.into_iter().for_each(|line| Address::at(object.as_ptr().cast()).fetch(line));
        }
        // Most often all are integers, or none.
        hashes
            .found
            .extend(lent.iter().map_while(|object| small_integer(object.as_ref()?)).map(|integer| integer as u64));
        let count = hashes.found.len() - start;
        let mut python = false;
        for (place, lent) in places.zip(lent).skip(count) {
            // Once Python has run, another may be there, or none.
            let Some(object) = (if python { lend(place) } else { lent }) else { break 'all };
            python |= !hashes.push(object)?;
        }
    }
    hashes.hash_integers();
    Ok(Keys::made(hashes.found))
}

/// The hashes of objects, one after the other.
struct Hashes<'a> {
    reader: Reader<'a>,
    /// Hashes, and then from `hashed` on integers, which are hashed together.
    found: Vec<u64>,
    hashed: usize,
}

impl Hashes<'_> {
    /// Hashes one more, which is lent until Python runs. Says whether it is certain that none has run.
    #[inline(always)]
    fn push(&mut self, object: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
        if let Some(integer) = small_integer(&object) {
            self.found.push(integer as u64);
            return Ok(true);
        }
        let object = object.to_owned();
        let plain = plain(&object, self.reader);
        let hash = match plain {
            Some(hash) => hash,
            None => {
                let index = self.found.len();
                self.reader.key(&object).map_err(|error| at(object.py(), format!("key {index}"), error))?
            }
        };
        self.hash_integers();
        self.found.push(hash);
        self.hashed = self.found.len();
        Ok(plain.is_some())
    }

    #[inline]
    fn hash_integers(&mut self) {
        if self.hashed < self.found.len() {
            self.reader.hasher.integers(&mut self.found[self.hashed..]);
        }
    }
}

/// The hash of an object for which no Python runs: a string that has UTF-8, without which Python has to encode it;
/// bytes, a float, None, an integer that fits, or a tuple of these.
#[inline(always)]
fn plain(object: &Bound<'_, PyAny>, reader: Reader<'_>) -> Option<u64> {
    let hasher = reader.hasher;
    if let Ok(text) = object.cast_exact::<PyString>() {
        return text.to_str().ok().map(|text| hasher.text(text));
    }
    if let Some(integer) = small_integer(object) {
        return Some(hasher.integer(integer));
    }
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Some(hasher.float(float.value()));
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return plain_row(tuple, reader.within().ok()?);
    }
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Some(hasher.bytes(bytes.as_bytes()));
    }
    object.is_none().then(|| hasher.missing())
}

/// The same for a tuple, which holds its elements as long.
fn plain_row(tuple: &Bound<'_, PyTuple>, reader: Reader<'_>) -> Option<u64> {
    let hasher = reader.hasher;
    tuple.iter_borrowed().try_fold(hasher.row_start(tuple.len()), |chain, element| {
        Some(hasher.row_next(chain, plain(&element, reader)?))
    })
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
