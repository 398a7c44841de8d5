//! A fair sample of all keys, with the exact insertion at which each was last seen.
//!
//! The sample is by hash: it has every insertion of a key or none, so each gives an age. It begins with all keys and is
//! halved whenever the table is full, so a stream of few keys is followed whole.

use std::collections::TryReserveError;

/// Returns the age beyond which ages are not distinguished.
pub fn horizon(half_life: u64) -> u64 {
    half_life.saturating_mul(16)
}

/// A table with linear probing: hash and number of the last insertion, 0 where a place is free.
#[derive(Debug, Clone)]
pub struct Sample {
    slots: Vec<[u64; 2]>,
    kept: usize,
}

impl Sample {
    /// Creates an empty table of `bytes` bytes, at least 64.
    pub fn new(bytes: usize) -> Result<Self, TryReserveError> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(bytes / 16)?;
        slots.resize(bytes / 16, [0, 0]);
        Ok(Self { slots, kept: 0 })
    }

    /// Returns the table as it is saved.
    pub fn slots(&self) -> &[[u64; 2]] {
        &self.slots
    }

    /// Returns the table, to load a saved one into; [`recount`](Self::recount) then validates it.
    pub fn slots_mut(&mut self) -> &mut [[u64; 2]] {
        &mut self.slots
    }

    /// Returns whether a loaded table has room left, so that probing ends, and contains no insertion after the last.
    pub fn recount(&mut self, inserted: u64) -> bool {
        self.kept = self.slots.iter().filter(|[_, last]| *last > 0).count();
        self.kept <= self.most() && self.slots.iter().all(|[_, last]| *last <= inserted)
    }

    /// Returns the most keys to hold: three quarters of the places, where a search reads four of them on average or
    /// fewer.
    fn most(&self) -> usize {
        self.slots.len() / 4 * 3
    }

    /// Sets the last insertion of a key to `now`; returns the one before.
    pub fn renew(&mut self, hash: u64, now: u64) -> Option<u64> {
        let place = self.place(hash);
        let last = std::mem::replace(&mut self.slots[place], [hash, now])[1];
        self.kept += usize::from(last == 0);
        (last > 0).then_some(last)
    }

    /// Returns the place where a key is, or belongs.
    fn place(&self, hash: u64) -> usize {
        // The first bits are equal for all keys of the sample.
        let mut place = crate::memory::bits::scale(hash.rotate_left(32), self.slots.len() as u64) as usize;
        while self.slots[place][1] > 0 && self.slots[place][0] != hash {
            place = if place + 1 == self.slots.len() { 0 } else { place + 1 };
        }
        place
    }

    /// Forgets keys if the table is full: those older than `oldest`, then every other key until half of it is free.
    /// Returns the new level: how many zeros the hashes of the sample begin with.
    pub fn make_room(&mut self, mut level: u64, oldest: u64) -> u64 {
        if self.kept < self.most() {
            return level;
        }
        let mut kept: Vec<[u64; 2]> =
            self.slots.iter().copied().filter(|&[_, last]| last > 0 && last >= oldest).collect();
        while kept.len() > self.slots.len() / 2 && level < 63 {
            level += 1;
            kept.retain(|[hash, _]| u64::from(hash.leading_zeros()) >= level);
        }
        self.slots.fill([0, 0]);
        self.kept = kept.len();
        for slot in kept {
            let place = self.place(slot[0]);
            self.slots[place] = slot;
        }
        level
    }
}
