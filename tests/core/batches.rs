//! Single calls miss no key of the window, and a batch of any size answers as they do, and leaves the same filter: in
//! every family, on either clock, whichever keys start a window.

use std::sync::Arc;

use crate::fuzzed::operations::Exact;
use crate::fuzzed::saved::bytes_of;
use crate::support::key;
use crate::support::timed::{SECOND, START};
use lately::clock::{Moments, Window};
use lately::engine::threads::{Chunk, PIECE};
use lately::engine::{Insertion, Refresh};
use lately::family::slices::shape::{Paper, choose};
use lately::family::{AnyFilter, Budget, Family, Request, Shape, VARIANTS};
use lately::key::Keys;

const N: usize = 4500;
const COUNT: Window = Window::Count { insertions: 300 };
const TIME: Window = minute(300);
/// Keys of a batch: each of several threads gets a piece. And of a window: its cells can be divided.
const MANY: usize = 4 * PIECE;
const LARGE: u64 = 20_000;

const fn minute(capacity: u64) -> Window {
    Window::Time { span: 60 * SECOND as u64, lateness: 7 * SECOND as u64, capacity }
}

/// Sizes in turn: some empty, and around those at which batches are cut into lanes, blocks and pieces.
const SIZES: [&[usize]; 8] =
    [&[2], &[3, 1], &[15, 16, 17], &[63, 64, 65, 0], &[1, 200, 0, 2, 10], &[4095, 1], &[4097], &[N]];

/// Returns the shape of each variant in each window that it can have, with its name.
fn all(count: Window, time: Window) -> Vec<(String, Window, Arc<dyn Shape>)> {
    let mut all = Vec::new();
    let request = |window, unknown_rate| Request { unknown_rate, ..Request::of(window, Budget::Rate(0.02)) };
    for (variant, window) in VARIANTS.iter().flat_map(|variant| [(variant, count), (variant, time)]) {
        let suited = [false, true]
            .map(|unknown| request(window, unknown))
            .into_iter()
            .find(|request| variant.rejection(request).is_none());
        all.extend(suited.map(|request| (variant.name(), window, variant.plan(&request).unwrap())));
    }
    for partitioned in [false, true] {
        let changed = Request { partitioned, ..request(count, false) };
        all.push(("bloom".into(), count, Family::named("bloom").unwrap().plan(&changed).unwrap()));
    }
    for paper in [Paper::AgePartitioned, Paper::GuardedEpoch] {
        let shape = choose(count, Budget::Rate(0.02), None, Some(64), paper).unwrap();
        all.push((format!("{paper:?}, blocks of 64"), count, Arc::new(shape)));
    }
    all
}

/// Returns keys of which about half are repeats, mostly near.
fn stream(n: usize, farthest: u64) -> Vec<u64> {
    let mut keys = Vec::new();
    for i in 0..n as u64 {
        let back = key(2, i) % [40, 400, farthest][(key(3, i) % 3) as usize] + 1;
        let again = key(1, i).is_multiple_of(2);
        keys.push(if again && back <= i { keys[(i - back) as usize] } else { key(0, i) });
    }
    keys
}

/// Returns times with steps within a generation, over several, and beyond all that a filter remembers; some are late.
fn times(n: usize) -> Vec<i64> {
    let mut now = START;
    (0..n as u64)
        .map(|i| {
            now += match key(4, i) % 2000 {
                0..600 => 0,
                600..1600 => SECOND / 20,
                1600..1980 => SECOND / 5,
                1980..1988 => 13 * SECOND,
                1988..1994 => 30 * SECOND,
                1994..1998 => 55 * SECOND,
                1998 => 500 * SECOND,
                _ => 100_000 * SECOND,
            };
            now - [0, 0, 0, 0, 0, 0, 1, 7][(key(5, i) % 8) as usize] * SECOND
        })
        .collect()
}

#[test]
fn a_batch_is_its_single_calls() {
    let (keys, times) = (stream(N, 900), times(N));
    let all = all(COUNT, TIME);
    assert!(all.len() > 25, "{} filters", all.len());
    std::thread::scope(|scope| {
        for refresh in [Refresh::Always, Refresh::Unseen, Refresh::Delivered] {
            let (all, keys, times) = (&all, &keys, &times);
            scope.spawn(move || {
                for (name, window, shape) in all {
                    check(&format!("{name} {window} {refresh:?}"), *window, shape, refresh, keys, times);
                }
            });
        }
    });
}

/// Each thread has a part of the cells, and takes the keys in pieces.
#[test]
fn threads_leave_the_filter_that_one_leaves() {
    let (keys, times) = (stream(2 * MANY, 3 * LARGE), times(2 * MANY));
    let batch = Keys::made(keys.clone());
    let all = all(Window::Count { insertions: LARGE }, minute(LARGE)).into_iter();
    // Others read the whole window for a key, and are not divided.
    let quick = all.filter(|(_, window, shape)| shape.cache_lines(*window).miss < 100.0);
    for (number, (name, window, shape)) in quick.enumerate() {
        for refresh in [None, Some(Refresh::Always), Some(Refresh::Unseen)] {
            let [mut alone, mut shared] = [0; 2].map(|_| AnyFilter::of(Arc::clone(&shape), window, 0).unwrap());
            let threads = 2 + number % 5;
            for range in [0..MANY, MANY..2 * MANY] {
                let at = if let Window::Count { .. } = window {
                    Moments::Untimed
                } else {
                    Moments::of(&times[range.clone()])
                };
                let [mut expected, mut seen] = [0; 2].map(|_| vec![false; refresh.map_or(0, |_| MANY)]);
                match refresh {
                    None => alone.engine_mut().insert(&keys[range.clone()], at).unwrap(),
                    Some(refresh) => {
                        alone.engine_mut().duplicated(&keys[range.clone()], at, refresh, &mut expected).unwrap();
                    }
                }
                let insertion = Insertion { at, refresh, seen: &mut seen };
                shared.engine_mut().process_shared(Chunk::new(threads, &batch).at(range), insertion).unwrap();
                assert!(seen == expected, "{name} {window} {refresh:?}: answers of {threads} threads");
                assert!(bytes_of(&shared) == bytes_of(&alone), "{name} {window} {refresh:?}: {threads} threads");
            }
        }
    }
}

fn check(name: &str, window: Window, shape: &Arc<dyn Shape>, refresh: Refresh, keys: &[u64], times: &[i64]) {
    let made = || AnyFilter::of(Arc::clone(shape), window, 0).unwrap();
    let at = |from: usize, to: usize| match window {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { .. } => Moments::of(&times[from..to]),
    };
    let (mut one_by_one, mut expected) = (made(), Vec::new());
    let mut exact = Exact::new(&one_by_one);
    for (i, &key) in keys.iter().enumerate() {
        let engine = one_by_one.engine_mut();
        let at = if window == COUNT { Moments::Untimed } else { Moments::At(times[i]) };
        let seen = engine.contains_one(key, at).unwrap();
        assert!(seen || !exact.promised(key, at), "{name}: key {i} is missed");
        expected.push(seen);
        // Without refresh the window goes on, though nothing is inserted.
        match refresh {
            Refresh::Always if i % 2 == 0 => engine.insert(&[key], at).unwrap(),
            _ => assert_eq!(engine.seen_one(key, at, refresh).unwrap(), expected[i], "{name}"),
        }
        exact.take(key, at, refresh == Refresh::Always || !seen, refresh != Refresh::Delivered || !seen);
        assert!(window != COUNT || engine.clock().inserted() as i64 == exact.inserted, "{name}: insertions after {i}");
    }
    // Queries lie a little before the latest time, or after it.
    let last = times.iter().max().unwrap();
    let later: Vec<i64> =
        (0..N as u64).map(|i| last + [-7, 0, 3, 20, 70, 150, 1_000_000][(key(6, i) % 7) as usize] * SECOND).collect();
    let within = |from: usize, to: usize| match window {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { .. } => Moments::of(&later[from..to]),
    };
    let engine = one_by_one.engine();
    let alone: Vec<bool> = (0..N).map(|i| engine.contains_one(keys[i], within(i, i + 1)).unwrap()).collect();
    let repeats = expected.iter().filter(|&&seen| seen).count();
    assert!((N / 5..N).contains(&repeats), "{name}: {repeats} repeats");
    for sizes in SIZES {
        let (mut filter, mut inserting, mut seen, mut queried) = (made(), made(), vec![false; N], vec![false; N]);
        let (mut start, mut sizes) = (0, sizes.iter().cycle());
        while start < N {
            let end = N.min(start + sizes.next().unwrap());
            let (keys, at) = (&keys[start..end], at(start, end));
            filter.engine_mut().duplicated(keys, at, refresh, &mut seen[start..end]).unwrap();
            if refresh == Refresh::Always {
                inserting.engine_mut().insert(keys, at).unwrap();
            }
            engine.query(keys, within(start, end), &mut queried[start..end]).unwrap();
            start = end;
        }
        assert!(seen == expected, "{name}: answers differ");
        assert!(bytes_of(&filter) == bytes_of(&one_by_one), "{name}: the filters differ");
        assert!(
            refresh != Refresh::Always || bytes_of(&inserting) == bytes_of(&one_by_one),
            "{name}: insertions differ"
        );
        assert!(queried == alone, "{name}: queries differ");
    }
}
