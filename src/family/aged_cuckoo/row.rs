//! The row of the aged cuckoo filter in the [table of families](crate::family::FAMILIES).

use super::AgedCuckoo;
use super::shape::{AgedCuckooShape, choose};
use crate::engine::Aged;
use crate::engine::chain::Chain;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

const PARAMETERS: &[&str] = &["fingerprint_bits", "epochs", "pages", "lines", "distinct", "chain"];

/// How aged cuckoo filters are planned, read and built.
pub(crate) static ROW: Family = Family {
    name: "aged-cuckoo",
    class: "AgedCuckooFilter",
    windows: Windows::Any,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.first()],
        forms: &[form(6, PARAMETERS)],
        owns: is::<AgedCuckooShape>,
        read: |parameters| shared(AgedCuckooShape::read(parameters)),
        plan: |request| shared(choose(request)),
        engine: |shape, clock, _, words| {
            let shape: AgedCuckooShape = *of(shape);
            if shape.grows {
                return Ok(Box::new(Chain::new(shape, clock, &words)?));
            }
            Ok(Box::new(Aged { layout: AgedCuckoo::new(shape), words, clock }))
        },
    }],
};
