//! What a run of keys does to lines, written once for all cells that lie in lines.

use std::ops::Range;

use super::LINE;
use super::pages::{GROUP, InFlight, Pages, Spot};
use super::vectors::Vectors;
use crate::inference::Evidence;
use crate::instructions::{Instructions, Work};

/// Keys to read before their answers are computed, which vector instructions do for several at once.
const READ: usize = 64;

/// What a key does in its lines. All of it is `inline(always)`: see [instructions](crate::instructions).
pub(crate) trait InLines<const LINES: usize>: Copy {
    /// What the generation means for the cells.
    type Phase: Copy;

    /// A key's cells in its lines.
    type Taken<V: Vectors>: Copy;

    /// What a query reads.
    type Read: Copy + Default;

    /// What tells the age of a key.
    type Aged: Copy + Default;

    /// The pages of the lines.
    fn pages(&self) -> Pages<LINES>;

    /// The instruction set to use.
    fn instructions(&self) -> Instructions;

    /// A key's cells in its lines.
    fn taken<V: Vectors>(&self, vectors: V, spot: &Spot<LINES>) -> Self::Taken<V>;

    /// Reads those cells.
    fn read<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        phase: Self::Phase,
        spot: &Spot<LINES>,
        taken: &Self::Taken<V>,
    ) -> Self::Read;

    /// Whether a key of this page is held, from what was read.
    fn holds(&self, phase: Self::Phase, page: u32, read: Self::Read) -> bool;

    /// The same, in a phase without pending generations.
    #[inline(always)]
    fn holds_now(&self, phase: Self::Phase, page: u32, read: Self::Read) -> bool {
        self.holds(phase, page, read)
    }

    /// Reads what tells the age of a key.
    fn read_age<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        phase: Self::Phase,
        spot: &Spot<LINES>,
    ) -> Self::Aged;

    /// What the lines say about a key of this page, from what was read.
    fn says(&self, phase: Self::Phase, page: u32, read: Self::Aged) -> Evidence;

    /// Writes a key into its lines.
    fn write<V: Vectors>(
        &self,
        vectors: V,
        lines: &mut [[u64; LINE]],
        phase: Self::Phase,
        spot: &Spot<LINES>,
        taken: &Self::Taken<V>,
    );
}

/// What lines tell of a key: evidence, or what a kind of cells has instead.
pub(crate) trait Told<L: InLines<LINES>, const LINES: usize>: Copy {
    /// That of a key of this page, from what was read.
    fn told(cells: &L, phase: L::Phase, page: u32, read: L::Aged) -> Self;
}

impl<L: InLines<LINES>, const LINES: usize> Told<L, LINES> for Evidence {
    #[inline(always)]
    fn told(cells: &L, phase: L::Phase, page: u32, read: L::Aged) -> Self {
        cells.says(phase, page, read)
    }
}

/// Keys that act on cells in one phase: a run of the batch `hashes`.
pub(crate) struct Run<'a, L: InLines<LINES>, const LINES: usize> {
    pub cells: &'a L,
    pub phase: L::Phase,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
}

impl<L: InLines<LINES>, const LINES: usize> Run<'_, L, LINES> {
    /// Inserts them.
    #[inline(always)]
    pub fn insert(self, words: &mut [u64]) {
        match self.alone() {
            Some(spot) => self.cells.instructions().run(InsertAlone { run: self, spot, words }),
            None => self.cells.instructions().run(Insert { run: self, words }),
        }
    }

    /// Writes to `present`, which is as long as the batch, which of them are held.
    #[inline(always)]
    pub fn query(self, words: &[u64], present: &mut [bool]) {
        match self.alone() {
            Some(spot) => self.cells.instructions().run(QueryAlone { run: self, spot, words, present }),
            None => self.cells.instructions().run(Query { run: self, words, present }),
        }
    }

    /// Writes what the lines say about each of them.
    #[inline(always)]
    pub fn tell<T: Told<L, LINES>>(self, words: &[u64], told: &mut [T]) {
        self.cells.instructions().run(Says { run: self, words, told });
    }

    /// Writes to `seen`, which is as long as the batch, which of them were held, and inserts them; without `refresh`
    /// only the others. Returns how many it inserted.
    #[inline(always)]
    pub fn duplicated(self, words: &mut [u64], refresh: bool, seen: &mut [bool]) -> u64 {
        match self.alone() {
            Some(spot) => self.cells.instructions().run(DuplicatedAlone { run: self, spot, words, refresh, seen }),
            None => self.cells.instructions().run(Duplicated { run: self, words, refresh, seen }),
        }
    }

    /// The place of the key, if it is alone: it is done before a ring for keys in flight is set up.
    #[inline(always)]
    fn alone(&self) -> Option<Spot<LINES>> {
        match &self.hashes[self.run.clone()] {
            &[hash] => Some(self.cells.pages().spot(hash)),
            _ => None,
        }
    }

    /// The places of groups of them, in order, while the lines of later keys are prefetched.
    #[inline(always)]
    fn in_flight(&self, words: &[u64]) -> InFlight<'_, LINES> {
        InFlight::new(self.cells.pages(), words, self.hashes)
    }
}

struct Insert<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for Insert<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words } = self;
        let (cells, phase) = (*run.cells, run.phase);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        let lines = words.as_chunks_mut().0;
        for start in run.run.clone().step_by(GROUP) {
            for key in 0..GROUP.min(run.run.end - start) {
                let spot = coming.group(start).at(key);
                cells.write(machine, lines, phase, &spot, &cells.taken(machine, &spot));
            }
            coming.pass(start);
        }
    }
}

/// The same for a run of one key. A function of its own, beside which the loop is compiled as if it were alone.
struct InsertAlone<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    spot: Spot<LINES>,
    words: &'a mut [u64],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for InsertAlone<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, phase, .. }, spot, words } = self;
        cells.write(machine, words.as_chunks_mut().0, phase, &spot, &cells.taken(machine, &spot));
    }
}

struct Query<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a [u64],
    present: &'a mut [bool],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for Query<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words, present } = self;
        let (cells, phase, lines) = (*run.cells, run.phase, words.as_chunks().0);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        for start in run.run.clone().step_by(READ) {
            let block = start..run.run.end.min(start + READ);
            let (mut pages, mut reads) = ([[0; GROUP]; READ / GROUP], [[L::Read::default(); GROUP]; READ / GROUP]);
            let groups = pages.iter_mut().zip(&mut reads).enumerate().take(block.len().div_ceil(GROUP));
            for (group, (pages, reads)) in groups {
                let start = block.start + group * GROUP;
                // Where the run ends within a group, the others have places too, and nobody reads their answers.
                *pages = coming.group(start).pages;
                for (key, read) in reads.iter_mut().enumerate() {
                    let spot = coming.group(start).at(key);
                    *read = cells.read(machine, lines, phase, &spot, &cells.taken(machine, &spot));
                }
                coming.pass(start);
            }
            let (pages, reads) = (pages.as_flattened(), reads.as_flattened());
            machine.run(Report { run: &run, pages, reads, present: &mut present[block] });
        }
    }
}

/// The same for a run of one key.
struct QueryAlone<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    spot: Spot<LINES>,
    words: &'a [u64],
    present: &'a mut [bool],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for QueryAlone<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run: Run { cells, phase, run, .. }, spot, words, present } = self;
        let read = cells.read(machine, words.as_chunks().0, phase, &spot, &cells.taken(machine, &spot));
        present[run.start] = cells.holds(phase, spot.page, read);
    }
}

/// Computes answers from what was read. A separate function, since its registers would displace those that reading
/// needs.
struct Report<'a, L: InLines<LINES>, const LINES: usize> {
    run: &'a Run<'a, L, LINES>,
    pages: &'a [u32],
    reads: &'a [L::Read],
    present: &'a mut [bool],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for Report<'_, L, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, phase) = (*self.run.cells, self.run.phase);
        for (present, (&page, &read)) in self.present.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *present = cells.holds(phase, page, read);
        }
    }
}

struct Says<'a, L: InLines<LINES>, T, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a [u64],
    told: &'a mut [T],
}

impl<M: Vectors, L: InLines<LINES>, T: Told<L, LINES>, const LINES: usize> Work<M> for Says<'_, L, T, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { run, words, told } = self;
        let (cells, phase, lines) = (*run.cells, run.phase, words.as_chunks().0);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        for (start, told) in run.run.clone().step_by(READ).zip(told.chunks_mut(READ)) {
            let (mut pages, mut reads) = ([[0; GROUP]; READ / GROUP], [[L::Aged::default(); GROUP]; READ / GROUP]);
            let groups = pages.iter_mut().zip(&mut reads).enumerate().take(told.len().div_ceil(GROUP));
            for (group, (pages, reads)) in groups {
                let start = start + group * GROUP;
                *pages = coming.group(start).pages;
                for (key, read) in reads.iter_mut().enumerate() {
                    *read = cells.read_age(machine, lines, phase, &coming.group(start).at(key));
                }
                coming.pass(start);
            }
            machine.run(Tell { run: &run, pages: pages.as_flattened(), reads: reads.as_flattened(), told });
        }
    }
}

/// Computes what is told from what was read.
struct Tell<'a, L: InLines<LINES>, T, const LINES: usize> {
    run: &'a Run<'a, L, LINES>,
    pages: &'a [u32],
    reads: &'a [L::Aged],
    told: &'a mut [T],
}

impl<M: Vectors, L: InLines<LINES>, T: Told<L, LINES>, const LINES: usize> Work<M> for Tell<'_, L, T, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let (cells, phase) = (*self.run.cells, self.run.phase);
        for (told, (&page, &read)) in self.told.iter_mut().zip(self.pages.iter().zip(self.reads)) {
            *told = T::told(&cells, phase, page, read);
        }
    }
}

struct Duplicated<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for Duplicated<'_, L, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run, words, refresh, seen } = self;
        let (cells, phase) = (*run.cells, run.phase);
        let mut coming = run.in_flight(words);
        coming.begin(&run.run);
        let (lines, mut inserted) = (words.as_chunks_mut().0, 0);
        for (start, seen) in run.run.clone().step_by(GROUP).zip(seen[run.run.clone()].chunks_mut(GROUP)) {
            for (key, seen) in seen.iter_mut().enumerate() {
                let spot = coming.group(start).at(key);
                let taken = cells.taken(machine, &spot);
                let read = cells.read(machine, lines, phase, &spot, &taken);
                *seen = cells.holds_now(phase, spot.page, read);
                if refresh || !*seen {
                    cells.write(machine, lines, phase, &spot, &taken);
                    inserted += 1;
                }
            }
            coming.pass(start);
        }
        inserted
    }
}

/// The same for a run of one key.
struct DuplicatedAlone<'a, L: InLines<LINES>, const LINES: usize> {
    run: Run<'a, L, LINES>,
    spot: Spot<LINES>,
    words: &'a mut [u64],
    refresh: bool,
    seen: &'a mut [bool],
}

impl<M: Vectors, L: InLines<LINES>, const LINES: usize> Work<M> for DuplicatedAlone<'_, L, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self, machine: M) -> u64 {
        let Self { run: Run { cells, phase, run, .. }, spot, words, refresh, seen } = self;
        let (lines, taken) = (words.as_chunks_mut().0, cells.taken(machine, &spot));
        let held = cells.holds_now(phase, spot.page, cells.read(machine, lines, phase, &spot, &taken));
        seen[run.start] = held;
        let inserted = refresh || !held;
        if inserted {
            cells.write(machine, lines, phase, &spot, &taken);
        }
        inserted.into()
    }
}
