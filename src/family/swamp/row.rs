//! The row of SWAMP.

use super::cells::Buffered;
use super::shape::{SwampShape, choose};
use crate::engine::Aged;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// SWAMP.
pub static SWAMP: Family = Family {
    name: "swamp",
    class: "Swamp",
    windows: Windows::Insertions,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN],
        forms: &[form(9, &["slots", "remainder_bits"])],
        owns: is::<SwampShape>,
        read: |parameters| shared(SwampShape::read(parameters)),
        plan: |request| shared(choose(request.window, request.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Buffered::new(*of(shape), clock.window().capacity()), words, clock))
        },
    }],
};
