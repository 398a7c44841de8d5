//! The Arrow PyCapsule interface: how pyarrow, polars, DuckDB and others hand over columns and frames without a copy.

use std::ffi::{CStr, c_int};
use std::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{make_array, new_empty_array};
use arrow_schema::{ArrowError, Field};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::{Keys, arrow, scalar, told};
use crate::key::KeyHasher;

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
    let schema = pointer::<FFI_ArrowSchema>(keys, "__arrow_c_array__", &schema, c"arrow_schema")?;
    let array = pointer::<FFI_ArrowArray>(keys, "__arrow_c_array__", &array, c"arrow_array")?;
    // SAFETY: a capsule of this name holds an initialized structure, and the capsule is alive.
    let field = field(unsafe { &*schema }, hasher)?;
    // SAFETY: as above. Moving it out leaves a released structure behind, as the interface demands.
    let array = unsafe { FFI_ArrowArray::from_raw(array) };
    import(array, &field, hasher)
}

fn read_stream(keys: &Bound<'_, PyAny>, exported: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let stream = pointer::<FFI_ArrowArrayStream>(keys, "__arrow_c_stream__", exported, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name holds an initialized structure. It is moved out, as the interface demands.
    let mut stream = Stream(unsafe { FFI_ArrowArrayStream::from_raw(stream) });
    let field = stream.field(hasher)?;
    let mut chunks = Vec::new();
    while let Some(array) = stream.next()? {
        chunks.push(import(array, &field, hasher)?);
        keys.py().check_signals()?;
    }
    Ok(Keys::chained(chunks)?)
}

fn import(array: FFI_ArrowArray, field: &Field, hasher: KeyHasher) -> PyResult<Keys> {
    if array.is_released() {
        return Err(spent("array"));
    }
    told::check_array(&array, field.data_type()).map_err(nonsense_told)?;
    // SAFETY: the array comes by the interface and with its schema; its pointers are as valid as its producer says.
    let data = unsafe { from_ffi_and_data_type(array, field.data_type().clone()) }.map_err(refused)?;
    arrow::read(field, &make_array(data), hasher).map_err(PyTypeError::new_err)
}

/// The error for structures that contradict themselves.
fn nonsense_told(what: String) -> PyErr {
    PyValueError::new_err(format!("keys cannot be read from Arrow: {what}"))
}

/// A stream whose chunks are arrays of any type. (The reader of `arrow-array` knows frames only.)
struct Stream(FFI_ArrowArrayStream);

impl Stream {
    fn field(&mut self, hasher: KeyHasher) -> PyResult<Field> {
        let Some(get_schema) = self.0.get_schema else {
            return Err(spent("stream"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: a stream that is not released, and a place for the schema.
        let code = unsafe { get_schema(&mut self.0, &mut schema) };
        self.check(code)?;
        field(&schema, hasher)
    }

    fn next(&mut self) -> PyResult<Option<FFI_ArrowArray>> {
        let Some(get_next) = self.0.get_next else { return Ok(None) };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: a stream that is not released, and a place for the array.
        let code = unsafe { get_next(&mut self.0, &mut array) };
        self.check(code)?;
        Ok(Some(array).filter(|array| !array.is_released()))
    }

    fn check(&mut self, code: c_int) -> PyResult<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a stream that is not released and has just failed.
        let message =
            self.0.get_last_error.map_or(ptr::null(), |get_last_error| unsafe { get_last_error(&mut self.0) });
        let message = match message.is_null() {
            true => "no reason was given".into(),
            // SAFETY: a C string that lives until the next call.
            false => unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned(),
        };
        Err(PyValueError::new_err(format!("the Arrow stream of keys failed with code {code}: {message}")))
    }
}

/// The type of the keys to come. Types that cannot be keys are refused here, before an array of them is looked at.
fn field(schema: &FFI_ArrowSchema, hasher: KeyHasher) -> PyResult<Field> {
    if schema.release.is_none() {
        return Err(spent("schema"));
    }
    told::check_schema(schema).map_err(nonsense_told)?;
    let field = Field::try_from(schema).map_err(refused)?;
    arrow::read(&field, &new_empty_array(field.data_type()), hasher).map_err(PyTypeError::new_err)?;
    Ok(field)
}

/// The error for a structure taken out of its capsule before.
fn spent(structure: &str) -> PyErr {
    PyValueError::new_err(format!("keys hold an Arrow {structure} that has been read already"))
}

/// Usually a type that this version of Arrow does not know.
fn refused(error: ArrowError) -> PyErr {
    PyTypeError::new_err(format!("keys cannot be read from Arrow: {error}"))
}

/// The content of a capsule of this name, or an error.
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
