//! Runs of keys in lines: the loops that all layouts in lines share, over the trait [`LineKernel`].

use std::ops::Range;

use super::LINE;
use super::pages::{GROUP, Location, Pages, PrefetchRing};
use super::vectors::Vectors;
use crate::inference::Evidence;
use crate::instructions::{Instructions, Work};

/// Keys that are read before their answers are computed: vector instructions compute several answers at once.
const READ: usize = 64;

/// How one layout reads and writes a key in its lines. All methods are `inline(always)`: see
/// [instructions](crate::instructions).
pub(crate) trait LineKernel<const LINES: usize>: Copy {
    /// What the open generation means for the cells.
    type Rotation: Copy;

    /// The bits of a key, or the places of its timers, in its lines.
    type Probe<V: Vectors>: Copy;

    /// What a query reads in the lines of a key.
    type Read: Copy + Default;

    /// What evidence is computed from.
    type Aged: Copy + Default;

    /// Returns the pages of the lines.
    fn pages(&self) -> Pages<LINES>;

    /// Returns the instruction set to use.
    fn instructions(&self) -> Instructions;

    /// Returns the probe of a key.
    fn probe<V: Vectors>(&self, vectors: V, location: &Location<LINES>) -> Self::Probe<V>;

    /// Reads the lines of a key.
    fn read<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        rotation: Self::Rotation,
        location: &Location<LINES>,
        probe: &Self::Probe<V>,
    ) -> Self::Read;

    /// Returns whether the lines contain a key of this page, from what was read.
    fn reports(&self, rotation: Self::Rotation, page: u32, read: Self::Read) -> bool;

    /// Returns whether the lines contain a key of this page, in a rotation without pending generations.
    #[inline(always)]
    fn reports_now(&self, rotation: Self::Rotation, page: u32, read: Self::Read) -> bool {
        self.reports(rotation, page, read)
    }

    /// Reads what evidence about a key is computed from.
    fn read_age<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        rotation: Self::Rotation,
        location: &Location<LINES>,
    ) -> Self::Aged;

    /// Returns the evidence about a key of this page, from what was read.
    fn evidence_at(&self, rotation: Self::Rotation, page: u32, read: Self::Aged) -> Evidence;

    /// Writes a key into its lines.
    fn write<V: Vectors>(
        &self,
        vectors: V,
        lines: &mut [[u64; LINE]],
        rotation: Self::Rotation,
        location: &Location<LINES>,
        probe: &Self::Probe<V>,
    );
}

/// A form of the evidence about a key: [`Evidence`] itself, or a code for it.
pub(crate) trait Encode<L: LineKernel<LINES>, const LINES: usize>: Copy {
    /// Returns the evidence about a key of this page in this form, from what was read.
    fn encode(cells: &L, rotation: L::Rotation, page: u32, read: L::Aged) -> Self;
}

impl<L: LineKernel<LINES>, const LINES: usize> Encode<L, LINES> for Evidence {
    #[inline(always)]
    fn encode(cells: &L, rotation: L::Rotation, page: u32, read: L::Aged) -> Self {
        cells.evidence_at(rotation, page, read)
    }
}

/// A run of the batch `hashes`, with the cells that process it.
pub(crate) struct Run<'a, L: LineKernel<LINES>, const LINES: usize> {
    pub cells: &'a L,
    pub rotation: L::Rotation,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
}

impl<L: LineKernel<LINES>, const LINES: usize> Run<'_, L, LINES> {
    /// Inserts the keys.
    #[inline(always)]
    pub fn insert(self, words: &mut [u64]) {
        match self.only_key() {
            Some(location) => self.cells.instructions().run(InsertOne { run: self, location, words }),
            None => self.cells.instructions().run(InsertMany { run: self, words }),
        }
    }

    /// Writes to `present`, which is as long as the batch, which keys the lines contain.
    #[inline(always)]
    pub fn query(self, words: &[u64], present: &mut [bool]) {
        match self.only_key() {
            Some(location) => self.cells.instructions().run(QueryOne { run: self, location, words, present }),
            None => self.cells.instructions().run(QueryMany { run: self, words, present }),
        }
    }

    /// Writes the evidence about each key.
    #[inline(always)]
    pub fn encode<T: Encode<L, LINES>>(self, words: &[u64], evidence: &mut [T]) {
        self.cells.instructions().run(ReadEvidence { run: self, words, evidence });
    }

    /// Writes to `seen`, which is as long as the batch, which keys the lines contain, and then inserts them; without
    /// `refresh` only the other keys. Returns the number of insertions.
    #[inline(always)]
    pub fn duplicated(self, words: &mut [u64], refresh: bool, seen: &mut [bool]) -> u64 {
        match self.only_key() {
            Some(location) => {
                self.cells.instructions().run(DuplicatedOne { run: self, location, words, refresh, seen })
            }
            None => self.cells.instructions().run(DuplicatedMany { run: self, words, refresh, seen }),
        }
    }

    /// Returns the location of the key, if the run has only one: it is processed before a prefetch ring could be set
    /// up.
    #[inline(always)]
    fn only_key(&self) -> Option<Location<LINES>> {
        match &self.hashes[self.run.clone()] {
            &[hash] => Some(self.cells.pages().location(hash)),
            _ => None,
        }
    }

    /// Returns an empty ring for the locations of the keys, which prefetches their lines.
    #[inline(always)]
    fn in_flight(&self, words: &[u64]) -> PrefetchRing<'_, LINES> {
        PrefetchRing::new(self.cells.pages(), words, self.hashes)
    }
}

/// Inserts a run of keys.
struct InsertMany<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for InsertMany<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words } = self;
        let (cells, rotation) = (*run.cells, run.rotation);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
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
struct InsertOne<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    location: Location<LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for InsertOne<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, rotation, .. }, location, words } = self;
        cells.write(machine, words.as_chunks_mut().0, rotation, &location, &cells.probe(machine, &location));
    }
}

/// Queries a run of keys.
struct QueryMany<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a [u64],
    present: &'a mut [bool],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for QueryMany<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words, present } = self;
        let (cells, rotation, lines) = (*run.cells, run.rotation, words.as_chunks().0);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        for start in run.run.clone().step_by(READ) {
            let block = start..run.run.end.min(start + READ);
            let (mut pages, mut reads) = ([[0; GROUP]; READ / GROUP], [[L::Read::default(); GROUP]; READ / GROUP]);
            let groups = pages.iter_mut().zip(&mut reads).enumerate().take(block.len().div_ceil(GROUP));
            for (group, (pages, reads)) in groups {
                let start = block.start + group * GROUP;
                // Where the run ends within a group, the other keys have locations too, and their answers are not read.
                *pages = coming.group(start).pages;
                for (key, read) in reads.iter_mut().enumerate() {
                    let location = coming.group(start).at(key);
                    *read = cells.read(machine, lines, rotation, &location, &cells.probe(machine, &location));
                }
                coming.replace(start);
            }
            let (pages, reads) = (pages.as_flattened(), reads.as_flattened());
            machine.run(Answer { run: &run, pages, reads, present: &mut present[block] });
        }
    }
}

/// Queries a single key.
struct QueryOne<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    location: Location<LINES>,
    words: &'a [u64],
    present: &'a mut [bool],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for QueryOne<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, rotation, run, .. }, location, words, present } = self;
        let read = cells.read(machine, words.as_chunks().0, rotation, &location, &cells.probe(machine, &location));
        present[run.start] = cells.reports(rotation, location.page, read);
    }
}

/// Computes the answers of a query from what was read. A separate function, because its registers would displace those
/// that reading needs.
struct Answer<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: &'a Run<'a, L, LINES>,
    pages: &'a [u32],
    reads: &'a [L::Read],
    present: &'a mut [bool],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for Answer<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, rotation) = (*self.run.cells, self.run.rotation);
        for (present, (&page, &read)) in self.present.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *present = cells.reports(rotation, page, read);
        }
    }
}

/// Reads the evidence about a run of keys.
struct ReadEvidence<'a, L: LineKernel<LINES>, T, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a [u64],
    evidence: &'a mut [T],
}

impl<M: Vectors, L: LineKernel<LINES>, T: Encode<L, LINES>, const LINES: usize> Work<M>
    for ReadEvidence<'_, L, T, LINES>
{
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words, evidence } = self;
        let (cells, rotation, lines) = (*run.cells, run.rotation, words.as_chunks().0);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        for (start, evidence) in run.run.clone().step_by(READ).zip(evidence.chunks_mut(READ)) {
            let (mut pages, mut reads) = ([[0; GROUP]; READ / GROUP], [[L::Aged::default(); GROUP]; READ / GROUP]);
            let groups = pages.iter_mut().zip(&mut reads).enumerate().take(evidence.len().div_ceil(GROUP));
            for (group, (pages, reads)) in groups {
                let start = start + group * GROUP;
                *pages = coming.group(start).pages;
                for (key, read) in reads.iter_mut().enumerate() {
                    *read = cells.read_age(machine, lines, rotation, &coming.group(start).at(key));
                }
                coming.replace(start);
            }
            machine.run(EncodeEvidence {
                run: &run,
                pages: pages.as_flattened(),
                reads: reads.as_flattened(),
                evidence,
            });
        }
    }
}

/// Encodes evidence from what was read.
struct EncodeEvidence<'a, L: LineKernel<LINES>, T, const LINES: usize> {
    run: &'a Run<'a, L, LINES>,
    pages: &'a [u32],
    reads: &'a [L::Aged],
    evidence: &'a mut [T],
}

impl<M: Vectors, L: LineKernel<LINES>, T: Encode<L, LINES>, const LINES: usize> Work<M>
    for EncodeEvidence<'_, L, T, LINES>
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
struct DuplicatedMany<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for DuplicatedMany<'_, L, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run, words, refresh, seen } = self;
        let (cells, rotation) = (*run.cells, run.rotation);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        let (lines, mut inserted) = (words.as_chunks_mut().0, 0);
        for (start, seen) in run.run.clone().step_by(GROUP).zip(seen[run.run.clone()].chunks_mut(GROUP)) {
            for (key, seen) in seen.iter_mut().enumerate() {
                let location = coming.group(start).at(key);
                let probe = cells.probe(machine, &location);
                let read = cells.read(machine, lines, rotation, &location, &probe);
                *seen = cells.reports_now(rotation, location.page, read);
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
struct DuplicatedOne<'a, L: LineKernel<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    location: Location<LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, L: LineKernel<LINES>, const LINES: usize> Work<M> for DuplicatedOne<'_, L, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run: Run { cells, rotation, run, .. }, location, words, refresh, seen } = self;
        let (lines, probe) = (words.as_chunks_mut().0, cells.probe(machine, &location));
        let present =
            cells.reports_now(rotation, location.page, cells.read(machine, lines, rotation, &location, &probe));
        seen[run.start] = present;
        let inserted = refresh || !present;
        if inserted {
            cells.write(machine, lines, rotation, &location, &probe);
        }
        inserted.into()
    }
}
