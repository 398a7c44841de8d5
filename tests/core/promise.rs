//! The promise of the age-partitioned Bloom filter, plain and blocked, at its worst phase: no key of the window is
//! missed just after a shift, and false positives are no more frequent than planned just before one.
//!
//! Both checks are functions that return what is wrong, so that tests can show that they fail on filters sized by the
//! formulas that the paper prints.

use crate::support::{self, insert, key, present};
use lately::clock::Window;
use lately::family::slices::shape::{Paper, RingShape, Segment};
use lately::family::{AnyFilter, Budget, runs, slices};

const WINDOWS: [u64; 4] = [1, 7, 1000, 100_003];
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 1e-5];
const BLOCK_BITS: [Option<u32>; 3] = [None, Some(64), Some(512)];

/// Checks the last `window` keys, through two full rounds of the ring of a filter made for `promised`.
fn check_window(shape: RingShape, promised: Window, window: u64) -> Result<(), String> {
    let mut filter = AnyFilter::new(shape, promised, 0).unwrap();
    let generation = promised.generation(shape.l);
    let turns = 2 * u64::from(shape.k + shape.l) * generation;
    support::check_window(&mut filter, window, generation, turns.max(2 * window))
        .map_err(|error| format!("{shape:?}: {error}"))
}

/// Checks that fresh keys are reported no more often than `rate`, within five standard deviations of the mean over the
/// trials, just before a shift in the second round.
///
/// A trial's outcome varies as a coin with that rate. The fill of each slice varies too from filter to filter: by at
/// most what independent cells would (occupied cells are negatively associated), times the slope of the rate in that
/// fill.
fn check_rate(shape: RingShape, window: Window, rate: f64, filters: u64, trials: u64) -> Result<f64, String> {
    let generation = window.generation(shape.l);
    let inserted = u64::from(shape.k + shape.l + 1) * generation;
    let mut reported = 0;
    for stream in 0..filters {
        let mut filter = AnyFilter::new(shape, window, 0).unwrap();
        insert(&mut filter, &(0..inserted).map(|i| key(stream, i)).collect::<Vec<_>>());
        let fresh: Vec<_> = (0..trials).map(|i| key(stream, inserted + i)).collect();
        reported += present(&filter, &fresh);
    }
    let fills = shape.fills(generation, generation);
    let cells = match shape.segment {
        Segment::Bits { bits, .. } => bits,
        Segment::Blocks { blocks, .. } => blocks,
    };
    let variance_of_fill = |i: usize| {
        let mut up = fills.clone();
        up[i] += 1e-3 * fills[i];
        let rise = runs::false_positive_rate(shape.k, &up) - runs::false_positive_rate(shape.k, &fills);
        (rise / (1e-3 * fills[i])).powi(2) * fills[i] * (1.0 - fills[i]) / cells as f64
    };
    let between: f64 = (0..fills.len()).map(variance_of_fill).sum();
    let all = (filters * trials) as f64;
    let bound = rate + 5.0 * (rate * (1.0 - rate) / all + between / filters as f64).sqrt();
    let measured = reported as f64 / all;
    if measured <= bound { Ok(measured) } else { Err(format!("{shape:?}: {measured} is more than {rate} ({bound})")) }
}

/// Calls `check` for every window, rate and layout of the promise.
fn for_all(check: impl Fn(RingShape, Window, f64) + Sync) {
    std::thread::scope(|scope| {
        for block_bits in BLOCK_BITS {
            let check = &check;
            scope.spawn(move || {
                for insertions in WINDOWS {
                    for rate in RATES {
                        let window = Window::Count { insertions };
                        let shape =
                            slices::shape::choose(window, Budget::Rate(rate), None, block_bits, Paper::AgePartitioned)
                                .unwrap();
                        check(shape, window, rate);
                    }
                }
            });
        }
    });
}

#[test]
fn no_key_of_the_window_is_missed() {
    for_all(|shape, window, _| {
        let Window::Count { insertions } = window else { unreachable!() };
        check_window(shape, window, insertions).unwrap();
    });
}

#[test]
fn the_check_of_the_window_fails_if_one_generation_too_many_is_promised() {
    for insertions in [1000, 100_003] {
        let window = Window::Count { insertions };
        let shape = slices::shape::choose(window, Budget::Rate(0.01), None, None, Paper::AgePartitioned).unwrap();
        // Wrong on purpose, as if (l + 1) * g keys were retained: generations are too short, and a window of them loses
        // keys.
        let short = insertions.div_ceil(u64::from(shape.l) + 1);
        let promised = Window::Count { insertions: short * u64::from(shape.l) + 1 };
        check_window(shape, promised, insertions).unwrap_err();
    }
}

#[test]
fn fresh_keys_are_reported_no_more_often_than_planned() {
    for_all(|shape, window, rate| {
        let Window::Count { insertions } = window else { unreachable!() };
        // Small filters vary more than large ones.
        let (filters, trials) = match insertions {
            100_003 => (100, 20_000),
            1000 => (2000, 1000),
            _ => (20_000, 100),
        };
        check_rate(shape, window, rate, support::trials(filters), trials).unwrap();
    });
}

#[test]
fn the_check_of_the_rate_fails_for_the_fills_that_the_paper_prints() {
    let window = Window::Count { insertions: 100_003 };
    for (k, l, rate) in [(4, 3, 0.1), (7, 5, 0.01), (10, 7, 0.001)] {
        let generation = window.generation(l);
        // Section 5.3: r_i = (i + 1) / 2k while filling, 1/2 when full.
        let printed: Vec<_> = (0..k + l).map(|i| f64::from((i + 1).min(k)) / f64::from(2 * k)).collect();
        let printed_rate = runs::false_positive_rate(k, &printed);
        let bits = (f64::from(k) * generation as f64 / std::f64::consts::LN_2).ceil() as u64;
        let shape = RingShape::age_partitioned(k, l, Segment::Bits { bits, parts: 1 }).unwrap();
        assert!((printed_rate / rate - 1.0).abs() < 0.25);
        check_rate(shape, window, printed_rate, 10, 500_000).unwrap_err();
        check_rate(shape, window, shape.false_positive_rate(generation), 10, 500_000).unwrap();
    }
}
