//! The promise of every family of the table, in every layout, at its worst phase: no key of the window is missed just
//! after a rotation, and fresh keys are reported as often as stated just before one.

use std::sync::Arc;

use crate::support::{Rates, campaign, check_window, insert, key, present, trials};
use lately::clock::Window;
use lately::family::slices::shape::{Paper, choose};
use lately::family::{AnyFilter, Budget, Request, Shape, VARIANTS};

const WINDOWS: [u64; 4] = [1, 7, 1000, 20_011];
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 1e-5];
/// Variants whose rate is a bound, or a mean over all phases.
const BOUNDS: [&str; 3] = ["age-partitioned-line", "guarded-epoch-line", "aged-cuckoo"];

/// Calls `check` with the shape that each variant with a promise plans for each window of insertions and each rate, and
/// with its name. Those of a rate have a thread of their own.
fn for_all(check: impl Fn(&str, &Arc<dyn Shape>, Window, f64) + Sync) {
    std::thread::scope(|scope| {
        for rate in RATES {
            let check = &check;
            scope.spawn(move || {
                for variant in VARIANTS.iter().filter(|variant| variant.family.promises) {
                    for window in WINDOWS.map(|insertions| Window::Count { insertions }) {
                        let request = Request::of(window, Budget::Rate(rate));
                        if variant.rejection(&request).is_none() {
                            check(&variant.name(), &variant.plan(&request).unwrap(), window, rate);
                        }
                    }
                }
                // Of blocks of 64 bits only a user's parameters make a filter.
                for (paper, insertions) in [(Paper::AgePartitioned, 1000), (Paper::GuardedEpoch, 20_011)] {
                    let window = Window::Count { insertions };
                    let shape = choose(window, Budget::Rate(rate), None, Some(64), paper).unwrap();
                    check("blocks of 64", &(Arc::new(shape) as Arc<dyn Shape>), window, rate);
                }
            });
        }
    });
}

#[test]
fn no_key_of_the_window_is_missed() {
    for_all(|name, shape, window, rate| {
        // Shapes of neighbouring rates differ little, and large windows take seconds.
        if window.length() > 1000 && !campaign() && (rate == RATES[0] || rate == RATES[2]) {
            return;
        }
        let mut filter = AnyFilter::of(Arc::clone(shape), window, 0).unwrap();
        let rounds = 3 * (window.length() + filter.slack()) + 5;
        let generation = window.generation(shape.retained()).max(window.length() / 16 + 1);
        check_window(&mut filter, window.length(), generation, rounds)
            .unwrap_or_else(|error| panic!("{name} {shape:?}: {error}"));
    });
}

/// One filter has just opened a generation that the other is about to end.
#[test]
fn merged_filters_keep_the_last_keys_of_each() {
    for_all(|name, shape, window, _| {
        if window.length() > 1000 {
            return;
        }
        let generation = window.generation(shape.retained());
        let opened = (2 * window.length()).div_ceil(generation) * generation + 1;
        let of = |stream, keys| {
            let mut filter = AnyFilter::of(Arc::clone(shape), window, 0).unwrap();
            insert(&mut filter, &(0..keys).map(|i| key(stream, i)).collect::<Vec<_>>());
            filter
        };
        let full = opened + generation - 1;
        let (first, last) = (of(1, opened), of(2, full));
        for (mut merged, other) in [(first.clone(), &last), (last.clone(), &first)] {
            if let Err(error) = merged.merge(other) {
                assert!(error.to_string().contains("cannot be combined"), "{name} {window}: {error}");
                return;
            }
            for later in 0..window.length() {
                let oldest = [(1, opened), (2, full)].map(|(stream, keys)| key(stream, keys + later - window.length()));
                assert_eq!(present(&merged, &oldest), 2, "{name} {shape:?} after {later} keys");
                insert(&mut merged, &[key(3, later)]);
            }
        }
    });
}

#[test]
fn fresh_keys_are_reported_as_often_as_stated_and_no_more_often_than_planned() {
    for_all(|name, shape, window, rate| {
        // Small filters vary more than large ones.
        let (filters, fresh) = match window.length() {
            20_011 => (100, 20_000),
            1000 => (2000, 1000),
            _ => (20_000, 100),
        };
        // A buffer compares each key with all that it has.
        let fresh = if shape.cache_lines(window).miss > 100.0 { fresh / 10 } else { fresh };
        let stated = shape.fpr(window);
        assert!(stated <= rate, "{name} {shape:?}");
        let measured = Rates::measure(shape, window, trials(filters), fresh).check(stated);
        match measured {
            Ok(_) => {}
            Err((measured, _)) if BOUNDS.contains(&name) && measured < stated => {}
            Err(error) => panic!("{name} {window} {shape:?}: {error:?} is not {stated}"),
        }
    });
}

/// As a filter fills, when it is full, and later.
#[test]
fn the_rate_by_the_cells_is_the_rate_that_is_measured() {
    let window = Window::Count { insertions: 5000 };
    for variant in VARIANTS.iter().filter(|variant| variant.family.promises && variant.name() != "aged-cuckoo") {
        for slack in [None, Some(100), Some(0)] {
            let request = Request { slack, ..Request::of(window, Budget::Rate(0.02)) };
            let made = variant.plan(&request).and_then(|shape| AnyFilter::of(shape, window, 0));
            let Ok(mut filter) = made else { continue };
            let trials = if filter.shape().cache_lines(window).miss > 100.0 { 5_000 } else { 100_000 };
            assert_eq!(filter.false_positive_rate(), 0.0);
            for keys in [0..100, 100..6000, 6000..40_000] {
                insert(&mut filter, &keys.map(|i| key(0, i)).collect::<Vec<_>>());
                let reported = present(&filter, &(0..trials).map(|i| key(1, i)).collect::<Vec<_>>()) as f64;
                let (rate, name) = (filter.false_positive_rate(), variant.name());
                let expected = rate * trials as f64;
                assert!(
                    (reported - expected).abs() <= 5.0 * expected.sqrt() + 5.0,
                    "{name}: {reported} for {expected}"
                );
                assert!(rate <= 1.2 * filter.fpr(), "{name}: {rate}");
            }
        }
    }
}
