//! Spans and moments of time, from whatever Python holds them in: `lately._time` reads them, this passes them on.

use std::time::{SystemTime, UNIX_EPOCH};

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
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

/// Nanoseconds since the Unix epoch by the system's clock.
fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
