//! When the keys of a batch were seen.

use std::fmt;
use std::ops::Range;

use super::search::before;
use crate::Error;
use crate::memory::fallible;

/// The moments of the keys of one batch.
#[derive(Debug, Clone, Copy)]
pub enum Moments<'a> {
    /// No moments: the window is one of insertions.
    Untimed,
    /// One moment for all keys: nanoseconds since the Unix epoch.
    At(i64),
    /// A reading of [`system::now`](super::system::now) for all keys, or the latest moment if that is later. It is
    /// never rejected as late, because another thread may insert later keys after the clock is read and before this
    /// batch is inserted. A clock [converts](super::Clock::query_moments) it into its filter's time.
    Now(i64),
    /// One moment per key: nanoseconds since the Unix epoch.
    Each(&'a [i64]),
    /// One moment per key, in non-decreasing order as [`of`](Self::of) finds; searches then need not read each of them.
    InOrder(&'a [i64]),
    /// A range of a caller's times, read in place.
    TimeRange(TimeRange<'a>),
}

/// Times in non-decreasing order, each converted when it is read.
pub trait TimeSource: Sync {
    /// Returns time `i` in nanoseconds since the Unix epoch.
    fn moment(&self, i: usize) -> i64;

    /// Returns how many of the times in `range` lie before `end`.
    fn before(&self, range: Range<usize>, end: i64) -> usize;

    /// Writes the times from `start` on.
    fn write(&self, start: usize, moments: &mut [i64]);
}

/// A range of a caller's times.
#[derive(Clone, Copy)]
pub struct TimeRange<'a> {
    times: &'a dyn TimeSource,
    start: usize,
    len: usize,
}

impl fmt::Debug for TimeRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len).map(|i| self.moment(i))).finish()
    }
}

impl<'a> TimeRange<'a> {
    /// Creates the times of a range.
    pub fn new(times: &'a dyn TimeSource, range: Range<usize>) -> Self {
        Self { times, start: range.start, len: range.len() }
    }

    /// Returns the number of times.
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Returns time `i` of the range in nanoseconds since the Unix epoch.
    pub(super) fn moment(self, i: usize) -> i64 {
        assert!(i < self.len, "moments beyond the end of a batch");
        self.times.moment(self.start + i)
    }

    fn slice(self, range: Range<usize>) -> Self {
        assert!(range.end <= self.len, "moments beyond the end of a batch");
        Self { times: self.times, start: self.start + range.start, len: range.len() }
    }
}

impl<'a> Moments<'a> {
    /// Returns moments of one time per key, in order or not.
    pub fn of(each: &'a [i64]) -> Self {
        if each.is_sorted() { Self::InOrder(each) } else { Self::Each(each) }
    }

    /// Returns the moments of the keys in `range`.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Each(moments) => Self::Each(&moments[range]),
            Self::InOrder(moments) => Self::InOrder(&moments[range]),
            Self::TimeRange(times) => Self::TimeRange(times.slice(range)),
            other => other,
        }
    }

    /// Returns moments that do not change while they are read, or that are read one after the other: times that would
    /// be read in place are copied to `room`. Several threads then read the same times, even if another thread writes
    /// to the array meanwhile.
    pub fn for_all(self, room: &'a mut Vec<i64>) -> Result<Self, Error> {
        let Self::TimeRange(times) = self else { return Ok(self) };
        fallible::resize(room, times.len)?;
        times.times.write(times.start, room);
        Ok(Self::of(room))
    }

    /// Returns the moment of key `i`, in a window of time.
    pub(crate) fn moment(self, i: usize) -> i64 {
        match self {
            Self::Untimed => i64::MIN,
            Self::At(moment) | Self::Now(moment) => moment,
            Self::Each(all) | Self::InOrder(all) => all[i],
            Self::TimeRange(times) => times.moment(i),
        }
    }

    /// Returns the latest moment of the keys in `range`, in a window of time.
    pub(crate) fn latest(self, range: Range<usize>) -> i64 {
        match self {
            Self::Untimed => i64::MIN,
            Self::At(moment) | Self::Now(moment) => moment,
            Self::Each(all) => all[range].iter().copied().max().unwrap_or(i64::MIN),
            Self::InOrder(all) => all[range].last().copied().unwrap_or(i64::MIN),
            Self::TimeRange(times) => range.last().map_or(i64::MIN, |last| times.moment(last)),
        }
    }

    /// Returns the moment of key `i`, and how many keys from `i` on, up to `len`, lie in the same `span` of moments.
    pub(crate) fn run(self, i: usize, len: usize, span: impl Fn(i64) -> Range<i64>) -> Option<(i64, usize)> {
        match self {
            Self::Untimed => None,
            Self::At(moment) | Self::Now(moment) => Some((moment, len - i)),
            Self::Each(all) => {
                let span = span(all[i]);
                let run = all[i..len].iter().take_while(|&moment| span.contains(moment)).count();
                Some((all[i], run.max(1)))
            }
            Self::InOrder(all) => {
                let span = span(all[i]);
                Some((all[i], before(i..len, span.end, |i| all[i], |_| ()).max(1)))
            }
            Self::TimeRange(times) => {
                let moment = times.moment(i);
                let range = times.start + i..times.start + len;
                Some((moment, times.times.before(range, span(moment).end).max(1)))
            }
        }
    }
}

/// Returns the least and the greatest of some moments.
pub(super) fn extremes(moments: &[i64]) -> (i64, i64) {
    moments.iter().fold((i64::MAX, i64::MIN), |(least, greatest), &moment| (least.min(moment), greatest.max(moment)))
}
