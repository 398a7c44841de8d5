//! Work shared by threads. A batch is divided by where the cells of its keys lie, so that answers and cells are those
//! of one thread.
//!
//! A [`Part`] of the cells has all cells of its keys. A key changes only its part, and its answer depends on earlier
//! keys of its part and on the generation, which the clock tells from the place of the key in the batch. So threads
//! hash the keys and sort them by part; then each takes a part, lets its keys act in order, and follows the clock by
//! itself. No thread waits for another, however often generations begin. (Pages of lines rotate every few hundred
//! keys.)

use std::convert::Infallible;
use std::ops::{Range, RangeInclusive};
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Refresh;
use super::run::{AgedMut, Hashes};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::key::Keys;
use crate::layout::{Layout, Part};
use crate::memory::fallible;

/// Keys hashed and sorted at a time: their hashes take 64 KiB. Few where every run of the code is slow, or millions of
/// runs are to be had.
pub const PIECE: usize = if cfg!(any(fuzzing, miri)) { 64 } else { 8192 };

/// Does `work` on all items, which `threads` take in turn, each with a state that `begin` makes. An error ends it.
pub fn share<I: Send, S, E: Send>(
    threads: usize,
    items: impl Iterator<Item = I> + Send,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.min(items.size_hint().1.unwrap_or(threads));
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut own = begin();
        while let Some(item) = next() {
            work(&mut own, item)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // If a thread cannot be had, the others do its work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads).map_while(spawn).collect();
        let done = work();
        helpers
            .into_iter()
            .map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .fold(done, Result::and)
    })
}

/// A stretch of a batch that threads hash and sort, with buffers that the next stretch uses again.
pub struct Stretch<'a> {
    threads: usize,
    keys: &'a Keys,
    range: Range<usize>,
    hashes: Vec<u64>,
    places: Vec<u16>,
    ends: Vec<usize>,
}

impl<'a> Stretch<'a> {
    /// A stretch without keys yet, of this batch.
    pub fn new(threads: usize, keys: &'a Keys) -> Self {
        Self { threads, keys, range: 0..0, hashes: Vec::new(), places: Vec::new(), ends: Vec::new() }
    }

    /// The keys in `range`.
    pub fn at(&mut self, range: Range<usize>) -> &mut Self {
        self.range = range;
        self
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Their hashes.
    pub(crate) fn hashes(&mut self) -> Result<&[u64], Error> {
        fallible::resize(&mut self.hashes, self.range.len())?;
        let pieces = (self.range.start..).step_by(PIECE).zip(self.hashes.chunks_mut(PIECE));
        let Ok(()) = share(
            self.threads,
            pieces,
            || (),
            |(), (start, hashes)| {
                self.keys.fill(start, hashes);
                Ok::<(), Infallible>(())
            },
        );
        Ok(&self.hashes)
    }

    /// How many parts to cut the cells into.
    pub(crate) fn parts(&self) -> usize {
        self.threads.min(self.len() / PIECE)
    }

    /// Hashes the keys and sorts them, piece by piece, by the part that their hash lies in.
    fn sort(&mut self, parts: &[RangeInclusive<u64>]) -> Result<(), Error> {
        let pieces = self.range.len().div_ceil(PIECE);
        fallible::resize(&mut self.hashes, pieces * ROOM)?;
        fallible::resize(&mut self.places, pieces * ROOM)?;
        fallible::resize(&mut self.ends, pieces * parts.len())?;
        let starts = self.range.clone().step_by(PIECE);
        let room = self.hashes.chunks_mut(ROOM).zip(self.places.chunks_mut(ROOM));
        let ends = self.ends.chunks_mut(parts.len());
        let begin = || [0; PIECE];
        let Ok(()) =
            share(self.threads, starts.zip(room.zip(ends)), begin, |piece, (start, ((hashes, places), ends))| {
                let piece = &mut piece[..PIECE.min(self.range.end - start)];
                self.keys.fill(start, piece);
                let mut sorted = 0;
                for (part, end) in parts.iter().zip(ends) {
                    let (least, width) = (*part.start(), part.end() - part.start());
                    // Each is written, and kept only if it belongs there: a branch would be mispredicted half the time.
                    for (place, &hash) in piece.iter().enumerate() {
                        (hashes[sorted], places[sorted]) = (hash, place as u16);
                        sorted += usize::from(hash.wrapping_sub(least) <= width);
                    }
                    *end = sorted;
                }
                Ok::<(), Infallible>(())
            });
        Ok(())
    }

    /// The keys of a part, piece by piece, once they are [sorted](Self::sort), with the range of each piece in the
    /// stretch.
    fn of_part(&self, part: usize) -> impl Iterator<Item = (Hashes<'_>, Range<usize>)> {
        let pieces = (0..self.len()).step_by(PIECE);
        let room = self.hashes.chunks(ROOM).zip(self.places.chunks(ROOM));
        let ends = self.ends.chunks(self.ends.len() / pieces.len());
        pieces.zip(room.zip(ends)).map(move |(start, ((hashes, places), ends))| {
            let own = part.checked_sub(1).map_or(0, |before| ends[before])..ends[part];
            let piece = start..self.len().min(start + PIECE);
            (Hashes { hashes: &hashes[own.clone()], places: Some(&places[own]), len: piece.len() }, piece)
        })
    }
}

/// Room for the keys of a piece, and for one that is written but not kept.
const ROOM: usize = PIECE + 1;

/// Inserts the keys of a stretch into the parts of a filter; returns the clock after them. An error comes before all.
pub(crate) fn insert<L: Layout>(
    parts: Vec<Part<'_, L>>,
    clock: Clock,
    keys: &mut Stretch<'_>,
    at: Moments<'_>,
) -> Result<Clock, Error> {
    let mut clocks = vec![clock; parts.len()];
    let mut turns = parts.into_iter().zip(&mut clocks).map(|(part, clock)| {
        let mut cells = AgedMut { layout: part.layout, words: part.words, clock, live: None };
        Turn { hashes: part.hashes, act: Box::new(move |keys, at, _| cells.insert(keys, at)) }
    });
    side_by_side(&mut turns, keys, at)?;
    drop(turns);
    Ok(clocks[0])
}

/// For each key of a stretch in order: writes to `seen` whether it was in the parts of a filter, then inserts it as
/// `refresh` says; says where the clock is then. Not for a clock that waits for the answers, since only all parts
/// together know where it is.
pub(crate) fn duplicated<L: Layout>(
    parts: Vec<Part<'_, L>>,
    clock: Clock,
    keys: &mut Stretch<'_>,
    at: Moments<'_>,
    refresh: Refresh,
    seen: &mut [bool],
) -> Result<Clock, Error> {
    let room = |_| Ok((clock, fallible::zeroed(seen.len())?, fallible::zeroed(PIECE)?));
    let mut done = parts.iter().map(room).collect::<Result<Vec<(Clock, Vec<bool>, Vec<bool>)>, Error>>()?;
    let mut turns = parts.into_iter().zip(&mut done).map(|(part, (clock, seen, own))| {
        let mut cells = AgedMut { layout: part.layout, words: part.words, clock, live: None };
        let act = move |keys: Hashes<'_>, at: Moments<'_>, piece: Range<usize>| {
            let own = &mut own[..keys.hashes.len()];
            own.fill(false);
            cells.duplicated(keys, at, refresh, own);
            let seen = &mut seen[piece];
            for (&place, &own) in keys.places.unwrap_or_default().iter().zip(&*own) {
                seen[usize::from(place)] = own;
            }
        };
        Turn { hashes: part.hashes, act: Box::new(act) }
    });
    side_by_side(&mut turns, keys, at)?;
    drop(turns);
    seen.fill(false);
    for (_, of_part, _) in &done {
        seen.iter_mut().zip(of_part).for_each(|(seen, &of_part)| *seen |= of_part);
    }
    Ok(done[0].0)
}

/// What is done with the keys of a part: with each piece of them, its moments, and its range in the stretch. Behind a
/// pointer, so that what threads do is compiled once and not for every layout.
struct Turn<'a> {
    hashes: RangeInclusive<u64>,
    act: Act<'a>,
}

type Act<'a> = Box<dyn FnMut(Hashes<'_>, Moments<'_>, Range<usize>) + Send + 'a>;

/// Has each part act on its keys in order, piece by piece. An error comes before all.
fn side_by_side<'a>(
    parts: &mut dyn Iterator<Item = Turn<'a>>,
    keys: &mut Stretch<'_>,
    moments: Moments<'_>,
) -> Result<(), Error> {
    let parts: Vec<_> = parts.collect();
    let threads = parts.len();
    keys.sort(&parts.iter().map(|part| part.hashes.clone()).collect::<Vec<_>>())?;
    let work = |(): &mut (), (number, mut part): (usize, Turn<'_>)| {
        for (keys, piece) in keys.of_part(number) {
            (part.act)(keys, moments.slice(piece.clone()), piece);
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = share(threads, parts.into_iter().enumerate(), || (), work);
    Ok(())
}
