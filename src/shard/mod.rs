//! A shard: part of a filter's cells, by their numbers, without knowledge of keys (paper 4, definition 2).
//!
//! One site of a vertical filter holds a shard; so does a node of a Bloom tree, where the shard is the whole filter.
//! The words are those of the whole filter: its shards, concatenated, are the filter bit for bit. A site that has heard
//! of fewer generations than the others may sweep expired timers earlier or later; they do not count either way.
//!
//! A late cell keeps its own generation (paper 4, section 4: the timer is set to w - (t_i - t_u)), but never lowers a
//! younger one (erratum OIE-8).

mod ages;
mod resolve;
mod row;
mod scatter;

use std::ops::Range;

pub use ages::Ages;
pub use resolve::{Answers, Rule, resolve};
pub use row::Row;
pub use scatter::{Answer, Ranges, Scattered, part_of};

use crate::Error;
use crate::layout::cells::share_of_ones;
use crate::memory::Words;
use crate::memory::fallible;
use crate::memory::prefetch::Address;
use crate::memory::prefetch::in_flight;
use row::Cells;

/// The generation of a cell that was never set, or so long ago that no trace of it is left.
pub const NEVER: i64 = i64::MIN;

/// Cells whose words are prefetched.
const AHEAD: usize = 16;

/// Part of the cells of a filter.
#[derive(Clone)]
pub struct Shard {
    row: Row,
    part: u64,
    parts: u64,
    /// The range of these words in the whole filter.
    place: Range<usize>,
    /// The range of these cells in the whole filter.
    cells: Range<u64>,
    words: Words,
    newest: i64,
}

impl Shard {
    /// Part number `part` of `parts`, all of its cells empty.
    pub fn new(row: Row, part: u64, parts: u64) -> Result<Self, Error> {
        let (place, cells) = row.cut(part, parts)?;
        let words = Words::zeroed(place.len())?;
        let newest = match row.cells {
            Cells::Bits(_) => 0,
            Cells::Timers { .. } => NEVER,
        };
        Ok(Self { row, part, parts, place, cells, words, newest })
    }

    /// The shard with these [`words`](Self::words), when `newest` was its newest generation. Any words are legal.
    pub fn from_words(row: Row, part: u64, parts: u64, words: &[u64], newest: i64) -> Result<Self, Error> {
        let mut shard = Self::new(row, part, parts)?;
        if words.len() != shard.place.len() {
            let message = format!("this slice has {} words, got {}", shard.place.len(), words.len());
            return Err(Error::value(message));
        }
        match row.cells {
            Cells::Bits(_) => shard.check_generation(newest)?,
            Cells::Timers { .. } if newest == NEVER && words.iter().any(|&word| word != 0) => {
                return Err(Error::value(format!("timers are set, so newest cannot be {NEVER}")));
            }
            Cells::Timers { .. } => shard.newest = newest,
        }
        shard.words.to_mut()?.copy_from_slice(words);
        Ok(shard)
    }

    /// The cells of the whole filter.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Which part this is.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// The number of parts.
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// The numbers of its cells.
    pub fn cells(&self) -> Range<u64> {
        self.cells.clone()
    }

    /// Returns the words, to save.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// The newest generation it has heard of, or [`NEVER`].
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Share of its cells that are set and live.
    pub fn fill(&self) -> f64 {
        let (words, cells) = (self.words.as_slice(), self.cells.end - self.cells.start);
        match self.row.cells {
            Cells::Bits(_) => share_of_ones(words, cells),
            Cells::Timers { timers, .. } => timers.count(words, timers.rotation(self.newest, 0)) as f64 / cells as f64,
        }
    }

    /// Writes the generation in which each cell was last set, or [`NEVER`].
    pub fn read(&self, cells: &[u64], last: &mut [i64]) -> Result<(), Error> {
        self.check_cells(cells)?;
        let (words, start, newest) = (self.words.as_slice(), self.cells.start, self.newest);
        let (address, all) = (Address::of(words), 0..cells.len());
        match self.row.cells {
            Cells::Bits(_) => {
                let fetch = |cell: u64| address.fetch(((cell - start) / 64) as usize);
                in_flight(cells, all, fetch, |i, cell| {
                    let set = words[((cell - start) / 64) as usize] >> ((cell - start) % 64) & 1 == 1;
                    last[i] = if set { 0 } else { NEVER };
                });
            }
            Cells::Timers { timers, .. } => {
                let phase = timers.rotation(newest, 0);
                let fetch = |cell| timers.fetch(address, cell - start);
                in_flight(cells, all, fetch, |i, cell| {
                    let age = timers.age_of(words, cell - start, phase);
                    last[i] = age.map_or(NEVER, |age| newest.saturating_sub_unsigned(age));
                });
            }
        }
        Ok(())
    }

    /// Sets cells, `width` of them in each generation given, one after the other. Generations open as they come; one
    /// too late to be kept sets nothing.
    pub fn set(&mut self, cells: &[u64], width: usize, generations: &[i64]) -> Result<(), Error> {
        debug_assert_eq!(cells.len(), width * generations.len());
        self.check_cells(cells)?;
        generations.iter().try_for_each(|&generation| self.check_generation(generation))?;
        let (start, kept) = (self.cells.start, self.row.retained() as u64);
        for (i, &generation) in generations.iter().enumerate() {
            self.open(generation)?;
            let (cells, newest) = (&cells[i * width..(i + 1) * width], self.newest);
            let (words, age) = (self.words.to_mut()?, newest.abs_diff(generation));
            match self.row.cells {
                Cells::Bits(_) => {
                    for cell in cells.iter().map(|cell| cell - start) {
                        words[(cell / 64) as usize] |= 1 << (cell % 64);
                    }
                }
                Cells::Timers { timers, .. } if age <= kept => {
                    let phase = timers.rotation(newest, 0);
                    for cell in cells {
                        timers.raise(words, cell - start, phase, age);
                    }
                }
                Cells::Timers { .. } => {}
            }
        }
        Ok(())
    }

    /// Returns when each cell was last set, and the generation that the ages count back from: the newest here. Cells
    /// are counted from the first of this shard.
    pub fn ages<C: Copy + Into<u64>>(&self, cells: &[C]) -> Result<(Ages, i64), Error> {
        let start = self.cells.start;
        let mut last = fallible::zeroed(cells.len())?;
        self.read(&fallible::collected(cells.iter().map(|&cell| start.saturating_add(cell.into())))?, &mut last)?;
        Ok((Ages::of(&last, self.newest, self.row.retained() as u64)?, self.newest))
    }

    /// Returns when each cell was last set, as [`ages`](Self::ages), and sets it before the next is read: in generation
    /// `newest`, or as many before it as `behind` states. Then `newest` is the shard's newest, unless it has a later
    /// one.
    pub fn touch<C: Copy + Into<u64>>(
        &mut self,
        cells: &[C],
        newest: i64,
        behind: Option<&[u32]>,
    ) -> Result<(Ages, i64), Error> {
        let count = self.cells.end - self.cells.start;
        if let Some(&cell) = cells.iter().find(|&&cell| cell.into() >= count) {
            return Err(Error::value(format!("cell {} is not of this slice, which has {count}", cell.into())));
        }
        let of = |i: usize| behind.map_or(newest, |behind| newest.saturating_sub_unsigned(behind[i].into()));
        self.check_generation(newest)?;
        (0..cells.len()).try_for_each(|i| self.check_generation(of(i)))?;
        let kept = self.row.retained() as u64;
        let address = Address::of(self.words.as_slice());
        let row = self.row;
        let fetch = |i: usize| match (cells.get(i), row.cells) {
            (Some(&cell), Cells::Bits(_)) => address.fetch((cell.into() / 64) as usize),
            (Some(&cell), Cells::Timers { timers, .. }) => timers.fetch(address, cell.into()),
            _ => {}
        };
        (0..AHEAD).for_each(fetch);
        let phase_at = |newest| match row.cells {
            Cells::Timers { timers, .. } if newest != NEVER => Some(timers.rotation(newest, 0)),
            _ => None,
        };
        let (mut phase, mut last) = (phase_at(self.newest), fallible::zeroed(cells.len())?);
        for (i, &cell) in cells.iter().enumerate() {
            fetch(i + AHEAD);
            let (cell, generation): (u64, i64) = (cell.into(), of(i));
            if generation > self.newest {
                self.open(generation)?;
                phase = phase_at(self.newest);
            }
            let (words, newest) = (self.words.to_mut()?, self.newest);
            match (row.cells, phase) {
                (Cells::Timers { timers, .. }, Some(phase)) => {
                    let age = newest.abs_diff(generation);
                    let there = timers.age_of(words, cell, phase);
                    last[i] = there.map_or(NEVER, |age| newest.saturating_sub_unsigned(age));
                    if age <= kept {
                        timers.raise(words, cell, phase, age);
                    }
                }
                _ => {
                    let (word, bit) = (&mut words[(cell / 64) as usize], 1 << (cell % 64));
                    last[i] = if *word & bit == 0 { NEVER } else { 0 };
                    *word |= bit;
                }
            }
        }
        self.open(newest)?;
        // Before the earliest of these, the window, and what it has heard of since.
        let most = behind.into_iter().flatten().max().map_or(0, |&most| u64::from(most));
        let oldest = self.newest.abs_diff(newest).saturating_add(most).saturating_add(kept);
        Ok((Ages::of(&last, self.newest, oldest)?, self.newest))
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
        match cells.iter().find(|cell| !self.cells.contains(cell)) {
            None => Ok(()),
            Some(cell) => {
                let Range { start, end } = self.cells;
                Err(Error::value(format!("cell {cell} is not of this slice, whose cells are {start} .. {}", end - 1)))
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Moments, Window};
    use crate::filter::AnyFilter;
    use crate::shape::timing::TimingShape;

    fn key(i: u64) -> u64 {
        (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Blocks of 5 insertions; `blocks` is at most what the timestamps allow.
    fn filter(bpt: u32, blocks: u32) -> AnyFilter {
        let window = Window::Count { insertions: u64::from(blocks) * 5 + 1 };
        AnyFilter::new(TimingShape::new(3, bpt, blocks, 200, 1).unwrap(), window, 0).unwrap()
    }

    #[test]
    fn shards_age_as_the_whole_does() {
        for (bpt, blocks) in [(2, 1), (2, 2), (3, 6), (4, 3), (7, 90)] {
            let mut filter = filter(bpt, blocks);
            let row = Row::of(&filter).unwrap();
            let mut shards: Vec<_> = (0..4).map(|part| Shard::new(row, part, 4).unwrap()).collect();
            for i in 0..3000 {
                let mut cells = [0; 3];
                row.cells(&[key(i)], &mut cells);
                filter.engine_mut().insert(&[key(i)], Moments::Untimed).unwrap();
                for shard in &mut shards {
                    let here: Vec<u64> = cells.into_iter().filter(|cell| shard.cells().contains(cell)).collect();
                    shard.set(&here, here.len(), &[i as i64 / 5]).unwrap();
                }
                let words: Vec<u64> = shards.iter().flat_map(|shard| shard.words().to_vec()).collect();
                assert_eq!(words, filter.engine().words().as_slice(), "{bpt} {blocks} {i}");
            }
        }
    }

    #[test]
    fn a_late_cell_is_there_for_as_long_as_its_own_generation() {
        for (bpt, blocks) in [(2, 2), (3, 6), (4, 3)] {
            let mut shard = Shard::new(Row::of(&filter(bpt, blocks)).unwrap(), 0, 1).unwrap();
            let kept = i64::from(blocks);
            for late in 0..=kept + 1 {
                let now = shard.newest().max(0) + 100;
                shard.set(&[7], 1, &[now]).unwrap();
                shard.set(&[7, 8], 2, &[now - late]).unwrap();
                let mut last = [0; 2];
                for later in 0..=kept {
                    shard.set(&[], 0, &[now + later]).unwrap();
                    shard.read(&[7, 8], &mut last).unwrap();
                    assert_eq!(last[0], now, "lowered by one that came {late} late");
                    if later + late <= kept {
                        assert_eq!(last[1], now - late);
                    }
                }
                assert!(late <= kept || last[1] == NEVER, "{late} late is too late");
            }
        }
    }

    #[test]
    fn an_error_leaves_all_as_it_was() {
        let mut shard = Shard::new(Row::of(&filter(3, 6)).unwrap(), 1, 2).unwrap();
        let Range { start, end } = shard.cells();
        for (cells, generations) in [([start, end], [1, 2]), ([start - 1, start], [1, 2]), ([start, start], [1, NEVER])]
        {
            assert!(shard.set(&cells, 1, &generations).is_err());
        }
        assert_eq!((shard.newest(), shard.fill()), (NEVER, 0.0));
    }
}
