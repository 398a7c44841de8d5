//! Every choice of a shape, compared with the table in `tests/golden/shapes.tsv`: all families and layouts, windows of
//! 1 to 1e9 insertions and of time, rates from 0.3 to 1e-9, bytes, and slack; and rejected requests.
//!
//! A choice that changes makes filters of another size from the same request. If that is intended, `cargo test --test
//! core write_the_table -- --ignored` writes the table anew, and its diff shows what changed.

use std::fmt::Write;

use lately::Error;
use lately::clock::Window;
use lately::family::baselines::{counting, fingerprint_buffer, generalized, stable};
use lately::family::slice_sizes::Slices;
use lately::family::slices::shape::{Paper, Segment};
use lately::family::slices::transposed;
use lately::family::{Budget, Request, aged_cuckoo, bloom, lines, slices, swamp, time_limited, timing};

const TABLE: &str = "tests/golden/shapes.tsv";

const COUNTS: [u64; 7] = [1, 2, 63, 1000, 10_007, 1_000_000, 1_000_000_000];

/// Seconds, seconds of lateness, and keys of the span.
const TIMES: [(u64, u64, u64); 3] = [(1, 0, 3), (600, 0, 50_000), (3600, 300, 1_000_000)];

const BUDGETS: [Budget; 10] = [
    Budget::Rate(0.3),
    Budget::Rate(0.01),
    Budget::Rate(0.001),
    Budget::Rate(1e-5),
    Budget::Rate(1e-9),
    Budget::Bytes(8),
    Budget::Bytes(500),
    Budget::Bytes(4096),
    Budget::Bytes(100_000),
    Budget::Bytes(5_000_000),
];

type Slack = Option<u64>;
type Choice = fn(Window, Budget, Slack) -> Result<String, Error>;

/// Choices for windows of insertions alone, without slack.
const BY_INSERTIONS: std::ops::Range<usize> = 12..19;

/// All possible requests, and the shape in words.
const CHOICES: [(&str, Choice); 20] = [
    ("age-partitioned", |window, budget, slack| ring(window, budget, slack, None)),
    ("age-partitioned, blocks of 64", |window, budget, slack| ring(window, budget, slack, Some(64))),
    ("age-partitioned, blocks of 512", |window, budget, slack| ring(window, budget, slack, Some(512))),
    ("age-partitioned, line", |window, budget, slack| {
        in_lines(lines::shape::choose(window, budget, slack, Paper::AgePartitioned)?)
    }),
    ("guarded epochs", |window, budget, slack| {
        epochs(slices::shape::choose(window, budget, slack, None, Paper::GuardedEpoch)?)
    }),
    ("guarded epochs, blocks of 64", |window, budget, slack| {
        epochs(slices::shape::choose(window, budget, slack, Some(64), Paper::GuardedEpoch)?)
    }),
    ("guarded epochs, blocks of 512", |window, budget, slack| {
        epochs(slices::shape::choose(window, budget, slack, Some(512), Paper::GuardedEpoch)?)
    }),
    ("guarded epochs, transposed", |window, budget, slack| {
        epochs(transposed::choose(window, budget, slack)?.segments())
    }),
    ("guarded epochs, line", |window, budget, slack| {
        in_lines(lines::shape::choose(window, budget, slack, Paper::GuardedEpoch)?)
    }),
    ("timing", |window, budget, slack| {
        let shape = timing::shape::choose(window, budget, slack)?;
        assert_eq!(shape.equal_timers, 1);
        Ok(format!("k={} bpt={} blocks={} words={}", shape.k, shape.bpt, shape.blocks, shape.words))
    }),
    ("time-limited", |window, budget, slack| match budget {
        Budget::Rate(fpr) => {
            let shape = time_limited::shape::choose(window, fpr, slack)?;
            Ok(format!("k={} l={}", shape.k, shape.l))
        }
        Budget::Bytes(_) => Ok("none: its memory follows the stream".into()),
    }),
    ("aged cuckoo", |window, budget, slack| {
        let shape = aged_cuckoo::shape::choose(&Request { slack, ..Request::of(window, budget) })?;
        let aged_cuckoo::shape::AgedCuckooShape { format, epochs, pages, lines, grows, .. } = shape;
        let bits = format.fingerprint_bits;
        Ok(format!("fingerprint_bits={bits} epochs={epochs} pages={pages} lines={lines} chain={grows}"))
    }),
    ("bloom", |window, budget, _| bits(bloom::shape::choose(keys(window), budget, false)?)),
    ("bloom, partitioned", |window, budget, _| bits(bloom::shape::choose(keys(window), budget, true)?)),
    ("counting", |window, budget, _| Ok(cells(counting::shape::choose(window, budget)?.slices))),
    ("stable", |window, budget, _| {
        let shape = stable::shape::choose(window, budget)?;
        Ok(format!("{} bits={} decrements={}", cells(shape.slices), shape.bits, shape.decrements))
    }),
    ("swamp", |window, budget, _| {
        let shape = swamp::shape::choose(window, budget)?;
        Ok(format!("slots={} remainder_bits={}", shape.slots, shape.remainder_bits))
    }),
    ("fingerprint buffer", |window, budget, _| {
        Ok(format!("fingerprint_bits={}", fingerprint_buffer::shape::choose(window, budget)?.fingerprint_bits))
    }),
    ("generalized", |window, budget, _| {
        let shape = generalized::shape::choose(window, budget)?;
        Ok(format!("bits={} k1={} k0={}", shape.bits, shape.k1, shape.k0))
    }),
    ("age-partitioned, line, for threads", |window, budget, slack| {
        in_lines(lines::shape::choose_for_threads(window, budget, slack)?)
    }),
];

fn ring(window: Window, budget: Budget, slack: Slack, block_bits: Option<u32>) -> Result<String, Error> {
    let shape = slices::shape::choose(window, budget, slack, block_bits, Paper::AgePartitioned)?;
    let segment = match shape.segment {
        Segment::Bits { bits, .. } => format!("bits={bits}"),
        Segment::Blocks { blocks, parts, .. } => format!("blocks={blocks} parts={parts}"),
    };
    Ok(format!("k={} l={} {segment}", shape.k, shape.l))
}

fn epochs(shape: slices::shape::RingShape) -> Result<String, Error> {
    let segment = match shape.segment {
        Segment::Bits { bits, parts: k } => format!("k={k} bits={bits}"),
        Segment::Blocks { blocks, parts, .. } => format!("blocks={blocks} parts={parts}"),
    };
    Ok(format!("r={} {segment}", shape.l))
}

fn in_lines(lines::shape::LineShape { lanes, k, lines, pages, .. }: lines::shape::LineShape) -> Result<String, Error> {
    Ok(format!("lanes={lanes} k={k} lines={lines} pages={pages}"))
}

fn bits(shape: bloom::shape::BloomShape) -> Result<String, Error> {
    match shape {
        bloom::shape::BloomShape::Classical { k, bits } => Ok(format!("k={k} bits={bits}")),
        bloom::shape::BloomShape::Partitioned(slices) => Ok(cells(slices)),
    }
}

fn cells(slices: Slices) -> String {
    format!("k={} cells={}", slices.k, slices.cells)
}

fn keys(window: Window) -> u64 {
    let Window::Count { insertions } = window else { unreachable!("not requested") };
    insertions
}

fn windows() -> impl Iterator<Item = Window> {
    let nanoseconds = |seconds| 1_000_000_000 * seconds;
    let times = TIMES.map(|(span, lateness, capacity)| Window::Time {
        span: nanoseconds(span),
        lateness: nanoseconds(lateness),
        capacity,
    });
    COUNTS.map(|insertions| Window::Count { insertions }).into_iter().chain(times)
}

/// Returns the default, a sixteenth of the window, and twice the window, beyond the part that lateness adds.
fn slack(window: Window, which: usize) -> Slack {
    let (length, late) = match window {
        Window::Count { insertions } => (insertions, 0),
        Window::Time { span, lateness, .. } => (span, lateness),
    };
    [None, Some(late + length / 16), Some(late + 2 * length)][which % 3]
}

/// Returns every other request, in the pattern of a chessboard, with each kind of slack in turn.
fn table() -> String {
    let mut lines = "choice\twindow\tbudget\tslack\tshape\n".to_owned();
    for (c, (name, choose)) in CHOICES.into_iter().enumerate() {
        let alone = BY_INSERTIONS.contains(&c);
        for (w, window) in windows().enumerate().filter(|(w, _)| !alone || *w < COUNTS.len()) {
            for (b, budget) in BUDGETS.into_iter().enumerate().filter(|(b, _)| (c + w + b).is_multiple_of(2)) {
                let slack = if alone { None } else { slack(window, c + w + b / 2) };
                let shape = choose(window, budget, slack).unwrap_or_else(|error| format!("refused: {error}"));
                writeln!(lines, "{name}\t{window}\t{budget:?}\t{slack:?}\t{shape}").unwrap();
            }
        }
    }
    lines
}

#[test]
fn choices_are_those_of_the_table() {
    let (chosen, written) = (table(), std::fs::read_to_string(TABLE).unwrap());
    for (chosen, written) in chosen.lines().zip(written.lines()) {
        assert_eq!(chosen, written);
    }
    assert_eq!(chosen.len(), written.len());
}

#[test]
#[ignore = "writes tests/golden/shapes.tsv anew, for choices that are meant to change"]
fn write_the_table() {
    std::fs::write(TABLE, table()).unwrap();
}
