//! The row of the stable Bloom filter.

use super::cells::Decaying;
use super::shape::{StableShape, choose};
use crate::clock::Clock;
use crate::engine::{Aged, Engine};
use crate::family::baselines::counters::CounterSlices;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};
use crate::key::Seed;
use crate::memory::Words;

/// The stable Bloom filter.
pub static STABLE: Family = Family {
    name: "stable",
    class: "baselines.StableBloomFilter",
    windows: Windows::Insertions,
    promises: false,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.noted("forgets at random")],
        forms: &[form(14, &["k", "slice_cells", "bits", "decrements"])],
        owns: is::<StableShape>,
        read: |parameters| shared(StableShape::read(parameters)),
        plan: |request| shared(choose(request.window, request.budget)),
        engine: |shape, clock, seed, words| Ok(decaying(of(shape), clock, seed, words)),
    }],
};

fn decaying(shape: &StableShape, clock: Clock, seed: Seed, words: Words) -> Box<dyn Engine> {
    let [first, second] = seed.words();
    let seed = first ^ second;
    let cells = CounterSlices::new(shape.slices, shape.bits);
    Aged::boxed(Decaying { cells, decrements: shape.decrements, seed }, words, clock)
}
