//! A batch of any size answers as single calls do, and leaves the same filter: in every family, on either clock.

use std::sync::Arc;

use crate::fuzzed::saved::bytes_of;
use crate::support::key;
use crate::support::timed::{SECOND, START};
use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::family::slices::shape::{Paper, choose};
use lately::family::{AnyFilter, Budget, Family, Request, Shape, VARIANTS};

const N: usize = 4500;
const COUNT: Window = Window::Count { insertions: 300 };
const TIME: Window = Window::Time { span: 60 * SECOND as u64, lateness: 7 * SECOND as u64, capacity: 300 };
/// Sizes in turn: some empty, and around those at which batches are cut into lanes, blocks and pieces.
const SIZES: [&[usize]; 8] =
    [&[2], &[3, 1], &[15, 16, 17], &[63, 64, 65, 0], &[1, 200, 0, 2, 10], &[4095, 1], &[4097], &[N]];

/// Returns the shape of each variant in each window that it can have, with its name.
fn all() -> Vec<(String, Window, Arc<dyn Shape>)> {
    let mut all = Vec::new();
    let request = |unknown_rate| Request { unknown_rate, ..Request::from(Budget::Rate(0.02)) };
    for (variant, window) in VARIANTS.iter().flat_map(|variant| [(variant, COUNT), (variant, TIME)]) {
        let suited =
            [request(false), request(true)].into_iter().find(|request| variant.rejection(window, request).is_none());
        all.extend(suited.map(|request| (variant.name(), window, variant.plan(window, &request).unwrap())));
    }
    for (family, changed) in [("bloom", request(false)), ("bloom", Request { partitioned: true, ..request(false) })] {
        all.push((family.into(), COUNT, Family::named(family).unwrap().plan(COUNT, &changed).unwrap()));
    }
    for paper in [Paper::AgePartitioned, Paper::GuardedEpoch] {
        let shape = choose(COUNT, Budget::Rate(0.02), None, Some(64), paper).unwrap();
        all.push((format!("{paper:?}, blocks of 64"), COUNT, Arc::new(shape)));
    }
    all
}

/// Returns keys of which about half are repeats, mostly near.
fn stream() -> Vec<u64> {
    let mut keys = Vec::new();
    for i in 0..N as u64 {
        let (again, back) = (key(1, i).is_multiple_of(2), key(2, i) % [40, 400, 900][(key(3, i) % 3) as usize] + 1);
        keys.push(if again && back <= i { keys[(i - back) as usize] } else { key(0, i) });
    }
    keys
}

/// Returns times with steps within a generation, over several, and beyond all that a filter remembers; some are late.
fn times() -> Vec<i64> {
    let mut now = START;
    (0..N as u64)
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
    let (keys, times) = (stream(), times());
    let all = all();
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

fn check(name: &str, window: Window, shape: &Arc<dyn Shape>, refresh: Refresh, keys: &[u64], times: &[i64]) {
    let made = || AnyFilter::of(Arc::clone(shape), window, 0).unwrap();
    let at = |from: usize, to: usize| match window {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { .. } => Moments::of(&times[from..to]),
    };
    let (mut one_by_one, mut expected) = (made(), Vec::new());
    for (i, &key) in keys.iter().enumerate() {
        let (engine, at) = (one_by_one.engine_mut(), at(i, i + 1));
        expected.push(engine.contains_one(key, at).unwrap());
        // Without refresh the window goes on, though nothing is inserted.
        match refresh {
            Refresh::Always if i % 2 == 0 => engine.insert(&[key], at).unwrap(),
            _ => assert_eq!(engine.seen_one(key, at, refresh).unwrap(), expected[i], "{name}"),
        }
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
