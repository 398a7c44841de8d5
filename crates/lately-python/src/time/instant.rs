//! Reads times as nanoseconds since 1970.

use numpy::prelude::*;
use numpy::{Element, PyUntypedArray};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use bytemuck::Pod;

use super::span::nanoseconds;
use crate::errors::raise;
use crate::keys::array_view::ArrayView;
use crate::keys::calendar::{Calendar, midnight, unit};
use crate::keys::classes::{is_instance_of, is_numpy, one_element};
use lately::key::time::Unit;
use lately::memory::fallible;

/// The argument `at`: one time in nanoseconds, or an array of times of any type.
pub enum TimeArgument<'py> {
    One(i64),
    Many(Bound<'py, PyUntypedArray>),
}

/// Read one time, in nanoseconds since the Unix epoch.
///
/// Parameters
/// ----------
/// value : int, float, Decimal, datetime.datetime, numpy.datetime64, datetime.date or str
///     Numbers are Unix seconds. Datetimes without a time zone are UTC. A date is its midnight. Text has a format of
///     ISO 8601, and is read to the microsecond.
///
/// Returns
/// -------
/// int
///     In the range of a signed 64-bit integer. Floats of 2**23 s and more are rounded to microseconds.
///
/// Raises
/// ------
/// TypeError
///     If `value` has another type.
/// ValueError
///     If `value` is missing (NaN, NaT) or outside the years 1677 to 2262.
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
        let (time, _) = calendar.since_1970(value)?;
        return in_range(nanoseconds(time)).ok_or_else(|| out_of_range(value));
    }
    if value.is_instance(calendar.date.bind(py))? {
        return in_range(nanoseconds(midnight(value)?)).ok_or_else(|| out_of_range(value));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return of_text(text);
    }
    if is_instance_of(value, "decimal", "Decimal")? {
        return of_decimal(value);
    }
    let kind = value.get_type().name()?;
    if value.is_none() || kind == "NAType" {
        return Err(PyValueError::new_err("is missing"));
    }
    Err(PyTypeError::new_err(format!("is of type {kind}; {EXPECTED}")))
}

/// What a time must be, for messages.
const EXPECTED: &str = "a time is a number of Unix seconds, a datetime, a date or text such as '2026-11-22T06:12:30Z'";

/// Parses ISO 8601, by Python.
fn of_text(text: &Bound<'_, PyString>) -> PyResult<i64> {
    let py = text.py();
    // NumPy makes strings of any 32-bit numbers, which Python encodes unchecked; pyo3 panics where it makes a message
    // of such bytes.
    if !text.to_str().is_ok_and(|text| std::str::from_utf8(text.as_bytes()).is_ok()) {
        return Err(PyValueError::new_err(format!("is text that is not valid Unicode; {EXPECTED}")));
    }
    match Calendar::get(py)?.datetime.bind(py).call_method1(intern!(py, "fromisoformat"), (text,)) {
        Ok(datetime) => read_moment(&datetime),
        Err(_) => Err(PyValueError::new_err(format!("is '{text}'; {EXPECTED}"))),
    }
}

/// Reads Unix seconds of a decimal, to the nearest nanosecond.
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

/// Returns the error for a time outside the range.
fn out_of_range(value: &Bound<'_, PyAny>) -> PyErr {
    // Milliseconds that were passed as seconds lie far outside.
    PyValueError::new_err(format!("is {value}, outside the years 1677 to 2262 (numbers are Unix seconds)"))
}

/// Reads the argument `at`.
pub fn one_or_array<'py>(at: &Bound<'py, PyAny>) -> PyResult<TimeArgument<'py>> {
    let py = at.py();
    let one =
        |value: &Bound<'_, PyAny>| read_moment(value).map(TimeArgument::One).map_err(|error| named(py, "at", error));
    if at.is_exact_instance_of::<PyFloat>() || at.is_exact_instance_of::<PyInt>() {
        return one(at);
    }
    // pandas converts a column with a time zone to UTC for datetime64, and to objects otherwise.
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
    if is_instance_of(at, "numpy.ma", "MaskedArray")? {
        let mask = numpy.getattr(intern!(py, "ma"))?.call_method1(intern!(py, "getmaskarray"), (at,))?;
        if mask.call_method0(intern!(py, "any"))?.is_truthy()? {
            let place = if mask.len().is_ok() { format!("at[{}]", mask.call_method0("argmax")?) } else { "at".into() };
            return Err(PyValueError::new_err(format!("{place} is missing (masked)")));
        }
    }
    let array = numpy.call_method(intern!(py, "asarray"), (at,), Some(&options))?.cast_into::<PyUntypedArray>()?;
    match array.ndim() {
        0 if array.dtype().kind() == b'O' => one(at),
        0 => one(&array.get_item(PyTuple::empty(py))?),
        1 => Ok(TimeArgument::Many(array)),
        ndim => Err(PyValueError::new_err(format!("at must have one dimension, got {ndim}"))),
    }
}

/// Reads an array of times of any type, in nanoseconds since the Unix epoch.
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
            // Unsigned numbers above the signed range are negative here.
            each(times, &native, |seconds: i64| of_whole_seconds(seconds).filter(|_| signed || seconds >= 0))
        }
        b'f' => each(times, &f64::get_dtype(py), |seconds| {
            let (moment, is_valid) = of_seconds(seconds);
            is_valid.then_some(moment)
        }),
        b'O' | b'U' | b'T' => {
            let mut moments = fallible::with_room(times.len()).map_err(raise)?;
            for i in 0..times.len() {
                let moment = read_moment(&times.get_item(i)?);
                moments.push(moment.map_err(|error| named(py, &format!("at[{i}]"), error))?);
            }
            Ok(moments)
        }
        _ => Err(PyTypeError::new_err(format!("at is an array of {dtype}; {EXPECTED}"))),
    }
}

/// Converts each time, as an array of `dtype`. An error names the first time that `convert` rejects.
fn each<T: Pod>(
    times: &Bound<'_, PyUntypedArray>,
    dtype: &Bound<'_, PyAny>,
    convert: impl Fn(T) -> Option<i64>,
) -> PyResult<Vec<i64>> {
    let py = times.py();
    let native = times.call_method1(intern!(py, "astype"), (dtype,))?.cast_into::<PyUntypedArray>()?;
    let view = ArrayView::of::<T>(&native)?;
    let mut moments = fallible::with_room(view.len()).map_err(raise)?;
    for (i, time) in view.elements(0..view.len()).enumerate() {
        let Some(moment) = convert(time) else {
            let time = times.get_item(i)?;
            let error = read_moment(&time).err().unwrap_or_else(|| out_of_range(&time));
            return Err(named(py, &format!("at[{i}]"), error));
        };
        moments.push(moment);
    }
    Ok(moments)
}

/// Returns an error whose message starts with `name`.
///
/// Subclasses become one of these three types: a `UnicodeDecodeError` cannot be made of a message. An error of another
/// type, such as a signal's, stays as it is.
fn named(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let message = format!("{name} {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else if error.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(message)
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(message)
    } else {
        error
    }
}

/// Returns the nanoseconds of a time in a unit, if they are in range.
fn of_ticks(ticks: i64, unit: Unit) -> Option<i64> {
    in_range(nanoseconds(unit.instant(ticks)))
}

/// Returns nanoseconds that fit into 64 bits. The least number is NumPy's NaT.
fn in_range(nanoseconds: i128) -> Option<i64> {
    i64::try_from(nanoseconds).ok().filter(|&moment| moment != i64::MIN)
}

/// The last Unix second whose nanoseconds fit.
const LAST_SECOND: i64 = i64::MAX / 1_000_000_000;

/// Returns the nanoseconds of Unix seconds, if they are in range.
fn of_whole_seconds(seconds: i64) -> Option<i64> {
    (seconds.unsigned_abs() <= LAST_SECOND as u64).then(|| seconds * 1_000_000_000)
}

/// Seconds from which on doubles are too far apart for nanoseconds. They are rounded to microseconds.
///
/// Doubles of today's Unix seconds are 0.24 µs apart, so a time with the fraction 0.1 s is up to 0.12 µs off. Rounding
/// to microseconds removes the error. Without it, two times exactly `lateness` apart may appear further apart. Below
/// 2²³ s (97 days, as in a simulation that starts at 0) doubles are at most 1.9 ns apart and rounded to nanoseconds.
const FINE: f64 = (1u64 << 23) as f64;

/// Returns the nanoseconds of Unix seconds, and whether they are a number in range.
#[inline(always)]
pub fn of_seconds(seconds: f64) -> (i64, bool) {
    let size = seconds.abs();
    let (per_second, each) = if size < FINE { (1e9, 1) } else { (1e6, 1000) };
    (rounded(seconds * per_second).wrapping_mul(each), size <= LAST_SECOND as f64)
}

/// Returns the nearest whole number, ties to even.
#[inline(always)]
fn rounded(value: f64) -> i64 {
    // Doubles near this one are whole numbers, and their bits count them in order. The sum is rounded to one of them.
    // Older processors have no instruction for it, and a call costs 5 ns.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    if value.abs() < (1u64 << 51) as f64 {
        (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i64
    } else {
        value.round_ties_even() as i64
    }
}
