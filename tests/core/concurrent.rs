//! A filter that threads share, against one thread with the core's filter, and against threads that race.

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64};
use std::time::UNIX_EPOCH;

use lately::clock::{Moments, Window};
use lately::concurrent::{At, SharedFilter};
use lately::engine::Refresh;
use lately::family::slices::shape::Paper;
use lately::family::{AnyFilter, Budget, lines};
use lately::format;
use lately::key::Seed;

use crate::support::campaign;

/// How many times as much a campaign does as a quick run.
fn times(quick: u64, long: u64) -> u64 {
    if campaign() { long } else { quick }
}

fn mix(i: u64) -> u64 {
    let z = (i ^ i >> 30).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn seen(filter: &SharedFilter, hash: u64) -> bool {
    filter.seen(hash, At::Now).unwrap()
}

fn contains(filter: &SharedFilter, hash: u64) -> bool {
    filter.contains(hash, At::Now).unwrap()
}

fn planned(window: Window, fpr: f64) -> SharedFilter {
    SharedFilter::plan(window, Budget::Rate(fpr), None, None, Seed::Public(0)).unwrap()
}

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Shapes of all numbers of lanes and lines.
fn shapes() -> impl Iterator<Item = lines::shape::LineShape> {
    [8, 16, 32].into_iter().flat_map(|lanes| {
        (1..=4).map(move |lines| {
            let k = if lanes == 16 { 1 } else { 2 };
            lines::shape::LineShape { paper: Paper::AgePartitioned, lanes, k, lines, pages: 1 + u64::from(lines) }
        })
    })
}

#[test]
fn one_thread_gets_the_answers_of_a_filter_in_a_window_of_insertions() {
    for shape in shapes() {
        for window in [1, 2, 7, 300, 1000] {
            let mut alone = AnyFilter::new(shape, count(window), 3).unwrap();
            let mut shared = SharedFilter::from_filter(&alone).unwrap();
            let mut state = window;
            for i in 0..3000u64 {
                state = mix(state + i);
                // Keys of the last two windows, around the edges of the window in particular.
                let hash = mix(i.saturating_sub(state % (2 * window + 2)) / 3);
                let mut expected = [false];
                let engine = alone.engine_mut();
                engine.duplicated(&[hash], Moments::Untimed, Refresh::Delivered, &mut expected).unwrap();
                assert_eq!(seen(&shared, hash), expected[0], "{shape:?} {window}: key {i}");
                let other = mix(i / 2);
                alone.engine().query(&[other], Moments::Untimed, &mut expected).unwrap();
                assert_eq!(contains(&shared, other), expected[0], "{shape:?} {window}: lookup {i}");
                if i % 5 == 0 {
                    alone.engine_mut().insert(&[other], Moments::Untimed).unwrap();
                    shared.insert(other, At::Now).unwrap();
                }
                if i % 700 == 650 {
                    shared = SharedFilter::from_filter(&shared.to_filter().unwrap()).unwrap();
                }
            }
        }
    }
}

#[test]
fn one_thread_gets_the_answers_of_a_map_in_a_window_of_time() {
    for shape in shapes() {
        let window = Window::Time { span: 1000, lateness: 100, capacity: 1000 };
        let alone = AnyFilter::new(shape, window, 3).unwrap().with_max_ahead(None);
        let mut shared = SharedFilter::from_filter(&alone).unwrap();
        let (mut state, mut latest, mut wrong, mut inserted) = (5, -20_000i64, 0, HashMap::new());
        for i in 0..4000u64 {
            state = mix(state + i);
            // Times rise, step back by at most the lateness, and jump beyond the window now and then.
            latest += (state >> 20) as i64 % 7 + if state.is_multiple_of(300) { 2500 } else { 0 };
            let at = latest - (state >> 40) as i64 % 90;
            let keys = [mix(i.saturating_sub(state % 500) / 2), mix(i.saturating_sub(state % 900) / 2)];
            let later = at + (state >> 50) as i64 % 1500;
            let answers =
                [(shared.seen(keys[0], At::Moment(at)), at), (shared.contains(keys[1], At::Moment(later)), later)];
            for (key, (answer, at)) in keys.into_iter().zip(&answers) {
                let (seen, age) = (answer.clone().unwrap(), inserted.get(&key).map_or(i64::MAX, |&last| at - last));
                assert!(seen || age > 1000, "{shape:?}: key {i} of age {age} is missed");
                wrong += u64::from(seen && age > 1000 + shared.slack() as i64);
            }
            if answers[0].0 == Ok(false) {
                inserted.insert(keys[0], at);
            }
            if i % 700 == 650 {
                shared = SharedFilter::from_filter(&shared.to_filter().unwrap()).unwrap();
            }
        }
        assert!(wrong < 400, "{shape:?}: {wrong} keys of 8000 were reported by chance");
    }
}

#[test]
fn times_are_rejected_as_by_a_filter_of_one_thread() {
    let window = Window::Time { span: 1_000_000, lateness: 100, capacity: 100 };
    let shared = planned(window, 0.01);
    let day = 86_400_000_000_000_i64;
    let with_bound = SharedFilter::plan(window, Budget::Rate(0.01), None, Some(day as u64), Seed::Public(0)).unwrap();
    let (early, at) = (At::Moment(1000), At::Moment(10_000_000));
    shared.seen(1, at).unwrap();
    for refused in [shared.seen(2, early).map(|_| ()), shared.contains(1, early).map(|_| ()), shared.insert(2, early)] {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("before the latest time seen, but lateness is 0.0000001 s"), "{message}");
    }
    let two = &mut [false; 2];
    assert!(shared.duplicated_at(&[1, 2], &[11_000_000], two).is_err());
    assert!(shared.duplicated_at(&[2, 3], &[11_000_000, 1000], two).is_err());
    assert_eq!(shared.contains(2, at), Ok(false), "a rejected key was inserted");
    with_bound.seen(1, At::Now).unwrap();
    let now = UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
    let ahead = with_bound.seen(2, At::Moment(now + 2 * day)).unwrap_err().to_string();
    assert!(ahead.contains("ahead of the system's clock"), "{ahead}");
    let untimed = planned(count(10), 0.01).seen(1, At::Moment(5)).unwrap_err().to_string();
    assert!(untimed.contains("at is for"), "{untimed}");
}

/// Each key is offered by all threads at about the same time: exactly one of them may be first.
#[test]
fn of_threads_that_race_with_a_key_exactly_one_is_first() {
    let offers = times(700_000, 100_000_000);
    for (window, fpr, threads) in [(1000, 1e-2, 8), (100_000, 1e-3, 8), (1000, 1e-6, 3)] {
        let filter = planned(count(window), fpr);
        let keys = offers / threads as u64;
        let firsts: Vec<AtomicU8> = (0..keys).map(|_| AtomicU8::new(0)).collect();
        let barrier = Barrier::new(threads);
        // Threads are in step by blocks, so that no key is offered again after a window.
        let block = (window / 8).min(4096);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for i in 0..keys {
                        if i % block == 0 {
                            barrier.wait();
                        }
                        if !seen(&filter, mix(i)) {
                            firsts[i as usize].fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        let of = |n: u8| firsts.iter().filter(|first| first.load(Relaxed) == n).count() as u64;
        assert_eq!(of(0) + of(1), keys, "several threads were first");
        // Six standard deviations above the rate, which is that of the worst phase.
        let expected = keys as f64 * filter.fpr();
        assert!(of(0) as f64 <= expected + 6.0 * expected.sqrt() + 1.0, "{} of {keys} new to no thread", of(0));
    }
}

/// Keys in an order of their own per thread, so that lookups of all ages meet pages that rotate.
fn promise(filter: &SharedFilter, window: i64, threads: u64, keys: u64, now: impl Fn(&AtomicI64) -> i64 + Sync) {
    let (started, missed, checked) = (AtomicI64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let timed = matches!(filter.window(), Window::Time { .. });
    let lookups = times(2, 9);
    std::thread::scope(|scope| {
        for t in 0..threads {
            let (started, missed, checked, now) = (&started, &missed, &checked, &now);
            let at_moment = move |at| if timed { At::Moment(at) } else { At::Now };
            scope.spawn(move || {
                let (mut own, mut z) = (Vec::new(), t);
                loop {
                    // Counted before the key is offered, so that the age of a key is never underrated.
                    let i = started.fetch_add(1, SeqCst);
                    if i as u64 >= keys {
                        break;
                    }
                    let hash = mix(i as u64);
                    let at = now(started);
                    // The call of a thread that slept longer than the lateness is rejected, and nothing is promised of
                    // its key, nor of one that is reported by chance, because it is not inserted.
                    if filter.seen(hash, at_moment(at)) == Ok(false) {
                        own.push((hash, at));
                    }
                    for _ in 0..lookups {
                        z = mix(z + t);
                        // Half of the lookups near the end of the window.
                        let drawn = (z >> 20) as i64;
                        let age = if z >> 63 == 0 { drawn % window } else { window - 1 - drawn % (window / 20) };
                        let from = own.partition_point(|&(_, at)| at + age < now(started));
                        let Some(&(key, at)) = own.get(from) else { continue };
                        let when = now(started);
                        let Ok(held) = filter.contains(key, at_moment(when)) else { continue };
                        let age = if timed { when - at } else { now(started) - at };
                        if age < window {
                            checked.fetch_add(1, Relaxed);
                            missed.fetch_add(u64::from(!held), Relaxed);
                        }
                    }
                }
            });
        }
    });
    println!("{checked:?} lookups of live keys");
    assert!(checked.load(SeqCst) > keys / 2, "{checked:?} of {keys}");
    assert_eq!(missed.into_inner(), 0, "of {checked:?}");
}

#[test]
fn no_key_of_a_window_of_insertions_is_missed_while_threads_insert() {
    for (window, fpr) in [(1000, 1e-2), (20_000, 1e-3)] {
        let filter = planned(count(window), fpr);
        promise(&filter, window as i64, 8, times(300_000, 30_000_000), |started| started.load(SeqCst));
    }
}

/// The sharper test: no insertions are counted ahead.
#[test]
fn no_key_of_a_window_of_time_is_missed_while_threads_insert() {
    for (fpr, span) in [(1e-2, 2000), (1e-3, 20_000)] {
        // Threads read the time and act later, so that times step back.
        let window = Window::Time { span, lateness: span / 2, capacity: span };
        let filter = planned(window, fpr);
        promise(&filter, span as i64, 8, times(300_000, 30_000_000), |started| started.load(SeqCst));
    }
}

#[test]
fn no_key_of_the_window_is_missing_from_a_copy_made_while_threads_insert() {
    let (window, keys) = (20_000, times(100_000, 1_000_000) as usize);
    let filter = planned(count(window), 1e-3);
    // The insertions that all threads had started before each key's, and how many keys each thread has inserted.
    let (started, started_before) = (AtomicU64::new(0), Vec::from_iter((0..4 * keys).map(|_| AtomicU64::new(0))));
    let done: [AtomicU64; 4] = Default::default();
    std::thread::scope(|scope| {
        for (t, done) in done.iter().enumerate() {
            let (filter, started, started_before) = (&filter, &started, &started_before[t * keys..][..keys]);
            scope.spawn(move || {
                for (i, before) in started_before.iter().enumerate() {
                    before.store(started.fetch_add(1, SeqCst), SeqCst);
                    filter.insert(mix((t * keys + i) as u64), At::Now).unwrap();
                    done.store(i as u64 + 1, SeqCst);
                }
            });
        }
        for _ in 0..times(20, 200) {
            let inserted = done.each_ref().map(|done| done.load(SeqCst) as usize);
            let copy = filter.to_filter().unwrap();
            let latest = started.load(SeqCst);
            let live = (0..4).flat_map(|t| t * keys..t * keys + inserted[t]);
            let live =
                live.filter(|&key| latest - started_before[key].load(SeqCst) < window).map(|key| mix(key as u64));
            let live = Vec::from_iter(live);
            let mut present = vec![false; live.len()];
            copy.engine().query(&live, Moments::Untimed, &mut present).unwrap();
            assert_eq!(present.iter().filter(|&&present| !present).count(), 0, "of {} live keys", live.len());
            assert_eq!(SharedFilter::from_filter(&copy).unwrap().to_filter().unwrap().equals(&copy), Ok(true));
        }
    });
}

#[test]
fn the_rate_is_kept_with_threads() {
    // Large windows, because the rate of one small filter may lie above the mean of filters.
    for (window, fpr) in [(100_000, 1e-2), (30_000, 1e-3)] {
        let filter = planned(count(window), fpr);
        std::thread::scope(|scope| {
            for t in 0..4 {
                let filter = &filter;
                scope.spawn(move || {
                    (0..window).for_each(|i| {
                        seen(filter, mix(4 * i + t));
                    })
                });
            }
        });
        let trials = times(1_000_000, 10_000_000);
        let reported = (0..trials).filter(|&i| contains(&filter, mix(1 << 60 | i))).count() as f64;
        let expected = filter.fpr() * trials as f64;
        assert!(filter.fpr() <= fpr);
        assert!(reported <= expected + 6.0 * expected.sqrt(), "{reported} of {trials} at {}", filter.fpr());
        assert!(reported >= expected / 3.0, "{reported} of {trials} at {}", filter.fpr());
    }
}

/// More threads than stripes, which end and begin anew: a stripe of a thread that has ended goes to the next.
#[test]
fn no_insertion_of_many_threads_is_left_uncounted() {
    let filter = planned(count(1_000_000), 1e-2);
    let (threads, mut inserted) = (40, 0);
    for keys in [97, 20_000, 97, 5000] {
        // All threads at once, so that two of one stripe would meet.
        let barrier = Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            for t in 0..threads {
                let (filter, barrier) = (&filter, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    (0..keys).for_each(|i| filter.insert(mix(keys << 40 | t << 20 | i), At::Now).unwrap());
                });
            }
        });
        inserted += threads * keys;
        assert_eq!(filter.inserted(), inserted);
        // The clock is ahead by a 256th of the window at most, and by one where a page has rotated for the next.
        let counted = filter.to_filter().unwrap().engine().clock().inserted();
        assert!((inserted..=inserted + 1_000_000 / 256 + 1).contains(&counted), "{counted} of {inserted}");
    }
}

/// Calls within a 16,384th of the window are one moment to threads, the earliest. A saved copy keeps all their keys.
#[test]
fn a_copy_keeps_the_last_key_of_a_moment_for_its_whole_window() {
    let (span, start) = (1 << 24, 1 << 40);
    let window = Window::Time { span, lateness: 0, capacity: 1000 };
    let filter = SharedFilter::plan(window, Budget::Rate(1e-2), None, None, Seed::Public(0)).unwrap();
    for (hash, after) in [(mix(1), 0), (mix(2), (span >> 14) as i64 - 1)] {
        filter.insert(hash, At::Moment(start + after)).unwrap();
    }
    let mut bytes = Vec::new();
    format::write(&filter.to_filter().unwrap(), &mut bytes).unwrap();
    let mut copy = format::from_bytes(Box::new(bytes)).unwrap();
    // Their generation ends.
    copy.engine_mut().insert(&[mix(3)], Moments::At(start + span as i64 / 2)).unwrap();
    for (hash, after) in [(mix(1), 0), (mix(2), (span >> 14) as i64 - 1)] {
        let mut seen = [false];
        copy.engine().query(&[hash], Moments::At(start + after + span as i64), &mut seen).unwrap();
        assert_eq!(seen, [true]);
    }
}
