//! The row of the time-limited Bloom filter.

use super::cells::Slices;
use super::shape::{TimeLimitedShape, choose};
use crate::Error;
use crate::family::Budget;
use crate::family::request::{FIRST_KEYS, Layout};
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// The time-limited Bloom filter.
pub static TIME_LIMITED: Family = Family {
    name: "time-limited",
    class: "TimeLimitedBloomFilter",
    windows: Windows::Time,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.noted("bytes follow the rate")],
        forms: &[form(8, &["k", "l", "slice_bits"])],
        owns: is::<TimeLimitedShape>,
        read: |parameters| shared(TimeLimitedShape::read(parameters)),
        plan: |request| match request.budget {
            Budget::Rate(fpr) => shared(choose(request.window, fpr, request.slack).map(|shape| {
                // The least capacity of a window is a key, which a long lateness multiplies.
                if request.unknown_rate { shape.at_first_for(2 * FIRST_KEYS) } else { shape }
            })),
            Budget::Bytes(_) => Err(Error::value("a time-limited filter takes fpr: its bytes follow the rate of keys")),
        },
        engine: |shape, clock, _, words| Ok(Box::new(Slices::new(*of(shape), clock, &words)?)),
    }],
};
