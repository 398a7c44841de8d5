//! The row of the timing Bloom filter.

use std::any::Any;

use super::cells::TimersInSlices;
use super::growing::{Growing, Limit};
use super::shape::{TimingShape, choose};
use crate::engine::Aged;
use crate::engine::chain::Chain;
use crate::family::request::{Grow, Layout};
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// The timing Bloom filter.
pub static TIMING: Family = Family {
    name: "timing",
    class: "TimingBloomFilter",
    windows: Windows::Either,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN, Options::PLAIN.grows(Grow::Density)],
        forms: &[form(7, &["k", "bpt", "blocks", "slice_timers", "equal_timers", "part_keys", "part_timers"])],
        owns: |shape| is::<TimingShape>(shape) || is::<Growing>(shape),
        read: |parameters| match ["part_keys", "part_timers"].map(|name| parameters.get(name)) {
            [None, None] => shared(TimingShape::read(parameters)),
            _ => shared(Growing::read(parameters)),
        },
        plan: |request| {
            let part = choose(request.window, request.budget, request.slack)?;
            let Some(grow) = request.grow else { return shared(Ok(part)) };
            shared(Ok(Growing { part, limit: Limit::planned(grow, part, request.window) }))
        },
        engine: |shape, clock, _, words| match (shape as &dyn Any).downcast_ref() {
            Some(&growing) => Ok(Box::new(Chain::<Growing>::new(growing, clock, &words)?)),
            None => Ok(Aged::boxed(TimersInSlices::new(*of(shape)), words, clock)),
        },
    }],
};
