//! The cells of a whole filter as one row: which cells a key has, and where the row is cut.

use std::any::Any;
use std::ops::Range;

use super::NEVER;
use super::ages::FOREVER;
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::family::arrays::{BitsInParts, SliceCells as _};
use crate::family::bloom::cells::Bits;
use crate::family::timing::cells::{TimerRotation, TimerWords, TimersInSlices};
use crate::family::timing::{self, growing};
use crate::family::{AnyFilter, Shape, bloom};
use crate::memory::fallible;
use crate::memory::prefetch::Address;

/// The cells of a Bloom filter, or of a timing Bloom filter of fixed size, numbered from 0 in the order of its words.
#[derive(Clone)]
pub struct Row {
    pub(super) cells: Cells,
    clock: Clock,
    k: u32,
}

/// The cells of a filter that is cut into slices.
#[derive(Clone, Copy)]
pub(super) enum Cells {
    Bits(BitsInParts),
    Timers { timers: TimerWords, slices: TimersInSlices },
}

impl Cells {
    /// Prefetches the word of a cell.
    #[inline(always)]
    pub(super) fn fetch(&self, words: Address, cell: u64) {
        match self {
            Self::Bits(_) => words.fetch((cell / 64) as usize),
            Self::Timers { timers, .. } => timers.fetch(words, cell),
        }
    }

    /// Returns the generation in which a cell of these words was last set, or [`NEVER`].
    #[inline(always)]
    pub(super) fn last(&self, words: &[u64], cell: u64, newest: i64, rotation: TimerRotation) -> i64 {
        match self {
            Self::Bits(_) if words[(cell / 64) as usize] >> (cell % 64) & 1 == 1 => 0,
            Self::Bits(_) => NEVER,
            Self::Timers { timers, .. } => {
                timers.age_of(words, cell, rotation).map_or(NEVER, |age| newest.saturating_sub_unsigned(age))
            }
        }
    }
}

impl Row {
    /// Returns the cells of a filter, if its family can be sliced.
    pub fn of(filter: &AnyFilter) -> Result<Self, Error> {
        Self::of_shape(filter.shape(), filter.engine().clock())
    }

    /// Returns the cells of a filter of this shape, which need not exist, if its family can be sliced.
    pub fn of_shape(shape: &dyn Shape, clock: Clock) -> Result<Self, Error> {
        let shape: &dyn Any = shape;
        if let Some(&shape) = shape.downcast_ref::<bloom::shape::BloomShape>() {
            let parts = Bits::new(shape).0;
            return Ok(Self { cells: Cells::Bits(parts), clock, k: parts.k() });
        }
        if shape.is::<growing::Growing>() {
            return Err(Error::value("a timing Bloom filter that grows cannot be sliced: its cells come and go"));
        }
        let Some(&shape) = shape.downcast_ref::<timing::shape::TimingShape>() else {
            return Err(Error::value("only Bloom filters and timing Bloom filters can be sliced"));
        };
        let slices = TimersInSlices::new(shape);
        Ok(Self { cells: Cells::Timers { timers: slices.timers, slices }, clock, k: shape.k })
    }

    /// Returns the number of cells of a key.
    pub fn k(&self) -> usize {
        self.k as usize
    }

    /// Returns the number of full generations for which a cell counts after the one it was set in.
    pub fn retained(&self) -> i64 {
        match self.cells {
            Cells::Bits(_) => FOREVER,
            Cells::Timers { timers, .. } => timers.blocks().into(),
        }
    }

    /// Writes the k cells of each key.
    pub fn cells(&self, hashes: &[u64], cells: &mut [u64]) {
        let keys = hashes.iter().zip(cells.chunks_exact_mut(self.k()));
        match self.cells {
            Cells::Bits(parts) => keys.for_each(|(&hash, cells)| {
                cells.iter_mut().zip(parts.bits_of(0, hash)).for_each(|(cell, bit)| *cell = bit);
            }),
            Cells::Timers { slices, .. } => keys.for_each(|(&hash, cells)| slices.cells(hash, cells)),
        }
    }

    /// Returns the generations of `n` moments, numbered from the Unix epoch; only 0 if nothing is forgotten.
    pub fn generations(&self, at: Moments<'_>, n: usize) -> Result<Vec<i64>, Error> {
        match self.clock.window() {
            _ if self.clock.endless() => fallible::zeroed(n),
            Window::Count { .. } => Err(Error::value(
                "this filter's window counts insertions, but sites have no common count: take a window of time",
            )),
            Window::Time { .. } => fallible::collected((0..n).map(|i| self.clock.generation_at(at.moment(i)))),
        }
    }

    /// Returns the first cell of each of `parts` slices, and the end of the last.
    pub fn bounds(&self, parts: u64) -> Result<Vec<u64>, Error> {
        (0..parts).map(|part| Ok(self.cut(part, parts)?.1.start)).chain([Ok(self.count())]).collect()
    }

    /// Returns the words and the cells of one of `parts` slices: words i W / S to (i + 1) W / S, rounded up, of W
    /// (paper 4, definition 2).
    pub(super) fn cut(&self, part: u64, parts: u64) -> Result<(Range<usize>, Range<u64>), Error> {
        let words = self.count().div_ceil(self.per_word());
        if !(1..=words).contains(&parts) {
            return Err(Error::value(format!("parts must lie in 1 .. {words}, the words of the cells, got {parts}")));
        }
        if part >= parts {
            return Err(Error::value(format!("part must lie in 0 .. {}, got {part}", parts - 1)));
        }
        let first = |part: u64| (u128::from(part) * u128::from(words)).div_ceil(u128::from(parts)) as u64;
        let (start, stop) = (first(part), first(part + 1));
        let cells = start * self.per_word()..(stop * self.per_word()).min(self.count());
        Ok((start as usize..stop as usize, cells))
    }

    /// Returns the number of cells of the whole filter.
    pub fn count(&self) -> u64 {
        match self.cells {
            Cells::Bits(parts) => parts.bits(),
            Cells::Timers { timers, .. } => timers.words() as u64 * timers.per_word(),
        }
    }

    /// Returns the number of cells of a word.
    pub(super) fn per_word(&self) -> u64 {
        match self.cells {
            Cells::Bits(_) => 64,
            Cells::Timers { timers, .. } => timers.per_word(),
        }
    }
}
