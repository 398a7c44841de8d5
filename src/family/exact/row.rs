//! The row of the exact window.

use super::shape::ExactShape;
use crate::family::request::Layout;
use crate::family::row::{Family, Row, Windows, form, is, of, shared};
use crate::key::KeyHasher;

/// The exact window.
pub static EXACT: Family = Family {
    name: "exact",
    class: "ExactFilter",
    windows: Windows::Stored,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[],
        forms: &[form(15, &["missing_differ"])],
        owns: is::<ExactShape>,
        read: |parameters| shared(ExactShape::read(parameters)),
        plan: |request| shared(Ok(ExactShape { missing_differ: request.missing_differ })),
        engine: |shape, clock, seed, words| {
            let unlike = of::<ExactShape>(shape).missing_differ.then(|| KeyHasher::of(seed).missing());
            super::engine(clock, words.as_slice(), unlike)
        },
    }],
};
