//! The counting Bloom filter misses no key of a skewed stream, and its stuck counters leave the rate that is stated.

use std::collections::VecDeque;

use crate::support::{insert, key, present};
use lately::clock::Window;
use lately::family::baselines::counting::shape::{CountingShape, choose, floor};
use lately::family::slice_sizes::Slices;
use lately::family::{AnyFilter, Budget};

fn made(window: u64, rate: f64) -> AnyFilter {
    let window = Window::Count { insertions: window };
    AnyFilter::new(choose(window, Budget::Rate(rate)).unwrap(), window, 0).unwrap()
}

fn with(k: u32, cells: u64, insertions: u64) -> AnyFilter {
    AnyFilter::new(CountingShape { slices: Slices::new(k, cells).unwrap() }, Window::Count { insertions }, 0).unwrap()
}

/// Returns how often a key of the window is missed, in a stream in which a few keys make up most of the window.
fn missing(filter: &mut AnyFilter, window: usize) -> usize {
    let mut last = VecDeque::new();
    let mut missing = 0;
    for n in 0..6 * window as u64 {
        // Key i has a chance near 2^-(i + 1), and every eighth event is a new key. The popular keys change.
        let chance = key(1, n);
        let epoch = n / window as u64;
        let drawn = if chance & 7 == 0 { key(2, n) } else { key(3, 100 * epoch + u64::from(chance.leading_zeros())) };
        insert(filter, &[drawn]);
        last.push_back(drawn);
        if last.len() > window {
            last.pop_front();
        }
        if n % 16 == 0 {
            missing += last.len() - present(filter, last.make_contiguous());
        }
    }
    missing
}

/// Naive saturation, a counter at 15 that is decremented, misses some.
#[test]
fn no_key_of_a_skewed_stream_is_missed() {
    for window in [100, 1000] {
        assert_eq!(missing(&mut with(3, 10 * window as u64, window as u64), window), 0);
    }
}

#[test]
fn keys_that_come_15_times_leave_the_stated_rate_forever() {
    let (window, hot) = (3000, 1000);
    let mut filter = made(window, 0.01);
    let CountingShape { slices } = choose(Window::Count { insertions: window }, Budget::Rate(0.01)).unwrap();
    for i in 0..hot {
        insert(&mut filter, &[key(9, i); 15]);
    }
    // With one key for a whole window, only stuck counters of the others are left.
    insert(&mut filter, &vec![key(9, 0); window as usize]);
    let rate = filter.false_positive_rate();
    assert!((rate / floor(&slices, hot) - 1.0).abs() < 0.2, "{rate} {}", floor(&slices, hot));
    let hot_keys: Vec<_> = (0..hot).map(|i| key(9, i)).collect();
    assert_eq!(present(&filter, &hot_keys) as u64, hot, "the keys with stuck counters are still reported");
    let measured = present(&filter, &(0..1_000_000).map(|i| key(10, i)).collect::<Vec<_>>()) as f64 / 1e6;
    assert!((measured - rate).abs() < 5.0 * (rate / 1e6).sqrt(), "{measured} {rate}");
}
