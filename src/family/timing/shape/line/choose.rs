//! The search for the timing filter in lines that meets a rate or a number of bytes.

use super::{LineRates, MAX_LINES, TimingLineShape, WORDS};
use crate::Error;
use crate::clock::Window;
use crate::family::budget::{Budget, reject_below, too_few_bytes, too_much_memory};
use crate::family::lines::shape::{MAX_PAGES, PAGE_BYTES};
use crate::family::search::{self, Candidate};
use crate::family::timing::shape::{live_keys, timers_within};

/// Returns the shape for a window and a budget.
///
/// Considers the timers that [those in slices](crate::family::timing::shape::choose) have, with 1 to 8 timers of a key
/// in one line or 2 to 16 in two. The second line costs a line of memory per call, and saves bits, most at small rates:
/// 4 % at 1 % and 11 % at 0.1 %.
/// - [`Budget::Rate`]: each gets the fewest pages that hold the rate. The smallest of one line per key is chosen if it
///   is at most 4/3 as large as that of two, as in [`shape::line`](crate::family::lines::shape::choose).
/// - [`Budget::Bytes`]: each gets as many pages as fit. That of the least rate of one line per key is chosen if it is
///   at most four times that of two.
///
/// For a window of a million keys at 1 % and 0.1 % that gives one line, k = 6 at 30.8 and k = 8 at 50.7 bits per key.
/// A slack of 7 % takes 63.0 and 116.4. It takes some 10 ms.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>) -> Result<TimingLineShape, Error> {
    let window = window.check()?;
    budget.check()?;
    let timers = timers_within(window, slack)?;
    let of_lines = |lines| (lines..=lines * WORDS).map(move |k| (k, lines));
    let candidates: Vec<TimingLineCandidate> = (1..=MAX_LINES)
        .flat_map(of_lines)
        .flat_map(|(k, lines)| {
            timers.iter().map(move |&(bpt, blocks)| TimingLineShape { k, bpt, blocks, lines, pages: 1 })
        })
        .map(|shape| TimingLineCandidate { shape, keys: live_keys(window, shape.blocks), of_line: shape.of_line() })
        .collect();
    match budget {
        Budget::Rate(fpr) => {
            reject_below(candidates.iter().map(|timers| timers.keys), fpr)?;
            search::for_rate(&candidates, fpr, MAX_PAGES, |least| least + least / 3)
                .ok_or_else(|| too_much_memory(fpr, &format!("{MAX_PAGES} pages of lines")))
        }
        Budget::Bytes(bytes) => {
            search::for_memory(&candidates, (bytes / PAGE_BYTES).min(MAX_PAGES), |least| 4.0 * least)
                .ok_or_else(|| too_few_bytes(PAGE_BYTES, " in the line layout", bytes))
        }
    }
}

/// A shape without its pages.
struct TimingLineCandidate {
    shape: TimingLineShape,
    /// Number of keys that count.
    keys: u64,
    of_line: Vec<LineRates>,
}

impl Candidate for TimingLineCandidate {
    type Shape = TimingLineShape;

    fn rank(&self) -> u32 {
        self.shape.lines
    }

    fn shape(&self, pages: u64) -> TimingLineShape {
        TimingLineShape { pages, ..self.shape }
    }

    fn memory_of_unit(&self) -> u64 {
        1
    }

    fn rate_at_most(&self, shape: &TimingLineShape, limit: f64) -> Option<f64> {
        Some(shape.rate(self.keys, &self.of_line)).filter(|&rate| rate <= limit)
    }
}
