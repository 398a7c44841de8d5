//! The line layout: exactly as many insertions are retained as stated, and false positives are as frequent as the shape
//! computes.

use crate::support::{self, insert, key, present};
use lately::clock::{Moments, Window};
use lately::family::AnyFilter;
use lately::family::lines::shape::LineShape;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn filter(shape: LineShape, window: Window) -> AnyFilter {
    AnyFilter::new(shape, window, 0).unwrap()
}

/// Steps of one insertion, of a few, and of many; one page, and more than a window has keys.
#[test]
fn no_key_of_the_window_is_missed_in_any_shape() {
    for (k, l, lines) in [(1, 7, 1), (2, 6, 2), (4, 4, 3), (3, 13, 1), (4, 12, 4), (1, 31, 3), (4, 28, 2)] {
        for (window, pages) in [(300, 1), (300, 7), (100, 120), (2000, 3)] {
            let shape = LineShape::age_partitioned(k, l, pages, lines).unwrap();
            let step = count(window).generation(shape.retained());
            let turns = 3 * u64::from(shape.lanes) * shape.pages * step;
            support::check_window(&mut filter(shape, count(window)), window, step, turns + 1).unwrap();
        }
    }
}

/// Lines have so few keys that none is reported by chance: only retained keys are.
#[test]
fn as_many_insertions_are_retained_as_stated() {
    for (k, l, lines, window, pages) in [(1, 7, 2, 71, 2), (2, 6, 2, 120, 3), (3, 13, 4, 79, 1), (2, 14, 3, 400, 5)] {
        let shape = LineShape::age_partitioned(k, l, pages, lines).unwrap();
        let mut filter = filter(shape, count(window));
        let step = count(window).generation(shape.retained());
        let full = step * u64::from(shape.lanes) * pages;
        // How long after its insertion each key of one round of the pages is reported.
        let ages: Vec<u64> = (0..full / u64::from(shape.lanes))
            .map(|phase| {
                let mut filter = filter.clone();
                insert(&mut filter, &(0..full + phase).map(|i| key(1, i)).collect::<Vec<_>>());
                insert(&mut filter, &[key(0, phase)]);
                let gone = |&n: &u64| {
                    insert(&mut filter, &[key(2, n)]);
                    present(&filter, &[key(0, phase)]) == 0
                };
                (1..2 * full).find(gone).unwrap() - 1
            })
            .collect();
        let (least, most) = (*ages.iter().min().unwrap(), *ages.iter().max().unwrap());
        assert!(least >= step * u64::from(shape.retained()) && least + 1 >= window, "{least}");
        // A key may be reported until its page has rotated l + 1 times.
        assert!(most < step * u64::from(shape.retained() + pages as u32), "{most}");
        insert(&mut filter, &[key(0, 0)]);
        assert_eq!(filter.slack(), full - window);
    }
}

#[test]
fn a_window_of_time_ends_as_stated_before_the_moment_of_the_query() {
    let (span, lateness, pages) = (1000_u64, 130, 5);
    let window = Window::Time { span, lateness, capacity: 10 };
    let shape = LineShape::age_partitioned(2, 6, pages, 2).unwrap();
    let step = window.generation(shape.retained()) as i64;
    let last_reported = |stream: u64, inserted: i64| {
        let mut filter = filter(shape, window);
        let keys = [key(stream, 0)];
        filter.engine_mut().insert(&keys, Moments::At(inserted)).unwrap();
        let reported_at = |filter: &AnyFilter, age: i64| {
            let mut present = [false];
            filter.engine().query(&keys, Moments::At(inserted + age), &mut present).unwrap();
            present[0]
        };
        let last = (0..3 * span as i64).take_while(|&age| reported_at(&filter, age)).count() as i64 - 1;
        assert!((last + 1..3 * span as i64).all(|age| !reported_at(&filter, age)), "a forgotten key must not return");
        // A query in the future returns what it will return when that moment has come.
        for age in [last, last + 1] {
            let mut later = filter.clone();
            later.engine_mut().insert(&[key(99, 9)], Moments::At(inserted + age)).unwrap();
            assert_eq!(reported_at(&later, age), age == last, "{age}");
        }
        last
    };
    let mut ages: Vec<i64> =
        (0..60).flat_map(|s| [0, step / 2, step - 1].map(|at| last_reported(s, 37 * step + at))).collect();
    ages.sort_unstable();
    assert!(ages[0] >= (span + lateness) as i64, "{}", ages[0]);
    assert!(ages[ages.len() - 1] as u64 <= span + shape.slack(window), "{}", ages[ages.len() - 1]);
}

/// Returns the share of fresh keys reported, and the one computed from the bits, at all phases of the second round.
fn measure(shape: LineShape, window: u64, trials: u64) -> (f64, f64) {
    let mut filter = filter(shape, count(window));
    let generation = shape.keys_per_generation(count(window));
    let turns = generation * u64::from(shape.lanes);
    insert(&mut filter, &(0..turns).map(|i| key(0, i)).collect::<Vec<_>>());
    let (mut reported, mut now) = (0, 0.0);
    for phase in 0..8 {
        let more: Vec<u64> = (0..generation / 8).map(|i| key(1 + phase, i)).collect();
        insert(&mut filter, &more);
        let fresh: Vec<u64> = (0..trials / 8).map(|i| key(100 + phase, i)).collect();
        reported += present(&filter, &fresh);
        now += filter.false_positive_rate() / 8.0;
    }
    (reported as f64 / trials as f64, now)
}

const RATED: [(u32, u32, u32, f64); 8] = [
    (2, 6, 1, 21.0),
    (3, 5, 1, 22.0),
    (1, 7, 2, 17.5),
    (2, 6, 2, 25.0),
    (3, 13, 2, 24.0),
    (1, 15, 3, 14.0),
    (1, 7, 4, 14.0),
    (2, 30, 4, 17.0),
];

/// `false_positive_rate` is exact given the bits, and the trials vary about it as coins do. The bits vary from filter
/// to filter: the chances of the lines that a key may choose have a deviation about as large as their mean. There are
/// 17,000 of them or more, so 2 % are more than two and a half deviations of one round, which the eight measurements
/// share only in part.
#[test]
fn fresh_keys_are_reported_as_often_as_the_shape_computes() {
    const WINDOW: u64 = 2_000_000;
    const TRIALS: u64 = 400_000;
    for (k, l, lines, bits) in RATED {
        let pages = (bits * WINDOW as f64 / 32768.0) as u64;
        let shape = LineShape::age_partitioned(k, l, pages, lines).unwrap();
        let theory = shape.false_positive_rate(shape.keys_per_generation(count(WINDOW)));
        let (measured, now) = measure(shape, WINDOW, TRIALS);
        let coin = (now * (1.0 - now) / TRIALS as f64).sqrt();
        println!("{shape:?}: measured {measured:.3e}, by the bits {now:.3e}, in theory {theory:.3e}");
        assert!((measured - now).abs() <= 5.0 * coin, "{shape:?}: {measured} is not {now} of the bits");
        assert!((now / theory - 1.0).abs() <= 0.02, "{shape:?}: {now} of the bits is not {theory}");
    }
}

#[test]
fn the_check_of_the_rate_fails_if_all_lines_have_the_mean_load() {
    // Wrong on purpose, as if every line had the mean number of keys: half of the false positives.
    let shape = LineShape::age_partitioned(2, 6, 128, 1).unwrap();
    let keys = shape.keys_per_generation(count(200_000)) as f64;
    let load = 2.0 * keys / (shape.pages * 64) as f64;
    let lane = (1.0 - (15.0_f64 / 16.0).powf(load)).powi(4);
    let naive = lane * lane * (1.0 + 6.0 * (1.0 - lane));
    let (measured, _) = measure(shape, 200_000, 400_000);
    assert!(measured > 1.1 * naive, "{measured} {naive}");
}

#[test]
fn the_largest_shape_has_rates() {
    let largest = LineShape::guarded_epoch(31, (1 << 27) - 1, 4).unwrap();
    assert_eq!(largest.retained(), 31 * ((1 << 27) - 1));
    let _ = (largest.slack(count(1 << 62)), largest.false_positive_rate(largest.keys_per_generation(count(1 << 62))));
}
