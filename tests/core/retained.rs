//! For how long a key is reported: for the window, for the slack at most, and never again. With this many cells no
//! key is reported by chance.

use std::sync::Arc;

use crate::support::{check_window, insert, key, present};
use lately::clock::{BY_INSERTION, Moments, Window};
use lately::family::baselines::counting::shape::CountingShape;
use lately::family::baselines::fingerprint_buffer;
use lately::family::lines::shape::LineShape;
use lately::family::slice_sizes::Slices;
use lately::family::slices::shape::{RingShape, Segment};
use lately::family::slices::transposed::Transposed;
use lately::family::{AnyFilter, Budget, Shape, swamp};

/// A shape, insertions of a window, k of slices or 1, and pages that rotate one after another.
type Case = (Arc<dyn Shape>, u64, u64, Option<u64>);

const BITS: Segment = Segment::Bits { bits: 1 << 22, parts: 1 };
const BLOCKS: Segment = Segment::Blocks { blocks: 1 << 14, block_bits: 512, parts: 8 };

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for segment in [Segment::Bits { bits: 1 << 16, parts: 7 }, BLOCKS] {
        // r divides W - 1, W, or neither; and r is above W.
        for (window, r) in [(101, 4), (100, 4), (100, 3), (103, 4), (1, 1), (5, 9)] {
            cases.push((Arc::new(RingShape::guarded_epoch(r, segment).unwrap()), window, 1, None));
        }
    }
    for (window, r) in [(106, 7), (105, 7), (101, 7), (100, 15), (5, 31), (70, 63)] {
        cases.push((Arc::new(Transposed::new(r, 7, 1 << 16).unwrap()), window, 1, None));
    }
    for (segment, (k, l)) in [BITS, BLOCKS].into_iter().flat_map(|s| [(1, 1), (1, 6), (4, 6), (5, 2)].map(|kl| (s, kl)))
    {
        cases.push((Arc::new(RingShape::age_partitioned(k, l, segment).unwrap()), 100, k.into(), None));
    }
    for (k, l, lines, window, pages) in [(1, 7, 2, 71, 2), (2, 6, 2, 120, 3), (3, 13, 4, 79, 1), (2, 14, 3, 400, 5)] {
        cases.push((Arc::new(LineShape::age_partitioned(k, l, pages, lines).unwrap()), window, k.into(), Some(pages)));
    }
    for window in [1, 2, 7, 15, 16, 17, 64, 1000] {
        let counters = CountingShape { slices: Slices::new(4, 100_000).unwrap() };
        cases.push((Arc::new(counters), window, 0, None));
        let rate = Budget::Rate(1e-12);
        cases.push((Arc::new(swamp::shape::choose(count(window), rate).unwrap()), window, 0, None));
        cases.push((Arc::new(fingerprint_buffer::shape::choose(count(window), rate).unwrap()), window, 0, None));
    }
    cases
}

/// Returns for how many more insertions a key is reported: the least and the most of some phases.
fn ages(mut filter: AnyFilter, phases: u64) -> (u64, u64) {
    let round = filter.window().length() + filter.slack();
    let first: Vec<_> = (0..round).map(|i| key(1, i)).collect();
    insert(&mut filter, &first);
    let age = |phase| {
        insert(&mut filter, &[key(1, round + phase)]);
        let mut later = filter.clone();
        insert(&mut later, &[key(0, phase)]);
        let reported = |n| {
            let there = present(&later, &[key(0, phase)]) == 1;
            insert(&mut later, &[key(2, n)]);
            there
        };
        let reported: Vec<bool> = (0..2 * round).map(reported).collect();
        let last = reported.iter().rposition(|&there| there).unwrap();
        assert!(reported[..last].iter().all(|&there| there), "a forgotten key must not return");
        last as u64
    };
    let ages: Vec<u64> = (0..phases).map(age).collect();
    insert(&mut filter, &(0..round).map(|i| key(3, i)).collect::<Vec<_>>());
    assert_eq!(present(&filter, &first), 0, "the first keys have left");
    (*ages.iter().min().unwrap(), *ages.iter().max().unwrap())
}

#[test]
fn as_many_insertions_are_retained_as_stated() {
    for (shape, insertions, k, pages) in cases() {
        let filter = AnyFilter::of(Arc::clone(&shape), count(insertions), 0).unwrap();
        let (retained, slack) = (u64::from(shape.retained()), filter.slack());
        let step = count(insertions).generation(shape.retained());
        let (least, most) = ages(filter, step * pages.unwrap_or(1));
        let of = format!("{shape:?}, window {insertions}: {least} to {most} of {slack}");
        assert!(least + 1 >= insertions && most < insertions + slack, "{of}");
        match pages {
            _ if shape.retained() == BY_INSERTION => assert_eq!((least, slack), (most, 0), "{of}"),
            None => {
                assert_eq!((least, most), (step * retained, step * (retained + 1) - 1), "{of}");
                assert_eq!(insertions + slack, step * (retained + k), "{of}");
            }
            // A key may be reported until its page has rotated l + 1 times.
            Some(pages) => {
                assert!(least >= step * retained && most < step * (retained + pages), "{of}");
                assert_eq!(insertions + slack, step * (retained + k * pages), "{of}");
            }
        }
    }
}

#[test]
fn a_window_of_time_ends_as_stated_before_the_moment_of_the_query() {
    let (span, lateness, pages) = (1000_u64, 130, 5);
    let window = Window::Time { span, lateness, capacity: 10 };
    let line = LineShape::age_partitioned(2, 6, pages, 2).unwrap();
    let shapes: [(Arc<dyn Shape>, u64); 4] = [
        (Arc::new(RingShape::guarded_epoch(4, Segment::Bits { bits: 1 << 20, parts: 7 }).unwrap()), 1),
        (Arc::new(Transposed::new(7, 7, 1 << 20).unwrap()), 1),
        (Arc::new(Transposed::new(63, 7, 1 << 16).unwrap()), 1),
        (Arc::new(line), pages),
    ];
    for (shape, pages) in shapes {
        let step = window.generation(shape.retained()) as i64;
        let last_reported = |stream: u64, inserted: i64| {
            let mut filter = AnyFilter::of(Arc::clone(&shape), window, 0).unwrap();
            let keys = [key(stream, 0)];
            filter.engine_mut().insert(&keys, Moments::At(inserted)).unwrap();
            let reported_at = |filter: &AnyFilter, age: i64| {
                filter.engine().contains_one(keys[0], Moments::At(inserted + age)).unwrap()
            };
            let last = (0..3 * span as i64).take_while(|&age| reported_at(&filter, age)).count() as i64 - 1;
            assert!(
                (last + 1..3 * span as i64).all(|age| !reported_at(&filter, age)),
                "a forgotten key must not return"
            );
            // A query in the future returns what it will return when that moment has come.
            for age in [last, last + 1] {
                let mut later = filter.clone();
                later.engine_mut().insert(&[key(99, 9)], Moments::At(inserted + age)).unwrap();
                assert_eq!(reported_at(&later, age), age == last, "{age}");
            }
            last
        };
        // Keys of every page, and moments at both ends of a generation.
        let at = |stream| [0, step / 2, step - 1].map(|phase| last_reported(stream, 37 * step + phase));
        let ages: Vec<i64> = (0..if pages > 1 { 60 } else { 1 }).flat_map(at).collect();
        let (least, most) = (*ages.iter().min().unwrap(), *ages.iter().max().unwrap());
        assert!(least >= (span + lateness) as i64 && most as u64 <= span + shape.slack(window), "{least} {most}");
        if pages == 1 {
            // The key of the last moment of an epoch is reported for the shortest time. A late key may be older.
            let retained = i64::from(shape.retained());
            assert_eq!((least, most), (step * retained, step * (retained + 1) - 1));
            assert_eq!((span + shape.slack(window)) as i64, step * (retained + 1));
        }
    }
}

/// Cells of every width, and generations of one insertion, of a few, and of many; one page, and more than a window has
/// keys.
#[test]
fn no_key_of_the_window_is_missed_in_cells_of_any_width() {
    let mut shapes: Vec<(Arc<dyn Shape>, u64, u64)> = Vec::new();
    for (r, window) in [7, 15, 31, 63].into_iter().flat_map(|r| [5, 64, 1000, 10_007].map(|window| (r, window))) {
        shapes.push((Arc::new(Transposed::new(r, 5, 3 * window + 5).unwrap()), window, (r + 1).into()));
    }
    for (k, l, lines) in [(1, 7, 1), (2, 6, 2), (4, 4, 3), (3, 13, 1), (4, 12, 4), (1, 31, 3), (4, 28, 2)] {
        for (window, pages) in [(300, 1), (300, 7), (100, 120), (2000, 3)] {
            let shape = LineShape::age_partitioned(k, l, pages, lines).unwrap();
            shapes.push((Arc::new(shape), window, u64::from(k + l) * pages));
        }
    }
    for (shape, window, turn) in shapes {
        let step = count(window).generation(shape.retained());
        let mut filter = AnyFilter::of(shape, count(window), 0).unwrap();
        check_window(&mut filter, window, step, 3 * turn * step + 1).unwrap();
    }
}
