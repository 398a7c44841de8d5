//! Streams in time, and the check of the promise: shared by the tests of filters that follow the rate of keys.

use std::collections::VecDeque;

use lately::clock::{Moments, Window};
use lately::family::AnyFilter;

use super::key;

/// A second, the span of every window, and the time at which streams begin, in nanoseconds.
pub const SECOND: i64 = 1_000_000_000;
pub const SPAN: i64 = 600 * SECOND;
pub const START: i64 = 1_700_000_000 * SECOND;

/// Returns how many of the keys are reported at `at`.
pub fn reported(filter: &AnyFilter, keys: &[u64], at: i64) -> usize {
    let mut present = vec![false; keys.len()];
    filter.engine().query(keys, Moments::At(at), &mut present).unwrap();
    present.into_iter().filter(|&present| present).count()
}

/// Inserts one key at each moment, and checks that the oldest keys of the window are reported; at some moments, all
/// keys. Queries keys at their last moment too, so that the check detects a key dropped since.
pub fn check_promise(filter: &mut AnyFilter, moments: impl Iterator<Item = i64>) -> Result<(), String> {
    let Window::Time { span, .. } = filter.engine().clock().window() else { unreachable!() };
    let (mut kept, mut latest) = (VecDeque::new(), i64::MIN);
    for (n, at) in moments.enumerate() {
        latest = latest.max(at);
        while kept.front().is_some_and(|&(_, seen)| seen < latest - span as i64) {
            kept.pop_front();
        }
        let oldest: Vec<u64> = kept.iter().take(3).map(|&(key, _)| key).collect();
        if reported(filter, &oldest, latest) < oldest.len() {
            return Err(format!("an oldest key is missing just before insertion {n}"));
        }
        filter.engine_mut().insert(&[key(0, n as u64)], Moments::At(at)).unwrap();
        kept.push_back((key(0, n as u64), at));
        if reported(filter, &oldest, latest) < oldest.len() {
            return Err(format!("an oldest key is missing just after insertion {n}"));
        }
        if n % 997 == 0 {
            let all: Vec<u64> =
                kept.iter().filter(|&&(_, at)| at >= latest - span as i64).map(|&(key, _)| key).collect();
            let missing = all.len() - reported(filter, &all, latest);
            if missing > 0 {
                return Err(format!("{missing} of {} keys are missing after insertion {n}", all.len()));
            }
        }
    }
    Ok(())
}

/// Returns moments at a rate that changes every few windows. A phase is a number of windows and the keys per window, at
/// even steps.
pub fn steady(phases: &[(f64, f64)]) -> Vec<i64> {
    let (mut at, mut all) = (START as f64, Vec::new());
    for &(windows, keys) in phases {
        let end = at + windows * SPAN as f64;
        while at < end {
            all.push(at as i64);
            at += SPAN as f64 / keys;
        }
    }
    all
}

/// Returns the next random number below `n`, by splitmix64.
pub fn below(round: u64, n: u64) -> u64 {
    ((u128::from(key(9, round)) * u128::from(n)) >> 64) as u64
}
