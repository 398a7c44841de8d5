//! The moments of a batch: one, the system's, or one a key, from any Python object.
//!
//! Arrays of the usual types are read here. If they are in order, as most streams are, they are read block by block
//! with the keys: reading all of them first took longer than a third of an insertion. `instants` reads the other types,
//! and reports bad times. (NumPy took 20 ns a time for an array of doubles, more than an insertion.)

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use bytemuck::Pod;
use numpy::datetime::{Datetime, units};
use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;

use super::calls::{caught, detached};
use super::instants::{self, Times, of_seconds, one_or_array};
use super::keys::array_view::ArrayView;
use crate::errors::raise;
use lately::Error;
use lately::clock::{self, Clock, Moments, TimeRange, Window, before};
use lately::memory::fallible;

const DATES: &CStr =
    c"the times look like dates, such as 20260131, or like years, but numbers are Unix seconds, by which all \
    of these lie in 1970: give datetimes or text such as '2026-01-31'";

/// The moments of a batch, owned while it runs.
pub enum OwnedMoments {
    /// Windows of insertions.
    Untimed,
    /// One for all keys.
    At(i64),
    /// The system's clock.
    Now(i64),
    /// One per key.
    Each(Vec<i64>),
    /// The same, in non-decreasing order.
    InOrder(InOrder),
}

/// Times of an array, in order and in range, converted as needed.
pub struct InOrder {
    len: usize,
    first: i64,
    last: i64,
    times: Box<dyn clock::TimeSource + Send + Sync>,
}

/// The times of an array, and how they are converted, which keeps their order.
struct Converted<T, C> {
    lane: ArrayView,
    convert: C,
    of: PhantomData<fn(T)>,
}

impl<T: Pod, C: Fn(T) -> (i64, bool) + Sync> clock::TimeSource for Converted<T, C> {
    #[inline(always)]
    fn moment(&self, i: usize) -> i64 {
        (self.convert)(self.lane.get(i)).0
    }

    fn before(&self, range: Range<usize>, end: i64) -> usize {
        before(range, end, |i| self.moment(i), |i| self.lane.fetch(i))
    }

    fn write(&self, start: usize, moments: &mut [i64]) {
        for (time, moment) in self.lane.elements(start..start + moments.len()).zip(moments) {
            *moment = (self.convert)(time).0;
        }
    }
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
        caught(|| match one_or_array(at)? {
            // No key has come at that time, so it is neither late nor ahead: a consumer polls, and there is nothing.
            Times::One(_) if keys == 0 => Ok(Self::Each(Vec::new())),
            Times::One(moment) => Ok(Self::At(moment)),
            Times::Many(times) => Self::of_keys(&times, keys),
        })
    }

    /// The moment of the first key, if the window is one of time.
    pub fn first(&self) -> Option<i64> {
        match self {
            Self::Untimed => None,
            Self::At(moment) | Self::Now(moment) => Some(*moment),
            Self::Each(moments) => moments.first().copied(),
            Self::InOrder(times) => (times.len > 0).then_some(times.first),
        }
    }

    /// The moments of an array with one time per key.
    fn of_keys(times: &Bound<'_, PyUntypedArray>, keys: usize) -> PyResult<Self> {
        let fits = |given| match given == keys {
            true => Ok(()),
            false => {
                Err(PyValueError::new_err(format!("at has {given} times for {keys} keys: one each, or a single one")))
            }
        };
        fits(times.len())?;
        let moments = Self::of_array(times)?;
        // The length is checked again: reading a subclass of ndarray may call the user's code.
        match &moments {
            Self::Each(moments) => fits(moments.len())?,
            Self::InOrder(times) => fits(times.len)?,
            _ => {}
        }
        Ok(moments)
    }

    /// The moments of an array, or an error that names the first one missing or out of range.
    fn of_array(times: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        match Self::of_usual(times)? {
            Some(moments) => Ok(moments),
            None => instants::of_array(times).map(Self::Each),
        }
    }

    /// The moments of an array of a usual type: float64, int64, datetime64 from seconds to nanoseconds. `None` for
    /// other types, and if a time is missing or out of range.
    fn of_usual(times: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Self>> {
        let whole = |unit: i64| {
            let most = i64::MAX as u64 / unit as u64;
            Self::of_lane(times, move |time: i64| (time.wrapping_mul(unit), time.unsigned_abs() <= most))
        };
        if is_of::<f64>(times) {
            Self::of_lane(times, of_seconds)
        } else if is_of::<i64>(times) || is_of::<Datetime<units::Seconds>>(times) {
            whole(1_000_000_000)
        } else if is_of::<Datetime<units::Milliseconds>>(times) {
            whole(1_000_000)
        } else if is_of::<Datetime<units::Microseconds>>(times) {
            whole(1_000)
        } else if is_of::<Datetime<units::Nanoseconds>>(times) {
            whole(1)
        } else {
            Ok(None)
        }
    }

    /// `convert` of each time of an array, if all are valid. `convert` keeps their order.
    fn of_lane<T: Pod + PartialOrd>(
        times: &Bound<'_, PyUntypedArray>,
        convert: impl Fn(T) -> (i64, bool) + Copy + Send + Sync + 'static,
    ) -> PyResult<Option<Self>> {
        let lane = ArrayView::of::<T>(times)?;
        let len = lane.len();
        let Some(last) = len.checked_sub(1) else {
            return Ok(Some(Self::Each(Vec::new())));
        };
        if lane.is_sorted::<T>() {
            // What lies between the first and the last is as good as they are.
            let ((first, first_is_good), (last, last_is_good)) = (convert(lane.get(0)), convert(lane.get(last)));
            return Ok((first_is_good && last_is_good).then(|| {
                Self::InOrder(InOrder {
                    len,
                    first,
                    last,
                    times: Box::new(Converted { lane, convert, of: PhantomData }),
                })
            }));
        }
        let mut good = true;
        let moments = fallible::collected(lane.elements(0..len).map(|time| {
            let (moment, is_good) = convert(time);
            good &= is_good;
            moment
        }))
        .map_err(raise)?;
        Ok(good.then_some(Self::Each(moments)))
    }

    /// Whether a clock covers them, as [`Clock::check`] does; with `new`, as [`Clock::check_new`].
    pub fn check(&self, py: Python<'_>, clock: &Clock, new: bool) -> PyResult<()> {
        match self {
            Self::Each(_) | Self::InOrder(_) => detached(py, || self.covered(clock, new))?,
            _ => self.covered(clock, new),
        }
        .map_err(raise)
    }

    /// [`check`](Self::check), attached or not.
    fn covered(&self, clock: &Clock, new: bool) -> Result<(), Error> {
        let check = |moments| if new { clock.check_new(moments, now()) } else { clock.check(moments, false) };
        match self {
            // Without a look at the system's clock.
            Self::Untimed => clock.check(Moments::Untimed, new),
            Self::At(moment) => check(Moments::At(*moment)),
            Self::Now(moment) => check(Moments::Now(*moment)),
            Self::Each(moments) => check(Moments::Each(moments)),
            // Those between lie no further back than the first, and no further ahead than the last.
            Self::InOrder(times) => match check(Moments::InOrder(&[times.first, times.last])) {
                Err(_) => check(times.of(0..times.len)),
                fine => fine,
            },
        }
    }

    /// Warns of whole numbers that make sense as dates (20260131) or as years, but as Unix seconds lie in 1970.
    pub fn warn_of_dates(&self, py: Python<'_>) -> PyResult<()> {
        let second = |moment: i64| (moment.rem_euclid(1_000_000_000) == 0).then_some(moment / 1_000_000_000);
        let is_year = |&moment: &i64| second(moment).is_some_and(|year| (1900..2100).contains(&year));
        let is_date = |&moment: &i64| {
            let fits = |date| (1..=31).contains(&(date % 100)) && (1..=12).contains(&(date / 100 % 100));
            second(moment).is_some_and(|date| (1900..2100).contains(&(date / 10_000)) && fits(date))
        };
        let all_are = |moments: &[i64]| moments.iter().all(is_year) || moments.iter().all(is_date);
        let dates = match self {
            // One or two such numbers may be the seconds of a simulation.
            Self::Each(all) if all.len() > 2 => all_are(all),
            Self::InOrder(times) if times.len > 2 && all_are(&[times.first, times.last]) => {
                let mut some = [0; 1024];
                let some = &mut some[..times.len.min(1024)];
                times.times.write(0, some);
                all_are(some)
            }
            _ => false,
        };
        match dates {
            true => PyErr::warn(py, &py.get_type::<PyUserWarning>(), DATES, 2),
            false => Ok(()),
        }
    }

    /// All of `n` moments, if there are any.
    pub fn all(self, n: usize) -> Result<Option<Vec<i64>>, Error> {
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

    /// How far they step back from the latest so far.
    pub fn steps_back(&self) -> u64 {
        let Self::Each(moments) = self else { return 0 };
        let mut latest = i64::MIN;
        let back = moments.iter().map(|&moment| {
            latest = latest.max(moment);
            latest.abs_diff(moment)
        });
        back.max().unwrap_or(0)
    }

    /// The moments of the keys in `range`, as the engine takes them.
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
    /// Those of a range.
    fn of(&self, range: Range<usize>) -> Moments<'_> {
        assert!(range.end <= self.len, "moments beyond the end of a batch");
        Moments::TimeRange(TimeRange::new(&*self.times, range))
    }
}

/// Nanoseconds since the Unix epoch of one time or many.
///
/// Parameters
/// ----------
/// at : time, or n times in a list, ndarray, Series or Arrow array
///     Numbers are Unix seconds; datetimes without a time zone are UTC.
/// warn_of_dates : bool, default False
///     Whether numbers that all look like dates or years are warned of.
///
/// Returns
/// -------
/// int or ndarray of int64, shape (n,)
///     Contiguous. Floats of 2**23 s and more are rounded to microseconds.
///
/// Raises
/// ------
/// TypeError
///     If a time is neither a number nor a datetime.
/// ValueError
///     If one is missing (NaN, NaT) or outside the years 1677 to 2262; the message names its position. Or if `at` has
///     two dimensions.
///
/// Examples
/// --------
/// >>> read_moments([0, 1.5])
/// array([         0, 1500000000])
#[pyfunction]
#[pyo3(signature = (at, *, warn_of_dates=false))]
pub fn read_moments<'py>(at: &Bound<'py, PyAny>, warn_of_dates: bool) -> PyResult<Bound<'py, PyAny>> {
    let times = match one_or_array(at)? {
        Times::One(moment) => return Ok(moment.into_pyobject(at.py())?.into_any()),
        Times::Many(times) => times,
    };
    let moments = OwnedMoments::of_array(&times)?;
    if warn_of_dates {
        moments.warn_of_dates(at.py())?;
    }
    Ok(PyArray1::from_vec(at.py(), moments.all(times.len()).map_err(raise)?.unwrap_or_default()).into_any())
}

/// Whether the elements of an array are of this type.
fn is_of<T: numpy::Element>(array: &Bound<'_, PyUntypedArray>) -> bool {
    array.cast::<PyArray1<T>>().is_ok()
}

/// Nanoseconds since the Unix epoch by the system's clock.
pub fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
