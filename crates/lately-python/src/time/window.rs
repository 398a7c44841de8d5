//! Reads the argument `window`, and lengths in its unit.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::span::{is_span, read_span};
use crate::whole::WholeNumber;
use lately::clock::Window;
use lately::family::request::first_guess;

/// Reads a window: a whole number of insertions, or a span of time with lateness and capacity. If it `guesses`, a span
/// of time needs no capacity.
pub fn read(
    window: &Bound<'_, PyAny>,
    capacity: Option<WholeNumber>,
    lateness: Option<&Bound<'_, PyAny>>,
    guesses: bool,
) -> PyResult<Window> {
    if is_count(window)? {
        if capacity.is_some() || lateness.is_some() {
            return Err(PyValueError::new_err(
                "capacity and lateness are for windows of time; this one counts insertions",
            ));
        }
        let insertions = WholeNumber::read(window)?.within("window")?;
        return Ok(Window::Count { insertions });
    }
    if !is_span(window)? {
        return Err(PyTypeError::new_err(format!(
            "window must be a whole number of keys, or a span of time, such as '10min' or a datetime.timedelta; got {}",
            window.get_type().name()?
        )));
    }
    of_time(window, capacity, lateness, guesses)
}

/// Reads a window of time.
pub fn of_time(
    window: &Bound<'_, PyAny>,
    capacity: Option<WholeNumber>,
    lateness: Option<&Bound<'_, PyAny>>,
    guesses: bool,
) -> PyResult<Window> {
    let span = read_span(window, "window")?;
    let lateness = lateness.map_or(Ok(0), |lateness| read_span(lateness, "lateness"))?;
    let capacity = match capacity {
        Some(capacity) => capacity.within("capacity")?,
        None if guesses => first_guess(span, lateness),
        None => {
            return Err(PyTypeError::new_err("a window of time needs capacity: the number of keys expected within it"));
        }
    };
    Ok(Window::Time { span, lateness, capacity })
}

/// Reads the window of a filter that only counts insertions. A span of time is returned too, and rejected by the
/// filter.
pub fn insertions(window: &Bound<'_, PyAny>) -> PyResult<Window> {
    read(window, None, None, true)
}

/// Reads `max_ahead`: how far times may lie ahead of the wall clock, and `None` without a bound. Returns `None` for the
/// default, one window.
pub fn read_max_ahead(ahead: &Bound<'_, PyAny>, window: Window) -> PyResult<Option<Option<u64>>> {
    match window {
        _ if ahead.is_none() => Ok(Some(None)),
        _ if ahead.eq("window")? => Ok(None),
        Window::Time { .. } => Ok(Some(Some(read_span(ahead, "max_ahead")?))),
        Window::Count { .. } => Err(PyValueError::new_err(format!(
            "max_ahead is for windows of time, got {} for one of insertions: leave it out",
            ahead.repr()?
        ))),
    }
}

/// Returns whether a window is a number, and so counts insertions.
pub fn is_count(window: &Bound<'_, PyAny>) -> PyResult<bool> {
    let number =
        window.is_instance_of::<PyInt>() || window.is_instance_of::<PyFloat>() || window.hasattr("__index__")?;
    Ok(number && !window.is_instance_of::<PyBool>())
}

/// Reads a length in the unit of the window: insertions, or nanoseconds.
pub fn length(name: &str, value: &Bound<'_, PyAny>, window: Window) -> PyResult<u64> {
    match window {
        Window::Count { .. } => WholeNumber::read(value)?.within(name),
        Window::Time { .. } => read_span(value, name),
    }
}
