//! The two filters that store every insertion, SWAMP and the fingerprint buffer: the key before the last W is
//! forgotten, and keys are counted.

use std::sync::Arc;

use crate::support::{Rates, insert, key, present};
use lately::clock::{Moments, Window};
use lately::family::Layout;
use lately::family::baselines::fingerprint_buffer;
use lately::family::swamp::cells::Buffered;
use lately::family::{AnyFilter, Budget, Shape, swamp};

const WINDOWS: [u64; 5] = [1, 7, 64, 1000, 10_007];

fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn buffer(window: u64, fpr: f64) -> AnyFilter {
    let shape = fingerprint_buffer::shape::choose(count(window), Budget::Rate(fpr)).unwrap();
    AnyFilter::new(shape, count(window), 0).unwrap()
}

fn swamp(window: u64, fpr: f64) -> AnyFilter {
    let shape = swamp::shape::choose(count(window), Budget::Rate(fpr)).unwrap();
    AnyFilter::new(shape, count(window), 0).unwrap()
}

type Make = fn(u64, f64) -> AnyFilter;
const BOTH: [Make; 2] = [buffer, swamp];

#[test]
fn a_key_is_forgotten_as_soon_as_it_leaves_the_window() {
    for make in BOTH {
        for window in WINDOWS {
            let mut filter = make(window, 1e-12);
            for n in 0..2 * window + 3 {
                insert(&mut filter, &[key(0, n)]);
                let gone = n.checked_sub(window).map(|gone| key(0, gone));
                assert_eq!(present(&filter, gone.as_slice()), 0, "window {window}, insertion {n}");
            }
            assert_eq!(filter.slack(), 0);
        }
    }
}

#[test]
fn the_rate_is_not_that_of_another_number_of_fingerprints() {
    for (window, fpr, filters, fresh) in [(1000, 0.1, 200, 1000), (10_007, 0.1, 5, 1000), (10_007, 0.01, 5, 20_000)] {
        let (budget, window) = (Budget::Rate(fpr), count(window));
        let shape: Arc<dyn Shape> = Arc::new(swamp::shape::choose(window, budget).unwrap());
        let buffer: Arc<dyn Shape> = Arc::new(fingerprint_buffer::shape::choose(window, budget).unwrap());
        for shape in [shape, buffer] {
            let (rate, rates) = (shape.fpr(window), Rates::measure(&shape, window, filters, fresh));
            rates.check(rate / 2.0).unwrap_err();
            rates.check(rate * 2.0).unwrap_err();
        }
    }
}

#[test]
fn the_rate_of_the_actual_cells_follows_from_their_fingerprints() {
    for make in BOTH {
        let mut filter = make(500, 0.3);
        assert_eq!((filter.false_positive_rate(), filter.engine().fill()), (0.0, vec![0.0]));
        for round in 0..4 {
            insert(&mut filter, &(0..300).map(|i| key(round, i)).collect::<Vec<_>>());
            let fresh: Vec<_> = (0..100_000).map(|i| key(100 + round, i)).collect();
            let (rate, measured) = (filter.false_positive_rate(), present(&filter, &fresh) as f64 / 1e5);
            assert!((measured - rate).abs() <= 5.0 * (rate * (1.0 - rate) / 1e5).sqrt(), "{measured} {rate}");
        }
    }
}

fn distinct(filter: &AnyFilter) -> f64 {
    let (layout, words) = (filter.layout_as::<Buffered>().unwrap(), filter.engine().words());
    layout.distinct(words.as_slice()).unwrap()
}

/// A few keys come much more often than others. No fingerprints collide, so counts are exact.
#[test]
fn counts_and_distinct_keys_are_those_of_the_window() {
    let window = 1000;
    let shape = swamp::shape::choose(count(window), Budget::Rate(1e-9)).unwrap();
    let mut filter = AnyFilter::new(shape, count(window), 3).unwrap();
    let rank = |n: u64| (1u64 << (key(1, n) % 12)).min(1 + key(2, n) % 2000);
    let mut stream = Vec::new();
    for n in 0..5000 {
        stream.push(key(0, rank(n)));
        let hash = [stream[stream.len() - 1]];
        filter.engine_mut().insert(&hash, Moments::Untimed).unwrap();
        if n % 250 == 0 {
            let last = &stream[stream.len().saturating_sub(window as usize)..];
            let (layout, words) = (filter.layout_as::<Buffered>().unwrap(), filter.engine().words());
            let counts: Vec<_> = last.iter().map(|&hash| layout.count(words.as_slice(), hash).unwrap()).collect();
            let exact: Vec<_> =
                last.iter().map(|hash| last.iter().filter(|&other| other == hash).count() as u64).collect();
            assert_eq!(counts, exact);
            let mut different = last.to_vec();
            different.sort_unstable();
            different.dedup();
            assert!((distinct(&filter) - different.len() as f64).abs() < 1e-6);
        }
    }
}

/// With as many possible fingerprints as keys, the number of fingerprints in use is 1 - 1/e of the keys.
#[test]
fn the_estimate_of_distinct_keys_is_unbiased_where_fingerprints_collide() {
    let (window, keys, filters) = (127, 100, 2000);
    let shape = swamp::shape::SwampShape::new(128, 1).unwrap();
    let mut sum = 0.0;
    for stream in 0..filters {
        let mut filter = AnyFilter::new(shape, count(window), 0).unwrap();
        insert(&mut filter, &(0..keys).map(|i| key(stream, i)).collect::<Vec<_>>());
        sum += distinct(&filter);
    }
    // The estimate varies by about sqrt(R (e^t - t - 1)), t = keys / R, and its bias is of the order of e^t / 2 keys.
    let t = keys as f64 / 256.0;
    let allowed = 5.0 * (256.0 * (t.exp() - t - 1.0) / filters as f64).sqrt() + t.exp() / 2.0;
    assert!((sum / filters as f64 - keys as f64).abs() < allowed, "{}", sum / filters as f64);
}

/// Paper 1, Table 4 contains the bits per element of SWAMP for a window of 2^16 at four rates, read off a figure of its
/// authors. Our table cannot overflow and is at most 4/5 full, so our SWAMP takes 4 to 11 % more. The fingerprints
/// alone are more than half of it.
#[test]
fn bits_per_key_exceed_those_of_the_paper_by_4_to_11_percent() {
    let window = 1 << 16;
    for (fpr, printed, ours, fingerprints) in [
        (0.0197654, 32.0, 35.5, 22.0),
        (0.0017993, 39.8, 42.2, 26.0),
        (0.0001226, 48.5, 51.2, 29.0),
        (9e-7, 64.6, 67.0, 37.0),
    ] {
        let rate = Budget::Rate(fpr);
        let bits = swamp::shape::choose(count(window), rate).unwrap().bits_per_key(window);
        let alone = fingerprint_buffer::shape::choose(count(window), rate).unwrap().bits_per_key(window);
        assert_eq!((format!("{bits:.1}"), alone), (format!("{ours:.1}"), fingerprints));
        assert!((1.03..1.12).contains(&(bits / printed)), "{bits} beside {printed}");
    }
}
