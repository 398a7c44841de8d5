//! The rows of the age-partitioned and the guarded-epoch Bloom filter in lines.

use super::cells::LanesInLines;
use super::shape::{LineShape, choose};
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
    let &LineShape { pages, k, lines, lanes, .. } = shape;
    match lanes {
        8 => Aged::boxed(LanesInLines::<8>::new(pages, k, lines), words, clock),
        16 => Aged::boxed(LanesInLines::<16>::new(pages, k, lines), words, clock),
        _ => Aged::boxed(LanesInLines::<32>::new(pages, k, lines), words, clock),
    }
}
