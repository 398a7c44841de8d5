//! The exact window beside a dictionary of when each key was last seen: homes that are crowded, at the end of the
//! table, or full of keys that have died; windows that are replaced many times; times with ties, gaps and steps back.

use std::collections::HashMap;

use lately::Error;
use lately::clock::{Clock, Moments, Window};
use lately::engine::{Engine, Refresh};
use lately::family::exact;

use super::support::key;

const ALL: [Refresh; 3] = [Refresh::Always, Refresh::Unseen, Refresh::Delivered];

/// Hashes that are uniform, and hashes crowded at either end of the table, where a search wraps around.
const CROWDS: [fn(u64) -> u64; 4] = [|key| key, |key| key >> 50, |key| !(key >> 57), |key| key & 0xff << 56];

/// Returns the answers of a dictionary. The stamp of a key is its place among those that count, or its time.
fn expected(hashes: &[u64], times: Option<&[i64]>, window: i64, refresh: Refresh) -> Vec<bool> {
    let (mut last, mut counted) = (HashMap::new(), 0);
    let see = |(i, &hash): (usize, &u64)| {
        let now = times.map_or(counted, |times| times[i]);
        let seen = last.get(&hash).is_some_and(|&before: &i64| now - before <= window);
        if refresh == Refresh::Always || !seen {
            let before = last.get(&hash).copied().unwrap_or(i64::MIN);
            last.insert(hash, before.max(now));
        }
        counted += i64::from(refresh != Refresh::Delivered || !seen);
        seen
    };
    hashes.iter().enumerate().map(see).collect()
}

fn empty(window: Window) -> Result<Box<dyn Engine>, Error> {
    exact::engine(Clock::new(window, 1), &[], None)
}

/// Returns the answers of an exact window to batches of these sizes in turn.
fn answers(
    exact: &mut dyn Engine,
    hashes: &[u64],
    times: Option<&[i64]>,
    refresh: Refresh,
    sizes: &[usize],
) -> Vec<bool> {
    let mut seen = vec![false; hashes.len()];
    let (mut start, mut sizes) = (0, sizes.iter().cycle());
    while start < hashes.len() {
        let end = hashes.len().min(start + sizes.next().unwrap());
        let at = times.map_or(Moments::Untimed, |times| Moments::of(&times[start..end]));
        exact.duplicated(&hashes[start..end], at, refresh, &mut seen[start..end]).unwrap();
        start = end;
    }
    seen
}

/// Returns keys of which about half are repeats, mostly of keys around `near` places ago.
fn stream(n: u64, near: u64) -> Vec<u64> {
    let mut keys = Vec::new();
    for i in 0..n {
        let (choice, back) = (key(7, i), key(8, i) % (2 * near) + 1);
        let again = choice & 1 == 0 && back <= i;
        keys.push(if again { keys[(i - back) as usize] } else { key(9, i) });
    }
    keys
}

#[test]
fn insertions_are_those_of_a_dictionary() {
    for window in [1, 2, 3, 7, 64, 500, 3000, 100_000] {
        for crowd in CROWDS {
            let hashes: Vec<u64> = stream(4000, window.min(2000)).into_iter().map(crowd).collect();
            for refresh in ALL {
                let expected = expected(&hashes, None, window as i64, refresh);
                assert!(expected.contains(&true) && expected.contains(&false));
                for sizes in [&[1][..], &[4000], &[3, 17, 0, 1000]] {
                    let mut exact = empty(Window::Count { insertions: window }).unwrap();
                    assert!(answers(&mut *exact, &hashes, None, refresh, sizes) == expected, "{window} {refresh:?}");
                }
            }
        }
    }
}

#[test]
fn times_are_those_of_a_dictionary() {
    for (span, lateness) in [(1, 0), (100, 0), (100, 30), (100, 5000), (20_000, 500), (1 << 61, 0)] {
        for crowd in CROWDS {
            let hashes: Vec<u64> = stream(4000, 60).into_iter().map(crowd).collect();
            let mut latest = -3000;
            let times: Vec<i64> = (0..4000)
                .map(|i| {
                    // Ties, steps, and a gap now and then.
                    latest += [0, 0, 1, 2, 3, 0, 7, 1][key(3, i) as usize % 8]
                        + i64::from(i % 900 == 899) * 2 * span.min(900);
                    latest - (key(4, i) % (lateness + 1)) as i64
                })
                .collect();
            for refresh in ALL {
                let expected = expected(&hashes, Some(&times), span, refresh);
                for sizes in [&[1][..], &[4000], &[3, 17, 0, 1000]] {
                    let window = Window::Time { span: span as u64, lateness, capacity: 1 };
                    let mut exact = empty(window).unwrap();
                    let answers = answers(&mut *exact, &hashes, Some(&times), refresh, sizes);
                    assert!(answers == expected, "{span} {lateness} {refresh:?}");
                    assert_eq!(exact.clock().latest(), times.iter().copied().max());
                }
            }
        }
    }
}

#[test]
fn the_ends_of_time() {
    for times in [[i64::MIN + 1, i64::MIN + 2], [-1, 0], [i64::MAX - 1, i64::MAX]] {
        for (span, seen) in [(1, true), (1 << 62, true)] {
            let mut exact = empty(Window::Time { span, lateness: u64::MAX, capacity: 1 }).unwrap();
            assert_eq!(answers(&mut *exact, &[5, 5], Some(&times), Refresh::Always, &[2]), [false, seen]);
        }
    }
    let mut exact = empty(Window::Time { span: 1, lateness: u64::MAX, capacity: 1 }).unwrap();
    let times = [i64::MIN + 1, i64::MAX, 0, i64::MIN + 2, 1];
    let seen = answers(&mut *exact, &[5, 6, 5, 7, 5], Some(&times), Refresh::Always, &[1]);
    assert_eq!(seen, [false, false, false, false, true]);
}

#[test]
fn memory_grows_with_the_keys_of_the_window_alone() {
    // A line of 64 bytes a key; or of a key and a half, if there are many.
    for (insertions, most) in [(1000, 66), (1_000_000, 43)] {
        let mut exact = empty(Window::Count { insertions }).unwrap();
        let before = exact.nbytes();
        answers(&mut *exact, &stream(100_000, 10), None, Refresh::Always, &[5000]);
        assert_eq!(exact.nbytes(), before);
        assert!(before < insertions as usize * most);
    }
    // A thousand keys of the window at a time, or a hundred thousand; a key may take twice that of one more.
    for (step, keys) in [(1000, 1000), (10, 100_000)] {
        let mut exact = empty(Window::Time { span: 1_000_000, lateness: 0, capacity: 1 }).unwrap();
        let times: Vec<i64> = (0..300_000).map(|i| i * step).collect();
        let hashes: Vec<u64> = (0..300_000).map(|i| key(1, i)).collect();
        answers(&mut *exact, &hashes, Some(&times), Refresh::Always, &[5000]);
        assert!(exact.nbytes() < 16_384 + keys * 100, "{} for {keys}", exact.nbytes());
    }
}

#[test]
fn keys_that_equal_no_other_are_never_seen_nor_inserted() {
    let window = Window::Count { insertions: 3 };
    let mut exact = exact::engine(Clock::new(window, 1), &[], Some(0)).unwrap();
    let mut seen = [true; 8];
    let hashes = [1, 0, 0, 1, 0, 0, 0, 1];
    exact.duplicated(&hashes, Moments::Untimed, Refresh::Always, &mut seen).unwrap();
    // The window advances with them.
    assert_eq!(seen, [false, false, false, true, false, false, false, false]);
}

#[test]
fn no_window_and_no_memory_are_errors() {
    assert!(empty(Window::Count { insertions: 0 }).is_err());
    assert!(empty(Window::Time { span: 0, lateness: 0, capacity: 1 }).is_err());
    assert!(matches!(empty(Window::Count { insertions: 1 << 62 }), Err(Error::Memory { .. })));
}

#[test]
fn an_exact_window_of_any_lateness_has_a_clock_that_accepts_its_times() {
    for lateness in [0, 1 << 62, i64::MAX as u64 - 1000, i64::MAX as u64, u64::MAX - 1000, u64::MAX] {
        let exact = empty(Window::Time { span: 1000, lateness, capacity: 1 }).unwrap();
        let clock = Clock::new(exact.clock().window(), 1);
        for latest in [i64::MIN, -1, 0, 1, i64::MAX] {
            let (earliest, now) = (latest.saturating_sub_unsigned(lateness), clock.clone().resumed(1, Some(latest)));
            assert!(now.check(Moments::Each(&[earliest, latest]), false).is_ok());
            let opened = now.generation() - clock.clone().resumed(1, Some(earliest)).generation();
            let covered = lateness <= i64::MAX as u64 - 1000;
            assert!(opened >= 0 && (opened <= 1 || !covered), "{opened} generations within a lateness of {lateness}");
        }
    }
}
