//! Choices of filters in lines, against trying every shape in every number of pages.

use lately::clock::Window;
use lately::family::Budget;
use lately::family::budget::allowed_slack;
use lately::family::lines::shape::*;
use lately::family::slices::shape::Paper;

const PAPERS: [Paper; 2] = [Paper::AgePartitioned, Paper::GuardedEpoch];

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn rate(window: Window, shape: LineShape) -> f64 {
    shape.false_positive_rate(shape.keys_per_generation(window))
}

/// Returns all shapes of the rule in every number of pages up to `most` whose slack is allowed.
fn all(window: Window, slack: u64, paper: Paper, most: u64) -> Vec<Vec<LineShape>> {
    let sizes = |c: LineShape| {
        let shapes = (1..=most).map(|pages| LineShape { pages, ..c });
        shapes.filter(|shape| shape.slack(window) <= slack).collect()
    };
    let of_lines = [(1, MAX_K), (2, 3), (3, 2), (4, 2)].into_iter();
    let most_k = |k| if paper == Paper::GuardedEpoch { 1 } else { k };
    let lanes = of_lines.flat_map(|(lines, k)| [8, 16, 32].map(|lanes| (lines, lanes, most_k(k))));
    let shapes = lanes
        .flat_map(|(lines, lanes, most_k)| (1..=most_k).map(move |k| LineShape { paper, lanes, k, lines, pages: 1 }));
    shapes.map(sizes).collect()
}

#[test]
fn a_rate_gives_what_trying_everything_gives() {
    for (insertions, slack, fpr) in [(12_000, 6_000, 0.01), (7_000, 1_400, 0.02), (100, 64, 0.1)] {
        for paper in PAPERS {
            let window = count(insertions);
            let smallest: Vec<LineShape> = all(window, slack, paper, 12)
                .iter()
                .filter_map(|sizes| sizes.iter().copied().find(|&shape| rate(window, shape) <= fpr))
                .collect();
            let least = smallest.iter().map(|shape| shape.pages).min().unwrap();
            let best = smallest.iter().filter(|shape| shape.pages <= least + least / 3);
            let for_threads = best.clone().min_by_key(|shape| (shape.lines, shape.k, shape.pages)).unwrap();
            let best = best.min_by_key(|shape| (shape.lines, shape.pages)).unwrap();
            if paper == Paper::AgePartitioned {
                let chosen = choose_for_threads(window, Budget::Rate(fpr), Some(slack)).unwrap();
                assert_eq!(
                    (chosen.lines, chosen.k, chosen.pages),
                    (for_threads.lines, for_threads.k, for_threads.pages)
                );
            }
            let chosen = choose(window, Budget::Rate(fpr), Some(slack), paper).unwrap();
            assert_eq!((chosen.lines, chosen.pages), (best.lines, best.pages), "{insertions} {slack} {paper:?}");
            assert!(rate(window, chosen) <= fpr && chosen.slack(window) <= slack);
        }
    }
}

#[test]
fn a_number_of_bytes_gives_what_trying_everything_gives() {
    for (insertions, slack, pages) in [(30_000, 15_000, 17), (20_000, 4_000, 12), (100, 64, 1)] {
        for paper in PAPERS {
            let window = count(insertions);
            let largest: Vec<LineShape> =
                all(window, slack, paper, pages).iter().filter_map(|sizes| sizes.last().copied()).collect();
            let least = largest.iter().map(|&shape| rate(window, shape)).fold(1.0, f64::min);
            let good = largest.into_iter().filter(|&shape| rate(window, shape) <= 4.0 * least);
            let best = good.min_by(|&a, &b| a.lines.cmp(&b.lines).then(rate(window, a).total_cmp(&rate(window, b))));
            let bytes = 4096 * pages + 4095;
            assert_eq!(choose(window, Budget::Bytes(bytes), Some(slack), paper).unwrap(), best.unwrap());
        }
    }
}

#[test]
fn the_documented_choices() {
    for (paper, fpr, k, l, lines, bits_per_key) in [
        (Paper::AgePartitioned, 0.01, 2, 6, 1, 21.10),
        (Paper::AgePartitioned, 0.001, 2, 6, 2, 27.33),
        (Paper::GuardedEpoch, 0.01, 1, 7, 2, 17.96),
        (Paper::GuardedEpoch, 0.001, 1, 7, 2, 27.89),
    ] {
        let window = count(1_000_000);
        let shape = choose(window, Budget::Rate(fpr), None, paper).unwrap();
        let bits = 8.0 * shape.nbytes() as f64 / 1e6;
        assert_eq!((shape.k, shape.l(), shape.lines), (k, l, lines));
        assert!((bits - bits_per_key).abs() < 0.005, "{bits}");
    }
    let shape = choose_for_threads(count(1_000_000), Budget::Rate(0.001), None).unwrap();
    assert_eq!((shape.k, shape.l(), shape.lines), (1, 7, 2));
    assert!((8.0 * shape.nbytes() as f64 / 1e6 - 27.89).abs() < 0.005);
}

#[test]
fn the_requested_slack_is_kept() {
    let time = |span, lateness| Window::Time { span, lateness, capacity: 1000 };
    let windows = [1, 2, 7, 127, 129, 130, 1000, 100_003].map(count).into_iter();
    for window in windows.chain([(1_000_003, 0), (1_000_000_007, 0), (100_000, 500_000)].map(|(s, l)| time(s, l))) {
        for (paper, budget) in PAPERS.into_iter().flat_map(|f| [(f, Budget::Rate(0.01)), (f, Budget::Bytes(1 << 22))]) {
            let shape = choose(window, budget, None, paper).unwrap();
            assert!(shape.slack(window) <= allowed_slack(window, None), "{window:?} {shape:?}");
        }
    }
}
