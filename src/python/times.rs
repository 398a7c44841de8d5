//! Spans and moments of time, from whatever Python holds them in: `lately._time` reads them, this passes them on.

use std::time::{SystemTime, UNIX_EPOCH};

use numpy::datetime::{Datetime, units};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use super::whole::Whole;
use crate::clock::{Moments, Window};

/// The window a user asked for: a whole number of insertions, or a span of time with its lateness and capacity.
pub fn window(
    window: &Bound<'_, PyAny>,
    capacity: Option<Whole>,
    lateness: Option<&Bound<'_, PyAny>>,
) -> PyResult<Window> {
    if counts(window)? {
        if capacity.is_some() || lateness.is_some() {
            return Err(PyValueError::new_err(
                "capacity and lateness are for windows of time; this one counts insertions",
            ));
        }
        let insertions = Whole::of("window", window)?.within("window")?;
        return Ok(Window::Count { insertions });
    }
    span_window(window, capacity, lateness)
}

/// The window of time a user asked for.
pub fn span_window(
    window: &Bound<'_, PyAny>,
    capacity: Option<Whole>,
    lateness: Option<&Bound<'_, PyAny>>,
) -> PyResult<Window> {
    let span_of_window = span("window", window)?;
    let Some(capacity) = capacity else {
        return Err(PyTypeError::new_err("a window of time needs capacity: the number of keys expected within it"));
    };
    let lateness = lateness.map_or(Ok(0), |lateness| span("lateness", lateness))?;
    Ok(Window::Time { span: span_of_window, lateness, capacity: capacity.within("capacity")? })
}

/// The window of a filter that only counts insertions. A span of time is passed on, for the filter to refuse.
pub fn insertions(asked: &Bound<'_, PyAny>) -> PyResult<Window> {
    let capacity = if counts(asked)? { None } else { Some(Whole::new(1)) };
    window(asked, capacity, None)
}

/// Whether a window is a whole number.
fn counts(window: &Bound<'_, PyAny>) -> PyResult<bool> {
    let whole = window.is_instance_of::<PyInt>() || window.hasattr("__index__")?;
    Ok(whole && !window.is_instance_of::<PyBool>())
}

/// A length in the unit of the window: insertions, or nanoseconds.
pub fn length(name: &str, value: &Bound<'_, PyAny>, window: Window) -> PyResult<u64> {
    match window {
        Window::Count { .. } => Whole::of(name, value)?.within(name),
        Window::Time { .. } => span(name, value),
    }
}

/// Nanoseconds of a span of time.
fn span(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.py().import("lately._time")?.call_method1("span", (value, name))?.extract()
}

/// The moments of a batch, held for as long as it takes.
pub enum OwnedMoments {
    /// Windows of insertions.
    Untimed,
    /// One for all keys.
    At(i64),
    /// Nobody says: the system's clock.
    Now(i64),
    /// One per key.
    Each(Vec<i64>),
}

impl OwnedMoments {
    /// Reads `at`; without it, a window of time takes the system's clock.
    pub fn read(at: Option<&Bound<'_, PyAny>>, window: Window, keys: usize) -> PyResult<Self> {
        let Some(at) = at else {
            return Ok(match window {
                Window::Count { .. } => Self::Untimed,
                Window::Time { .. } => Self::Now(now()),
            });
        };
        let moments = at.py().import("lately._time")?.call_method1("moments", (at,))?;
        if let Ok(moment) = moments.extract() {
            return Ok(Self::At(moment));
        }
        let moments: PyReadonlyArray1<'_, i64> = moments.extract()?;
        if moments.len() != keys {
            let given = moments.len();
            return Err(PyValueError::new_err(format!(
                "at has {given} times for {keys} keys: one each, or a single one"
            )));
        }
        Ok(Self::Each(moments.as_slice()?.to_vec()))
    }

    /// As the engine takes them.
    pub fn borrow(&self) -> Moments<'_> {
        match self {
            Self::Untimed => Moments::Untimed,
            Self::At(moment) => Moments::At(*moment),
            Self::Now(moment) => Moments::Now(*moment),
            Self::Each(moments) => Moments::Each(moments),
        }
    }
}

/// Unix seconds that nanoseconds have room for.
const LAST_SECOND: i64 = i64::MAX / 1_000_000_000;
/// Seconds from which on doubles are too far apart to be nanoseconds, and are rounded to microseconds.
const FINE: f64 = (1u64 << 23) as f64;

/// Nanoseconds since 1970, shape (n,), of times as most arrays hold them: float64, int64, datetime64 from seconds to
/// nanoseconds. None of any others, and where one is missing or out of range: `lately._time`, of which this is the quick
/// part, knows what to say. (An array of doubles took 20 ns a time in NumPy, more than an insertion.)
#[pyfunction]
pub fn nanoseconds<'py>(times: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, PyArray1<i64>>> {
    fn scaled<U: numpy::datetime::Unit>(times: &Bound<'_, PyUntypedArray>, unit: i64) -> Option<Vec<i64>> {
        each::<Datetime<U>>(times, |time| {
            let time = i64::from(time);
            (time.wrapping_mul(unit), time.unsigned_abs() <= i64::MAX as u64 / unit as u64)
        })
    }
    let found = each::<f64>(times, of_seconds)
        .or_else(|| {
            each::<i64>(times, |seconds| {
                (seconds.wrapping_mul(1_000_000_000), seconds.unsigned_abs() <= LAST_SECOND as u64)
            })
        })
        .or_else(|| scaled::<units::Nanoseconds>(times, 1))
        .or_else(|| scaled::<units::Microseconds>(times, 1_000))
        .or_else(|| scaled::<units::Milliseconds>(times, 1_000_000))
        .or_else(|| scaled::<units::Seconds>(times, 1_000_000_000))?;
    Some(PyArray1::from_vec(times.py(), found))
}

/// What `convert` makes of each time, of an array of that type, if all are good.
fn each<T: Element + Copy>(times: &Bound<'_, PyUntypedArray>, convert: impl Fn(T) -> (i64, bool)) -> Option<Vec<i64>> {
    let times = times.cast::<PyArray1<T>>().ok()?.try_readonly().ok()?;
    let mut good = true;
    let one = |&time: &T| {
        let (nanoseconds, is_good) = convert(time);
        good &= is_good;
        nanoseconds
    };
    let found: Vec<i64> = match times.as_slice() {
        Ok(times) => times.iter().map(one).collect(),
        Err(_) => times.as_array().iter().map(one).collect(),
    };
    good.then_some(found)
}

/// Nanoseconds of Unix seconds, and whether they are there and in range.
#[inline(always)]
fn of_seconds(seconds: f64) -> (i64, bool) {
    let size = seconds.abs();
    let (per_second, each) = if size < FINE { (1e9, 1) } else { (1e6, 1000) };
    (rounded(seconds * per_second).wrapping_mul(each), size <= LAST_SECOND as f64)
}

/// The nearest whole number, of two the even one.
#[inline(always)]
fn rounded(value: f64) -> i64 {
    // Doubles from here to twice as much are whole, so that a sum is rounded to them. Older processors have no
    // instruction for it, and a call costs 5 ns.
    const WHOLE: f64 = (1u64 << 52) as f64;
    if value.abs() < WHOLE / 2.0 { (value + 1.5 * WHOLE - 1.5 * WHOLE) as i64 } else { value.round_ties_even() as i64 }
}

/// Nanoseconds since the Unix epoch by the system's clock.
fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
