//! Timers of dynamic size: the promise in a burst and through every wrap of timestamps, the number of parts, and the
//! rate.

use crate::support::key;
use crate::support::timed::{SECOND, SPAN, START, below, check_promise, reported, steady};
use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::family::request::Grow;
use lately::family::timing::growing::{Growing, Limit};
use lately::family::timing::shape::{TimingShape, choose, timestamps};
use lately::family::{AnyFilter, Budget};

fn window(lateness: i64, capacity: u64) -> Window {
    Window::Time { span: SPAN as u64, lateness: lateness as u64, capacity }
}

fn made(shape: TimingShape, limit: Limit, lateness: i64) -> AnyFilter {
    AnyFilter::new(Growing { part: shape, limit }, window(lateness, 100), 0).unwrap()
}

fn how_many(filter: &AnyFilter) -> usize {
    filter.engine().tables()
}

/// Returns shapes with and without padding in their words, of one block and many, and of timers of few bits and many.
fn shapes() -> [TimingShape; 5] {
    [(2, 1), (2, 2), (3, 4), (4, 14), (5, 20)].map(|(bpt, blocks)| TimingShape::new(12, bpt, blocks, 1024, 1).unwrap())
}

/// Parts of 20 keys, and parts of as many timers as hardly more keys set: so empty that no key is reported by chance.
const LIMITS: [Limit; 2] = [Limit::Keys(20), Limit::Timers(12 * 20)];

#[test]
fn no_key_is_missed_in_a_burst_or_after_gaps_or_when_times_step_back() {
    for (shape, limit) in shapes().into_iter().flat_map(|shape| LIMITS.map(|limit| (shape, limit))) {
        // A hundred times the rate for a third of a window, and back.
        let burst = steady(&[(3.0, 20.0), (0.33, 2000.0), (3.0, 20.0), (0.5, 3.0), (1.0, 20.0)]);
        check_promise(&mut made(shape, limit, 0), burst.into_iter()).unwrap();
        for lateness in [0, 45 * SECOND, 2 * SPAN] {
            let mut at = START;
            let moments = (0..3000).map(|n| {
                let gap = [0, SECOND, SPAN / 30, SPAN / 3, SPAN - 1, SPAN, SPAN + 1, 40 * SPAN];
                let drawn = below(n, 1000) as usize;
                at += if drawn < gap.len() { gap[drawn] } else { gap[drawn % 3] };
                at - below(n, lateness as u64 / 2 + 1) as i64
            });
            check_promise(&mut made(shape, limit, lateness), moments).unwrap();
        }
    }
}

/// Exactly the keys of the retained generations are reported, whichever part they are in. The test detects a timer of
/// an old part that looks young again, and a part that is dropped too soon.
#[test]
fn parts_report_the_keys_that_a_single_filter_would() {
    for (shape, limit) in shapes().into_iter().flat_map(|shape| LIMITS.map(|limit| (shape, limit))) {
        let length = window(0, 100).generation(shape.blocks) as i64;
        let (mut filter, mut generations, mut most) = (made(shape, limit, 0), Vec::<i64>::new(), 0);
        let mut at = START;
        for n in 0..(40 * u64::from(timestamps(shape.bpt))).max(500) {
            at += [3 * length, length, length / 3, length / 9, length / 50][below(n, 64).min(4) as usize];
            generations.push(at.div_euclid(length));
            filter.engine_mut().insert(&[key(1, n)], Moments::At(at)).unwrap();
            most = most.max(how_many(&filter));
            let first = generations.len().saturating_sub(150);
            let keys: Vec<u64> = (first..generations.len()).map(|i| key(1, i as u64)).collect();
            for ahead in [0, 1, i64::from(shape.blocks)] {
                let open = generations[generations.len() - 1] + ahead;
                let mut there = vec![false; keys.len()];
                filter.engine().query(&keys, Moments::At(at + ahead * length), &mut there).unwrap();
                let expected = generations[first..].iter().map(|g| open - g <= i64::from(shape.blocks));
                assert_eq!(there, expected.collect::<Vec<_>>(), "{shape:?} {limit:?} after {n}, {ahead} ahead");
            }
        }
        assert!(most >= 3, "{shape:?} {limit:?}: {most} parts");
    }
}

/// With a limit of keys, exactly the parts that were added within the last two windows exist, and memory is exactly in
/// proportion.
#[test]
fn parts_are_added_with_the_keys_and_dropped_with_them() {
    for (fpr, slack) in [(0.01, None), (0.01, Some(SPAN as u64 / 10))] {
        let window = window(0, 1000);
        let shape = choose(window, Budget::Rate(fpr), slack).unwrap();
        let part = shape.nbytes() as usize / 8;
        for grow in [Grow::Cardinality, Grow::Density] {
            let limit = Limit::planned(grow, shape, window);
            let mut filter = AnyFilter::new(Growing { part: shape, limit }, window, 0).unwrap();
            let mut parts_after = |moments: &[i64]| {
                let keys: Vec<u64> = moments.iter().map(|&at| key(1, at as u64)).collect();
                filter.engine_mut().insert(&keys, Moments::Each(moments)).unwrap();
                let parts = how_many(&filter);
                assert_eq!(filter.engine().nbytes() / 8, 2 + parts + parts * part);
                parts
            };
            let phases = [(4.0, 900.0), (2.0, 100_000.0), (4.0, 900.0)];
            let mut start = 0;
            let parts = [1, 2, 3].map(|phases_done| {
                let end = steady(&phases[..phases_done]).len();
                let parts = parts_after(&steady(&phases)[start..end]);
                start = end;
                parts
            });
            // In the burst the keys of N + 1 generations at most are live, in parts of as many planned. Beside them are
            // the newest, the oldest, and what the rate of the plan falls short of that of the phase.
            let reach = window.generation(shape.blocks) * u64::from(shape.blocks + 1);
            let live = 100_000.0 * reach as f64 / SPAN as f64;
            let planned = 1000.0 * reach as f64 / SPAN as f64;
            assert!(parts[0] <= 2 && parts[2] <= 2, "{grow:?} {parts:?}");
            assert!((parts[1] as f64) > 0.9 * 100.0 * SPAN as f64 / reach as f64, "{grow:?} {parts:?}");
            assert!((parts[1] as f64) < 1.05 * live / planned + 2.0, "{grow:?} {parts:?}");
        }
    }
}

/// Below the planned rate expired timers make room, so with a limit of timers one part is enough. With a limit of keys
/// a full part stays closed, and two parts alternate.
#[test]
fn below_the_planned_rate_a_limit_of_timers_needs_one_part() {
    let window = window(0, 1000);
    for (slack, grow) in [None, Some(SPAN as u64 / 10)]
        .into_iter()
        .flat_map(|slack| [(Grow::Cardinality, 2), (Grow::Density, 1)].map(|grow| (slack, grow)))
    {
        let shape = choose(window, Budget::Rate(0.01), slack).unwrap();
        let mut filter =
            AnyFilter::new(Growing { part: shape, limit: Limit::planned(grow.0, shape, window) }, window, 0).unwrap();
        let mut most = 0;
        for (n, at) in steady(&[(8.0, 700.0)]).into_iter().enumerate() {
            filter.engine_mut().insert(&[key(6, n as u64)], Moments::At(at)).unwrap();
            most = most.max(how_many(&filter));
        }
        assert_eq!(most, grow.1, "{slack:?} {grow:?}");
    }
}

/// Repeats take no room: neither a key that comes again and again, nor, without `refresh`, one that an older part
/// contains.
#[test]
fn repeats_add_no_part() {
    let shape = shapes()[1];
    for limit in LIMITS {
        let mut filter = made(shape, limit, 0);
        let keys: Vec<u64> = (0..50).map(|i| key(3, i)).collect();
        filter.engine_mut().insert(&keys, Moments::At(START)).unwrap();
        let parts = how_many(&filter);
        assert!((3..=4).contains(&parts));
        let again: Vec<u64> = (0..10_000).map(|i| keys[49 - i % 5]).collect();
        filter.engine_mut().insert(&again, Moments::At(START)).unwrap();
        assert_eq!(how_many(&filter), parts);
        let (all, mut seen) = (keys.repeat(100), vec![false; 5000]);
        filter.engine_mut().duplicated(&all, Moments::At(START), Refresh::Unseen, &mut seen).unwrap();
        assert!(seen.iter().all(|&seen| seen));
        assert_eq!(how_many(&filter), parts);
        // With refresh they are inserted into the newest part, which is the only one left once the older have expired.
        filter.engine_mut().insert(&keys, Moments::At(START + SPAN / 2)).unwrap();
        assert!(how_many(&filter) > parts);
        assert_eq!(reported(&filter, &keys, START + SPAN / 2 + SPAN), 50);
    }
}

/// Fresh keys are reported as often as the timers determine: 1 - (1 - P)^F if all parts are full (OIE-10).
#[test]
fn the_rate_is_that_of_all_parts() {
    const TRIALS: u64 = 200_000;
    let window = window(0, 1000);
    for (fpr, slack) in [(0.05, None), (0.01, None), (0.01, Some(SPAN as u64 / 10))] {
        let shape = choose(window, Budget::Rate(fpr), slack).unwrap();
        for grow in [Grow::Cardinality, Grow::Density] {
            let limit = Limit::planned(grow, shape, window);
            let mut filter = AnyFilter::new(Growing { part: shape, limit }, window, 0).unwrap();
            assert!(filter.fpr() <= fpr);
            for parts in 1..=6 {
                let mut n = 1_000_000 * parts as u64;
                // Keys are inserted until the next one would add a part.
                loop {
                    let mut next = filter.clone();
                    next.engine_mut().insert(&[key(4, n)], Moments::At(START)).unwrap();
                    if how_many(&next) > parts {
                        break;
                    }
                    (filter, n) = (next, n + 1);
                }
                let fresh: Vec<u64> = (0..TRIALS).map(|i| key(77, i)).collect();
                let (measured, rate) = (reported(&filter, &fresh, START) as f64, filter.false_positive_rate());
                let deviation = (TRIALS as f64 * rate * (1.0 - rate)).sqrt();
                // Parts share positions by chance, and deviate from independent parts by less than 1 / sqrt(m).
                let shared = TRIALS as f64 * rate / (shape.slice_timers() as f64).sqrt();
                assert!((measured - TRIALS as f64 * rate).abs() <= 5.0 * deviation + shared, "{measured} {rate}");
                let total = 1.0 - (1.0 - filter.fpr()).powi(parts as i32);
                // The set timers of a part of k * s vary by less than their square root, and the rate k / fill times
                // that.
                let varies = f64::from(shape.k) / (limit_of_fill(shape, limit)).sqrt();
                assert!((rate / total - 1.0).abs() < 5.0 * varies, "{grow:?} {parts}: {rate} {total}");
                filter.engine_mut().insert(&[key(4, n)], Moments::At(START)).unwrap();
            }
        }
    }
}

/// Returns the number of timers set in a full part.
fn limit_of_fill(shape: TimingShape, limit: Limit) -> f64 {
    match limit {
        Limit::Keys(keys) => keys as f64 * f64::from(shape.k),
        Limit::Timers(timers) => timers as f64,
    }
}

/// With a limit of timers no part ever reports more than P, whatever the stream. At the planned rate the total stays
/// near P.
#[test]
fn the_planned_rate_of_false_positives_holds_at_the_planned_load() {
    let window = window(0, 20_000);
    for (grow, slack) in [Grow::Cardinality, Grow::Density].into_iter().flat_map(|g| [(g, None), (g, Some(50))]) {
        let slack = slack.map(|seconds| (seconds * SECOND) as u64);
        let shape = choose(window, Budget::Rate(0.01), slack).unwrap();
        let mut filter =
            AnyFilter::new(Growing { part: shape, limit: Limit::planned(grow, shape, window) }, window, 0).unwrap();
        let (mut worst, mut most) = (0.0_f64, 0);
        for (n, at) in steady(&[(6.0, 20_000.0)]).into_iter().enumerate() {
            filter.engine_mut().insert(&[key(5, n as u64)], Moments::At(at)).unwrap();
            if n % 499 == 0 {
                let rates = filter.engine().match_rates();
                let each = rates.chunks(shape.k as usize).map(|part| part.iter().product::<f64>());
                worst = worst.max(filter.false_positive_rate());
                most = most.max(how_many(&filter));
                if grow == Grow::Density {
                    assert!(each.into_iter().all(|rate| rate <= filter.fpr()));
                }
            }
        }
        // A fill of some 140,000 timers varies by less than 0.4 %, its k-th power by less than 3 %.
        assert!(worst <= 1.1 * filter.fpr() && most <= 2, "{grow:?} {slack:?}: {worst} {most}");
    }
}

#[test]
fn merging_and_windows_of_insertions_are_rejected() {
    let mut filter = made(shapes()[1], LIMITS[0], 0);
    let other = filter.clone();
    let error = filter.merge(&other).unwrap_err().to_string();
    assert!(error.contains("cannot merge these filters: timing filters that grow"), "{error}");
    let error = AnyFilter::new(Growing { part: shapes()[1], limit: LIMITS[0] }, Window::Count { insertions: 9 }, 0)
        .err()
        .unwrap();
    assert!(error.to_string().contains("grow is for windows of time"), "{error}");
}
