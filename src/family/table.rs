//! The table of families: a row defines how the filters of one family are planned, read and built.

use std::any::Any;
use std::sync::Arc;

use super::baselines::counting::cells::Counters;
use super::baselines::fingerprint_buffer::cells::FingerprintBuffer;
use super::baselines::generalized::cells::FadingBits;
use super::baselines::{counting, fingerprint_buffer, generalized, stable};
use super::bloom::cells::Bits;
use super::row::{Family, Form, Layout, Planned, Windows};
use super::slices::shape::Paper;
use super::slices::transposed::{self, Transposed};
use super::swamp::cells::Buffered;
use super::time_limited::cells::Slices;
use super::timing::growing::{self, Grow, Limit};
use super::variants::Options;
use super::{Budget, Shape, aged_cuckoo, bloom, engines, lines, slices, swamp, time_limited, timing};
use crate::Error;
use crate::engine::Aged;
use crate::engine::growing::Growing;

/// Every family, in the order in which the planner compares them.
///
/// Not listed are blocks of 64 bits, which take more memory than blocks of 512 and no fewer cache lines, and sliced
/// guarded epochs, which take the memory of transposed ones and more cache lines.
pub static FAMILIES: [Family; 11] = [
    aged_cuckoo::ROW,
    Family {
        name: "age-partitioned",
        class: "AgePartitionedBloomFilter",
        windows: Windows::Either,
        variants: &[
            Options::layout(Layout::Sliced),
            Options::blocks(512).for_speed(2),
            Options::layout(Layout::Line).for_speed(1),
            Options::blocks(64).unlisted(),
        ],
        promises: true,
        forms: &[
            form(1, &["k", "l", "slice_bits", "blocks", "block_bits", "parts"]),
            Form { layout: Layout::Line, ..form(16, &["k", "l", "pages", "lines"]) },
        ],
        optional: &[],
        owns: |shape| paper(shape) == Some(Paper::AgePartitioned),
        read: |parameters| match parameters.get("pages") {
            Some(_) => shared(lines::shape::LineShape::read(parameters)),
            None => shared(slices::shape::RingShape::read_age_partitioned(parameters)),
        },
        plan: |window, request| match request.layout {
            Layout::Line => shared(lines::shape::choose(window, request.budget, request.slack, Paper::AgePartitioned)),
            _ => shared(slices::shape::choose(
                window,
                request.budget,
                request.slack,
                request.block_bits,
                Paper::AgePartitioned,
            )),
        },
        engine: |shape, clock, _, words| match (shape as &dyn Any).downcast_ref() {
            Some(lines) => Ok(engines::lines(lines, clock, words)),
            None => Ok(engines::ring(of(shape), clock, words)),
        },
    },
    Family {
        name: "guarded-epoch",
        class: "GuardedEpochBloomFilter",
        windows: Windows::Either,
        variants: &[
            Options::blocks(512),
            Options::layout(Layout::Line),
            Options::layout(Layout::Transposed).for_little_slack(),
            Options::layout(Layout::Sliced).unlisted(),
            Options::blocks(64).unlisted(),
        ],
        promises: true,
        forms: &[
            form(2, &["r", "k", "segment_bits", "blocks", "block_bits", "parts"]),
            Form { layout: Layout::Line, ..form(17, &["r", "pages", "lines"]) },
            Form { layout: Layout::Transposed, ..form(18, &["r", "k", "positions"]) },
        ],
        optional: &[],
        owns: |shape| paper(shape) == Some(Paper::GuardedEpoch) || is::<Transposed>(shape),
        read: |parameters| match (parameters.get("pages"), parameters.get("positions")) {
            (Some(_), _) => shared(lines::shape::LineShape::read(parameters)),
            (None, Some(_)) => shared(Transposed::read(parameters)),
            (None, None) => shared(slices::shape::RingShape::read_guarded_epoch(parameters)),
        },
        plan: |window, request| match request.layout {
            Layout::Line => shared(lines::shape::choose(window, request.budget, request.slack, Paper::GuardedEpoch)),
            Layout::Transposed => shared(transposed::choose(window, request.budget, request.slack)),
            Layout::Sliced => shared(slices::shape::choose(
                window,
                request.budget,
                request.slack,
                request.block_bits,
                Paper::GuardedEpoch,
            )),
        },
        engine: |shape, clock, _, words| {
            let any = shape as &dyn Any;
            Ok(match (any.downcast_ref(), any.downcast_ref()) {
                (Some(lines), _) => engines::lines(lines, clock, words),
                (None, Some(planes)) => engines::planes(planes, clock, words),
                (None, None) => engines::ring(of(shape), clock, words),
            })
        },
    },
    Family {
        name: "timing",
        class: "TimingBloomFilter",
        windows: Windows::Either,
        variants: &[
            Options::layout(Layout::Sliced),
            Options::layout(Layout::Line),
            Options::layout(Layout::Sliced).grows(Grow::Density),
        ],
        promises: true,
        forms: &[
            form(3, &["k", "bpt", "blocks", "slice_timers", "equal_timers", "part_keys", "part_timers"]),
            Form { layout: Layout::Line, ..form(19, &["k", "bpt", "blocks", "pages", "lines"]) },
        ],
        optional: &["part_keys", "part_timers"],
        owns: |shape| {
            is::<timing::shape::TimingShape>(shape)
                || is::<timing::shape::line::TimingLineShape>(shape)
                || is::<growing::Growing>(shape)
        },
        read: |parameters| match ["pages", "part_keys", "part_timers"].map(|name| parameters.get(name)) {
            [Some(_), ..] => shared(timing::shape::line::TimingLineShape::read(parameters)),
            [None, None, None] => shared(timing::shape::TimingShape::read(parameters)),
            _ => shared(growing::Growing::read(parameters)),
        },
        plan: |window, request| {
            if request.layout == Layout::Line {
                return shared(timing::shape::line::choose(window, request.budget, request.slack));
            }
            let part = timing::shape::choose(window, request.budget, request.slack)?;
            let Some(grow) = request.grow else { return shared(Ok(part)) };
            shared(Ok(growing::Growing { part, limit: Limit::planned(grow, part, window) }))
        },
        engine: |shape, clock, _, words| {
            let any = shape as &dyn Any;
            Ok(match (any.downcast_ref(), any.downcast_ref()) {
                (Some(&lines), _) => engines::timers_in_lines(lines, clock, words),
                (None, Some(&growing)) => Box::new(Growing::new(growing, clock, words)?),
                (None, None) => Aged::boxed(timing::cells::TimersInSlices::new(*of(shape)), words, clock),
            })
        },
    },
    Family {
        name: "time-limited",
        class: "TimeLimitedBloomFilter",
        windows: Windows::Time,
        variants: &[Options::PLAIN.noted("bytes follow the rate").for_little_slack()],
        promises: true,
        forms: &[form(4, &["k", "l", "slice_bits"])],
        optional: &[],
        owns: is::<time_limited::shape::TimeLimitedShape>,
        read: |parameters| shared(time_limited::shape::TimeLimitedShape::read(parameters)),
        plan: |window, request| match request.budget {
            Budget::Rate(fpr) => shared(time_limited::shape::choose(window, fpr, request.slack)),
            Budget::Bytes(_) => Err(Error::value("a time-limited filter takes fpr: its bytes follow the rate of keys")),
        },
        engine: |shape, clock, _, words| Ok(Box::new(Slices::new(*of(shape), clock, words)?)),
    },
    Family {
        name: "swamp",
        class: "Swamp",
        windows: Windows::Insertions,
        variants: &[Options::PLAIN.for_little_slack()],
        promises: true,
        forms: &[form(11, &["slots", "remainder_bits"])],
        optional: &[],
        owns: is::<swamp::shape::SwampShape>,
        read: |parameters| shared(swamp::shape::SwampShape::read(parameters)),
        plan: |window, request| shared(swamp::shape::choose(window, request.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Buffered::new(*of(shape), clock.window().capacity()), words, clock))
        },
    },
    Family {
        name: "counting",
        class: "baselines.CountingBloomFilter",
        windows: Windows::Insertions,
        variants: &[Options::PLAIN.noted("fpr grows with keys that come 15 times")],
        promises: true,
        forms: &[form(6, &["k", "slice_cells"])],
        optional: &[],
        owns: is::<counting::shape::CountingShape>,
        read: |parameters| shared(counting::shape::CountingShape::read(parameters)),
        plan: |window, request| shared(counting::shape::choose(window, request.budget)),
        engine: |shape, clock, _, words| {
            Ok(Aged::boxed(Counters::new(*of(shape), clock.window().capacity()), words, clock))
        },
    },
    Family {
        name: "fingerprint-buffer",
        class: "baselines.FingerprintBuffer",
        windows: Windows::Insertions,
        variants: &[Options::PLAIN.noted("searches all of it")],
        promises: true,
        forms: &[form(8, &["fingerprint_bits"])],
        optional: &[],
        owns: is::<fingerprint_buffer::shape::BufferShape>,
        read: |parameters| shared(fingerprint_buffer::shape::BufferShape::read(parameters)),
        plan: |window, request| shared(fingerprint_buffer::shape::choose(window, request.budget)),
        engine: |shape, clock, _, words| {
            let (shape, window) = (*of(shape), clock.window().capacity());
            Ok(Aged::boxed(FingerprintBuffer { window, shape }, words, clock))
        },
    },
    Family {
        name: "generalized",
        class: "baselines.GeneralizedBloomFilter",
        windows: Windows::Insertions,
        variants: &[Options::PLAIN.noted("fades from the first key on")],
        promises: false,
        forms: &[form(10, &["bits", "k1", "k0"])],
        optional: &[],
        owns: is::<generalized::shape::GeneralizedShape>,
        read: |parameters| shared(generalized::shape::GeneralizedShape::read(parameters)),
        plan: |window, request| shared(generalized::shape::choose(window, request.budget)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(FadingBits(*of(shape)), words, clock)),
    },
    Family {
        name: "stable",
        class: "baselines.StableBloomFilter",
        windows: Windows::Insertions,
        variants: &[Options::PLAIN.noted("forgets at random")],
        promises: false,
        forms: &[form(7, &["k", "slice_cells", "bits", "decrements"])],
        optional: &[],
        owns: is::<stable::shape::StableShape>,
        read: |parameters| shared(stable::shape::StableShape::read(parameters)),
        plan: |window, request| shared(stable::shape::choose(window, request.budget)),
        engine: |shape, clock, seed, words| Ok(engines::decaying(of(shape), clock, seed, words)),
    },
    Family {
        name: "bloom",
        class: "BloomFilter",
        windows: Windows::Endless,
        variants: &[],
        promises: true,
        forms: &[form(5, &["k", "bits", "slice_bits"])],
        optional: &[],
        owns: is::<bloom::shape::BloomShape>,
        read: |parameters| shared(bloom::shape::BloomShape::read(parameters)),
        plan: |window, request| shared(bloom::shape::choose(window.capacity(), request.budget, request.partitioned)),
        engine: |shape, clock, _, words| Ok(Aged::boxed(Bits::new(*of(shape)), words, clock)),
    },
];

/// Returns the saved form of this number, of a sliced layout.
const fn form(kind: u16, parameters: &'static [&'static str]) -> Form {
    Form { kind, layout: Layout::Sliced, parameters }
}

fn shared(shape: Result<impl Shape, Error>) -> Planned {
    Ok(Arc::new(shape?))
}

/// Returns the concrete shape of a row that has one type of shapes left.
fn of<S: Shape>(shape: &dyn Shape) -> &S {
    (shape as &dyn Any).downcast_ref().expect("a row makes engines of its own shapes")
}

fn is<S: Shape>(shape: &dyn Shape) -> bool {
    (shape as &dyn Any).is::<S>()
}

/// Returns the paper of a shape in slices or in lines.
fn paper(shape: &dyn Shape) -> Option<Paper> {
    let any = shape as &dyn Any;
    let sliced = any.downcast_ref().map(|ring: &slices::shape::RingShape| ring.paper);
    sliced.or_else(|| any.downcast_ref().map(|lines: &lines::shape::LineShape| lines.paper))
}
