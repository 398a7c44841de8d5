//! A chain of aged cuckoo filters: for windows of time at any rate, and for merged windows of insertions.
//!
//! A table is full when a key finds no room. The next one then has room for 1.1 times the live keys of all tables, so
//! that at a steady rate one table is left, and tables together have at most 2.1 times the room that is needed. A
//! table far too large for the live keys is followed by a smaller one.
//!
//! In a simulation of 240 waves, 36 took more than 2.5 times the bytes of an even stream; with room for 1.3 times the
//! keys 72, and a twentieth more bytes in the mean. With room for just the keys 48 did, and if keys about to expire do
//! not count, 36 to 48. None mends the worst, 5 times: where all keys of a window come at once, and again a window
//! later, two windows of keys are live at that moment.

use super::shape::{AgedCuckooShape, late};
use super::{AgedCuckoo, Full, Now, likelihood_of, lines};
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::growth::{self, Growth, summed};
use crate::inference::{Evidence, Likelihood};

/// Room of the next table, over the live keys of all tables.
const ROOM: f64 = 1.1;
/// Live keys of all tables, over the slots of the newest, below which that is far too large.
const SPARSE: f64 = 0.2;
/// Number of slots above which a table that is half empty has room for every key but those of crowded lines.
const CROWDED: f64 = 4096.0;
/// Share of the slots of the newest table up to which threads may fill it: none is so crowded that it rejects keys.
const ROOMY: f64 = 0.9;
/// Share of the slots up to which the entries of two tables are merged into one.
const MERGED: f64 = 0.8;
/// Number of lines of a table in which live entries are counted, at most; whenever a generation opens it is less.
const SAMPLE: usize = 1 << 10;
const SMALL_SAMPLE: usize = 1 << 6;
/// Number of lines of a table that can be swept in one call, at most: in some .1 ms.
const AT_ONCE: u64 = 1 << 13;

type Table = growth::Table<AgedCuckoo>;

impl Table {
    /// Returns an estimate of the number of live entries, from at most this many lines.
    fn entries(&self, now: Now, sample: usize) -> f64 {
        self.layout.live_entries(lines(self.words.as_slice()), now.as_of(self.last), sample)
    }
}

/// Returns an estimate of the number of live entries of all tables.
fn live(tables: &[Table], now: Now, sample: usize) -> f64 {
    tables.iter().map(|table| table.entries(now, sample)).sum()
}

/// The shape is that of the smallest table.
impl Growth for AgedCuckooShape {
    type Cells = AgedCuckoo;

    const HEAD: usize = 0;
    /// Fingerprint bits, pages, lines, last generation.
    const ROW: usize = 4;
    const NEWEST_FIRST: bool = false;
    const NOT_MERGEABLE: Option<&'static str> = None;
    const SWEEPS_OLDER: bool = false;

    fn first(&self) -> AgedCuckoo {
        AgedCuckoo::new(*self)
    }

    fn next(&self, tables: &[Table], now: Now) -> AgedCuckoo {
        AgedCuckoo::new(AgedCuckooShape::next(self, tables.len() as u32, live(tables, now, SAMPLE) * ROOM))
    }

    fn is_sparse(&self, tables: &[Table], now: Now) -> bool {
        let slots = tables.last().map_or(0.0, |newest| newest.layout.all_slots());
        slots > 2.0 * self.first().all_slots() && live(tables, now, SMALL_SAMPLE) < SPARSE * slots
    }

    fn words(cells: &AgedCuckoo) -> usize {
        cells.words()
    }

    fn head(&self, _: &Table) -> Vec<u64> {
        Vec::new()
    }

    fn row(&self, table: &Table) -> Vec<u64> {
        [&table.layout.numbers()[..], &[table.last as u64]].concat()
    }

    fn read_row(&self, row: &[u64]) -> Option<(AgedCuckoo, i64)> {
        let &[bits, pages, lines, last] = row else { return None };
        Some((AgedCuckoo::new(self.of_table(bits, pages, lines).ok()?), last as i64))
    }

    /// Whatever a file states, the smallest table is no larger than those that it contains.
    fn read_head(&mut self, _: &[u64], tables: &mut [Table]) -> Option<()> {
        *self = self.at_most(tables.iter().map(|table| table.layout.pages.all_lines()).max()?);
        Some(())
    }

    fn moment(clock: &Clock) -> i64 {
        clock.generation()
    }

    fn generation(_: &Clock, moment: i64) -> i64 {
        moment
    }

    fn rotation_of(table: &Table, now: Now) -> Now {
        now.as_of(table.last)
    }

    fn late(&self, newest: &Table) -> u64 {
        if newest.layout.pages.all_lines() <= AT_ONCE { 0 } else { late(self.epochs) }
    }

    fn sweep(&self, table: &mut Table, generation: i64, now: Now) -> Result<(), Error> {
        table.layout.sweep(table.words.to_mut()?, generation, now);
        Ok(())
    }

    fn insert_some(
        &self,
        newest: &mut Table,
        nows: &[Now],
        hashes: &[u64],
        seen: Option<(bool, &mut [bool])>,
    ) -> Result<usize, Error> {
        Ok(newest.layout.process_each(newest.words.to_mut()?, nows, hashes, seen, Full::Ends))
    }

    fn seen_one(&self, newest: &mut Table, now: Now, hash: u64) -> Result<Option<bool>, Error> {
        Ok(newest.layout.seen_some(newest.words.to_mut()?, now, hash, Full::Ends))
    }

    /// Rejects hashes that crowd into few lines, which an attacker may choose.
    fn insert_crowded(&self, newest: &mut Table, now: Now, hash: u64) -> Result<Option<bool>, Error> {
        let slots = newest.layout.all_slots();
        if slots <= CROWDED || newest.entries(now, SAMPLE) >= 0.5 * slots {
            return Ok(None);
        }
        Ok(Some(newest.layout.reject(newest.words.to_mut()?, now, hash)))
    }

    fn room(&self, newest: &Table, now: Now) -> usize {
        if newest.layout.pages.count == 1 {
            return 0;
        }
        (ROOMY * newest.layout.all_slots() - newest.entries(now, SAMPLE)) as usize
    }

    /// Merges the lines of tables that are alike and half empty.
    fn merge(newest: &mut Table, other: &Table, now: Now) -> Result<bool, Error> {
        let entries = newest.entries(now, SAMPLE) + other.entries(now, SAMPLE);
        let alike = newest.layout.numbers() == other.layout.numbers();
        if !alike || entries >= MERGED * newest.layout.all_slots() {
            return Ok(false);
        }
        newest.layout.merge_lines(newest.words.to_mut()?, other.words.as_slice(), now, now.as_of(other.last).live);
        newest.last = newest.last.max(other.last);
        Ok(true)
    }

    fn realign(table: &mut Table, from: i64, to: i64) -> Result<(), Error> {
        let [before, after] = [from, to].map(|open| table.layout.rotation(open, 0));
        table.layout.realign(table.words.to_mut()?, before.as_of(table.last), after);
        table.last += to - from;
        Ok(())
    }

    /// Returns the evidence of the youngest entry.
    fn evidence(before: Option<Evidence>, own: Evidence, _: usize) -> Evidence {
        let Some(before) = before else { return own };
        let younger = match (before.as_epochs(), own.as_epochs()) {
            (Some((before, true)), Some((own, true))) => own < before,
            (Some((_, true)), _) | (_, None) => false,
            _ => true,
        };
        if younger { own } else { before }
    }

    fn likelihood(&self, tables: &[Table], clock: &Clock) -> Box<dyn Likelihood> {
        let now = self.first().rotation(clock.generation(), 0);
        let of_table = |table| Self::rotation_of(table, now);
        likelihood_of(clock, tables.iter().map(|table| (table.layout, of_table(table), table.words.as_slice())))
    }

    fn fill(tables: &[Table], now: Now) -> Vec<f64> {
        let slots: f64 = tables.iter().map(|table| table.layout.all_slots()).sum();
        let fill = |table: &Table| {
            let share = table.layout.all_slots() / slots;
            let fill = table.layout.fill(table.words.as_slice(), Self::rotation_of(table, now));
            fill.into_iter().map(|fill| fill * share).collect()
        };
        summed(tables.iter().map(fill)).unwrap_or_default()
    }

    fn match_rates(tables: &[Table], now: Now) -> Vec<f64> {
        let rates = |table: &Table| table.layout.match_rates(table.words.as_slice(), Self::rotation_of(table, now));
        summed(tables.iter().map(rates)).unwrap_or_default()
    }
}
