//! The Bloom filter: no key is ever forgotten, the rate is exact at any number of keys, and two filters can be merged.

use crate::support::{check_window, insert, key, present};
use lately::clock::Window;
use lately::family::bloom::shape::{BloomShape, choose};
use lately::family::{AnyFilter, Budget};

fn keys(stream: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| key(stream, i)).collect()
}

fn planned(capacity: u64) -> Window {
    Window::Count { insertions: capacity }
}

#[test]
fn no_key_is_missed_far_beyond_the_capacity() {
    for partitioned in [false, true] {
        for (capacity, fpr) in [(20, 0.1), (1000, 0.01), (1000, 1e-9)] {
            let mut filter =
                AnyFilter::new(choose(capacity, Budget::Rate(fpr), partitioned).unwrap(), planned(capacity), 0)
                    .unwrap();
            check_window(&mut filter, 5 * capacity, 1 + capacity / 10, 5 * capacity).unwrap();
            assert!(filter.false_positive_rate() > filter.fpr(), "there are five times as many keys as planned");
        }
    }
}

/// Returns the share of fresh keys reported by `filters` filters with `held` keys each, the mean of the rates that
/// their bits give, and the variance of that mean.
fn measured(shape: BloomShape, held: u64, filters: u64, trials: u64) -> (f64, f64, f64) {
    let mut rates = Vec::new();
    let mut reported = 0;
    for stream in 0..filters {
        let mut filter = AnyFilter::new(shape, planned(held), 0).unwrap();
        insert(&mut filter, &keys(stream, held));
        rates.push(filter.false_positive_rate());
        reported += present(&filter, &keys(filters + stream, trials));
    }
    let n = filters as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (reported as f64 / (n * trials as f64), mean, variance / n)
}

#[test]
fn fresh_keys_are_reported_at_the_exact_rate() {
    let shapes = [
        (BloomShape::classical(3, 40).unwrap(), 10, 20_000, 20),
        (BloomShape::classical(1, 100).unwrap(), 80, 2000, 50),
        (BloomShape::classical(7, 9600).unwrap(), 1000, 300, 3000),
        (BloomShape::classical(4, 100_001).unwrap(), 10_000, 20, 50_000),
        (BloomShape::partitioned(3, 13).unwrap(), 10, 20_000, 20),
        (BloomShape::partitioned(7, 1400).unwrap(), 1000, 300, 3000),
        (BloomShape::partitioned(5, 20_001).unwrap(), 10_000, 20, 50_000),
    ];
    for (shape, held, filters, trials) in shapes {
        let exact = shape.false_positive_rate(held);
        let (rate, by_bits, variance) = measured(shape, held, filters, trials);
        // Five standard deviations: of the filters, as their bits show, and of the fresh keys, which are coins.
        let coins = exact * (1.0 - exact) / (filters * trials) as f64;
        assert!((by_bits - exact).abs() < 5.0 * variance.sqrt(), "{shape:?}: {by_bits} is not {exact}");
        assert!((rate - exact).abs() < 5.0 * (variance + coins).sqrt(), "{shape:?}: {rate} is not {exact}");
        let of_more = shape.false_positive_rate(held + held / 8);
        assert!((rate - of_more).abs() > 5.0 * (variance + coins).sqrt(), "the test must detect an eighth more keys");
    }
    // In a small array the power of the mean fill would fail.
    let (_, by_bits, variance) = measured(shapes[0].0, 10, 20_000, 1);
    let of_mean = (1.0 - (39.0_f64 / 40.0).powi(30)).powi(3);
    assert!((by_bits - of_mean).abs() > 5.0 * variance.sqrt(), "{by_bits} {of_mean}");
}

#[test]
fn a_merged_filter_equals_one_with_all_keys() {
    for shape in [BloomShape::classical(5, 7001).unwrap(), BloomShape::partitioned(5, 1401).unwrap()] {
        let made = |range: std::ops::Range<u64>| {
            let mut filter = AnyFilter::new(shape, planned(500), 9).unwrap();
            insert(&mut filter, &range.map(|i| key(0, i)).collect::<Vec<_>>());
            filter
        };
        let (mut here, there, all) = (made(0..700), made(700..800), made(0..800));
        here.merge(&there).unwrap();
        assert_eq!(here.engine().words().as_slice(), all.engine().words().as_slice());
        assert_eq!(here.engine().clock(), all.engine().clock(), "800 insertions");
        let other = AnyFilter::new(shape, planned(501), 9).unwrap();
        let error = here.merge(&other).unwrap_err().to_string();
        assert!(error.contains("capacity is 500 insertions here and 501 insertions there"), "{error}");
    }
}
