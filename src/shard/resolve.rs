//! Tests first, then sets (paper 4, section 2), for a whole batch, from the sites' answers before it.
//!
//! One question and one order to each site for a whole batch would give other verdicts than key by key: a key that
//! comes twice in the batch would find its cells empty twice. So the cells set by earlier keys of the batch are
//! remembered here, and each key sees them.

use super::NEVER;
use crate::Error;
use crate::memory::Words;
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;

/// Keys whose cells are prefetched: 7 cells each are 56 cache lines in flight.
const AHEAD: usize = 8;

/// What is known of the keys of a batch: rows of `k` cells, one row per key, unless stated otherwise.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// Cells of a key.
    pub k: usize,
    /// The numbers of the cells.
    pub cells: &'a [u64],
    /// The generation in which each cell was last set, or [`NEVER`].
    pub last: &'a [i64],
    /// The generation of each key.
    pub generations: &'a [i64],
    /// Whether each cell's site has answered, as 1 or 0; `None` means all have.
    pub alive: Option<&'a [u8]>,
    /// The newest generation whose cells each site may have missed, or [`NEVER`]. While it counts, an empty cell there
    /// counts as not answered.
    pub missed: Option<&'a [i64]>,
    /// The verdict given to each key before, as 1 or 0; -1 if none.
    pub known: Option<&'a [i8]>,
}

/// The rule by which keys are decided.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The latest generation seen before the batch, or [`NEVER`].
    pub newest: i64,
    /// Full generations that a cell counts beyond the one it was set in.
    pub kept: i64,
    /// Whether every sighting restarts the window.
    pub refresh: bool,
    /// How many cells of a duplicate must have an answer (x of paper 4's fault tolerance heuristic, as erratum OIE-2
    /// reads it): with 0, a failed site counts as set; with k, as empty.
    pub least: usize,
    /// How many cells of a duplicate must have been set in one generation (paper 4, "equal timers"); 1 demands nothing.
    pub equal: usize,
}

/// Writes which keys have been seen, in order, as if the sites had received them key by key.
pub fn resolve(answers: Answers<'_>, rule: Rule, seen: &mut [bool]) -> Result<(), Error> {
    answers.check(rule, seen.len())?;
    let Answers { k, cells, last, generations, alive, missed, known } = answers;
    let mut room = Words::zeroed(Sightings::room(cells.len()))?;
    let mut set = Sightings { slots: room.to_mut()?.as_chunks_mut().0 };
    let (mut newest, mut key) = (rule.newest, Answered::new(k.min(cells.len())));
    for (i, seen) in seen.iter_mut().enumerate() {
        let (row, ahead) = (i * k..(i + 1) * k, (i + AHEAD) * k);
        for &cell in cells.get(ahead..ahead + k).unwrap_or_default() {
            set.fetch(cell);
        }
        newest = newest.max(generations[i]);
        *seen = match known.map_or(-1, |known| known[i]) {
            -1 => {
                for j in row.clone() {
                    match alive.is_none_or(|alive| alive[j] != 0) {
                        true => key.put(j - i * k, last[j].max(set.get(cells[j])), missed.map_or(NEVER, |m| m[j])),
                        false => key.fail(j - i * k),
                    }
                }
                key.seen(newest, rule).0
            }
            known => known == 1,
        };
        if rule.refresh || !*seen {
            cells[row].iter().for_each(|&cell| set.raise(cell, generations[i]));
        }
    }
    Ok(())
}

/// What was answered for the cells of a key.
pub(super) struct Answered {
    /// When each was last set, and the newest generation that its site may have missed; `None` if it has failed.
    cells: Vec<Option<(i64, i64)>>,
    there: Vec<i64>,
}

impl Answered {
    pub(super) fn new(k: usize) -> Self {
        Self { cells: vec![None; k], there: Vec::with_capacity(k) }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, column: usize, last: i64, missed: i64) {
        self.cells[column] = Some((last, missed));
    }

    pub(super) fn fail(&mut self, column: usize) {
        self.cells[column] = None;
    }

    /// Copies to a cell what is known of the same cell before it.
    pub(super) fn repeat(&mut self, column: usize, first: usize) {
        self.cells[column] = self.cells[first];
    }

    /// Whether the key has been seen, and whether that is uncertain: a site of it has failed, or no cell proves that it
    /// is new and one might.
    #[inline(always)]
    pub(super) fn seen(&mut self, newest: i64, rule: Rule) -> (bool, bool) {
        self.there.clear();
        let live = |&last: &i64| last != NEVER && newest.saturating_sub(last) <= rule.kept;
        let answered = self.cells.iter().flatten().filter(|(last, missed)| live(last) || !live(missed));
        self.there.extend(answered.map(|&(last, _)| last));
        let open = self.there.iter().all(live);
        let doubted = open && self.there.len() < self.cells.len();
        let seen = open && self.there.len() >= rule.least && (rule.equal <= 1 || alike(&mut self.there, rule.equal));
        (seen, doubted || self.cells.iter().any(Option::is_none))
    }
}

/// Whether `equal` of these generations are the same.
fn alike(generations: &mut [i64], equal: usize) -> bool {
    generations.sort_unstable();
    generations.chunk_by(|a, b| a == b).any(|alike| alike.len() >= equal)
}

impl Rule {
    /// Refuses what does not fit keys of k cells, of these generations.
    pub(super) fn check(&self, k: usize, generations: &[i64]) -> Result<(), Error> {
        for (name, count) in [("least", self.least), ("equal", self.equal)] {
            if count > k {
                return Err(Error::value(format!("{name} must be at most k, here {k}, got {count}")));
            }
        }
        match generations.iter().position(|&generation| generation == NEVER) {
            None => Ok(()),
            Some(i) => Err(Error::value(format!("generations[{i}] is {NEVER}, which stands for a cell never set"))),
        }
    }
}

impl Answers<'_> {
    fn check(&self, rule: Rule, keys: usize) -> Result<(), Error> {
        let cells = keys * self.k;
        debug_assert!(self.cells.len() == cells && self.last.len() == cells);
        debug_assert!(self.generations.len() == keys && self.alive.is_none_or(|alive| alive.len() == cells));
        debug_assert!(self.missed.is_none_or(|missed| missed.len() == cells));
        rule.check(self.k, self.generations)?;
        let wrong = |known: &[i8]| known.iter().position(|known| !(-1..=1).contains(known)).map(|i| (i, known[i]));
        match self.known.and_then(wrong) {
            None => Ok(()),
            Some((i, known)) => Err(Error::value(format!("known[{i}] must be -1, 0 or 1, got {known}"))),
        }
    }
}

/// The latest generation in which each cell was set: an open-addressed table with room for a third more cells than
/// there are.
struct Sightings<'a> {
    /// Cell, and generation counted from [`NEVER`], so that 0 is an empty slot and fresh memory an empty table.
    slots: &'a mut [[u64; 2]],
}

impl Sightings<'_> {
    /// Slots of a table for this many cells.
    fn room(cells: usize) -> usize {
        2 * (cells + cells / 3 + 1)
    }

    /// The slot at which the search for a cell begins: the high bits of a product (Fibonacci hashing).
    #[inline(always)]
    fn first(&self, cell: u64) -> usize {
        scale(cell.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.slots.len() as u64) as usize
    }

    /// The slot of a cell, or the one it would take.
    #[inline(always)]
    fn slot(&self, cell: u64) -> usize {
        let mut slot = self.first(cell);
        while self.slots[slot][1] != 0 && self.slots[slot][0] != cell {
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
        slot
    }

    /// Prefetches what [`get`](Self::get) reads.
    #[inline(always)]
    fn fetch(&self, cell: u64) {
        Address::of(self.slots.as_flattened()).fetch(2 * self.first(cell));
    }

    #[inline(always)]
    fn get(&self, cell: u64) -> i64 {
        self.slots[self.slot(cell)][1] as i64 ^ NEVER
    }

    /// Sets a cell in a generation, unless it has been set in a later one.
    #[inline(always)]
    fn raise(&mut self, cell: u64, generation: i64) {
        let slot = self.slot(cell);
        let there = self.slots[slot][1] as i64 ^ NEVER;
        self.slots[slot] = [cell, (there.max(generation) ^ NEVER) as u64];
    }
}
