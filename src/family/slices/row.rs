//! The rows of the age-partitioned and the guarded-epoch Bloom filter.

use super::cells::SliceRing;
use super::planes::Planes;
use super::shape::{Paper, RingShape, Segment, choose};
use super::transposed::{self, Transposed};
use crate::clock::Clock;
use crate::engine::{Aged, Engine};
use crate::family::arrays::{BitsInParts, Blocks, OneBit, SliceCells};
use crate::family::request::{Layout, Request};
use crate::family::row::{Family, Options, Planned, Row, Windows, form, is, of, shared};
use crate::family::{Shape, lines};
use crate::memory::Words;

/// The age-partitioned Bloom filter.
///
/// Blocks of 64 bits are no variant: they take more memory than blocks of 512 and no fewer cache lines.
pub static AGE_PARTITIONED: Family = Family {
    name: "age-partitioned",
    class: "AgePartitionedBloomFilter",
    windows: Windows::Either,
    promises: true,
    rows: &[
        Row {
            layout: Layout::Sliced,
            variants: &[Options::layout(Layout::Sliced), Options::layout(Layout::Blocked).for_speed(2)],
            forms: &[form(1, &["k", "l", "slice_bits", "blocks", "block_bits", "parts"])],
            owns: |shape| is_of(shape, Paper::AgePartitioned),
            read: |parameters| shared(RingShape::read_age_partitioned(parameters)),
            plan: |request| planned(request, Paper::AgePartitioned),
            engine: |shape, clock, _, words| Ok(ring(of(shape), clock, words)),
        },
        lines::row::AGE_PARTITIONED,
    ],
};

/// The guarded-epoch Bloom filter.
///
/// Sliced guarded epochs are not listed: they take the memory of transposed ones and more cache lines.
pub static GUARDED_EPOCH: Family = Family {
    name: "guarded-epoch",
    class: "GuardedEpochBloomFilter",
    windows: Windows::Either,
    promises: true,
    rows: &[
        Row {
            layout: Layout::Sliced,
            variants: &[Options::layout(Layout::Blocked), Options::layout(Layout::Sliced).unlisted()],
            forms: &[form(3, &["r", "k", "segment_bits", "blocks", "block_bits", "parts"])],
            owns: |shape| is_of(shape, Paper::GuardedEpoch),
            read: |parameters| shared(RingShape::read_guarded_epoch(parameters)),
            plan: |request| planned(request, Paper::GuardedEpoch),
            engine: |shape, clock, _, words| Ok(ring(of(shape), clock, words)),
        },
        lines::row::GUARDED_EPOCH,
        Row {
            layout: Layout::Transposed,
            variants: &[Options::layout(Layout::Transposed)],
            forms: &[form(5, &["r", "k", "positions"])],
            owns: is::<Transposed>,
            read: |parameters| shared(Transposed::read(parameters)),
            plan: |request| shared(transposed::choose(request.window, request.budget, request.slack)),
            engine: |shape, clock, _, words| Ok(planes(of(shape), clock, words)),
        },
    ],
};

/// Returns whether a shape is one in slices, of this paper.
fn is_of(shape: &dyn Shape, paper: Paper) -> bool {
    is::<RingShape>(shape) && of::<RingShape>(shape).paper == paper
}

fn planned(request: &Request, paper: Paper) -> Planned {
    let block_bits = (request.layout == Layout::Blocked).then_some(512);
    shared(choose(request.window, request.budget, request.slack, block_bits, paper))
}

fn ring(shape: &RingShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    match shape.segment {
        Segment::Bits { bits, .. } if shape.paper == Paper::AgePartitioned => {
            ring_of(OneBit::new(bits), shape, clock, words)
        }
        Segment::Bits { bits, parts } => ring_of(BitsInParts::new(bits, parts), shape, clock, words),
        Segment::Blocks { blocks, block_bits, parts } => {
            ring_of(Blocks::new(blocks, block_bits.into(), parts), shape, clock, words)
        }
    }
}

fn ring_of(cells: impl SliceCells + 'static, shape: &RingShape, clock: Clock, words: Words) -> Box<dyn Engine> {
    Aged::boxed(SliceRing::new(cells, shape.k, shape.k + shape.l), words, clock)
}

fn planes(&Transposed { r, k, positions }: &Transposed, clock: Clock, words: Words) -> Box<dyn Engine> {
    match r {
        7 => Aged::boxed(Planes::<8>::new(k, positions), words, clock),
        15 => Aged::boxed(Planes::<16>::new(k, positions), words, clock),
        31 => Aged::boxed(Planes::<32>::new(k, positions), words, clock),
        63 => Aged::boxed(Planes::<64>::new(k, positions), words, clock),
        r => unreachable!("a transposed shape has no r = {r}"),
    }
}
