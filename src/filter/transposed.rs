//! The guarded-epoch Bloom filter (paper 2), plain and transposed: the bits that all epochs have at one position lie
//! side by side in one cell.
//!
//! Where they lie, [`layout::transposed`](crate::layout::transposed) tells. Nothing is blocked: rate and bits per key are those of
//! plain segments, but r + 1 has to be a width of which cells fill a word.
//!
//! Epochs share the positions of a key, as in the paper, where [`GuardedEpoch`](super::GuardedEpoch) has positions of
//! its own in every segment:
//! - For a fresh key of a stream without repeats it makes no difference to the rate: epochs then hold different keys,
//!   whose bits fall independently, and a key has one bit in each part.
//! - A key that lies in several epochs has the same bits in all of them. A fresh key that collides with them does so in
//!   all at once: it is reported less often than the rate says, but a match of it looks like several independent ones.
//!   The likelihood of a match vector takes them for such. That shows only where keys repeat and bits are few: for
//!   a window of 7000 of 7000 keys, all as frequent, posteriors are off by 0.018 in the mean at 6 bits per key of the
//!   window (0.001 with positions of their own), and by 0.001 from 10 bits on, either way.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::transposed::Planes;
use crate::memory::Words;
use crate::shape::guarded_epoch::{Segment, Shape};
use crate::shape::runs::{self, Accesses};

/// A guarded-epoch Bloom filter, transposed: has a key been inserted within the last `window` insertions, or span of
/// time?
#[derive(Clone)]
pub struct Transposed {
    shape: Shape,
    k: u32,
    positions: u64,
    seed: u64,
    planes: Box<dyn Engine>,
}

impl Transposed {
    /// Its number in the saved form.
    pub const KIND: u16 = 18;

    /// An empty filter: as many positions as its plain segments have bits.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let Segment::Bloom { bits, k } = shape.segment else {
            return Err(Error::value("the transposed layout has no blocks"));
        };
        let shape = Shape::transposed(shape.r, k, bits)?;
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(shape, (k, bits), Clock::new(window.check()?, shape.r), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full epochs kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[r, k, positions, ..] = parameters else {
            return Err(damaged());
        };
        let k = narrow(k)?;
        let shape = Shape::transposed(narrow(r)?, k, positions).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, (k, positions), resume(shape.r), seed, words))
    }

    fn assemble(shape: Shape, (k, positions): (u32, u64), clock: Clock, seed: u64, words: Words) -> Self {
        let planes = match shape.r {
            7 => Aged::boxed(Planes::<8>::new(k, positions), words, clock),
            15 => Aged::boxed(Planes::<16>::new(k, positions), words, clock),
            31 => Aged::boxed(Planes::<32>::new(k, positions), words, clock),
            63 => Aged::boxed(Planes::<64>::new(k, positions), words, clock),
            r => unreachable!("a transposed shape has no r = {r}"),
        };
        Self { shape, k, positions, seed, planes }
    }

    /// Its parameters: what is a bit of a segment there is a position here.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    fn keys_per_epoch(&self) -> u64 {
        self.planes.clock().window().keys_per_generation(self.shape.r)
    }
}

impl Filter for Transposed {
    fn engine(&self) -> &dyn Engine {
        &*self.planes
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.planes
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("r", self.shape.r.into()), ("k", self.k.into()), ("positions", self.positions)]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.keys_per_epoch())
    }

    fn slack(&self) -> u64 {
        self.planes.clock().window().slack(self.shape.r, 1)
    }

    fn npws(&self) -> f64 {
        self.planes.clock().window().npws(self.shape.r, 1.0)
    }

    /// Those of a query, which asks all epochs at once: its k cells.
    fn expected_accesses(&self) -> Accesses {
        let k = self.k.into();
        Accesses { in_window: k, false_positive: k, absent: k }
    }

    fn cache_lines(&self) -> Lines {
        let k = self.k.into();
        Lines { insert: k, hit: k, miss: k }
    }

    /// As if epochs matched independently: keys that lie in several of them make it less.
    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(1, &self.planes.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
