//! Reads the moments of a batch: one for all keys, one for each, or the system's time.
//!
//! Arrays of the usual types are read here. If the times are in order, as in most streams, they are converted block by
//! block with the keys. Converting all of them first took more than a third of the time of insertions. `instant` reads
//! other types and reports invalid times. (We tried NumPy's conversion: 20 ns for a double, more than an insertion.)

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;
use numpy::datetime::{Datetime, units};
use numpy::{PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeWarning, PyUserWarning, PyValueError};
use pyo3::prelude::*;

use super::instant::{self, TimeArgument, of_seconds, one_or_array};
use crate::arrays::array_of;
use crate::calls::{caught, detached};
use crate::errors::raise;
use crate::keys::array_view::ArrayView;
use lately::Error;
use lately::clock::{self, Clock, Moments, TimeRange, Window, before, system};
use lately::memory::fallible;

const DATES: &CStr =
    c"the times look like dates, such as 20260131, or like years, but numbers are Unix seconds, by which all \
    of these lie in 1970: give datetimes or text such as '2026-01-31'";

const UNITS: &CStr =
    c"all times are numbers that lie before 1990 as Unix seconds: for milliseconds pass at.astype('datetime64[ms]'), \
    for seconds from a start at.astype('datetime64[s]')";

/// Least number of times for this warning. Fewer are an experiment.
const MANY: usize = 1000;

/// The moments of a batch, which owns them while it runs.
pub enum OwnedMoments {
    /// No moments: the window counts insertions.
    Untimed,
    /// One moment for all keys.
    At(i64),
    /// The time of the system's clock.
    Now(i64),
    /// One moment for each key.
    Each(Vec<i64>),
    /// One moment for each key, in non-decreasing order.
    InOrder(InOrder),
}

/// The times of an array, which are in order and in range, converted when they are read.
pub struct InOrder {
    len: usize,
    first: i64,
    last: i64,
    times: Box<dyn clock::TimeSource + Send + Sync>,
}

/// The times of an array, with their conversion, which preserves their order.
struct Converted<T, C> {
    view: ArrayView,
    convert: C,
    of: PhantomData<fn(T)>,
}

impl<T: Pod, C: Fn(T) -> (i64, bool) + Sync> clock::TimeSource for Converted<T, C> {
    #[inline(always)]
    fn moment(&self, i: usize) -> i64 {
        (self.convert)(self.view.get(i)).0
    }

    fn before(&self, range: Range<usize>, end: i64) -> usize {
        before(range, end, |i| self.moment(i), |i| self.view.prefetch(i))
    }

    fn write(&self, start: usize, moments: &mut [i64]) {
        for (time, moment) in self.view.elements(start..start + moments.len()).zip(moments) {
            *moment = (self.convert)(time).0;
        }
    }
}

impl OwnedMoments {
    /// Reads `at` for a number of keys. Without it, a window of time uses the system's clock.
    pub fn read(at: Option<&Bound<'_, PyAny>>, window: Window, keys: usize) -> PyResult<Self> {
        let Some(at) = at else {
            return Ok(match window {
                Window::Count { .. } => Self::Untimed,
                Window::Time { .. } => Self::Now(now_reporting_steps()?),
            });
        };
        caught(|| match one_or_array(at)? {
            // Without keys the time is not checked: a consumer may poll with any time and find no events.
            TimeArgument::One(_) if keys == 0 => Ok(Self::Each(Vec::new())),
            TimeArgument::One(moment) => Ok(Self::At(moment)),
            TimeArgument::Many(times) => Self::of_keys(&times, keys),
        })
    }

    /// Returns the moment of the first key, for a window of time.
    pub fn first(&self, clock: &Clock) -> Option<i64> {
        match self {
            Self::Untimed => None,
            Self::At(moment) => Some(*moment),
            Self::Now(now) => Some(clock.time_at(*now)),
            Self::Each(moments) => moments.first().copied(),
            Self::InOrder(times) => (times.len > 0).then_some(times.first),
        }
    }

    /// Reads an array with one time for each key.
    fn of_keys(times: &Bound<'_, PyUntypedArray>, keys: usize) -> PyResult<Self> {
        let fits = |given| match given == keys {
            true => Ok(()),
            false => {
                Err(PyValueError::new_err(format!("at has {given} times for {keys} keys: one each, or a single one")))
            }
        };
        fits(times.len())?;
        let moments = Self::of_array(times)?;
        // The length is checked again, because reading a subclass of ndarray may call code that changes it.
        match &moments {
            Self::Each(moments) => fits(moments.len())?,
            Self::InOrder(times) => fits(times.len)?,
            _ => {}
        }
        Ok(moments)
    }

    /// Reads an array of times. An error names the first time that is missing or out of range.
    fn of_array(times: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        match Self::of_common_type(times)? {
            Some(moments) => Ok(moments),
            None => instant::of_array(times).map(Self::Each),
        }
    }

    /// Reads an array of a usual type: float64, int64, or datetime64 from seconds to nanoseconds. `None` for other
    /// types, and if a time is missing or out of range.
    fn of_common_type(times: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Self>> {
        let whole = |unit: i64| {
            let most = i64::MAX as u64 / unit as u64;
            Self::of_view(times, move |time: i64| (time.wrapping_mul(unit), time.unsigned_abs() <= most))
        };
        if has_type::<f64>(times) {
            Self::of_view(times, of_seconds)
        } else if has_type::<i64>(times) || has_type::<Datetime<units::Seconds>>(times) {
            whole(1_000_000_000)
        } else if has_type::<Datetime<units::Milliseconds>>(times) {
            whole(1_000_000)
        } else if has_type::<Datetime<units::Microseconds>>(times) {
            whole(1_000)
        } else if has_type::<Datetime<units::Nanoseconds>>(times) {
            whole(1)
        } else {
            Ok(None)
        }
    }

    /// Converts the times of an array if all are valid. `convert` preserves their order, and returns whether a time is
    /// valid.
    fn of_view<T: Pod + PartialOrd>(
        times: &Bound<'_, PyUntypedArray>,
        convert: impl Fn(T) -> (i64, bool) + Copy + Send + Sync + 'static,
    ) -> PyResult<Option<Self>> {
        let view = ArrayView::of::<T>(times)?;
        let len = view.len();
        let Some(last) = len.checked_sub(1) else {
            return Ok(Some(Self::Each(Vec::new())));
        };
        if view.is_sorted::<T>() {
            // If the first and the last are valid, so are all between them.
            let ((first, first_is_valid), (last, last_is_valid)) = (convert(view.get(0)), convert(view.get(last)));
            return Ok((first_is_valid && last_is_valid).then(|| {
                Self::InOrder(InOrder {
                    len,
                    first,
                    last,
                    times: Box::new(Converted { view, convert, of: PhantomData }),
                })
            }));
        }
        let mut all_valid = true;
        let moments = fallible::collected(view.elements(0..len).map(|time| {
            let (moment, is_valid) = convert(time);
            all_valid &= is_valid;
            moment
        }))
        .map_err(raise)?;
        Ok(all_valid.then_some(Self::Each(moments)))
    }

    /// Checks the moments against a clock, with `new` as those of insertions.
    pub fn check(&self, py: Python<'_>, clock: &Clock, new: bool) -> PyResult<()> {
        match self {
            Self::Each(_) | Self::InOrder(_) => detached(py, || self.check_all(clock, new))?,
            _ => self.check_all(clock, new),
        }
        .map_err(raise)
    }

    /// Checks the moments, attached to the interpreter or not.
    fn check_all(&self, clock: &Clock, new: bool) -> Result<(), Error> {
        let check = |moments| if new { clock.check_new(moments).map(|_| ()) } else { clock.check(moments, false) };
        match self {
            // The system's clock is not read.
            Self::Untimed => clock.check(Moments::Untimed, new),
            Self::At(moment) => check(Moments::At(*moment)),
            Self::Now(moment) => check(Moments::Now(*moment)),
            Self::Each(moments) => check(Moments::Each(moments)),
            // No moment is earlier than the first or later than the last.
            Self::InOrder(times) => match check(Moments::InOrder(&[times.first, times.last])) {
                Err(_) => check(times.of(0..times.len)),
                accepted => accepted,
            },
        }
    }

    /// Warns of numbers that are probably no Unix seconds: dates (20260131) or years, or many that lie before 1990.
    fn warn_of_numbers(&self, py: Python<'_>) -> PyResult<()> {
        let second = |moment: i64| (moment.rem_euclid(1_000_000_000) == 0).then_some(moment / 1_000_000_000);
        let is_year = |&moment: &i64| second(moment).is_some_and(|year| (1900..2100).contains(&year));
        let is_date = |&moment: &i64| {
            let fits = |date| (1..=31).contains(&(date % 100)) && (1..=12).contains(&(date / 100 % 100));
            second(moment).is_some_and(|date| (1900..2100).contains(&(date / 10_000)) && fits(date))
        };
        let all_are = |moments: &[i64]| moments.iter().all(is_year) || moments.iter().all(is_date);
        let dates = match self {
            // One or two such numbers may be seconds of a simulation.
            Self::Each(all) if all.len() > 2 => all_are(all),
            Self::InOrder(times) if times.len > 2 && all_are(&[times.first, times.last]) => {
                let mut first = [0; 1024];
                let first = &mut first[..times.len.min(1024)];
                times.times.write(0, first);
                all_are(first)
            }
            _ => false,
        };
        let all_before = |year: i64| match self {
            Self::Each(all) => all.len() >= MANY && all.iter().all(|&moment| moment < year),
            Self::InOrder(times) => times.len >= MANY && times.last < year,
            _ => false,
        };
        let warning = match dates {
            true => DATES,
            false if all_before(20 * 365 * 86_400 * 1_000_000_000) => UNITS,
            false => return Ok(()),
        };
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), warning, 2)
    }

    /// Returns one moment for each of `n` keys, and `None` without moments.
    pub fn into_vec(self, n: usize) -> Result<Option<Vec<i64>>, Error> {
        Ok(match self {
            Self::Untimed => None,
            Self::At(moment) | Self::Now(moment) => Some(fallible::collected((0..n).map(|_| moment))?),
            Self::Each(moments) => Some(moments),
            Self::InOrder(times) => {
                let mut moments = fallible::zeroed(times.len)?;
                times.times.write(0, &mut moments);
                Some(moments)
            }
        })
    }

    /// Returns the moments of the keys in `range`, for an engine.
    #[inline(always)]
    pub fn of(&self, range: Range<usize>) -> Moments<'_> {
        match self {
            Self::Untimed => Moments::Untimed,
            Self::At(moment) => Moments::At(*moment),
            Self::Now(moment) => Moments::Now(*moment),
            Self::Each(moments) => Moments::Each(&moments[range]),
            Self::InOrder(times) => times.of(range),
        }
    }
}

impl InOrder {
    /// Returns the moments of a range.
    fn of(&self, range: Range<usize>) -> Moments<'_> {
        assert!(range.end <= self.len, "the range ends after the batch");
        Moments::TimeRange(TimeRange::new(&*self.times, range))
    }
}

/// Read one time or many, in nanoseconds since the Unix epoch.
///
/// Parameters
/// ----------
/// at : time, or n times in a list, ndarray, Series or Arrow array
///     Numbers are Unix seconds. Datetimes without a time zone are UTC.
/// warn : bool, default False
///     Warn of numbers that are probably no Unix seconds: dates, years, or a thousand and more before 1990.
///
/// Returns
/// -------
/// int or ndarray of int64, shape (n,)
///     A contiguous array for many. Floats of 2**23 s and more are rounded to microseconds.
///
/// Raises
/// ------
/// TypeError
///     If a time is neither a number nor a datetime.
/// ValueError
///     If a time is missing (NaN, NaT) or outside the years 1677 to 2262; the message names its position. Or if `at`
///     has two dimensions.
///
/// Examples
/// --------
/// >>> read_moments([0, 1.5])
/// array([         0, 1500000000])
#[pyfunction]
#[pyo3(signature = (at, *, warn=false))]
pub fn read_moments<'py>(at: &Bound<'py, PyAny>, warn: bool) -> PyResult<Bound<'py, PyAny>> {
    let times = match one_or_array(at)? {
        TimeArgument::One(moment) => return Ok(moment.into_pyobject(at.py())?.into_any()),
        TimeArgument::Many(times) => times,
    };
    let moments = OwnedMoments::of_array(&times)?;
    if warn && matches!(times.dtype().kind(), b'i' | b'u' | b'f') {
        moments.warn_of_numbers(at.py())?;
    }
    Ok(array_of(at.py(), moments.into_vec(times.len()).map_err(raise)?.unwrap_or_default())?.into_any())
}

/// Returns whether the elements of an array have this type.
fn has_type<T: numpy::Element>(array: &Bound<'_, PyUntypedArray>) -> bool {
    array.cast::<PyArray1<T>>().is_ok()
}

/// Returns the moment of a query without event time.
pub fn present(window: Window) -> Moments<'static> {
    match window {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { .. } => Moments::Now(system::now()),
    }
}

/// Returns the time of keys without one of their own, and warns once if the wall clock was set meanwhile.
fn now_reporting_steps() -> PyResult<i64> {
    let now = system::now();
    if let Some(step) = system::step(now) {
        let (seconds, way) = (step.unsigned_abs() as f64 / 1e9, if step < 0 { "back" } else { "ahead" });
        let message = CString::new(format!(
            "the wall clock was set {way} by {seconds:.0} s; filters without at= are not affected, because their time \
             passes by a clock that never steps"
        ))?;
        Python::attach(|py| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 2))?;
    }
    Ok(now)
}
