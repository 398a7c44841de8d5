//! A chain of tables that come and go by the [rule](Growth) of their family. The newest table takes insertions, the
//! others only answer until their last entry has expired.
//!
//! Nothing is copied when tables come and go. A new one is memory of zeros, which the system gives in small pages when
//! they are first written to, an old one goes back in pieces, and sweeps of the newest wait for later calls. So no call
//! takes long because a table comes, a generation opens or nothing came for a while.
//!
//! A key that comes again while an older table contains it is inserted into the newest like any other.

mod ageing;
mod blocks;
mod merge;

use std::borrow::Cow;

use super::hashes::SelectedHashes;
use super::run::{BLOCK, for_query_runs, gather, next_run};
use super::threads::{self, Chunk, PIECE};
use super::{Engine, Insertion, Query, Refresh};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::abilities::Partition;
use crate::family::growth::{Growth, RotationOf, Table, TableOf, split, summed};
use crate::family::{Layout, fill};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;
use blocks::{Part, apply, contains, look_up, rotations};

/// An engine of tables that come and go, the oldest first.
#[derive(Clone)]
pub struct Chain<G: Growth> {
    growth: G,
    clock: Clock,
    tables: Vec<TableOf<G>>,
    /// Number of generations, up to the open one, for which the newest table has yet to be swept.
    unswept: u64,
    /// Number of insertions before the newest table.
    before: u64,
    /// Tables whose memory goes back to the system, a piece with each call.
    expired: Vec<Words>,
}

impl<G: Growth> Chain<G> {
    /// Returns the tables that [`pieces`](Engine::pieces) returned as these words; without words, one empty table.
    pub fn new(growth: G, clock: Clock, words: &Words) -> Result<Self, Error> {
        let mut new =
            Self { growth, clock: clock.clone(), tables: Vec::new(), unswept: 0, before: 0, expired: Vec::new() };
        match words.as_slice() {
            [] => new.open_table(&clock)?,
            words => new.read(words)?,
        }
        Ok(new)
    }

    /// Reads tables, and rejects damaged ones.
    fn read(&mut self, words: &[u64]) -> Result<(), Error> {
        let damaged = || Error::format("the table of tables is damaged");
        let len = |row: &[u64]| Some(G::words(&self.growth.read_row(row)?.0));
        let (head, tables) = split(words, [G::HEAD, G::ROW], len).ok_or_else(damaged)?;
        for (row, cells) in tables {
            let (layout, last) = self.growth.read_row(row).ok_or_else(damaged)?;
            self.tables.push(Table { layout, words: Words::copied(bytemuck::cast_slice(cells))?, last, load: 0 });
        }
        if G::NEWEST_FIRST {
            self.tables.reverse();
        }
        let ordered = self.tables.is_sorted_by_key(|table| table.last) && self.newest().last <= G::moment(&self.clock);
        if !ordered {
            return Err(damaged());
        }
        self.growth.read_head(head, &mut self.tables).ok_or_else(damaged)?;
        // A file does not contain how much of the newest table was left to sweep.
        self.unswept = self.growth.late(self.newest());
        self.sweep_all()
    }

    /// Returns the rule by which the chain grows.
    #[cfg(test)]
    pub(crate) fn growth(&self) -> &G {
        &self.growth
    }

    fn newest(&self) -> &TableOf<G> {
        self.tables.last().expect("a chain has a table")
    }

    /// Returns the layout of the newest table. All tables agree in what their generations mean.
    pub(crate) fn layout(&self) -> &G::Cells {
        &self.newest().layout
    }

    /// Returns the rotation of the open generation.
    fn rotation(&self) -> RotationOf<G> {
        self.layout().rotation(self.clock.generation(), 0)
    }

    /// Processes the keys of a chunk, for which the newest table has room, on several threads. Each writes to one
    /// partition of that table. Returns whether the cells were divided.
    fn divided(&mut self, keys: &mut Chunk<'_>, insertion: &mut Insertion<'_>) -> Result<bool, Error> {
        self.sweep_all()?;
        let clock = self.clock.clone();
        let Some((newest, older)) = self.tables.split_last_mut() else { return Ok(false) };
        let (older, count): (&[TableOf<G>], usize) = (older, keys.partitions());
        let part =
            |Partition { layout, words, .. }| Box::new(Part::<G> { clock: clock.clone(), layout, words, older }) as _;
        let divided = threads::divided(&newest.layout, newest.words.to_mut()?, count, part, keys, insertion)?;
        let Some(after) = divided else { return Ok(false) };
        newest.last = G::moment(&after);
        self.drop_expired(&after);
        let opened = after.generation() != clock.generation();
        self.clock = after;
        if opened {
            self.shrink()?;
        }
        Ok(true)
    }

    /// Returns whether the tables contain a key, and inserts it, without the buffers of a block; `None` without an
    /// effect if a generation opens, the newest table may have no room, or work is left.
    fn seen_at_once(&mut self, hash: u64, at: Moments<'_>) -> Result<Option<bool>, Error> {
        let mut clock = self.clock.clone();
        let (opened, rotation, run) = next_run(self.layout(), &mut clock, at, 0, 1);
        if (opened, run) != (0, 1) || (self.unswept, self.expired.len()) != (0, 0) {
            return Ok(None);
        }
        let Some((newest, older)) = self.tables.split_last_mut() else { return Ok(None) };
        let Some(seen) = self.growth.seen_one(newest, rotation, hash)? else { return Ok(None) };
        clock.count(1);
        (newest.last, self.clock) = (G::moment(&clock), clock);
        Ok(Some(seen || contains::<G>(older, rotation, hash)))
    }

    /// Inserts the keys in order, each after it has been looked up if the insertion demands it. The moments are
    /// admitted.
    ///
    /// If a table cannot be allocated, the filter stays as it was before that key, and contains the keys before it.
    fn process_admitted(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error> {
        let Insertion { at, refresh, seen } = insertion;
        let waits = refresh.is_some_and(|refresh| refresh.waits(&self.clock));
        let (mut i, mut each, keys) = (0, Vec::new(), SelectedHashes::all(hashes));
        while i < hashes.len() {
            let (mut clock, layout) = (self.clock.clone(), *self.layout());
            let (opened, mut rotation, mut run) = next_run(&layout, &mut clock, at, i, hashes.len());
            let reported = run == 0 && refresh.is_some() && contains::<G>(&self.tables, rotation, hashes[i]);
            let mut shrinks = opened > 0;
            if run == 0 {
                // The key opens a generation of insertions. It was looked up while the one before was open.
                let inserts = refresh.is_none_or(|refresh| refresh.inserts(reported));
                if inserts || !waits {
                    clock.open_next();
                    rotation = layout.rotation(clock.generation(), 0);
                    self.age(&clock, 1)?;
                    self.clock = clock.clone();
                }
                if !inserts {
                    seen[i] = true;
                    self.clock.count(u64::from(!waits));
                    i += 1;
                    continue;
                }
                run = 1;
            } else if opened > 0 {
                self.age(&clock, opened)?;
            }
            run = gather(&layout, &mut clock, at, keys, i, (rotation, run), &mut each);
            let (start, end) = (i, i + if waits { 1 } else { run });
            while i < end {
                let block = i..end.min(i + BLOCK);
                // The clock moves no further than the keys inserted, so that after an error a moment can be passed
                // again.
                self.clock.reach(at, i..i + 1);
                if std::mem::take(&mut shrinks) {
                    self.shrink()?;
                }
                self.tidy(hashes.len() - i)?;
                let rotations = rotations(&rotation, &each, i - start..block.end - start);
                let seen = if refresh.is_some() { &mut seen[block.clone()] } else { &mut [] };
                let done = self.process_block(&hashes[block], (at, i), rotations, refresh, seen)?;
                if !(waits && seen[..done].contains(&true)) {
                    self.clock.count(done as u64);
                }
                if reported && done > 0 {
                    seen[0] = true;
                }
                i += done;
            }
        }
        Ok(())
    }

    /// Processes keys of one generation, of which the first is key `i` of the batch, until the newest table is full;
    /// then opens another. Returns the number of keys done.
    fn process_block(
        &mut self,
        hashes: &[u64],
        (at, i): (Moments<'_>, usize),
        rotations: &[RotationOf<G>],
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<usize, Error> {
        let (growth, Some((newest, older))) = (&self.growth, self.tables.split_last_mut()) else { return Ok(0) };
        let insert = |rotations: &[RotationOf<G>], hashes: &[u64], seen: Option<(bool, &mut [bool])>| {
            growth.insert_some(newest, rotations, hashes, seen)
        };
        let done = apply::<G>(older, rotations, hashes, refresh, seen, insert)?;
        let inserted = refresh.is_none_or(|refresh| refresh.inserts(true)) || seen[..done].contains(&false);
        self.clock.reach(at, i..i + done.max(1));
        if done > 0 && inserted {
            newest.last = G::moment(&self.clock);
        }
        if done == hashes.len() {
            return Ok(done);
        }
        let rotation = *rotations.get(done).unwrap_or(&rotations[0]);
        if let Some(reported) = growth.insert_crowded(newest, rotation, hashes[done])? {
            if refresh.is_some() {
                seen[done] = reported || contains::<G>(older, rotation, hashes[done]);
            }
            self.clock.reach(at, i..i + done + 1);
            newest.last = G::moment(&self.clock);
            return Ok(done + 1);
        }
        self.open_table(&self.clock.clone())?;
        Ok(done)
    }

    /// Returns what a file contains before the cells of the tables: their number, the head and their rows.
    fn head(&self) -> Vec<u64> {
        let mut head = vec![self.tables.len() as u64];
        head.extend(self.growth.head(self.newest()));
        self.as_saved().for_each(|table| head.extend(self.growth.row(table)));
        head
    }

    /// Returns the tables in the order of a file.
    fn as_saved(&self) -> impl Iterator<Item = &TableOf<G>> {
        let last = self.tables.len() - 1;
        (0..=last).map(move |i| &self.tables[if G::NEWEST_FIRST { last - i } else { i }])
    }
}

impl<G: Growth> Engine for Chain<G> {
    fn process(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error> {
        let at = self.clock.admit(insertion.at)?;
        if let (&[hash], None) = (hashes, insertion.refresh)
            && self.seen_at_once(hash, at)?.is_some()
        {
            return Ok(());
        }
        self.process_admitted(hashes, Insertion { at, ..insertion })
    }

    /// Divides keys among threads where the newest table has room for all of them.
    fn process_shared(&mut self, keys: &mut Chunk<'_>, mut insertion: Insertion<'_>) -> Result<(), Error> {
        insertion.at = self.clock.admit(insertion.at)?;
        let (all, mut done) = (keys.range(), 0);
        while done < all.len() {
            let left = all.len() - done;
            let room = if self.clock.counts() { 0 } else { self.growth.room(self.newest(), self.rotation()) };
            let mut part = room.min(left);
            let divided = keys.at(all.start + done..all.start + done + part).partitions() > 1;
            if !divided {
                part = PIECE.min(left);
                keys.at(all.start + done..all.start + done + part);
            }
            let mut insertion = insertion.part(done..done + part);
            if !(divided && self.divided(keys, &mut insertion)?) {
                self.process_admitted(keys.hashes()?, insertion)?;
            }
            done += part;
        }
        keys.at(all);
        Ok(())
    }

    /// Skips the buffers of a block.
    fn contains_one(&self, hash: u64, at: Moments<'_>) -> Result<bool, Error> {
        let mut present = false;
        for_query_runs(self.layout(), &self.clock, Query { hashes: &[hash], at, window: None }, |rotation, _| {
            present = rotation.is_some_and(|rotation| contains::<G>(&self.tables, rotation, hash));
        })?;
        Ok(present)
    }

    fn seen_one(&mut self, hash: u64, at: Moments<'_>, refresh: Refresh) -> Result<bool, Error> {
        let at = self.clock.admit(at)?;
        if refresh == Refresh::Always
            && let Some(seen) = self.seen_at_once(hash, at)?
        {
            return Ok(seen);
        }
        let mut seen = [false];
        self.process_admitted(&[hash], Insertion { at, refresh: Some(refresh), seen: &mut seen })?;
        Ok(seen[0])
    }

    fn query_within(&self, query: Query<'_>, present: &mut [bool]) -> Result<(), Error> {
        for_query_runs(self.layout(), &self.clock, query, |rotation, run| {
            present[run.clone()].fill(false);
            let Some(rotation) = rotation else { return };
            for (hashes, present) in query.hashes[run.clone()].chunks(BLOCK).zip(present[run].chunks_mut(BLOCK)) {
                look_up::<G>(&self.tables, &[rotation], hashes, present);
            }
        })
    }

    fn merge(&mut self, other: &dyn Engine) -> Result<(), Error> {
        merge::merge(self, other)
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock.set_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.newest().words
    }

    fn nbytes(&self) -> usize {
        let cells = self.tables.iter().map(|table| size_of_val(table.words.as_slice()));
        8 * (1 + G::HEAD + G::ROW * self.tables.len()) + cells.sum::<usize>()
    }

    /// Returns the bytes of the newest table, which alone takes keys, or of the part of it that is swept with a call.
    fn most_written(&self) -> usize {
        let newest = self.newest();
        let words = newest.words.as_slice().len();
        match (G::SWEEPS_OLDER, self.growth.late(newest)) {
            (true, _) => self.nbytes(),
            (false, 0) => 8 * words,
            (false, _) => 8 * newest.layout.most_opened(words),
        }
    }

    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        let cells = self.as_saved().map(|table| Cow::Borrowed(table.words.as_slice()));
        Ok([Cow::Owned(self.head())].into_iter().chain(cells).collect())
    }

    fn tables(&self) -> usize {
        self.tables.len()
    }

    fn fill(&self) -> Vec<f64> {
        G::fill(&self.tables, self.rotation())
    }

    fn match_rates(&self) -> Vec<f64> {
        G::match_rates(&self.tables, self.rotation())
    }

    /// Returns the entries of all tables. A key that came again in a newer table counts in both.
    fn entries(&self) -> Option<Vec<f64>> {
        let now = self.rotation();
        let entries = |table: &TableOf<G>| table.layout.entries(table.words.as_slice(), G::rotation_of(table, now));
        summed(self.tables.iter().filter_map(entries))
    }

    /// Returns an upper bound where a key has been inserted into several tables: these then match less independently.
    fn false_positive_rate(&self) -> f64 {
        let rate = |table: &TableOf<G>| {
            table.layout.false_positive_rate(table.words.as_slice(), G::rotation_of(table, self.rotation()))
        };
        fill::any(self.tables.iter().map(rate))
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl<G: Growth> EvidenceSource for Chain<G> {
    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn inserted(&self) -> u64 {
        self.clock.inserted()
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let (rotation, mut own) = (self.rotation(), [Evidence::default(); BLOCK]);
        for (hashes, evidence) in hashes.chunks(BLOCK).zip(evidence.chunks_mut(BLOCK)) {
            for (older, table) in self.tables.iter().enumerate() {
                let own = &mut own[..hashes.len()];
                table.layout.evidence_run(table.words.as_slice(), G::rotation_of(table, rotation), hashes, own);
                for (evidence, &mut own) in evidence.iter_mut().zip(own) {
                    let before = (older > 0).then_some(*evidence);
                    *evidence = G::evidence(before, own, self.tables.len() - 1 - older);
                }
            }
        }
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(self.growth.likelihood(&self.tables, &self.clock))
    }
}
