//! Instants, from any Python object, as nanoseconds since 1970.

use numpy::prelude::*;
use numpy::{Element, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use bytemuck::Pod;

use super::keys::array_view::ArrayView;
use super::keys::is_of;
use super::keys::numpy_array::unit;
use super::keys::scalar::{Calendar, DAYS_TO_1970, is_numpy, one_element, time};
use super::spans::nanoseconds;
use crate::errors::raise;
use lately::key::time::{Time, Unit};
use lately::memory::fallible;

/// One time, or an array of times of any type.
pub enum Times<'py> {
    One(i64),
    Many(Bound<'py, PyUntypedArray>),
}

/// Nanoseconds since the Unix epoch of one time.
///
/// Parameters
/// ----------
/// value : int, float, Decimal, datetime.datetime, numpy.datetime64, datetime.date or str
///     Numbers are Unix seconds; datetimes without a time zone are UTC. A date is its midnight. Text is in a format of
///     ISO 8601, read to the microsecond.
///
/// Returns
/// -------
/// int
///     In the range of a signed 64-bit integer. Floats of 2**23 s and more are rounded to microseconds.
///
/// Raises
/// ------
/// TypeError
///     If `value` is of another type.
/// ValueError
///     If it is missing (NaN, NaT) or outside the years 1677 to 2262.
///
/// Examples
/// --------
/// >>> read_moment(1.5)
/// 1500000000
#[pyfunction]
pub fn read_moment(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    if let Ok(float) = value.cast::<PyFloat>() {
        return match of_seconds(float.value()) {
            (moment, true) => Ok(moment),
            _ if float.value().is_nan() => Err(PyValueError::new_err("is missing (NaN)")),
            _ => Err(out_of_range(value)),
        };
    }
    let whole = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    if whole || is_numpy(value, "integer")? && !is_numpy(value, "timedelta64")? {
        return value.extract().ok().and_then(of_whole_seconds).ok_or_else(|| out_of_range(value));
    }
    if is_numpy(value, "floating")? {
        return read_moment(PyFloat::new(py, value.extract()?).as_any());
    }
    // pandas' own datetime is a subclass of `datetime`, but finer.
    let numpy = match value.getattr_opt(intern!(py, "to_datetime64"))? {
        Some(convert) => convert.call0()?,
        None => value.clone(),
    };
    if is_numpy(&numpy, "datetime64")? {
        let array = one_element(&numpy)?;
        return match (ArrayView::of::<i64>(&array)?.get(0), unit(&array.dtype())?) {
            (i64::MIN, _) => Err(PyValueError::new_err("is missing (NaT)")),
            (ticks, unit) => unit.and_then(|unit| of_ticks(ticks, unit)).ok_or_else(|| out_of_range(&numpy)),
        };
    }
    let calendar = Calendar::get(py)?;
    if value.is_instance(calendar.datetime.bind(py))? {
        let naive = value.call_method0(intern!(py, "utcoffset"))?.is_none();
        let since = time(&value.sub(if naive { &calendar.epoch } else { &calendar.epoch_utc })?)?;
        return in_range(nanoseconds(since)).ok_or_else(|| out_of_range(value));
    }
    if value.is_instance(calendar.date.bind(py))? {
        let days: i128 = value.call_method0(intern!(py, "toordinal"))?.extract()?;
        let midnight = Time { seconds: (days - DAYS_TO_1970) * 86_400, attoseconds: 0 };
        return in_range(nanoseconds(midnight)).ok_or_else(|| out_of_range(value));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return of_text(text);
    }
    if is_of(value, "decimal", "Decimal")? {
        return of_decimal(value);
    }
    let kind = value.get_type().name()?;
    if value.is_none() || kind == "NAType" {
        return Err(PyValueError::new_err("is missing"));
    }
    Err(PyTypeError::new_err(format!("is of type {kind}; {A_TIME}")))
}

const A_TIME: &str = "a time is a number of Unix seconds, a datetime, a date or text such as '2026-11-22T06:12:30Z'";

/// ISO 8601, by Python.
fn of_text(text: &Bound<'_, PyString>) -> PyResult<i64> {
    let py = text.py();
    match Calendar::get(py)?.datetime.bind(py).call_method1(intern!(py, "fromisoformat"), (text,)) {
        Ok(datetime) => read_moment(&datetime),
        Err(_) => Err(PyValueError::new_err(format!("is '{text}'; {A_TIME}"))),
    }
}

/// Unix seconds as a decimal, to the nearest nanosecond.
fn of_decimal(seconds: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = seconds.py();
    if seconds.call_method0(intern!(py, "is_nan"))?.extract()? {
        return Err(PyValueError::new_err("is missing (NaN)"));
    }
    if seconds.call_method0(intern!(py, "__abs__"))?.gt(LAST_SECOND)? {
        return Err(out_of_range(seconds));
    }
    let nanoseconds = seconds.mul(1_000_000_000)?.call_method0(intern!(py, "to_integral_value"))?;
    nanoseconds
        .call_method0(intern!(py, "__int__"))?
        .extract::<i128>()
        .map(in_range)?
        .ok_or_else(|| out_of_range(seconds))
}

fn out_of_range(value: &Bound<'_, PyAny>) -> PyErr {
    // Milliseconds mistaken for seconds lie far outside.
    PyValueError::new_err(format!("is {value}, outside the years 1677 to 2262 (numbers are Unix seconds)"))
}

/// Tells one time from many.
pub fn one_or_array<'py>(at: &Bound<'py, PyAny>) -> PyResult<Times<'py>> {
    let py = at.py();
    let one = |value: &Bound<'_, PyAny>| read_moment(value).map(Times::One).map_err(|error| named(py, "at", error));
    if at.is_exact_instance_of::<PyFloat>() || at.is_exact_instance_of::<PyInt>() {
        return one(at);
    }
    // For a column with a time zone pandas gives UTC if asked for datetime64, and objects if not.
    let kind = match at.getattr_opt(intern!(py, "dtype"))? {
        Some(dtype) => dtype.getattr_opt(intern!(py, "kind"))?,
        None => None,
    };
    let dates = kind.map_or(Ok(false), |kind| kind.eq("M"))?;
    let options = PyDict::new(py);
    if dates && at.cast::<PyUntypedArray>().is_err() && !is_numpy(at, "datetime64")? {
        options.set_item(intern!(py, "dtype"), "datetime64[ns]")?;
    }
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method(intern!(py, "asarray"), (at,), Some(&options))?.cast_into::<PyUntypedArray>()?;
    match array.ndim() {
        0 if array.dtype().kind() == b'O' => one(at),
        0 => one(&array.get_item(PyTuple::empty(py))?),
        1 => Ok(Times::Many(array)),
        ndim => Err(PyValueError::new_err(format!("at must have one dimension, got {ndim}"))),
    }
}

/// Nanoseconds since the Unix epoch of an array of times, of any type.
pub fn of_array(times: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<i64>> {
    let (py, dtype) = (times.py(), times.dtype());
    match dtype.kind() {
        b'M' => {
            let unit = unit(&dtype)?;
            let native = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
            each(times, &native, |ticks| unit.filter(|_| ticks != i64::MIN).and_then(|unit| of_ticks(ticks, unit)))
        }
        kind @ (b'i' | b'u') => {
            let signed = kind == b'i';
            let native = i64::get_dtype(py);
            // An unsigned number beyond the signed range has become negative.
            each(times, &native, |seconds: i64| of_whole_seconds(seconds).filter(|_| signed || seconds >= 0))
        }
        b'f' => each(times, &f64::get_dtype(py), |seconds| {
            let (moment, good) = of_seconds(seconds);
            good.then_some(moment)
        }),
        b'O' | b'U' | b'T' => {
            let mut moments = fallible::with_room(times.len()).map_err(raise)?;
            for i in 0..times.len() {
                let moment = read_moment(&times.get_item(i)?);
                moments.push(moment.map_err(|error| named(py, &format!("at[{i}]"), error))?);
            }
            Ok(moments)
        }
        _ => Err(PyTypeError::new_err(format!("at holds {dtype}; {A_TIME}"))),
    }
}

/// `convert` of each time, as a type that it can read; or an error that names the first it cannot convert.
fn each<T: Pod>(
    times: &Bound<'_, PyUntypedArray>,
    dtype: &Bound<'_, PyAny>,
    convert: impl Fn(T) -> Option<i64>,
) -> PyResult<Vec<i64>> {
    let py = times.py();
    let native = times.call_method1(intern!(py, "astype"), (dtype,))?.cast_into::<PyUntypedArray>()?;
    let lane = ArrayView::of::<T>(&native)?;
    let mut moments = fallible::with_room(lane.len()).map_err(raise)?;
    for (i, time) in lane.elements(0..lane.len()).enumerate() {
        let Some(moment) = convert(time) else {
            let time = times.get_item(i)?;
            let error = read_moment(&time).err().unwrap_or_else(|| out_of_range(&time));
            return Err(named(py, &format!("at[{i}]"), error));
        };
        moments.push(moment);
    }
    Ok(moments)
}

/// The same error, prefixed with the name of what it is about.
fn named(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    PyErr::from_type(error.get_type(py), format!("{name} {}", error.value(py)))
}

fn of_ticks(ticks: i64, unit: Unit) -> Option<i64> {
    in_range(nanoseconds(unit.instant(ticks)))
}

/// Nanoseconds, if they fit into 64 bits; the least number is NumPy's NaT.
fn in_range(nanoseconds: i128) -> Option<i64> {
    i64::try_from(nanoseconds).ok().filter(|&moment| moment != i64::MIN)
}

/// The last Unix second whose nanoseconds fit.
const LAST_SECOND: i64 = i64::MAX / 1_000_000_000;

fn of_whole_seconds(seconds: i64) -> Option<i64> {
    (seconds.unsigned_abs() <= LAST_SECOND as u64).then(|| seconds * 1_000_000_000)
}

/// Seconds from which on doubles are too far apart for nanoseconds, and are rounded to microseconds.
///
/// As doubles, today's Unix seconds are 0.24 µs apart, so a time of 0.1 s in a file is 0.1 s and up to 0.12 µs.
/// Rounding to microseconds removes the error; without it, two times exactly `lateness` apart may seem further apart.
/// Below 2²³ s (97 days, as in a simulation that starts at 0) doubles are 1.9 ns apart or less, and nanoseconds are
/// kept.
const FINE: f64 = (1u64 << 23) as f64;

/// Nanoseconds of Unix seconds, and whether they exist and are in range.
#[inline(always)]
pub fn of_seconds(seconds: f64) -> (i64, bool) {
    let size = seconds.abs();
    let (per_second, each) = if size < FINE { (1e9, 1) } else { (1e6, 1000) };
    (rounded(seconds * per_second).wrapping_mul(each), size <= LAST_SECOND as f64)
}

/// The nearest whole number, ties to even.
#[inline(always)]
fn rounded(value: f64) -> i64 {
    // From here to twice as much, the doubles are the whole numbers in order: a sum is rounded to one, and its bits
    // count them. Older processors have no instruction for it, and a call costs 5 ns.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    if value.abs() < (1u64 << 51) as f64 {
        (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i64
    } else {
        value.round_ties_even() as i64
    }
}
