//! Hashes objects of less frequent classes: decimals, UUIDs, times of day, lists, members of enumerations, and Arrow's
//! scalars. Their modules are not imported here.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::classes::is_instance_of;
use super::numbers::hash_ratio;
use super::{KeyReader, single_hash};
use lately::key::time::Time;

/// Hashes an object of one of these classes; `None` for other objects.
pub(super) fn hash(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Option<u64>> {
    Ok(match () {
        _ if key.is_instance_of::<PyList>() => Some(hash_list(key.cast()?, reader)?),
        _ if is_instance_of(key, "decimal", "Decimal")? => Some(hash_decimal(key, reader)?),
        _ if is_instance_of(key, "uuid", "UUID")? => {
            Some(reader.hasher.uuid(key.getattr(intern!(key.py(), "bytes"))?.extract::<[u8; 16]>()?))
        }
        _ if is_instance_of(key, "datetime", "time")? => Some(hash_time(key, reader)?),
        _ if is_instance_of(key, "enum", "Enum")? => Some(hash_member(key, reader)?),
        _ if is_instance_of(key, "pyarrow", "Scalar")? => Some(hash_scalar(key, reader)?),
        _ => None,
    })
}

fn hash_list(list: &Bound<'_, PyList>, reader: KeyReader<'_>) -> PyResult<u64> {
    let (reader, hasher) = (reader.within()?, reader.hasher);
    // Hashing an element may call code that changes the list, so a copy is read.
    let elements = list.get_slice(0, list.len());
    elements.iter().try_fold(hasher.list_start(elements.len()), |chain, element| {
        Ok(hasher.list_next(chain, reader.key(&element)?))
    })
}

/// The greatest exponent of a decimal, that of the largest IEEE type. An integer of a much larger one would take
/// gigabytes.
const MAX_EXPONENT: i64 = 6144;

fn hash_decimal(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let (py, hasher) = (key.py(), reader.hasher);
    if key.call_method0(intern!(py, "is_nan"))?.extract()? {
        return Ok(hasher.missing());
    }
    if key.call_method0(intern!(py, "is_infinite"))?.extract()? {
        return Ok(hasher.float(key.call_method0(intern!(py, "__float__"))?.extract()?));
    }
    let exponent: i64 = key.call_method0(intern!(py, "as_tuple"))?.getattr(intern!(py, "exponent"))?.extract()?;
    if exponent.abs() > MAX_EXPONENT && !key.eq(0)? {
        let message = format!("a decimal with the exponent {exponent} cannot be a key: it lies beyond ±{MAX_EXPONENT}");
        return Err(PyValueError::new_err(message));
    }
    hash_ratio(key, reader)
}

fn hash_time(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let py = key.py();
    if !key.getattr(intern!(py, "tzinfo"))?.is_none() {
        return Err(PyTypeError::new_err("a datetime.time with a time zone cannot be a key"));
    }
    let part = |name: &str| key.getattr(name)?.extract::<u64>();
    let seconds = 3600 * part("hour")? + 60 * part("minute")? + part("second")?;
    let attoseconds = part("microsecond")? * 1_000_000_000_000;
    Ok(reader.hasher.time_of_day(Time { seconds: seconds.into(), attoseconds }))
}

/// Hashes a member of an enumeration that is neither a number nor text. It equals only itself.
fn hash_member(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let py = key.py();
    let class = key.get_type().fully_qualified_name()?;
    let Ok(name) = key.getattr(intern!(py, "name"))?.extract::<String>() else {
        return Err(PyTypeError::new_err(format!("a {class} without a name cannot be a key")));
    };
    Ok(reader.hasher.member(&class.to_string(), &name))
}

/// Hashes a scalar of pyarrow, as the only element of an array.
fn hash_scalar(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let py = key.py();
    let array = py.import(intern!(py, "pyarrow"))?.call_method1(intern!(py, "repeat"), (key, 1))?;
    single_hash(super::read(&array, reader.within()?)?)
}
