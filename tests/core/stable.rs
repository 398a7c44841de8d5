//! The stable Bloom filter: it promises no window, but both of its errors are those that its shape computes.

use crate::support::{check_window, insert, key, mean, present};
use lately::clock::Window;
use lately::family::baselines::stable::shape::{StableShape, choose};
use lately::family::slice_sizes::Slices;
use lately::family::{AnyFilter, Budget};

const SHAPES: [(u32, u64, u32, u64); 5] =
    [(1, 500, 1, 3), (2, 3500, 4, 30), (3, 2000, 2, 25), (2, 300, 8, 300), (4, 64, 1, 5)];

fn shape((k, cells, bits, decrements): (u32, u64, u32, u64)) -> StableShape {
    StableShape::new(Slices::new(k, cells).unwrap(), bits, decrements).unwrap()
}

fn filled(shape: StableShape, seed: u64, keys: u64) -> AnyFilter {
    let mut filter = AnyFilter::new(shape, Window::Count { insertions: 100 }, seed).unwrap();
    insert(&mut filter, &(0..keys).map(|i| key(seed, i)).collect::<Vec<_>>());
    filter
}

#[test]
fn fill_and_rate_at_the_stable_point_are_exact() {
    for parameters in SHAPES {
        let shape = shape(parameters);
        let (mut fills, mut reported) = (Vec::new(), Vec::new());
        for seed in 0..200 {
            let filter = filled(shape, seed, 20_000);
            fills.push(filter.engine().fill()[0]);
            let fresh: Vec<_> = (0..2000).map(|i| key(1000 + seed, i)).collect();
            reported.push(present(&filter, &fresh) as f64 / 2000.0);
        }
        let (fill, deviation) = mean(&fills);
        assert!((fill - (1.0 - shape.zeros())).abs() < deviation, "{shape:?} {fill} {}", 1.0 - shape.zeros());
        let (rate, deviation) = mean(&reported);
        assert!((rate - shape.false_positive_rate()).abs() < deviation, "{shape:?} {rate}");
        assert_eq!(filled(shape, 0, 0).fpr(), shape.false_positive_rate());
        // Where there are few decrements, the test must detect one more or one fewer.
        if parameters.3 <= 5 {
            let other = StableShape { decrements: parameters.3 + 1, ..shape };
            assert!((rate - other.false_positive_rate()).abs() > deviation);
        }
    }
}

#[test]
fn keys_are_forgotten_by_age_as_stated() {
    for parameters in SHAPES {
        let shape = shape(parameters);
        let turnover = parameters.1 / parameters.3.min(parameters.1 / 2);
        for age in [0, turnover / 2, 3 * turnover, 20 * turnover] {
            let missing: Vec<f64> = (0..100)
                .map(|seed| {
                    // Each age is measured on other keys at other moments, 200 in each filter.
                    let mut filter = filled(shape, seed, 1000);
                    let mut missing = 0;
                    let last = 1000 + 200 + age;
                    for i in 1000..last {
                        insert(&mut filter, &[key(seed, i)]);
                        if i >= 1000 + age {
                            missing += 1 - present(&filter, &[key(seed, i - age)]);
                        }
                    }
                    missing as f64 / 200.0
                })
                .collect();
            let (measured, deviation) = mean(&missing);
            let exact = shape.false_negative_rate(age as f64);
            // Misses are so rare that no filter has any: they vary as 20,000 coins.
            let deviation = deviation.max(5.0 * (exact / 20_000.0).sqrt());
            assert!((measured - exact).abs() < deviation, "{shape:?} {age}: {measured} is not {exact} +- {deviation}");
        }
    }
}

/// The filter fails the check of the window that other filters pass.
#[test]
fn no_window_is_promised() {
    let window = Window::Count { insertions: 1000 };
    let mut filter = AnyFilter::new(choose(window, Budget::Rate(0.01)).unwrap(), window, 0).unwrap();
    check_window(&mut filter, 1000, 100, 5000).unwrap_err();
}

#[test]
fn the_decay_follows_from_the_seed() {
    let made = |seed| {
        let mut filter = AnyFilter::new(shape(SHAPES[2]), Window::Count { insertions: 100 }, seed).unwrap();
        insert(&mut filter, &(0..3000).map(|i| key(0, i)).collect::<Vec<_>>());
        filter.engine().words().as_slice().to_vec()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2), "two seeds must decay differently, although the hashes are equal");
}
