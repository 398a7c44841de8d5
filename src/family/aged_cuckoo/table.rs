//! Looks up and writes entries, and makes room for them.

use std::sync::atomic::Ordering::Release;
use std::sync::atomic::fence;

use super::line::{Line, Now, Tags, reject, rejection};
use super::pages::{Pages, Place};
use super::shape::LineFormat;
use super::vectors::ByteVectors;
use crate::instructions::Portable;

/// Number of moves that make room for a key, at most.
const MOVES: u32 = 2;

/// The open epoch and the pages, for calls of one format and one instruction set.
#[derive(Clone, Copy)]
pub struct Table<'a, M> {
    pub format: LineFormat,
    pub machine: M,
    pub pages: &'a Pages,
    pub now: Now,
    /// Whether the key is none of a batch.
    pub alone: bool,
}

impl<'a, M: ByteVectors> Table<'a, M> {
    /// Returns whether the lines contain a key.
    #[inline(always)]
    pub fn contains(self, lines: &[Line], place: Place) -> bool {
        let pair = [&lines[place.first as usize], &lines[place.second as usize]];
        let [(_, first), (_, second)] =
            self.format.look(self.machine, pair, place.fingerprint, self.now.reported, self.alone);
        (first | second != 0) | self.rejects(lines, place)
    }

    /// Returns whether both lines have rejected keys.
    #[inline(always)]
    pub fn rejects(self, lines: &[Line], place: Place) -> bool {
        let [first, second] = [place.first, place.second].map(|line| rejection(&lines[line as usize]));
        first != 0 && second != 0 && both(self.now.reported, first, second)
    }

    /// Returns the tag of a key's entry, and true. Without an entry returns the older tag of its lines' rejections, and
    /// false, if both lines have rejected keys; `None` if the key was not inserted in a live epoch.
    pub fn find(self, lines: &[Line], place: Place) -> Option<(u8, bool)> {
        let pair = [place.first, place.second].map(|line| &lines[line as usize]);
        let [(_, first), (_, second)] =
            self.format.look(self.machine, pair, place.fingerprint, self.now.live, self.alone);
        let [first, second] = [tag_of(pair[0], first), tag_of(pair[1], second)];
        let tag = if first == 0 {
            second
        } else if second == 0 {
            first
        } else {
            self.now.younger(first, second)
        };
        let [a, b] = pair.map(rejection);
        match tag {
            0 if self.rejects(lines, place) => Some((if self.now.younger(a, b) == a { b } else { a }, false)),
            0 => None,
            tag => Some((tag, true)),
        }
    }

    /// Returns whether the lines contain a key, and inserts it; `None` if there is no room for it. `moves` is
    /// whether entries may move to make room.
    ///
    /// A repeat rewrites its entry with the tag of its epoch, unless that is older. Both cases are one write, so that
    /// no branch depends on the answer.
    #[inline(always)]
    pub fn seen(self, lines: &mut [Line], place: Place, moves: bool) -> Option<bool> {
        let [first, second] = [&lines[place.first as usize], &lines[place.second as usize]];
        let rejected = self.rejects(lines, place);
        let [(live1, found1), (live2, found2)] =
            self.format.look(self.machine, [first, second], place.fingerprint, self.now.live, self.alone);
        let found = found1 | found2 != 0;
        let other = (found & (found1 == 0)) | (!found & (live2.count_ones() < live1.count_ones()));
        // Masks, because compilers make branches of conditions, and half new keys are mispredicted half the time.
        let (new, in_second) = (u32::from(!found).wrapping_neg(), u32::from(other).wrapping_neg());
        let (free1, free2) = (!live1 & self.format.all() & new | found1, !live2 & self.format.all() & new | found2);
        let slots = free1 & !in_second | free2 & in_second;
        if slots == 0 {
            // The lines have rejected a key in this epoch, and report this one, too. Another search would be long.
            if [rejection(first), rejection(second)] == [self.now.own; 2] {
                return Some(true);
            }
            return (moves && self.portable().make_room(lines, place, self.now.own)).then_some(rejected);
        }
        let line = &mut lines[(place.first & !in_second | place.second & in_second) as usize];
        let slot = slots.trailing_zeros() as usize;
        let (tag, reported) = self.now.renew(line[slot], found);
        self.format.write(line, slot, place.fingerprint, tag);
        Some(reported | rejected)
    }

    /// Returns whether the lines contain a key, and inserts it. A key without room is rejected.
    #[inline(always)]
    pub fn seen_or_reject(self, lines: &mut [Line], place: Place) -> bool {
        self.seen(lines, place, true).unwrap_or_else(|| {
            // Its lines may have rejected keys before: then the key is reported.
            let seen = self.rejects(lines, place);
            self.reject(lines, place, self.now.own);
            seen
        })
    }

    /// Inserts an entry with the tag of a live epoch. Of two tags the younger stays, and so it is with rejections.
    #[inline(always)]
    fn merge(self, lines: &mut [Line], place: Place, tag: u8) {
        let mut free = None;
        for line in [place.first, place.second] {
            let [(live, found)] =
                self.format.look(self.machine, [&lines[line as usize]], place.fingerprint, self.now.live, self.alone);
            if found != 0 {
                let slot = found.trailing_zeros() as usize;
                lines[line as usize][slot] = self.now.younger(tag, lines[line as usize][slot]);
                return;
            }
            free = free.or((live != self.format.all()).then(|| (line, (!live).trailing_zeros() as usize)));
        }
        match free {
            Some((line, slot)) => self.format.write(&mut lines[line as usize], slot, place.fingerprint, tag),
            None if self.portable().make_room(lines, place, tag) => {}
            None => self.reject(lines, place, tag),
        }
    }

    /// Merges the entries that have `tags`, and the rejection, of a line of another table of the same pages.
    pub fn merge_line(self, lines: &mut [Line], first: u32, other: &Line, tags: Tags) {
        let mut live = self.format.live(self.machine, other, tags);
        while live != 0 {
            let slot = live.trailing_zeros() as usize;
            live &= live - 1;
            let fingerprint = self.format.fingerprint(other, slot);
            let place = Place { first, second: self.pages.other_line(first, fingerprint), fingerprint };
            self.merge(lines, place, other[slot]);
        }
        let (line, tag) = (&mut lines[first as usize], rejection(other));
        if tags.contain(tag) {
            reject(line, self.now.younger(rejection(line), tag));
        }
    }

    /// Marks a key as rejected in this epoch: its lines report every key until the tag expires.
    #[inline(always)]
    pub fn reject(self, lines: &mut [Line], place: Place, tag: u8) {
        for line in [place.first, place.second] {
            let line = &mut lines[line as usize];
            reject(line, self.now.younger(rejection(line), tag));
        }
    }

    /// Returns this table for code that is not inlined, where wider vectors would pass through memory, and that is
    /// compiled for all formats at once.
    #[inline(always)]
    fn portable(self) -> Table<'a, Portable> {
        Table::portably(self.pages, self.now)
    }
}

/// Returns the tag of the first of these slots, or 0 if there is none.
#[inline(always)]
fn tag_of(line: &Line, slots: u32) -> u8 {
    if slots == 0 { 0 } else { line[slots.trailing_zeros() as usize] }
}

/// Returns whether the tags contain both of these. Kept out of the way of a key, since few lines have rejected any.
#[cold]
#[inline(never)]
fn both(tags: Tags, first: u8, second: u8) -> bool {
    tags.contain(first) & tags.contain(second)
}

impl<'a> Table<'a, Portable> {
    /// Returns a table for calls that seldom come: they are compiled once, for all formats and instruction sets.
    pub fn portably(pages: &'a Pages, now: Now) -> Self {
        Self { format: pages.format, machine: Portable, pages, now, alone: true }
    }

    /// Makes room in one of two full lines and writes the entry there. Returns whether there was room.
    #[cold]
    #[inline(never)]
    fn make_room(self, lines: &mut [Line], place: Place, tag: u8) -> bool {
        for moves in 0..MOVES {
            for line in [place.first, place.second] {
                if let Some(slot) = self.room(lines, line, moves) {
                    self.format.write(&mut lines[line as usize], slot, place.fingerprint, tag);
                    return true;
                }
            }
        }
        false
    }

    /// Moves an entry of a full line to its other line, if that has a free slot or gets one by `moves` more moves.
    /// Returns its slot, whose entry is a copy then.
    fn room(self, lines: &mut [Line], line: u32, moves: u32) -> Option<usize> {
        for slot in 0..self.format.slots() {
            let from = &lines[line as usize];
            let (fingerprint, tag) = (self.format.fingerprint(from, slot), from[slot]);
            let to = self.pages.other_line(line, fingerprint);
            let live = self.format.live(self.machine, &lines[to as usize], self.now.live);
            let free = match (live == self.format.all(), moves) {
                (false, _) => (!live).trailing_zeros() as usize,
                (true, 0) => continue,
                (true, _) => match self.room(lines, to, moves - 1) {
                    Some(slot) => slot,
                    None => continue,
                },
            };
            self.format.write(&mut lines[to as usize], free, fingerprint, tag);
            // Other processes may read the lines, or this one may be killed: the copy comes before its slot is used.
            fence(Release);
            return Some(slot);
        }
        None
    }
}
