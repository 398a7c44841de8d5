//! A chain of tables that come and go by the [rule](Growth) of their family. The newest table takes insertions, the
//! others only answer until their last entry has expired.
//!
//! Nothing is copied when tables come and go, and a new one is memory of zeros, which the system gives page by page.
//!
//! A key that comes again while an older table contains it is inserted into the newest like any other.

use std::any::Any;
use std::borrow::Cow;

use super::hashes::SelectedHashes;
use super::run::{age, for_query_runs, next_run};
use super::threads::{self, Chunk, PIECE, Process};
use super::{Aged, Engine, Insertion, Refresh, not_mergeable};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::abilities::Partition;
use crate::family::growth::{Growth, RotationOf, Table, TableOf, split, summed};
use crate::family::{Layout, fill};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;

/// Number of keys that are processed at a time: older tables answer for all of them first.
const BLOCK: usize = 256;

/// An engine of tables that come and go, the oldest first.
#[derive(Clone)]
pub struct Chain<G: Growth> {
    growth: G,
    clock: Clock,
    tables: Vec<TableOf<G>>,
    /// Tables whose memory goes back to the system, a piece with each call.
    expired: Vec<Words>,
}

/// Returns an empty table.
fn empty<G: Growth>(layout: G::Cells, clock: &Clock) -> Result<TableOf<G>, Error> {
    Ok(Table { layout, words: Words::zeroed(G::words(&layout))?, last: G::moment(clock), load: 0 })
}

impl<G: Growth> Chain<G> {
    /// Returns the tables that [`pieces`](Engine::pieces) returned as these words; without words, one empty table.
    pub fn new(growth: G, clock: Clock, words: &Words) -> Result<Self, Error> {
        let mut new = Self { growth, clock, tables: Vec::new(), expired: Vec::new() };
        match words.as_slice() {
            [] => new.tables.push(empty::<G>(new.growth.first(), &clock)?),
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
        self.growth.read_head(head, &mut self.tables).ok_or_else(damaged)
    }

    /// Returns the rule by which the chain grows.
    #[cfg(test)]
    pub(crate) fn growth(&self) -> &G {
        &self.growth
    }

    fn newest(&mut self) -> &mut TableOf<G> {
        self.tables.last_mut().expect("a chain has a table")
    }

    /// Returns the layout of the newest table. All tables agree in what their generations mean.
    pub(crate) fn layout(&self) -> &G::Cells {
        &self.tables.last().expect("a chain has a table").layout
    }

    /// Returns the rotation of the open generation.
    fn rotation(&self) -> RotationOf<G> {
        self.layout().rotation(self.clock.generation(), 0)
    }

    /// Opens a table for the live keys and some more. A call that returns an error has changed nothing.
    fn open_table(&mut self) -> Result<(), Error> {
        let layout = self.growth.next(&self.tables, self.rotation());
        self.tables.push(empty::<G>(layout, &self.clock)?);
        Ok(())
    }

    /// Opens the last `opened` generations up to that of `clock`: drops tables that have expired, and sweeps the
    /// others. A call that returns an error has changed nothing.
    fn age(&mut self, clock: &Clock, opened: u64) -> Result<(), Error> {
        if opened >= self.layout().generations() {
            // However long the gap was, it is one step.
            let new = vec![empty::<G>(self.growth.first(), clock)?];
            self.expired.extend(std::mem::replace(&mut self.tables, new).into_iter().map(|table| table.words));
            return Ok(());
        }
        open_all(&self.growth, &mut self.tables, clock.generation(), opened)?;
        self.drop_expired(clock);
        Ok(())
    }

    /// Drops the older tables that have expired by this clock.
    fn drop_expired(&mut self, clock: &Clock) {
        let (older, generations) = (&self.tables[..self.tables.len() - 1], self.layout().generations());
        let is_expired =
            |table: &TableOf<G>| clock.generation().abs_diff(G::generation(clock, table.last)) >= generations;
        let expired = older.partition_point(is_expired);
        self.expired.extend(self.tables.drain(..expired).map(|table| table.words));
    }

    /// Opens a smaller table if the newest is far too large. A window of insertions has room for as many keys again.
    fn shrink(&mut self) -> Result<(), Error> {
        if !self.clock.counts() && self.growth.is_sparse(&self.tables, self.rotation()) {
            self.open_table()?;
        }
        Ok(())
    }

    /// Numbers the generations of a window of insertions anew, such that `open` is the open one.
    fn realign(&mut self, open: i64) -> Result<(), Error> {
        let now = self.clock.generation();
        self.tables.iter_mut().filter(|_| now != open).try_for_each(|table| G::realign(table, now, open))
    }

    /// Returns whether any table contains a key.
    fn contains(&self, rotation: RotationOf<G>, hash: u64) -> bool {
        self.tables.iter().any(|table| table.contains(rotation, hash))
    }

    /// Returns how many of the next keys have room in the newest table, whichever they are, and come before the other
    /// tables may wait no longer for the generations that open.
    fn roomy(&self, at: Moments<'_>, keys: usize) -> usize {
        let Some(newest) = self.tables.last() else { return 0 };
        let most = keys.min(self.growth.room(newest, self.rotation()));
        let (mut clock, mut i, mut opened) = (self.clock, 0, 0);
        while i < most {
            let (next, run) = clock.run(at, i, most);
            opened += next;
            if opened > G::LATE {
                break;
            }
            i += run;
        }
        i
    }

    /// Processes the keys of a chunk, for which the newest table has room, on several threads. Each writes to one
    /// partition of that table; the older ones are swept afterwards. Returns whether the cells were divided.
    fn divided(&mut self, keys: &mut Chunk<'_>, insertion: &mut Insertion<'_>) -> Result<bool, Error> {
        let clock = self.clock;
        let Some((newest, older)) = self.tables.split_last_mut() else { return Ok(false) };
        let (shared, count): (&[TableOf<G>], usize) = (older, keys.partitions());
        let part = |Partition { layout, words, .. }| Box::new(Part { clock, layout, words, older: shared }) as _;
        let divided = threads::divided(&newest.layout, newest.words.to_mut()?, count, part, keys, insertion)?;
        let Some(after) = divided else { return Ok(false) };
        newest.last = G::moment(&after);
        let opened = clock.latest().map_or(0, |_| after.generation().abs_diff(clock.generation()));
        open_all(&self.growth, older, after.generation(), opened)?;
        self.clock = after;
        self.drop_expired(&after);
        if opened > 0 {
            self.shrink()?;
        }
        Ok(true)
    }

    /// Inserts the keys in order, each after it has been looked up if the insertion demands it. The moments are
    /// admitted.
    ///
    /// If a table cannot be allocated, the filter stays as it was before that key, and contains the keys before it.
    fn process_admitted(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error> {
        let Insertion { at, refresh, seen } = insertion;
        let waits = refresh.is_some_and(|refresh| refresh.waits(&self.clock));
        let mut i = 0;
        while i < hashes.len() {
            let mut clock = self.clock;
            let (opened, mut rotation, mut run) = next_run(self.layout(), &mut clock, at, i, hashes.len());
            let reported = run == 0 && refresh.is_some() && self.contains(rotation, hashes[i]);
            let mut shrinks = opened > 0;
            if run == 0 {
                // The key opens a generation of insertions. It was looked up while the one before was open.
                let inserts = refresh.is_none_or(|refresh| refresh.inserts(reported));
                if inserts || !waits {
                    clock.open_next();
                    rotation = self.layout().rotation(clock.generation(), 0);
                    self.age(&clock, 1)?;
                    self.clock = clock;
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
            let end = i + if waits { 1 } else { run };
            while i < end {
                let block = i..end.min(i + BLOCK);
                // The clock moves no further than the keys inserted, so that after an error a moment can be passed
                // again.
                self.clock.reach(at, i..i + 1);
                if std::mem::take(&mut shrinks) {
                    self.shrink()?;
                }
                let seen = if refresh.is_some() { &mut seen[block.clone()] } else { &mut [] };
                let done = self.process_block(&hashes[block], (at, i), rotation, refresh, seen)?;
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
        rotation: RotationOf<G>,
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<usize, Error> {
        if self.expired.last_mut().is_some_and(Words::release) {
            self.expired.pop();
        }
        let (growth, Some((newest, older))) = (&self.growth, self.tables.split_last_mut()) else { return Ok(0) };
        let insert =
            |hashes: &[u64], seen: Option<(bool, &mut [bool])>| growth.insert_some(newest, rotation, hashes, seen);
        let done = apply(older, rotation, hashes, refresh, seen, insert)?;
        let inserted = refresh.is_none_or(|refresh| refresh.inserts(true)) || seen[..done].contains(&false);
        self.clock.reach(at, i..i + done.max(1));
        if done > 0 && inserted {
            newest.last = G::moment(&self.clock);
        }
        if done == hashes.len() {
            return Ok(done);
        }
        if let Some(reported) = growth.insert_crowded(newest, rotation, hashes[done])? {
            if refresh.is_some() {
                seen[done] = reported || older.iter().any(|table| table.contains(rotation, hashes[done]));
            }
            self.clock.reach(at, i..i + done + 1);
            newest.last = G::moment(&self.clock);
            return Ok(done + 1);
        }
        self.open_table()?;
        Ok(done)
    }

    /// Returns what a file contains before the cells of the tables: their number, the head and their rows.
    fn head(&self) -> Vec<u64> {
        let newest = self.tables.last().expect("a chain has a table");
        let mut head = vec![self.tables.len() as u64];
        head.extend(self.growth.head(newest));
        self.as_saved().for_each(|table| head.extend(self.growth.row(table)));
        head
    }

    /// Returns the tables in the order of a file.
    fn as_saved(&self) -> impl Iterator<Item = &TableOf<G>> {
        let last = self.tables.len() - 1;
        (0..=last).map(move |i| &self.tables[if G::NEWEST_FIRST { last - i } else { i }])
    }
}

/// Opens the last `opened` generations up to `open` in some tables.
fn open_all<G: Growth>(growth: &G, tables: &mut [TableOf<G>], open: i64, opened: u64) -> Result<(), Error> {
    for table in tables {
        (0..opened).rev().try_for_each(|later| growth.open(table, open - later as i64))?;
    }
    Ok(())
}

/// Adds to `present` which keys any of the tables contains.
fn query<L: Layout>(tables: &[Table<L>], rotation: L::Rotation, hashes: &[u64], present: &mut [bool]) {
    let mut answers = [false; BLOCK];
    for table in tables {
        let answers = &mut answers[..hashes.len()];
        table.layout.query_run(table.words.as_slice(), rotation, hashes, 0..hashes.len(), answers);
        present.iter_mut().zip(answers).for_each(|(present, answer)| *present |= *answer);
    }
}

/// Processes at most [`BLOCK`] keys: looks them up in the `older` tables, and inserts them into the newest by `insert`,
/// until one ends the run because it finds no room. Returns the number of keys done.
fn apply<L: Layout>(
    older: &[Table<L>],
    rotation: L::Rotation,
    hashes: &[u64],
    refresh: Option<Refresh>,
    seen: &mut [bool],
    mut insert: impl FnMut(&[u64], Option<(bool, &mut [bool])>) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let Some(refresh) = refresh else { return insert(hashes, None) };
    let mut before = [false; BLOCK];
    let before = &mut before[..hashes.len()];
    query(older, rotation, hashes, before);
    if refresh == Refresh::Always {
        let done = insert(hashes, Some((true, seen)))?;
        seen.iter_mut().zip(&*before).for_each(|(seen, &before)| *seen |= before);
        return Ok(done);
    }
    // Keys that older tables contain are not inserted.
    let (mut some, mut places, mut new) = ([0; BLOCK], [0; BLOCK], 0);
    for (i, (&hash, &before)) in hashes.iter().zip(&*before).enumerate() {
        (some[new], places[new]) = (hash, i);
        new += usize::from(!before);
    }
    let mut answers = [false; BLOCK];
    let done = insert(&some[..new], Some((false, &mut answers[..new])))?;
    seen.copy_from_slice(before);
    places.iter().zip(answers).take(done).for_each(|(&i, answer)| seen[i] = answer);
    Ok(if done < new { places[done] } else { hashes.len() })
}

/// One partition of the newest table, and the older tables.
struct Part<'a, L> {
    clock: Clock,
    layout: L,
    words: &'a mut [u64],
    older: &'a [Table<L>],
}

impl<L: Layout> Process for Part<'_, L> {
    fn process(&mut self, keys: SelectedHashes<'_>, Insertion { at, refresh, seen }: Insertion<'_>) {
        let Self { clock, layout, words, older } = self;
        let mut i = 0;
        while i < keys.len {
            let (opened, rotation, run) = next_run(layout, clock, at, i, keys.len);
            if opened > 0 {
                age(layout, words, clock.generation(), opened);
            }
            let own = keys.within(i..i + run);
            for start in own.clone().step_by(BLOCK) {
                let block = start..own.end.min(start + BLOCK);
                let seen = if refresh.is_some() { &mut seen[block.clone()] } else { &mut [] };
                let insert = |hashes: &[u64], seen: Option<(bool, &mut [bool])>| {
                    let run = 0..hashes.len();
                    match seen {
                        None => layout.insert_run(words, rotation, hashes, run),
                        Some((refresh, seen)) => {
                            layout.duplicated_run(words, rotation, hashes, run, refresh, seen);
                        }
                    }
                    Ok(hashes.len())
                };
                // The newest table has room for every key.
                let _ = apply(older, rotation, &keys.hashes[block], refresh, seen, insert);
            }
            clock.count(run as u64);
            i += run;
        }
    }

    fn clock(&self) -> Clock {
        self.clock
    }
}

impl<G: Growth> Engine for Chain<G> {
    fn process(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error> {
        let at = self.clock.admit(insertion.at)?;
        self.process_admitted(hashes, Insertion { at, ..insertion })
    }

    /// Divides keys among threads where the newest table has room for all of them.
    fn process_shared(&mut self, keys: &mut Chunk<'_>, mut insertion: Insertion<'_>) -> Result<(), Error> {
        insertion.at = self.clock.admit(insertion.at)?;
        let (all, mut done) = (keys.range(), 0);
        while done < all.len() {
            let left = all.len() - done;
            let rest = insertion.at.slice(done..all.len());
            let mut part = if self.clock.counts() { 0 } else { self.roomy(rest, left) };
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
        for_query_runs(self.layout(), &self.clock, 1, at, None, |rotation, _| {
            present = rotation.is_some_and(|rotation| self.contains(rotation, hash));
        })?;
        Ok(present)
    }

    /// Skips the buffers of a block where the open generation and the newest table have room.
    fn seen_one(&mut self, hash: u64, at: Moments<'_>, refresh: Refresh) -> Result<bool, Error> {
        let (at, mut clock) = (self.clock.admit(at)?, self.clock);
        let (opened, rotation, run) = next_run(self.layout(), &mut clock, at, 0, 1);
        if refresh == Refresh::Always
            && (opened, run) == (0, 1)
            && self.expired.is_empty()
            && let Some((newest, older)) = self.tables.split_last_mut()
            && let Some(seen) = self.growth.seen_one(newest, rotation, hash)?
        {
            clock.count(1);
            (newest.last, self.clock) = (G::moment(&clock), clock);
            return Ok(seen | older.iter().any(|table| table.contains(rotation, hash)));
        }
        let mut seen = [false];
        self.process_admitted(&[hash], Insertion { at, refresh: Some(refresh), seen: &mut seen })?;
        Ok(seen[0])
    }

    fn query_within(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        window: Option<u64>,
        present: &mut [bool],
    ) -> Result<(), Error> {
        for_query_runs(self.layout(), &self.clock, hashes.len(), at, window, |rotation, run| {
            present[run.clone()].fill(false);
            let Some(rotation) = rotation else { return };
            for (hashes, present) in hashes[run.clone()].chunks(BLOCK).zip(present[run].chunks_mut(BLOCK)) {
                query(&self.tables, rotation, hashes, present);
            }
        })
    }

    /// Merges another chain, or the single table of an engine of the same cells.
    fn merge(&mut self, other: &dyn Engine) -> Result<(), Error> {
        if let Some(reason) = G::NOT_MERGEABLE {
            return Err(not_mergeable(reason));
        }
        let other: &dyn Any = other;
        let mut theirs = match (other.downcast_ref::<Self>(), other.downcast_ref::<Aged<G::Cells>>()) {
            (Some(other), _) => other.clone(),
            (_, Some(&Aged { layout, ref words, clock })) => {
                let tables = vec![Table { layout, words: words.clone(), last: G::moment(&clock), load: 0 }];
                Self { growth: self.growth.clone(), clock, tables, expired: Vec::new() }
            }
            _ => return Err(not_mergeable("one grows with the number of keys and the other does not")),
        };
        if theirs.clock.inserted() == 0 {
            return Ok(());
        }
        if self.clock.inserted() == 0 {
            theirs.set_max_ahead(self.clock.max_ahead());
            *self = theirs;
            return Ok(());
        }
        let mut ours = self.clone();
        let (clock, ours_opened, theirs_opened) = ours.clock.merged(&theirs.clock, true)?;
        for (chain, opened) in [(&mut ours, ours_opened), (&mut theirs, theirs_opened)] {
            if opened > 0 {
                chain.age(&clock, opened)?;
            }
            if clock.counts() {
                chain.realign(clock.generation())?;
            }
            chain.clock = clock;
        }
        let (rotation, generations) = (ours.rotation(), ours.layout().generations());
        for table in theirs.tables {
            let live = clock.generation().abs_diff(G::generation(&clock, table.last)) < generations;
            if live && !G::merge(ours.newest(), &table, rotation)? {
                ours.tables.push(table);
            }
        }
        ours.tables.sort_by_key(|table| table.last);
        *self = ours;
        Ok(())
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock = self.clock.with_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.tables.last().expect("a chain has a table").words
    }

    fn nbytes(&self) -> usize {
        let cells = self.tables.iter().map(|table| size_of_val(table.words.as_slice()));
        8 * (1 + G::HEAD + G::ROW * self.tables.len()) + cells.sum::<usize>()
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

    /// Returns those of all tables. A key that came again in a newer table counts in both.
    fn entries(&self) -> Option<Vec<f64>> {
        let entries = |table: &TableOf<G>| table.layout.entries(table.words.as_slice(), self.rotation());
        summed(self.tables.iter().filter_map(entries))
    }

    /// Returns an upper bound where a key has been inserted into several tables: these then match less independently.
    fn false_positive_rate(&self) -> f64 {
        let rate = |table: &TableOf<G>| table.layout.false_positive_rate(table.words.as_slice(), self.rotation());
        fill::any(self.tables.iter().map(rate))
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl<G: Growth> EvidenceSource for Chain<G> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn inserted(&self) -> u64 {
        self.clock.inserted()
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let (rotation, mut own) = (self.rotation(), [Evidence::default(); BLOCK]);
        for (hashes, evidence) in hashes.chunks(BLOCK).zip(evidence.chunks_mut(BLOCK)) {
            for (older, table) in self.tables.iter().enumerate() {
                let own = &mut own[..hashes.len()];
                table.layout.evidence_run(table.words.as_slice(), rotation, hashes, own);
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
