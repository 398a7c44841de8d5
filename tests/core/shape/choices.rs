//! Choices of slices, epochs and lines, against trying every shape in every size.

use lately::clock::Window;
use lately::family::lines::shape::{self as of_lines, LineShape, MAX_K};
use lately::family::slices::shape::{self as of_slices, Paper, RingShape, Segment};
use lately::family::{Budget, Shape};

const PAPERS: [Paper; 2] = [Paper::AgePartitioned, Paper::GuardedEpoch];

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Checks the choice for a rate. Of each shape's smallest size with this rate, those of at most `more` times the fewest
/// bytes are good, and of them the one of least order is best, then the smallest.
fn check_rate<S: Shape + Clone>(
    chosen: &S,
    (window, fpr): (Window, f64),
    all: &[Vec<S>],
    (more, than): (u64, u64),
    order: impl Fn(&S) -> u32,
) {
    let holds = |shape: &&S| shape.fpr(window) <= fpr;
    let smallest: Vec<&S> = all.iter().filter_map(|sizes| sizes.iter().find(holds)).collect();
    let least = smallest.iter().map(|shape| shape.bytes(window)).min().unwrap();
    let good = smallest.iter().filter(|shape| than * shape.bytes(window) <= more * least);
    let best = good.map(|shape| (order(shape), shape.bytes(window))).min().unwrap();
    assert_eq!((order(chosen), chosen.bytes(window)), best, "{window:?} {fpr}: {chosen:?}");
    assert!(chosen.fpr(window) <= fpr, "{chosen:?}");
    let most = all.iter().filter_map(|sizes| sizes.last()).map(|shape| shape.bytes(window)).max().unwrap();
    assert!(most * than >= least * more, "sizes were tried far enough");
}

/// Checks the choice for a number of bytes. Of each shape's largest size, those of at most `more` times the lowest rate
/// are good, and of them the one of least order is best, then the one of the lowest rate.
fn check_bytes<S: Shape + PartialEq>(chosen: &S, window: Window, all: &[Vec<S>], more: f64, order: impl Fn(&S) -> u32) {
    let rated = all.iter().filter_map(|sizes| sizes.last()).map(|shape| (shape, shape.fpr(window)));
    let rated: Vec<(&S, f64)> = rated.collect();
    let least = rated.iter().map(|&(_, rate)| rate).fold(1.0, f64::min);
    let good = rated.into_iter().filter(|&(_, rate)| rate <= more * least);
    let best = good.min_by(|a, b| order(a.0).cmp(&order(b.0)).then(a.1.total_cmp(&b.1))).unwrap();
    assert_eq!(chosen, best.0, "{window:?}");
}

/// Returns all rings of the rule, each in every size up to `bytes`, the smallest first.
fn rings(paper: Paper, window: Window, slack: u64, block_bits: Option<u32>, bytes: u64) -> Vec<Vec<RingShape>> {
    let guarded = paper == Paper::GuardedEpoch;
    let most_k = if guarded { 1 } else { 127 };
    let parts: Vec<u32> = match block_bits {
        Some(_) => vec![1, 2, 4, 8],
        None if guarded => (1..=64).collect(),
        None => vec![1],
    };
    let mut all = Vec::new();
    for (k, l) in (1..=most_k).flat_map(|k| (1..=128 - k).map(move |l| (k, l))) {
        for &parts in parts.iter().filter(|_| window.slack(l, k) <= slack) {
            let segment = |units| match block_bits {
                None => Segment::Bits { bits: 64 * units, parts },
                Some(block_bits) => Segment::Blocks { blocks: units, block_bits, parts },
            };
            let shape = |units| match paper {
                Paper::AgePartitioned => RingShape::age_partitioned(k, l, segment(units)).unwrap(),
                Paper::GuardedEpoch => RingShape::guarded_epoch(l, segment(units)).unwrap(),
            };
            all.push((1..).map(shape).take_while(|shape| shape.nbytes() <= bytes).collect());
        }
    }
    all
}

/// Returns how many times the fewest bytes and the lowest rate are good enough for fewer slices.
fn good(paper: Paper) -> ((u64, u64), f64) {
    if paper == Paper::GuardedEpoch { ((513, 512), 65.0 / 64.0) } else { ((5, 4), 2.0) }
}

#[test]
fn rings_for_a_rate_are_what_trying_everything_gives() {
    for (insertions, slack, block_bits, fpr, bytes) in [
        (100, 64, None, 0.1, 500),
        (300, 150, None, 0.01, 2000),
        (300, 40, None, 0.01, 2000),
        (7, 64, None, 1e-4, 500),
        (40, 400, None, 1e-3, 500),
        (300, 150, Some(64), 0.01, 2000),
        (500, 1000, Some(512), 0.001, 4000),
    ] {
        for paper in PAPERS {
            let window = count(insertions);
            let chosen = of_slices::choose(window, Budget::Rate(fpr), Some(slack), block_bits, paper).unwrap();
            let all = rings(paper, window, slack, block_bits, bytes);
            check_rate(&chosen, (window, fpr), &all, good(paper).0, |shape| shape.k + shape.l);
        }
    }
}

#[test]
fn rings_for_a_number_of_bytes_are_what_trying_everything_gives() {
    for (insertions, slack, block_bits, bytes) in [
        (100, 64, None, 300),
        (300, 150, None, 2000),
        (300, 40, None, 700),
        (7, 64, None, 999),
        (1, 64, None, 63),
        (300, 150, Some(64), 999),
        (500, 1000, Some(512), 2000),
    ] {
        for paper in PAPERS.into_iter().filter(|&paper| bytes > 63 || paper == Paper::AgePartitioned) {
            let window = count(insertions);
            let chosen = of_slices::choose(window, Budget::Bytes(bytes), Some(slack), block_bits, paper).unwrap();
            let all = rings(paper, window, slack, block_bits, bytes);
            check_bytes(&chosen, window, &all, good(paper).1, |shape| shape.k + shape.l);
        }
    }
}

/// Returns all lines of the rule in every number of pages up to `most` whose slack is allowed.
fn lines(window: Window, slack: u64, paper: Paper, most: u64) -> Vec<Vec<LineShape>> {
    let most_k = |k| if paper == Paper::GuardedEpoch { 1 } else { k };
    let mut all = Vec::new();
    for (lines, greatest) in [(1, MAX_K), (2, 3), (3, 2), (4, 2)] {
        for (lanes, k) in [8, 16, 32].into_iter().flat_map(|lanes| (1..=most_k(greatest)).map(move |k| (lanes, k))) {
            let sizes = (1..=most).map(|pages| LineShape { paper, lanes, k, lines, pages });
            all.push(sizes.filter(|shape| shape.slack(window) <= slack).collect());
        }
    }
    all
}

#[test]
fn lines_for_a_rate_are_what_trying_everything_gives() {
    for (insertions, slack, fpr) in [(12_000, 6_000, 0.01), (7_000, 1_400, 0.02), (100, 64, 0.1)] {
        for paper in PAPERS {
            let window = count(insertions);
            let all = lines(window, slack, paper, 12);
            let chosen = of_lines::choose(window, Budget::Rate(fpr), Some(slack), paper).unwrap();
            check_rate(&chosen, (window, fpr), &all, (4, 3), |shape| shape.lines);
            if paper == Paper::AgePartitioned {
                let chosen = of_lines::choose_for_threads(window, Budget::Rate(fpr), Some(slack)).unwrap();
                check_rate(&chosen, (window, fpr), &all, (4, 3), |shape| 100 * shape.lines + shape.k);
            }
        }
    }
}

#[test]
fn lines_for_a_number_of_bytes_are_what_trying_everything_gives() {
    for (insertions, slack, pages) in [(30_000, 15_000, 17), (20_000, 4_000, 12), (100, 64, 1)] {
        for paper in PAPERS {
            let window = count(insertions);
            let budget = Budget::Bytes(4096 * pages + 4095);
            let chosen = of_lines::choose(window, budget, Some(slack), paper).unwrap();
            check_bytes(&chosen, window, &lines(window, slack, paper, pages), 4.0, |shape| shape.lines);
        }
    }
}
