//! What a filter, or one that is only planned, promises and costs, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use lately::clock::Window;
use lately::shape::{Accesses, CacheLines};

/// The parameters of its paper that apply.
pub fn parameters<'py>(py: Python<'py>, all: Vec<(&'static str, u64)>) -> PyResult<Bound<'py, PyDict>> {
    all.into_iter().filter(|&(_, value)| value != 0).into_py_dict(py)
}

/// A slack in the unit of the window; infinite if it never ends.
pub fn slack(py: Python<'_>, window: Window, slack: u64) -> PyResult<Bound<'_, PyAny>> {
    match slack {
        u64::MAX => Ok(f64::INFINITY.into_pyobject(py)?.into_any()),
        slack => in_units(py, window, slack),
    }
}

/// Insertions as they are, nanoseconds as seconds.
pub fn in_units(py: Python<'_>, window: Window, length: u64) -> PyResult<Bound<'_, PyAny>> {
    match window {
        Window::Count { .. } => Ok(length.into_pyobject(py)?.into_any()),
        Window::Time { .. } => Ok((length as f64 / 1e9).into_pyobject(py)?.into_any()),
    }
}

/// Cache lines by what moves them.
pub fn cache_lines(py: Python<'_>, lines: CacheLines) -> PyResult<Bound<'_, PyDict>> {
    [("insert", lines.insert), ("hit", lines.hit), ("miss", lines.miss)].into_py_dict(py)
}

/// Expected accesses of Algorithm 1 of paper 1 by what a query finds; None for filters without its slices.
pub fn accesses(py: Python<'_>, accesses: Option<Accesses>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let named = |of: Accesses| {
        [("window", of.in_window), ("false_positive", of.false_positive), ("absent", of.absent)].into_py_dict(py)
    };
    accesses.map(named).transpose()
}

/// What the representation of a filter tells, made or not.
pub struct ReprFields {
    pub window: Window,
    pub endless: bool,
    pub fpr: f64,
    pub parameters: Vec<(&'static str, u64)>,
    pub nbytes: u64,
}

impl ReprFields {
    pub fn shown(&self, py: Python<'_>) -> PyResult<String> {
        let window = match self.window {
            _ if self.endless => format!("capacity={}", self.window.capacity()),
            Window::Count { insertions } => format!("window={insertions}"),
            Window::Time { span, .. } => format!("window={} s", in_units(py, self.window, span)?),
        };
        let parameters = self.parameters.iter().filter(|(_, value)| *value != 0);
        let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name}={value}")).collect();
        Ok(format!("{window} fpr={:.2e} {} nbytes={}", self.fpr, parameters.join(" "), self.nbytes))
    }
}
