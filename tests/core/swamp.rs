//! SWAMP counts the keys of the window, and takes the memory that it states.

use crate::support::{insert, key};
use lately::clock::{Moments, Window};
use lately::family::baselines::fingerprint_buffer;
use lately::family::{AnyFilter, Budget, Shape, swamp};

fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn distinct(filter: &AnyFilter) -> f64 {
    filter.engine().distinct().unwrap()
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
            let mut counts = vec![0; last.len()];
            filter.engine().count(last, &mut counts).unwrap();
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
        let bits_per_key = |shape: &dyn Shape| 8.0 * shape.bytes(count(window)) as f64 / window as f64;
        let bits = bits_per_key(&swamp::shape::choose(count(window), rate).unwrap());
        let alone = bits_per_key(&fingerprint_buffer::shape::choose(count(window), rate).unwrap());
        assert_eq!((format!("{bits:.1}"), alone), (format!("{ours:.1}"), fingerprints));
        assert!((1.03..1.12).contains(&(bits / printed)), "{bits} beside {printed}");
    }
}
