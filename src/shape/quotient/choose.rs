//! The search for the aged quotient filter that meets a rate or a number of bytes.

use std::iter::successors;

use super::{
    FINE_TAG_BITS, FINGERPRINT_BITS, LINE_BYTES, LINES_OF_SMALL, MAX_LINES, MIN_LINES, QuotientShape, TAG_BITS,
    check_count_bits, check_distinct,
};
use crate::Error;
use crate::clock::Window;
use crate::family::budget::{Budget, allowed_slack, reject_below, too_few_bytes, too_much_memory, within_slack};
use crate::family::search::{self, Candidate, bisection};

/// Least number of lines of a filter, the overflow line included.
const LEAST: u64 = MIN_LINES as u64 + 1;
/// Lines of the largest page, the overflow line included; and of the largest page that is not large.
const PAGE: u64 = MAX_LINES as u64 + 1;
const SMALL: u64 = LINES_OF_SMALL as u64 + 1;
/// Number of lines up to which pages may have fewer than 127: beyond that, one page more or less is a smaller step.
const MAX_LINES_OF_SHORT_PAGES: u64 = PAGE * PAGE;
/// Greatest number of lines that are considered: half a tebibyte.
const MOST: u64 = 1 << 33;
/// Least number of bits of a tag with which rotating all pages in every epoch takes too long, at 4 microseconds each.
const FINE: u32 = 6;
/// Rotations of a page until a tag is used again, as a power of two, if tags are finer.
const ROTATIONS_LOG2: u32 = 4;
/// Number of lengths of an epoch that are considered, if tags are finer.
const LENGTHS: u64 = 64;

/// Returns the shape for a window and a budget. A window of insertions may be planned for fewer `distinct` keys than
/// insertions, because a repeat takes no space. A filter that counts has counts of `count_bits`, others of 0.
///
/// Considers fingerprints and tags of all numbers of bits whose slack is at most `slack`, by default [half the
/// window](allowed_slack). With tags of three bits the slack is 1/7 of the window, and every bit more halves that. Up
/// to five bits they cost time, since pages rotate more often, and hardly any bits: entries are fewer by as much as
/// they are larger. From six on they are finer than rotations, if a slack is requested; a window then has fifteen
/// rotations. With `fine` only such tags are considered.
/// - [`Budget::Rate`]: each gets the fewest lines that hold the rate. Of those at most 1/64 larger than the smallest,
///   the one with the shortest tags is chosen, then the one with the fewest lines.
/// - [`Budget::Bytes`]: each gets as many lines as fit. Of those with at most 1.5 times the least rate, the one with
///   the shortest tags is chosen, then the one with the least rate.
///
/// For a window of a million keys the result takes 14.9 bits per key at 1 %, 19.8 at 0.1 %, 24.4 at 1e-4 and 28.9 at
/// 1e-5.
pub fn choose(
    window: Window,
    budget: Budget,
    slack: Option<u64>,
    distinct: Option<u64>,
    count_bits: Option<u32>,
    fine: bool,
) -> Result<QuotientShape, Error> {
    let window = window.check()?;
    budget.check()?;
    if let Budget::Bytes(bytes) = budget
        && bytes < LEAST * LINE_BYTES
    {
        return Err(too_few_bytes(LEAST * LINE_BYTES, "", bytes));
    }
    check_distinct(window, distinct)?;
    count_bits.map_or(Ok(()), check_count_bits)?;
    let shapes = shapes(window, distinct, count_bits.unwrap_or(0), fine || slack.is_some());
    let shapes = shapes.filter(|shape| shape.epochs.is_some() || !fine);
    let shapes = within_slack(window, slack, shapes, |shape| shape.slack(window))?;
    let slack = allowed_slack(window, slack);
    let candidates: Vec<QuotientCandidate> =
        shapes.into_iter().map(|shape| QuotientCandidate { shape, window, slack }).collect();
    match budget {
        Budget::Rate(fpr) => {
            let remembered =
                |lines: &QuotientCandidate| lines.shape.most_stored(lines.shape.keys_per_epoch(window)) as u64;
            reject_below(candidates.iter().map(remembered), fpr)?;
            search::for_rate(&candidates, fpr, MOST, |least| least + least / 64)
                .ok_or_else(|| too_much_memory(fpr, &format!("{MOST} lines")))
        }
        Budget::Bytes(bytes) => {
            let shape = search::for_memory(&candidates, bytes / LINE_BYTES, |least| 1.5 * least);
            Ok(shape.expect("each has the slack with one page"))
        }
    }
}

/// Returns all shapes in the smallest size, by bits of a tag.
fn shapes(window: Window, distinct: Option<u64>, count_bits: u32, fine: bool) -> impl Iterator<Item = QuotientShape> {
    let all = *TAG_BITS.start()..=*FINE_TAG_BITS.end();
    let all = all.flat_map(|t| FINGERPRINT_BITS.map(move |f| (f, t)));
    let shape = move |(f, t)| QuotientShape {
        fingerprint_bits: f,
        tag_bits: t,
        pages: 1,
        lines: MIN_LINES,
        distinct,
        grow: false,
        count_bits,
        epochs: (t >= FINE && fine).then(|| fine_epochs(window, t)),
    };
    all.map(shape).filter_map(|shape| shape.checked().ok())
}

/// Returns the number of epochs retained with fine tags: all but those of one rotation, or a few less if the slack is
/// then smaller, because epochs have whole lengths.
pub fn fine_epochs(window: Window, tag_bits: u32) -> u32 {
    let most = (1 << tag_bits) - (1 << (tag_bits - ROTATIONS_LOG2));
    let shortest = window.generation(most);
    let lengths = shortest..=shortest.saturating_add((shortest / 16).min(LENGTHS));
    let epochs = lengths.map(|length| window.generations(length).clamp(1, most.into()) as u32);
    epochs.min_by_key(|&epochs| window.slack(epochs, 1)).unwrap_or(most)
}

/// A shape without its lines, and the slack allowed for it.
struct QuotientCandidate {
    shape: QuotientShape,
    window: Window,
    slack: u64,
}

impl QuotientCandidate {
    fn slack_holds(&self, lines: u64) -> bool {
        self.shape(lines).slack(self.window) <= self.slack
    }

    fn most(&self, most: u64) -> u64 {
        most.min(self.shape.most_pages() * PAGE)
    }
}

impl Candidate for QuotientCandidate {
    type Shape = QuotientShape;

    fn rank(&self) -> u32 {
        self.shape.tag_bits
    }

    /// Returns the shape of a number of lines, overflow lines included: as few pages as can have them share the lines,
    /// or, for many lines, whole pages.
    fn shape(&self, lines: u64) -> QuotientShape {
        let lines = lines.max(LEAST);
        let pages = if lines <= MAX_LINES_OF_SHORT_PAGES { lines.div_ceil(PAGE) } else { lines / PAGE };
        QuotientShape { pages, lines: ((lines / pages).min(PAGE) - 1) as u32, ..self.shape }
    }

    fn memory_of_unit(&self) -> u64 {
        1
    }

    fn rate_at_most(&self, shape: &QuotientShape, limit: f64) -> Option<f64> {
        Some(shape.planned_rate(shape.keys_per_epoch(self.window))).filter(|&rate| rate <= limit)
    }

    /// Steps are whole insertions, and a few pages more may make a difference to the slack, and to the rate.
    ///
    /// The rate of whole pages falls with their number. One page more, of fewer lines each, may have a higher rate, and
    /// so may the smallest of the large pages, which have fewer locations in a line.
    fn fewest_units(&self, fpr: f64, most: u64) -> Option<u64> {
        let holds = |lines| self.rate_at_most(&self.shape(lines), fpr).is_some();
        let holds_in = |pages| holds(pages * PAGE);
        let (most, pages) = (self.most(most), self.most(most).div_ceil(PAGE));
        if !holds_in(pages) {
            return None;
        }
        let pages = bisection(0, pages, holds_in);
        let too_few = (pages - 1) * PAGE / pages;
        let (too_few, enough) =
            if too_few < SMALL && holds(pages * SMALL) { (too_few, SMALL) } else { (too_few.max(SMALL), PAGE) };
        let of_page = if pages * PAGE > MAX_LINES_OF_SHORT_PAGES {
            PAGE
        } else {
            bisection(too_few, enough, |of_page| holds(pages * of_page))
        };
        let enough = (pages * of_page).max(LEAST);
        let step = if enough < MAX_LINES_OF_SHORT_PAGES { pages } else { PAGE };
        let slightly_more = (enough..=most.min(enough + enough / 64 + PAGE)).step_by(step as usize);
        slightly_more.into_iter().find(|&lines| self.slack_holds(lines) && holds(lines))
    }

    /// Returns the most lines whose slack is allowed, to 1 / 256 of them: steps of less than an insertion would keep
    /// keys for longer than requested.
    ///
    /// Pages of half the lines may have a higher rate than fewer whole ones.
    fn most_units(&self, most: u64) -> Option<u64> {
        let fewer = |lines: &u64| lines.checked_sub((lines / 256).max(1));
        let rate = |lines: u64| {
            let shape = self.shape(lines);
            shape.planned_rate(shape.keys_per_epoch(self.window))
        };
        let all = self.most(most);
        let whole = all / PAGE * PAGE;
        let first = if whole > 0 && rate(whole) < rate(all) { whole } else { all };
        successors(Some(first), fewer).take_while(|&lines| lines >= LEAST).find(|&lines| self.slack_holds(lines))
    }
}
