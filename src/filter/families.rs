//! The table of families: a row says how a filter is planned, read and assembled.

use std::any::Any;
use std::sync::Arc;

use super::engines;
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::growing::Growing;
use crate::engine::{Aged, Engine};
use crate::key::Seed;
use crate::layout::bloom::Bits;
use crate::layout::buffer::Buffer;
use crate::layout::counting::Counters;
use crate::layout::generalized::FadingBits;
use crate::layout::swamp::Buffered;
use crate::layout::{time_limited, timers};
use crate::memory::Words;
use crate::shape::growing::{self, Grow, Limit};
use crate::shape::ring::{self, Paper};
use crate::shape::transposed::{self, Transposed};
use crate::shape::{
    Budget, Parameters, Shape, bloom, counting, fingerprint_buffer, generalized, quotient, stable, swamp, timing,
};

/// A user's request for a window, as far as families can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// A rate, or a number of bytes.
    pub budget: Budget,
    /// Longest time that a key may be reported after leaving the window, in the unit of the clock.
    pub slack: Option<u64>,
    /// Bits of a block, for filters in blocks.
    pub block_bits: Option<u32>,
    /// When another part is opened, for filters that grow.
    pub grow: Option<Grow>,
    /// Whether a Bloom filter is partitioned into slices.
    pub partitioned: bool,
    /// Distinct keys of a window of insertions, of a filter in which repeats take no space; all are, if not said.
    pub distinct: Option<u64>,
    /// Bits of a count, of a filter that is to count how often keys come.
    pub counts: Option<u32>,
}

impl From<Budget> for Request {
    fn from(budget: Budget) -> Self {
        Self { budget, slack: None, block_bits: None, grow: None, partitioned: false, distinct: None, counts: None }
    }
}

/// The windows of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// Of insertions, or of time.
    Either,
    /// Of insertions alone.
    Insertions,
    /// Of time alone; the number of keys is a first guess.
    Time,
    /// None: nothing is forgotten, and the capacity is the window.
    Endless,
}

/// Bits of a count where it is not said.
const COUNT_BITS: u32 = 4;

type Planned = Result<Arc<dyn Shape>, Error>;
type Made = Result<Box<dyn Engine>, Error>;

/// A family of filters.
pub struct Family {
    /// Its number in the [saved form](crate::format).
    pub kind: u16,
    /// Its name, which its [shapes](Shape::family) return.
    pub name: &'static str,
    /// Its class in Python, by its path within the package.
    pub class: &'static str,
    /// What windows it has.
    pub windows: Windows,
    /// The parameters of its papers, in the order of the saved form.
    pub parameters: &'static [&'static str],
    /// Sets of sizes, where one set of several is given: by a user of which the other parameters are asked too.
    pub sizes: &'static [&'static [&'static str]],
    /// Parameters that may be missing.
    pub optional: &'static [&'static str],
    /// Reads a shape from these parameters.
    pub read: fn(&Parameters<'_>) -> Planned,
    /// Chooses the shape for a request.
    pub plan: fn(Window, &Request) -> Planned,
    engine: fn(&dyn Shape, Clock, Seed, Words) -> Made,
}

impl Family {
    /// The family of a shape.
    pub fn of(shape: &dyn Shape) -> &'static Self {
        Self::named(shape.family()).expect("every shape has a row")
    }

    /// The family of this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    /// The family of this number in the saved form, if there is one.
    pub fn of_kind(kind: u16) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.kind == kind)
    }

    /// The engine of a shape of this family, around its words. Where cells come and go, no words make an empty filter.
    pub(super) fn engine(&self, shape: &dyn Shape, clock: Clock, seed: Seed, words: Words) -> Made {
        (self.engine)(shape, clock, seed, words)
    }
}

/// All families, by the names that the planner and the command use.
pub static FAMILIES: [Family; 20] = [
    Family {
        kind: 1,
        name: "age-partitioned",
        class: "AgePartitionedBloomFilter",
        windows: Windows::Either,
        parameters: &["k", "l", "slice_bits", "blocks", "block_bits", "parts"],
        sizes: &[&["slice_bits"], &["blocks"]],
        optional: &[],
        read: |parameters| shared(ring::Shape::read_age_partitioned(parameters)),
        plan: |window, asked| {
            shared(ring::choose(window, asked.budget, asked.slack, asked.block_bits, Paper::AgePartitioned))
        },
        engine: |shape, clock, _, words| Ok(engines::ring(of(shape), clock, words)),
    },
    Family {
        kind: 2,
        name: "guarded-epoch",
        class: "GuardedEpochBloomFilter",
        windows: Windows::Either,
        parameters: &["r", "k", "segment_bits", "blocks", "block_bits", "parts"],
        sizes: &[&["k", "segment_bits"], &["blocks"]],
        optional: &[],
        read: |parameters| shared(ring::Shape::read_guarded_epoch(parameters)),
        plan: |window, asked| {
            shared(ring::choose(window, asked.budget, asked.slack, asked.block_bits, Paper::GuardedEpoch))
        },
        engine: |shape, clock, _, words| Ok(engines::ring(of(shape), clock, words)),
    },
    Family {
        kind: 3,
        name: "timing",
        class: "TimingBloomFilter",
        windows: Windows::Either,
        parameters: &["k", "bpt", "blocks", "slice_timers", "equal_timers", "part_keys", "part_timers"],
        sizes: &[&["slice_timers"]],
        optional: &["part_keys", "part_timers"],
        read: |parameters| match (parameters.get("part_keys"), parameters.get("part_timers")) {
            (None, None) => shared(timing::Shape::read(parameters)),
            _ => shared(growing::Growing::read(parameters)),
        },
        plan: |window, asked| {
            let part = timing::choose(window, asked.budget, asked.slack)?;
            let Some(grow) = asked.grow else { return shared(Ok(part)) };
            shared(Ok(growing::Growing { part, limit: Limit::planned(grow, part, window) }))
        },
        engine: |shape, clock, _, words| match (shape as &dyn Any).downcast_ref() {
            Some(&growing) => Ok(Box::new(Growing::new(growing, clock, words)?)),
            None => Ok(Aged::boxed(timers::TimersInSlices::new(*of(shape)), words, clock)),
        },
    },
    Family {
        kind: 4,
        name: "time-limited",
        class: "TimeLimitedBloomFilter",
        windows: Windows::Time,
        parameters: &["k", "l", "slice_bits"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(crate::shape::time_limited::Shape::read(parameters)),
        plan: |window, asked| match asked.budget {
            Budget::Rate(fpr) => shared(crate::shape::time_limited::choose(window, fpr, asked.slack)),
            Budget::Bytes(_) => Err(Error::value("a time-limited filter takes fpr: its bytes follow the rate of keys")),
        },
        engine: |shape, clock, _, words| Ok(Box::new(time_limited::Slices::new(*of(shape), clock, words)?)),
    },
    Family {
        kind: 5,
        name: "bloom",
        class: "BloomFilter",
        windows: Windows::Endless,
        parameters: &["k", "bits", "slice_bits"],
        sizes: &[&["bits"], &["slice_bits"]],
        optional: &[],
        read: |parameters| shared(bloom::Shape::read(parameters)),
        plan: |window, asked| shared(bloom::choose(window.capacity(), asked.budget, asked.partitioned)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(Bits::new(*of(shape)), words, clock)),
    },
    Family {
        kind: 6,
        name: "counting",
        class: "baselines.CountingBloomFilter",
        windows: Windows::Insertions,
        parameters: &["k", "slice_cells"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(counting::Shape::read(parameters)),
        plan: |window, asked| shared(counting::choose(window, asked.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Counters::new(*of(shape), clock.window().capacity()), words, clock))
        },
    },
    Family {
        kind: 7,
        name: "stable",
        class: "baselines.StableBloomFilter",
        windows: Windows::Insertions,
        parameters: &["k", "slice_cells", "bits", "decrements"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(stable::Shape::read(parameters)),
        plan: |window, asked| shared(stable::choose(window, asked.budget)),
        engine: |shape, clock, seed, words| Ok(engines::decaying(of(shape), clock, seed, words)),
    },
    Family {
        kind: 8,
        name: "fingerprint-buffer",
        class: "baselines.FingerprintBuffer",
        windows: Windows::Insertions,
        parameters: &["fingerprint_bits"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(fingerprint_buffer::Shape::read(parameters)),
        plan: |window, asked| shared(fingerprint_buffer::choose(window, asked.budget)),
        engine: |shape, clock, _, words| {
            let (shape, window) = (*of(shape), clock.window().capacity());
            Ok(Aged::boxed(Buffer { window, shape }, words, clock))
        },
    },
    Family {
        kind: 10,
        name: "generalized",
        class: "baselines.GeneralizedBloomFilter",
        windows: Windows::Insertions,
        parameters: &["bits", "k1", "k0"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(generalized::Shape::read(parameters)),
        plan: |window, asked| shared(generalized::choose(window, asked.budget)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(FadingBits(*of(shape)), words, clock)),
    },
    Family {
        kind: 11,
        name: "swamp",
        class: "Swamp",
        windows: Windows::Insertions,
        parameters: &["slots", "remainder_bits"],
        sizes: &[],
        optional: &[],
        read: |parameters| shared(swamp::Shape::read(parameters)),
        plan: |window, asked| shared(swamp::choose(window, asked.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Buffered::new(*of(shape), clock.window().capacity()), words, clock))
        },
    },
    Family {
        kind: 16,
        name: "age-partitioned-line",
        class: "AgePartitionedBloomFilter",
        windows: Windows::Either,
        parameters: &["k", "l", "pages", "lines"],
        sizes: &[&["pages"]],
        optional: &[],
        read: |parameters| shared(crate::shape::line::Shape::read(parameters)),
        plan: |window, asked| {
            shared(crate::shape::line::choose(window, asked.budget, asked.slack, Paper::AgePartitioned))
        },
        engine: |shape, clock, _, words| Ok(engines::lines(of(shape), clock, words)),
    },
    Family {
        kind: 17,
        name: "guarded-epoch-line",
        class: "GuardedEpochBloomFilter",
        windows: Windows::Either,
        parameters: &["r", "pages", "lines"],
        sizes: &[&["pages"]],
        optional: &[],
        read: |parameters| shared(crate::shape::line::Shape::read(parameters)),
        plan: |window, asked| {
            shared(crate::shape::line::choose(window, asked.budget, asked.slack, Paper::GuardedEpoch))
        },
        engine: |shape, clock, _, words| Ok(engines::lines(of(shape), clock, words)),
    },
    Family {
        kind: 18,
        name: "guarded-epoch-transposed",
        class: "GuardedEpochBloomFilter",
        windows: Windows::Either,
        parameters: &["r", "k", "positions"],
        sizes: &[&["k", "positions"]],
        optional: &[],
        read: |parameters| shared(Transposed::read(parameters)),
        plan: |window, asked| shared(transposed::choose(window, asked.budget, asked.slack)),
        engine: |shape, clock, _, words| Ok(engines::planes(of(shape), clock, words)),
    },
    Family {
        kind: 19,
        name: "timing-line",
        class: "TimingBloomFilter",
        windows: Windows::Either,
        parameters: &["k", "bpt", "blocks", "pages", "lines"],
        sizes: &[&["pages"]],
        optional: &[],
        read: |parameters| shared(timing::line::Shape::read(parameters)),
        plan: |window, asked| shared(timing::line::choose(window, asked.budget, asked.slack)),
        engine: |shape, clock, _, words| Ok(engines::timers_in_lines(*of(shape), clock, words)),
    },
    Family {
        kind: 20,
        name: "aged-quotient",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct"],
        sizes: &[],
        optional: &["distinct"],
        read: |parameters| shared(quotient::Shape::read(parameters)),
        plan: |window, asked| shared(aged_quotient(window, asked, None)),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
    Family {
        kind: 21,
        name: "aged-quotient-growing",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct"],
        sizes: &[],
        optional: &["distinct"],
        read: |parameters| shared(quotient::Shape::read(parameters).map(quotient::Shape::growing)),
        plan: |window, asked| shared(aged_quotient(window, asked, None).map(quotient::Shape::growing)),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
    Family {
        kind: 22,
        name: "aged-quotient-counting",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct", "count_bits"],
        sizes: &[],
        optional: &["distinct"],
        read: |parameters| shared(quotient::Shape::read(parameters)),
        plan: |window, asked| shared(aged_quotient(window, asked, Some(COUNT_BITS))),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
    Family {
        kind: 23,
        name: "aged-quotient-growing-counting",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct", "count_bits"],
        sizes: &[],
        optional: &["distinct"],
        read: |parameters| shared(quotient::Shape::read(parameters).map(quotient::Shape::growing)),
        plan: |window, asked| shared(aged_quotient(window, asked, Some(COUNT_BITS)).map(quotient::Shape::growing)),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
    Family {
        kind: 24,
        name: "aged-quotient-fine",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct", "count_bits", "epochs"],
        sizes: &[],
        optional: &["distinct", "count_bits"],
        read: |parameters| shared(quotient::Shape::read(parameters)),
        plan: |window, asked| shared(fine_quotient(window, asked)),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
    Family {
        kind: 25,
        name: "aged-quotient-fine-growing",
        class: "AgedQuotientFilter",
        windows: Windows::Either,
        parameters: &["fingerprint_bits", "tag_bits", "pages", "lines", "distinct", "count_bits", "epochs"],
        sizes: &[],
        optional: &["distinct", "count_bits"],
        read: |parameters| shared(quotient::Shape::read(parameters).map(quotient::Shape::growing)),
        plan: |window, asked| shared(fine_quotient(window, asked).map(quotient::Shape::growing)),
        engine: |shape, clock, _, words| engines::quotient(*of(shape), clock, words),
    },
];

fn shared(shape: Result<impl Shape, Error>) -> Planned {
    Ok(Arc::new(shape?))
}

/// The shape of an aged quotient filter. One that counts has counts of `counts` bits, unless others are asked for.
fn aged_quotient(window: Window, asked: &Request, counts: Option<u32>) -> Result<quotient::Shape, Error> {
    let counts = counts.map(|bits| asked.counts.unwrap_or(bits));
    quotient::choose(window, asked.budget, asked.slack, asked.distinct, counts, false)
}

/// The same of one whose tags are finer than its turns, whatever slack is asked for.
fn fine_quotient(window: Window, asked: &Request) -> Result<quotient::Shape, Error> {
    quotient::choose(window, asked.budget, asked.slack, asked.distinct, asked.counts, true)
}

/// A row's shape, as its concrete type.
fn of<S: Shape>(shape: &dyn Shape) -> &S {
    (shape as &dyn Any).downcast_ref().expect("a row makes engines of its own shapes")
}
