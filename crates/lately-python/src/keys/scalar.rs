//! Hashes one Python object.

use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use super::numbers::{hash_integer, hash_ratio};
use super::{Reader, first, is_of, numpy_array, other_types};
use lately::key::KeyHasher;
use lately::key::time::{Duration, Time};

/// Hashes one key: a Python or NumPy scalar, or a tuple of keys. A list is taken for a batch that was given by mistake.
pub fn hash_key(key: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<u64> {
    if key.is_instance_of::<PyList>() {
        return Err(PyTypeError::new_err(
            "a list is taken for several keys: give them to `insert` or `query`, or write [key] there for a key that \
             is a list",
        ));
    }
    hash(key, Reader::new(hasher))
}

/// The same for a key that may be part of another.
pub(super) fn hash(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<u64> {
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
    hash_rarer(key, reader)
}

/// The hash that [`hash`] gives, of an object for which no Python runs: a string that has UTF-8, without which Python
/// has to encode it; bytes, a float, None, an integer that fits, or a tuple of these.
#[inline(always)]
pub(super) fn plain(object: &Bound<'_, PyAny>, reader: Reader<'_>) -> Option<u64> {
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
#[inline(always)]
pub(super) fn small_integer(object: &Bound<'_, PyAny>) -> Option<i64> {
    if !object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: a live `int`, read by a thread that is attached. No Python runs, and nothing is raised: what does not fit
    // is told by `overflow`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(value)
}

fn hash_rarer(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<u64> {
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
        // Other formats compare by their elements, not by their bytes.
        if view.getattr(intern!(py, "format"))?.eq("B")? {
            let bytes = view.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
            return Ok(hasher.bytes(bytes.as_bytes()));
        }
    }
    if is_of(key, "pandas.api.typing", "NAType")? {
        return Ok(hasher.missing());
    }
    // `numpy.ma.masked`, and a record of a masked array.
    if is_of(key, "numpy.ma", "MaskedArray")? && key.cast::<PyUntypedArray>()?.getattr(intern!(py, "ndim"))?.eq(0)? {
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

/// A NumPy scalar that is no subclass of a Python type.
fn hash_numpy(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<u64> {
    let (py, hasher) = (key.py(), reader.hasher);
    let item = key.call_method0(intern!(py, "item"))?;
    if let Ok(integer) = item.cast::<PyInt>() {
        // Datetimes finer than microseconds come as integers too.
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

/// Extended precision, which `item` does not convert; complex extended precision is refused.
fn hash_long_double(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<u64> {
    match key.hasattr(intern!(key.py(), "as_integer_ratio"))? {
        true => hash_ratio(key, reader),
        false => hash_one_element(key, reader),
    }
}

/// Hashes a NumPy scalar, or an array without dimensions, as the one element of an array.
fn hash_one_element(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<u64> {
    first(numpy_array::read(&one_element(key)?, reader)?)
}

/// A NumPy scalar, or an array without dimensions, as an array of one element.
pub fn one_element<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    Ok(key.call_method1(intern!(key.py(), "reshape"), (1,))?.cast_into()?)
}

/// Dates, datetimes and timedeltas; `None` for anything else.
fn hash_datetime(key: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<Option<u64>> {
    let (py, hasher) = (key.py(), reader.hasher);
    let calendar = Calendar::get(py)?;
    let (datetime, timedelta) = (calendar.datetime.bind(py), calendar.timedelta.bind(py));
    let (is_datetime, is_timedelta) = (key.is_instance(datetime)?, key.is_instance(timedelta)?);
    if (is_datetime && !key.is_exact_instance(datetime)) || (is_timedelta && !key.is_exact_instance(timedelta)) {
        // pandas' own types, which know nanoseconds, convert themselves to NumPy's: in UTC, if they have a zone.
        if let Some(numpy) = key.getattr_opt(intern!(py, "asm8"))? {
            let zone = key.getattr_opt(intern!(py, "tzinfo"))?.is_some_and(|zone| !zone.is_none());
            let array = one_element(&numpy)?;
            return first(numpy_array::read_times(&array, zone, reader)?).map(Some);
        }
    }
    if is_datetime {
        let naive = key.call_method0(intern!(py, "utcoffset"))?.is_none();
        let epoch = if naive { &calendar.epoch } else { &calendar.epoch_utc };
        let since = time(&key.sub(epoch)?)?;
        return Ok(Some(if naive { hasher.instant(since) } else { hasher.aware(since) }));
    }
    if is_timedelta {
        return Ok(Some(hasher.duration(Duration::Exact(time(key)?))));
    }
    if key.is_instance(calendar.date.bind(py))? {
        let ordinal: i128 = key.call_method0(intern!(py, "toordinal"))?.extract()?;
        return Ok(Some(hasher.instant(Time { seconds: (ordinal - DAYS_TO_1970) * 86_400, attoseconds: 0 })));
    }
    Ok(None)
}

/// A `timedelta` as time.
pub fn time(delta: &Bound<'_, PyAny>) -> PyResult<Time> {
    let py = delta.py();
    let days: i128 = delta.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i128 = delta.getattr(intern!(py, "seconds"))?.extract()?;
    let microseconds: u64 = delta.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok(Time { seconds: days * 86_400 + seconds, attoseconds: microseconds * 1_000_000_000_000 })
}

/// 1970-01-01 by Python's count of days, which begins with year 1.
pub const DAYS_TO_1970: i128 = 719_163;

/// What is needed from the module `datetime`.
pub struct Calendar {
    pub date: Py<PyAny>,
    pub datetime: Py<PyAny>,
    pub timedelta: Py<PyAny>,
    pub epoch: Py<PyAny>,
    pub epoch_utc: Py<PyAny>,
}

impl Calendar {
    pub fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static CALENDAR: PyOnceLock<Calendar> = PyOnceLock::new();
        CALENDAR.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let datetime = module.getattr("datetime")?;
            let utc = module.getattr("timezone")?.getattr("utc")?;
            Ok(Self {
                date: module.getattr("date")?.unbind(),
                timedelta: module.getattr("timedelta")?.unbind(),
                epoch: datetime.call1((1970, 1, 1))?.unbind(),
                epoch_utc: datetime.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind(),
                datetime: datetime.unbind(),
            })
        })
    }
}

/// Whether this is a NumPy scalar.
pub fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(GENERIC.import(object.py(), "numpy", "generic")?)
}

/// Whether this is of a class of NumPy.
pub fn is_numpy(object: &Bound<'_, PyAny>, class: &str) -> PyResult<bool> {
    object.is_instance(&object.py().import(intern!(object.py(), "numpy"))?.getattr(class)?)
}

/// The type of an object, as an error names it.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
