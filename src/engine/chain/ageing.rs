//! How the tables of a chain age: each generation that opens may open another table, drop those that have expired, and
//! leaves sweeps for later calls.

use super::Chain;
use super::blocks::expired;
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::growth::{Growth, Table, TableOf};
use crate::memory::Words;

/// Returns an empty table.
fn empty<G: Growth>(layout: G::Cells, clock: &Clock) -> Result<TableOf<G>, Error> {
    Ok(Table { layout, words: Words::zeroed_in_pages(G::words(&layout))?, last: G::moment(clock), load: 0 })
}

impl<G: Growth> Chain<G> {
    /// Opens a table for the live keys by this clock and some more. A call that returns an error has changed nothing.
    pub(super) fn open_table(&mut self, clock: &Clock) -> Result<(), Error> {
        let layout = match self.tables.last() {
            None => self.growth.first(),
            Some(newest) => self.growth.next(&self.tables, newest.layout.rotation(clock.generation(), 0)),
        };
        self.tables.push(empty::<G>(layout, clock)?);
        (self.before, self.unswept) = (clock.inserted(), 0);
        Ok(())
    }

    /// Opens the last `opened` generations up to that of `clock`: drops tables that have expired, and sweeps the
    /// others, or leaves that for [`tidy`](Self::tidy). A call that returns an error has changed nothing.
    pub(super) fn age(&mut self, clock: &Clock, opened: u64) -> Result<(), Error> {
        if opened >= self.layout().generations() {
            // However long the gap was, it is one step.
            let tables = std::mem::take(&mut self.tables);
            if let Err(error) = self.open_table(clock) {
                self.tables = tables;
                return Err(error);
            }
            self.expired.extend(tables.into_iter().map(|table| table.words));
            return Ok(());
        }
        let late = self.growth.late(self.newest());
        if late == 0 {
            let from = if G::SWEEPS_OLDER { 0 } else { self.tables.len() - 1 };
            for table in &mut self.tables[from..] {
                for generation in (0..opened).rev().map(|later| clock.generation() - later as i64) {
                    self.growth.sweep(table, generation, table.layout.rotation(generation, 0))?;
                }
            }
        } else if self.unswept + opened > late {
            self.open_table(clock)?;
        } else {
            self.unswept += opened;
        }
        self.drop_expired(clock);
        Ok(())
    }

    /// Drops the older tables that have expired by this clock.
    pub(super) fn drop_expired(&mut self, clock: &Clock) {
        let expired = expired::<G>(&self.tables[..self.tables.len() - 1], clock, self.layout().generations());
        self.expired.extend(self.tables.drain(..expired).map(|table| table.words));
    }

    /// Opens a smaller table if the newest is far too large. A window of insertions has room for as many keys again.
    pub(super) fn shrink(&mut self) -> Result<(), Error> {
        if !self.clock.counts() && self.growth.is_sparse(&self.tables, self.rotation()) {
            self.open_table(&self.clock.clone())?;
        }
        Ok(())
    }

    /// Does a piece of the work that generations and tables have left, in a call for this many keys.
    pub(super) fn tidy(&mut self, keys: usize) -> Result<(), Error> {
        if self.expired.last_mut().is_some_and(Words::release) {
            self.expired.pop();
        }
        let (rotation, inserted) = (self.rotation(), self.clock.inserted().saturating_sub(self.before));
        let Some(newest) = self.tables.last_mut() else { return Ok(()) };
        newest.words.request_huge(inserted, keys);
        if let Some(later) = self.unswept.checked_sub(1) {
            self.growth.sweep(newest, self.clock.generation() - later as i64, rotation)?;
            self.unswept = later;
        }
        Ok(())
    }

    /// Does all sweeps that are left.
    pub(super) fn sweep_all(&mut self) -> Result<(), Error> {
        while self.unswept > 0 {
            self.tidy(0)?;
        }
        Ok(())
    }

    /// Numbers the generations of a window of insertions anew, such that `open` is the open one.
    pub(super) fn realign(&mut self, open: i64) -> Result<(), Error> {
        let now = self.clock.generation();
        if now == open {
            return Ok(());
        }
        // That sweeps all lines.
        self.unswept = 0;
        self.tables.iter_mut().try_for_each(|table| G::realign(table, now, open))
    }
}
