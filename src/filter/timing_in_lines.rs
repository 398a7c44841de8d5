//! The timing Bloom filter in the line layout: a key's timers in one cache line, or in two of one page, where slices
//! cost it a line for each.
//!
//! Where this differs from slices: timers of a key share a line, and so the number of keys in it; the rate is that of
//! [`shape::timing::line`](crate::shape::timing::line), not a power of the fill. Equal timers and sizes that grow are
//! for slices alone.

use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::filter::saved::{as_damage, check_cells, damaged, narrow};
use crate::filter::{self, Filter};
use crate::layout::timers::{Lines, Places};
use crate::memory::Words;
use crate::shape::runs::Accesses;
use crate::shape::timing::line::Shape;

/// A timing Bloom filter in lines: has a key been inserted within the last `window` insertions, or span of time?
#[derive(Clone)]
pub struct TimingInLines {
    shape: Shape,
    seed: u64,
    timers: Box<dyn Engine>,
}

impl TimingInLines {
    /// Its number in the saved form.
    pub const KIND: u16 = 19;

    /// An empty filter.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(shape, Clock::new(window.check()?, shape.blocks), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, bpt, blocks, pages, lines, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(narrow(k)?, narrow(bpt)?, narrow(blocks)?, pages, narrow(lines)?).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, resume(shape.blocks), seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        let timers: Box<dyn Engine> = match shape.lines {
            1 => Box::new(Aged { layout: Lines::<1>::new(shape), words, clock }),
            _ => Box::new(Aged { layout: Lines::<2>::new(shape), words, clock }),
        };
        Self { shape, seed, timers }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where its timers lie.
    pub(crate) fn places(&self) -> Places {
        match self.shape.lines {
            1 => Places::OneLine(Lines::new(self.shape)),
            _ => Places::TwoLines(Lines::new(self.shape)),
        }
    }

    fn window(&self) -> Window {
        self.timers.clock().window()
    }
}

impl Filter for TimingInLines {
    fn engine(&self) -> &dyn Engine {
        &*self.timers
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.timers
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("k", self.shape.k.into()),
            ("bpt", self.shape.bpt.into()),
            ("blocks", self.shape.blocks.into()),
            ("pages", self.shape.pages),
            ("lines", self.shape.lines.into()),
        ]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.window())
    }

    fn slack(&self) -> u64 {
        self.window().slack(self.shape.blocks, 1)
    }

    fn npws(&self) -> f64 {
        self.window().npws(self.shape.blocks, 1.0)
    }

    /// Those of a query, which looks at all timers of its lines at once: its lines.
    fn expected_accesses(&self) -> Accesses {
        let lines = self.shape.lines.into();
        Accesses { in_window: lines, false_positive: lines, absent: lines }
    }

    fn cache_lines(&self) -> filter::Lines {
        let lines = self.shape.lines.into();
        filter::Lines { insert: lines, hit: lines, miss: lines }
    }

    fn false_positive_rate(&self) -> f64 {
        let (words, generation) = (self.timers.words().as_slice(), self.timers.clock().generation());
        match self.shape.lines {
            1 => Lines::<1>::new(self.shape).false_positive_rate(words, generation),
            _ => Lines::<2>::new(self.shape).false_positive_rate(words, generation),
        }
    }

    fn false_negative_rates(&self) -> Vec<f64> {
        vec![0.0; self.shape.blocks as usize + 1]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
