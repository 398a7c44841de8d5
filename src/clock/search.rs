//! Where a generation ends, among times in order.

use std::ops::{Range, RangeInclusive};

/// Times of a cache line.
const LINE: usize = 8;

/// How many of the times in `range` lie before `end`. They are in order; if not, any number up to all of them.
///
/// Streams keep about the same pace within a batch, so interpolation comes close, and steps that double go on from
/// there. Reading them all from first to last would take as long as a fifth of an insertion. `fetch` is called with
/// some from where the next search will look, if it is for a generation as long: they are seldom in a cache, and a
/// search would wait for them.
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

/// The first of a range that is not `within`: later than its first, and no later than its last.
#[inline(always)]
fn gallop(range: RangeInclusive<usize>, guess: usize, within: impl Fn(usize) -> bool) -> usize {
    // The lowest that is not known to be beyond, and one that is.
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
