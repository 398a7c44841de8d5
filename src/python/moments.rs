//! The moments of a batch: one, the system's, or one a key, from whatever Python holds them in.
//!
//! Arrays of the usual types are read here, and where they are in order, as streams mostly are, block by block when the
//! keys are: to read all of them first took longer than a third of an insertion. `lately._time` knows the others, and what
//! to say of bad ones.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use bytemuck::Pod;
use numpy::datetime::{Datetime, units};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::keys::numpy_array::Lane;
use crate::Error;
use crate::clock::{Clock, Moments, Window};

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
    /// The same, none before the one before it.
    InOrder(InOrder),
}

/// Times of an array that are in order and in range, made moments where they are wanted.
pub struct InOrder {
    len: usize,
    first: i64,
    fill: Box<Fill>,
}

/// Writes the moments from one on.
type Fill = dyn Fn(usize, &mut [i64]) + Send + Sync;

impl OwnedMoments {
    /// Reads `at`; without it, a window of time takes the system's clock.
    pub fn read(at: Option<&Bound<'_, PyAny>>, window: Window, keys: usize) -> PyResult<Self> {
        let Some(at) = at else {
            return Ok(match window {
                Window::Count { .. } => Self::Untimed,
                Window::Time { .. } => Self::Now(now()),
            });
        };
        let module = at.py().import("lately._time")?;
        let times = module.call_method1("one_or_array", (at,))?;
        let Ok(times) = times.cast::<PyUntypedArray>() else {
            return Ok(Self::At(times.extract()?));
        };
        let given = times.len();
        if given != keys {
            return Err(PyValueError::new_err(format!(
                "at has {given} times for {keys} keys: one each, or a single one"
            )));
        }
        if let Some(moments) = Self::of_array(times) {
            return Ok(moments);
        }
        let moments: PyReadonlyArray1<'_, i64> = module.call_method1("of_array", (times,))?.extract()?;
        Ok(Self::Each(moments.as_slice()?.to_vec()))
    }

    /// Those of an array of one of the usual types: float64, int64, datetime64 from seconds to nanoseconds. None of any
    /// others, and where one is missing or out of range.
    fn of_array(times: &Bound<'_, PyUntypedArray>) -> Option<Self> {
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
            None
        }
    }

    /// What `convert` makes of each time of an array, if all are good. It keeps their order.
    fn of_lane<T: Pod + PartialOrd>(
        times: &Bound<'_, PyUntypedArray>,
        convert: impl Fn(T) -> (i64, bool) + Copy + Send + Sync + 'static,
    ) -> Option<Self> {
        let (lane, len) = (Lane::new(times), times.len());
        let Some(last) = len.checked_sub(1) else {
            return Some(Self::Each(Vec::new()));
        };
        let (mut in_order, mut before) = (true, lane.get::<T>(0));
        for i in 1..len {
            let time = lane.get(i);
            in_order &= before <= time;
            before = time;
        }
        if in_order {
            // What lies between the first and the last is as good as they are.
            let ((first, first_is_good), (_, last_is_good)) = (convert(lane.get(0)), convert(lane.get(last)));
            let fill = move |start: usize, out: &mut [i64]| {
                for (i, out) in (start..).zip(out) {
                    *out = convert(lane.get(i)).0;
                }
            };
            return (first_is_good && last_is_good)
                .then(|| Self::InOrder(InOrder { len, first, fill: Box::new(fill) }));
        }
        let mut good = true;
        let one = |i| {
            let (moment, is_good) = convert(lane.get(i));
            good &= is_good;
            moment
        };
        let moments = (0..len).map(one).collect();
        good.then_some(Self::Each(moments))
    }

    /// Whether a clock covers them, as [`Clock::check`] does.
    pub fn check(&self, clock: &Clock, in_order: bool) -> Result<(), Error> {
        clock.check(
            match self {
                Self::Untimed => Moments::Untimed,
                Self::At(moment) => Moments::At(*moment),
                Self::Now(moment) => Moments::Now(*moment),
                Self::Each(moments) => Moments::Each(moments),
                // Those after it lie no further back.
                Self::InOrder(times) => Moments::At(times.first),
            },
            in_order,
        )
    }

    /// Those of the keys in `range`, as the engine takes them; in `room`, where they have to be made.
    pub fn of<'a>(&'a self, range: Range<usize>, room: &'a mut Vec<i64>) -> Moments<'a> {
        match self {
            Self::Untimed => Moments::Untimed,
            Self::At(moment) => Moments::At(*moment),
            Self::Now(moment) => Moments::Now(*moment),
            Self::Each(moments) => Moments::Each(&moments[range]),
            Self::InOrder(times) => {
                assert!(range.end <= times.len, "moments beyond the end of a batch");
                room.resize(range.len(), 0);
                (times.fill)(range.start, room);
                // Not taken for granted: somebody may have written to the array meanwhile.
                Moments::of(room)
            }
        }
    }
}

/// Nanoseconds since 1970, shape (n,), of times as most arrays hold them: float64, int64, datetime64 from seconds to
/// nanoseconds. None of any others, and where one is missing or out of range: `lately._time`, of which this is the quick
/// part, knows what to say. (An array of doubles took 20 ns a time in NumPy, more than an insertion.)
#[pyfunction]
pub fn nanoseconds<'py>(times: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, PyArray1<i64>>> {
    let moments = match OwnedMoments::of_array(times)? {
        OwnedMoments::InOrder(times) => {
            let mut moments = vec![0; times.len];
            (times.fill)(0, &mut moments);
            moments
        }
        OwnedMoments::Each(moments) => moments,
        _ => return None,
    };
    Some(PyArray1::from_vec(times.py(), moments))
}

/// Whether the elements of an array are of this type.
fn is_of<T: numpy::Element>(array: &Bound<'_, PyUntypedArray>) -> bool {
    array.cast::<PyArray1<T>>().is_ok()
}

/// Unix seconds that nanoseconds have room for.
const LAST_SECOND: i64 = i64::MAX / 1_000_000_000;
/// Seconds from which on doubles are too far apart to be nanoseconds, and are rounded to microseconds.
const FINE: f64 = (1u64 << 23) as f64;

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
    // Doubles from here to twice as much are the whole numbers, in order: a sum is rounded to one, whose bits count them.
    // Older processors have no instruction for it, and a call costs 5 ns.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    if value.abs() < (1u64 << 51) as f64 {
        (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i64
    } else {
        value.round_ties_even() as i64
    }
}

/// Nanoseconds since the Unix epoch by the system's clock.
pub fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
