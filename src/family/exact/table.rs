//! A table of keys with stamps: a few keys to a cache line, in memory proportional to the keys that are alive.
//!
//! The home of a key is line ⌊hash · lines / 2⁶⁴⌋. A key lies in its home or, if that was full, in the next line that
//! was not. A line stores the greatest stamp of the keys it has *passed on*: while that is alive, a search goes on to
//! the next line. So a dead key need not be removed: its place is free, and the line is no longer full.
//!
//! Searches for a key that is there and for one that is not take the same instructions, so neither is mispredicted.
//! (We tried linear probing, and `hashbrown`, which waits for memory, both with all dead keys dropped whenever the
//! table was full. Both were slower.)

use std::marker::PhantomData;

use super::line::{Stamp, StampLine};
use crate::Error;
use crate::memory::Words;
use crate::memory::prefetch::Address;

/// Number of 64-bit words in a line.
const WORDS: usize = 8;
/// Number of lines of a new table that grows as keys arrive.
const FEWEST: usize = 256;
/// Number of keys up to which a sparse table still fits the caches.
const MAX_CACHED_KEYS: u64 = 1 << 17;

/// A key to look up and insert. No stamp is 0.
#[derive(Clone, Copy)]
pub struct Key<S> {
    pub hash: u64,
    pub stamp: S,
    /// The least stamp within the window.
    pub lately: S,
    /// The least stamp that may be within the window for this key or a later one: keys with an earlier stamp are dead.
    pub alive: S,
    /// Whether a key that was seen within the window gets a new stamp.
    pub renewed: bool,
}

/// A hash table from hashes to stamps.
#[derive(Clone)]
pub struct StampTable<L> {
    words: Words,
    /// How many keys there may be besides those alive at the last count; `None` if their number is known beforehand.
    taken: Option<usize>,
    line: PhantomData<L>,
}

impl<L: StampLine> StampTable<L> {
    /// Creates a table for at most `alive` keys alive at a time. Half of the places stay free, and one key in ten finds
    /// its home full, at five keys to a line. For few keys two thirds stay free, and one in fifty does. Pages of memory
    /// that no key reaches are not used.
    pub fn of(alive: u64) -> Result<Self, Error> {
        let places = if alive <= MAX_CACHED_KEYS { 3 * alive } else { alive.saturating_mul(2) };
        Self::of_lines((places / L::KEYS as u64).saturating_add(2), None)
    }

    /// Creates a table that grows as keys arrive.
    pub fn growing() -> Result<Self, Error> {
        Self::of_lines(FEWEST as u64, Some(0))
    }

    fn of_lines(lines: u64, taken: Option<usize>) -> Result<Self, Error> {
        let words = usize::try_from(lines).unwrap_or(usize::MAX).saturating_mul(WORDS);
        Ok(Self { words: Words::zeroed(words)?, taken, line: PhantomData })
    }

    /// Makes room for at least one new key, and returns for how many there is room. Keys with a stamp before `alive`
    /// are dead.
    pub fn room(&mut self, alive: L::Stamp) -> Result<usize, Error> {
        let Some(taken) = self.taken else { return Ok(usize::MAX) };
        // At two thirds of the places, with three keys to a line, one key in three finds its home full.
        let limit = |lines: usize| lines * L::KEYS * 2 / 3;
        let lines = self.lines();
        if taken >= limit(lines) {
            let count = self.entries().filter(|&(_, stamp)| stamp >= alive).count();
            self.taken = Some(count);
            // Otherwise the keys would be counted again soon: this reads one and a half lines for each new key.
            if count >= limit(lines) / 3 * 2 {
                self.grow(alive)?;
            }
        }
        Ok(limit(self.lines()) - self.taken.unwrap_or(0))
    }

    /// Moves the keys that are alive to a table of twice as many lines.
    fn grow(&mut self, alive: L::Stamp) -> Result<(), Error> {
        let mut more = Self::of_lines(2 * self.lines() as u64, Some(0))?;
        let mut open = more.open()?;
        for (hash, stamp) in self.entries().filter(|&(_, stamp)| stamp >= alive) {
            open.seen(Key { hash, stamp, lately: L::Stamp::of(1), alive, renewed: true });
        }
        *self = more;
        Ok(())
    }

    /// Returns the stamp of a key, or 0 if it is not in the table. Keys with a stamp before `alive` are dead.
    #[inline(always)]
    pub fn stamp_of(&self, hash: u64, alive: L::Stamp) -> L::Stamp {
        let lines = self.as_lines();
        let first = home(hash, lines.len());
        let mut at = first;
        loop {
            let line = &lines[at];
            let own = line.places_of(hash);
            if own != 0 {
                return line.stamps()[own.trailing_zeros() as usize];
            }
            at = if at + 1 == lines.len() { 0 } else { at + 1 };
            if line.passed() < alive || at == first {
                return L::Stamp::of(0);
            }
        }
    }

    /// Returns hash and stamp of each key, dead ones included, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = (u64, L::Stamp)> + '_ {
        self.as_lines().iter().flat_map(|line| line.hashes().iter().copied().zip(line.stamps().iter().copied()))
    }

    /// Returns the positions of homes, to [prefetch](Homes::prefetch) keys before they are looked up.
    pub fn homes(&self) -> Homes {
        Homes { address: Address::of(self.words.as_slice()), lines: self.lines() }
    }

    fn as_lines(&self) -> &[L] {
        bytemuck::cast_slice(self.words.as_slice())
    }

    /// Makes all stamps earlier by `by`.
    pub fn rebase(&mut self, by: L::Stamp) -> Result<(), Error> {
        self.open()?.lines.iter_mut().for_each(|line| line.rebase(by));
        Ok(())
    }

    /// Returns the lines for lookups and insertions.
    pub fn open(&mut self) -> Result<Open<'_, L>, Error> {
        Ok(Open { lines: bytemuck::cast_slice_mut(self.words.to_mut()?), taken: self.taken.as_mut() })
    }

    fn lines(&self) -> usize {
        self.words.as_slice().len() / WORDS
    }

    /// Returns the bytes of the lines.
    pub fn nbytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }
}

/// The lines of a table, borrowed for lookups and insertions.
pub struct Open<'a, L> {
    lines: &'a mut [L],
    taken: Option<&'a mut usize>,
}

impl<L: StampLine> Open<'_, L> {
    /// Returns the positions of homes, to [prefetch](Homes::prefetch) keys before they are looked up.
    pub fn homes(&self) -> Homes {
        Homes { address: Address::of(bytemuck::cast_slice(self.lines)), lines: self.lines.len() }
    }

    /// Returns whether a key was seen within the window, and stamps it. A later stamp stays, and so does that of a key
    /// that was seen and is not `renewed`. There must be [room](StampTable::room).
    #[inline(always)]
    pub fn seen(&mut self, key: Key<L::Stamp>) -> bool {
        let home = home(key.hash, self.lines.len());
        let line = &self.lines[home];
        let (own, free) = (line.places_of(key.hash), line.places_before(key.alive));
        if own | free == 0 || own == 0 && line.passed() >= key.alive {
            return self.seen_beyond_home(key);
        }
        let place = if own == 0 { free } else { own };
        self.stamp(key, home, place, own != 0)
    }

    /// Looks up and stamps a key that is not in its home line, which may be full.
    #[cold]
    #[inline(never)]
    fn seen_beyond_home(&mut self, key: Key<L::Stamp>) -> bool {
        let first = home(key.hash, self.lines.len());
        let (mut at, mut found, mut room) = (first, None, None);
        while found.is_none() {
            let line = &self.lines[at];
            let (own, free) = (line.places_of(key.hash), line.places_before(key.alive));
            found = (own != 0).then_some((at, own));
            room = room.or((free != 0).then_some((at, free)));
            at = self.next(at);
            if room.is_some() && line.passed() < key.alive || at == first {
                break;
            }
        }
        let (line, places) = found.or(room).expect("there is room");
        let seen = self.stamp(key, line, places, found.is_some());
        let stamp = self.lines[line].stamps()[places.trailing_zeros() as usize];
        at = first;
        while at != line {
            self.lines[at].pass(stamp);
            at = self.next(at);
        }
        seen
    }

    /// Stamps a key in the first of some `places` of a line, its own or a free one. Returns whether it was seen within
    /// the window.
    #[inline(always)]
    fn stamp(&mut self, key: Key<L::Stamp>, line: usize, places: u8, own: bool) -> bool {
        let line = &mut self.lines[line];
        let place = (places.trailing_zeros() as usize).min(L::KEYS - 1);
        let before = if own { line.stamps()[place] } else { L::Stamp::of(0) };
        let seen = before >= key.lately;
        line.write(place, key.hash, if seen && !key.renewed { before } else { before.max(key.stamp) });
        if let Some(taken) = &mut self.taken {
            **taken += usize::from(before < key.alive);
        }
        seen
    }

    fn next(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }
}

/// The positions of the home lines of keys.
#[derive(Clone, Copy)]
pub struct Homes {
    address: Address,
    lines: usize,
}

impl Homes {
    /// Prefetches the home of a key.
    #[inline(always)]
    pub fn prefetch(self, hash: u64) {
        self.address.fetch(home(hash, self.lines) * WORDS);
    }
}

/// Returns the line in which the search for a key begins.
#[inline(always)]
fn home(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}
