//! Lines in a window of time keep their promise whenever keys come: in twenty patterns of arrival, none with more keys
//! in any window than the capacity, no key of the window is missed and the rate is kept at its worst moment.

use std::collections::{HashSet, VecDeque};

use crate::support::key;
use lately::clock::{Moments, Window};
use lately::concurrent::{At, SharedFilter};
use lately::engine::Refresh;
use lately::family::Shape as _;
use lately::family::lines::shape::{LineShape, choose};
use lately::family::slices::shape::Paper;
use lately::family::{AnyFilter, Budget};
use lately::key::Seed;
use lately::{format, lock, shared};

/// Moments of a window, of which both ends belong to it.
const SPAN: usize = 100;
/// Nanoseconds between two moments.
const TICK: i64 = 1_000_003;
const PATTERNS: usize = 20;

fn window(capacity: usize) -> Window {
    Window::Time { span: SPAN as u64 * TICK as u64, lateness: 0, capacity: capacity as u64 }
}

/// Returns how many keys a pattern brings at a moment, if the capacity has room for them.
fn offered(pattern: usize, t: usize, k: usize) -> usize {
    let each = |period: usize, keys: usize| if t.is_multiple_of(period) { keys } else { 0 };
    let drawn = key(pattern as u64, t as u64) as usize >> 8;
    match pattern {
        0 => k,
        1 => each(150, k),
        2 => each(100, k / 2),
        3 => k / 101,
        4 => t % 200 * k / 10_000,
        5 => ((1.0 + (t as f64 / 20.0).sin()) * k as f64 / 100.0) as usize,
        6 => each(10, k / 11),
        7 => each(33, k / 4),
        8 => {
            if t % 126 < 25 {
                k / 25
            } else {
                0
            }
        }
        9 => each(3, 1),
        10 => {
            if t % 401 < 300 {
                1
            } else {
                k
            }
        }
        11 => {
            if t % 114 == 113 {
                k
            } else {
                each(7, 1)
            }
        }
        12 => k >> (t % 101 + 1).min(60),
        13 => {
            if (t % 101).is_multiple_of(10) {
                k >> (10 - t % 101 / 10)
            } else {
                0
            }
        }
        14 => {
            if drawn.is_multiple_of(10) {
                (drawn >> 8) % k
            } else {
                0
            }
        }
        15 => drawn % (k / 40),
        16 => each(350, k),
        17 => each(101, k / 2) + k / 202,
        18 => each(14, k / 8),
        _ => each(2, k / 50),
    }
}

/// The keys of a stream, as a map has them: none comes twice.
struct Live {
    keys: VecDeque<(usize, u64)>,
    gone: Vec<u64>,
    next: u64,
    capacity: usize,
}

impl Live {
    fn new(capacity: usize) -> Self {
        Self { keys: VecDeque::new(), gone: Vec::new(), next: 0, capacity }
    }

    /// Returns the keys that come at a moment, and forgets those that leave the window and then `slack`.
    fn arrive(&mut self, pattern: usize, t: usize, slack: usize) -> Vec<u64> {
        while let Some(&(at, key)) = self.keys.front().filter(|&&(at, _)| at + SPAN + slack < t) {
            self.keys.pop_front();
            if at % 7 == 0 && self.gone.len() < 500 {
                self.gone.push(key);
            }
        }
        let live = self.keys.len() - self.keys.partition_point(|&(at, _)| at + SPAN < t);
        let new = offered(pattern, t, self.capacity).min(self.capacity - live);
        let new: Vec<u64> = (self.next..self.next + new as u64).map(|i| key(77, i)).collect();
        self.next += new.len() as u64;
        self.keys.extend(new.iter().map(|&key| (t, key)));
        new
    }

    /// Returns the oldest keys of the window and some others, all of which must be reported.
    fn checked(&self, t: usize) -> Vec<u64> {
        let live = self.keys.partition_point(|&(at, _)| at + SPAN < t);
        let live = self.keys.range(live..).map(|&(_, key)| key);
        let every = live.len() / 300 + 1;
        live.clone().take(50).chain(live.skip(t % every).step_by(every)).collect()
    }
}

/// Returns the rate that 64 lines or more have by chance where the mean of filters is this.
fn most(fpr: f64, shape: &LineShape) -> f64 {
    1.1 * fpr * (1.0 + 3.0 / (shape.pages as f64 * 64.0).sqrt())
}

fn shapes(capacity: usize) -> Vec<LineShape> {
    let plan = |paper, fpr| choose(window(capacity), Budget::Rate(fpr), None, paper).unwrap();
    let mut shapes: Vec<LineShape> = [1e-1, 1e-2, 1e-3].map(|fpr| plan(Paper::AgePartitioned, fpr)).into();
    shapes.push(plan(Paper::GuardedEpoch, 1e-3));
    shapes.push(LineShape::age_partitioned(4, 4, 66, 2).unwrap());
    shapes.push(LineShape::age_partitioned(2, 30, 65, 1).unwrap());
    shapes
}

#[test]
fn every_arrival_within_the_capacity_keeps_window_slack_and_rate() {
    let capacity = 8_000;
    for (shape, pattern) in shapes(capacity).into_iter().flat_map(|shape| (0..PATTERNS).map(move |p| (shape, p))) {
        let window = window(capacity);
        let mut filter = AnyFilter::new(shape, window, 0).unwrap().with_max_ahead(None);
        let (slack, fpr) = (shape.slack(window).div_ceil(TICK as u64) as usize, filter.fpr());
        let (mut live, mut highest, mut false_positives) = (Live::new(capacity), 0.0_f64, 0);
        for t in 0..6 * SPAN {
            let (at, new) = (Moments::At(t as i64 * TICK), live.arrive(pattern, t, slack));
            let (mut seen, checked) = (vec![false; new.len()], live.checked(t));
            filter.engine_mut().duplicated(&new, at, Refresh::Always, &mut seen).unwrap();
            false_positives += seen.iter().filter(|&&seen| seen).count();
            let mut present = vec![false; checked.len()];
            filter.engine().query(&checked, at, &mut present).unwrap();
            assert!(!present.contains(&false), "missed in pattern {pattern} at {t}: {shape:?}");
            if new.len() > capacity / 12 || t % 50 == 0 {
                highest = highest.max(filter.false_positive_rate());
                let gone = std::mem::take(&mut live.gone);
                let mut present = vec![false; gone.len()];
                filter.engine().query(&gone, at, &mut present).unwrap();
                let kept = present.iter().filter(|&&present| present).count() as f64;
                let chance = gone.len() as f64 * fpr;
                assert!(kept <= chance + 6.0 * chance.sqrt() + 2.0, "{kept} of {} kept after the slack", gone.len());
            }
            if t % 97 == 50 {
                filter = saved_and_read(&filter);
            }
        }
        let keys = live.next as f64;
        println!("{pattern:2} {shape:?}: {highest:.2e} of {fpr:.2e}");
        assert!(highest <= most(fpr, &shape), "pattern {pattern}: {highest} instead of {fpr}, {shape:?}");
        let expected = keys * most(fpr, &shape);
        assert!(false_positives as f64 <= expected + 6.0 * expected.sqrt() + 2.0, "{false_positives} of {keys}");
    }
}

fn saved_and_read(filter: &AnyFilter) -> AnyFilter {
    let mut bytes = Vec::new();
    format::write(filter, &mut bytes).unwrap();
    let read = format::from_bytes(Box::new(bytes)).unwrap();
    assert_eq!(read.equals(filter), Ok(true));
    read
}

#[test]
fn single_keys_and_batches_end_generations_alike() {
    let capacity = 400;
    let window = window(capacity);
    for (pattern, shape) in (0..PATTERNS).zip(shapes(capacity).into_iter().cycle()) {
        let build = || AnyFilter::new(shape, window, 0).unwrap().with_max_ahead(None);
        let (mut single, mut batch, mut live) = (build(), build(), Live::new(capacity));
        let (mut hashes, mut times) = (Vec::new(), Vec::new());
        for t in 0..6 * SPAN {
            // Some keys come again.
            let new = live.arrive(pattern, t, 0);
            let again = live.keys.get(t % 50).map(|&(_, key)| key);
            hashes.extend(new.into_iter().chain(again));
            times.resize(hashes.len(), t as i64 * TICK);
        }
        let mut seen = [vec![false; hashes.len()], vec![false; hashes.len()]];
        batch.engine_mut().duplicated(&hashes, Moments::of(&times), Refresh::Always, &mut seen[0]).unwrap();
        for (i, &hash) in hashes.iter().enumerate() {
            let at = Moments::At(times[i]);
            seen[1][i] = single.engine_mut().seen_one(hash, at, Refresh::Always).unwrap();
        }
        assert_eq!(seen[0], seen[1], "{pattern} {shape:?}");
        assert_eq!(single.equals(&batch), Ok(true), "{pattern} {shape:?}");
        // Queries of later moments, in any order, are those of single keys too.
        let later: Vec<i64> = (0..hashes.len()).map(|i| (7 * SPAN - i % 99 + i % 2) as i64 * TICK).collect();
        batch.engine().query(&hashes, Moments::of(&later), &mut seen[0]).unwrap();
        for (i, hash) in hashes.iter().enumerate() {
            single.engine().query(&[*hash], Moments::At(later[i]), &mut seen[1][i..=i]).unwrap();
        }
        assert_eq!(seen[0], seen[1], "{pattern} {shape:?}");
    }
}

#[test]
fn threads_keep_window_and_rate_in_every_arrival() {
    let (capacity, threads) = (20_000, 4);
    for (pattern, fpr) in (0..PATTERNS).zip([1e-2, 1e-3].into_iter().cycle()) {
        let filter = SharedFilter::plan(window(capacity), Budget::Rate(fpr), None, None, Seed::Public(0)).unwrap();
        let slack = filter.slack().div_ceil(TICK as u64) as usize;
        let (mut live, mut highest, mut false_positives) = (Live::new(capacity), 0.0_f64, HashSet::new());
        for t in 0..4 * SPAN {
            let (at, new) = (At::Moment(t as i64 * TICK), live.arrive(pattern, t, slack));
            // A key that is reported by chance is not inserted, and nothing is promised of it.
            let insert =
                |keys: &[u64]| keys.iter().copied().filter(|&key| filter.seen(key, at).unwrap()).collect::<Vec<u64>>();
            if new.len() < 1000 {
                false_positives.extend(insert(&new));
            } else {
                std::thread::scope(|scope| {
                    let parts = new.chunks(new.len() / threads + 1);
                    let running: Vec<_> = parts.map(|part| scope.spawn(|| insert(part))).collect();
                    running.into_iter().for_each(|thread| false_positives.extend(thread.join().unwrap()));
                });
                highest = highest.max(filter.false_positive_rate());
            }
            let missed = |key: &u64| !filter.contains(*key, at).unwrap() && !false_positives.contains(key);
            assert_eq!(live.checked(t).iter().filter(|&key| missed(key)).count(), 0, "pattern {pattern} at {t}");
            live.gone.clear();
        }
        let (reported, keys) = (false_positives.len() as f64, live.next as f64);
        let expected = keys * most(fpr, filter.shape());
        assert!(highest <= most(fpr, filter.shape()), "pattern {pattern}: {highest} instead of {fpr}");
        assert!(reported <= expected + 6.0 * expected.sqrt(), "pattern {pattern}: {reported} of {keys}");
    }
}

/// The system suspends a thread that ends a generation, while others go on with the burst.
#[test]
fn a_burst_keeps_the_rate_while_a_thread_that_ends_a_generation_is_suspended() {
    let (capacity, fpr) = (20_000, 1e-2);
    let filter = SharedFilter::plan(window(capacity), Budget::Rate(fpr), None, None, Seed::Public(0)).unwrap();
    filter.insert(key(1, 0), At::Moment(0)).unwrap();
    let suspended = filter.hold_time();
    std::thread::scope(|scope| {
        let burst = scope.spawn(|| (1..capacity).for_each(|i| filter.insert(key(1, i as u64), At::Moment(0)).unwrap()));
        let mut before = 0;
        while before < filter.inserted() && !burst.is_finished() {
            before = filter.inserted();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        drop(suspended);
    });
    let rate = filter.false_positive_rate();
    assert!(rate <= most(fpr, filter.shape()), "{rate} instead of {fpr}");
}

/// Two processes write in turns to one file, and each answers for the other.
#[test]
fn processes_that_share_a_file_agree_when_generations_end() {
    let (capacity, folder) = (5000, tempfile::tempdir().unwrap());
    for (pattern, shape) in (0..PATTERNS).zip(shapes(capacity).into_iter().cycle()) {
        let path = folder.path().join(format!("{pattern}.lately"));
        let empty = AnyFilter::new(shape, window(capacity), 0).unwrap().with_max_ahead(None);
        format::save(&empty, &path).unwrap();
        let mut opened = [(); 2].map(|()| shared::open(&path).unwrap());
        let mut live = Live::new(capacity);
        for t in 0..3 * SPAN {
            let (at, new) = (Moments::At(t as i64 * TICK), live.arrive(pattern, t, 0));
            let (filter, file) = &mut opened[t % 2];
            let locked = file.lock(lock::TIMEOUT).unwrap();
            filter.engine_mut().insert(&new, at).unwrap();
            drop(locked);
            let (other, checked) = (&opened[1 - t % 2].0, live.checked(t));
            let mut present = vec![false; checked.len()];
            other.engine().query(&checked, at, &mut present).unwrap();
            assert!(!present.contains(&false), "missed in pattern {pattern} at {t}: {shape:?}");
            if new.len() > capacity / 10 {
                let rate = other.false_positive_rate();
                assert!(rate <= most(empty.fpr(), &shape), "pattern {pattern} at {t}: {rate}, {shape:?}");
            }
        }
    }
}

#[test]
fn beyond_the_capacity_no_key_is_missed() {
    let capacity = 1000;
    for (pattern, shape) in (0..PATTERNS).zip(shapes(capacity).into_iter().cycle()) {
        // Planned for a tenth.
        let mut filter = AnyFilter::new(shape, window(capacity / 10), 0).unwrap().with_max_ahead(None);
        let mut live = Live::new(capacity);
        for t in 0..6 * SPAN {
            let (at, new) = (Moments::At(t as i64 * TICK), live.arrive(pattern, t, 0));
            filter.engine_mut().insert(&new, at).unwrap();
            let checked = live.checked(t);
            let mut present = vec![false; checked.len()];
            filter.engine().query(&checked, at, &mut present).unwrap();
            assert!(!present.contains(&false), "missed in pattern {pattern} at {t}: {shape:?}");
        }
    }
}

#[test]
fn filters_merge_in_a_lull_and_refuse_where_keys_would_be_missed() {
    let shape = choose(window(1000), Budget::Rate(1e-2), None, Paper::AgePartitioned).unwrap();
    let build = |burst: usize, stream: u64, at: i64| {
        let mut filter = AnyFilter::new(shape, window(1000), 0).unwrap().with_max_ahead(None);
        let keys: Vec<u64> = (0..burst as u64).map(|i| key(stream, i)).collect();
        filter.engine_mut().insert(&keys, Moments::At(at * TICK)).unwrap();
        filter
    };
    let present = |filter: &AnyFilter, stream: u64, keys: u64, at: i64| {
        let hashes: Vec<u64> = (0..keys).map(|i| key(stream, i)).collect();
        let mut present = vec![false; hashes.len()];
        filter.engine().query(&hashes, Moments::At(at * TICK), &mut present).unwrap();
        present.iter().filter(|&&present| present).count() as u64
    };
    let merges = [(300, 10), (1000, 40), (1000, 100), (10, 90)];
    for ((burst, later), reversed) in merges.into_iter().flat_map(|merge| [(merge, false), (merge, true)]) {
        let pair = || (build(burst, 1, 0), build(200, 2, later));
        let (mut merged, other) = if reversed { (pair().1, pair().0) } else { pair() };
        match merged.merge(&other) {
            Ok(()) => {
                for at in later..=later + 100 {
                    // What comes meanwhile ends generations by time.
                    merged.engine_mut().insert(&[key(3, at as u64)], Moments::At(at * TICK)).unwrap();
                    let first = if at <= 100 { burst as u64 } else { 0 };
                    assert!(present(&merged, 1, burst as u64, at) >= first, "{burst} {later} at {at}");
                    assert_eq!(present(&merged, 2, 200, at), 200, "{burst} {later} at {at}");
                }
            }
            Err(error) => {
                assert!(burst == 1000 && error.to_string().contains("a burst has ended generations"), "{error}");
                let before = if reversed { pair().1 } else { pair().0 };
                assert_eq!(merged.equals(&before), Ok(true), "a merge that fails changes nothing");
            }
        }
    }
    // A burst in each of three windows has ended more generations than the cells retain.
    let mut busy = build(1000, 1, 0);
    for at in [150, 300] {
        let burst: Vec<u64> = (0..1000).map(|i| key(at, i)).collect();
        busy.engine_mut().insert(&burst, Moments::At(at as i64 * TICK)).unwrap();
    }
    let mut other = build(200, 2, 310);
    assert!(busy.merge(&other).is_err() && other.merge(&busy).is_err());
    assert_eq!(present(&other, 2, 200, 410), 200);
}
