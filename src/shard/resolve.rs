//! Decides keys by the sites' answers for their cells, in order, as if the sites had received them key by key.
//!
//! One message to each site for a whole batch would give other verdicts: a key that comes twice would find its cells
//! empty twice. So sites set the cells of each key before they read those of the next, or [`SeenCells`] stores what
//! earlier keys of the batch set.

use super::ages::{Ages, FOREVER};
use super::{NEVER, SILENT};
use crate::Error;
use crate::memory::Words;
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;

/// The answer of a site about its cells of a batch.
pub struct Answer {
    /// For each of the cells, how many generations before `base` it was last set.
    pub ages: Ages,
    /// The generation from which the ages count back.
    pub base: i64,
    /// The newest generation whose cells the site may have missed, or [`NEVER`]. While it counts, an empty cell counts
    /// as not answered.
    pub missed: i64,
}

/// The cells that earlier keys of the batch have set, beyond what was answered.
#[derive(Clone, Copy, PartialEq)]
pub enum Earlier {
    /// No cells: each key is decided by itself.
    Nothing,
    /// No other cells, because sites set the cells of each key before they read those of the next.
    Answered,
    /// The cells of new keys.
    New,
    /// The cells of all keys.
    All,
}

/// The rule by which keys are decided.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The latest generation seen before the batch, or [`NEVER`].
    pub newest: i64,
    /// Full generations for which a cell counts after the one it was set in.
    pub retained: i64,
    pub earlier: Earlier,
    /// How many cells of a duplicate must have an answer (x of paper 4's fault tolerance heuristic, as erratum OIE-2
    /// reads it): with 0, a failed site counts as set; with k, as empty.
    pub least: usize,
    /// How many cells of a duplicate must have been set in one generation (paper 4, "equal timers"); 1 demands nothing.
    pub equal: usize,
}

impl Rule {
    /// Rejects a rule that does not fit keys of k cells, or generations that no cell can have.
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

/// The answers for the cells of one key.
pub(super) struct Answered {
    /// When each cell was last set, and the newest generation its site may have missed; `None` if the site has failed.
    cells: Vec<Option<(i64, i64)>>,
    there: Vec<i64>,
}

impl Answered {
    pub(super) fn new(k: usize) -> Self {
        Self { cells: vec![None; k], there: Vec::with_capacity(k) }
    }

    /// Stores the answer for the cell in a column: when it was `last` set, when an earlier key of the batch `set` it,
    /// and the newest generation that its site may have `missed`.
    #[inline(always)]
    pub(super) fn put(&mut self, column: usize, last: i64, set: i64, missed: i64) {
        self.cells[column] = (last != SILENT).then_some((last.max(set), missed));
    }

    /// Copies the answer for an earlier column to another one that has the same cell.
    pub(super) fn repeat(&mut self, column: usize, first: usize) {
        self.cells[column] = self.cells[first];
    }

    /// Returns when the oldest cell of a key that has been seen was set, or [`NEVER`] for a new one. Also returns
    /// whether that is uncertain: one of its sites has failed, or no cell proves that the key is new and one might.
    #[inline(always)]
    pub(super) fn oldest(&mut self, newest: i64, rule: Rule) -> (i64, bool) {
        self.there.clear();
        let live = |&last: &i64| last != NEVER && newest.saturating_sub(last) <= rule.retained;
        let answered = self.cells.iter().flatten().filter(|(last, missed)| live(last) || !live(missed));
        self.there.extend(answered.map(|&(last, _)| last));
        let open = self.there.iter().all(live);
        let doubted = (open && self.there.len() < self.cells.len()) || self.cells.iter().any(Option::is_none);
        // Without an answer, as old as it can be.
        let horizon = if rule.retained >= FOREVER { 0 } else { newest.saturating_sub(rule.retained) };
        let oldest = self.there.iter().copied().min().unwrap_or(horizon);
        let seen = open && self.there.len() >= rule.least && (rule.equal <= 1 || alike(&mut self.there, rule.equal));
        (if seen { oldest } else { NEVER }, doubted)
    }
}

/// Returns whether at least `equal` of these generations are the same.
fn alike(generations: &mut [i64], equal: usize) -> bool {
    generations.sort_unstable();
    generations.chunk_by(|a, b| a == b).any(|alike| alike.len() >= equal)
}

/// The latest generation in which each cell was set: an open-addressed table with room for a third more cells than
/// there are. A slot has the cell, and the generation counted from [`NEVER`], so that fresh memory is an empty table.
pub(super) struct SeenCells<'a>(pub(super) &'a mut [[u64; 2]]);

impl SeenCells<'_> {
    /// Returns the words of a table for this many cells.
    pub(super) fn room(cells: usize) -> Result<Words, Error> {
        Words::zeroed(2 * (cells + cells / 3 + 1))
    }

    /// Returns the slot at which the search for a cell begins: the high bits of a product (Fibonacci hashing).
    #[inline(always)]
    fn first(&self, cell: u64) -> usize {
        scale(cell.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.0.len() as u64) as usize
    }

    /// Returns the slot of a cell, or the one it would get.
    #[inline(always)]
    fn slot(&self, cell: u64) -> usize {
        let mut slot = self.first(cell);
        while self.0[slot][1] != 0 && self.0[slot][0] != cell {
            slot = if slot + 1 == self.0.len() { 0 } else { slot + 1 };
        }
        slot
    }

    /// Prefetches what [`get`](Self::get) reads.
    #[inline(always)]
    pub(super) fn fetch(&self, cell: u64) {
        Address::of(self.0.as_flattened()).fetch(2 * self.first(cell));
    }

    #[inline(always)]
    pub(super) fn get(&self, cell: u64) -> i64 {
        self.0[self.slot(cell)][1] as i64 ^ NEVER
    }

    /// Sets a cell in a generation, unless it has been set in a later one.
    #[inline(always)]
    pub(super) fn raise(&mut self, cell: u64, generation: i64) {
        let slot = self.slot(cell);
        let there = self.0[slot][1] as i64 ^ NEVER;
        self.0[slot] = [cell, (there.max(generation) ^ NEVER) as u64];
    }
}
