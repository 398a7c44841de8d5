//! Lines of an aged quotient filter, the chance that a page overflows, and the shapes that are chosen.

use lately::clock::Window;
use lately::family::budget::allowed_slack;
use lately::family::{Budget, Shape as _};
use lately::shape::quotient::*;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn formats() -> impl Iterator<Item = (u32, u32)> {
    TAG_BITS.flat_map(|t| FINGERPRINT_BITS.map(move |f| (f, t))).filter(|(f, t)| f + t <= MAX_BITS)
}

#[test]
fn a_line_has_512_bits() {
    let fine = FINE_TAG_BITS.flat_map(|t| FINGERPRINT_BITS.map(move |f| (f, t)));
    let all = formats().chain(fine.filter(|(f, t)| f + t <= MAX_FINE_BITS));
    let all = all.flat_map(|format| (0..=*COUNT_BITS.end()).map(move |c| (format, c)));
    for (((f, t), c), large) in all.flat_map(|format| [false, true].map(|large| (format, large))) {
        let LineFormat { slots, buckets, eviction_buckets } = line_of(f, t, c, large);
        let all = 6 + buckets + eviction_buckets + slots * (f + t + c + 1);
        assert!((500..=512).contains(&all), "{f} {t} {c}: {all}");
        assert!(buckets + eviction_buckets <= 58 && eviction_buckets < 32 && slots <= 57 && f + t >= 8);
        assert!(
            4 * eviction_buckets > buckets + eviction_buckets,
            "a quarter at least may leave: {eviction_buckets} of {buckets}"
        );
    }
}

/// Returns the chance that more than `room` of `keys` keys fall into one of `pages` pages: weights from the mode, over
/// their sum.
fn more_than(room: usize, keys: u64, pages: u64) -> f64 {
    let odds = 1.0 / (pages as f64 - 1.0);
    let mode = (keys / pages) as usize;
    let mut weights = vec![0.0; keys as usize + 1];
    weights[mode] = 1.0;
    for k in mode..keys as usize {
        weights[k + 1] = weights[k] * (keys as usize - k) as f64 / (k + 1) as f64 * odds;
    }
    for k in (0..mode).rev() {
        weights[k] = weights[k + 1] * (k + 1) as f64 / (keys as usize - k) as f64 / odds;
    }
    weights[room + 1..].iter().sum::<f64>() / weights.iter().sum::<f64>()
}

/// Fingerprints are long enough that only keys of lines which rejected a key are reported: half of the lines of a page
/// after any of 2^T peaks.
#[test]
fn pages_overflow_as_binomials_do() {
    for (pages, lines, load) in [(3, 63, 0.93), (20, 63, 0.92), (200, 63, 0.93), (5, 127, 0.94), (90, 127, 0.93)] {
        let shape = QuotientShape::new(20, 3, pages, lines, None).unwrap();
        let slots = lines * shape.line().slots;
        let keys = (load * pages as f64 * f64::from(slots)) as u64 / 8 * 8;
        let exact = 4.0 * more_than((slots + OVERFLOW_SLOTS) as usize, keys, pages);
        let stated = shape.false_positive_rate(keys as f64 / 8.0);
        assert!((exact..1.3 * exact + 1e-6).contains(&stated), "{pages} {load}: {stated} is not {exact}");
    }
    let one = QuotientShape::new(20, 3, 1, 63, None).unwrap();
    assert!(one.false_positive_rate(0.94 * f64::from(63 * one.line().slots) / 8.0) < 1e-6);
    assert_eq!(one.false_positive_rate(0.96 * f64::from(63 * one.line().slots) / 8.0), 1.0);
}

#[test]
fn the_largest_shape_has_rates_and_distinct_keys_are_those_of_a_window() {
    let largest = QuotientShape::new(8, 8, (1 << 24) - 1, 63, None).unwrap();
    assert_eq!(largest.retained(), 255 * ((1 << 24) - 1));
    let _ = (largest.slack(count(1 << 62)), largest.fpr(count(1 << 62)));
    let planned = |distinct, window| QuotientShape { distinct, ..largest }.check(window);
    assert!(planned(Some(5), count(5)).is_ok() && planned(Some(6), count(5)).is_err());
    let time = Window::Time { span: 9, lateness: 0, capacity: 9 };
    assert!(planned(None, time).is_ok() && planned(Some(5), time).is_err());
}

/// A window of insertions with fewer distinct keys is like a shorter one, except for its steps and the headroom of a
/// guess.
#[test]
fn memory_follows_distinct_keys() {
    let choose = |window, distinct| choose(window, Budget::Rate(0.01), None, distinct, None, false).unwrap();
    let (all, fifth) = (choose(count(1_000_000), None), choose(count(5_000_000), Some(1_000_000)));
    let ratio = fifth.nbytes() as f64 / all.nbytes() as f64;
    assert!((0.98 * HEADROOM..1.02 * HEADROOM).contains(&ratio), "{ratio}");
    let time = Window::Time { span: 1 << 40, lateness: 0, capacity: 1_000_000 };
    let timed = choose(time, None);
    assert!((0.98..1.02).contains(&(timed.nbytes() as f64 / fifth.nbytes() as f64)));
}

/// Returns the least size of every format that holds a rate: as many lines as fewer pages cannot have, side by side.
fn smallest(window: Window, slack: u64, fpr: f64) -> impl Iterator<Item = QuotientShape> {
    let sizes = (1..30).flat_map(|pages| (3..=127).map(move |lines| (pages, lines)));
    let sizes = sizes.filter(|(pages, lines)| pages * (u64::from(*lines) + 1) > (pages - 1) * 128);
    formats().filter_map(move |(f, t)| {
        let mut shapes = sizes.clone().map(|(pages, lines)| QuotientShape::new(f, t, pages, lines, None).unwrap());
        shapes.find(|shape| shape.fpr(window) <= fpr && shape.slack(window) <= slack)
    })
}

#[test]
fn a_rate_gives_what_trying_everything_gives() {
    for (insertions, slack, fpr) in [
        (12_000, 6_000, 0.01),
        (30_000, 4_400, 1e-4),
        (2_000, 300, 0.001),
        (3_000, 1_000, 0.01),
        (1_000, 150, 0.001),
        (100, 64, 0.1),
    ] {
        let window = count(insertions);
        let least = smallest(window, slack, fpr).map(|shape| shape.nbytes()).min().unwrap();
        let near = smallest(window, slack, fpr).filter(|shape| shape.nbytes() <= least + least / 64);
        let best = near.min_by_key(|shape| (shape.tag_bits, shape.nbytes())).unwrap();
        let chosen = choose(window, Budget::Rate(fpr), Some(slack), None, None, false).unwrap();
        assert_eq!((chosen.tag_bits, chosen.nbytes()), (best.tag_bits, best.nbytes()), "{insertions} {chosen:?}");
        assert!(chosen.fpr(window) <= fpr && chosen.slack(window) <= slack);
    }
}

#[test]
fn bytes_are_used_and_slack_is_kept() {
    let time = |span, lateness| Window::Time { span, lateness, capacity: 1000 };
    let windows = [1, 2, 7, 127, 1000, 100_003].map(count).into_iter();
    for window in windows.chain([(1_000_003, 0), (1_000_000_007, 0), (100_000, 500_000)].map(|(s, l)| time(s, l))) {
        for bytes in [256, 4095, 4096, 8191, 100_000] {
            let shape = choose(window, Budget::Bytes(bytes), None, None, None, false).unwrap();
            assert!(shape.slack(window) <= allowed_slack(window, None), "{window:?} {shape:?}");
            assert!(shape.nbytes() <= bytes);
        }
        let shape = choose(window, Budget::Rate(0.01), None, None, None, false).unwrap();
        assert!(shape.slack(window) <= allowed_slack(window, None) && shape.fpr(window) <= 0.01);
    }
}

/// Requests for ten thousand keys and for twelve are met alike: no size, rate or slack falls between two pages.
#[test]
fn any_window_has_a_filter() {
    let sizes =
        std::iter::successors(Some(100u64), |&size| Some(size + size / 9 + 1)).take_while(|&size| size < 10_000_000);
    for size in sizes.chain([1000, 2000, 10_000, 40_000, 100_000]) {
        let timed = Window::Time { span: 3_600_000_000_000, lateness: 0, capacity: size };
        for (window, unit) in [(count(size), size), (timed, 3_600_000_000_000)] {
            for fpr in [0.1, 0.01, 0.001, 1e-4, 1e-5] {
                for part in [2, 7, 20, 100] {
                    for counts in [None, Some(2), Some(4)] {
                        let shape = choose(window, Budget::Rate(fpr), Some(unit / part), None, counts, false);
                        let shape = match shape {
                            // A window of few keys cannot be divided into a hundred epochs of whole keys.
                            Err(error) if error.to_string().contains("slack must be at least") && size < 2000 => {
                                continue;
                            }
                            shape => {
                                shape.unwrap_or_else(|error| panic!("{window:?} {fpr} {part} {counts:?}: {error}"))
                            }
                        };
                        assert!(shape.slack(window) <= unit / part && shape.fpr(window) <= fpr);
                    }
                }
            }
        }
    }
}

/// A page that has no room for its keys reports nearly every key, so the rate of a filter with such a page is high.
#[test]
fn one_filter_in_a_million_exceeds_twice_its_rate_within_a_window() {
    for insertions in [20_003, 200_003, 1_000_000] {
        for (fpr, slack) in [(1e-3, None), (1e-4, None), (1e-3, Some(460)), (1e-4, Some(460))] {
            let window = count(insertions);
            let slack = slack.map(|of| insertions / of);
            let shape = choose(window, Budget::Rate(fpr), slack, None, None, false).unwrap();
            // One such page of them all is enough.
            assert!(1.0 / shape.pages as f64 > 2.0 * fpr, "{shape:?}");
            let per_turn = 1 << shape.epochs_per_rotation_log2();
            let peaks = 2.0 * (f64::from(shape.full_epochs()) / f64::from(per_turn) + 1.0);
            let keys = shape.keys_per_epoch(window) * f64::from(shape.full_epochs() + per_turn);
            let slots = (shape.lines * shape.line().slots) as usize;
            let crowded = shape.pages as f64 * peaks * more_than(slots, keys.ceil() as u64, shape.pages);
            assert!(crowded <= 1.01e-6, "{insertions} {fpr} {slack:?} {shape:?}: {crowded}");
        }
    }
}

#[test]
fn the_documented_choices() {
    for (fpr, bits) in [(0.01, 14.9), (0.001, 19.8), (1e-4, 24.4), (1e-5, 28.9)] {
        let window = count(1_000_000);
        let shape = choose(window, Budget::Rate(fpr), None, None, None, false).unwrap();
        let per_key = 8.0 * shape.nbytes() as f64 / 1e6;
        assert!((per_key - bits).abs() < 0.05, "{shape:?}: {per_key}");
        assert!(shape.slack(window) < 146_000, "a seventh, and rounding to whole steps");
    }
}

/// Tags of six bits and more are finer than rotations: their pages rotate fifteen times in a window.
#[test]
fn little_slack_takes_fine_tags() {
    for (of, bits) in [(29, 16.4), (59, 18.1), (118, 19.3), (235, 20.6), (919, 23.1), (1785, 25.0), (3676, 25.4)] {
        let window = count(1_000_000);
        let shape = choose(window, Budget::Rate(0.01), Some(1_000_000 / of), None, None, false).unwrap();
        assert!(shape.slack(window) <= 1_000_000 / of && shape.fpr(window) <= 0.01);
        assert!(8.0 * shape.nbytes() as f64 / 1e6 <= bits, "{shape:?}");
        assert_eq!(shape.epochs.is_some(), of > 29, "{shape:?}");
        let turns = f64::from(shape.full_epochs()) / f64::from(1 << shape.epochs_per_rotation_log2());
        assert!(shape.epochs.is_none() || (13.0..=16.0).contains(&turns), "{shape:?}");
    }
    let hour = Window::Time { span: 3_600_000_000_000, lateness: 0, capacity: 1000 };
    let shape = choose(hour, Budget::Rate(0.01), Some(3_600_000_000_000 / 3840), None, None, false).unwrap();
    assert_eq!((shape.tag_bits, shape.epochs), (12, Some(3840)));
}

#[test]
fn distinct_keys_that_a_window_cannot_have_are_named() {
    let refused = |window, distinct, words: &str| {
        let error = choose(window, Budget::Rate(0.1), None, Some(distinct), None, false).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(count(1000), 1001, "distinct must lie in 1..=1000 for this window, got 1001");
    let hour = Window::Time { span: 3_600_000_000_000, lateness: 0, capacity: 1000 };
    refused(hour, 10, "distinct is for windows of insertions");
}
