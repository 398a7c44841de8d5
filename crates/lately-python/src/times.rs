//! Windows, from any Python object.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::spans::{is_span, read_span};
use super::whole::Whole;
use lately::clock::Window;

/// The window a user asked for: a whole number of insertions, or a span of time with lateness and capacity.
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
        let insertions = Whole::read(window)?.within("window")?;
        return Ok(Window::Count { insertions });
    }
    if !is_span(window)? {
        return Err(PyTypeError::new_err(format!(
            "window must be a whole number of keys, or a span of time, such as '10min' or a datetime.timedelta; got {}",
            window.get_type().name()?
        )));
    }
    span_window(window, capacity, lateness)
}

/// The window of time a user asked for.
pub fn span_window(
    window: &Bound<'_, PyAny>,
    capacity: Option<Whole>,
    lateness: Option<&Bound<'_, PyAny>>,
) -> PyResult<Window> {
    let span_of_window = read_span(window, "window")?;
    let Some(capacity) = capacity else {
        return Err(PyTypeError::new_err("a window of time needs capacity: the number of keys expected within it"));
    };
    let lateness = lateness.map_or(Ok(0), |lateness| read_span(lateness, "lateness"))?;
    Ok(Window::Time { span: span_of_window, lateness, capacity: capacity.within("capacity")? })
}

/// The window of a filter that only counts insertions. A span of time is passed on; the filter refuses it.
pub fn insertions(asked: &Bound<'_, PyAny>) -> PyResult<Window> {
    let capacity = if counts(asked)? { None } else { Some(Whole::new(1)) };
    window(asked, capacity, None)
}

/// Whether a window is a number, which has to be whole.
pub fn counts(window: &Bound<'_, PyAny>) -> PyResult<bool> {
    let number =
        window.is_instance_of::<PyInt>() || window.is_instance_of::<PyFloat>() || window.hasattr("__index__")?;
    Ok(number && !window.is_instance_of::<PyBool>())
}

/// A length in the unit of the window: insertions, or nanoseconds.
pub fn length(name: &str, value: &Bound<'_, PyAny>, window: Window) -> PyResult<u64> {
    match window {
        Window::Count { .. } => Whole::read(value)?.within(name),
        Window::Time { .. } => read_span(value, name),
    }
}
