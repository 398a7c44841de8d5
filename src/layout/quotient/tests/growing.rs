//! Pages that double, and are halved again.

use super::promise::check_promise;
use super::*;
use crate::clock::Moments;
use crate::engine::hashes::SelectedHashes;
use crate::engine::run::AgedMut;
use crate::engine::{Engine, Refresh};

/// Returns an engine that grows, planned for this number of different keys.
fn growing(format: (u32, u32), window: u64, distinct: u64, instructions: Instructions) -> Aged<Quotient> {
    let shape = QuotientShape { distinct: Some(distinct), ..loaded(format, distinct, 0.85) }.growing();
    let window = Window::Count { insertions: window };
    let (layout, words) = Quotient::growing(shape, window, Words::zeroed(0).unwrap()).unwrap();
    Aged { layout: Quotient { instructions, ..layout }, words, clock: Clock::new(window, shape.retained()) }
}

/// Returns key `i` of a stream of few keys, then up to twenty times as many as planned for, then few again.
fn burst(i: u64, window: u64) -> u64 {
    let burst = (2 * window..4 * window).contains(&i);
    if burst { mix(1 << 40 | i) } else { mix(i % (window / 50)) }
}

/// No key of the window is missing while pages double and are halved again, and a batch leaves the words that its keys
/// leave in single calls.
#[test]
fn a_filter_that_grows_misses_no_key_and_shrinks_again() {
    let campaign = std::env::var_os("LATELY_CAMPAIGN").is_some();
    let mut queried = 0;
    for (i, format) in FORMATS.into_iter().enumerate() {
        for (j, instructions) in Instructions::available().enumerate() {
            for (k, (window, part, every)) in
                [(2_000, 20, 13), (10_000, 5, 97), (30_000, 10, 997)].into_iter().enumerate()
            {
                if !campaign && (i + 2 * j + k) % 9 > 0 {
                    continue;
                }
                let new = || growing(format, window, window / part, instructions);
                let (mut filter, mut most) = (new(), 0);
                let run = |filter: &mut Aged<Quotient>, insertions: u64, from: u64| {
                    check_promise(filter, window, insertions, every, |i| burst(from + i, window))
                };
                queried += run(&mut filter, 4 * window, 0).unwrap();
                most = most.max(filter.layout.pages.level);
                // After two more full windows of few keys the memory is as before.
                queried += run(&mut filter, 3 * window, 4 * window).unwrap();
                assert!(most >= if part > 5 { 3 } else { 2 } && most <= 5, "{format:?} {most}");
                assert_eq!(filter.layout.pages.level, 0, "{format:?} {window} {part}");
            }
        }
    }
    println!("{queried} keys of the window queried, none missing");
    let hashes: Vec<u64> = (0..14_000).map(|i| burst(i, 2_000)).collect();
    let (mut whole, mut singly) = [0, 1].map(|_| growing((7, 3), 2_000, 200, Instructions::best())).into();
    let mut seen = vec![false; hashes.len()];
    for (part, seen) in hashes.chunks(4999).zip(seen.chunks_mut(4999)) {
        whole.duplicated(part, Moments::Untimed, Refresh::Unseen, seen).unwrap();
    }
    for (&hash, &seen) in hashes.iter().zip(&seen) {
        let mut alone = [false];
        singly.duplicated(&[hash], Moments::Untimed, Refresh::Unseen, &mut alone).unwrap();
        assert_eq!(alone, [seen]);
    }
    assert!(whole.words.as_slice() == singly.words.as_slice());
}

/// Entries keep their index through all levels and back, and keys of the overflow line are still reported.
#[test]
fn a_change_of_level_changes_no_answer() {
    for (format, load) in [((7, 3), 0.8), ((9, 4), 1.2), ((5, 3), 3.0)] {
        const WINDOW: u64 = 5_000;
        let mut filter = growing(format, WINDOW, (WINDOW as f64 / load) as u64, Instructions::best());
        let hashes: Vec<u64> = (0..2 * WINDOW).map(mix).collect();
        let level = filter.layout.pages.level;
        AgedMut { layout: filter.layout, words: filter.words.to_mut().unwrap(), clock: &mut filter.clock, live: None }
            .insert(SelectedHashes::all(&hashes), Moments::Untimed);
        assert_eq!((level, filter.layout.pages.level), (0, 0));
        let queried: Vec<u64> = (0..100_000).map(|i| mix(1 << 40 | i)).chain(hashes).collect();
        let answers = |filter: &Aged<Quotient>, window: u64| {
            let mut present = vec![false; queried.len()];
            filter.query_within(&queried, Moments::Untimed, Some(window), &mut present).unwrap();
            present
        };
        let before = [WINDOW / 3, WINDOW].map(|window| answers(&filter, window));
        let distinct = |filter: &Aged<Quotient>| filter.layout.distinct(filter.words.as_slice(), &filter.clock, WINDOW);
        let counted = distinct(&filter);
        for level in [1, 4, 3, 0, 2, 1, 0] {
            let rotation = filter.layout.rotation(filter.clock.generation(), 0);
            let lines = filter.words.as_slice().as_chunks().0;
            (filter.layout, filter.words) = filter.layout.at_level(level, lines, rotation).unwrap();
            assert!(filter.check().is_ok());
            for (window, before) in [WINDOW / 3, WINDOW].into_iter().zip(&before) {
                let after = answers(&filter, window);
                let lost = before.iter().zip(&after).filter(|(before, after)| **before && !**after).count();
                let more = before.iter().zip(&after).filter(|(before, after)| !**before && **after).count();
                assert_eq!(lost, 0, "{format:?} {level} {window}");
                // The flag of a line that rejected a key may have moved to other lines too.
                assert!(load > 1.0 || more == 0, "{format:?} {level} {window}: {more}");
            }
            assert!(load > 1.0 || (distinct(&filter) / counted - 1.0).abs() < 0.02);
        }
    }
}
