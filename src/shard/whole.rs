//! A shard that is a whole filter, with keys by their hashes: a node of a Bloom tree (paper 4, definition 5).
//!
//! The keys of a batch are processed in order. A key is new as of the latest generation up to it if one of its cells is
//! not live then.

use super::row::Cells;
use super::{NEVER, Shard};
use crate::Error;
use crate::memory::fallible;
use crate::memory::prefetch::Address;

/// Number of keys whose cells are prefetched together.
const TOGETHER: usize = 16;

impl Shard {
    /// Returns for each key when the oldest of its cells was set, or [`NEVER`] if it is new. Sets nothing.
    pub fn oldest(&self, hashes: &[u64], generations: &[i64]) -> Result<Vec<i64>, Error> {
        self.check_keys(hashes, generations)?;
        let (mut oldest, mut as_of) = (fallible::with_room(hashes.len())?, self.newest);
        let mut cells = self.room(hashes)?;
        for (hashes, generations) in hashes.chunks(TOGETHER).zip(generations.chunks(TOGETHER)) {
            for (cells, &generation) in self.locate(hashes, &mut cells).zip(generations) {
                as_of = as_of.max(generation);
                oldest.push(self.oldest_of(cells, as_of));
            }
        }
        Ok(oldest)
    }

    /// Returns for each key whether it was there, and sets its cells in its generation if not.
    pub fn duplicated(&mut self, hashes: &[u64], generations: &[i64]) -> Result<Vec<bool>, Error> {
        self.check_keys(hashes, generations)?;
        let (mut seen, mut as_of) = (fallible::with_room(hashes.len())?, self.newest);
        let mut cells = self.room(hashes)?;
        for (hashes, generations) in hashes.chunks(TOGETHER).zip(generations.chunks(TOGETHER)) {
            for (cells, &generation) in self.locate(hashes, &mut cells).zip(generations) {
                as_of = as_of.max(generation);
                seen.push(self.oldest_of(cells, as_of) != NEVER);
                if seen.last() == Some(&false) {
                    self.set(cells, generation)?;
                }
            }
        }
        Ok(seen)
    }

    /// Sets the cells of keys, each in its generation.
    pub fn insert(&mut self, hashes: &[u64], generations: &[i64]) -> Result<(), Error> {
        self.check_keys(hashes, generations)?;
        let mut cells = self.room(hashes)?;
        for (hashes, generations) in hashes.chunks(TOGETHER).zip(generations.chunks(TOGETHER)) {
            for (cells, &generation) in self.locate(hashes, &mut cells).zip(generations) {
                self.set(cells, generation)?;
            }
        }
        Ok(())
    }

    /// Returns room for the cells of keys that are prefetched together.
    fn room(&self, hashes: &[u64]) -> Result<Vec<u64>, Error> {
        fallible::zeroed(TOGETHER.min(hashes.len()) * self.row.k())
    }

    /// Writes the cells of keys, and prefetches them; returns those of each key.
    fn locate<'a>(&self, hashes: &[u64], room: &'a mut [u64]) -> std::slice::ChunksExact<'a, u64> {
        let (address, all) = (Address::of(self.words.as_slice()), self.row.cells);
        let cells = &mut room[..hashes.len() * self.row.k()];
        self.row.cells(hashes, cells);
        cells.iter().for_each(|&cell| all.fetch(address, cell));
        cells.chunks_exact(self.row.k())
    }

    /// Returns when the oldest of a key's cells was set, or [`NEVER`] if one is not live.
    fn oldest_of(&self, cells: &[u64], as_of: i64) -> i64 {
        let (words, rotation, kept) = (self.words.as_slice(), self.rotation(), self.row.retained());
        let mut oldest = i64::MAX;
        for &cell in cells {
            let last = self.row.cells.last(words, cell, self.newest, rotation);
            if last == NEVER || as_of.saturating_sub(last) > kept {
                return NEVER;
            }
            oldest = oldest.min(last);
        }
        oldest
    }

    /// Sets cells in a generation, which opens if it is new. A generation that is too old to be retained sets nothing.
    fn set(&mut self, cells: &[u64], generation: i64) -> Result<(), Error> {
        self.open(generation)?;
        let (all, rotation, age) = (self.row.cells, self.rotation(), self.newest.abs_diff(generation));
        let (kept, words) = (self.row.retained() as u64, self.words.to_mut()?);
        match all {
            Cells::Bits(_) => cells.iter().for_each(|&cell| words[(cell / 64) as usize] |= 1 << (cell % 64)),
            Cells::Timers { timers, .. } if age <= kept => {
                cells.iter().for_each(|&cell| timers.raise(words, cell, rotation, age));
            }
            Cells::Timers { .. } => {}
        }
        Ok(())
    }

    fn check_keys(&self, hashes: &[u64], generations: &[i64]) -> Result<(), Error> {
        if self.cells != (0..self.row.count()) {
            return Err(Error::value("this slice is part of a filter, and keys have cells in other parts too"));
        }
        if hashes.len() != generations.len() {
            let message = format!("there are {} keys and {} generations", hashes.len(), generations.len());
            return Err(Error::value(message));
        }
        generations.iter().try_for_each(|&generation| self.check_generation(generation))
    }
}
