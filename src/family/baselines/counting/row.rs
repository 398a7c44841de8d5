//! The row of the counting Bloom filter.

use super::cells::Counters;
use super::shape::{CountingShape, choose};
use crate::engine::Aged;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// The counting Bloom filter.
pub static COUNTING: Family = Family {
    name: "counting",
    class: "baselines.CountingBloomFilter",
    windows: Windows::Insertions,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.noted("fpr grows with keys that come 15 times")],
        forms: &[form(11, &["k", "slice_cells"])],
        owns: is::<CountingShape>,
        read: |parameters| shared(CountingShape::read(parameters)),
        plan: |request| shared(choose(request.window, request.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Counters::new(*of(shape), clock.window().capacity()), words, clock))
        },
    }],
};
