//! Counts compared with exact counts.

use std::collections::HashMap;

use super::promise::check_promise;
use super::*;
use crate::clock::Moments;
use crate::engine::Engine;

/// Returns how often each key occurs.
pub fn exact(keys: &[u64]) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    keys.iter().for_each(|&key| *counts.entry(key).or_insert(0) += 1);
    counts
}

/// Returns the counts of keys within a window.
fn counted(filter: &Aged<Quotient>, keys: &[u64], window: Option<u64>) -> Vec<u64> {
    let mut counts = vec![0; keys.len()];
    filter.count(keys, Moments::Untimed, window, &mut counts).unwrap();
    counts
}

/// Returns key `i` of a stream in which some keys are frequent, and the others occur once.
fn card_key(i: u64) -> u64 {
    let x = mix(i ^ 1 << 52);
    mix(if x.is_multiple_of(3) { x >> 32 & 1023 } else { 1 << 40 | i })
}

/// An occurrence counts for the window and at most an epoch longer, if lines have room for the entries of its key.
#[test]
fn a_key_is_counted_for_the_window_and_its_slack() {
    const WINDOW: u64 = 20_000;
    for (format, c, load, share) in [((16, 3), 4, 0.5, 0.01), ((14, 4), 8, 0.7, 0.06), ((10, 3), 4, 0.9, 0.1)] {
        let shape = loaded_counting(format, c, WINDOW, load);
        let window = Window::Count { insertions: WINDOW };
        let slack = shape.slack(window);
        let mut filter = engine(shape, window, Instructions::best());
        let stream: Vec<u64> = (0..4 * WINDOW).map(card_key).collect();
        let (mut more, mut counts) = (0, 0);
        for end in (WINDOW as usize..=stream.len()).step_by(7_919) {
            let from = filter.clock.inserted() as usize;
            filter.insert(&stream[from..end], Moments::Untimed).unwrap();
            for window in [WINDOW, WINDOW / 2, WINDOW / 10] {
                let live = &stream[end - window as usize..end];
                let least = exact(live);
                let most = exact(&stream[end.saturating_sub((window + slack) as usize)..end]);
                for (&key, count) in live.iter().zip(counted(&filter, live, Some(window))) {
                    // Counts of an epoch end at 2^C.
                    assert!(count >= least[&key].min(1 << c), "{count} of {}", least[&key]);
                    more += u64::from(count > most[&key]);
                    counts += 1;
                }
            }
        }
        println!("{format:?}, {load}: {more} of {counts} are too high");
        assert!((more as f64) < share * counts as f64, "{format:?}: {more} of {counts}");
    }
}

/// In the worst case for counts, all keys have an entry in every epoch, and there are twice as many entries as slots.
#[test]
fn counts_take_no_room_from_keys() {
    const WINDOW: u64 = 20_000;
    let shape = loaded_counting((10, 3), 4, WINDOW, 0.92);
    let window = Window::Count { insertions: WINDOW };
    let mut filter = engine(shape, window, Instructions::best());
    // Each key occurs eight times in a window. There are slots for as many keys as insertions.
    let (mut random, keys) = (Random(5), WINDOW / 8);
    for _ in 0..3 {
        let mut hot: Vec<u64> = (0..WINDOW).map(|i| mix(i % keys)).collect();
        // The order differs each time, so that every epoch has all keys.
        (1..hot.len()).rev().for_each(|i| hot.swap(i, random.below(i as u64 + 1) as usize));
        filter.insert(&hot, Moments::Untimed).unwrap();
    }
    let fresh: Vec<u64> = (0..1 << 20).map(|i| mix(1 << 50 | i)).collect();
    let reported = |filter: &Aged<Quotient>| {
        let mut present = vec![false; fresh.len()];
        filter.query(&fresh, Moments::Untimed, &mut present).unwrap();
        present.iter().filter(|&&present| present).count() as f64 / fresh.len() as f64
    };
    let (rate, planned) = (reported(&filter), shape.false_positive_rate(shape.keys_per_epoch(window)));
    assert!(rate < planned / 4.0, "{rate} {planned}");
    assert!((filter.false_positive_rate() - rate).abs() < 6.0 * (rate / fresh.len() as f64).sqrt());
    let distinct = filter.layout.distinct(filter.words.as_slice(), &filter.clock, WINDOW);
    assert!((distinct / keys as f64 - 1.0).abs() < 0.03, "{distinct}");
    // Then the keys of a whole window are new, and their lines are full of entries of the others.
    filter.insert(&(0..WINDOW).map(|i| mix(1 << 42 | i)).collect::<Vec<_>>(), Moments::Untimed).unwrap();
    let rate = reported(&filter);
    assert!(rate < 1.02 * planned + 6.0 * (planned / fresh.len() as f64).sqrt(), "{rate} {planned}");
}

#[test]
fn counts_of_merged_filters_are_added() {
    const WINDOW: u64 = 10_000;
    for load in [0.4, 0.8, 1.5] {
        let shape = loaded_counting((14, 3), 6, WINDOW, load);
        let filter = |stream: u64| {
            let mut filter = engine(shape, Window::Count { insertions: WINDOW }, Instructions::best());
            let keys: Vec<u64> =
                (0..2 * WINDOW).map(|i| if i % 3 == 0 { card_key(i) } else { mix(i << 3 | stream) }).collect();
            filter.insert(&keys, Moments::Untimed).unwrap();
            (filter, keys[WINDOW as usize..].to_vec())
        };
        let ((mut one, of_one), (other, of_other)) = (filter(1), filter(2));
        one.merge(&other).unwrap();
        assert!(one.check().is_ok());
        let all = [of_one, of_other].concat();
        let true_counts = exact(&all);
        for (key, count) in all.iter().zip(counted(&one, &all, None)) {
            assert!(count >= true_counts[key].min(64), "{load}: {count} of {}", true_counts[key]);
        }
    }
}

/// Some keys occur a few times before the burst, and a few times in it.
#[test]
fn counts_are_right_while_a_filter_grows_and_shrinks() {
    for c in [1, 5] {
        let shape = QuotientShape { distinct: Some(500), ..loaded_counting((12, 3), c, 500, 0.85) }.growing();
        let window = Window::Count { insertions: 6_000 };
        let (layout, words) = Quotient::growing(shape, window, Words::zeroed(0).unwrap()).unwrap();
        let mut filter = Aged { layout, words, clock: Clock::new(window, shape.retained()) };
        let mut most = 0;
        for part in 0..4 {
            let stream = |i: u64| match i % 5 {
                0 => mix((1 << 43) + mix(i) % 40),
                _ if part == 1 => mix(1 << 44 | i),
                _ => mix(i % 97),
            };
            check_promise(&mut filter, 6_000, 12_000, 499, stream).unwrap();
            most = most.max(filter.layout.pages.level);
        }
        assert!(most >= 3 && filter.layout.pages.level == 0, "{most}");
    }
}

#[test]
fn a_filter_without_counts_rejects_a_request_for_counts() {
    let filter = engine(loaded((10, 3), 100, 0.9), Window::Count { insertions: 100 }, Instructions::best());
    assert!(filter.count(&[1], Moments::Untimed, None, &mut [0]).unwrap_err().to_string().contains("counts=4"));
    for bits in [0, 9] {
        loaded((10, 3), 100, 0.9).counting(bits).unwrap_err();
    }
}
