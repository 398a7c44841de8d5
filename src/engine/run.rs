//! Runs of keys that belong to one generation: the loop that passes a batch to the cells.

use std::ops::Range;

use super::hashes::SelectedHashes;
use super::{Insertion, Query, Refresh, no_ages};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::Layout;
use crate::memory::mapped::{LiveClock, RECORD};
use crate::memory::prefetch::{AHEAD, Address, in_flight};

/// Number of keys of a block: late keys are gathered to as many.
pub(super) const BLOCK: usize = 256;

/// The cells that a thread writes, all of a filter or one partition, with the clock that ages them.
pub(crate) struct AgedMut<'a, L> {
    pub layout: &'a L,
    pub words: &'a mut [u64],
    pub clock: &'a mut Clock,
    /// The record of the clock beside the cells, if other processes use them too.
    pub live: Option<LiveClock<'a>>,
}

impl<L: Layout> AgedMut<'_, L> {
    /// Processes the keys of a run: without `refresh` inserts them, and otherwise queries them and inserts all of them
    /// or only new ones. In a file that other processes read, each move of an entry is announced to them. Returns the
    /// number of insertions of keys that were queried.
    fn process_run(
        &mut self,
        rotation: L::Rotation,
        hashes: &[u64],
        mut run: Range<usize>,
        refresh: Option<bool>,
        seen: &mut [bool],
    ) -> u64 {
        if let (Some(live), Some(still)) = (self.live, self.layout.abilities().still) {
            let mut inserted = 0;
            loop {
                let refreshes = refresh != Some(false);
                let (done, of_them) = still.process_still(self.words, rotation, hashes, run.clone(), refreshes, seen);
                (run.start, inserted) = (run.start + done, inserted + of_them);
                if run.is_empty() {
                    return inserted;
                }
                let was_seen = live.moving(|| self.layout.seen(self.words, rotation, hashes[run.start]));
                if let Some(seen) = seen.get_mut(run.start) {
                    *seen = was_seen;
                }
                (run.start, inserted) = (run.start + 1, inserted + 1);
            }
        }
        match refresh {
            None => {
                self.layout.insert_run(self.words, rotation, hashes, run);
                0
            }
            Some(refresh) => self.layout.duplicated_run(self.words, rotation, hashes, run, refresh, seen),
        }
    }

    /// Inserts the keys in order, each after it has been looked up if the insertion demands it. A clock that
    /// [waits](Refresh::waits) for answers needs all keys of the batch, not those of a partition.
    pub fn process(&mut self, keys: SelectedHashes<'_>, Insertion { at, refresh, seen }: Insertion<'_>) {
        if self.clock.opens_each_insertion() && keys.selection.is_none() {
            return self.process_each(keys.hashes, refresh, seen);
        }
        let always = refresh.map(|refresh| refresh == Refresh::Always);
        if self.has_late() {
            return self.process_late(keys, at, always, seen);
        }
        let waits = refresh.is_some_and(|refresh| refresh.waits(self.clock));
        let (mut start, mut rotation, mut i) = (0, self.rotation(), 0);
        let horizon_of = |clock: &Clock| refresh.map(|_| clock.horizon().0);
        let mut horizon = horizon_of(self.clock);
        while i < keys.len {
            let (mut opened, run) = self.clock.run(at, i, keys.len);
            if run == 0 && refresh.is_none() {
                self.clock.open_next();
                opened = 1;
            }
            let ends = refresh.filter(|_| run == 0 && self.layout.rotates(self.clock.generation() + 1));
            let expires = horizon != horizon_of(self.clock);
            if ends.is_some() || expires || self.changes(opened) {
                if start < i {
                    self.process_run(rotation, keys.hashes, keys.within(start..i), always, seen);
                }
                if opened > 0 {
                    self.age(opened);
                }
                start = i;
            }
            if start == i {
                rotation = self.rotation();
                horizon = horizon_of(self.clock);
            }
            if let Some(refresh) = ends {
                self.duplicated_at_end(keys, i, refresh, seen);
                i += 1;
                start = i;
            } else if run == 0 && refresh.is_some() {
                self.clock.open_next();
            } else if !waits {
                self.clock.count(run as u64);
                i += run;
            } else {
                // The clock can continue only when the number of insertions is known.
                let own = keys.within(i..i + run);
                let inserted = self.process_run(rotation, keys.hashes, own, always, seen);
                self.clock.count(inserted);
                i += run;
                start = i;
            }
        }
        if start < i {
            self.process_run(rotation, keys.hashes, keys.within(start..i), always, seen);
        }
    }

    /// Returns whether late keys belong to generations of their own.
    fn has_late(&self) -> bool {
        self.clock.lateness() > 0 && self.layout.abilities().late.is_some()
    }

    /// Processes the keys as [`process`](Self::process) does, late ones in the generations of their own times.
    fn process_late(&mut self, keys: SelectedHashes<'_>, at: Moments<'_>, refresh: Option<bool>, seen: &mut [bool]) {
        let layout = self.layout;
        let Some(late) = layout.abilities().late else { return };
        let (mut i, mut each) = (0, Vec::new());
        while i < keys.len {
            let (opened, rotation, mut run) = next_run(layout, self.clock, at, i, keys.len);
            if opened > 0 {
                self.age(opened);
            }
            // In a file that other processes read, moves are announced, which takes a run.
            if self.live.is_none() {
                run = gather(layout, self.clock, at, keys, i, (rotation, run), &mut each);
            }
            let own = keys.within(i..i + run);
            if each.is_empty() {
                self.process_run(rotation, keys.hashes, own, refresh, seen);
            } else {
                let seen = refresh.map(|refresh| (refresh, &mut seen[own.clone()]));
                late.process_late(self.words, &each, &keys.hashes[own], seen);
            }
            self.clock.count(run as u64);
            i += run;
        }
    }

    /// Processes key `i` as [`process`](Self::process) does, where the open generation is full.
    fn duplicated_at_end(&mut self, keys: SelectedHashes<'_>, i: usize, refresh: Refresh, seen: &mut [bool]) {
        // The query comes first, while the old generation is still open.
        let key = keys.within(i..i + 1);
        self.layout.query_run(self.words, self.rotation(), keys.hashes, key.clone(), seen);
        let inserts = refresh.inserts(seen[key.clone()].contains(&true));
        if inserts || !refresh.waits(self.clock) {
            self.clock.open_next();
            self.age(1);
            self.clock.count(1);
        }
        if inserts {
            self.process_run(self.rotation(), keys.hashes, key, None, &mut []);
        }
    }

    /// Processes the keys as [`process`](Self::process) does, where every insertion opens a generation.
    fn process_each(&mut self, hashes: &[u64], refresh: Option<Refresh>, seen: &mut [bool]) {
        let (layout, rotation, address) = (self.layout, self.rotation(), Address::of(self.words));
        let prefetch = |hash| match refresh {
            None => layout.prefetch_insert(address, rotation, hash),
            Some(_) => layout.prefetch_query(address, hash),
        };
        in_flight(hashes, 0..hashes.len(), prefetch, |i, hash| {
            let inserts = refresh.is_none_or(|refresh| {
                // The query comes first, while the old generation is still open.
                seen[i] = layout.contains(self.words, self.rotation(), hash);
                refresh.inserts(seen[i])
            });
            if inserts || refresh != Some(Refresh::Delivered) {
                self.insert_next(inserts.then_some(hash));
            }
        });
    }

    /// Opens the next generation, unless it is the first, and inserts its key, if it has one.
    #[inline(always)]
    fn insert_next(&mut self, hash: Option<u64>) {
        if self.clock.inserted() > 0 {
            self.clock.open_next();
            self.age(1);
        }
        self.clock.count(1);
        match (hash, self.live) {
            (None, _) => self.layout.skip(self.words, self.rotation()),
            (Some(hash), None) => self.layout.insert(self.words, self.rotation(), hash),
            (Some(hash), Some(_)) => _ = self.process_run(self.rotation(), &[hash], 0..1, None, &mut []),
        }
    }

    /// Returns whether any of the last `opened` generations changes the cells.
    fn changes(&self, opened: u64) -> bool {
        let rotates = |later| self.layout.rotates(self.clock.generation() - later as i64);
        opened >= self.layout.generations() || (0..opened).any(rotates)
    }

    fn rotation(&self) -> L::Rotation {
        self.layout.rotation(self.clock.generation(), self.clock.expired())
    }

    /// Ages the cells by the last `opened` generations, and publishes the clock before and after.
    #[inline]
    fn age(&mut self, opened: u64) {
        let clock = self.clock.clone().with_opening_key();
        publish(self.live, &clock, opened);
        age(self.layout, self.words, clock.generation(), opened);
        publish(self.live, &clock, 0);
    }
}

/// Advances a time clock to the moment of key `i`. Returns how many generations begin by that, the rotation for the
/// key, and for how many keys from `i` on, up to `len`, it is the same.
pub(super) fn next_run<L: Layout>(
    layout: &L,
    clock: &mut Clock,
    at: Moments<'_>,
    i: usize,
    len: usize,
) -> (u64, L::Rotation, usize) {
    if let Some(late) = layout.abilities().late
        && clock.lateness() > 0
    {
        let (opened, [own, oldest], run) = clock.run_of_late(at, i, len);
        return (opened, late.rotation_of(clock.generation(), own, oldest), run);
    }
    let (opened, run) = clock.run(at, i, len);
    (opened, layout.rotation(clock.generation(), 0), run)
}

/// Extends a short run of keys, which begins with key `i`, by the short runs that follow until a generation opens, to a
/// block of keys. Keys that are late at random have a run each, and are processed together, each in a rotation of its
/// own. Writes these to `each`, or nothing if the keys have one rotation. Returns the number of keys in the batch.
pub(super) fn gather<L: Layout>(
    layout: &L,
    clock: &mut Clock,
    at: Moments<'_>,
    keys: SelectedHashes<'_>,
    i: usize,
    (rotation, run): (L::Rotation, usize),
    each: &mut Vec<L::Rotation>,
) -> usize {
    each.clear();
    if run > AHEAD || clock.lateness() == 0 || layout.abilities().late.is_none() {
        return run;
    }
    let mut end = i + run;
    each.resize(keys.within(i..end).len(), rotation);
    while end < keys.len && each.len() < BLOCK && clock.generation_at(at.moment(end)) <= clock.generation() {
        let before = clock.clone();
        let (opened, rotation, next) = next_run(layout, clock, at, end, keys.len);
        // A generation opens here only if another thread has written to the times since.
        if opened > 0 || next > AHEAD {
            *clock = before;
            break;
        }
        end += next;
        each.resize(keys.within(i..end).len(), rotation);
    }
    end - i
}

/// Calls `answer` with the rotation and the range of each run of keys. The rotation is `None` if no key can be left in
/// the window.
pub(super) fn for_query_runs<L: Layout>(
    layout: &L,
    clock: &Clock,
    Query { hashes, at, window }: Query<'_>,
    mut answer: impl FnMut(Option<L::Rotation>, Range<usize>),
) -> Result<(), Error> {
    let generation = clock.generation();
    // Cells that store late keys by their own times retain them for the lateness, too, and report none that is older
    // than the window.
    let own = clock.lateness() > 0 && layout.abilities().late.is_some();
    let window = window.or(own.then(|| clock.window().length()));
    if window.is_some() && !layout.has_ages() {
        return Err(no_ages());
    }
    clock.check(at, false)?;
    let window = window.map(|window| clock.window().part(window)).transpose()?;
    let (at, mut i, keys) = (clock.query_moments(at), 0, hashes.len());
    while i < keys {
        let (rotation, run) = match window {
            None => {
                let (pending, run) = clock.pending(at, i, keys);
                (Some(layout.rotation(generation, pending)), run)
            }
            Some(window) => {
                let (back, run) = clock.within(window, at, i, keys);
                let pending = |back| (layout.generations() - 1).saturating_sub(back);
                (back.map(|back| layout.rotation(generation, pending(back))), run)
            }
        };
        answer(rotation, i..i + run);
        i += run;
    }
    Ok(())
}

/// Writes the clock to the record that other processes read, if there is one, with the number of generations by which
/// the cells have yet to age.
#[inline(always)]
pub(super) fn publish(live: Option<LiveClock<'_>>, clock: &Clock, pending_rotations: u64) {
    if let Some(live) = live {
        if let Some(table) = clock.to_table() {
            live.write_table(&table);
        }
        let [inserted, timed, latest, by_system, generation, boot, offset] = clock.to_record();
        live.write([inserted, timed, latest, by_system, generation, pending_rotations, boot, offset]);
    }
}

/// Returns the words of the clock in a record that [`publish`] wrote, and the number of generations.
pub(super) fn of_clock(record: [u64; RECORD]) -> ([u64; RECORD - 1], u64) {
    let [inserted, timed, latest, by_system, generation, pending_rotations, boot, offset] = record;
    ([inserted, timed, latest, by_system, generation, boot, offset], pending_rotations)
}

/// Opens the last `opened` generations up to `open`. Clears all words at once after a gap in which every key has
/// expired.
#[inline]
pub(super) fn age<L: Layout>(layout: &L, words: &mut [u64], open: i64, opened: u64) {
    if opened >= layout.generations() {
        words.fill(0);
    } else {
        for later in (0..opened).rev() {
            layout.open(words, open - later as i64);
        }
    }
}
