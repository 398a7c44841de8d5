//! Rates and choices of Bloom filters, against every way that positions can fall.

use lately::Error;
use lately::family::Budget;
use lately::family::bloom::shape::*;
use lately::family::fill;

/// Returns the rate over every way that the positions of the keys and of a fresh one can fall, each equally likely.
fn by_enumeration(k: u32, bits: u64, keys: u64) -> f64 {
    let throws = keys as u32 * k;
    let share = |way: u64| {
        let hit = (0..throws).fold(0u64, |hit, i| hit | 1 << (way / bits.pow(i) % bits));
        u64::from(hit.count_ones()).pow(k)
    };
    let ways = bits.pow(throws);
    (0..ways).map(share).sum::<u64>() as f64 / (ways * bits.pow(k)) as f64
}

#[test]
fn the_rate_of_one_array_is_that_of_all_ways_to_fall() {
    for (k, bits, keys) in [(1, 5, 6), (2, 2, 3), (2, 7, 3), (3, 4, 3), (4, 3, 2), (5, 6, 1), (3, 1, 1), (2, 9, 0)] {
        let (rate, exact) = (array_rate(k, bits, keys), by_enumeration(k, bits, keys));
        assert!((rate - exact).abs() <= 1e-13 * exact, "{k} {bits} {keys}: {rate} {exact}");
    }
}

/// Returns the rate by inclusion and exclusion over the different positions of a fresh key, if few enough terms cancel.
fn by_exclusion(k: u32, bits: u64, keys: u64) -> f64 {
    let throws = (keys * u64::from(k)) as f64;
    let all_set = |positions: u32| {
        let (mut ways, mut sum) = (1.0, 0.0);
        for free in 0..=positions {
            sum += ways * (throws * (-f64::from(free) / bits as f64).ln_1p()).exp();
            ways *= -f64::from(positions - free) / f64::from(free + 1);
        }
        sum
    };
    different_positions(k, bits).into_iter().zip(0..).map(|(chance, positions)| chance * all_set(positions)).sum()
}

#[test]
fn the_rate_of_large_arrays_is_exact_too() {
    for (k, bits, keys) in [(1, 1000, 700), (4, 1130, 100), (7, 1_000_000, 100_000), (10, 1 << 40, 80_000_000_000)] {
        let (rate, exact) = (array_rate(k, bits, keys), by_exclusion(k, bits, keys));
        assert!((rate / exact - 1.0).abs() < 1e-9, "{k} {bits} {keys}: {rate} {exact}");
        let of_mean = fill::slice(bits, keys * u64::from(k)).powi(k as i32);
        assert!(k == 1 || rate > of_mean * (1.0 + 1e-13), "{rate} {of_mean}");
    }
}

#[test]
fn the_documented_figures() {
    let above = |keys| {
        let BloomShape::Classical { k, bits } = choose(keys, Budget::Rate(0.01), false).unwrap() else {
            unreachable!()
        };
        let of_mean = fill::slice(bits, keys * u64::from(k)).powi(k as i32);
        (k, bits as f64 / keys as f64, array_rate(k, bits, keys) / of_mean - 1.0)
    };
    let (k, bits_per_key, _) = above(1_000_000);
    assert_eq!((k, (10.0 * bits_per_key).round()), (4, 105.0));
    assert!((above(100).2 / 2e-3 - 1.0).abs() < 0.2, "{:?}", above(100));
    assert!((above(100_000).2 / 2e-6 - 1.0).abs() < 0.2, "{:?}", above(100_000));
    let BloomShape::Classical { bits, .. } = smallest_array(7, 1_000_000, 0.01).unwrap() else { unreachable!() };
    assert_eq!((bits as f64 / 1e5).round(), 96.0);
}

#[test]
fn impossible_requests_are_errors() {
    let error = |made: Result<BloomShape, Error>, words: &str| {
        let error = made.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    error(choose(10, Budget::Rate(1.0), true), "fpr must lie between 0 and 1");
    error(choose(1 << 50, Budget::Rate(1e-6), false), "has the hash of another");
    error(choose(1 << 58, Budget::Rate(0.1), false), "more than 2**60");
    error(choose(0, Budget::Rate(0.1), false), "capacity must lie in 1 .. 2**62 keys, got 0");
    error(choose(u64::MAX, Budget::Bytes(800), false), "capacity must lie in");
    error(choose(10, Budget::Bytes(7), false), "nbytes must be at least 8");
    error(choose(10, Budget::Bytes(u64::MAX), false), "nbytes must be at most");
}
