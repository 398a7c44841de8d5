//! When the keys of a batch were seen.

use std::fmt;
use std::ops::Range;

use super::search::before;
use crate::Error;
use crate::memory::fallible;

/// When the keys of one batch were seen.
#[derive(Debug, Clone, Copy)]
pub enum Moments<'a> {
    /// No moments: windows of insertions.
    Untimed,
    /// All at one moment: nanoseconds since the Unix epoch.
    At(i64),
    /// All now, by the system's clock, or at the latest moment seen where that is later. It is never refused as late:
    /// another thread may insert later keys after the clock is read and before this batch's turn.
    Now(i64),
    /// Each at its own: nanoseconds since the Unix epoch, one per key.
    Each(&'a [i64]),
    /// One per key and non-decreasing, as [`of`](Self::of) finds; searches then need not look at each of them.
    InOrder(&'a [i64]),
    /// The same, read where they lie: some of them only.
    Read(Read<'a>),
}

/// Times in non-decreasing order, each converted when it is asked for.
pub trait Times: Sync {
    /// Nanoseconds since the Unix epoch of one.
    fn moment(&self, i: usize) -> i64;

    /// How many of those in `range` lie before `end`.
    fn before(&self, range: Range<usize>, end: i64) -> usize;

    /// Writes those from `start` on.
    fn write(&self, start: usize, moments: &mut [i64]);
}

/// Some of these times, one after the other.
#[derive(Clone, Copy)]
pub struct Read<'a> {
    times: &'a dyn Times,
    start: usize,
    len: usize,
}

impl fmt::Debug for Read<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len).map(|i| self.moment(i))).finish()
    }
}

impl<'a> Read<'a> {
    /// The times of a range.
    pub fn new(times: &'a dyn Times, range: Range<usize>) -> Self {
        Self { times, start: range.start, len: range.len() }
    }

    /// How many there are.
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Nanoseconds since the Unix epoch of one.
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
    /// One per key, in order or not.
    pub fn of(each: &'a [i64]) -> Self {
        if each.is_sorted() { Self::InOrder(each) } else { Self::Each(each) }
    }

    /// The moments of the keys in `range`.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Each(moments) => Self::Each(&moments[range]),
            Self::InOrder(moments) => Self::InOrder(&moments[range]),
            Self::Read(times) => Self::Read(times.slice(range)),
            other => other,
        }
    }

    /// The same for several to read, who have to see the same whoever writes to times meanwhile, or for one who asks
    /// for each of them: what would be read where it lies is copied to `room`.
    pub fn for_all(self, room: &'a mut Vec<i64>) -> Result<Self, Error> {
        let Self::Read(times) = self else { return Ok(self) };
        fallible::resize(room, times.len)?;
        times.times.write(times.start, room);
        Ok(Self::of(room))
    }

    /// The moment of key `i`, in a window of time.
    pub(crate) fn moment(self, i: usize) -> i64 {
        match self {
            Self::Untimed => i64::MIN,
            Self::At(moment) | Self::Now(moment) => moment,
            Self::Each(all) | Self::InOrder(all) => all[i],
            Self::Read(times) => times.moment(i),
        }
    }

    /// The latest moment of the keys in `range`, in a window of time.
    pub(crate) fn latest(self, range: Range<usize>) -> i64 {
        match self {
            Self::Untimed => i64::MIN,
            Self::At(moment) | Self::Now(moment) => moment,
            Self::Each(all) => all[range].iter().copied().max().unwrap_or(i64::MIN),
            Self::InOrder(all) => all[range].last().copied().unwrap_or(i64::MIN),
            Self::Read(times) => range.last().map_or(i64::MIN, |last| times.moment(last)),
        }
    }

    /// The moment of key `i`, and how many keys from `i` on, up to `len`, lie in the same `span` of moments.
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
            Self::Read(times) => {
                let moment = times.moment(i);
                let range = times.start + i..times.start + len;
                Some((moment, times.times.before(range, span(moment).end).max(1)))
            }
        }
    }
}

/// The least and the greatest of these moments.
pub(super) fn extremes(moments: &[i64]) -> (i64, i64) {
    moments.iter().fold((i64::MAX, i64::MIN), |(least, greatest), &moment| (least.min(moment), greatest.max(moment)))
}
