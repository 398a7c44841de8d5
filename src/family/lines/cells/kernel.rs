//! Runs of keys in lines. All methods are `inline(always)`: see [instructions](crate::instructions).

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::pages::ANY;
use super::pages::{GROUP, PrefetchRing};
use super::vectors::Vectors;
use super::{LaneRotation, LanesInLines};
use crate::family::lines::shape::MAX_LINES;
use crate::inference::{Code, Evidence};
#[cfg(target_arch = "x86_64")]
use crate::instructions::Machine;
use crate::instructions::{Instructions, Work};

/// Number of keys that are read before their answers are computed: vector instructions compute several answers at once.
const READ: usize = 64;

/// Work on keys, compiled for each number of lines of a key and each instruction set.
trait LineWork<const LANES: usize> {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) -> Self::Output;
}

/// Work on keys of `LINES` lines.
struct OfLines<'a, W, const LANES: usize, const LINES: usize>(&'a LanesInLines<LANES>, W);

impl<M: Vectors, W: LineWork<LANES>, const LANES: usize, const LINES: usize> Work<M> for OfLines<'_, W, LANES, LINES> {
    type Output = W::Output;

    #[inline(always)]
    fn run(self, machine: M) -> W::Output {
        self.1.run::<LINES>(self.0, machine)
    }
}

/// A form of the evidence about a key: [`Evidence`] itself, or a code for it.
pub(crate) trait Encode<const LANES: usize>: Copy {
    /// Returns the evidence about a key of this page in this form. `lanes` are those that have all bits of the key.
    fn encode(cells: &LanesInLines<LANES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self;
}

impl<const LANES: usize> Encode<LANES> for Evidence {
    #[inline(always)]
    fn encode(cells: &LanesInLines<LANES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self {
        Self::generations(cells.possible(rotation, page, lanes).into())
            .in_page_range(cells.page_range(rotation, page).into())
    }
}

impl<const LANES: usize> Encode<LANES> for Code {
    #[inline(always)]
    fn encode(cells: &LanesInLines<LANES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self {
        Self::of_generations(cells.possible(rotation, page, lanes), cells.page_range(rotation, page))
    }
}

/// The keys of a run of the batch `hashes`.
pub(crate) struct Keys<'a> {
    pub rotation: LaneRotation,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
}

impl Keys<'_> {
    /// Returns the hash of the key, if the run has only one. A single key is processed sooner than a prefetch ring
    /// could be set up.
    #[inline(always)]
    fn only(&self) -> Option<u64> {
        match &self.hashes[self.run.clone()] {
            &[hash] => Some(hash),
            _ => None,
        }
    }
}

impl<const LANES: usize> LanesInLines<LANES> {
    /// Inserts the keys.
    #[inline(always)]
    pub(super) fn insert_keys(&self, words: &mut [u64], keys: Keys<'_>) {
        match keys.only() {
            Some(hash) => self.work(InsertOne { rotation: keys.rotation, hash, words }),
            None => self.work(InsertMany { keys, words }),
        }
    }

    /// Writes to `present` which keys the lines contain. `present` is as long as the batch.
    #[inline(always)]
    pub(super) fn query_keys(&self, words: &[u64], keys: Keys<'_>, present: &mut [bool]) {
        let rotation = keys.rotation;
        match keys.only() {
            Some(hash) => present[keys.run.start] = self.work(QueryOne { rotation, hash, words }),
            None => self.read_many(keys, words, &mut |block, pages, reads| {
                let present = &mut present[block];
                self.instructions.run(Answer { cells: self, rotation, pages, reads, present });
            }),
        }
    }

    /// Writes the evidence about each key of the run to the places from 0 on.
    #[inline(always)]
    pub(super) fn encode_keys<T: Encode<LANES>>(&self, words: &[u64], keys: Keys<'_>, evidence: &mut [T]) {
        let (start, rotation) = (keys.run.start, keys.rotation);
        self.read_many(keys, words, &mut |block, pages, reads| {
            let evidence = &mut evidence[block.start - start..block.end - start];
            self.instructions.run(EncodeEvidence { cells: self, rotation, pages, reads, evidence });
        });
    }

    /// Writes to `seen` which keys the lines contain, and then inserts them; without `refresh` only the other keys.
    /// `seen` is as long as the batch. Returns the number of insertions.
    #[inline(always)]
    pub(super) fn duplicated_keys(&self, words: &mut [u64], keys: Keys<'_>, refresh: bool, seen: &mut [bool]) -> u64 {
        match keys.only() {
            Some(hash) => {
                let was_seen = self.work(DuplicatedOne { rotation: keys.rotation, hash, words, refresh });
                seen[keys.run.start] = was_seen;
                (refresh || !was_seen).into()
            }
            None => self.work(DuplicatedMany { keys, words, refresh, seen }),
        }
    }

    /// Does work with the instructions of the filter. The few processors of x86_64 without AVX2 share one function for
    /// all numbers of lines.
    #[inline(always)]
    fn work<W: LineWork<LANES>>(&self, work: W) -> W::Output {
        match self.instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Portable(machine) => machine.run(OfLines::<_, LANES, ANY>(self, work)),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(machine) => self.by_lines(machine, work),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512(machine) => self.by_lines(machine, work),
            #[cfg(not(target_arch = "x86_64"))]
            Instructions::Portable(machine) => self.by_lines(machine, work),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Instructions::Neon(machine) => self.by_lines(machine, work),
        }
    }

    #[inline(always)]
    fn by_lines<W: LineWork<LANES>>(&self, machine: impl Vectors, work: W) -> W::Output {
        const { assert!(MAX_LINES == 4) };
        match self.pages.lines {
            1 => machine.run(OfLines::<_, LANES, 1>(self, work)),
            2 => machine.run(OfLines::<_, LANES, 2>(self, work)),
            3 => machine.run(OfLines::<_, LANES, 3>(self, work)),
            _ => machine.run(OfLines::<_, LANES, 4>(self, work)),
        }
    }

    /// Reads the lines of the keys. Calls `answer` with each block of keys, their pages and what was read.
    #[inline(always)]
    fn read_many(&self, keys: Keys<'_>, words: &[u64], answer: AnswerBlock<'_>) {
        self.work(ReadMany { keys, words, answer });
    }
}

/// Inserts a run of keys.
struct InsertMany<'a> {
    keys: Keys<'a>,
    words: &'a mut [u64],
}

impl<const LANES: usize> LineWork<LANES> for InsertMany<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) {
        let Self { keys: Keys { rotation, hashes, run }, words } = self;
        let cells = *cells;
        let mut coming = PrefetchRing::<LINES>::new(cells.pages, words, hashes);
        coming.begin(machine, &run);
        let lines = words.as_chunks_mut().0;
        for start in run.clone().step_by(GROUP) {
            for key in 0..GROUP.min(run.end - start) {
                let location = coming.group(start).at(key);
                cells.write(machine, lines, rotation, &location, &cells.probe(machine, &location));
            }
            coming.replace(start);
        }
    }
}

/// Inserts a single key. A work of its own, so that the compiler optimises the loop of [`InsertMany`] separately.
struct InsertOne<'a> {
    rotation: LaneRotation,
    hash: u64,
    words: &'a mut [u64],
}

impl<const LANES: usize> LineWork<LANES> for InsertOne<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) {
        let location = cells.pages.location::<LINES>(self.hash);
        let lines = self.words.as_chunks_mut().0;
        cells.write(machine, lines, self.rotation, &location, &cells.probe(machine, &location));
    }
}

/// Computes answers from what was read: receives a block of keys, the pages of these keys and perhaps of more, and what
/// was read for each.
type AnswerBlock<'a> = &'a mut dyn FnMut(Range<usize>, &[u32], &[u32]);

/// Reads the lines of a run of keys. Answers are computed elsewhere, so that queries and all forms of evidence share
/// this loop, and because the registers of an answer would displace those that reading needs.
struct ReadMany<'a, 'b> {
    keys: Keys<'b>,
    words: &'a [u64],
    answer: AnswerBlock<'a>,
}

impl<const LANES: usize> LineWork<LANES> for ReadMany<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) {
        let Self { keys: Keys { hashes, run, .. }, words, answer } = self;
        let (cells, lines) = (*cells, words.as_chunks().0);
        let mut coming = PrefetchRing::<LINES>::new(cells.pages, words, hashes);
        coming.begin(machine, &run);
        for start in run.clone().step_by(READ) {
            let block = start..run.end.min(start + READ);
            let (mut pages, mut reads) = ([[0; GROUP]; READ / GROUP], [[0; GROUP]; READ / GROUP]);
            let groups = pages.iter_mut().zip(&mut reads).enumerate().take(block.len().div_ceil(GROUP));
            for (group, (pages, reads)) in groups {
                let start = block.start + group * GROUP;
                // Where the run ends within a group, the other keys have locations too, and their answers are not read.
                *pages = coming.group(start).pages;
                for (key, read) in reads.iter_mut().enumerate() {
                    let location = coming.group(start).at(key);
                    *read = cells.read(machine, lines, &location, &cells.probe(machine, &location));
                }
                coming.replace(start);
            }
            answer(block, pages.as_flattened(), reads.as_flattened());
        }
    }
}

/// Queries a single key.
struct QueryOne<'a> {
    rotation: LaneRotation,
    hash: u64,
    words: &'a [u64],
}

impl<const LANES: usize> LineWork<LANES> for QueryOne<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) -> bool {
        let location = cells.pages.location::<LINES>(self.hash);
        let read = cells.read(machine, self.words.as_chunks().0, &location, &cells.probe(machine, &location));
        cells.reports(self.rotation, location.page, read)
    }
}

/// Computes the answers of a query from what was read, whatever the number of lines.
struct Answer<'a, const LANES: usize> {
    cells: &'a LanesInLines<LANES>,
    rotation: LaneRotation,
    pages: &'a [u32],
    reads: &'a [u32],
    present: &'a mut [bool],
}

impl<M: Vectors, const LANES: usize> Work<M> for Answer<'_, LANES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, rotation) = (*self.cells, self.rotation);
        for (present, (&page, &read)) in self.present.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *present = cells.reports(rotation, page, read);
        }
    }
}

/// Encodes evidence from what was read, whatever the number of lines.
struct EncodeEvidence<'a, T, const LANES: usize> {
    cells: &'a LanesInLines<LANES>,
    rotation: LaneRotation,
    pages: &'a [u32],
    reads: &'a [u32],
    evidence: &'a mut [T],
}

impl<M: Vectors, T: Encode<LANES>, const LANES: usize> Work<M> for EncodeEvidence<'_, T, LANES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, rotation) = (*self.cells, self.rotation);
        for (evidence, (&page, &read)) in self.evidence.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *evidence = T::encode(&cells, rotation, page, read);
        }
    }
}

/// Queries and inserts a run of keys.
struct DuplicatedMany<'a> {
    keys: Keys<'a>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<const LANES: usize> LineWork<LANES> for DuplicatedMany<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) -> u64 {
        let Self { keys: Keys { rotation, hashes, run }, words, refresh, seen } = self;
        let cells = *cells;
        let mut coming = PrefetchRing::<LINES>::new(cells.pages, words, hashes);
        coming.begin(machine, &run);
        let (lines, mut inserted) = (words.as_chunks_mut().0, 0);
        let masked = LanesInLines::<LANES>::is_masked(rotation);
        for (start, seen) in run.clone().step_by(GROUP).zip(seen[run].chunks_mut(GROUP)) {
            for (key, seen) in seen.iter_mut().enumerate() {
                let location = coming.group(start).at(key);
                let probe = cells.probe(machine, &location);
                let read = cells.read(machine, lines, &location, &probe);
                *seen = match masked {
                    false => cells.reports_now(rotation, location.page, read),
                    true => cells.reports(rotation, location.page, read),
                };
                if refresh || !*seen {
                    cells.write(machine, lines, rotation, &location, &probe);
                    inserted += 1;
                }
            }
            coming.replace(start);
        }
        inserted
    }
}

/// Queries and inserts a single key.
struct DuplicatedOne<'a> {
    rotation: LaneRotation,
    hash: u64,
    words: &'a mut [u64],
    refresh: bool,
}

impl<const LANES: usize> LineWork<LANES> for DuplicatedOne<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const LINES: usize>(self, cells: &LanesInLines<LANES>, machine: impl Vectors) -> bool {
        let Self { rotation, hash, words, refresh } = self;
        let location = cells.pages.location::<LINES>(hash);
        let (lines, probe) = (words.as_chunks_mut().0, cells.probe(machine, &location));
        let seen = cells.reports(rotation, location.page, cells.read(machine, lines, &location, &probe));
        if refresh || !seen {
            cells.write(machine, lines, rotation, &location, &probe);
        }
        seen
    }
}
