//! The promise of the timing Bloom filter through every wrap of its timestamps, on either clock, and its rates at the
//! worst phase, with equal timers too.

use std::sync::Arc;

use crate::support::{Rates, check_window, insert, key, present};
use lately::clock::{Moments, Window};
use lately::family::timing::shape::{TimingShape, choose, sweeps, timestamps};
use lately::family::{AnyFilter, Budget, Shape};

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Returns a shape so empty that no key is reported by chance.
fn sparse((bpt, blocks): (u32, u32)) -> TimingShape {
    TimingShape::new(12, bpt, blocks, 2048, 1).unwrap()
}

fn filter(shape: TimingShape, window: Window) -> AnyFilter {
    AnyFilter::new(shape, window, 0).unwrap()
}

/// Returns the number of generations in which timestamps wrap three times and all timers are swept three times.
fn three_rounds(shape: TimingShape) -> u64 {
    3 * (u64::from(timestamps(shape.bpt)) + u64::from(sweeps(shape.bpt, shape.blocks))) + 2
}

/// Checks that no more timers are live than `keys` distinct keys set. An old timer that looks young again is one more.
/// Queries hardly ever show it, because all timers of a key would have to look young.
fn check(shape: TimingShape, filter: &AnyFilter, keys: u64) {
    for fill in filter.engine().fill() {
        let live = (fill * shape.slice_timers() as f64).round() as u64;
        assert!(live <= keys, "{shape:?}: {live} live timers of {keys} keys");
    }
}

/// Returns shapes and windows: the least width, blocks and window, words with and without padding, and B = 1 and B > 1.
fn shapes() -> impl Iterator<Item = (TimingShape, Window)> {
    let divided = [(2, 1), (2, 2), (3, 1), (3, 4), (3, 6), (4, 9), (4, 14), (5, 29), (5, 30), (6, 3)];
    let windows = [1, 2, 3, 7, 31].map(count);
    divided.into_iter().map(sparse).flat_map(move |shape| windows.map(|window| (shape, window)))
}

/// After every insertion exactly the retained keys are reported. The test detects a key that returns when its timestamp
/// wraps, and one that is forgotten too soon.
#[test]
fn no_key_of_the_window_is_missed_and_no_expired_key_returns() {
    for (timers, window) in shapes() {
        let Window::Count { insertions } = window else { unreachable!() };
        let block = window.generation(timers.blocks);
        let reach = block * (u64::from(timers.blocks) + 1);
        let mut filter = filter(timers, window);
        assert_eq!(filter.slack(), reach - insertions);
        let mut longest = 0;
        for n in 0..three_rounds(timers) * block {
            insert(&mut filter, &[key(0, n)]);
            // The retained keys are those of the open block and of the full blocks before it.
            let kept = n % block + 1 + (reach - block);
            let there: Vec<u64> = (0..=n).filter(|&i| present(&filter, &[key(0, i)]) == 1).collect();
            let expected: Vec<u64> = ((n + 1).saturating_sub(kept)..=n).collect();
            assert_eq!(there, expected, "{timers:?} {window:?} after {n}");
            check(timers, &filter, there.len() as u64);
            longest = longest.max(there.len() as u64);
            assert!(there.len() as u64 >= insertions.min(n + 1));
        }
        assert_eq!(longest, insertions + filter.slack(), "{timers:?} {window:?}: the slack is reached");
    }
}

/// On the time clock a generation has no key, one, or several.
#[test]
fn exactly_the_retained_keys_are_reported_after_gaps_of_every_length_at_every_phase() {
    let window = Window::Time { span: 1000, lateness: 0, capacity: 10 };
    let divided = [(2, 1), (2, 2), (3, 4), (3, 6), (4, 3), (4, 14)];
    for timers in divided.map(sparse) {
        let length = window.generation(timers.blocks) as i64;
        let (codes, kept) = (i64::from(timestamps(timers.bpt)), i64::from(timers.blocks) + 1);
        for gap in (0..=2 * codes + 3).chain([1000 * codes, 1000 * codes + 1]) {
            for start in -codes..=codes {
                let mut filter = filter(timers, window);
                let mut generations = Vec::new();
                let mut generation = start;
                // A key comes in every other generation through two rounds, so that timers have all ages. Then the gap.
                for step in (0..codes).map(|_| 2).chain([gap, 1, gap]) {
                    generation += step;
                    let at = Moments::At(generation * length);
                    filter.engine_mut().insert(&[key(1, generations.len() as u64)], at).unwrap();
                    generations.push(generation);
                    check(timers, &filter, generations.iter().filter(|&&g| generation - g < kept).count() as u64);
                    for ahead in [0, 1, kept - 1, kept, codes - 1, codes, codes + 1, 1 << 40] {
                        let keys: Vec<u64> = (0..generations.len() as u64).map(|i| key(1, i)).collect();
                        let mut there = vec![false; keys.len()];
                        let queried = Moments::At((generation + ahead) * length);
                        filter.engine().query(&keys, queried, &mut there).unwrap();
                        let expected: Vec<bool> = generations.iter().map(|g| generation + ahead - g < kept).collect();
                        assert_eq!(there, expected, "{timers:?} gap {gap} from {start}, {ahead} ahead");
                    }
                }
            }
        }
    }
}

/// Returns the share of fresh keys reported, and the share of keys missed of each generation, the newest first, just
/// before a shift of filters whose timestamps have wrapped.
fn measure(shape: TimingShape, window: Window, filters: u64, trials: u64) -> (f64, Vec<f64>) {
    let block = window.generation(shape.blocks);
    let generations = u64::from(shape.blocks) + 1;
    let inserted = (u64::from(timestamps(shape.bpt)) + generations + 1) * block;
    let mut reported = 0;
    let mut missed = vec![0; generations as usize];
    for stream in 0..filters {
        let mut filter = AnyFilter::new(shape, window, 0).unwrap();
        insert(&mut filter, &(0..inserted).map(|i| key(stream, i)).collect::<Vec<_>>());
        reported += present(&filter, &(0..trials).map(|i| key(stream, inserted + i)).collect::<Vec<_>>());
        for (age, missed) in (1..).zip(missed.iter_mut()) {
            let first = inserted - age * block;
            let keys: Vec<_> = (first..first + block).map(|i| key(stream, i)).collect();
            *missed += keys.len() - present(&filter, &keys);
        }
    }
    let missed = missed.into_iter().map(|missed| missed as f64 / (filters * block) as f64).collect();
    (reported as f64 / (filters * trials) as f64, missed)
}

/// A window whose blocks are far shorter than it, and one of a block for each insertion, through every wrap.
#[test]
fn a_small_slack_keeps_window_and_rate() {
    for (insertions, slack) in [(1000, 50), (1000, 0), (20_011, 1000)] {
        let window = count(insertions);
        let shape = choose(window, Budget::Rate(0.01), Some(slack)).unwrap();
        let block = window.generation(shape.blocks);
        let turns = (three_rounds(shape) * block).min(600_000);
        check_window(&mut filter(shape, window), insertions, block.max(insertions / 10), turns).unwrap();
        let shape: Arc<dyn Shape> = Arc::new(shape);
        Rates::measure(&shape, window, 60, 5000).check(shape.fpr(window)).unwrap();
    }
}

#[test]
fn equal_timers_err_as_often_as_computed() {
    for (k, equal, bpt, blocks, timers, insertions) in
        [(8, 2, 8, 100, 160, 101), (8, 3, 8, 100, 160, 101), (6, 4, 5, 23, 640, 500), (4, 4, 7, 99, 99, 100)]
    {
        let shape = TimingShape::new(k, bpt, blocks, timers, equal).unwrap();
        let plain = TimingShape { equal_timers: 1, ..shape };
        let window = count(insertions);
        let (filters, trials) = (1500, 2000);
        let (reported, missed) = measure(shape, window, filters, trials);
        let rate = shape.fpr(window);
        assert!(rate < plain.fpr(window));
        // The slope of the rate in the fills is at most that of the plain rate, where all slices vary alike.
        let p = plain.fpr(window).powf(1.0 / f64::from(k));
        let slope = f64::from(k) * p.powi(k as i32 - 1);
        let between = slope.powi(2) * p * (1.0 - p) / shape.slice_timers() as f64;
        let sigma = (rate / (filters * trials) as f64 + between / filters as f64).sqrt();
        assert!((reported - rate).abs() <= 5.0 * sigma, "{shape:?}: {reported} {rate} {sigma}");
        let computed = shape.false_negative_rates(window);
        assert_eq!(missed.len(), computed.len());
        assert!(*computed.last().unwrap() > 0.0);
        // At worst all keys of a generation are missed together, so each filter is one trial.
        for (age, (missed, computed)) in missed.iter().zip(&computed).enumerate() {
            let sigma = (computed * (1.0 - computed) / filters as f64).sqrt();
            assert!((missed - computed).abs() <= 5.0 * sigma + 1e-9, "{shape:?} {age}: {missed} {computed} {sigma}");
        }
        let (_, missed) = measure(plain, window, 10, 1);
        assert!(missed.iter().all(|&missed| missed == 0.0), "without the heuristic no key may be missed");
    }
}

/// One key every 2.27 blocks of a window of time: no block has two keys, so all equal timers are of one key.
#[test]
fn equal_timers_of_blocks_that_are_mostly_empty_err_as_often_as_computed() {
    let (span, capacity) = (100_000, 44);
    let window = Window::Time { span, lateness: 0, capacity };
    let shape = TimingShape::new(4, 8, 100, 60, 2).unwrap();
    let (filters, trials) = (1500, 2000);
    let (mut reported, mut missed) = (0, 0);
    for stream in 0..filters {
        let mut filter = AnyFilter::new(shape, window, 0).unwrap();
        let moments: Vec<i64> = (0..3 * capacity as i64).map(|i| i * span as i64 / capacity as i64).collect();
        let keys: Vec<u64> = (0..moments.len() as u64).map(|i| key(stream, i)).collect();
        filter.engine_mut().insert(&keys, Moments::Each(&moments)).unwrap();
        let now = Moments::At(moments[moments.len() - 1]);
        let count_reported = |keys: &[u64]| {
            let mut present = vec![false; keys.len()];
            filter.engine().query(keys, now, &mut present).unwrap();
            present.into_iter().filter(|&present| present).count()
        };
        reported += count_reported(&(0..trials).map(|i| key(stream, 1000 + i)).collect::<Vec<_>>());
        // The oldest key of the window.
        missed += 1 - count_reported(&keys[keys.len() - capacity as usize..][..1]);
    }
    let rate = shape.fpr(window);
    let measured = reported as f64 / (filters * trials) as f64;
    // Twice the slope of the rate in the number of keys, squared, times the variance of that number. Fresh keys of one
    // filter share its timers, and the 60 of a slice vary by a part in sqrt(60 * 0.5).
    let sigma = rate * (2.0 / 30.0 / filters as f64 + 1.0 / (rate * (filters * trials) as f64)).sqrt();
    assert!((measured - rate).abs() <= 5.0 * sigma, "{measured} {rate} {sigma}");
    let miss = shape.false_negative_rates(window)[99];
    let sigma = (miss * (1.0 - miss) / filters as f64).sqrt();
    assert!((missed as f64 / filters as f64 - miss).abs() <= 5.0 * sigma, "{missed} {miss} {sigma}");
}
