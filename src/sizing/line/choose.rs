//! From what a user asks for, a rate or a number of bytes, to a shape.

use std::iter::successors;

use super::{Family, MAX_LINES, MAX_PAGES, Shape};
use crate::Error;
use crate::clock::Window;
use crate::sizing::age_partitioned::{Budget, allowed_slack, refuse_below, too_little_slack};

/// The shape for a window and a budget.
///
/// Considered are lines of 8, 16 and 32 lanes, 1 to 4 of them per key, with k up to 3, 4 and 4 (guarded epochs: 1), whose
/// slack is at most `slack`; by default as [elsewhere](crate::sizing::age_partitioned::choose). Every line of a key costs a line of memory
/// per call, and the second saves a fifth of the bits, the third and fourth together as much again:
/// - [`Budget::Rate`]: each gets the fewest pages that hold the rate; of those at most 4/3 as large as the smallest the
///   one with the fewest lines, then the fewest pages.
/// - [`Budget::Bytes`]: each gets as many pages as fit; of those with at most four times the least rate the one with
///   the fewest lines, then the least rate.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>, family: Family) -> Result<Shape, Error> {
    let window = window.check()?;
    budget.check()?;
    let allowed = Allowed { window, slack: allowed_slack(window, slack) };
    let candidates = candidates(family);
    match budget {
        Budget::Rate(fpr) => allowed.fewest_lines_for_rate(&candidates, fpr),
        Budget::Bytes(bytes) => allowed.fewest_lines_for_bytes(&candidates, bytes),
    }
}

/// All shapes, of one page, by lines.
fn candidates(family: Family) -> Vec<Shape> {
    let mut found = Vec::new();
    for lines in 1..=MAX_LINES {
        for (lanes, most) in [(8, 3), (16, 4), (32, 4)] {
            let most = if family == Family::GuardedEpoch { 1 } else { most };
            found.extend((1..=most).map(|k| Shape { lanes, k, lines, pages: 1 }));
        }
    }
    found
}

/// What every shape is held to.
struct Allowed {
    window: Window,
    slack: u64,
}

impl Allowed {
    fn fewest_lines_for_rate(&self, candidates: &[Shape], fpr: f64) -> Result<Shape, Error> {
        let candidates = self.within_slack(candidates)?;
        refuse_below(
            candidates.iter().map(|c| c.keys_per_generation(self.window).saturating_mul(c.lanes.into())),
            fpr,
        )?;
        // Many lines are smaller: the optimum comes soon, and one look rules out each of the others.
        let mut least = MAX_PAGES;
        for candidate in candidates.iter().rev() {
            if let Some(shape) = self.smallest(*candidate, fpr, least) {
                least = shape.pages;
            }
        }
        let within = least + least / 3;
        by_lines(&candidates)
            .find_map(|group| group.iter().filter_map(|c| self.smallest(*c, fpr, within)).min_by_key(|c| c.pages))
            .ok_or_else(|| {
                Error::value(format!("fpr={fpr} for this window takes more than {MAX_PAGES} pages of lines"))
            })
    }

    fn fewest_lines_for_bytes(&self, candidates: &[Shape], bytes: u64) -> Result<Shape, Error> {
        let page = candidates[0].nbytes();
        if bytes < page {
            return Err(Error::value(format!("nbytes must be at least {page} in the line layout, got {bytes}")));
        }
        let largest = |c: Shape| self.largest(c, bytes / page).map(|shape| (shape, self.rate(shape)));
        let candidates = self.within_slack(candidates)?;
        let least = candidates.iter().filter_map(|&c| largest(c)).map(|(_, rate)| rate).fold(1.0, f64::min);
        let (shape, _) = by_lines(&candidates)
            .find_map(|group| {
                let rated = group.iter().filter_map(|&c| largest(c)).filter(|(_, rate)| *rate <= 4.0 * least);
                rated.min_by(|a, b| a.1.total_cmp(&b.1))
            })
            .expect("the shape with the least rate is among them");
        Ok(shape)
    }

    /// The candidates whose slack is allowed with a page, and may be with more.
    fn within_slack(&self, candidates: &[Shape]) -> Result<Vec<Shape>, Error> {
        let found: Vec<Shape> = candidates.iter().copied().filter(|&c| self.slack_holds(c)).collect();
        if found.is_empty() {
            let least = candidates.iter().map(|c| c.slack(self.window)).min().expect("there are some");
            return Err(too_little_slack(self.window, least, self.slack));
        }
        Ok(found)
    }

    fn slack_holds(&self, shape: Shape) -> bool {
        shape.slack(self.window) <= self.slack
    }

    fn rate(&self, shape: Shape) -> f64 {
        shape.false_positive_rate(shape.keys_per_generation(self.window))
    }

    /// The smallest of at most `most` pages that holds a rate, by bisection: more pages are emptier.
    fn smallest(&self, candidate: Shape, fpr: f64, most: u64) -> Option<Shape> {
        let holds = |pages| self.rate(Shape { pages, ..candidate }) <= fpr;
        let (mut too_few, mut enough) = (0, most);
        if !holds(most) {
            return None;
        }
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            *(if holds(middle) { &mut enough } else { &mut too_few }) = middle;
        }
        // Steps are whole insertions, and a few pages more may make a difference to the slack.
        let slightly_more = (enough..=most.min(enough + enough / 64 + 1)).map(|pages| Shape { pages, ..candidate });
        slightly_more.into_iter().find(|&shape| self.slack_holds(shape) && self.rate(shape) <= fpr)
    }

    /// The largest of at most `most` pages whose slack is allowed, to 1 / 256 of them: steps of less than an insertion
    /// would keep keys for longer than asked for.
    fn largest(&self, candidate: Shape, most: u64) -> Option<Shape> {
        let fewer = |pages: &u64| pages.checked_sub((pages / 256).max(1)).filter(|&pages| pages > 0);
        let mut shapes = successors(Some(most.min(MAX_PAGES)), fewer).map(|pages| Shape { pages, ..candidate });
        shapes.find(|&shape| self.slack_holds(shape))
    }
}

/// Runs of candidates with the same number of lines, the fewest first.
fn by_lines(candidates: &[Shape]) -> impl Iterator<Item = &[Shape]> {
    candidates.chunk_by(|a, b| a.lines == b.lines)
}
