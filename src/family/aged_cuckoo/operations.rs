//! The loop over the keys of a run, and what is done with each.

use std::ops::Range;

use super::line::{Line, Now, Tags};
use super::pages::{Pages, Place};
use super::shape::{FORMATS, LineFormat};
use super::table::Table;
use super::vectors::ByteVectors;
#[cfg(target_arch = "x86_64")]
use crate::instructions::{Avx512, Machine};
use crate::instructions::{Instructions, Portable, Work};
use crate::memory::prefetch::{AHEAD, Address};

/// Work on lines of any format, compiled for one format and one instruction set.
pub trait LineWork {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run(self, format: LineFormat, machine: impl ByteVectors) -> Self::Output;
}

/// Work on lines of format `F` of [`FORMATS`].
struct OfFormat<W, const F: usize>(W);

impl<W: LineWork, M: ByteVectors, const F: usize> Work<M> for OfFormat<W, F> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self, machine: M) -> W::Output {
        self.0.run(const { FORMATS[F] }, machine)
    }
}

/// Work on lines of a format that is not known before run time.
#[cfg(target_arch = "x86_64")]
struct OfAnyFormat<W>(W, LineFormat);

#[cfg(target_arch = "x86_64")]
impl<W: LineWork> Work<Portable> for OfAnyFormat<W> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self, machine: Portable) -> W::Output {
        self.0.run(self.1, machine)
    }
}

/// Does work that is compiled for each format. On x86_64 that is for AVX2 alone: with AVX-512 it took as long, and the
/// few processors with less share one function for all formats.
#[inline(always)]
pub fn run<W: LineWork>(instructions: Instructions, format: LineFormat, work: W) -> W::Output {
    match instructions {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(machine) | Instructions::Avx512(Avx512(machine)) => by_format(machine, format, work),
        #[cfg(target_arch = "x86_64")]
        _ => Portable.run(OfAnyFormat(work, format)),
        #[cfg(not(target_arch = "x86_64"))]
        _ => by_format(Portable, format, work),
    }
}

#[inline(always)]
fn by_format<W: LineWork, M: ByteVectors>(machine: M, format: LineFormat, work: W) -> W::Output {
    match format.fingerprint_bits {
        10 => machine.run(OfFormat::<_, 0>(work)),
        13 => machine.run(OfFormat::<_, 1>(work)),
        16 => machine.run(OfFormat::<_, 2>(work)),
        20 => machine.run(OfFormat::<_, 3>(work)),
        25 => machine.run(OfFormat::<_, 4>(work)),
        28 => machine.run(OfFormat::<_, 5>(work)),
        32 => machine.run(OfFormat::<_, 6>(work)),
        _ => machine.run(OfFormat::<_, 7>(work)),
    }
}

/// What is done with each key of a run.
pub trait Operation {
    /// Applies the operation to key `i` of the batch. Returns whether to go on.
    fn apply(&mut self, table: Table<'_, impl ByteVectors>, i: usize, place: Place) -> bool;
}

/// Applies an operation to the keys of a run, in order, while both lines of later keys are on their way. Returns the
/// number of keys done.
pub struct ForEach<'a, O> {
    pub pages: &'a Pages,
    pub now: Now,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub operation: &'a mut O,
    /// The address of the lines.
    pub address: Address,
}

impl<O: Operation> LineWork for ForEach<'_, O> {
    type Output = usize;

    #[inline(always)]
    fn run(self, format: LineFormat, machine: impl ByteVectors) -> usize {
        let Self { pages, now, hashes, run, operation, address } = self;
        let (hashes, before, pages) = (&hashes[..run.end], run.start, *pages);
        // The places of the next keys, so that each is computed once.
        let mut ring = [Place::default(); AHEAD];
        let placed = |hash: u64| {
            let place = pages.place_of(hash, format.fingerprint_bits);
            address.fetch(place.first as usize * 8);
            address.fetch(place.second as usize * 8);
            place
        };
        ring.iter_mut().zip(&hashes[before..]).for_each(|(place, &hash)| *place = placed(hash));
        let table = Table { format, machine, pages: &pages, now, alone: false };
        for i in run {
            let coming = (i - before) % AHEAD;
            let place = ring[coming];
            if let Some(&hash) = hashes.get(i + AHEAD) {
                ring[coming] = placed(hash);
            }
            if !operation.apply(table, i, place) {
                return i - before;
            }
        }
        hashes.len() - before
    }
}

/// Looks up one key.
pub struct Contains<'a> {
    pub pages: &'a Pages,
    pub reported: Tags,
    pub lines: &'a [Line],
    pub hash: u64,
}

impl LineWork for Contains<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, format: LineFormat, machine: impl ByteVectors) -> bool {
        let table = Table { format, machine, pages: self.pages, now: Now::reporting(self.reported), alone: true };
        table.contains(self.lines, self.pages.place_of(self.hash, format.fingerprint_bits))
    }
}

/// Looks up one key and inserts it.
pub struct Seen<'a> {
    pub pages: &'a Pages,
    pub now: Now,
    pub lines: &'a mut [Line],
    pub hash: u64,
    pub full: Full,
}

impl LineWork for Seen<'_> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run(self, format: LineFormat, machine: impl ByteVectors) -> Option<bool> {
        let table = Table { format, machine, pages: self.pages, now: self.now, alone: true };
        self.full.seen(table, self.lines, self.pages.place_of(self.hash, format.fingerprint_bits))
    }
}

/// What becomes of a key whose lines are full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Entries move to make room for it; where they cannot, it is rejected.
    Rejects,
    /// Entries move to make room for it; where they cannot, it ends the run.
    Ends,
    /// The key ends the run, and no entry moves.
    EndsStill,
}

impl Full {
    /// Returns whether the lines contain a key, and inserts it; `None` if it ends the run.
    #[inline(always)]
    fn seen(self, table: Table<'_, impl ByteVectors>, lines: &mut [Line], place: Place) -> Option<bool> {
        match self {
            Self::Rejects => Some(table.seen_or_reject(lines, place)),
            Self::Ends | Self::EndsStill => table.seen(lines, place, self == Self::Ends),
        }
    }
}

/// Writes which keys the lines contain.
pub struct Query<'a> {
    pub lines: &'a [Line],
    pub present: &'a mut [bool],
}

impl Operation for Query<'_> {
    #[inline(always)]
    fn apply(&mut self, table: Table<'_, impl ByteVectors>, i: usize, place: Place) -> bool {
        self.present[i] = table.contains(self.lines, place);
        true
    }
}

/// Inserts keys, without `refresh` only those that the lines do not contain.
pub struct Duplicated<'a> {
    pub lines: &'a mut [Line],
    /// Receives which keys the lines contained, if it is not empty.
    pub seen: &'a mut [bool],
    pub refresh: bool,
    pub full: Full,
    /// The number of insertions.
    pub inserted: u64,
}

impl Operation for Duplicated<'_> {
    #[inline(always)]
    fn apply(&mut self, table: Table<'_, impl ByteVectors>, i: usize, place: Place) -> bool {
        let contained = !self.refresh && table.contains(self.lines, place);
        let seen = contained || {
            let Some(seen) = self.full.seen(table, self.lines, place) else { return false };
            self.inserted += 1;
            seen
        };
        if let Some(answer) = self.seen.get_mut(i) {
            *answer = seen;
        }
        true
    }
}
