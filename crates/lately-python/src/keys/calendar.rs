//! Python's and NumPy's types of time, as times of the core.

use numpy::PyArrayDescr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::lazy::get_or_make;
use lately::key::time::{Time, Unit};

/// 1970-01-01 in Python's count of days, which starts with year 1.
const DAYS_TO_1970: i128 = 719_163;

/// The classes of Python's module `datetime`, and 1970-01-01 without and with a time zone.
pub struct Calendar {
    pub date: Py<PyAny>,
    pub datetime: Py<PyAny>,
    pub timedelta: Py<PyAny>,
    epoch: Py<PyAny>,
    epoch_utc: Py<PyAny>,
}

impl Calendar {
    /// Returns the classes, imported once.
    pub fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static CALENDAR: PyOnceLock<Calendar> = PyOnceLock::new();
        get_or_make(py, &CALENDAR, || {
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

    /// Returns the time of a `datetime` since 1970, in UTC if it has a time zone, and whether it has one.
    pub fn since_1970(&self, datetime: &Bound<'_, PyAny>) -> PyResult<(Time, bool)> {
        let aware = !datetime.call_method0(intern!(datetime.py(), "utcoffset"))?.is_none();
        let epoch = if aware { &self.epoch_utc } else { &self.epoch };
        Ok((of_timedelta(&datetime.sub(epoch)?)?, aware))
    }
}

/// Returns the midnight of a `date`.
pub fn midnight(date: &Bound<'_, PyAny>) -> PyResult<Time> {
    let days: i128 = date.call_method0(intern!(date.py(), "toordinal"))?.extract()?;
    Ok(Time { seconds: (days - DAYS_TO_1970) * 86_400, attoseconds: 0 })
}

/// Returns the time that a `timedelta` spans.
pub fn of_timedelta(delta: &Bound<'_, PyAny>) -> PyResult<Time> {
    let py = delta.py();
    let days: i128 = delta.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i128 = delta.getattr(intern!(py, "seconds"))?.extract()?;
    let microseconds: u64 = delta.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok(Time { seconds: days * 86_400 + seconds, attoseconds: microseconds * 1_000_000_000_000 })
}

/// Returns the unit of a `datetime64` or `timedelta64`; `None` for the generic unit.
pub fn unit(dtype: &Bound<'_, PyArrayDescr>) -> PyResult<Option<Unit>> {
    let py = dtype.py();
    let data = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "datetime_data"), (dtype,))?;
    let (code, count): (String, u64) = data.extract()?;
    Ok(Unit::from_numpy(&code, count))
}
