//! The row of the Bloom filter.

use super::cells::Bits;
use super::shape::{BloomShape, choose};
use crate::engine::Aged;
use crate::family::request::Layout;
use crate::family::row::{Family, Row, Windows, form, is, of, shared};

/// The Bloom filter.
pub static BLOOM: Family = Family {
    name: "bloom",
    class: "BloomFilter",
    windows: Windows::Endless,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[],
        forms: &[form(10, &["k", "bits", "slice_bits"])],
        owns: is::<BloomShape>,
        read: |parameters| shared(BloomShape::read(parameters)),
        plan: |request| shared(choose(request.window.capacity(), request.budget, request.partitioned)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(Bits::new(*of(shape)), words, clock)),
    }],
};
