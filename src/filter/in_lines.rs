//! The age-partitioned and the guarded-epoch Bloom filter in the [line layout](crate::layout::line): a lane of every line in
//! place of a slice or a segment, one cache line per query in place of one per slice.
//!
//! The two are one: guarded epochs are slices of which one is written. They differ in the names of their parameters.
//!
//! Where this differs from the papers:
//! - Slices do not age all at once but page by page, so that a generation is not a moment but a round of the pages, and
//!   the rate is the same at all times: [`line`](crate::layout::line) has the proof of the promise.
//! - All slices share their blocks (paper 1, section 6, has a block in each), and so the number of keys in them: the
//!   rates of [`shape::line`](crate::shape::line) are not those of independent slices.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::Engine;
use crate::layout::line;
use crate::memory::Words;
use crate::shape::line::{Family, Shape};
use crate::shape::runs::Accesses;

/// An age-partitioned or guarded-epoch Bloom filter in lines: has a key been inserted within the last `window`
/// insertions, or span of time?
#[derive(Clone)]
pub struct InLines {
    family: Family,
    shape: Shape,
    seed: u64,
    lines: Box<dyn Engine>,
}

impl InLines {
    /// The number of an age-partitioned one in the saved form.
    pub const AGE_PARTITIONED: u16 = 16;
    /// The number of a guarded-epoch one.
    pub const GUARDED_EPOCH: u16 = 17;

    /// An empty filter. Guarded epochs have a shape with k = 1.
    pub fn new(family: Family, shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(family, shape, Clock::new(window.check()?, shape.kept()), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full steps kept.
    pub fn from_saved(
        family: Family,
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let shape = match (family, parameters) {
            (Family::AgePartitioned, &[k, l, pages, lines, ..]) => {
                Shape::age_partitioned(narrow(k)?, narrow(l)?, pages, narrow(lines)?)
            }
            (Family::GuardedEpoch, &[r, pages, lines, ..]) => Shape::guarded_epoch(narrow(r)?, pages, narrow(lines)?),
            _ => return Err(damaged()),
        };
        let shape = shape.map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(family, shape, resume(shape.kept()), seed, words))
    }

    fn assemble(family: Family, shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        Self { family, shape, seed, lines: line::aged(shape, clock, words) }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    fn keys_per_generation(&self) -> u64 {
        self.shape.keys_per_generation(self.lines.clock().window())
    }
}

impl Filter for InLines {
    fn engine(&self) -> &dyn Engine {
        &*self.lines
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.lines
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        match self.family {
            Family::AgePartitioned => Self::AGE_PARTITIONED,
            Family::GuardedEpoch => Self::GUARDED_EPOCH,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = match self.family {
            Family::AgePartitioned => vec![("k", self.shape.k.into()), ("l", self.shape.l().into())],
            Family::GuardedEpoch => vec![("r", self.shape.l().into())],
        };
        parameters.extend([("pages", self.shape.pages), ("lines", self.shape.lines.into())]);
        parameters
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.keys_per_generation())
    }

    fn slack(&self) -> u64 {
        self.shape.slack(self.lines.clock().window())
    }

    fn npws(&self) -> f64 {
        let fading = f64::from(self.shape.kept()) * self.shape.npws(self.keys_per_generation());
        self.lines.clock().window().npws(self.shape.kept(), fading)
    }

    /// Those of a query, which compares all lanes of its lines at once: its lines.
    fn expected_accesses(&self) -> Accesses {
        let lines = self.shape.lines.into();
        Accesses { in_window: lines, false_positive: lines, absent: lines }
    }

    fn cache_lines(&self) -> Lines {
        let lines = self.shape.lines.into();
        Lines { insert: lines, hit: lines, miss: lines }
    }

    fn false_positive_rate(&self) -> f64 {
        line::false_positive_rate(self.shape, &*self.lines)
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
