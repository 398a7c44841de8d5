//! A chain of tables, for windows of time at any rate, and for merged windows of insertions. The newest table takes
//! insertions, the others only answer until their last entry has expired.
//!
//! A table is full when a key finds no room. The next one then has room for 1.3 times the live keys of all tables, so
//! that at a steady rate one table is left, and tables together have at most 2.3 times the room that is needed. A
//! table far too large for the live keys is followed by a smaller one. Nothing is copied when tables come and go, and
//! a new one is memory of zeros, which the system gives page by page.
//!
//! A key that comes again while an older table contains it is inserted into the newest like any other.

use std::any::Any;
use std::borrow::Cow;

use super::hashes::SelectedHashes;
use super::run::{age, for_query_runs, next_run};
use super::threads::{self, Chunk, PIECE, Process, Task};
use super::{Aged, Engine, Refresh, not_mergeable};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::abilities::{Divide, Partition};
use crate::family::aged_cuckoo::shape::{AgedCuckooShape, SWEEP_LATE};
use crate::family::aged_cuckoo::{AgedCuckoo, Full};
use crate::family::{Abilities, Layout};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;

/// Number of keys that are processed at a time: older tables answer for all of them first.
const BLOCK: usize = 256;
/// Room of the next table, over the live keys of all tables.
const ROOM: f64 = 1.3;
/// Live keys of all tables, over the slots of the newest, below which that is far too large.
const SPARSE: f64 = 0.2;
/// Number of slots above which a table that is half empty has room for every key but those of crowded lines.
const CROWDED: f64 = 4096.0;
/// Share of the slots of the newest table up to which threads may fill it: none is so crowded that it rejects keys.
const ROOMY: f64 = 0.9;
/// Number of lines of a table in which live entries are counted, at most; whenever a generation opens it is less.
const SAMPLE: usize = 1 << 10;
const SMALL_SAMPLE: usize = 1 << 6;
/// Words of a row of the table of tables: fingerprint bits, pages, lines, last insertion.
const ROW: usize = 4;

/// What the open generation means for the cells.
type Rotation = <AgedCuckoo as Layout>::Rotation;

/// One table.
#[derive(Clone)]
struct Table {
    layout: AgedCuckoo,
    words: Words,
    /// The generation of the last insertion, or the one in which the table was opened.
    last: i64,
}

impl Table {
    fn new(shape: AgedCuckooShape, generation: i64) -> Result<Self, Error> {
        let layout = AgedCuckoo::new(shape);
        Ok(Self { layout, words: Words::zeroed(layout.words())?, last: generation })
    }

    fn contains(&self, rotation: Rotation, hash: u64) -> bool {
        self.layout.contains(self.words.as_slice(), rotation, hash)
    }
}

/// An engine of tables that come and go, the oldest first.
#[derive(Clone)]
pub struct Chain {
    /// The shape of the smallest table.
    shape: AgedCuckooShape,
    clock: Clock,
    tables: Vec<Table>,
    /// Tables whose memory goes back to the system, a piece with each call.
    expired: Vec<Words>,
}

impl Chain {
    /// Returns the tables that [`pieces`](Engine::pieces) returned as these words; without words, one empty table.
    pub fn new(shape: AgedCuckooShape, clock: Clock, words: &Words) -> Result<Self, Error> {
        let mut new = Self { shape, clock, tables: Vec::new(), expired: Vec::new() };
        new.tables = match words.as_slice() {
            [] => vec![Table::new(shape, clock.generation())?],
            words => {
                let tables = new.read(words)?;
                // Whatever a file states, the smallest table is no larger than those that it contains.
                let lines = tables.iter().map(|table| table.layout.lines()).max().unwrap_or(0);
                new.shape = shape.at_most(lines);
                tables
            }
        };
        Ok(new)
    }

    /// Reads tables, and rejects damaged ones.
    fn read(&self, words: &[u64]) -> Result<Vec<Table>, Error> {
        let damaged = || Error::format("the table of tables is damaged");
        let (&count, rest) = words.split_first().ok_or_else(damaged)?;
        let rows = usize::try_from(count).ok().and_then(|count| count.checked_mul(ROW)).ok_or_else(damaged)?;
        let (rows, mut cells) = rest.split_at_checked(rows).filter(|_| count > 0).ok_or_else(damaged)?;
        let mut tables: Vec<Table> = Vec::new();
        for row in rows.as_chunks::<ROW>().0 {
            let &[bits, pages, lines, last] = row;
            let shape = self.shape.of_table(bits, pages, lines).map_err(|_| damaged())?;
            let layout = AgedCuckoo::new(shape);
            let (own, rest) = cells.split_at_checked(layout.words()).ok_or_else(damaged)?;
            let last = last as i64;
            if last > self.clock.generation() || tables.last().is_some_and(|older| older.last > last) {
                return Err(damaged());
            }
            let words = Words::copied(bytemuck::cast_slice(own))?;
            tables.push(Table { layout, words, last });
            cells = rest;
        }
        if cells.is_empty() { Ok(tables) } else { Err(damaged()) }
    }

    /// Returns the shape of the smallest table.
    #[cfg(test)]
    pub(crate) fn shape(&self) -> AgedCuckooShape {
        self.shape
    }

    /// Returns the number of tables.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> usize {
        self.tables.len()
    }

    fn newest(&mut self) -> &mut Table {
        self.tables.last_mut().expect("a chain has a table")
    }

    /// Returns the layout of the newest table. All tables agree in what their epochs mean.
    pub(crate) fn layout(&self) -> &AgedCuckoo {
        &self.tables.last().expect("a chain has a table").layout
    }

    /// Returns an estimate of the number of live entries of all tables, from at most this many lines of each.
    fn live(&self, sample: usize) -> f64 {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        self.tables.iter().map(|table| table.layout.load(table.words.as_slice(), rotation, sample)).sum()
    }

    /// Opens a table for the live keys and some more. A call that returns an error has changed nothing.
    fn open_table(&mut self) -> Result<(), Error> {
        let shape = self.shape.next(self.tables.len() as u32, self.live(SAMPLE) * ROOM);
        self.tables.push(Table::new(shape, self.clock.generation())?);
        Ok(())
    }

    /// Opens the last `opened` generations up to `open`: drops tables that have expired, and sweeps the others. A call
    /// that returns an error has changed nothing.
    fn age(&mut self, open: i64, opened: u64) -> Result<(), Error> {
        let generations = self.layout().generations();
        if opened >= generations {
            // However long the gap was, it is one step.
            let new = vec![Table::new(self.shape, open)?];
            self.expired.extend(std::mem::replace(&mut self.tables, new).into_iter().map(|table| table.words));
            return Ok(());
        }
        for table in &mut self.tables {
            age(table.layout, table.words.to_mut()?, open, opened);
        }
        self.drop_expired(open);
        Ok(())
    }

    /// Drops the older tables that have expired when `open` is the open generation.
    fn drop_expired(&mut self, open: i64) {
        let (older, generations) = (&self.tables[..self.tables.len() - 1], self.layout().generations());
        let expired = older.partition_point(|table| open.abs_diff(table.last) >= generations);
        self.expired.extend(self.tables.drain(..expired).map(|table| table.words));
    }

    /// Opens a smaller table if the newest is far too large. A window of insertions has room for as many keys again.
    fn shrink(&mut self) -> Result<(), Error> {
        let slots = self.layout().all_slots();
        if !self.clock.counts()
            && slots > 2.0 * AgedCuckoo::new(self.shape).all_slots()
            && self.live(SMALL_SAMPLE) < SPARSE * slots
        {
            self.open_table()?;
        }
        Ok(())
    }

    /// Numbers the generations of a window of insertions anew, such that `open` is the open one.
    fn realign(&mut self, open: i64) -> Result<(), Error> {
        let later = open - self.clock.generation();
        for table in self.tables.iter_mut().filter(|_| later != 0) {
            let [from, to] = [open - later, open].map(|open| table.layout.rotation(open, 0));
            table.layout.realign(table.words.to_mut()?, from, to);
            table.last += later;
        }
        Ok(())
    }

    /// Returns whether any table contains a key.
    fn contains(&self, rotation: Rotation, hash: u64) -> bool {
        self.tables.iter().any(|table| table.contains(rotation, hash))
    }

    /// Processes the keys of a chunk as [`process`](Self::process) does, on several threads where the newest table has
    /// room for all of them.
    fn process_shared(
        &mut self,
        keys: &mut Chunk<'_>,
        at: Moments<'_>,
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let (at, all, mut done) = (self.clock.admit(at)?, keys.range(), 0);
        while done < all.len() {
            let rest = at.slice(done..all.len());
            let mut part = if self.clock.counts() { 0 } else { self.roomy(rest, all.len() - done) };
            let divided =
                keys.at(all.start + done..all.start + done + part).partitions() > 1 && self.layout().pages() > 1;
            if !divided {
                part = PIECE.min(all.len() - done);
                keys.at(all.start + done..all.start + done + part);
            }
            let (at, seen) =
                (rest.slice(0..part), if refresh.is_some() { &mut seen[done..done + part] } else { &mut [] });
            match divided {
                true => self.divided(keys, at, refresh, seen)?,
                false => self.process(keys.hashes()?, at, refresh, seen)?,
            }
            done += part;
        }
        keys.at(all);
        Ok(())
    }

    /// Returns how many of the next keys have room in the newest table, whichever they are, and come before sweeps of
    /// the other tables may wait no longer.
    fn roomy(&self, at: Moments<'_>, keys: usize) -> usize {
        let (layout, mut clock, mut i, mut opened) = (self.layout(), self.clock, 0, 0);
        let entries = layout.load(self.words().as_slice(), layout.rotation(clock.generation(), 0), SAMPLE);
        let most = keys.min((ROOMY * layout.all_slots() - entries) as usize);
        while i < most {
            let (next, run) = clock.run(at, i, most);
            opened += next;
            if opened > SWEEP_LATE {
                break;
            }
            i += run;
        }
        i
    }

    /// Processes the keys of a chunk, for which the newest table has room, on several threads. Each writes to one
    /// partition of that table; the older ones are swept afterwards.
    fn divided(
        &mut self,
        keys: &mut Chunk<'_>,
        at: Moments<'_>,
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let (clock, mut tasks) = (self.clock, Vec::new());
        let Some((newest, older)) = self.tables.split_last_mut() else { return Ok(()) };
        let shared: &[Table] = older;
        newest.layout.divide(newest.words.to_mut()?, keys.partitions(), &mut |Partition { layout, words, hashes }| {
            tasks.push(Task { hashes, cells: Box::new(Part { clock, layout, words, older: shared }) });
        });
        let after = threads::process(tasks, keys, at, refresh, seen)?;
        newest.last = after.generation();
        let opened = after.latest().map_or(0, |_| after.generation().abs_diff(clock.generation()));
        for table in older.iter_mut().filter(|_| clock.latest().is_some()) {
            age(table.layout, table.words.to_mut()?, after.generation(), opened);
        }
        self.clock = after;
        self.drop_expired(after.generation());
        if opened > 0 { self.shrink() } else { Ok(()) }
    }

    /// Inserts the keys in order. With `refresh`, writes to `seen` which keys the tables contained, and inserts the
    /// keys as it demands. The moments are admitted.
    ///
    /// If a table cannot be allocated, the filter stays as it was before that key, and contains the keys before it.
    fn process(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
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
                    self.age(clock.generation(), 1)?;
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
                self.age(clock.generation(), opened)?;
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
                let done = self.process_block(&hashes[block], rotation, refresh, seen)?;
                self.clock.reach(at, i..i + done.max(1));
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

    /// Processes keys of one generation until the newest table is full; then opens another. Returns the number of keys
    /// done.
    fn process_block(
        &mut self,
        hashes: &[u64],
        rotation: Rotation,
        refresh: Option<Refresh>,
        seen: &mut [bool],
    ) -> Result<usize, Error> {
        if self.expired.last_mut().is_some_and(Words::release) {
            self.expired.pop();
        }
        let Some((newest, older)) = self.tables.split_last_mut() else { return Ok(0) };
        let (layout, words) = (newest.layout, newest.words.to_mut()?);
        let done = apply(older, (layout, words), rotation, hashes, refresh, seen, Full::Ends);
        if done > 0 {
            newest.last = self.clock.generation();
        }
        if done == hashes.len() {
            return Ok(done);
        }
        let (slots, entries) = (layout.all_slots(), layout.load(newest.words.as_slice(), rotation, SAMPLE));
        if slots > CROWDED && entries < 0.5 * slots {
            // Hashes that crowd into few lines, which an attacker may choose, open no tables.
            let rejects = layout.reject(newest.words.to_mut()?, rotation, hashes[done]);
            if refresh.is_some() {
                seen[done] = rejects || older.iter().any(|table| table.contains(rotation, hashes[done]));
            }
            newest.last = self.clock.generation();
            return Ok(done + 1);
        }
        self.open_table()?;
        Ok(done)
    }

    /// Returns the rows of the tables, behind their number.
    fn head(&self) -> Vec<u64> {
        let row = |table: &Table| {
            let [bits, pages, lines] = table.layout.numbers();
            [bits, pages, lines, table.last as u64]
        };
        [self.tables.len() as u64].into_iter().chain(self.tables.iter().flat_map(row)).collect()
    }

    /// Returns the chances that a fresh key matches an entry of each age in any table, the youngest first.
    fn chances(&self) -> Vec<f64> {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        let of_tables = self.tables.iter().map(|table| table.layout.match_rates(table.words.as_slice(), rotation));
        of_tables.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a + b).collect()).unwrap_or_default()
    }
}

/// Adds to `present` which keys any of the tables contains.
fn query(tables: &[Table], rotation: Rotation, hashes: &[u64], present: &mut [bool]) {
    let mut answers = [false; BLOCK];
    for table in tables {
        let answers = &mut answers[..hashes.len()];
        table.layout.query_run(table.words.as_slice(), rotation, hashes, 0..hashes.len(), answers);
        present.iter_mut().zip(answers).for_each(|(present, answer)| *present |= *answer);
    }
}

/// Processes at most [`BLOCK`] keys: looks them up in the `older` tables and in the newest, and inserts them there,
/// until one ends the run because it finds no room. Returns the number of keys done.
fn apply(
    older: &[Table],
    (layout, words): (AgedCuckoo, &mut [u64]),
    rotation: Rotation,
    hashes: &[u64],
    refresh: Option<Refresh>,
    seen: &mut [bool],
    full: Full,
) -> usize {
    let Some(refresh) = refresh else { return layout.insert_some(words, rotation, hashes, full) };
    let mut before = [false; BLOCK];
    let before = &mut before[..hashes.len()];
    query(older, rotation, hashes, before);
    if refresh == Refresh::Always {
        let done = layout.duplicated_some(words, rotation, hashes, (true, full), seen);
        seen.iter_mut().zip(&*before).for_each(|(seen, &before)| *seen |= before);
        return done;
    }
    // Keys that older tables contain are not inserted.
    let (mut some, mut places, mut new) = ([0; BLOCK], [0; BLOCK], 0);
    for (i, (&hash, &before)) in hashes.iter().zip(&*before).enumerate() {
        (some[new], places[new]) = (hash, i);
        new += usize::from(!before);
    }
    let mut answers = [false; BLOCK];
    let done = layout.duplicated_some(words, rotation, &some[..new], (false, full), &mut answers[..new]);
    seen.copy_from_slice(before);
    places.iter().zip(answers).take(done).for_each(|(&i, answer)| seen[i] = answer);
    if done < new { places[done] } else { hashes.len() }
}

/// One partition of the newest table, and the older tables.
struct Part<'a> {
    clock: Clock,
    layout: AgedCuckoo,
    words: &'a mut [u64],
    older: &'a [Table],
}

impl Process for Part<'_> {
    fn process(&mut self, keys: SelectedHashes<'_>, at: Moments<'_>, refresh: Option<Refresh>, seen: &mut [bool]) {
        let Self { clock, layout, words, older } = self;
        let mut i = 0;
        while i < keys.len {
            let (opened, rotation, run) = next_run(layout, clock, at, i, keys.len);
            if opened > 0 {
                age(*layout, words, clock.generation(), opened);
            }
            let own = keys.within(i..i + run);
            for start in own.clone().step_by(BLOCK) {
                let block = start..own.end.min(start + BLOCK);
                let seen = if refresh.is_some() { &mut seen[block.clone()] } else { &mut [] };
                apply(older, (*layout, words), rotation, &keys.hashes[block], refresh, seen, Full::Rejects);
            }
            clock.count(run as u64);
            i += run;
        }
    }

    fn clock(&self) -> Clock {
        self.clock
    }
}

impl Engine for Chain {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.process(hashes, at, None, &mut [])
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
        {
            let before = older.iter().any(|table| table.contains(rotation, hash));
            if let Some(seen) = newest.layout.seen_some(newest.words.to_mut()?, rotation, hash) {
                clock.count(1);
                (newest.last, self.clock) = (clock.generation(), clock);
                return Ok(before | seen);
            }
        }
        let mut seen = [false];
        self.process(&[hash], at, Some(refresh), &mut seen)?;
        Ok(seen[0])
    }

    fn insert_shared(&mut self, keys: &mut Chunk<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.process_shared(keys, at, None, &mut [])
    }

    fn duplicated_shared(
        &mut self,
        keys: &mut Chunk<'_>,
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.process_shared(keys, at, Some(refresh), seen)
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

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.process(hashes, at, Some(refresh), seen)
    }

    /// Merges the lines of one table each if both are alike and half empty. Otherwise the other's tables, or its only
    /// one, join the chain.
    fn merge(&mut self, other: &dyn Engine) -> Result<(), Error> {
        let other: &dyn Any = other;
        let mut theirs = match (other.downcast_ref::<Self>(), other.downcast_ref::<Aged<AgedCuckoo>>()) {
            (Some(other), _) => other.clone(),
            (_, Some(&Aged { layout, ref words, clock })) => {
                let tables = vec![Table { layout, words: words.clone(), last: clock.generation() }];
                Self { shape: self.shape, clock, tables, expired: Vec::new() }
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
                chain.age(clock.generation(), opened)?;
            }
            if clock.counts() {
                chain.realign(clock.generation())?;
            }
            chain.clock = clock;
        }
        let (rotation, generations) = (ours.layout().rotation(clock.generation(), 0), ours.layout().generations());
        for table in theirs.tables {
            let newest = ours.newest();
            let entries = |table: &Table| table.layout.load(table.words.as_slice(), rotation, SAMPLE);
            let room = newest.layout.all_slots() * 0.8;
            if newest.layout.numbers() == table.layout.numbers() && entries(newest) + entries(&table) < room {
                let Abilities { merge: Some(merge), .. } = newest.layout.abilities() else { continue };
                merge.merge(newest.words.to_mut()?, table.words.as_slice(), rotation);
                newest.last = newest.last.max(table.last);
            } else if clock.generation().abs_diff(table.last) < generations {
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
        8 * (1 + ROW * self.tables.len()) + cells.sum::<usize>()
    }

    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        let cells = self.tables.iter().map(|table| Cow::Borrowed(table.words.as_slice()));
        Ok([Cow::Owned(self.head())].into_iter().chain(cells).collect())
    }

    fn fill(&self) -> Vec<f64> {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        let slots: f64 = self.tables.iter().map(|table| table.layout.all_slots()).sum();
        let fill = |table: &Table| {
            let share = table.layout.all_slots() / slots;
            table.layout.fill(table.words.as_slice(), rotation).into_iter().map(|fill| fill * share).collect()
        };
        let sum = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a + b).collect();
        self.tables.iter().map(fill).reduce(sum).unwrap_or_default()
    }

    fn match_rates(&self) -> Vec<f64> {
        self.chances()
    }

    /// Returns those of all tables. A key that came again in a newer table counts in both.
    fn entries(&self) -> Option<Vec<f64>> {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        let entries = |table: &Table| Layout::entries(&table.layout, table.words.as_slice(), rotation);
        let sum = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a + b).collect();
        self.tables.iter().filter_map(entries).reduce(sum)
    }

    fn false_positive_rate(&self) -> f64 {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        let rate = |table: &Table| table.layout.false_positive_rate(table.words.as_slice(), rotation);
        1.0 - self.tables.iter().map(|table| 1.0 - rate(table)).product::<f64>()
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl EvidenceSource for Chain {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn inserted(&self) -> u64 {
        self.clock.inserted()
    }

    /// Writes the evidence of the table with the youngest entry.
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        evidence.fill(Evidence::epochs(None));
        let mut others = [Evidence::default(); BLOCK];
        for (hashes, evidence) in hashes.chunks(BLOCK).zip(evidence.chunks_mut(BLOCK)) {
            for table in &self.tables {
                let others = &mut others[..hashes.len()];
                table.layout.evidence_run(table.words.as_slice(), rotation, hashes, others);
                for (evidence, &mut other) in evidence.iter_mut().zip(others) {
                    let younger = match (evidence.as_epochs(), other.as_epochs()) {
                        (Some((ours, true)), Some((theirs, true))) => theirs < ours,
                        (Some((_, true)), _) | (_, None) => false,
                        _ => true,
                    };
                    *evidence = if younger { other } else { *evidence };
                }
            }
        }
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let rotation = self.layout().rotation(self.clock.generation(), 0);
        let tables = self.tables.iter().map(|table| (&table.layout, table.words.as_slice()));
        Some(crate::family::aged_cuckoo::likelihood_of(&self.clock, rotation, tables))
    }
}
