//! From what a user asks for, a rate or a number of bytes, to a shape.

use super::super::{live_keys, timers_within};
use super::{Line, MAX_LINES, Shape, WORDS};
use crate::Error;
use crate::clock::Window;
use crate::shape::budget::{Budget, refuse_below, too_few_bytes, too_much_memory};
use crate::shape::line::{MAX_PAGES, PAGE_BYTES};
use crate::shape::search::{self, Candidate};

/// The shape for a window and a budget.
///
/// Considered are the timers that [those in slices](super::super::choose) have, by 1 to 8 of a key in one line and 2
/// to 16 in two. The second line costs a line of memory per call and saves bits, which at small rates are many: 4 % at
/// 1 % and 11 % at 0.1 %.
/// - [`Budget::Rate`]: each gets the fewest pages that hold the rate. The smallest of one line per key is taken where
///   it is at most 4/3 as large as that of two, as in [`shape::line`](crate::shape::line::choose).
/// - [`Budget::Bytes`]: each gets as many pages as fit. That of the least rate of one line per key is taken where it
///   is at most four times that of two.
///
/// For a window of a million keys at 1 % and 0.1 % that gives one line, k = 6 at 30.8 and k = 8 at 50.7 bits per key.
/// A slack of 7 % takes 63.0 and 116.4. It takes some 10 ms.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>) -> Result<Shape, Error> {
    let window = window.check()?;
    budget.check()?;
    let timers = timers_within(window, slack)?;
    let of_lines = |lines| (lines..=lines * WORDS).map(move |k| (k, lines));
    let candidates: Vec<Timers> = (1..=MAX_LINES)
        .flat_map(of_lines)
        .flat_map(|(k, lines)| timers.iter().map(move |&(bpt, blocks)| Shape { k, bpt, blocks, lines, pages: 1 }))
        .map(|shape| Timers { shape, keys: live_keys(window, shape.blocks), of_line: shape.of_line() })
        .collect();
    match budget {
        Budget::Rate(fpr) => {
            refuse_below(candidates.iter().map(|timers| timers.keys), fpr)?;
            search::for_rate(&candidates, fpr, MAX_PAGES, |least| least + least / 3)
                .ok_or_else(|| too_much_memory(fpr, &format!("{MAX_PAGES} pages of lines")))
        }
        Budget::Bytes(bytes) => {
            search::for_memory(&candidates, (bytes / PAGE_BYTES).min(MAX_PAGES), |least| 4.0 * least)
                .ok_or_else(|| too_few_bytes(PAGE_BYTES, " in the line layout", bytes))
        }
    }
}

/// A shape but for its pages.
struct Timers {
    shape: Shape,
    /// Keys that count.
    keys: u64,
    of_line: Vec<Line>,
}

impl Candidate for Timers {
    type Shape = Shape;

    fn rank(&self) -> u32 {
        self.shape.lines
    }

    fn shape(&self, pages: u64) -> Shape {
        Shape { pages, ..self.shape }
    }

    fn memory_of_unit(&self) -> u64 {
        1
    }

    fn rate_at_most(&self, shape: &Shape, limit: f64) -> Option<f64> {
        Some(shape.rate(self.keys, &self.of_line)).filter(|&rate| rate <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let rate = |shape: Shape| shape.false_positive_rate(window);
            let smallest = |lines: u32| {
                let holds = |pages: u64| {
                    let timers = timers_within(window, Some(slack)).unwrap();
                    let shape = |k, (bpt, blocks)| Shape::new(k, bpt, blocks, pages, lines).unwrap();
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

    #[test]
    fn what_cannot_be_had_is_said() {
        let refused = |window, budget, slack, words: &str| {
            let error = choose(window, budget, slack).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(count(1000), Budget::Rate(0.0), None, "fpr must lie between 0 and 1, both excluded, got 0");
        refused(count(0), Budget::Rate(0.1), None, "window must be at least 1");
        refused(count(1 << 45), Budget::Rate(0.01), None, "takes more than 134217727 pages");
        refused(count(1 << 62), Budget::Rate(0.1), None, "fpr must be above ");
        refused(count(1000), Budget::Bytes(u64::MAX), None, "nbytes must be at most 2**60");
        refused(count(1000), Budget::Bytes(4095), None, "nbytes must be at least 4096 in the line layout, got 4095");
        refused(count(1 << 40), Budget::Rate(0.1), Some(7), "slack must be at least 65536 insertions");
        assert!(choose(count(1000), Budget::Bytes(4096), Some(0)).is_ok());
    }
}
