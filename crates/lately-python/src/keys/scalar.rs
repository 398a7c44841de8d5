//! Hashes one Python object of any class.

use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};

use super::calendar::{Calendar, midnight, of_timedelta};
use super::classes::{is_instance_of, is_numpy_scalar, one_element, type_name};
use super::numbers::{hash_integer, hash_ratio};
use super::{KeyReader, numpy_array, other_types, plain, single_hash};
use lately::key::KeyHasher;
use lately::key::time::Duration;

/// Hashes one key: a Python or NumPy scalar, or a tuple of keys. A list is rejected, because it is probably a batch.
pub fn hash_key(key: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<u64> {
    let reader = KeyReader::new(hasher);
    if let Some(hash) = plain::hash(key, reader) {
        return Ok(hash);
    }
    if key.is_instance_of::<PyList>() {
        return Err(PyTypeError::new_err(
            "a list is taken for several keys: pass them to `insert`, `query` or `duplicated`, and a key that is a \
             list as [key]",
        ));
    }
    hash(key, reader)
}

/// Hashes a key that may be part of another key.
pub(super) fn hash(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let hasher = reader.hasher;
    // Most frequent types first. Subclasses (`IntEnum`, `np.float64`, `np.str_`, a named tuple) are their value.
    if let Ok(text) = key.cast::<PyString>() {
        return hash_text(text, hasher);
    }
    if let Ok(integer) = key.cast::<PyInt>() {
        return hash_integer(integer, hasher);
    }
    if let Ok(float) = key.cast::<PyFloat>() {
        return Ok(hasher.float(float.extract()?));
    }
    if key.is_none() {
        return Ok(hasher.missing());
    }
    if let Ok(tuple) = key.cast::<PyTuple>() {
        let reader = reader.within()?;
        return tuple.iter().try_fold(hasher.row_start(tuple.len()), |chain, element| {
            Ok(hasher.row_next(chain, hash(&element, reader)?))
        });
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(hasher.bytes(bytes.as_bytes()));
    }
    hash_other(key, reader)
}

/// Hashes an object that is none of Python's most frequent classes.
fn hash_other(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let (py, hasher) = (key.py(), reader.hasher);
    if is_numpy_scalar(key)? {
        return hash_numpy(key, reader);
    }
    if let Some(datetime) = hash_datetime(key, reader)? {
        return Ok(datetime);
    }
    if let Ok(bytes) = key.cast::<PyByteArray>() {
        return Ok(hasher.bytes(&bytes.to_vec()));
    }
    if let Ok(view) = key.cast::<PyMemoryView>() {
        // Views of other formats compare by elements, not by bytes.
        if view.getattr(intern!(py, "format"))?.eq("B")? {
            let bytes = view.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
            return Ok(hasher.bytes(bytes.as_bytes()));
        }
    }
    if is_instance_of(key, "pandas.api.typing", "NAType")? {
        return Ok(hasher.missing());
    }
    // `numpy.ma.masked`, and a record of a masked array.
    if is_instance_of(key, "numpy.ma", "MaskedArray")?
        && key.cast::<PyUntypedArray>()?.getattr(intern!(py, "ndim"))?.eq(0)?
    {
        return hash_one_element(key, reader);
    }
    if let Some(hash) = other_types::hash(key, reader)? {
        return Ok(hash);
    }
    Err(PyTypeError::new_err(format!(
        "{} cannot be a key; a key is a str, bytes, int, float, bool, Decimal, date, time, datetime, timedelta, UUID, \
         member of an Enum, missing, or a tuple or list of these",
        type_name(key)
    )))
}

fn hash_text(text: &Bound<'_, PyString>, hasher: &KeyHasher) -> PyResult<u64> {
    if let Ok(utf8) = text.to_str() {
        return Ok(hasher.text(utf8));
    }
    let py = text.py();
    let encoded = text.call_method1(intern!(py, "encode"), (intern!(py, "utf-8"), intern!(py, "surrogatepass")))?;
    Ok(hasher.text(encoded.cast_into::<PyBytes>()?.as_bytes()))
}

/// Hashes a NumPy scalar that is not a subclass of a Python class.
fn hash_numpy(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let (py, hasher) = (key.py(), reader.hasher);
    let item = key.call_method0(intern!(py, "item"))?;
    if let Ok(integer) = item.cast::<PyInt>() {
        // Datetimes finer than microseconds are converted to integers too.
        let kind: String = key.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        if kind != "M" && kind != "m" {
            return hash_integer(integer, hasher);
        }
    }
    if let Ok(float) = item.cast::<PyFloat>() {
        return Ok(hasher.float(float.extract()?));
    }
    if is_numpy_scalar(&item)? {
        return hash_long_double(&item, reader);
    }
    hash_one_element(key, reader)
}

/// Hashes a number of extended precision, which `item` does not convert. Complex numbers are rejected.
fn hash_long_double(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    match key.hasattr(intern!(key.py(), "as_integer_ratio"))? {
        true => hash_ratio(key, reader),
        false => hash_one_element(key, reader),
    }
}

/// Hashes a NumPy scalar, or an array without dimensions, as the one element of an array.
fn hash_one_element(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    single_hash(numpy_array::read(&one_element(key)?, reader)?)
}

/// Hashes dates, datetimes and timedeltas; `None` for other objects.
fn hash_datetime(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Option<u64>> {
    let (py, hasher) = (key.py(), reader.hasher);
    let calendar = Calendar::get(py)?;
    let (datetime, timedelta) = (calendar.datetime.bind(py), calendar.timedelta.bind(py));
    let (is_datetime, is_timedelta) = (key.is_instance(datetime)?, key.is_instance(timedelta)?);
    if (is_datetime && !key.is_exact_instance(datetime)) || (is_timedelta && !key.is_exact_instance(timedelta)) {
        // The types of pandas have nanoseconds, and convert to NumPy's types: in UTC, if they have a time zone.
        if let Some(numpy) = key.getattr_opt(intern!(py, "asm8"))? {
            let zone = key.getattr_opt(intern!(py, "tzinfo"))?.is_some_and(|zone| !zone.is_none());
            let array = one_element(&numpy)?;
            return single_hash(numpy_array::read_times(&array, zone, reader)?).map(Some);
        }
    }
    if is_datetime {
        let (time, aware) = calendar.since_1970(key)?;
        return Ok(Some(if aware { hasher.aware(time) } else { hasher.instant(time) }));
    }
    if is_timedelta {
        return Ok(Some(hasher.duration(Duration::Exact(of_timedelta(key)?))));
    }
    if key.is_instance(calendar.date.bind(py))? {
        return Ok(Some(hasher.instant(midnight(key)?)));
    }
    Ok(None)
}
