//! The timing Bloom filter and its block variant (paper 4, section 4: *One is Enough: Distributed Filtering for
//! Duplicate Elimination*; paper 5, section 3: J. L. Dautrich, C. V. Ravishankar, *Inferring Insertion
//! Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019).
//!
//! The cells are timers of a few bits, which hold the block of insertions in which they were last set, modulo the
//! number of timestamps; 0 is empty. An insertion sets k of them. A key is there when its k timers are all set and none
//! has expired. Blocks of one insertion are the timing Bloom filter, longer ones the block variant.
//!
//! Where this differs from the papers:
//! - The k timers of a key lie in k slices, one each, so they are always distinct (erratum INF-7) and the rate of false
//!   positives is a power of the fill, exactly.
//! - A block ends when the insertion that needs the next one arrives, so N full blocks and one key more are always
//!   there: B = ceil((W - 1) / N). A timer has expired at age N + 1, which is paper 5's ceil((w - b) / B) + 1 where B
//!   divides W - 1 (there b, the insertions into the open block, is never 0 here).
//! - Paper 4's timers count down; here they hold timestamps as in paper 5, and nothing is written as time passes but
//!   by the sweep, which does its share at the beginning of each block, not after each insertion.
//! - Of dynamic size (paper 4, section 5) a filter grows as a whole, not slice by slice, so that a part matches as one.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::growing::Growing;
use crate::engine::{Aged, Engine};
use crate::layout::timers::{Places, Slices};
use crate::memory::Words;
use crate::shape::growing::{Limit, any};
use crate::shape::runs::Accesses;
use crate::shape::timing::Shape;

/// A timing Bloom filter: has a key been inserted within the last `window` insertions, or span of time?
#[derive(Clone)]
pub struct Timing {
    shape: Shape,
    /// What a part takes, where parts come and go.
    limit: Option<Limit>,
    seed: u64,
    timers: Size,
}

/// The timers, of one size or of many parts.
#[derive(Clone)]
enum Size {
    Fixed(Aged<Slices>),
    Dynamic(Growing),
}

impl Timing {
    /// Its number in the saved form.
    pub const KIND: u16 = 3;

    /// An empty filter.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let clock = Clock::new(window.check()?, shape.blocks);
        Ok(Self::fixed(shape, clock, seed, Words::zeroed(words(shape)?)?))
    }

    /// An empty filter of dynamic size: each of its parts has this shape, and takes so much.
    pub fn growing(shape: Shape, limit: Limit, window: Window, seed: u64) -> Result<Self, Error> {
        let (limit, clock) = (limit.check(shape, window.check()?)?, Clock::new(window, shape.blocks));
        words(shape)?;
        Ok(Self { shape, limit: Some(limit), seed, timers: Size::Dynamic(Growing::new(shape, limit, clock)?) })
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, bpt, blocks, slice_timers, equal_timers, keys, timers, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(narrow(k)?, narrow(bpt)?, narrow(blocks)?, slice_timers, narrow(equal_timers)?)
            .map_err(as_damage)?;
        let clock = resume(shape.blocks);
        let limit = match (keys, timers) {
            (0, 0) => None,
            (keys, 0) => Some(Limit::Keys(keys)),
            (0, timers) => Some(Limit::Timers(timers)),
            _ => return Err(damaged()),
        };
        let Some(limit) = limit else {
            check_cells(&words, shape.nbytes() / 8)?;
            return Ok(Self::fixed(shape, clock, seed, words));
        };
        limit.check(shape, clock.window()).map_err(as_damage)?;
        Ok(Self { shape, limit: Some(limit), seed, timers: Size::Dynamic(Growing::read(shape, limit, clock, words)?) })
    }

    fn fixed(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        Self { shape, limit: None, seed, timers: Size::Fixed(Aged { layout: Slices::new(shape), words, clock }) }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// F: how many parts there are, 1 where the size is fixed.
    pub fn parts(&self) -> usize {
        match &self.timers {
            Size::Fixed(_) => 1,
            Size::Dynamic(growing) => growing.parts(),
        }
    }

    /// Where its timers lie; none where parts of them come and go.
    pub(crate) fn places(&self) -> Option<Places> {
        match &self.timers {
            Size::Fixed(timers) => Some(Places::Slices(timers.layout)),
            Size::Dynamic(_) => None,
        }
    }

    fn window(&self) -> Window {
        self.engine().clock().window()
    }
}

/// Words of the timers of this shape.
fn words(shape: Shape) -> Result<usize, Error> {
    usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })
}

impl Filter for Timing {
    fn engine(&self) -> &dyn Engine {
        match &self.timers {
            Size::Fixed(timers) => timers,
            Size::Dynamic(growing) => growing,
        }
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        match &mut self.timers {
            Size::Fixed(timers) => timers,
            Size::Dynamic(growing) => growing,
        }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (keys, timers) = match self.limit {
            None => (0, 0),
            Some(Limit::Keys(keys)) => (keys, 0),
            Some(Limit::Timers(timers)) => (0, timers),
        };
        vec![
            ("k", self.shape.k.into()),
            ("bpt", self.shape.bpt.into()),
            ("blocks", self.shape.blocks.into()),
            ("slice_timers", self.shape.slice_timers()),
            ("equal_timers", self.shape.equal_timers.into()),
            ("part_keys", keys),
            ("part_timers", timers),
        ]
    }

    /// Of dynamic size, that of one full part.
    fn fpr(&self) -> f64 {
        match self.limit {
            None => self.shape.false_positive_rate(self.window()),
            Some(limit) => limit.false_positive_rate(self.shape),
        }
    }

    fn slack(&self) -> u64 {
        self.window().slack(self.shape.blocks, 1)
    }

    fn npws(&self) -> f64 {
        self.shape.npws(self.window())
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.window())
    }

    /// One in each slice, all of which a query looks at; of dynamic size, in one part.
    fn cache_lines(&self) -> Lines {
        let k = f64::from(self.shape.k);
        Lines { insert: k, hit: k, miss: k }
    }

    /// With equal timers an upper bound: that of the live timers, equal or not. Of dynamic size too, where keys have been
    /// seen again in another part: the parts then match less independently.
    fn false_positive_rate(&self) -> f64 {
        let rates = self.engine().match_rates();
        any(rates.chunks(self.shape.k as usize).map(|part| part.iter().product()))
    }

    fn false_negative_rates(&self) -> Vec<f64> {
        self.shape.false_negative_rates(self.window())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
