//! The promise of the two filters that store every insertion, SWAMP and the fingerprint buffer: the last W keys are
//! reported at every phase, the key before them is forgotten, and fresh keys are reported exactly as often as computed.

use crate::support::{self, insert, key, present};
use lately::clock::{Moments, Window};
use lately::engine::Aged;
use lately::family::abilities::Count;
use lately::family::baselines::fingerprint_buffer;
use lately::family::swamp::cells::Buffered;
use lately::family::{AnyFilter, Budget, swamp};

const WINDOWS: [u64; 5] = [1, 7, 64, 1000, 10_007];
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 1e-5];

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

/// Checks the last `window` keys through three full rounds: the oldest at every phase, and all of them at some.
fn check_window(filter: &mut AnyFilter, window: u64) -> Result<(), String> {
    support::check_window(filter, window, window.div_ceil(16), 3 * window + 5)
}

/// Checks that full filters report fresh keys at their rate, within five standard deviations of the mean. A trial
/// varies as a coin with that rate. The number of different fingerprints varies too from filter to filter: by less than
/// a sum of W coins with the chance that a key collides with another, which is at most the rate.
fn check_rate(make: Make, window: u64, fpr: f64, rate: f64) -> Result<(), String> {
    let (filters, trials) = if window > 1000 { (support::trials(40), 20_000) } else { (support::trials(1600), 1000) };
    let mut reported = 0;
    for stream in 0..filters {
        let mut filter = make(window, fpr);
        // One and a half rounds, so that the check covers overwritten places.
        let inserted = window + window / 2;
        insert(&mut filter, &(0..inserted).map(|i| key(stream, i)).collect::<Vec<_>>());
        let fresh: Vec<_> = (0..trials).map(|i| key(stream, inserted + i)).collect();
        reported += present(&filter, &fresh);
    }
    let all = (filters * trials) as f64;
    let between = rate * rate * rate / window as f64 / filters as f64;
    let allowed = 5.0 * (rate * (1.0 - rate) / all + between).sqrt() + 5.0 / all;
    let measured = reported as f64 / all;
    if (measured - rate).abs() <= allowed { Ok(()) } else { Err(format!("{window} {fpr}: {measured}, not {rate}")) }
}

#[test]
fn no_key_of_the_window_is_missed() {
    for make in BOTH {
        for window in WINDOWS {
            for fpr in RATES {
                check_window(&mut make(window, fpr), window).unwrap();
            }
        }
    }
}

#[test]
fn the_check_of_the_window_fails_if_one_more_insertion_is_promised() {
    for make in BOTH {
        for window in [7, 1000] {
            check_window(&mut make(window, 1e-5), window + 1).unwrap_err();
        }
    }
}

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
fn fresh_keys_are_reported_as_often_as_computed() {
    for make in BOTH {
        for window in WINDOWS {
            for fpr in RATES {
                let rate = make(window, fpr).fpr();
                assert!(rate <= fpr);
                check_rate(make, window, fpr, rate).unwrap();
            }
        }
    }
}

#[test]
fn the_check_of_the_rate_fails_for_another_number_of_fingerprints() {
    for make in BOTH {
        for (window, fpr) in [(1000, 0.1), (10_007, 0.1), (10_007, 0.01)] {
            let rate = make(window, fpr).fpr();
            check_rate(make, window, fpr, rate / 2.0).unwrap_err();
            check_rate(make, window, fpr, rate * 2.0).unwrap_err();
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
    let Aged { layout, words, .. } = filter.engine_as::<Aged<Buffered>>().unwrap();
    layout.distinct(words.as_slice())
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
            let Aged { layout, words, .. } = filter.engine_as::<Aged<Buffered>>().unwrap();
            let counts: Vec<_> = last.iter().map(|&hash| layout.count(words.as_slice(), hash)).collect();
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
