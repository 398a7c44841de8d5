//! Runs of keys that belong to one generation: how a batch meets the cells at hand, which are all of a filter or a part
//! of it.

use super::Refresh;
use super::hashes::Hashes;
use crate::clock::{Clock, Moments};
use crate::layout::Layout;
use crate::memory::mapped::Live;
use crate::memory::prefetch::{Address, in_flight};

/// The cells that a batch acts on, all of a filter or a part, and the clock that ages them.
pub(crate) struct AgedMut<'a, L> {
    pub layout: L,
    pub words: &'a mut [u64],
    pub clock: &'a mut Clock,
    /// The clock beside the cells, if other processes write to them too.
    pub live: Option<Live<'a>>,
}

impl<L: Layout> AgedMut<'_, L> {
    /// Inserts the keys in order.
    pub fn insert(&mut self, keys: Hashes<'_>, at: Moments<'_>) {
        if self.clock.turns_each_insertion() && keys.chosen.is_none() {
            return self.insert_each(keys.hashes);
        }
        let (mut start, mut phase, mut i) = (0, None, 0);
        while i < keys.len {
            let (mut begun, run) = self.clock.run(at, i, keys.len);
            if run == 0 {
                self.clock.turn();
                begun = 1;
            }
            if self.changes(begun) {
                if let Some(phase) = phase {
                    self.layout.insert_run(self.words, phase, keys.hashes, keys.within(start..i));
                }
                self.age(begun);
                start = i;
            }
            if start == i {
                phase = Some(self.phase());
            }
            self.clock.count(run as u64);
            i += run;
        }
        if let Some(phase) = phase {
            self.layout.insert_run(self.words, phase, keys.hashes, keys.within(start..i));
        }
    }

    /// For each key in order: writes to `seen` whether it was there, then inserts it as `refresh` says. A clock that
    /// waits for the answers takes all keys, not those of a part.
    pub fn duplicated(&mut self, keys: Hashes<'_>, at: Moments<'_>, refresh: Refresh, seen: &mut [bool]) {
        let (all, waits) = (refresh == Refresh::Always, refresh.waits(self.clock));
        if self.clock.turns_each_insertion() && keys.chosen.is_none() {
            return self.duplicated_each(keys.hashes, refresh, seen);
        }
        let (mut start, mut phase, mut i) = (0, self.phase(), 0);
        while i < keys.len {
            let (begun, run) = self.clock.run(at, i, keys.len);
            let full = run == 0 && self.layout.turns(self.clock.generation() + 1);
            if full || self.changes(begun) {
                self.layout.duplicated_run(self.words, phase, keys.hashes, keys.within(start..i), all, seen);
                self.age(begun);
                start = i;
            }
            if start == i {
                phase = self.phase();
            }
            if full {
                // Looked up while the old generation is still open.
                let key = keys.within(i..i + 1);
                self.layout.query_run(self.words, phase, keys.hashes, key.clone(), seen);
                let taken = refresh.takes(seen[key.clone()].contains(&true));
                if taken || !waits {
                    self.clock.turn();
                    self.age(1);
                    self.clock.count(1);
                }
                if taken {
                    keys.hashes[key].iter().for_each(|&hash| self.layout.insert(self.words, self.phase(), hash));
                }
                i += 1;
                start = i;
            } else if run == 0 {
                self.clock.turn();
            } else if !waits {
                self.clock.count(run as u64);
                i += run;
            } else {
                // The clock can go on only when the number of insertions is known.
                let own = keys.within(i..i + run);
                self.clock.count(self.layout.duplicated_run(self.words, phase, keys.hashes, own, false, seen));
                i += run;
                start = i;
            }
        }
        self.layout.duplicated_run(self.words, phase, keys.hashes, keys.within(start..i), all, seen);
    }

    /// [`insert`](Self::insert) where every insertion opens a generation.
    fn insert_each(&mut self, hashes: &[u64]) {
        let (layout, phase, address) = (self.layout, self.phase(), Address::of(self.words));
        let fetch = |hash| layout.fetch_newest(address, phase, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |_, hash| self.take_next(Some(hash)));
    }

    /// [`duplicated`](Self::duplicated) where every insertion opens a generation.
    fn duplicated_each(&mut self, hashes: &[u64], refresh: Refresh, seen: &mut [bool]) {
        let (layout, address) = (self.layout, Address::of(self.words));
        let fetch = |hash| layout.fetch_all(address, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
            // Looked up while the old generation is still open.
            seen[i] = layout.contains(self.words, self.phase(), hash);
            let taken = refresh.takes(seen[i]);
            if taken || refresh != Refresh::Delivered {
                self.take_next(taken.then_some(hash));
            }
        });
    }

    /// Opens the next generation, unless it is the first, and inserts its key, if it has one.
    #[inline(always)]
    fn take_next(&mut self, hash: Option<u64>) {
        if self.clock.inserted() > 0 {
            self.clock.turn();
            if self.changes(1) {
                self.age(1);
            }
        }
        self.clock.count(1);
        match hash {
            Some(hash) => self.layout.insert(self.words, self.phase(), hash),
            None => self.layout.pass(self.words, self.phase()),
        }
    }

    /// Whether one of the last `begun` generations changes the cells at hand.
    fn changes(&self, begun: u64) -> bool {
        let turns = |later| self.layout.turns(self.clock.generation() - later as i64);
        begun >= self.layout.generations() || (0..begun).any(turns)
    }

    fn phase(&self) -> L::Phase {
        self.layout.phase(self.clock.generation(), 0)
    }

    #[inline]
    fn age(&mut self, begun: u64) {
        tell(self.live, self.clock, begun);
        age(self.layout, self.words, self.clock.generation(), begun);
        tell(self.live, self.clock, 0);
    }
}

/// Tells other processes the clock, where the cells have yet to age by the last `unaged` generations.
#[inline(always)]
pub(super) fn tell(live: Option<Live<'_>>, clock: &Clock, unaged: u64) {
    if let Some(live) = live {
        let [inserted, timed, latest, by_system, generation] = clock.told();
        live.write([inserted, timed, latest, by_system, generation, unaged]);
    }
}

/// Opens the last `begun` generations up to `open`; a gap longer than the filter remembers empties it at once.
#[inline]
pub(super) fn age<L: Layout>(layout: L, words: &mut [u64], open: i64, begun: u64) {
    if begun >= layout.generations() {
        words.fill(0);
    } else {
        for later in (0..begun).rev() {
            layout.open(words, open - later as i64);
        }
    }
}
