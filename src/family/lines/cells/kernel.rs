//! Runs of keys in lines. All methods are `inline(always)`: see [instructions](crate::instructions).

use std::ops::Range;

use super::pages::{GROUP, Location, PrefetchRing};
use super::vectors::Vectors;
use super::{LaneRotation, LanesInLines};
use crate::inference::{Code, Evidence};
use crate::instructions::Work;

/// Number of keys that are read before their answers are computed: vector instructions compute several answers at once.
const READ: usize = 64;

/// A form of the evidence about a key: [`Evidence`] itself, or a code for it.
pub(crate) trait Encode<const LANES: usize, const LINES: usize>: Copy {
    /// Returns the evidence about a key of this page in this form. `lanes` are those that have all bits of the key.
    fn encode(cells: &LanesInLines<LANES, LINES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self;
}

impl<const LANES: usize, const LINES: usize> Encode<LANES, LINES> for Evidence {
    #[inline(always)]
    fn encode(cells: &LanesInLines<LANES, LINES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self {
        Self::generations(cells.possible(rotation, page, lanes).into())
            .in_page_range(cells.page_range(rotation, page).into())
    }
}

impl<const LANES: usize, const LINES: usize> Encode<LANES, LINES> for Code {
    #[inline(always)]
    fn encode(cells: &LanesInLines<LANES, LINES>, rotation: LaneRotation, page: u32, lanes: u32) -> Self {
        Self::of_generations(cells.possible(rotation, page, lanes), cells.page_range(rotation, page))
    }
}

/// A run of the batch `hashes`, with the cells that process it.
pub(crate) struct Run<'a, const LANES: usize, const LINES: usize> {
    pub cells: &'a LanesInLines<LANES, LINES>,
    pub rotation: LaneRotation,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
}

impl<const LANES: usize, const LINES: usize> Run<'_, LANES, LINES> {
    /// Inserts the keys.
    #[inline(always)]
    pub fn insert(self, words: &mut [u64]) {
        match self.only_key() {
            Some(location) => self.cells.instructions.run(InsertOne { run: self, location, words }),
            None => self.cells.instructions.run(InsertMany { run: self, words }),
        }
    }

    /// Writes to `present` which keys the lines contain. `present` is as long as the batch.
    #[inline(always)]
    pub fn query(self, words: &[u64], present: &mut [bool]) {
        let machine = self.cells.instructions;
        match self.only_key() {
            Some(location) => machine.run(QueryOne { run: self, location, words, present }),
            None => self.read_many(words, &mut |block, pages, reads| {
                machine.run(Answer { run: &self, pages, reads, present: &mut present[block] });
            }),
        }
    }

    /// Writes the evidence about each key of the run to the places from 0 on.
    #[inline(always)]
    pub fn encode<T: Encode<LANES, LINES>>(self, words: &[u64], evidence: &mut [T]) {
        let start = self.run.start;
        self.read_many(words, &mut |block, pages, reads| {
            let evidence = &mut evidence[block.start - start..block.end - start];
            self.cells.instructions.run(EncodeEvidence { run: &self, pages, reads, evidence });
        });
    }

    /// Reads the lines of the keys. Calls `answer` with each block of keys, their pages and what was read.
    #[inline(always)]
    fn read_many(&self, words: &[u64], answer: AnswerBlock<'_>) {
        self.cells.instructions.run(ReadMany { run: self, words, answer });
    }

    /// Writes to `seen` which keys the lines contain, and then inserts them; without `refresh` only the other keys.
    /// `seen` is as long as the batch. Returns the number of insertions.
    #[inline(always)]
    pub fn duplicated(self, words: &mut [u64], refresh: bool, seen: &mut [bool]) -> u64 {
        match self.only_key() {
            Some(location) => self.cells.instructions.run(DuplicatedOne { run: self, location, words, refresh, seen }),
            None => self.cells.instructions.run(DuplicatedMany { run: self, words, refresh, seen }),
        }
    }

    /// Returns the location of the key, if the run has only one. A single key is processed sooner than a prefetch ring
    /// could be set up.
    #[inline(always)]
    fn only_key(&self) -> Option<Location<LINES>> {
        match &self.hashes[self.run.clone()] {
            &[hash] => Some(self.cells.pages.location(hash)),
            _ => None,
        }
    }

    /// Returns an empty ring for the locations of the keys, which prefetches their lines.
    #[inline(always)]
    fn in_flight(&self, words: &[u64]) -> PrefetchRing<'_, LINES> {
        PrefetchRing::new(self.cells.pages, words, self.hashes)
    }
}

/// Inserts a run of keys.
struct InsertMany<'a, const LANES: usize, const LINES: usize> {
    run: Run<'a, LANES, LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for InsertMany<'_, LANES, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words } = self;
        let (cells, rotation) = (*run.cells, run.rotation);
        let mut coming = run.in_flight(words);
        coming.begin(machine, &run.run);
        let lines = words.as_chunks_mut().0;
        for start in run.run.clone().step_by(GROUP) {
            for key in 0..GROUP.min(run.run.end - start) {
                let location = coming.group(start).at(key);
                cells.write(machine, lines, rotation, &location, &cells.probe(machine, &location));
            }
            coming.replace(start);
        }
    }
}

/// Inserts a single key. A [`Work`] of its own, so that the compiler optimises the loop of [`InsertMany`] separately.
struct InsertOne<'a, const LANES: usize, const LINES: usize> {
    run: Run<'a, LANES, LINES>,
    location: Location<LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for InsertOne<'_, LANES, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, rotation, .. }, location, words } = self;
        cells.write(machine, words.as_chunks_mut().0, rotation, &location, &cells.probe(machine, &location));
    }
}

/// Computes answers from what was read: receives a block of keys, the pages of these keys and perhaps of more, and what
/// was read for each.
type AnswerBlock<'a> = &'a mut dyn FnMut(Range<usize>, &[u32], &[u32]);

/// Reads the lines of a run of keys. Answers are computed elsewhere, so that queries and all forms of evidence share
/// this loop, and because the registers of an answer would displace those that reading needs.
struct ReadMany<'a, 'b, const LANES: usize, const LINES: usize> {
    run: &'a Run<'b, LANES, LINES>,
    words: &'a [u64],
    answer: AnswerBlock<'a>,
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for ReadMany<'_, '_, LANES, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words, answer } = self;
        let (cells, lines) = (*run.cells, words.as_chunks().0);
        let mut coming = run.in_flight(words);
        coming.begin(machine, &run.run);
        for start in run.run.clone().step_by(READ) {
            let block = start..run.run.end.min(start + READ);
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
struct QueryOne<'a, const LANES: usize, const LINES: usize> {
    run: Run<'a, LANES, LINES>,
    location: Location<LINES>,
    words: &'a [u64],
    present: &'a mut [bool],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for QueryOne<'_, LANES, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, rotation, run, .. }, location, words, present } = self;
        let read = cells.read(machine, words.as_chunks().0, &location, &cells.probe(machine, &location));
        present[run.start] = cells.reports(rotation, location.page, read);
    }
}

/// Computes the answers of a query from what was read.
struct Answer<'a, 'b, const LANES: usize, const LINES: usize> {
    run: &'a Run<'b, LANES, LINES>,
    pages: &'a [u32],
    reads: &'a [u32],
    present: &'a mut [bool],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for Answer<'_, '_, LANES, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, rotation) = (*self.run.cells, self.run.rotation);
        for (present, (&page, &read)) in self.present.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *present = cells.reports(rotation, page, read);
        }
    }
}

/// Encodes evidence from what was read.
struct EncodeEvidence<'a, 'b, T, const LANES: usize, const LINES: usize> {
    run: &'a Run<'b, LANES, LINES>,
    pages: &'a [u32],
    reads: &'a [u32],
    evidence: &'a mut [T],
}

impl<M: Vectors, T: Encode<LANES, LINES>, const LANES: usize, const LINES: usize> Work<M>
    for EncodeEvidence<'_, '_, T, LANES, LINES>
{
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, rotation) = (*self.run.cells, self.run.rotation);
        for (evidence, (&page, &read)) in self.evidence.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *evidence = T::encode(&cells, rotation, page, read);
        }
    }
}

/// Queries and inserts a run of keys.
struct DuplicatedMany<'a, const LANES: usize, const LINES: usize> {
    run: Run<'a, LANES, LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for DuplicatedMany<'_, LANES, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run, words, refresh, seen } = self;
        let (cells, rotation) = (*run.cells, run.rotation);
        let mut coming = run.in_flight(words);
        coming.begin(machine, &run.run);
        let (lines, mut inserted) = (words.as_chunks_mut().0, 0);
        let masked = LanesInLines::<LANES, LINES>::is_masked(rotation);
        for (start, seen) in run.run.clone().step_by(GROUP).zip(seen[run.run.clone()].chunks_mut(GROUP)) {
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
struct DuplicatedOne<'a, const LANES: usize, const LINES: usize> {
    run: Run<'a, LANES, LINES>,
    location: Location<LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, const LANES: usize, const LINES: usize> Work<M> for DuplicatedOne<'_, LANES, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run: Run { cells, rotation, run, .. }, location, words, refresh, seen } = self;
        let (lines, probe) = (words.as_chunks_mut().0, cells.probe(machine, &location));
        let present = cells.reports(rotation, location.page, cells.read(machine, lines, &location, &probe));
        seen[run.start] = present;
        let inserted = refresh || !present;
        if inserted {
            cells.write(machine, lines, rotation, &location, &probe);
        }
        inserted.into()
    }
}
