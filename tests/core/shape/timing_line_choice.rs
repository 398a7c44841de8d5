//! Choices of timers in lines, against trying every shape.

use lately::clock::Window;
use lately::family::Budget;
use lately::family::timing::shape::line::*;
use lately::family::timing::shape::{WIDTHS, blocks_of_least_slack};

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

#[test]
fn the_documented_choices() {
    for (slack, fpr, k, bpt, lines, bits_per_key) in [
        (None, 0.01, 6, 2, 1, 30.80),
        (None, 0.001, 8, 2, 1, 50.69),
        (Some(70_000), 0.01, 6, 5, 1, 63.05),
        (Some(70_000), 0.001, 7, 5, 1, 116.36),
        (None, 1e-5, 14, 2, 2, 80.54),
    ] {
        let shape = choose(count(1_000_000), Budget::Rate(fpr), slack).unwrap();
        let bits = shape.bits_per_key(1_000_000);
        assert_eq!((shape.k, shape.bpt, shape.lines), (k, bpt, lines), "{shape:?} {bits}");
        assert!((bits - bits_per_key).abs() < 0.006, "{shape:?} {bits}");
    }
}

#[test]
fn a_rate_gives_what_trying_everything_gives() {
    for (window, fpr, slack) in [(count(3000), 0.01, 1500), (count(5000), 0.001, 400), (count(100), 0.1, 64)] {
        let rate = |shape: TimingLineShape| shape.false_positive_rate(window);
        let smallest = |lines: u32| {
            let holds = |pages: u64| {
                let timers = WIDTHS.map(|bpt| (bpt, blocks_of_least_slack(window, bpt)));
                let timers: Vec<_> =
                    timers.into_iter().filter(|&(_, blocks)| window.slack(blocks, 1) <= slack).collect();
                let shape = |k, (bpt, blocks)| TimingLineShape::new(k, bpt, blocks, pages, lines).unwrap();
                (lines..=8 * lines).any(|k| timers.iter().any(|&timers| rate(shape(k, timers)) <= fpr))
            };
            (1..).find(|&pages| holds(pages)).unwrap()
        };
        let [one, two] = [1, 2].map(smallest);
        let chosen = choose(window, Budget::Rate(fpr), Some(slack)).unwrap();
        let expected = if 3 * one <= 4 * two { (1, one) } else { (2, two) };
        assert_eq!((chosen.lines, chosen.pages), expected);
        assert!(rate(chosen) <= fpr && window.slack(chosen.blocks, 1) <= slack);
        let same = choose(window, Budget::Bytes(chosen.nbytes() + 4095), Some(slack)).unwrap();
        assert!(same.nbytes() == chosen.nbytes() && rate(same) <= 4.0 * rate(chosen));
    }
}
