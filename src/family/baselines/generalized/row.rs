//! The row of the generalized Bloom filter.

use super::cells::FadingBits;
use super::shape::{GeneralizedShape, choose};
use crate::engine::Aged;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// The generalized Bloom filter.
pub static GENERALIZED: Family = Family {
    name: "generalized",
    class: "baselines.GeneralizedBloomFilter",
    windows: Windows::Insertions,
    promises: false,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.noted("fades from the first key on")],
        forms: &[form(13, &["bits", "k1", "k0"])],
        owns: is::<GeneralizedShape>,
        read: |parameters| shared(GeneralizedShape::read(parameters)),
        plan: |request| shared(choose(request.window, request.budget)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(FadingBits(*of(shape)), words, clock)),
    }],
};
