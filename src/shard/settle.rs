//! First test, then set (paper 4, section 2), of a whole batch: from what the sites answered before it.
//!
//! One question and one order to each site for a whole batch would give other verdicts than key by key: a key that comes
//! twice in the batch finds its cells empty twice. So what earlier keys of the batch set is remembered here, cell by
//! cell, and each key sees it.

use super::NEVER;
use crate::Error;
use crate::memory::Words;
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;

/// Keys whose cells are looked up ahead: 7 cells of each are 56 lines on their way.
const AHEAD: usize = 8;

/// What is known of the keys of a batch: rows of `k` cells, one a key, unless said otherwise.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// Cells of a key.
    pub k: usize,
    /// The numbers of the cells.
    pub cells: &'a [u64],
    /// The generation in which each was last set, or [`NEVER`].
    pub last: &'a [i64],
    /// The generation of each key.
    pub generations: &'a [i64],
    /// Whether the site of each cell has answered, as 1 or 0; all have where this is not given.
    pub alive: Option<&'a [u8]>,
    /// The newest generation of which each site may lack what was set, or [`NEVER`]; while that counts, a cell that is not
    /// live there counts as not answered.
    pub missed: Option<&'a [i64]>,
    /// The verdict that each key has been given before, as 1 or 0; -1 where it has not.
    pub known: Option<&'a [i8]>,
}

/// How a key is judged.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The latest generation seen before the batch, or [`NEVER`].
    pub newest: i64,
    /// Full generations that a cell counts beside the one it was set in.
    pub kept: i64,
    /// Whether every sighting restarts the window.
    pub refresh: bool,
    /// Cells of a duplicate whose sites must have answered (x of paper 4's fault tolerance heuristic, as erratum OIE-2
    /// reads it): with 0 a site that has failed counts as set, with k as empty.
    pub least: usize,
    /// Cells of a duplicate that must have been set in one generation (paper 4, "equal timers"); 1 asks nothing.
    pub equal: usize,
}

/// Writes which keys have been seen, in order, as if the sites had been asked key by key.
pub fn settle(answers: Answers<'_>, rule: Rule, seen: &mut [bool]) -> Result<(), Error> {
    answers.check(rule, seen.len())?;
    let Answers { k, cells, last, generations, alive, missed, known } = answers;
    let mut room = Words::zeroed(Sightings::room(cells.len()))?;
    let mut set = Sightings { slots: room.to_mut()?.as_chunks_mut().0 };
    let (mut newest, mut there) = (rule.newest, Vec::with_capacity(k));
    for (i, seen) in seen.iter_mut().enumerate() {
        let (row, ahead) = (i * k..(i + 1) * k, (i + AHEAD) * k);
        for &cell in cells.get(ahead..ahead + k).unwrap_or_default() {
            set.fetch(cell);
        }
        newest = newest.max(generations[i]);
        *seen = match known.map_or(-1, |known| known[i]) {
            -1 => {
                there.clear();
                let live = |&last: &i64| last != NEVER && newest.saturating_sub(last) <= rule.kept;
                let answered = row.clone().filter(|&j| alive.is_none_or(|alive| alive[j] != 0)).filter_map(|j| {
                    let last = last[j].max(set.get(cells[j]));
                    (live(&last) || !missed.is_some_and(|missed| live(&missed[j]))).then_some(last)
                });
                there.extend(answered);
                there.iter().all(live)
                    && there.len() >= rule.least
                    && (rule.equal <= 1 || alike(&mut there, rule.equal))
            }
            known => known == 1,
        };
        if rule.refresh || !*seen {
            cells[row].iter().for_each(|&cell| set.raise(cell, generations[i]));
        }
    }
    Ok(())
}

/// Whether so many of these generations are equal.
fn alike(generations: &mut [i64], equal: usize) -> bool {
    generations.sort_unstable();
    generations.chunk_by(|a, b| a == b).any(|alike| alike.len() >= equal)
}

impl Answers<'_> {
    fn check(&self, rule: Rule, keys: usize) -> Result<(), Error> {
        let cells = keys * self.k;
        debug_assert!(self.cells.len() == cells && self.last.len() == cells);
        debug_assert!(self.generations.len() == keys && self.alive.is_none_or(|alive| alive.len() == cells));
        debug_assert!(self.missed.is_none_or(|missed| missed.len() == cells));
        for (name, count) in [("least", rule.least), ("equal", rule.equal)] {
            if count > self.k {
                return Err(Error::value(format!("{name} must be at most k, here {}, got {count}", self.k)));
            }
        }
        if let Some(i) = self.generations.iter().position(|&generation| generation == NEVER) {
            return Err(Error::value(format!("generations[{i}] is {NEVER}, which stands for a cell never set")));
        }
        let wrong = |known: &[i8]| known.iter().position(|known| !(-1..=1).contains(known)).map(|i| (i, known[i]));
        match self.known.and_then(wrong) {
            None => Ok(()),
            Some((i, known)) => Err(Error::value(format!("known[{i}] must be -1, 0 or 1, got {known}"))),
        }
    }
}

/// The latest generation in which each cell was set: an open-addressed table with room for a third more than all.
struct Sightings<'a> {
    /// Cell and generation, the latter by its distance from [`NEVER`], so that 0 is no cell: fresh memory is an empty table.
    slots: &'a mut [[u64; 2]],
}

impl Sightings<'_> {
    /// Words of a table for so many cells.
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

    /// Starts fetching what [`get`](Self::get) reads.
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
