//! The exact window, in memory of its keys: which of them were seen lately, without slack and without a rate.
//!
//! A key is represented by its 64-bit hash alone, so two different keys of one window count as the same key with chance
//! 2⁻⁶⁴: n keys and a window of W of them meet such a pair with chance n·W / 2⁶⁴ at most.
//!
//! The table stores for each key the stamp of when it last counted: its number among the keys, or its time. A key whose
//! stamp lies too far back is dead, and its place is free for another key.

mod line;
mod record;
mod table;

use std::ops::Range;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::engine::Refresh;
use crate::memory::prefetch::in_flight;
use line::{Counted, Stamp, StampLine, Timed};
use table::{Key, StampTable};

/// Windows of at most this many keys have stamps of 32 bits.
const SHORT: u64 = 1 << 31;

pub use record::{Entry, Record};

/// The keys of a window, exactly: without slack and without false positives.
#[derive(Clone)]
pub struct Exact {
    kind: Stamps,
    /// Number of keys so far: inserted, or looked up by `duplicated` and not inserted. A window that counts deliveries
    /// counts only the inserted ones.
    inserted: u64,
    /// The bound on times, and the time of keys without one of their own. The table has the latest time.
    clock: Clock,
}

#[derive(Clone)]
enum Stamps {
    Counted(Stamped<Counted>),
    Timed(Stamped<Timed>),
}

impl Exact {
    /// Creates an empty window. In a window of time keys stay for `lateness` longer, which is how far times may step
    /// back from the latest one. `capacity` has no effect.
    pub fn new(window: Window) -> Result<Self, Error> {
        let kind = match window {
            Window::Count { insertions } => match window.check()?.capacity() {
                alive if insertions <= SHORT => Stamps::Counted(Stamped::new(StampTable::of(alive)?, window)),
                alive => Stamps::Timed(Stamped::new(StampTable::of(alive)?, window)),
            },
            Window::Time { span, capacity, .. } => {
                // Every lateness is accepted.
                Window::Time { span, lateness: 0, capacity }.check()?;
                Stamps::Timed(Stamped::new(StampTable::growing()?, window))
            }
        };
        Ok(Self { kind, inserted: 0, clock: Clock::new(window, 1) })
    }

    /// Returns this window with another bound on times ahead of the wall clock.
    pub fn with_max_ahead(self, max_ahead: Option<u64>) -> Self {
        Self { clock: self.clock.with_max_ahead(max_ahead), ..self }
    }

    /// Returns an empty window like this one.
    pub fn cleared(&self) -> Result<Self, Error> {
        Ok(Self::new(self.window())?.with_max_ahead(self.clock.max_ahead()))
    }

    /// Returns the clock, which checks times.
    pub fn clock(&self) -> Clock {
        self.clock.resumed(self.inserted, self.latest())
    }

    /// Writes to `seen`, for each key in order, whether it was seen within the window; inserts it as `refresh` demands.
    ///
    /// In a window of time a key counts as seen if it came at most the window before its own time. No insertion makes
    /// the time of a key earlier. A moment of [`Moments::Now`] is the latest moment so far, if that is later. Times
    /// that step back by more than the lateness miss keys.
    ///
    /// `unlike` is the hash of keys that equal no other: they are never seen and never inserted.
    ///
    /// If memory runs out, the keys before that point have been inserted.
    pub fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        unlike: Option<u64>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let mut clock = self.clock();
        let at = clock.continue_at(at);
        if matches!(at, Moments::Now(_)) && !hashes.is_empty() {
            self.clock = clock.with_system(true, clock.time_at(0));
        }
        match &mut self.kind {
            Stamps::Counted(keys) => keys.duplicated(hashes, at, refresh, unlike, seen)?,
            Stamps::Timed(keys) => keys.duplicated(hashes, at, refresh, unlike, seen)?,
        }
        let delivered = matches!(self.window(), Window::Count { .. }) && refresh == Refresh::Delivered;
        let counted = if delivered { seen.iter().filter(|&&seen| !seen).count() } else { hashes.len() };
        self.inserted += counted as u64;
        Ok(())
    }

    /// Writes to `seen`, for each key, whether it was seen within the window before its moment, and inserts nothing.
    ///
    /// In a window of insertions that is whether the key would be seen if it came next. A moment of [`Moments::Now`] is
    /// the latest moment so far if that is later, or if every key came with a time of its own.
    pub fn query(&self, hashes: &[u64], at: Moments<'_>, unlike: Option<u64>, seen: &mut [bool]) -> Result<(), Error> {
        let at = self.query_moments(at);
        match &self.kind {
            Stamps::Counted(keys) => keys.query(hashes, at, unlike, seen),
            Stamps::Timed(keys) => keys.query(hashes, at, unlike, seen),
        }
    }

    /// Counts the different keys that `query` would report at a moment. Reads the whole table.
    pub fn count(&self, at: Moments<'_>) -> usize {
        let at = self.query_moments(at);
        match &self.kind {
            Stamps::Counted(keys) => keys.count(at),
            Stamps::Timed(keys) => keys.count(at),
        }
    }

    /// Returns the moments of a query in the filter's time.
    fn query_moments<'a>(&self, at: Moments<'a>) -> Moments<'a> {
        match (self.clock().query_moments(at), self.latest()) {
            (Moments::Now(now), Some(latest)) => Moments::At(now.max(latest)),
            (at, _) => at,
        }
    }

    /// Returns the window.
    pub fn window(&self) -> Window {
        match &self.kind {
            Stamps::Counted(keys) => keys.window,
            Stamps::Timed(keys) => keys.window,
        }
    }

    /// Returns how many keys came so far.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the latest time of all keys so far, if the window is one of time and there was one.
    pub fn latest(&self) -> Option<i64> {
        match &self.kind {
            Stamps::Timed(Stamped { window: Window::Time { .. }, latest: latest @ 1.., .. }) => Some(moment(*latest)),
            _ => None,
        }
    }

    /// Returns the kind and the position of the table's sweep.
    #[cfg(test)]
    fn table_state(&self) -> (u8, usize) {
        match &self.kind {
            Stamps::Counted(_) => (0, 0),
            Stamps::Timed(keys) => keys.table.sweep_state(),
        }
    }

    /// Returns the bytes of the table.
    pub fn nbytes(&self) -> usize {
        match &self.kind {
            Stamps::Counted(keys) => keys.table.nbytes(),
            Stamps::Timed(keys) => keys.table.nbytes(),
        }
    }
}

/// The keys of a window, in lines of one type.
#[derive(Clone)]
struct Stamped<L> {
    table: StampTable<L>,
    window: Window,
    /// The latest stamp. In a window of insertions it is the number of keys that have counted, less what
    /// [`rebase`](StampTable::rebase) has subtracted; in a window of time it is the latest time.
    latest: u64,
}

impl<L: StampLine> Stamped<L> {
    fn new(table: StampTable<L>, window: Window) -> Self {
        Self { table, window, latest: 0 }
    }

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        unlike: Option<u64>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let (mut run, mut copied) = (0..0, Vec::new());
        // Times in place are read one after the other.
        let at = at.for_all(&mut copied)?;
        let earliest = if matches!(at, Moments::Now(_)) { self.latest } else { 0 };
        while run.end < hashes.len() {
            let room = self.room()?;
            run = run.end..hashes.len().min(run.end.saturating_add(room));
            let keys = RunKeys { hashes, run: run.clone(), unlike };
            let always = refresh == Refresh::Always;
            match self.window {
                Window::Count { .. } if refresh == Refresh::Delivered => {
                    self.act(keys, false, |latest, _| latest + 1, |seen| !seen, seen)?;
                }
                Window::Count { .. } => self.act(keys, always, |latest, _| latest + 1, |_| true, seen)?,
                Window::Time { .. } => {
                    self.act(keys, always, |_, i| stamp(at.moment(i)).max(earliest), |_| true, seen)?;
                }
            }
        }
        Ok(())
    }

    fn query(&self, hashes: &[u64], at: Moments<'_>, unlike: Option<u64>, seen: &mut [bool]) -> Result<(), Error> {
        let mut copied = Vec::new();
        let at = at.for_all(&mut copied)?;
        let alive = L::Stamp::of(alive(self.window, self.latest));
        let homes = self.table.homes();
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| homes.prefetch(hash),
            |i, hash| {
                seen[i] = unlike != Some(hash) && self.table.stamp_of(hash, alive) >= self.least_seen_at(at, i);
            },
        );
        Ok(())
    }

    fn count(&self, at: Moments<'_>) -> usize {
        let lately = self.least_seen_at(at, 0);
        self.table.entries().filter(|&(_, stamp)| stamp >= lately).count()
    }

    /// Returns the least stamp within the window as of moment `i`, or for the next key of a window of insertions.
    #[inline(always)]
    fn least_seen_at(&self, at: Moments<'_>, i: usize) -> L::Stamp {
        let now = match self.window {
            Window::Count { .. } => self.latest + 1,
            Window::Time { .. } => stamp(at.moment(i)),
        };
        L::Stamp::of(lately(self.window, now))
    }

    /// Makes room for at least one new key, and stamps for new keys. Returns for how many keys there is room.
    fn room(&mut self) -> Result<usize, Error> {
        let alive = alive(self.window, self.latest);
        let room = self.table.room(L::Stamp::of(alive), L::Stamp::of(self.latest))?;
        let Window::Count { .. } = self.window else { return Ok(room) };
        if self.latest == L::Stamp::LAST {
            // The window takes at most half of the stamps.
            self.table.rebase(L::Stamp::of(alive - 1))?;
            self.latest -= alive - 1;
        }
        Ok(room.min(usize::try_from(L::Stamp::LAST - self.latest).unwrap_or(usize::MAX)))
    }

    /// Looks up and stamps keys that there is room for, and writes to `seen`. `now` computes the stamp of key `i` from
    /// the latest one. A key that does not count leaves the latest stamp as it is.
    #[inline(always)]
    fn act(
        &mut self,
        keys: RunKeys<'_>,
        renewed: bool,
        now: impl Fn(u64, usize) -> u64,
        counts: impl Fn(bool) -> bool,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let (window, mut latest) = (self.window, self.latest);
        let mut table = self.table.open()?;
        let homes = table.homes();
        let see = |i, hash| {
            let stamp = now(latest, i);
            let later = latest.max(stamp);
            let [stamp, lately, alive] = [stamp, lately(window, stamp), alive(window, later)].map(L::Stamp::of);
            seen[i] = keys.unlike != Some(hash) && table.seen(Key { hash, stamp, lately, alive, renewed });
            latest = if counts(seen[i]) { later } else { latest };
        };
        in_flight(keys.hashes, keys.run, |hash| homes.prefetch(hash), see);
        self.latest = latest;
        Ok(())
    }
}

/// The keys of a batch that lie in `run`.
struct RunKeys<'a> {
    hashes: &'a [u64],
    run: Range<usize>,
    /// The hash of keys that equal no other.
    unlike: Option<u64>,
}

const SIGN: u64 = 1 << 63;

/// Returns a moment as a stamp, in the same order. The least moment is no time, so the stamp is not 0.
#[inline(always)]
fn stamp(moment: i64) -> u64 {
    moment as u64 ^ SIGN
}

fn moment(stamp: u64) -> i64 {
    (stamp ^ SIGN) as i64
}

/// Returns the least stamp within the window as of this stamp.
#[inline(always)]
fn lately(window: Window, stamp: u64) -> u64 {
    let (Window::Count { insertions: span } | Window::Time { span, .. }) = window;
    stamp.saturating_sub(span).max(1)
}

/// Returns the least stamp that may be within the window for a later key, if this stamp is the latest one.
#[inline(always)]
fn alive(window: Window, latest: u64) -> u64 {
    match window {
        Window::Count { .. } => lately(window, latest),
        Window::Time { lateness, .. } => lately(window, latest).saturating_sub(lateness).max(1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn no_key_of_the_window_is_lost_when_stamps_of_32_bits_run_out() {
        for (refresh, before) in [(Refresh::Always, 700), (Refresh::Unseen, 1), (Refresh::Delivered, 350)] {
            let window = 500;
            let mut exact = Exact::new(Window::Count { insertions: window }).unwrap();
            let Stamps::Counted(keys) = &mut exact.kind else { panic!("a short window") };
            keys.latest = u64::from(u32::MAX) - before;
            let (mut last, mut latest) = (HashMap::new(), 0u64);
            for batch in 0..40 {
                let hashes: Vec<u64> = (0..100u64)
                    .map(|i| ((batch * 100 + i) * 7919 % 600 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    .collect();
                let mut seen = vec![false; 100];
                exact.duplicated(&hashes, Moments::Untimed, refresh, None, &mut seen).unwrap();
                for (hash, seen) in hashes.into_iter().zip(seen) {
                    let before = last.get(&hash).is_some_and(|&before| latest + 1 - before <= window);
                    assert_eq!(seen, before, "{refresh:?}");
                    if !(before && refresh == Refresh::Delivered) {
                        latest += 1;
                    }
                    if !before || refresh == Refresh::Always {
                        last.insert(hash, latest);
                    }
                }
            }
            let Stamps::Counted(keys) = &exact.kind else { unreachable!() };
            assert!(keys.latest < u64::from(u32::MAX) / 2, "no stamps were made earlier");
        }
    }

    /// A burst of keys, and then few: no call moves more than a step, and the memory follows the keys.
    #[test]
    fn a_window_of_time_grows_in_steps_and_gives_memory_back() {
        let span = 1000;
        let mut exact = Exact::new(Window::Time { span, lateness: 0, capacity: 1 }).unwrap();
        let (mut last, mut most) = (HashMap::new(), 0);
        for i in 0..240_000_u64 {
            let at = if i < 200_000 { i / 1000 } else { i - 199_800 } as i64;
            // Some keys come again while the table moves.
            let key = if i % 3 == 0 { i / 2 } else { i };
            let hash = if key == 9 { 0 } else { key.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            let (before, mut seen) = (exact.table_state(), [false]);
            exact.duplicated(&[hash], Moments::At(at), Refresh::Always, None, &mut seen).unwrap();
            let known = last.insert(hash, at).is_some_and(|before| at - before <= span as i64);
            assert_eq!(seen[0], known, "key {key}, call {i}");
            let after = exact.table_state();
            assert!(after.0 != before.0 || after.1.saturating_sub(before.1) <= 1024, "{before:?} {after:?}");
            most = most.max(exact.nbytes());
            if i % 9_001 == 0 {
                let alive = last.values().filter(|&&came| at - came <= span as i64).count();
                assert_eq!(exact.count(Moments::At(at)), alive, "call {i}");
                let copy = Exact::from_record(&exact.to_record().unwrap()).unwrap();
                assert_eq!(copy.to_record(), exact.to_record(), "call {i}");
            }
        }
        assert!(most > 8_000_000 && exact.nbytes() < 250_000, "{most} bytes, then {}", exact.nbytes());
    }
}
