//! The search for the end of a generation in times that are in order.

use std::ops::{Range, RangeInclusive};

/// Number of times in a cache line.
const LINE: usize = 8;

/// Returns how many of the times in `range` lie before `end`. The times are in order; if they are not, the result is
/// any number up to all of them.
///
/// Streams keep about the same pace within a batch, so interpolation comes close, and steps that double go on from
/// there. Reading all times in sequence would take as long as a fifth of an insertion. `fetch` is called with some
/// positions where the next search will probably read, because those are seldom in a cache.
#[inline(always)]
pub fn before(range: Range<usize>, end: i64, moment: impl Fn(usize) -> i64, fetch: impl Fn(usize)) -> usize {
    let Some(last) = range.clone().last() else { return 0 };
    if moment(last) < end {
        return range.len();
    }
    let first = moment(range.start);
    if first >= end {
        return 0;
    }
    let pace = (last - range.start) as f64 / moment(last).abs_diff(first) as f64;
    let guess = (end.abs_diff(first) as f64 * pace) as usize;
    let found = gallop(range.start..=last, range.start.saturating_add(guess).min(last), |i| moment(i) < end);
    let next = found.saturating_add(guess);
    (0..5 * LINE).step_by(LINE).for_each(|i| fetch((next + i).saturating_sub(2 * LINE)));
    found - range.start
}

/// Returns the first position of a range that is not `within`: later than the first one, and no later than the last
/// one.
#[inline(always)]
fn gallop(range: RangeInclusive<usize>, guess: usize, within: impl Fn(usize) -> bool) -> usize {
    // `low` is not known to be beyond; `high` is.
    let (mut low, mut high) = range.into_inner();
    let mut step = LINE;
    if within(guess) {
        low = guess;
        while high - low > step && within(low + step) {
            (low, step) = (low + step, 2 * step);
        }
        high = high.min(low + step);
    } else {
        high = guess;
        while high - low > step && !within(high - step) {
            (high, step) = (high - step, 2 * step);
        }
        low = low.max(high.saturating_sub(step));
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if within(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
