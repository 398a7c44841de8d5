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
/// Number of lines that a step of a sweep reads, some 20 microseconds, and of keys that it moves.
const STEP: [usize; 2] = [1024, 256];
/// The most bytes that a step of a sweep reads and writes.
pub const BYTES_OF_STEP: usize = 64 * (STEP[0] + STEP[1]);
/// Number of keys that may be inserted between two steps. The lines that are left free at the beginning of a sweep are
/// enough for it.
const BETWEEN: usize = 64;
/// Number of keys up to which a sparse table still fits the caches.
const MAX_CACHED_KEYS: u64 = 1 << 17;

/// A key to look up and insert. No stamp is 0.
#[derive(Clone, Copy)]
pub struct Key<S> {
    pub hash: u64,
    pub stamp: S,
    /// The least stamp within the window.
    pub window_start: S,
    /// The least stamp that may be within the window for this key or a later one: keys with an earlier stamp are dead.
    pub alive: S,
    /// Whether a key that was seen within the window gets a new stamp.
    pub refresh: bool,
}

/// A hash table from hashes to stamps.
#[derive(Clone)]
pub struct StampTable<L> {
    words: Words,
    /// How many keys there are, dead ones since the last count included; `None` if their number is known beforehand.
    taken: Option<usize>,
    sweep: Sweep,
    /// The latest stamp when the last sweep ended: when those keys are dead, the table may be too large.
    swept: u64,
    line: PhantomData<L>,
}

/// A pass over the lines of a table in steps, so that no call waits for it: the keys alive are counted and, if the
/// table is then too small or too large for them, moved to another one. `next` is the next line.
#[derive(Clone)]
enum Sweep {
    None,
    /// `alive` keys were counted, and `before` were taken when the count began.
    Count {
        next: usize,
        alive: usize,
        before: usize,
    },
    /// The lines from `next` on have yet to be moved from the old table. A line whose keys have been moved leads on to
    /// later lines as before.
    Move {
        old: Words,
        next: usize,
    },
}

impl<L: StampLine> StampTable<L> {
    /// The bytes of a new table that grows as keys arrive.
    pub const LEAST_BYTES: u64 = 64 * FEWEST as u64;

    /// Creates a table for at most `alive` keys alive at a time. Half of the places stay free, and one key in ten finds
    /// its home full, at five keys to a line. For few keys two thirds stay free, and one in fifty does. Pages of memory
    /// that no key reaches are not used.
    pub fn of(alive: u64) -> Result<Self, Error> {
        Self::of_lines(Self::lines_for(alive), None)
    }

    fn lines_for(alive: u64) -> u64 {
        let places = if alive <= MAX_CACHED_KEYS { 3 * alive } else { alive.saturating_mul(2) };
        (places / L::KEYS as u64).saturating_add(2)
    }

    /// Returns the bytes of a table for at most `alive` keys alive at a time.
    pub fn bytes_of(alive: u64) -> u64 {
        Self::lines_for(alive).saturating_mul(64)
    }

    /// Creates a table that grows as keys arrive.
    pub fn growing() -> Result<Self, Error> {
        Self::of_lines(FEWEST as u64, Some(0))
    }

    fn of_lines(lines: u64, taken: Option<usize>) -> Result<Self, Error> {
        let words = usize::try_from(lines).unwrap_or(usize::MAX).saturating_mul(WORDS);
        Ok(Self { words: Words::zeroed(words)?, taken, sweep: Sweep::None, swept: 0, line: PhantomData })
    }

    /// Makes room for at least one new key, and returns for how many there is room. Keys with a stamp before `alive`
    /// are dead, and `latest` is the latest stamp.
    pub fn room(&mut self, alive: L::Stamp, latest: L::Stamp) -> Result<usize, Error> {
        let Some(taken) = self.taken else { return Ok(usize::MAX) };
        if matches!(self.sweep, Sweep::None) {
            // A quarter of the limit is left for the keys that are inserted meanwhile.
            let is_full = taken >= self.limit() / 4 * 3;
            let is_idle = self.lines() > FEWEST && alive.into() > self.swept;
            if !is_full && !is_idle {
                return Ok(self.limit() / 4 * 3 - taken);
            }
            self.sweep = Sweep::Count { next: 0, alive: 0, before: taken };
        }
        loop {
            let stepped = self.step(alive, latest);
            let room = self.limit().saturating_sub(self.taken.unwrap_or(0));
            if room > 0 {
                // Without memory for more, the keys that there is room for can still be inserted.
                return Ok(room.min(BETWEEN));
            }
            stepped?;
        }
    }

    /// Returns how many keys there may be. At two thirds of the places, with three keys to a line, one key in three
    /// finds its home full.
    fn limit(&self) -> usize {
        self.lines() * L::KEYS * 2 / 3
    }

    /// Takes a step of the sweep. A call that returns an error has changed nothing.
    fn step(&mut self, alive: L::Stamp, latest: L::Stamp) -> Result<(), Error> {
        let [lines, mut keys] = STEP;
        match &mut self.sweep {
            Sweep::None => Ok(()),
            &mut Sweep::Count { next, alive: counted, before } => {
                let end = self.lines().min(next + lines);
                let stamps = self.as_lines()[next..end].iter().flat_map(|line| line.stamps());
                let counted = counted + stamps.filter(|&&stamp| stamp >= alive).count();
                self.sweep = Sweep::Count { next: end, alive: counted, before };
                if end == self.lines() {
                    self.resize(counted + self.taken.unwrap_or(0) - before, latest)
                } else {
                    Ok(())
                }
            }
            Sweep::Move { .. } => {
                let mut open = self.open()?;
                for _ in 0..lines {
                    match open.move_line(alive) {
                        Some(moved) => keys = keys.saturating_sub(moved),
                        None => {
                            (self.sweep, self.swept) = (Sweep::None, latest.into());
                            return Ok(());
                        }
                    }
                    if keys == 0 {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Begins to move the keys where a count ended: to twice as many lines if more than half of the limit are taken, or
    /// to as few as `keys` and those that come meanwhile need, if these are half as many or fewer.
    fn resize(&mut self, keys: usize, latest: L::Stamp) -> Result<(), Error> {
        let (lines, fewer) = (self.lines(), FEWEST.max(keys + self.lines() / 8));
        let resized = match keys > self.limit() / 2 {
            true => 2 * lines,
            false if fewer <= lines / 2 => fewer,
            false => {
                (self.taken, self.sweep, self.swept) = (Some(keys), Sweep::None, latest.into());
                return Ok(());
            }
        };
        let other = Self::of_lines(resized as u64, Some(0))?;
        let old = std::mem::replace(&mut self.words, other.words);
        (self.taken, self.sweep) = (Some(0), Sweep::Move { old, next: 0 });
        Ok(())
    }

    /// Returns the kind and the position of the sweep.
    #[cfg(test)]
    pub fn sweep_state(&self) -> (u8, usize) {
        match self.sweep {
            Sweep::None => (0, 0),
            Sweep::Count { next, .. } => (1, next),
            Sweep::Move { next, .. } => (2, next),
        }
    }

    /// Returns the lines that have yet to be moved.
    fn old_lines(&self) -> &[L] {
        match &self.sweep {
            Sweep::Move { old, .. } => bytemuck::cast_slice(old.as_slice()),
            _ => &[],
        }
    }

    /// Returns the stamp of a key, or 0 if it is not in the table. Keys with a stamp before `alive` are dead.
    #[inline(always)]
    pub fn stamp_of(&self, hash: u64, alive: L::Stamp) -> L::Stamp {
        let stamp = |lines: &[L]| {
            let (line, place) = find(lines, hash, alive)?;
            Some(lines[line].stamps()[place])
        };
        let found = stamp(self.as_lines());
        let found = if let Sweep::Move { .. } = self.sweep { found.or_else(|| stamp(self.old_lines())) } else { found };
        found.unwrap_or(L::Stamp::of(0))
    }

    /// Returns hash and stamp of each key, dead ones included, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = (u64, L::Stamp)> + '_ {
        let lines = self.as_lines().iter().chain(self.old_lines());
        lines.flat_map(|line| line.hashes().iter().copied().zip(line.stamps().iter().copied()))
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
        let old = match &mut self.sweep {
            Sweep::Move { old, next } => Some((bytemuck::cast_slice_mut(old.to_mut()?), next)),
            _ => None,
        };
        Ok(Open { lines: bytemuck::cast_slice_mut(self.words.to_mut()?), taken: self.taken.as_mut(), old })
    }

    fn lines(&self) -> usize {
        self.words.as_slice().len() / WORDS
    }

    /// Returns the lines, without those that have yet to be moved.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the bytes of the lines.
    pub fn nbytes(&self) -> usize {
        size_of_val(self.words.as_slice()) + size_of_val(self.old_lines())
    }
}

/// The lines of a table, borrowed for lookups and insertions.
pub struct Open<'a, L> {
    lines: &'a mut [L],
    taken: Option<&'a mut usize>,
    /// The lines of the old table, and the next to be moved.
    old: Option<(&'a mut [L], &'a mut usize)>,
}

impl<L: StampLine> Open<'_, L> {
    /// Returns the positions of homes, to [prefetch](Homes::prefetch) keys before they are looked up.
    pub fn homes(&self) -> Homes {
        Homes { address: Address::of(bytemuck::cast_slice(self.lines)), lines: self.lines.len() }
    }

    /// Returns whether a key was seen within the window, and stamps it. A later stamp stays, and so does that of a key
    /// that was seen and gets no new one. There must be [room](StampTable::room).
    #[inline(always)]
    pub fn seen(&mut self, key: Key<L::Stamp>) -> bool {
        if self.old.is_some() {
            self.fetch(key.hash, key.alive);
        }
        self.put(key)
    }

    /// Moves the key of a hash to the new table, if it lies in the old one and its stamp is not before `alive`.
    #[cold]
    #[inline(never)]
    fn fetch(&mut self, hash: u64, alive: L::Stamp) {
        let old = self.old.as_ref().and_then(|(old, _)| find(old, hash, alive));
        if let Some((line, place)) = old {
            self.move_key(line, place, alive);
        }
    }

    /// Moves the key at a place of the old table to the new one, with its stamp. Returns false if it is dead, and drops
    /// it.
    #[inline(always)]
    fn move_key(&mut self, line: usize, place: usize, alive: L::Stamp) -> bool {
        let Some((old, _)) = &mut self.old else { return false };
        let (hash, stamp) = (old[line].hashes()[place], old[line].stamps()[place]);
        // The hash stays, so that the search for a key of hash 0 is not misled.
        old[line].write(place, hash, L::Stamp::of(0));
        if stamp >= alive {
            self.put(Key { hash, stamp, window_start: stamp, alive, refresh: true });
        }
        stamp >= alive
    }

    /// Moves the keys of the next line of the old table, and returns how many; `None` if there is no more line.
    fn move_line(&mut self, alive: L::Stamp) -> Option<usize> {
        let (old, next) = self.old.as_mut()?;
        let line = **next;
        if line == old.len() {
            return None;
        }
        **next += 1;
        Some((0..L::KEYS).filter(|&place| self.move_key(line, place, alive)).count())
    }

    /// Looks up and stamps a key in the new table.
    #[inline(always)]
    fn put(&mut self, key: Key<L::Stamp>) -> bool {
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
        let seen = before >= key.window_start;
        line.write(place, key.hash, if seen && !key.refresh { before } else { before.max(key.stamp) });
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

/// Returns line and place of a key. Keys with a stamp before `alive` are dead.
#[inline(always)]
fn find<L: StampLine>(lines: &[L], hash: u64, alive: L::Stamp) -> Option<(usize, usize)> {
    let first = home(hash, lines.len());
    let mut at = first;
    loop {
        let line = &lines[at];
        let own = line.places_of(hash);
        if own != 0 {
            return Some((at, own.trailing_zeros() as usize));
        }
        let next = if at + 1 == lines.len() { 0 } else { at + 1 };
        if line.passed() < alive || next == first {
            return None;
        }
        at = next;
    }
}

/// Returns the line in which the search for a key begins.
#[inline(always)]
fn home(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}
