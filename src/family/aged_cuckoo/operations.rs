//! The loop over the keys of a run, and what is done with each.

use std::marker::PhantomData;
use std::ops::Range;

use super::line::{Format, Line, Now, Tags};
use super::pages::{Pages, Place};
use super::table::{Found, Table};
use super::vectors::ByteVectors;
use crate::inference::Evidence;
use crate::instructions::Work;
use crate::memory::prefetch::{AHEAD, Address};

/// What is done with each key of a run.
pub trait Operation {
    /// Applies the operation to key `i` of the batch. Returns whether to go on.
    fn apply<F: Format, M: ByteVectors>(&mut self, table: Table<'_, M>, i: usize, place: Place) -> bool;
}

/// What the open epoch means to each key of a run.
pub trait Nows {
    /// Returns what it means to key `i` of the run.
    fn of(&self, i: usize) -> Now;
}

impl Nows for Now {
    #[inline(always)]
    fn of(&self, _: usize) -> Now {
        *self
    }
}

impl Nows for &[Now] {
    #[inline(always)]
    fn of(&self, i: usize) -> Now {
        self[i]
    }
}

/// Applies an operation to the keys of a run, in order, while both lines of later keys are on their way. Returns the
/// number of keys done.
pub struct ForEach<'a, F, O, N> {
    pub pages: &'a Pages,
    pub now: N,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub operation: &'a mut O,
    /// The address of the lines.
    pub address: Address,
    pub format: PhantomData<F>,
}

impl<F: Format, O: Operation, N: Nows, M: ByteVectors> Work<M> for ForEach<'_, F, O, N> {
    type Output = usize;

    #[inline(always)]
    fn run(self, machine: M) -> usize {
        let Self { pages, now, hashes, run, operation, address, .. } = self;
        let (hashes, before) = (&hashes[..run.end], run.start);
        // The places of the next keys, so that each is computed once.
        let mut ring = [Place::default(); AHEAD];
        let placed = |hash: u64| {
            let place = pages.place_of(hash, F::FINGERPRINT);
            address.fetch(place.first as usize * 8);
            address.fetch(place.second as usize * 8);
            place
        };
        ring.iter_mut().zip(&hashes[before..]).for_each(|(place, &hash)| *place = placed(hash));
        for i in run {
            let coming = (i - before) % AHEAD;
            let place = ring[coming];
            if let Some(&hash) = hashes.get(i + AHEAD) {
                ring[coming] = placed(hash);
            }
            if !operation.apply::<F, M>(Table { machine, pages, now: now.of(i - before), alone: false }, i, place) {
                return i - before;
            }
        }
        hashes.len() - before
    }
}

/// Looks up one key.
pub struct Contains<'a, F> {
    pub pages: &'a Pages,
    pub reported: Tags,
    pub lines: &'a [Line],
    pub hash: u64,
    pub format: PhantomData<F>,
}

impl<F: Format, M: ByteVectors> Work<M> for Contains<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run(self, machine: M) -> bool {
        Table { machine, pages: self.pages, now: Now::reporting(self.reported), alone: true }
            .contains::<F>(self.lines, self.pages.place_of(self.hash, F::FINGERPRINT))
    }
}

/// Looks up one key and inserts it.
pub struct Seen<'a, F> {
    pub pages: &'a Pages,
    pub now: Now,
    pub lines: &'a mut [Line],
    pub hash: u64,
    pub full: Full,
    pub format: PhantomData<F>,
}

impl<F: Format, M: ByteVectors> Work<M> for Seen<'_, F> {
    type Output = Option<bool>;

    #[inline(always)]
    fn run(self, machine: M) -> Option<bool> {
        let table = Table { machine, pages: self.pages, now: self.now, alone: true };
        self.full.seen::<F, M>(table, self.lines, self.pages.place_of(self.hash, F::FINGERPRINT))
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
    fn seen<F: Format, M: ByteVectors>(self, table: Table<'_, M>, lines: &mut [Line], place: Place) -> Option<bool> {
        match self {
            Self::Rejects => Some(table.seen_or_reject::<F>(lines, place)),
            Self::Ends | Self::EndsStill => table.seen::<F>(lines, place, self == Self::Ends),
        }
    }
}

/// Inserts keys.
pub struct Insert<'a> {
    pub lines: &'a mut [Line],
    pub full: Full,
}

impl Operation for Insert<'_> {
    #[inline(always)]
    fn apply<F: Format, M: ByteVectors>(&mut self, table: Table<'_, M>, _: usize, place: Place) -> bool {
        self.full.seen::<F, M>(table, self.lines, place).is_some()
    }
}

/// Writes which keys the lines contain.
pub struct Query<'a> {
    pub lines: &'a [Line],
    pub present: &'a mut [bool],
}

impl Operation for Query<'_> {
    #[inline(always)]
    fn apply<F: Format, M: ByteVectors>(&mut self, table: Table<'_, M>, i: usize, place: Place) -> bool {
        self.present[i] = table.contains::<F>(self.lines, place);
        true
    }
}

/// Writes which keys the lines contain, and inserts them; without `refresh` only those that they do not contain.
pub struct Duplicated<'a> {
    pub lines: &'a mut [Line],
    pub seen: &'a mut [bool],
    pub refresh: bool,
    pub full: Full,
    /// The number of insertions.
    pub inserted: u64,
}

impl Operation for Duplicated<'_> {
    #[inline(always)]
    fn apply<F: Format, M: ByteVectors>(&mut self, table: Table<'_, M>, i: usize, place: Place) -> bool {
        if !self.refresh && table.contains::<F>(self.lines, place) {
            self.seen[i] = true;
            return true;
        }
        let Some(seen) = self.full.seen::<F, M>(table, self.lines, place) else { return false };
        self.seen[i] = seen;
        self.inserted += 1;
        true
    }
}

/// Writes the evidence about each key.
pub struct ReadEvidence<'a> {
    pub lines: &'a [Line],
    pub evidence: &'a mut [Evidence],
}

impl Operation for ReadEvidence<'_> {
    #[inline(always)]
    fn apply<F: Format, M: ByteVectors>(&mut self, table: Table<'_, M>, i: usize, place: Place) -> bool {
        let epochs = |tag: u8| u32::from(table.now.age(tag));
        self.evidence[i] = Evidence::epochs(match table.find::<F>(self.lines, place) {
            Found::Entry(tag) => Some((epochs(tag), true)),
            Found::Rejection(tag) => Some((epochs(tag), false)),
            Found::Nothing => None,
        });
        true
    }
}

/// Clears expired tags.
pub struct Sweep<'a, F> {
    pub now: Now,
    pub lines: &'a mut [Line],
    pub format: PhantomData<F>,
}

impl<F: Format, M: ByteVectors> Work<M> for Sweep<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        self.lines.iter_mut().for_each(|line| super::line::sweep::<F, M>(machine, line, self.now.live));
    }
}
