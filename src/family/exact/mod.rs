//! The exact window, in memory of its keys: which of them were seen lately, without slack and without a rate.
//!
//! A key is represented by its 64-bit hash alone, so two different keys of one window count as the same key with chance
//! 2⁻⁶⁴: n keys and a window of W of them meet such a pair with chance n·W / 2⁶⁴ at most.
//!
//! The table stores for each key the stamp of when it last counted: its number among the keys, or its time. A key whose
//! stamp lies too far back is dead, and its place is free for another key.

mod line;
mod record;
#[cfg(not(test))]
pub(crate) mod row;
#[cfg(not(test))]
pub mod shape;
mod table;

use std::borrow::Cow;
use std::ops::Range;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::engine::{Engine, Refresh, not_mergeable};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;
use crate::memory::prefetch::in_flight;
use line::{Counted, Stamp, StampLine, Timed};
use table::{Key, StampTable};

/// Windows of at most this many keys have stamps of 32 bits.
const SHORT: u64 = 1 << 31;

/// Number of keys that an insertion without answers processes at a time.
const BLOCK: usize = 512;

/// The keys of a window, exactly: without slack and without false positives.
#[derive(Clone)]
pub struct Exact {
    kind: Stamps,
    clock: Clock,
    /// The hash of keys that equal no other: they are never seen and never inserted.
    unlike: Option<u64>,
}

#[derive(Clone)]
enum Stamps {
    Counted(Stamped<Counted>),
    Timed(Stamped<Timed>),
}

/// Evaluates an expression with the keys of the window, whatever the type of their lines.
macro_rules! with_keys {
    ($kind:expr, $keys:ident => $result:expr) => {
        match $kind {
            Stamps::Counted($keys) => $result,
            Stamps::Timed($keys) => $result,
        }
    };
}
use with_keys;

impl Exact {
    /// Creates an empty window. In a window of time keys stay for `lateness` longer, which is how far times may step
    /// back from the latest one. `capacity` has no effect.
    pub fn new(window: Window) -> Result<Self, Error> {
        Ok(Self { kind: Stamps::new(window)?, clock: Clock::new(window, 1), unlike: None })
    }

    /// Returns the bytes of the table of an empty window.
    pub fn bytes(window: Window) -> u64 {
        match window {
            Window::Count { insertions } if insertions <= SHORT => StampTable::<Counted>::bytes_of(insertions),
            Window::Count { insertions } => StampTable::<Timed>::bytes_of(insertions),
            Window::Time { .. } => StampTable::<Timed>::LEAST_BYTES,
        }
    }

    /// Returns this window, in which keys of one hash equal no other.
    pub fn with_unlike(self, unlike: Option<u64>) -> Self {
        Self { unlike, ..self }
    }

    /// Returns the moments of a query in the filter's time. A moment of [`Moments::Now`] is the latest moment so far if
    /// that is later, or if every key came with a time of its own.
    fn query_moments<'a>(&self, at: Moments<'a>) -> Moments<'a> {
        match (self.clock.query_moments(at), self.clock.latest()) {
            (Moments::Now(now), Some(latest)) => Moments::At(now.max(latest)),
            (at, _) => at,
        }
    }

    /// Looks up and inserts keys whose moments are in the filter's time.
    fn process(&mut self, hashes: &[u64], at: Moments<'_>, refresh: Refresh, seen: &mut [bool]) -> Result<(), Error> {
        let (mut clock, unlike) = (self.clock, self.unlike);
        if matches!(at, Moments::Now(_)) && !hashes.is_empty() {
            clock = clock.with_system(true, clock.time_at(0));
        }
        let done = with_keys!(&mut self.kind, keys => keys.duplicated(hashes, at, refresh, unlike, seen));
        let counted = match done {
            Ok(()) if clock.counts() && refresh == Refresh::Delivered => seen.iter().filter(|&&seen| !seen).count(),
            Ok(()) => hashes.len(),
            Err(_) => 0,
        };
        self.clock = clock.resumed(clock.inserted() + counted as u64, self.kind.latest());
        done
    }

    /// Returns the kind and the position of the table's sweep.
    #[cfg(test)]
    fn table_state(&self) -> (u8, usize) {
        match &self.kind {
            Stamps::Counted(_) => (0, 0),
            Stamps::Timed(keys) => keys.table.sweep_state(),
        }
    }
}

impl Stamps {
    /// Returns an empty table.
    fn new(window: Window) -> Result<Self, Error> {
        Ok(match window {
            Window::Count { insertions } => match window.check()?.capacity() {
                alive if insertions <= SHORT => Self::Counted(Stamped::new(StampTable::of(alive)?, window)),
                alive => Self::Timed(Stamped::new(StampTable::of(alive)?, window)),
            },
            Window::Time { span, capacity, .. } => {
                // Every lateness is accepted.
                Window::Time { span, lateness: 0, capacity }.check()?;
                Self::Timed(Stamped::new(StampTable::growing()?, window))
            }
        })
    }

    /// Returns the latest time of all keys so far, if the window is one of time and there was one.
    fn latest(&self) -> Option<i64> {
        match self {
            Self::Timed(Stamped { window: Window::Time { .. }, latest: latest @ 1.., .. }) => Some(moment(*latest)),
            _ => None,
        }
    }
}

impl Engine for Exact {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        let (at, mut seen, mut start) = (self.clock.admit(at)?, [false; BLOCK], 0);
        for hashes in hashes.chunks(BLOCK) {
            let run = start..start + hashes.len();
            self.process(hashes, at.slice(run.clone()), Refresh::Always, &mut seen[..hashes.len()])?;
            start = run.end;
        }
        Ok(())
    }

    /// In a window of time a key is present if it came at most the window before its moment; in a window of insertions
    /// if it would be seen as the next key.
    fn query_within(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        window: Option<u64>,
        present: &mut [bool],
    ) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let span = self.clock.window().part(window.unwrap_or(self.clock.window().length()))?;
        let at = self.query_moments(at);
        with_keys!(&self.kind, keys => keys.query(hashes, at, span, self.unlike, present))
    }

    /// In a window of time a key counts as seen if it came at most the window before its own time. No insertion makes
    /// the time of a key earlier. A moment of [`Moments::Now`] is the latest moment so far, if that is later.
    ///
    /// If memory runs out, the keys before that point have been inserted.
    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.process(hashes, at, refresh, seen)
    }

    fn keys(&self, at: Moments<'_>) -> Option<usize> {
        let at = self.query_moments(at);
        Some(with_keys!(&self.kind, keys => keys.count(at)))
    }

    fn merge(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(not_mergeable("exact windows have no order of the keys of both"))
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock = self.clock.with_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        with_keys!(&self.kind, keys => keys.table.words())
    }

    fn nbytes(&self) -> usize {
        with_keys!(&self.kind, keys => keys.table.nbytes())
    }

    /// Returns the bytes of a step of the sweep, and of the keys that it moves.
    fn most_written(&self) -> usize {
        table::BYTES_OF_STEP
    }

    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        let entries = with_keys!(&self.kind, keys => keys.entries())?;
        Ok(vec![Cow::Owned(vec![entries.len() as u64]), Cow::Owned(entries.into_flattened())])
    }

    fn fill(&self) -> Vec<f64> {
        vec![with_keys!(&self.kind, keys => keys.fill())]
    }

    fn match_rates(&self) -> Vec<f64> {
        vec![self.false_positive_rate()]
    }

    fn false_positive_rate(&self) -> f64 {
        let latest = self.clock.latest().map_or(Moments::Untimed, Moments::At);
        crate::family::fill::same_hash(self.keys(latest).unwrap_or(0) as u64)
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl EvidenceSource for Exact {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let latest = self.clock.latest().map_or(Moments::Untimed, Moments::At);
        for (&hash, evidence) in hashes.iter().zip(evidence) {
            *evidence = Evidence::present(self.contains_one(hash, latest).unwrap_or(false));
        }
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        None
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

    fn query(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        span: u64,
        unlike: Option<u64>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let mut copied = Vec::new();
        let at = at.for_all(&mut copied)?;
        let alive = L::Stamp::of(alive(self.window, self.latest));
        let homes = self.table.homes();
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| homes.prefetch(hash),
            |i, hash| {
                seen[i] = unlike != Some(hash) && self.table.stamp_of(hash, alive) >= self.least_seen_at(at, i, span);
            },
        );
        Ok(())
    }

    fn count(&self, at: Moments<'_>) -> usize {
        let lately = self.least_seen_at(at, 0, self.window.length());
        self.table.entries().filter(|&(_, stamp)| stamp >= lately).count()
    }

    /// Returns the share of places that are taken, by keys that are dead too.
    fn fill(&self) -> f64 {
        let taken = self.table.entries().filter(|&(_, stamp)| stamp > L::Stamp::of(0)).count();
        taken as f64 / self.table.entries().count() as f64
    }

    /// Returns the least stamp at most `span` before moment `i`, or before the next key of a window of insertions.
    #[inline(always)]
    fn least_seen_at(&self, at: Moments<'_>, i: usize, span: u64) -> L::Stamp {
        let now = match self.window {
            Window::Count { .. } => self.latest + 1,
            Window::Time { .. } => stamp(at.moment(i)),
        };
        L::Stamp::of(lately(span, now))
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
        let (window, span, mut latest) = (self.window, self.window.length(), self.latest);
        let mut table = self.table.open()?;
        let homes = table.homes();
        let see = |i, hash| {
            let stamp = now(latest, i);
            let later = latest.max(stamp);
            let [stamp, lately, alive] = [stamp, lately(span, stamp), alive(window, later)].map(L::Stamp::of);
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

/// Returns the least stamp at most `span` before this stamp.
#[inline(always)]
fn lately(span: u64, stamp: u64) -> u64 {
    stamp.saturating_sub(span).max(1)
}

/// Returns the least stamp that may be within the window for a later key, if this stamp is the latest one.
#[inline(always)]
fn alive(window: Window, latest: u64) -> u64 {
    match window {
        Window::Count { insertions } => lately(insertions, latest),
        Window::Time { span, lateness, .. } => lately(span, latest).saturating_sub(lateness).max(1),
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
                exact.duplicated(&hashes, Moments::Untimed, refresh, &mut seen).unwrap();
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
            exact.duplicated(&[hash], Moments::At(at), Refresh::Always, &mut seen).unwrap();
            let known = last.insert(hash, at).is_some_and(|before| at - before <= span as i64);
            assert_eq!(seen[0], known, "key {key}, call {i}");
            let after = exact.table_state();
            assert!(after.0 != before.0 || after.1.saturating_sub(before.1) <= 1024, "{before:?} {after:?}");
            most = most.max(exact.nbytes());
            if i % 9_001 == 0 {
                let alive = last.values().filter(|&&came| at - came <= span as i64).count();
                assert_eq!(exact.keys(Moments::At(at)), Some(alive), "call {i}");
                let copy = Exact::read(exact.clock, exact.to_words().unwrap().as_slice()).unwrap();
                assert_eq!(copy.pieces(), exact.pieces(), "call {i}");
            }
        }
        assert!(most > 8_000_000 && exact.nbytes() < 250_000, "{most} bytes, then {}", exact.nbytes());
    }
}
