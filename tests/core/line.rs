//! The line layout: false positives are as frequent as the shape computes.

use crate::support::{insert, key, present};
use lately::clock::Window;
use lately::family::AnyFilter;
use lately::family::Shape as _;
use lately::family::lines::shape::LineShape;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Returns the share of fresh keys reported, and the one computed from the bits, at all phases of the second round.
fn measure(shape: LineShape, window: u64, trials: u64) -> (f64, f64) {
    let mut filter = AnyFilter::new(shape, count(window), 0).unwrap();
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
fn the_largest_shape_has_rates() {
    let largest = LineShape::guarded_epoch(31, (1 << 27) - 1, 4).unwrap();
    assert_eq!(largest.retained(), 31 * ((1 << 27) - 1));
    let _ = (largest.slack(count(1 << 62)), largest.false_positive_rate(largest.keys_per_generation(count(1 << 62))));
}
