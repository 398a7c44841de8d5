//! Reads objects with the Arrow PyCapsule interface, by which pyarrow, polars, DuckDB and other packages export columns
//! and frames without a copy.

use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::column::ArrowColumn;
use super::field::{ArrowField, SchemaError};
use super::structures::{ArrowArray, ArrowArrayStream, ArrowSchema, Owned, StreamError};
use crate::errors::raise;
use crate::keys::Keys;
use crate::keys::classes::type_name;
use lately::key::KeyHasher;

/// Reads an object with this interface; `None` for other objects.
pub fn read(keys: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Option<Keys>> {
    let py = keys.py();
    if let Some(export) = keys.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return read_stream(keys, &export.call0()?, hasher).map(Some);
    }
    if let Some(export) = keys.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        return read_array(keys, &export.call0()?, hasher).map(Some);
    }
    Ok(None)
}

/// Reads the schema and the array that `__arrow_c_array__` returned.
fn read_array(keys: &Bound<'_, PyAny>, exported: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let Ok((schema, array)) = exported.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(wrong_export(keys, "__arrow_c_array__", "a pair of capsules", exported));
    };
    let schema = pointer::<ArrowSchema>(keys, "__arrow_c_array__", &schema, c"arrow_schema")?;
    let array = pointer::<ArrowArray>(keys, "__arrow_c_array__", &array, c"arrow_array")?;
    // SAFETY: a capsule of this name contains an initialized structure, and the capsule is alive.
    let field = field(unsafe { &*schema })?;
    // SAFETY: as above; this thread is attached to the interpreter.
    import(unsafe { Owned::take(array) }, &field, hasher)
}

/// Reads all arrays of the stream that `__arrow_c_stream__` returned.
fn read_stream(keys: &Bound<'_, PyAny>, exported: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let stream = pointer::<ArrowArrayStream>(keys, "__arrow_c_stream__", exported, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name contains an initialized structure, and this thread is attached to the interpreter.
    let mut stream = unsafe { Owned::take(stream) }.ok_or_else(|| spent("stream"))?;
    let schema = stream.schema().map_err(failed)?.ok_or_else(|| spent("schema"))?;
    let field = field(&schema)?;
    let mut chunks = Vec::new();
    while let Some(array) = stream.next().map_err(failed)? {
        chunks.push(import(Some(array), &field, hasher)?);
        keys.py().check_signals()?;
    }
    Keys::chained(chunks).map_err(raise)
}

/// Reads the type of the keys. A type that cannot be a key is rejected before an array is read.
fn field(schema: &ArrowSchema) -> PyResult<ArrowField> {
    if schema.is_released() {
        return Err(spent("schema"));
    }
    Ok(ArrowField::new(schema.read().map_err(SchemaError::Malformed)?)?)
}

/// Reads the keys of an array.
fn import(array: Option<Owned<ArrowArray>>, field: &ArrowField, hasher: KeyHasher) -> PyResult<Keys> {
    let array = array.ok_or_else(|| spent("array"))?;
    let column = ArrowColumn::read(array, field).map_err(SchemaError::Malformed)?;
    super::keys(field, &column, 0, column.len, hasher).map_err(raise)
}

/// Returns the error for a stream that failed.
fn failed(StreamError(code, message): StreamError) -> PyErr {
    PyValueError::new_err(format!("the Arrow stream of keys failed with code {code}: {message}"))
}

/// Returns the error for a structure that was already taken out of its capsule.
fn spent(structure: &str) -> PyErr {
    PyValueError::new_err(format!("keys contain an Arrow {structure} that has been read already"))
}

/// Returns the pointer in a capsule of this name.
fn pointer<T>(keys: &Bound<'_, PyAny>, method: &str, exported: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let pointer = exported.cast::<PyCapsule>().ok().and_then(|capsule| capsule.pointer_checked(Some(name)).ok());
    match pointer {
        Some(pointer) => Ok(pointer.as_ptr().cast()),
        None => Err(wrong_export(keys, method, &format!("a capsule named {name:?}"), exported)),
    }
}

/// Returns the error for an object whose export is not what the interface requires.
fn wrong_export(keys: &Bound<'_, PyAny>, method: &str, expected: &str, exported: &Bound<'_, PyAny>) -> PyErr {
    let (owner, got) = (type_name(keys), type_name(exported));
    PyTypeError::new_err(format!("{method} of {owner} must return {expected}, not {got}"))
}
