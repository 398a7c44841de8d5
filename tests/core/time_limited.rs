//! The promise of the time-limited filter, at any rate, and its rates against theory.

use std::collections::VecDeque;

use crate::support::key;
use crate::support::timed::{SECOND, SPAN, START, below, check_promise, reported, steady};
use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::filter::Filter;
use lately::layout::time_limited::Slices;
use lately::shape::runs;
use lately::shape::time_limited::{Shape, choose};

fn window(span: i64, lateness: i64) -> Window {
    Window::Time { span: span as u64, lateness: lateness as u64, capacity: 1000 }
}

const fn shape(k: u32, l: u32) -> Shape {
    Shape { k, l, first_bits: 512 }
}

fn made(shape: Shape, first_bits: u64, lateness: i64) -> Filter {
    Filter::new(Shape { first_bits, ..shape }, window(SPAN, lateness), 0).unwrap()
}

fn slice_bits(filter: &Filter) -> Vec<u64> {
    filter.engine_as::<Slices>().unwrap().slice_bits()
}

const SHAPES: [Shape; 5] = [shape(1, 1), shape(3, 5), shape(5, 10), shape(7, 5), shape(10, 25)];

#[test]
fn no_key_is_missing_at_a_steady_rate_or_in_a_burst() {
    for shape in SHAPES {
        for keys in [3.0, 200.0, 2000.0] {
            check_promise(&mut made(shape, 512, 0), steady(&[(4.0, keys)]).into_iter()).unwrap();
        }
        // 100 times the rate for a third of a window, and back.
        let burst = steady(&[(3.0, 300.0), (0.33, 30_000.0), (3.0, 300.0), (0.5, 3.0), (1.0, 300.0)]);
        check_promise(&mut made(shape, 512, 0), burst.into_iter()).unwrap();
    }
}

#[test]
fn no_key_is_missing_when_the_rate_changes_with_every_generation() {
    for shape in SHAPES {
        let phase = |i: u64| (0.3 / f64::from(shape.l), [20.0, 9000.0, 150.0, 40_000.0][below(i, 4) as usize]);
        let moments = steady(&(0..20 * u64::from(shape.l)).map(phase).collect::<Vec<_>>());
        check_promise(&mut made(shape, 512, 0), moments.into_iter()).unwrap();
    }
}

#[test]
fn no_key_is_missing_after_gaps_at_equal_times_or_when_times_step_back() {
    for shape in SHAPES {
        for (round, lateness) in [(0, 0), (1, 45 * SECOND), (2, 2 * SPAN)] {
            let mut at = START;
            let moments = (0..8000).map(|n| {
                // Half of the keys come at the time of the last; gaps up to a little more than a window.
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

/// Keys at a rate that rises, falls and pauses, two in three of them repeats of keys up to 5000 back.
fn with_repeats(keys: u64) -> (Vec<u64>, Vec<i64>) {
    let mut at = START;
    let moments = (0..keys).map(|n| {
        at += [SPAN / 20_000, SPAN / 2_000_000, SPAN / 4][if n % 9973 == 0 { 2 } else { (n / 20_000 % 2) as usize }];
        at
    });
    let hashes = (0..keys).map(|n| key(0, if n % 3 == 0 { n } else { n.saturating_sub(below(n, 5000)) }));
    (hashes.collect(), moments.collect())
}

/// Cells and answers do not depend on the size of batches: those that go slice by slice, and those whose slices fill a
/// cache.
#[test]
fn a_batch_is_its_keys_one_by_one() {
    let (hashes, moments) = with_repeats(100_000);
    for (shape, first_bits) in SHAPES.map(|shape| (shape, 512)).into_iter().chain([(shape(10, 20), 1 << 20)]) {
        for refresh in [Refresh::Always, Refresh::Unseen] {
            let answers = |batch: usize| {
                let (mut filter, mut seen, mut kept) =
                    (made(shape, first_bits, 0), vec![false; hashes.len()], Vec::new());
                for start in (0..hashes.len()).step_by(batch) {
                    let keys = start..hashes.len().min(start + batch);
                    let at = Moments::Each(&moments[keys.clone()]);
                    let engine = filter.engine_mut();
                    engine.duplicated(&hashes[keys.clone()], at, refresh, &mut seen[keys]).unwrap();
                }
                for size in [1, 13, 5000] {
                    for asked in hashes[90_000..].chunks(size) {
                        let mut present = vec![false; asked.len()];
                        filter.engine().query(asked, Moments::At(moments[99_999]), &mut present).unwrap();
                        kept.extend(present);
                    }
                }
                let (once, more) = kept.split_at(10_000);
                assert!([once, once].concat() == more, "{shape:?}: queries differ by the size of their batch");
                (seen, once.to_vec(), filter.engine().words().as_slice().to_vec())
            };
            let one_by_one = answers(1);
            let repeats = one_by_one.0.iter().filter(|&&seen| seen).count();
            assert!((20_000..99_000).contains(&repeats), "{repeats}");
            assert!([13, 5000].map(answers).iter().all(|batches| *batches == one_by_one), "{shape:?} {refresh:?}");
        }
    }
}

#[test]
fn the_check_of_the_promise_fails_when_more_than_the_span_is_promised() {
    for shape in [shape(3, 5), shape(5, 10)] {
        let longer = SPAN + SPAN / i64::from(shape.l) * 2;
        let mut kept = VecDeque::from(steady(&[(6.0, 3000.0)]));
        let mut filter = made(shape, 4096, 0);
        let mut missing = 0;
        for n in 0..kept.len() {
            let at = kept.pop_front().unwrap();
            filter.engine_mut().insert(&[key(0, n as u64)], Moments::At(at)).unwrap();
            let back = (longer as f64 / (SPAN as f64 / 3000.0)) as usize;
            missing += n.checked_sub(back).map_or(0, |old| 1 - reported(&filter, &[key(0, old as u64)], at));
        }
        assert!(missing > 0);
    }
}

#[test]
fn idle_for_longer_than_the_span_it_is_empty_and_begins_anew() {
    let mut filter = made(shape(5, 10), 1024, 0);
    let keys: Vec<u64> = (0..5000).map(|i| key(0, i)).collect();
    filter.engine_mut().insert(&keys, Moments::At(START)).unwrap();
    assert!(filter.engine().words().as_slice().len() > 5 * 16 + 100);
    assert_eq!(reported(&filter, &keys, START + SPAN), 5000);
    assert_eq!(reported(&filter, &keys, START + SPAN + 1), 0);
    filter.engine_mut().insert(&[1], Moments::At(START + SPAN + 1)).unwrap();
    assert_eq!(reported(&filter, &keys, START + SPAN + 1), 0, "expired keys do not come back with an insertion");
    assert_eq!(slice_bits(&filter), [1024; 5]);
}

/// No key is reported beyond window and slack, however slowly others follow it.
#[test]
fn the_slack_holds_at_any_rate() {
    // With so many slices to match, a run of them by chance has a probability below 1e-6.
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

/// The slices of a burst are not kept live by the few keys that follow, however rarely these come.
#[test]
fn the_slices_of_a_key_are_stale_after_window_and_slack() {
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
fn memory_follows_the_rate_and_comes_back() {
    let shape = choose(window(SPAN, 0), 0.01, None).unwrap();
    let mut filter = made(shape, shape.first_bits, 0);
    let mut bytes_after = |moments: &[i64]| {
        let keys: Vec<u64> = moments.iter().map(|&at| key(1, at as u64)).collect();
        filter.engine_mut().insert(&keys, Moments::Each(moments)).unwrap();
        (filter.engine().words().as_slice().len() * 8, filter.engine().fill().len())
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

/// The share of fresh keys reported, within five standard deviations of what the filter computes from its bits.
fn check_rate(filter: &Filter, at: i64) -> f64 {
    const TRIALS: u64 = 200_000;
    let fresh: Vec<u64> = (0..TRIALS).map(|i| key(77, i)).collect();
    let (measured, rate) = (reported(filter, &fresh, at) as f64, filter.false_positive_rate());
    let deviation = (TRIALS as f64 * rate * (1.0 - rate)).sqrt();
    assert!((measured - TRIALS as f64 * rate).abs() <= 5.0 * deviation + 5.0, "{measured} of {TRIALS} is not {rate}");
    rate
}

/// At a steady rate the worst phase of many generations stays below `fpr` (but for the filter's own fluctuation, at
/// these sizes below 5 %) and comes near it; the shift lowers it.
#[test]
fn the_rate_is_kept_at_a_steady_rate() {
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

/// While the rate rises more slices are live, and the rate is that of a run in any of them; then all is as before.
#[test]
fn in_a_burst_the_rate_is_that_of_the_slices_there_are() {
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
            // The smallest slices have 512 bits and hold some 4 % more or less than expected each.
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
fn windows_of_insertions_and_sizes_out_of_range_are_refused() {
    for (k, l, bits, window, words) in [
        (3, 5, 512, Window::Count { insertions: 5 }, "window must be a span of time"),
        (3, 5, 511, window(SPAN, 0), "slice_bits must be a multiple of 64"),
        (3, 5, 520, window(SPAN, 0), "slice_bits must be a multiple of 64"),
        (3, 5, 448, window(SPAN, 0), "slice_bits must be a multiple of 64"),
        (3, 5, (1 << 60) + 64, window(SPAN, 0), "slice_bits must be a multiple of 64"),
        (3, 5, 512, window(0, 0), "window must be longer than 0"),
        (0, 5, 512, window(SPAN, 0), "k must be at least 1"),
        (5, 0, 512, window(SPAN, 0), "l must be at least 1"),
        (100, 29, 512, window(SPAN, 0), "k + l must be at most 128"),
    ] {
        let error = Shape::new(k, l, bits).and_then(|shape| Filter::new(shape, window, 0)).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}
