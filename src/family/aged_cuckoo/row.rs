//! The row of the aged cuckoo filter in the [table of families](crate::family::FAMILIES).

use std::any::Any;
use std::sync::Arc;

use super::AgedCuckoo;
use super::shape::{self, AgedCuckooShape};
use crate::engine::Aged;
use crate::engine::chain::Chain;
use crate::family::row::{Family, Form, Layout, Windows};
use crate::family::variants::Options;

const PARAMETERS: &[&str] = &["fingerprint_bits", "epochs", "pages", "lines", "distinct", "chain"];

/// How aged cuckoo filters are planned, read and built.
pub(crate) const ROW: Family = Family {
    name: "aged-cuckoo",
    class: "AgedCuckooFilter",
    windows: Windows::Any,
    variants: &[Options::PLAIN.first()],
    promises: true,
    forms: &[Form { kind: 26, layout: Layout::Sliced, parameters: PARAMETERS }],
    optional: &["distinct", "chain"],
    owns: |shape| (shape as &dyn Any).is::<AgedCuckooShape>(),
    read: |parameters| Ok(Arc::new(AgedCuckooShape::read(parameters)?)),
    plan: |window, request| Ok(Arc::new(shape::choose(window, request.budget, request.slack, request.distinct)?)),
    engine: |shape, clock, _, words| {
        let shape = *(shape as &dyn Any).downcast_ref::<AgedCuckooShape>().expect("a row builds its own shapes");
        if shape.grows {
            return Ok(Box::new(Chain::new(shape, clock, &words)?));
        }
        Ok(Aged::boxed(AgedCuckoo::new(shape), words, clock))
    },
};
