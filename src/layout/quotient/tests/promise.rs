//! The promise at the worst phases of the worst streams: no key of the window is missed, and no count is too low.

use std::collections::HashMap;

use super::counts::exact;
use super::*;
use crate::clock::Moments;
use crate::engine::{Engine, Refresh};

/// Returns the hash of insertion i of a stream, for a window.
type Stream = fn(u64, u64) -> u64;
/// Streams with their names.
const STREAMS: [(&str, Stream); 8] = [
    ("distinct", |i, _| mix(i)),
    ("all in one page", |i, _| mix(i) >> 6),
    ("all in one line", |i, _| mix(i) >> 13),
    ("half repeats", |i, w| {
        let x = mix(i ^ 1 << 50);
        if x & 1 == 0 { mix(i) } else { mix(i.saturating_sub(1 + (x >> 8) % (w + w / 2))) }
    }),
    ("few keys", |i, _| mix(mix(i) % 97)),
    ("one key", |_, _| mix(5)),
    ("bursts of hot keys", |i, _| {
        let x = mix(i ^ 1 << 51);
        if x % 10 < 3 { mix(i / 500 * 10 + x % 7) } else { mix(i) }
    }),
    ("as old as the window", |i, w| mix(i % w)),
];

/// Queries every key of the window, and of two shorter windows, after each `every` insertions of a stream. Batches are
/// inserted by `insert` and `duplicated` in turn. Compares the counts too, if the filter counts. Returns the number of
/// keys queried, or a description of the first mistake.
pub fn check_promise(
    filter: &mut Aged<Quotient>,
    window: u64,
    insertions: u64,
    every: u64,
    stream: impl Fn(u64) -> u64,
) -> Result<u64, String> {
    let mut last = HashMap::new();
    let stream: Vec<u64> = (0..insertions).map(stream).collect();
    let (mut at, mut queried, mut by_insert) = (0, 0, false);
    while at < stream.len() {
        let end = (at + every as usize).min(stream.len());
        let part = &stream[at..end];
        if by_insert {
            filter.insert(part, Moments::Untimed).unwrap();
            last.extend(part.iter().copied().zip(at..));
        } else {
            let mut seen = vec![false; part.len()];
            filter.duplicated(part, Moments::Untimed, Refresh::Always, &mut seen).unwrap();
            for ((i, &hash), seen) in (at..).zip(part).zip(seen) {
                let before = last.insert(hash, i);
                if !seen && before.is_some_and(|before| i - before <= window as usize) {
                    return Err(format!("insertion {i} was not seen before"));
                }
            }
        }
        by_insert = !by_insert;
        at = end;
        let most = window.min(filter.clock.window().length());
        for within in [window, 1 + mix(at as u64) % most, 1 + mix(at as u64) % most.div_ceil(7)] {
            let live = &stream[at.saturating_sub(within as usize)..at];
            let mut present = vec![false; live.len()];
            if within == window {
                filter.query(live, Moments::Untimed, &mut present).unwrap();
            } else {
                filter.query_within(live, Moments::Untimed, Some(within), &mut present).unwrap();
            }
            queried += live.len() as u64;
            let missing = present.iter().filter(|&&present| !present).count();
            if missing > 0 {
                return Err(format!("{missing} of the last {within} keys are missing after insertion {at}"));
            }
            if filter.layout.counts() {
                let (times, mut counts) = (exact(live), vec![0; live.len()]);
                let shorter = (within != window).then_some(within);
                filter.count(live, Moments::Untimed, shorter, &mut counts).unwrap();
                let most = 1 << filter.layout.pages.format.count_bits;
                let fewer = live.iter().zip(counts).filter(|(key, count)| *count < times[key].min(most)).count();
                if fewer > 0 {
                    return Err(format!(
                        "the counts of {fewer} of the last {within} keys are too low after insertion {at}"
                    ));
                }
            }
        }
    }
    let pages = filter.layout.pages;
    let lines = pages.all(filter.words.as_slice().as_chunks().0).flat_map(|(_, page)| &page[1..]);
    assert!(lines.into_iter().all(|line| pages.format.is_sound(line)));
    Ok(queried)
}

/// Windows, loads, numbers of insertions, and numbers of insertions between two checks.
const CASES: [(u64, f64, u64, u64); 6] = [
    (2_002, 0.92, 6_000, 97),
    (499, 0.92, 1_500, 1),
    (6_007, 1.0, 12_100, 997),
    (6_006, 2.0, 12_100, 997),
    (6_007, 10.0, 12_100, 997),
    (10, 0.9, 500, 1),
];

/// Checks each format, instruction set and case with some of the others. A campaign checks all with all, twelve
/// times as long: 10^9 queries.
#[test]
fn no_key_of_the_window_is_ever_missing() {
    let campaign = std::env::var_os("LATELY_CAMPAIGN").is_some();
    let mut queried = 0;
    for (i, format) in FORMATS.into_iter().enumerate() {
        for (j, instructions) in Instructions::available().enumerate() {
            for (k, (window, load, insertions, every)) in CASES.into_iter().enumerate() {
                let insertions = if campaign { 12 * insertions } else { insertions };
                let counts = [0, 1 + (i + k) as u32 % 8].into_iter().zip([0, 3]);
                let counts = counts.filter(|&(_, turn)| campaign || (i + 6 * j + k) % 12 == turn);
                for ((c, _), (name, stream)) in counts.flat_map(|c| STREAMS.map(|stream| (c, stream))) {
                    let shape = loaded_counting(format, c, window, load);
                    let mut filter = engine(shape, Window::Count { insertions: window }, instructions);
                    let checked = check_promise(&mut filter, window, insertions, every, |i| stream(i, window));
                    queried += checked.unwrap_or_else(|error| panic!("{name}: {shape:?}: {error}"));
                }
            }
        }
    }
    println!("{queried} keys of the window queried, none missing");
    assert!(!campaign || queried > 1_000_000_000);
}

#[test]
fn the_check_of_the_promise_fails_where_a_step_too_many_is_promised() {
    for window in [1_499, 20_011] {
        let shape = loaded((16, 4), window, 0.9);
        let short = window.div_ceil(u64::from(shape.retained()) + 2);
        let promised = Window::Count { insertions: short * u64::from(shape.retained()) + 1 };
        let mut filter = engine(shape, promised, Instructions::best());
        check_promise(&mut filter, window, 4 * window, 97, mix).unwrap_err();
    }
}
