//! The guarded-epoch Bloom filter, plain and blocked (paper 2: Alpay, Sarıoğlu, *Guarded Epoch Bloom Filters for
//! Sliding-Window Membership*, 2026).
//!
//! r + 1 segments lie in a ring, each a Bloom filter of its own. An insertion sets the key's k bits in the newest; after
//! an epoch of insertions the oldest is cleared and becomes the newest. A key is there when any one segment has all of
//! its bits. r epochs cover the window, and the segment that is filling is the guard. It is the [`Ring`](crate::layout::ring::Ring) of the
//! age-partitioned filter with one segment written, where that one writes k and asks for k in a row.
//!
//! Where this differs from the paper:
//! - An epoch has ceil((W - 1) / r) insertions, not ceil(W / r). The insertion that needs the next epoch opens it, so r
//!   epochs and that insertion are there at the least (erratum GEBF-2). The last r * epoch + 1 to (r + 1) * epoch
//!   insertions are retained, so a key stays beyond the window for at most (r + 1) * epoch - W, which is more than the
//!   one epoch of proposition 1 when r does not divide W - 1 (erratum GEBF-1).
//! - A plain segment has one part per bit of a key, which makes its rate exact: see [`Parts`].
//! - A key has positions of its own in every segment, where the paper tests the same ones everywhere. For a fresh key
//!   of a stream without repeats both report equally often: segments then hold different keys, and with one bit in each
//!   part match independently for any positions. (In the paper's segments a key whose positions coincide is an easy
//!   match everywhere.) They part where one key lies in several segments. Shared positions set the same bits in each,
//!   so a fresh key that matches one by colliding with that key matches all: fewer reports, but matches that are one
//!   piece of evidence and look like several. With positions of their own the segments are independent given what was
//!   inserted when, and the likelihood of a match vector is a product over them. The rate promised, for keys without
//!   repeats, is the highest either way.
//! - No double hashing, whose floor of errors lies too high: see [`cells`](crate::layout::cells).

use super::age_partitioned::blocked;
use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::cells::Parts;
use crate::layout::ring::Ring;
use crate::memory::Words;
use crate::shape::guarded_epoch::{Segment, Shape};
use crate::shape::runs::{self, Accesses};

/// A guarded-epoch Bloom filter: has a key been inserted within the last `window` insertions, or span of time?
#[derive(Clone)]
pub struct GuardedEpoch {
    shape: Shape,
    seed: u64,
    ring: Box<dyn Engine>,
}

impl GuardedEpoch {
    /// Its number in the saved form.
    pub const KIND: u16 = 2;

    /// An empty filter.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(shape, Clock::new(window.check()?, shape.r), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full epochs kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[r, k, segment_bits, blocks, block_bits, parts, ..] = parameters else {
            return Err(damaged());
        };
        let segment = match k {
            0 => Segment::Blocks { blocks, block_bits: narrow(block_bits)?, parts: narrow(parts)? },
            k => Segment::Bloom { bits: segment_bits, k: narrow(k)? },
        };
        let shape = Shape::new(narrow(r)?, segment).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, resume(shape.r), seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        let segments = shape.r + 1;
        let ring = match shape.segment {
            Segment::Bloom { bits, k } => Aged::boxed(Ring::new(Parts::new(bits, k), 1, segments), words, clock),
            Segment::Blocks { blocks, block_bits, parts } => {
                blocked(blocks, block_bits, parts, 1, segments, clock, words)
            }
        };
        Self { shape, seed, ring }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    fn keys_per_epoch(&self) -> u64 {
        self.ring.clock().window().keys_per_generation(self.shape.r)
    }
}

impl Filter for GuardedEpoch {
    fn engine(&self) -> &dyn Engine {
        &*self.ring
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.ring
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (k, segment_bits, blocks, block_bits, parts) = match self.shape.segment {
            Segment::Bloom { bits, k } => (k, bits, 0, 0, 0),
            Segment::Blocks { blocks, block_bits, parts } => (0, 0, blocks, block_bits, parts),
        };
        vec![
            ("r", self.shape.r.into()),
            ("k", k.into()),
            ("segment_bits", segment_bits),
            ("blocks", blocks),
            ("block_bits", block_bits.into()),
            ("parts", parts.into()),
        ]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.keys_per_epoch())
    }

    fn slack(&self) -> u64 {
        self.ring.clock().window().slack(self.shape.r, 1)
    }

    fn npws(&self) -> f64 {
        self.ring.clock().window().npws(self.shape.r, 1.0)
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.keys_per_epoch())
    }

    /// One in each blocked segment. In a plain one each part has a line of its own, and a query reads them four by four
    /// until one is not set ([`Parts`]).
    fn cache_lines(&self) -> Lines {
        let segments = f64::from(self.shape.r + 1);
        let Segment::Bloom { k, .. } = self.shape.segment else {
            return Lines { insert: 1.0, hit: segments, miss: segments };
        };
        let fill = self.shape.segment.match_rate(self.keys_per_epoch()).powf(1.0 / f64::from(k));
        let four = |first: u32| fill.powi(first as i32) * f64::from((k - first).min(4));
        let until_zero: f64 = (0..k).step_by(4).map(four).sum();
        let hit = (segments - 1.0) * until_zero + f64::from(k);
        Lines { insert: k.into(), hit, miss: segments * until_zero }
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(1, &self.ring.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
