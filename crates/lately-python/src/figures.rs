//! Converts the figures of a filter, built or only planned, into Python objects.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use lately::clock::{Clock, Window};
use lately::family::{Accesses, CacheLines};

/// Returns the parameters of the paper, without those that are 0.
pub fn parameters<'py>(py: Python<'py>, all: Vec<(&'static str, u64)>) -> PyResult<Bound<'py, PyDict>> {
    all.into_iter().filter(|&(_, value)| value != 0).into_py_dict(py)
}

/// Returns a length in the unit of the window: insertions as an int, or seconds as a float.
pub fn length(py: Python<'_>, window: Window, length: u64) -> PyResult<Bound<'_, PyAny>> {
    match window {
        Window::Count { .. } => Ok(length.into_pyobject(py)?.into_any()),
        Window::Time { .. } => Ok((length as f64 / 1e9).into_pyobject(py)?.into_any()),
    }
}

/// Returns the length of the window, and `None` if nothing is forgotten.
pub fn window<'py>(py: Python<'py>, clock: &Clock) -> PyResult<Option<Bound<'py, PyAny>>> {
    let window = clock.window();
    (!clock.endless()).then(|| length(py, window, window.length())).transpose()
}

/// Returns the slack in the unit of the window, and infinity for the largest number.
pub fn slack(py: Python<'_>, window: Window, slack: u64) -> PyResult<Bound<'_, PyAny>> {
    match slack {
        u64::MAX => Ok(f64::INFINITY.into_pyobject(py)?.into_any()),
        slack => length(py, window, slack),
    }
}

/// Returns the lateness in seconds, and `None` for a window of insertions.
pub fn lateness(window: Window) -> Option<f64> {
    match window {
        Window::Count { .. } => None,
        Window::Time { lateness, .. } => Some(lateness as f64 / 1e9),
    }
}

/// Returns in seconds how far event times may lie ahead; `None` without such a limit, and for a window of insertions.
pub fn max_ahead(clock: &Clock) -> Option<f64> {
    match clock.window() {
        Window::Count { .. } => None,
        Window::Time { .. } => clock.max_ahead().map(|ahead| ahead as f64 / 1e9),
    }
}

/// Returns the latest time of the clock as a `numpy.datetime64`.
pub fn latest<'py>(py: Python<'py>, clock: &Clock) -> PyResult<Option<Bound<'py, PyAny>>> {
    let datetime64 = |latest| py.import("numpy")?.getattr("datetime64")?.call1((latest, "ns"));
    clock.latest().map(datetime64).transpose()
}

/// Returns the cache lines of an insertion and of queries.
pub fn cache_lines(py: Python<'_>, lines: CacheLines) -> PyResult<Bound<'_, PyDict>> {
    [("insert", lines.insert), ("hit", lines.hit), ("miss", lines.miss)].into_py_dict(py)
}

/// Returns the expected accesses of Algorithm 1 of paper 1, by the answer; `None` for filters without its slices.
pub fn accesses(py: Python<'_>, accesses: Option<Accesses>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let by_answer = |of: Accesses| {
        [("window", of.in_window), ("false_positive", of.false_positive), ("absent", of.absent)].into_py_dict(py)
    };
    accesses.map(by_answer).transpose()
}

/// What the `repr` of a filter shows, built or planned.
pub struct ReprFields {
    pub window: Window,
    pub endless: bool,
    pub fpr: f64,
    pub parameters: Vec<(&'static str, u64)>,
    pub nbytes: u64,
}

impl ReprFields {
    /// Returns the fields as `name=value`.
    pub fn text(&self, py: Python<'_>) -> PyResult<String> {
        let window = match self.window {
            _ if self.endless => format!("capacity={}", self.window.capacity()),
            Window::Count { insertions } => format!("window={insertions}"),
            Window::Time { span, .. } => format!("window={} s", length(py, self.window, span)?),
        };
        let parameters = self.parameters.iter().filter(|(_, value)| *value != 0);
        let parameters: String = parameters.map(|(name, value)| format!("{name}={value} ")).collect();
        Ok(format!("{window} fpr={:.2e} {parameters}nbytes={}", self.fpr, self.nbytes))
    }
}
