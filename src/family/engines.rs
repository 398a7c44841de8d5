//! Engines whose types depend on the numbers of a shape.

use super::arrays::{BitsInParts, Blocks, OneBit, SliceCells};
use super::baselines::counters::CounterSlices;
use super::baselines::stable;
use super::baselines::stable::cells::Decaying;
use super::lines::cells::LanesInLines;
use super::lines::shape::MAX_LINES;
use super::slices::cells::SliceRing;
use super::slices::planes::Planes;
use super::slices::shape::{Paper, Segment};
use super::slices::transposed::Transposed;
use super::{lines, slices, timing};
use crate::clock::Clock;
use crate::engine::{Aged, Engine};
use crate::key::Seed;
use crate::memory::Words;

pub(crate) fn ring(shape: &slices::shape::RingShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    match shape.segment {
        Segment::Bits { bits, .. } if shape.paper == Paper::AgePartitioned => {
            ring_of(OneBit::new(bits), shape, clock, words)
        }
        Segment::Bits { bits, parts } => ring_of(BitsInParts::new(bits, parts), shape, clock, words),
        Segment::Blocks { blocks, block_bits, parts } => match (block_bits, parts) {
            (64, 1) => ring_of(Blocks::<1, 1>::new(blocks), shape, clock, words),
            (64, 2) => ring_of(Blocks::<1, 2>::new(blocks), shape, clock, words),
            (64, 4) => ring_of(Blocks::<1, 4>::new(blocks), shape, clock, words),
            (64, 8) => ring_of(Blocks::<1, 8>::new(blocks), shape, clock, words),
            (512, 1) => ring_of(Blocks::<8, 1>::new(blocks), shape, clock, words),
            (512, 2) => ring_of(Blocks::<8, 2>::new(blocks), shape, clock, words),
            (512, 4) => ring_of(Blocks::<8, 4>::new(blocks), shape, clock, words),
            (512, 8) => ring_of(Blocks::<8, 8>::new(blocks), shape, clock, words),
            _ => unreachable!("a shape has no other blocks"),
        },
    }
}

fn ring_of(
    cells: impl SliceCells + 'static,
    shape: &slices::shape::RingShape,
    clock: Clock,
    words: Words,
) -> Box<dyn Engine> {
    Aged::boxed(SliceRing::new(cells, shape.k, shape.k + shape.l), words, clock)
}

pub(crate) fn planes(&Transposed { r, k, positions }: &Transposed, clock: Clock, words: Words) -> Box<dyn Engine> {
    match r {
        7 => Aged::boxed(Planes::<8>::new(k, positions), words, clock),
        15 => Aged::boxed(Planes::<16>::new(k, positions), words, clock),
        31 => Aged::boxed(Planes::<32>::new(k, positions), words, clock),
        63 => Aged::boxed(Planes::<64>::new(k, positions), words, clock),
        r => unreachable!("a transposed shape has no r = {r}"),
    }
}

pub(crate) fn decaying(shape: &stable::shape::StableShape, clock: Clock, seed: Seed, words: Words) -> Box<dyn Engine> {
    let [first, second] = seed.words();
    let seed = first ^ second;
    fn aged<const BITS: u32>(
        shape: &stable::shape::StableShape,
        clock: Clock,
        seed: u64,
        words: Words,
    ) -> Box<dyn Engine> {
        let cells = CounterSlices::<BITS> { slices: shape.slices };
        Aged::boxed(Decaying { cells, decrements: shape.decrements, seed }, words, clock)
    }
    match shape.bits {
        1 => aged::<1>(shape, clock, seed, words),
        2 => aged::<2>(shape, clock, seed, words),
        4 => aged::<4>(shape, clock, seed, words),
        8 => aged::<8>(shape, clock, seed, words),
        bits => unreachable!("a shape has no cells of {bits} bits"),
    }
}

pub(crate) fn timers_in_lines(
    shape: timing::shape::line::TimingLineShape,
    clock: Clock,
    words: Words,
) -> Box<dyn Engine> {
    match shape.lines {
        1 => Aged::boxed(timing::cells::TimersInLines::<1>::new(shape), words, clock),
        _ => Aged::boxed(timing::cells::TimersInLines::<2>::new(shape), words, clock),
    }
}

pub(crate) fn lines(shape: &lines::shape::LineShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    type Aged = fn(&lines::shape::LineShape, Clock, Words) -> Box<dyn Engine>;
    const fn of_lanes<const LANES: usize>() -> [Aged; MAX_LINES as usize] {
        [lines_of::<LANES, 1>, lines_of::<LANES, 2>, lines_of::<LANES, 3>, lines_of::<LANES, 4>]
    }
    // Rows are numbers of lanes, 8, 16 and 32; columns are numbers of lines.
    const ALL: [[Aged; MAX_LINES as usize]; 3] = [of_lanes::<8>(), of_lanes::<16>(), of_lanes::<32>()];
    ALL[(shape.lanes / 8).ilog2() as usize][shape.lines as usize - 1](shape, clock, words)
}

fn lines_of<const LANES: usize, const LINES: usize>(
    shape: &lines::shape::LineShape,
    clock: Clock,
    words: Words,
) -> Box<dyn Engine> {
    Aged::boxed(LanesInLines::<LANES, LINES>::new(shape.pages, shape.k), words, clock)
}
