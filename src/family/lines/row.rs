//! The rows of the age-partitioned and the guarded-epoch Bloom filter in lines.

use super::cells::LanesInLines;
use super::shape::{LineShape, MAX_LINES, choose};
use crate::clock::Clock;
use crate::engine::{Aged, Engine};
use crate::family::Shape;
use crate::family::request::Layout;
use crate::family::row::{Options, Row, form, is, of, shared};
use crate::family::slices::shape::Paper;
use crate::memory::Words;

/// Age-partitioned filters in lines.
pub const AGE_PARTITIONED: Row = Row {
    layout: Layout::Line,
    variants: &[Options::layout(Layout::Line).for_speed(1)],
    forms: &[form(2, &["k", "l", "pages", "lines"])],
    owns: |shape| is_of(shape, Paper::AgePartitioned),
    read: |parameters| shared(LineShape::read(parameters)),
    plan: |request| shared(choose(request.window, request.budget, request.slack, Paper::AgePartitioned)),
    engine: |shape, clock, _, words| Ok(lines(of(shape), clock, words)),
};

/// Guarded epochs in lines.
pub const GUARDED_EPOCH: Row = Row {
    layout: Layout::Line,
    variants: &[Options::layout(Layout::Line)],
    forms: &[form(4, &["r", "pages", "lines"])],
    owns: |shape| is_of(shape, Paper::GuardedEpoch),
    read: |parameters| shared(LineShape::read(parameters)),
    plan: |request| shared(choose(request.window, request.budget, request.slack, Paper::GuardedEpoch)),
    engine: |shape, clock, _, words| Ok(lines(of(shape), clock, words)),
};

/// Returns whether a shape is one in lines, of this paper.
fn is_of(shape: &dyn Shape, paper: Paper) -> bool {
    is::<LineShape>(shape) && of::<LineShape>(shape).paper == paper
}

fn lines(shape: &LineShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    type Aged = fn(&LineShape, Clock, Words) -> Box<dyn Engine>;
    const fn of_lanes<const LANES: usize>() -> [Aged; MAX_LINES as usize] {
        [lines_of::<LANES, 1>, lines_of::<LANES, 2>, lines_of::<LANES, 3>, lines_of::<LANES, 4>]
    }
    // Rows are numbers of lanes, 8, 16 and 32; columns are numbers of lines.
    const ALL: [[Aged; MAX_LINES as usize]; 3] = [of_lanes::<8>(), of_lanes::<16>(), of_lanes::<32>()];
    ALL[(shape.lanes / 8).ilog2() as usize][shape.lines as usize - 1](shape, clock, words)
}

fn lines_of<const LANES: usize, const LINES: usize>(shape: &LineShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    Aged::boxed(LanesInLines::<LANES, LINES>::new(shape.pages, shape.k), words, clock)
}
