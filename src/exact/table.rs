//! A table of keys with stamps, in cache lines of three keys each, in memory of the keys that are alive.
//!
//! A key lies in its home, the line that its hash times the number of lines, over 2⁶⁴, is the number of; or, where that
//! was full, in the next line that was not. A line remembers the greatest stamp of the keys it has *passed on*: while
//! that is alive, a search goes on to the next line. So a key that has died need not be taken out. Its place is free,
//! and the line is full no longer.
//!
//! Searches for a key that is there and for one that is not take the same instructions, so neither is mispredicted.
//! (Tried instead, and slower: linear probing, and `hashbrown`, which waits for memory; both with all dead keys dropped
//! whenever the table was full.)

use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::memory::fallible;
use crate::memory::prefetch::Address;

/// Keys of a line.
const WIDTH: usize = 3;
/// Words of a line.
const WORDS: usize = size_of::<Line>() / 8;
/// Lines of a table of nobody knows how many keys, when it begins.
const FEWEST: usize = 256;
/// Keys whose table fits the caches even so.
const FEW: u64 = 1 << 17;

/// Three keys, in 64 bytes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line {
    hashes: [u64; WIDTH],
    /// The greatest stamp of a key that lies further on because this line was full.
    passed: u64,
    /// When the keys were last seen; 0 where there is none.
    stamps: [u64; WIDTH],
    _unused: u64,
}

/// A key that is asked for. No stamp is 0.
#[derive(Clone, Copy)]
pub struct Key {
    pub hash: u64,
    pub stamp: u64,
    /// The least stamp that was lately.
    pub lately: u64,
    /// The least stamp that may be lately for this or any later key: those before it are dead.
    pub alive: u64,
    /// Whether a key that was seen lately is stamped anew.
    pub renewed: bool,
}

/// Keys by their hashes, each with a stamp.
pub struct Table {
    lines: Vec<Line>,
    /// The keys that there may be besides the alive ones of the last count; none where their number is known
    /// beforehand.
    taken: Option<usize>,
}

impl Table {
    /// A table for at most `alive` keys alive at a time, or for nobody knows how many. Half of its places stay free, so
    /// that one key in five finds its home full; or two thirds where they are few, for one in twelve. Pages of memory
    /// that no key comes to are not used.
    pub fn new(alive: Option<u64>) -> Result<Self, Error> {
        let lines = match alive {
            Some(alive @ ..=FEW) => alive as usize + 2,
            Some(alive) => usize::try_from(alive / 3 * 2).unwrap_or(usize::MAX).saturating_add(2),
            None => FEWEST,
        };
        Ok(Self { lines: fallible::zeroed(lines)?, taken: alive.is_none().then_some(0) })
    }

    /// Makes room for new keys, at least one, and returns for how many. Keys with a stamp before `alive` are dead.
    pub fn room(&mut self, alive: u64) -> Result<usize, Error> {
        let Some(taken) = self.taken else { return Ok(usize::MAX) };
        // At two thirds of the places, one key in three finds its home full.
        let limit = |table: &Self| table.lines.len() * 2;
        if taken >= limit(self) {
            let count = self.lines.iter().flat_map(|line| line.stamps).filter(|&stamp| stamp >= alive).count();
            self.taken = Some(count);
            // Else it would be counted again soon: now a line and a half is looked at for each key that comes.
            if count >= self.lines.len() / 3 * 4 {
                self.grow(alive)?;
            }
        }
        Ok(limit(self) - self.taken.unwrap_or(0))
    }

    /// Takes the keys that are alive to a table of twice as many lines.
    fn grow(&mut self, alive: u64) -> Result<(), Error> {
        let more = fallible::zeroed(self.lines.len().saturating_mul(2))?;
        let less = std::mem::replace(&mut self.lines, more);
        self.taken = Some(0);
        for line in less {
            for (hash, stamp) in line.hashes.into_iter().zip(line.stamps).filter(|&(_, stamp)| stamp >= alive) {
                self.see(Key { hash, stamp, lately: 1, alive, renewed: true });
            }
        }
        Ok(())
    }

    /// What is needed to [fetch](Homes::fetch) keys before they are looked for.
    pub fn homes(&self) -> Homes {
        Homes { address: Address::of(bytemuck::cast_slice(&self.lines)), lines: self.lines.len() }
    }

    /// Whether a key was seen lately. Then stamps it, unless its stamp is later, or it was and is not `renewed`. There
    /// must be [room](Self::room).
    #[inline(always)]
    pub fn see(&mut self, key: Key) -> bool {
        let home = home(key.hash, self.lines.len());
        let line = &self.lines[home];
        let (own, free) = (line.places_of(key.hash), line.places_before(key.alive));
        if own | free == 0 || own == 0 && line.passed >= key.alive {
            return self.see_further(key);
        }
        let place = if own == 0 { free } else { own };
        self.stamp(key, home, place, own != 0)
    }

    /// The same for a key that does not lie in its home, and for which there may be no place there.
    #[cold]
    #[inline(never)]
    fn see_further(&mut self, key: Key) -> bool {
        let first = home(key.hash, self.lines.len());
        let (mut at, mut found, mut room) = (first, None, None);
        while found.is_none() {
            let line = &self.lines[at];
            let (own, free) = (line.places_of(key.hash), line.places_before(key.alive));
            found = (own != 0).then_some((at, own));
            room = room.or((free != 0).then_some((at, free)));
            at = self.next(at);
            if room.is_some() && line.passed < key.alive || at == first {
                break;
            }
        }
        let (line, place) = found.or(room).expect("there is room");
        let seen = self.stamp(key, line, place, found.is_some());
        let stamp = self.lines[line].stamps[place.trailing_zeros() as usize];
        at = first;
        while at != line {
            self.lines[at].passed = self.lines[at].passed.max(stamp);
            at = self.next(at);
        }
        seen
    }

    /// Stamps a key in the first of these places of a line, its own or a free one; says whether it was seen lately.
    #[inline(always)]
    fn stamp(&mut self, key: Key, line: usize, places: u8, own: bool) -> bool {
        let line = &mut self.lines[line];
        let place = (places.trailing_zeros() as usize).min(WIDTH - 1);
        let before = if own { line.stamps[place] } else { 0 };
        let seen = before >= key.lately;
        line.hashes[place] = key.hash;
        line.stamps[place] = if seen && !key.renewed { before } else { before.max(key.stamp) };
        if let Some(taken) = &mut self.taken {
            *taken += usize::from(before < key.alive);
        }
        seen
    }

    fn next(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }

    /// Bytes of its lines.
    pub fn nbytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

impl Line {
    /// The places of this hash: a bit each. Places that were never taken have the hash 0; to the one key of that hash
    /// they are as good as its own, since it goes no further than to them.
    #[inline(always)]
    fn places_of(&self, hash: u64) -> u8 {
        let [first, second, third] = self.hashes;
        bits(first == hash, second == hash, third == hash)
    }

    /// The places whose stamps lie before `alive`.
    #[inline(always)]
    fn places_before(&self, alive: u64) -> u8 {
        let [first, second, third] = self.stamps;
        bits(first < alive, second < alive, third < alive)
    }
}

#[inline(always)]
fn bits(first: bool, second: bool, third: bool) -> u8 {
    u8::from(first) | u8::from(second) << 1 | u8::from(third) << 2
}

/// Where the homes of keys lie.
#[derive(Clone, Copy)]
pub struct Homes {
    address: Address,
    lines: usize,
}

impl Homes {
    /// Prefetches the home of a key.
    #[inline(always)]
    pub fn fetch(self, hash: u64) {
        self.address.fetch(home(hash, self.lines) * WORDS);
    }
}

/// The line in which a key is first looked for.
#[inline(always)]
fn home(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}
