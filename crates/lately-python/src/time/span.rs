//! Reads spans of time as whole nanoseconds.

use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::keys::array_view::ArrayView;
use crate::keys::calendar::{Calendar, of_timedelta, unit};
use crate::keys::classes::{is_numpy, one_element};
use lately::key::time::{Duration, Time, Unit};

/// Read a span of time, in nanoseconds.
///
/// Parameters
/// ----------
/// value : str, datetime.timedelta or numpy.timedelta64
///     Text is a sum of numbers with units, such as ``"10min"``, ``"1h30min"``, ``"1 hour"`` or ``"500ms"``. The units
///     are ns, us, ms, s, min (or m), h, d and w, and their names.
/// name : str
///     Name of the argument, for messages.
///
/// Returns
/// -------
/// int
///     0 or more, and below 2**63.
///
/// Raises
/// ------
/// TypeError
///     If `value` has another type. A bare number could have any unit.
/// ValueError
///     If `value` is negative, missing, longer than 292 years, finer than 1 ns, or text of another form.
///
/// Examples
/// --------
/// >>> read_span("1h30min", "window")
/// 5400000000000
#[pyfunction]
pub fn read_span(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let py = value.py();
    let nanoseconds = if let Ok(text) = value.cast::<PyString>() {
        of_text(text, name)?
    } else if is_numpy(value, "timedelta64")? {
        of_timedelta64(value, name)?
    } else if let Some(convert) = value.getattr_opt(intern!(py, "to_timedelta64"))? {
        // pandas' own timedelta is a subclass of `timedelta`, but finer.
        of_timedelta64(&convert.call0()?, name)?
    } else if value.is_instance(Calendar::get(py)?.timedelta.bind(py))? {
        nanoseconds(of_timedelta(value)?)
    } else {
        return Err(PyTypeError::new_err(format!(
            "{name} must be a span of time, such as '10min', a datetime.timedelta or a numpy.timedelta64; got {}",
            value.get_type().name()?
        )));
    };
    if nanoseconds < 0 {
        return Err(PyValueError::new_err(format!("{name} must not be negative, got {value}")));
    }
    let too_long = || PyValueError::new_err(format!("{name} must be shorter than 292 years, got {value}"));
    i64::try_from(nanoseconds).map(|nanoseconds| nanoseconds as u64).map_err(|_| too_long())
}

/// Returns whether an object has a type of spans.
pub fn is_span(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    Ok(value.is_instance_of::<PyString>()
        || is_numpy(value, "timedelta64")?
        || value.is_instance(Calendar::get(py)?.timedelta.bind(py))?)
}

/// Returns whole nanoseconds, rounded down, and the nearest `i128` for values beyond.
pub fn nanoseconds(time: Time) -> i128 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i128::from(time.attoseconds / 1_000_000_000))
}

fn of_timedelta64(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    let array = one_element(value)?;
    let ticks: i64 = ArrayView::of::<i64>(&array)?.get(0);
    if ticks == i64::MIN {
        return Err(PyValueError::new_err(format!("{name} is missing (NaT)")));
    }
    match unit(&array.dtype())? {
        Some(unit @ (Unit::Seconds(_) | Unit::Parts { per_second: ..=1_000_000_000, .. })) => {
            match unit.duration(ticks) {
                Duration::Exact(time) => Ok(nanoseconds(time)),
                Duration::Months(_) => unreachable!("seconds are no months"),
            }
        }
        _ => Err(PyValueError::new_err(format!(
            "{name} must be in weeks, days, hours, minutes, seconds, ms, us or ns, got {}",
            value.repr()?
        ))),
    }
}

fn of_text(text: &Bound<'_, PyString>, name: &str) -> PyResult<i128> {
    let expected = match text.to_str().ok().and_then(parse_sum) {
        Some((nanoseconds, 0)) => return Ok(nanoseconds),
        Some(_) => "whole nanoseconds",
        None => "a span of time such as '10min', '1 hour', '500ms' or '2d'",
    };
    let bare = text.to_str().is_ok_and(|text| text.trim().parse::<f64>().is_ok());
    let note = if bare { ", which has no unit" } else { "" };
    Err(PyValueError::new_err(format!("{name} must be {expected}, got {}{note}", text.repr()?)))
}

/// Parts of a nanosecond in which a sum of decimals is computed.
const PARTS: i128 = 10_i128.pow(DIGITS as u32);
/// Decimal digits of a fraction. A week has 2⁵·10¹¹ times an odd number of nanoseconds, so weeks with more digits are
/// never whole nanoseconds.
const DIGITS: usize = 18;

/// Parses a sum of decimals with units, into whole nanoseconds and parts of one; `None` for other text.
fn parse_sum(text: &str) -> Option<(i128, i128)> {
    let (mut rest, mut whole, mut parts) = (text.trim(), 0_i128, 0_i128);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = leading(&mut rest, |c| c.is_ascii_digit())?;
        let fraction = match rest.strip_prefix('.') {
            Some(after) => {
                rest = after;
                leading(&mut rest, |c| c.is_ascii_digit())?.trim_end_matches('0')
            }
            None => "",
        };
        rest = rest.trim_start();
        let unit = nanoseconds_of(leading(&mut rest, |c| matches!(c, 'a'..='z' | '\u{b5}' | '\u{3bc}'))?)?;
        rest = rest.trim_start();
        // A number with too many digits means too many years.
        whole = whole.saturating_add(number.parse().unwrap_or(i128::MAX).saturating_mul(unit));
        let digits = &fraction[..fraction.len().min(DIGITS)];
        parts += format!("{digits:0<DIGITS$}").parse::<i128>().ok()? * unit + i128::from(fraction.len() > DIGITS);
        (whole, parts) = (whole.saturating_add(parts / PARTS), parts % PARTS);
    }
    Some((whole, parts))
}

/// Splits off the leading characters that satisfy `is`; `None` without any.
fn leading<'a>(rest: &mut &'a str, is: impl Fn(char) -> bool) -> Option<&'a str> {
    let end = rest.find(|c| !is(c)).unwrap_or(rest.len());
    let (leading, other) = rest.split_at(end);
    *rest = other;
    (!leading.is_empty()).then_some(leading)
}

/// Returns the nanoseconds of a unit.
fn nanoseconds_of(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" | "nanosecond" | "nanoseconds" => 1,
        // The micro sign, or the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" => 1_000,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        "w" | "week" | "weeks" => 604_800_000_000_000,
        _ => return None,
    })
}
