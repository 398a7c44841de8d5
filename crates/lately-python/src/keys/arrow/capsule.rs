//! The Arrow PyCapsule interface: how pyarrow, polars, DuckDB and others hand over columns and frames without a copy.

use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::field::{Field, Refusal};
use super::structures::{ArrowArray, ArrowArrayStream, ArrowSchema, Failure, Owned};
use crate::errors::raise;
use crate::keys::{Keys, scalar};
use lately::key::KeyHasher;

/// Reads objects with this interface; `None` for anything else.
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

fn read_array(keys: &Bound<'_, PyAny>, exported: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let Ok((schema, array)) = exported.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(nonsense(keys, "__arrow_c_array__", "a pair of capsules", exported));
    };
    let schema = pointer::<ArrowSchema>(keys, "__arrow_c_array__", &schema, c"arrow_schema")?;
    let array = pointer::<ArrowArray>(keys, "__arrow_c_array__", &array, c"arrow_array")?;
    // SAFETY: a capsule of this name holds an initialized structure, and the capsule is alive.
    let field = field(unsafe { &*schema })?;
    // SAFETY: as above; this thread holds the interpreter.
    import(unsafe { Owned::take(array) }, &field, hasher)
}

fn read_stream(keys: &Bound<'_, PyAny>, exported: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let stream = pointer::<ArrowArrayStream>(keys, "__arrow_c_stream__", exported, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name holds an initialized structure, and this thread holds the interpreter.
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

/// Reads the type of the keys to come, which is refused before an array of them is read.
fn field(schema: &ArrowSchema) -> PyResult<Field> {
    if schema.is_released() {
        return Err(spent("schema"));
    }
    Ok(Field::new(schema.read().map_err(Refusal::Nonsense)?)?)
}

fn import(array: Option<Owned<ArrowArray>>, field: &Field, hasher: KeyHasher) -> PyResult<Keys> {
    let column = array.ok_or_else(|| spent("array"))?.read(field).map_err(Refusal::Nonsense)?;
    super::keys(field, &column, 0, column.len, hasher).map_err(raise)
}

fn failed(Failure(code, message): Failure) -> PyErr {
    PyValueError::new_err(format!("the Arrow stream of keys failed with code {code}: {message}"))
}

/// Returns the error for a structure that was taken out of its capsule before.
fn spent(structure: &str) -> PyErr {
    PyValueError::new_err(format!("keys hold an Arrow {structure} that has been read already"))
}

/// Returns the pointer in a capsule of this name.
fn pointer<T>(keys: &Bound<'_, PyAny>, method: &str, exported: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let pointer = exported.cast::<PyCapsule>().ok().and_then(|capsule| capsule.pointer_checked(Some(name)).ok());
    match pointer {
        Some(pointer) => Ok(pointer.as_ptr().cast()),
        None => Err(nonsense(keys, method, &format!("a capsule named {name:?}"), exported)),
    }
}

fn nonsense(keys: &Bound<'_, PyAny>, method: &str, wanted: &str, exported: &Bound<'_, PyAny>) -> PyErr {
    let (owner, got) = (scalar::type_name(keys), scalar::type_name(exported));
    PyTypeError::new_err(format!("{method} of {owner} must return {wanted}, not {got}"))
}
