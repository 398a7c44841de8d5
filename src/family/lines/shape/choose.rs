//! The search for the shape in lines that meets a rate or a number of bytes.

use std::iter::successors;

use super::{LineShape, MAX_K, MAX_LINES, MAX_PAGES, PAGE_BYTES};
use crate::Error;
use crate::clock::Window;
use crate::family::Shape as _;
use crate::family::budget::{
    Budget, allowed_slack, in_units, reject_below, too_few_bytes, too_little_slack, too_much_memory, within_slack,
};
use crate::family::search::{self, Candidate, bisection};
use crate::family::slices::shape::Paper;

/// Returns the shape for a window and a budget.
///
/// Considers lines of 8, 16 and 32 lanes, 1 to 4 of them per key, with k up to 4, 3, 2 and 2 (guarded epochs: 1), whose
/// slack is at most `slack`, by default [half the window](allowed_slack). Every line of a key costs a line of memory
/// per call. The second saves a fifth of the bits, the third and fourth together as much again:
/// - [`Budget::Rate`]: each gets the fewest pages that hold the rate. Of those at most 4/3 as large as the smallest,
///   the one with the fewest lines is chosen, then the one with the fewest pages.
/// - [`Budget::Bytes`]: each gets as many pages as fit. Of those with at most four times the least rate, the one with
///   the fewest lines is chosen, then the one with the least rate.
///
/// For a window of a million insertions at 1 % and 0.1 % that gives one line with k = 2, l = 6 at 21.1 bits per key and
/// two at 27.3; for guarded epochs two lines with r = 7 at 18.0 and 27.9. It takes some 10 ms.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>, paper: Paper) -> Result<LineShape, Error> {
    choose_by(window, budget, slack, paper, |shape| shape.lines)
}

/// Returns the shape for threads that share a filter: as [`choose`], and of those with the fewest lines the one with
/// the smallest k, since every lane that an insertion writes costs an atomic operation.
///
/// For a window of a million insertions at 0.1 % that gives two lines with k = 1, l = 7 at 27.9 bits per key.
pub fn choose_for_threads(window: Window, budget: Budget, slack: Option<u64>) -> Result<LineShape, Error> {
    choose_by(window, budget, slack, Paper::AgePartitioned, |shape| shape.lines * (MAX_K + 1) + shape.k)
}

fn choose_by(
    window: Window,
    budget: Budget,
    slack: Option<u64>,
    paper: Paper,
    rank: fn(&LineShape) -> u32,
) -> Result<LineShape, Error> {
    let window = window.check()?;
    budget.check()?;
    if let Budget::Bytes(bytes @ ..PAGE_BYTES) = budget {
        return Err(too_few_bytes(PAGE_BYTES, " in the line layout", bytes));
    }
    // In a window of time groups of steps add to the slack, the less the more pages there are.
    let pages = if let Window::Time { .. } = window { 62 } else { 1 };
    let mut shapes = within_slack(window, slack, shapes(paper), |&shape| LineShape { pages, ..shape }.slack(window))?;
    shapes.sort_by_key(rank);
    let slack = allowed_slack(window, slack);
    let candidates = |slack| -> Vec<LineCandidate> {
        shapes.iter().map(|&shape| LineCandidate { shape, window, slack, rank }).collect()
    };
    match budget {
        Budget::Rate(fpr) => {
            let lanes = |shape: &LineShape| shape.keys_per_generation(window).saturating_mul(shape.lanes.into());
            reject_below(shapes.iter().map(lanes), fpr)?;
            let found = |slack| search::for_rate(&candidates(slack), fpr, MAX_PAGES, |least| least + least / 3);
            found(slack).ok_or_else(|| match found(u64::MAX) {
                Some(shape) => too_little_slack(window, fpr, shape.slack(window), slack),
                None => too_much_memory(fpr, &format!("{MAX_PAGES} pages of lines")),
            })
        }
        Budget::Bytes(bytes) => {
            let shape = search::for_memory(&candidates(slack), bytes / PAGE_BYTES, |least| 4.0 * least);
            shape.ok_or_else(|| {
                let least = shapes.iter().map(|shape| shape.slack(window)).min().unwrap_or(0);
                let least = in_units(window, least);
                Error::value(format!("slack must be at least {least} for this window in {bytes} bytes"))
            })
        }
    }
}

/// Returns all shapes of one page, by lines. Large k evens out the loads of a line over generations, and so do several
/// lines of a key: the more lines, the smaller the k beyond which nothing is gained.
fn shapes(paper: Paper) -> Vec<LineShape> {
    let mut found = Vec::new();
    for (lines, most_k) in [(1, MAX_K), (2, 3), (3, 2), (4, 2)] {
        for lanes in [8, 16, 32] {
            let most_k = if paper == Paper::GuardedEpoch { 1 } else { most_k };
            found.extend((1..=most_k).map(|k| LineShape { paper, lanes, k, lines, pages: 1 }));
        }
    }
    found
}

/// A shape without its pages, and the slack allowed for it.
struct LineCandidate {
    shape: LineShape,
    window: Window,
    slack: u64,
    rank: fn(&LineShape) -> u32,
}

impl LineCandidate {
    fn slack_holds(&self, pages: u64) -> bool {
        self.shape(pages).slack(self.window) <= self.slack
    }
}

impl Candidate for LineCandidate {
    type Shape = LineShape;

    fn rank(&self) -> u32 {
        (self.rank)(&self.shape)
    }

    /// A small k is the quickest to compute, and with many lines takes the least memory.
    fn order(&self) -> u32 {
        MAX_LINES * self.shape.k - self.shape.lines
    }

    fn shape(&self, pages: u64) -> LineShape {
        LineShape { pages, ..self.shape }
    }

    fn memory_of_unit(&self) -> u64 {
        1
    }

    fn rate_at_most(&self, shape: &LineShape, limit: f64) -> Option<f64> {
        Some(shape.fpr(self.window)).filter(|&rate| rate <= limit)
    }

    /// Steps are whole insertions, and a few pages more may make a difference to the slack.
    fn fewest_units(&self, fpr: f64, most: u64) -> Option<u64> {
        let holds = |pages| self.rate_at_most(&self.shape(pages), fpr).is_some();
        if !holds(most) {
            return None;
        }
        let enough = bisection(0, most, holds);
        let more = if let Window::Time { .. } = self.window { 8 } else { 1 };
        (enough..=most.min(enough + enough / 64 + more)).find(|&pages| self.slack_holds(pages) && holds(pages))
    }

    /// Returns the most pages whose slack is allowed, to 1 / 256 of them: steps of less than an insertion would keep
    /// keys for longer than requested.
    fn most_units(&self, most: u64) -> Option<u64> {
        let fewer = |pages: &u64| pages.checked_sub((pages / 256).max(1));
        let first = most.min(MAX_PAGES);
        successors(Some(first), fewer).take_while(|&pages| pages > 0).find(|&pages| self.slack_holds(pages))
    }
}
