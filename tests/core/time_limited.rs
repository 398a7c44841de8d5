//! The promise of the time-limited filter, at any rate, and its rates against theory.

use crate::support::key;
use crate::support::timed::{SECOND, SPAN, START, below, check_promise, reported, steady};
use lately::clock::{Moments, Window};
use lately::family::time_limited::shape::{TimeLimitedShape, choose};
use lately::family::{AnyFilter, runs};

fn window(span: i64, lateness: i64) -> Window {
    Window::Time { span: span as u64, lateness: lateness as u64, capacity: 1000 }
}

const fn shape(k: u32, l: u32) -> TimeLimitedShape {
    TimeLimitedShape { k, l, first_bits: 512 }
}

fn made(shape: TimeLimitedShape, first_bits: u64, lateness: i64) -> AnyFilter {
    AnyFilter::new(TimeLimitedShape { first_bits, ..shape }, window(SPAN, lateness), 0).unwrap()
}

fn slice_bits(filter: &AnyFilter) -> Vec<u64> {
    filter.engine().slice_bits().unwrap()
}

const SHAPES: [TimeLimitedShape; 5] = [shape(1, 1), shape(3, 5), shape(5, 10), shape(7, 5), shape(10, 25)];

#[test]
fn no_key_is_missed_at_a_steady_rate_or_in_a_burst() {
    for shape in SHAPES {
        for keys in [3.0, 200.0, 2000.0] {
            check_promise(&mut made(shape, 512, 0), steady(&[(4.0, keys)]).into_iter()).unwrap();
        }
        // A hundred times the rate for a third of a window, and back.
        let burst = steady(&[(3.0, 300.0), (0.33, 30_000.0), (3.0, 300.0), (0.5, 3.0), (1.0, 300.0)]);
        check_promise(&mut made(shape, 512, 0), burst.into_iter()).unwrap();
    }
}

#[test]
fn no_key_is_missed_when_the_rate_changes_with_every_generation() {
    for shape in SHAPES {
        let phase = |i: u64| (0.3 / f64::from(shape.l), [20.0, 9000.0, 150.0, 40_000.0][below(i, 4) as usize]);
        let moments = steady(&(0..20 * u64::from(shape.l)).map(phase).collect::<Vec<_>>());
        check_promise(&mut made(shape, 512, 0), moments.into_iter()).unwrap();
    }
}

#[test]
fn no_key_is_missed_after_gaps_at_equal_times_or_when_times_step_back() {
    for shape in SHAPES {
        for (round, lateness) in [(0, 0), (1, 45 * SECOND), (2, 2 * SPAN)] {
            let mut at = START;
            let moments = (0..8000).map(|n| {
                // Half of the keys come at the time of the key before. Gaps are up to a little more than a window.
                let gap = [0, 0, 0, SECOND, 7 * SECOND, SPAN / 30, SPAN / 3, SPAN - 1, SPAN, SPAN + 1];
                let weighted = below(n + 100_000 * round, 1000);
                at += gap[match weighted {
                    0..500 => 0,
                    500..990 => 3 + (weighted % 2) as usize,
                    _ => (weighted - 985) as usize % gap.len(),
                }];
                at - below(n, lateness as u64 / 2 + 1) as i64
            });
            check_promise(&mut made(shape, 512, lateness), moments).unwrap();
        }
    }
}

#[test]
fn a_filter_idle_for_longer_than_the_span_is_empty() {
    let mut filter = made(shape(5, 10), 1024, 0);
    let keys: Vec<u64> = (0..5000).map(|i| key(0, i)).collect();
    filter.engine_mut().insert(&keys, Moments::At(START)).unwrap();
    assert!(filter.engine().nbytes() > 8 * (5 * 16 + 100));
    assert_eq!(reported(&filter, &keys, START + SPAN), 5000);
    assert_eq!(reported(&filter, &keys, START + SPAN + 1), 0);
    filter.engine_mut().insert(&[1], Moments::At(START + SPAN + 1)).unwrap();
    assert_eq!(reported(&filter, &keys, START + SPAN + 1), 0, "an insertion must not bring expired keys back");
    assert_eq!(slice_bits(&filter), [1024; 5]);
}

/// Few or many keys follow a key that leaves the window.
#[test]
fn no_key_is_reported_beyond_window_and_slack_at_any_rate() {
    // A run of matches by chance has a probability below 1e-6, because many slices must match.
    for shape in [shape(24, 6), shape(24, 40)] {
        for step in [SPAN / 1000, SPAN / 7, SPAN - 1] {
            let mut filter = made(shape, 512, 0);
            let end = SPAN + filter.slack() as i64;
            let moments: Vec<i64> = (0..).map(|i| START + i * step).take_while(|at| at - START < 12 * SPAN).collect();
            for (n, &at) in moments.iter().enumerate() {
                filter.engine_mut().insert(&[key(0, n as u64)], Moments::At(at)).unwrap();
                let gone: Vec<u64> = (0..n).filter(|&i| moments[i] + end < at).map(|i| key(0, i as u64)).collect();
                assert_eq!(reported(&filter, &gone[gone.len().saturating_sub(30)..], at), 0);
            }
            let left = filter.engine().fill().len();
            assert!(left <= (shape.k + shape.l) as usize, "{left} slices are live");
        }
    }
}

/// Keys that follow a burst, however few, do not keep the slices of the burst live.
#[test]
fn the_slices_of_a_key_expire_after_window_and_slack() {
    for shape in [shape(1, 3), shape(5, 10), shape(24, 6)] {
        for step in [SPAN / 1000, SPAN / 7, SPAN / 2, SPAN - 1] {
            let mut filter = made(shape, 1 << 16, 0);
            let keys: Vec<u64> = (0..1000).map(|i| key(0, i)).collect();
            filter.engine_mut().insert(&keys, Moments::At(START)).unwrap();
            for at in (START..=START + SPAN + filter.slack() as i64 + step).step_by(step as usize) {
                filter.engine_mut().insert(&[key(1, at as u64)], Moments::At(at)).unwrap();
            }
            let live = filter.engine().fill().len();
            assert!(live <= (shape.k + shape.l) as usize, "{live} slices are live");
            assert!(!slice_bits(&filter)[..live].contains(&(1 << 16)), "{shape:?} {step}");
        }
    }
}

#[test]
fn memory_grows_and_shrinks_with_the_rate() {
    let shape = choose(window(SPAN, 0), 0.01, None).unwrap();
    let mut filter = made(shape, shape.first_bits, 0);
    let mut bytes_after = |moments: &[i64]| {
        let keys: Vec<u64> = moments.iter().map(|&at| key(1, at as u64)).collect();
        filter.engine_mut().insert(&keys, Moments::Each(moments)).unwrap();
        (filter.engine().nbytes(), filter.engine().fill().len())
    };
    let all = steady(&[(3.0, 1000.0), (3.0, 100_000.0), (3.0, 1000.0)]);
    let (steady_at, burst_at) =
        (all.partition_point(|&at| at < START + 3 * SPAN), all.partition_point(|&at| at < START + 6 * SPAN));
    let (before, _) = bytes_after(&all[..steady_at]);
    let (in_burst, slices) = bytes_after(&all[steady_at..burst_at]);
    let (after, slices_after) = bytes_after(&all[burst_at..]);
    let [most, _] = shape.bits_per_key();
    assert!(
        in_burst as f64 > 0.8 * most * 100_000.0 / 8.0 && (in_burst as f64) < 1.2 * most * 100_000.0 / 8.0,
        "{in_burst}"
    );
    assert!(slices <= (shape.k + shape.l + 1) as usize && slices_after <= (shape.k + shape.l + 1) as usize);
    assert!(in_burst > 50 * before && after < 2 * before, "{before} {in_burst} {after}");
}

/// Returns the rate that the filter computes from its bits. Checks that it reports fresh keys at that rate, within five
/// standard deviations.
fn check_rate(filter: &AnyFilter, at: i64) -> f64 {
    const TRIALS: u64 = 200_000;
    let fresh: Vec<u64> = (0..TRIALS).map(|i| key(77, i)).collect();
    let (measured, rate) = (reported(filter, &fresh, at) as f64, filter.false_positive_rate());
    let deviation = (TRIALS as f64 * rate * (1.0 - rate)).sqrt();
    assert!((measured - TRIALS as f64 * rate).abs() <= 5.0 * deviation + 5.0, "{measured} of {TRIALS} is not {rate}");
    rate
}

/// The filter fluctuates by less than 5 % at these sizes.
#[test]
fn at_a_steady_rate_of_keys_the_worst_rate_of_false_positives_is_just_below_fpr() {
    for fpr in [0.1, 0.01, 0.001] {
        let shape = choose(window(SPAN, 0), fpr, None).unwrap();
        let mut filter = made(shape, shape.first_bits, 0);
        let mut worst: f64 = 0.0;
        for (n, at) in steady(&[(4.0, 50_000.0)]).into_iter().enumerate() {
            filter.engine_mut().insert(&[key(0, n as u64)], Moments::At(at)).unwrap();
            if n > 150_000 && n % 97 == 0 {
                assert!(filter.engine().fill().len() <= (shape.k + shape.l) as usize);
                worst = worst.max(filter.false_positive_rate());
            }
            if n > 150_000 && n % 9973 == 0 {
                check_rate(&filter, at);
            }
        }
        assert!(worst <= 1.05 * filter.fpr() && worst >= 0.6 * filter.fpr(), "{fpr}: {worst} {}", filter.fpr());
        assert!(filter.fpr() <= fpr);
    }
}

/// While the rate of keys rises, more slices are live. After the burst all is as before.
#[test]
fn in_a_burst_the_rate_of_false_positives_follows_from_the_live_slices() {
    let shape = choose(window(SPAN, 0), 0.01, None).unwrap();
    let mut filter = made(shape, shape.first_bits, 0);
    let (mut most, mut worst, mut n) = (0, 0.0_f64, 0);
    for at in steady(&[(3.0, 1000.0), (3.0, 100_000.0)]) {
        filter.engine_mut().insert(&[key(0, n)], Moments::At(at)).unwrap();
        n += 1;
        if n % 50 == 0 {
            let slices = filter.engine().fill().len();
            let bound = runs::false_positive_rate(shape.k, &[shape.fills(), vec![0.5; 200]].concat()[..slices]);
            let rate = filter.false_positive_rate();
            // The smallest slices have 512 bits, and some 4 % more or fewer keys than expected.
            assert!(rate <= 1.5 * bound, "{rate} {bound} {slices}");
            (most, worst) = (most.max(slices), worst.max(rate));
        }
        if n % 20_011 == 0 {
            check_rate(&filter, at);
        }
    }
    println!("k = {}, l = {}: at most {most} slices, rate at most {worst:.4}", shape.k, shape.l);
    assert!(most > (shape.k + shape.l) as usize && most <= (4 * shape.k + shape.l) as usize);
    assert!(worst > filter.fpr() && worst < 4.0 * filter.fpr());
    assert!(filter.engine().fill().len() <= (shape.k + shape.l + 1) as usize && filter.false_positive_rate() <= 0.0105);
}

#[test]
fn windows_of_insertions_and_empty_windows_are_rejected() {
    for (window, words) in [
        (Window::Count { insertions: 5 }, "window must be a span of time"),
        (window(0, 0), "window must be longer than 0"),
    ] {
        let error = AnyFilter::new(TimeLimitedShape::new(3, 5, 512).unwrap(), window, 0).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}
