//! A shard: part of a filter's cells, by their numbers. It has no keys (paper 4, definition 2).
//!
//! The words are those of the whole filter: its shards, concatenated, are the filter bit for bit. A site that has had
//! fewer generations than the others may sweep expired timers earlier or later; they do not count either way. A late
//! cell keeps its own generation (paper 4, section 4: the timer is set to w - (t_i - t_u)), but never lowers a younger
//! one (erratum OIE-8).

mod ages;
mod resolve;
mod row;
mod scatter;
pub mod slicing;
mod whole;

use std::ops::Range;

pub use ages::{Ages, SILENT};
pub use resolve::{Answer, Earlier, Rule};
pub use row::Row;
pub use scatter::{Ranges, Scattered, part_of};

use crate::Error;
use crate::family::arrays::share_of_ones;
use crate::family::timing::cells::TimerRotation;
use crate::memory::prefetch::{AHEAD, Address, in_flight};
use crate::memory::{Words, fallible};
use row::Cells;

/// The generation of a cell that was never set, or so long ago that no trace of it remains.
pub const NEVER: i64 = i64::MIN;

/// Part of the cells of a filter.
#[derive(Clone)]
pub struct Shard {
    row: Row,
    /// The range of the words in the whole filter.
    place: Range<usize>,
    /// The range of the cells in the whole filter.
    cells: Range<u64>,
    words: Words,
    newest: i64,
}

impl Shard {
    /// Creates part number `part` of `parts`, with empty cells.
    pub fn new(row: Row, part: u64, parts: u64) -> Result<Self, Error> {
        let (place, cells) = row.cut(part, parts)?;
        let words = Words::zeroed(place.len())?;
        let newest = match row.cells {
            Cells::Bits(_) => 0,
            Cells::Timers { .. } => NEVER,
        };
        Ok(Self { row, place, cells, words, newest })
    }

    /// Creates the shard with these [`words`](Self::words), whose newest generation is `newest`. Any words are legal.
    pub fn from_words(row: Row, part: u64, parts: u64, words: &[u64], newest: i64) -> Result<Self, Error> {
        let mut shard = Self::new(row, part, parts)?;
        if words.len() != shard.place.len() {
            let message = format!("this slice has {} words, got {}", shard.place.len(), words.len());
            return Err(Error::value(message));
        }
        match shard.row.cells {
            Cells::Bits(_) => shard.check_generation(newest)?,
            Cells::Timers { .. } if newest == NEVER && words.iter().any(|&word| word != 0) => {
                return Err(Error::value(format!("timers are set, so newest cannot be {NEVER}")));
            }
            Cells::Timers { .. } => shard.newest = newest,
        }
        shard.words.to_mut()?.copy_from_slice(words);
        Ok(shard)
    }

    /// Returns the numbers of the cells.
    pub fn cells(&self) -> Range<u64> {
        self.cells.clone()
    }

    /// Returns the words, to save.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Returns the newest generation that was opened, or [`NEVER`].
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Returns the share of the cells that are set and live.
    pub fn fill(&self) -> f64 {
        let (words, cells) = (self.words.as_slice(), self.cells.end - self.cells.start);
        match self.row.cells {
            Cells::Bits(_) => share_of_ones(words, cells),
            Cells::Timers { timers, .. } => timers.count(words, self.rotation()) as f64 / cells as f64,
        }
    }

    /// Returns when each cell, counted from the first, was last set, and the newest generation: ages count from it.
    pub fn ages(&self, cells: &[u64]) -> Result<(Ages, i64), Error> {
        self.check_cells(cells)?;
        let (words, newest, rotation) = (self.words.as_slice(), self.newest, self.rotation());
        let (address, mut last) = (Address::of(words), fallible::zeroed(cells.len())?);
        let (every, row) = (0..cells.len(), self.row.cells);
        let (fetch, mut read) =
            (|cell| row.fetch(address, cell), |i, cell| last[i] = row.last(words, cell, newest, rotation));
        // One loop for each kind of cells, so that the compiler has the kind.
        match row {
            Cells::Bits(_) => in_flight(cells, every, fetch, &mut read),
            Cells::Timers { .. } => in_flight(cells, every, fetch, &mut read),
        }
        Ok((Ages::of(&last, newest, self.row.retained() as u64)?, newest))
    }

    /// Returns when each cell was last set, as [`ages`](Self::ages) does, and sets it before the next is read: in
    /// generation `newest`, or as many generations before it as `behind` has. Generations open as they come. One that
    /// is too old to be retained sets nothing. Then `newest` is the shard's newest, unless it has a later one.
    pub fn touch(&mut self, cells: &[u64], newest: i64, behind: Option<&[u32]>) -> Result<(Ages, i64), Error> {
        self.check_cells(cells)?;
        let of = |i: usize| behind.map_or(newest, |behind| newest.saturating_sub_unsigned(behind[i].into()));
        self.check_generation(newest)?;
        (0..cells.len()).try_for_each(|i| self.check_generation(of(i)))?;
        let (kept, all, address) = (self.row.retained() as u64, self.row.cells, Address::of(self.words.as_slice()));
        let (mut rotation, mut last) = (self.rotation(), fallible::zeroed(cells.len())?);
        cells.iter().take(AHEAD).for_each(|&cell| all.fetch(address, cell));
        for (i, &cell) in cells.iter().enumerate() {
            if let Some(&coming) = cells.get(i + AHEAD) {
                all.fetch(address, coming);
            }
            let generation = of(i);
            if generation > self.newest {
                self.open(generation)?;
                rotation = self.rotation();
            }
            let (words, age) = (self.words.to_mut()?, self.newest.abs_diff(generation));
            last[i] = all.last(words, cell, self.newest, rotation);
            match all {
                Cells::Bits(_) => words[(cell / 64) as usize] |= 1 << (cell % 64),
                Cells::Timers { timers, .. } if age <= kept => timers.raise(words, cell, rotation, age),
                Cells::Timers { .. } => {}
            }
        }
        self.open(newest)?;
        // The ages reach back before the earliest of these, by the window and by the generations opened since.
        let most = behind.into_iter().flatten().max().map_or(0, |&most| u64::from(most));
        let oldest = self.newest.abs_diff(newest).saturating_add(most).saturating_add(kept);
        Ok((Ages::of(&last, self.newest, oldest)?, self.newest))
    }

    /// Returns the rotation of the newest generation; it has no meaning for bits.
    fn rotation(&self) -> TimerRotation {
        match self.row.cells {
            Cells::Timers { timers, .. } => timers.rotation(self.newest, 0),
            Cells::Bits(_) => TimerRotation { newest: 0, retained: 0 },
        }
    }

    /// Opens the generations up to this one, and sweeps as the whole filter does.
    fn open(&mut self, generation: i64) -> Result<(), Error> {
        let Cells::Timers { timers, .. } = self.row.cells else { return Ok(()) };
        if generation <= self.newest {
            return Ok(());
        }
        let words = self.words.to_mut()?;
        if self.newest == NEVER {
            // Nothing has been set.
        } else if generation.abs_diff(self.newest) >= timers.generations() {
            words.fill(0);
        } else {
            for generation in self.newest + 1..=generation {
                timers.sweep(&mut words[timers.swept_within(generation, self.place.clone())], generation);
            }
        }
        self.newest = generation;
        Ok(())
    }

    fn check_cells(&self, cells: &[u64]) -> Result<(), Error> {
        let count = self.cells.end - self.cells.start;
        match cells.iter().find(|&&cell| cell >= count) {
            None => Ok(()),
            Some(cell) => Err(Error::value(format!("cell {cell} is not of this slice, which has {count}"))),
        }
    }

    fn check_generation(&self, generation: i64) -> Result<(), Error> {
        match self.row.cells {
            Cells::Bits(_) if generation != 0 => {
                Err(Error::value(format!("without a window there is only generation 0, got {generation}")))
            }
            Cells::Timers { .. } if generation == NEVER => {
                Err(Error::value(format!("generation {generation} stands for a cell that was never set")))
            }
            _ => Ok(()),
        }
    }
}
