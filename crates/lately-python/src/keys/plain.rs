//! Hashes objects of Python's own classes without a call of Python.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};

use super::KeyReader;

/// Returns the hash of an object that needs no call of Python: an ASCII or UTF-8 string, bytes, a float, an integer of
/// 64 bits, `None`, or a tuple of these. `None` for other objects.
#[inline(always)]
pub fn hash(object: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> Option<u64> {
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
        return hash_row(tuple, reader.within().ok()?);
    }
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Some(hasher.bytes(bytes.as_bytes()));
    }
    object.is_none().then(|| hasher.missing())
}

/// Returns the hash of a tuple of plain objects. The tuple keeps its elements alive.
fn hash_row(tuple: &Bound<'_, PyTuple>, reader: KeyReader<'_>) -> Option<u64> {
    let hasher = reader.hasher;
    tuple
        .iter_borrowed()
        .try_fold(hasher.row_start(tuple.len()), |chain, element| Some(hasher.row_next(chain, hash(&element, reader)?)))
}

/// Returns the value of an `int` that fits, and `None` for subclasses of `int` and other objects.
#[inline(always)]
pub fn small_integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    if !object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: the object is a live `int`, and this thread is attached to the interpreter. The function calls no Python
    // and raises no error: for a value that does not fit it sets `overflow`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(value)
}
