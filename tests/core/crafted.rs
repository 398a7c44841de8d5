//! Saved filters whose cells an attacker chose, with correct sums: each is rejected, or keeps the keys that come.

use crate::fuzzed::saved::{HEADER, bytes_of, hashes, infer, reread, seal, set_word, share, word};
use crate::hostile::{GOLDEN, Random, golden, try_all};
use crate::support::timed::check_promise;
use crate::support::{campaign, check_window, insert};
use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::family::swamp::shape::SwampShape;
use lately::format;

/// An attacker may choose what a file contains. Keys that come after it was opened are kept all the same.
#[test]
fn a_crafted_filter_that_opens_keeps_the_keys_that_come() {
    let mut random = Random(5);
    let (mut counted, mut timed) = (0, 0);
    for name in GOLDEN.into_iter().filter(|name| !matches!(*name, "stable" | "generalized")) {
        let bytes = golden(name);
        let cells = HEADER + word(&bytes, 24) as usize;
        for round in 0..100 {
            let mut changed = bytes.clone();
            let from = if round % 8 == 0 { HEADER } else { cells };
            for _ in 0..1 + random.below(8) {
                let at = from + random.below(changed.len() - from);
                let many = changed.len().min(at + random.below(3) * random.below(200) + 1);
                match random.below(3) {
                    0 => changed[at..many].fill(0),
                    1 => changed[at] ^= 1 << random.below(8),
                    _ => changed[at..many].fill(random.next() as u8),
                }
            }
            seal(&mut changed);
            let Ok(mut filter) = format::from_bytes(Box::new(changed)) else { continue };
            if filter.shape().false_negative_rates(filter.window()).into_iter().any(|rate| rate > 0.0) {
                // Equal timers, which promise less.
                continue;
            }
            match filter.window() {
                Window::Count { insertions } => {
                    let window = insertions.min(1000);
                    check_window(&mut filter, window, 97, 2 * window + 97).expect(name);
                    counted += 1;
                }
                Window::Time { span, .. } => {
                    let latest = filter.engine().clock().latest().unwrap_or(0);
                    let step = (span / 150).max(1) as i64;
                    let moments = (1..400).map(|n| latest.saturating_add(n * step));
                    check_promise(&mut filter, moments).expect(name);
                    timed += 1;
                }
            }
        }
    }
    assert!(counted > 500 && timed > 250, "{counted} and {timed} were filters");
}

/// Cells may change after a file was opened, in memory that a filter borrows or maps. No call fails.
#[test]
fn calls_on_cells_that_changed_unchecked_give_shares_and_ages() {
    let (folder, mut random, mut opened) = (tempfile::tempdir().unwrap(), Random(6), 0);
    let path = folder.path().join("hostile.lately");
    for (name, round) in
        GOLDEN.into_iter().flat_map(|name| (0..if campaign() { 500 } else { 20 }).map(move |i| (name, i)))
    {
        let mut bytes = golden(name);
        let cells = HEADER + word(&bytes, 24) as usize;
        for _ in 0..[1, 3, 20, bytes.len() / 8][round % 4] {
            let at = cells + random.below((bytes.len() - cells) / 8) * 8;
            let few = [0, 1, 1 << 63, 1 << 62, u64::MAX, random.next()];
            set_word(&mut bytes, at, few[random.below(few.len())]);
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(mut filter) = format::map(&path, false) else { continue };
        opened += 1;
        let (keys, mut seen) = (hashes::<40>(), [false; 40]);
        let at = match filter.window() {
            Window::Count { .. } => Moments::Untimed,
            Window::Time { .. } => Moments::At(filter.engine().clock().latest().unwrap_or(0)),
        };
        for refresh in [Refresh::Always, Refresh::Unseen] {
            infer(&filter, None);
            assert!([filter.engine().fill(), filter.engine().match_rates()].concat().into_iter().all(share), "{name}");
            assert!(share(filter.false_positive_rate()), "{name}");
            filter.engine().query(&keys, at, &mut seen).unwrap();
            // Crafted numbers may need more memory than there is.
            let engine = filter.engine_mut();
            let _ =
                engine.duplicated(&keys[..20], at, refresh, &mut seen[..20]).and_then(|()| engine.insert(&keys, at));
        }
    }
    assert!(opened > 300, "{opened} were opened");
}

/// A table that lacks an entry of the buffer, or has one more, would remove the last one too early.
#[test]
fn a_window_whose_counts_differ_from_its_keys_is_rejected() {
    for name in ["swamp", "counting"] {
        let bytes = golden(name);
        let filter = reread(&bytes);
        let start = HEADER + word(&bytes, 24) as usize;
        // The same window a few keys later: cells of both are sound, but not together.
        let mut later = filter.clone();
        insert(&mut later, &[1, 2, 3, 4, 5]);
        let later = bytes_of(&later);
        let differ: Vec<usize> =
            (start..bytes.len()).step_by(8).filter(|&at| word(&bytes, at) != word(&later, at)).collect();
        assert!(differ.len() > 10);
        let mut refused = 0;
        for &at in &differ {
            let mut mixed = bytes.clone();
            set_word(&mut mixed, at, word(&later, at));
            seal(&mut mixed);
            match format::from_bytes(Box::new(mixed)) {
                Err(error) => {
                    let expected = match name {
                        "counting" => "the counters are lower than the keys of the queue require",
                        _ => " not count ",
                    };
                    assert!(error.to_string().contains(expected), "{error}");
                    refused += 1;
                }
                // Counters may be higher than they have to be.
                Ok(_) => assert_eq!(name, "counting"),
            }
        }
        assert!(refused >= 5, "{refused} of {name}");
    }
}

/// Tables and buffers of any size and any cells, from hardly any bit set to all: tables are rejected, and no call
/// fails on a buffer that was opened unchecked.
#[test]
fn exact_windows_of_any_cells_are_rejected_or_legal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.lately");
    let mut random = Random(4);
    for round in 0..if campaign() { 20_000 } else { 4_000 } {
        let bits = 1 + random.below(if round % 2 == 0 { 64 } else { 50 }) as u64;
        let blocks = 1 + random.below(3) as u64;
        let (kind, own, window, words) = if round % 2 == 0 {
            let window = 1 + random.below(200) as u64;
            (12, [bits, 0], window, bits * window.div_ceil(64))
        } else {
            let shape = SwampShape::new(64 * blocks, bits as u32).unwrap();
            let window = 1 + random.below(64 * blocks as usize - 1) as u64;
            (9, [64 * blocks, bits], window, shape.nbytes(window) / 8)
        };
        let mut bytes = golden("plain")[..HEADER].to_vec();
        bytes[10] = kind;
        set_word(&mut bytes, 24, 128);
        set_word(&mut bytes, 32, 8 * words);
        let inserted = random.number() >> 2;
        bytes.extend([0, window, 0, 0, inserted, 0, 0].into_iter().chain(own).flat_map(u64::to_le_bytes));
        bytes.resize(HEADER + 128, 0);
        let dense = random.below(4);
        for _ in 0..words {
            let cells = [random.next(), random.next() & random.next() & random.next(), !0, !(1 << random.below(64))];
            bytes.extend(cells[dense].to_le_bytes());
        }
        seal(&mut bytes);
        assert!(try_all(&bytes) == (kind == 12), "round {round}: {own:?}, window {window}, inserted {inserted}");
        if kind == 12 {
            continue;
        }
        std::fs::write(&path, &bytes).unwrap();
        let mut filter = format::map(&path, false).unwrap();
        insert(&mut filter, &std::array::from_fn::<_, 40, _>(|_| random.next()));
        filter.engine().count(&[0, u64::MAX], &mut [0; 2]).unwrap();
        assert!((0.0..=window as f64).contains(&filter.engine().distinct().unwrap()));
        for share in [filter.engine().fill(), filter.engine().match_rates()].concat() {
            assert!((0.0..=1.0).contains(&share));
        }
    }
}
