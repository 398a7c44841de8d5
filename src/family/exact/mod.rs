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
use crate::engine::{Engine, Insertion, Query, Refresh, not_mergeable};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;
use crate::memory::prefetch::in_flight;
use line::{Counted, Stamp, StampLine, Timed};
use table::{Key, StampTable};

/// Windows of at most this many keys have stamps of 32 bits.
const SHORT: u64 = 1 << 31;

/// The keys of a window, exactly: without slack and without false positives.
#[derive(Clone)]
pub struct Exact<L> {
    table: StampTable<L>,
    /// The latest stamp. In a window of insertions it is the number of keys that have counted, less what
    /// [`rebase`](StampTable::rebase) has subtracted; in a window of time it is the latest time.
    latest: u64,
    clock: Clock,
    /// The hash of keys that equal no other: they are never seen and never inserted.
    unlike: Option<u64>,
}

/// Returns the engine of the window that was saved as these words, at this time; without words, of an empty one. Keys
/// of the hash `unlike` equal no other.
///
/// In a window of time keys stay for the lateness longer, which is how far times may step back from the latest one.
/// `capacity` has no effect.
pub fn engine(clock: Clock, words: &[u64], unlike: Option<u64>) -> Result<Box<dyn Engine>, Error> {
    match clock.window() {
        window @ Window::Count { insertions } => match window.check()?.capacity() {
            alive if insertions <= SHORT => Exact::<Counted>::boxed(StampTable::of(alive)?, clock, words, unlike),
            alive => Exact::<Timed>::boxed(StampTable::of(alive)?, clock, words, unlike),
        },
        Window::Time { span, capacity, .. } => {
            // Every lateness is accepted.
            Window::Time { span, lateness: 0, capacity }.check()?;
            Exact::<Timed>::boxed(StampTable::growing()?, clock, words, unlike)
        }
    }
}

/// Returns the bytes of the table of an empty window.
pub fn bytes(window: Window) -> u64 {
    match window {
        Window::Count { insertions } if insertions <= SHORT => StampTable::<Counted>::bytes_of(insertions),
        Window::Count { insertions } => StampTable::<Timed>::bytes_of(insertions),
        Window::Time { .. } => StampTable::<Timed>::LEAST_BYTES,
    }
}

impl<L: StampLine> Exact<L> {
    fn boxed(table: StampTable<L>, clock: Clock, words: &[u64], unlike: Option<u64>) -> Result<Box<dyn Engine>, Error> {
        let mut new = Self { table, latest: 0, clock, unlike };
        new.read(words)?;
        Ok(Box::new(new))
    }

    fn window(&self) -> Window {
        self.clock.window()
    }

    /// Returns the moments of a query in the filter's time. A moment of [`Moments::Now`] is the latest moment so far if
    /// that is later, or if every key came with a time of its own.
    fn query_moments<'a>(&self, at: Moments<'a>) -> Moments<'a> {
        match (self.clock.query_moments(at), self.clock.latest()) {
            (Moments::Now(now), Some(latest)) => Moments::At(now.max(latest)),
            (at, _) => at,
        }
    }

    /// Inserts keys whose moments are in the filter's time, each after it has been looked up.
    fn insert_all(&mut self, hashes: &[u64], Insertion { at, refresh, seen }: Insertion<'_>) -> Result<(), Error> {
        let (mut run, mut copied, always) = (0..0, Vec::new(), refresh.is_none_or(|refresh| refresh.inserts(true)));
        // Times in place are read one after the other.
        let at = at.for_all(&mut copied)?;
        let earliest = if matches!(at, Moments::Now(_)) { self.latest } else { 0 };
        while run.end < hashes.len() {
            let room = self.room()?;
            run = run.end..hashes.len().min(run.end.saturating_add(room));
            let run = run.clone();
            match self.window() {
                Window::Count { .. } if refresh == Some(Refresh::Delivered) => {
                    self.see(hashes, run, false, |latest, _| latest + 1, |seen| !seen, seen)?;
                }
                Window::Count { .. } => self.see(hashes, run, always, |latest, _| latest + 1, |_| true, seen)?,
                Window::Time { .. } => {
                    self.see(hashes, run, always, |_, i| stamp(at.moment(i)).max(earliest), |_| true, seen)?;
                }
            }
        }
        Ok(())
    }

    /// Looks up and stamps keys that there is room for, and writes to `seen`, unless it is empty. `now` computes the
    /// stamp of key `i` from the latest one. A key that does not count leaves the latest stamp as it is.
    #[inline(always)]
    fn see(
        &mut self,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        now: impl Fn(u64, usize) -> u64,
        counts: impl Fn(bool) -> bool,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let (window, span, unlike, mut latest) = (self.window(), self.window().length(), self.unlike, self.latest);
        let mut table = self.table.open()?;
        let homes = table.homes();
        let see = |i, hash| {
            let stamp = now(latest, i);
            let later = latest.max(stamp);
            let [stamp, window_start, alive] =
                [stamp, window_start(span, stamp), alive(window, later)].map(L::Stamp::of);
            let was_seen = unlike != Some(hash) && table.seen(Key { hash, stamp, window_start, alive, refresh });
            latest = if counts(was_seen) { later } else { latest };
            if let Some(seen) = seen.get_mut(i) {
                *seen = was_seen;
            }
        };
        in_flight(hashes, run, |hash| homes.prefetch(hash), see);
        self.latest = latest;
        Ok(())
    }

    /// Returns the least stamp at most `span` before moment `i`, or before the next key of a window of insertions.
    #[inline(always)]
    fn least_seen_at(&self, at: Moments<'_>, i: usize, span: u64) -> L::Stamp {
        let now = if self.clock.counts() { self.latest + 1 } else { stamp(at.moment(i)) };
        L::Stamp::of(window_start(span, now))
    }

    /// Makes room for at least one new key, and stamps for new keys. Returns for how many keys there is room.
    fn room(&mut self) -> Result<usize, Error> {
        let alive = alive(self.window(), self.latest);
        let room = self.table.room(L::Stamp::of(alive), L::Stamp::of(self.latest))?;
        if !self.clock.counts() {
            return Ok(room);
        }
        if self.latest == L::Stamp::LAST {
            // The window takes at most half of the stamps.
            self.table.rebase(L::Stamp::of(alive - 1))?;
            self.latest -= alive - 1;
        }
        Ok(room.min(usize::try_from(L::Stamp::LAST - self.latest).unwrap_or(usize::MAX)))
    }
}

impl<L: StampLine> Engine for Exact<L> {
    /// In a window of time a key counts as seen if it came at most the window before its own time. No insertion makes
    /// the time of a key earlier. A moment of [`Moments::Now`] is the latest moment so far, if that is later.
    ///
    /// If memory runs out, the keys before that point have been inserted.
    fn process(&mut self, hashes: &[u64], mut insertion: Insertion<'_>) -> Result<(), Error> {
        insertion.at = self.clock.admit(insertion.at)?;
        if matches!(insertion.at, Moments::Now(_)) && !hashes.is_empty() {
            self.clock.set_by_system();
        }
        let done = self.insert_all(hashes, insertion.part(0..hashes.len()));
        let counted = match (&done, insertion.refresh) {
            (Ok(()), Some(Refresh::Delivered)) if self.clock.counts() => {
                insertion.seen.iter().filter(|&&seen| !seen).count()
            }
            (Ok(()), _) => hashes.len(),
            (Err(_), _) => 0,
        };
        let latest = (!self.clock.counts() && self.latest > 0).then(|| moment(self.latest));
        self.clock.resume(self.clock.inserted() + counted as u64, latest);
        done
    }

    /// In a window of time a key is present if it came at most the window before its moment; in a window of insertions
    /// if it would be seen as the next key.
    fn query_within(&self, Query { hashes, at, window }: Query<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let span = self.window().part(window.unwrap_or(self.window().length()))?;
        let mut copied = Vec::new();
        let at = self.query_moments(at).for_all(&mut copied)?;
        let (alive, homes) = (L::Stamp::of(alive(self.window(), self.latest)), self.table.homes());
        let prefetch = |hash| homes.prefetch(hash);
        in_flight(hashes, 0..hashes.len(), prefetch, |i, hash| {
            present[i] =
                self.unlike != Some(hash) && self.table.stamp_of(hash, alive) >= self.least_seen_at(at, i, span);
        });
        Ok(())
    }

    fn keys(&self, at: Moments<'_>) -> Option<usize> {
        let window_start = self.least_seen_at(self.query_moments(at), 0, self.window().length());
        Some(self.table.entries().filter(|&(_, stamp)| stamp >= window_start).count())
    }

    fn merge(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(not_mergeable("exact windows have no order of the keys of both"))
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock.set_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        self.table.words()
    }

    fn nbytes(&self) -> usize {
        self.table.nbytes()
    }

    /// Returns the bytes of a step of the sweep, and of the keys that it moves.
    fn most_written(&self) -> usize {
        table::BYTES_OF_STEP
    }

    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        let entries = self.entries_in_order()?;
        Ok(vec![Cow::Owned(vec![entries.len() as u64]), Cow::Owned(entries.into_flattened())])
    }

    /// Returns the share of places that are taken, by keys that are dead too.
    fn fill(&self) -> Vec<f64> {
        let taken = self.table.entries().filter(|&(_, stamp)| stamp > L::Stamp::of(0)).count();
        vec![taken as f64 / self.table.entries().count() as f64]
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

impl<L: StampLine> EvidenceSource for Exact<L> {
    fn clock(&self) -> Clock {
        self.clock.clone()
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
fn window_start(span: u64, stamp: u64) -> u64 {
    stamp.saturating_sub(span).max(1)
}

/// Returns the least stamp that may be within the window for a later key, if this stamp is the latest one.
#[inline(always)]
fn alive(window: Window, latest: u64) -> u64 {
    match window {
        Window::Count { insertions } => window_start(insertions, latest),
        Window::Time { span, lateness, .. } => window_start(span, latest).saturating_sub(lateness).max(1),
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
            let clock = Clock::new(Window::Count { insertions: window }, 1);
            let latest = u64::from(u32::MAX) - before;
            let mut exact = Exact::<Counted> { table: StampTable::of(window).unwrap(), latest, clock, unlike: None };
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
            assert!(exact.latest < u64::from(u32::MAX) / 2, "no stamps were made earlier");
        }
    }

    /// A burst of keys, and then few: no call moves more than a step, and the memory follows the keys.
    #[test]
    fn a_window_of_time_grows_in_steps_and_gives_memory_back() {
        let span = 1000;
        let clock = Clock::new(Window::Time { span, lateness: 0, capacity: 1 }, 1);
        let mut exact = Exact::<Timed> { table: StampTable::growing().unwrap(), latest: 0, clock, unlike: None };
        let (mut last, mut most) = (HashMap::new(), 0);
        for i in 0..240_000_u64 {
            let at = if i < 200_000 { i / 1000 } else { i - 199_800 } as i64;
            // Some keys come again while the table moves.
            let key = if i % 3 == 0 { i / 2 } else { i };
            let hash = if key == 9 { 0 } else { key.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            let (before, mut seen) = (exact.table.sweep_state(), [false]);
            exact.duplicated(&[hash], Moments::At(at), Refresh::Always, &mut seen).unwrap();
            let known = last.insert(hash, at).is_some_and(|before| at - before <= span as i64);
            assert_eq!(seen[0], known, "key {key}, call {i}");
            let after = exact.table.sweep_state();
            assert!(after.0 != before.0 || after.1.saturating_sub(before.1) <= 1024, "{before:?} {after:?}");
            most = most.max(exact.nbytes());
            if i % 9_001 == 0 {
                let alive = last.values().filter(|&&came| at - came <= span as i64).count();
                assert_eq!(exact.keys(Moments::At(at)), Some(alive), "call {i}");
                let copy = engine(exact.clock.clone(), exact.to_words().unwrap().as_slice(), None).unwrap();
                assert_eq!(copy.pieces(), exact.pieces(), "call {i}");
            }
        }
        assert!(most > 8_000_000 && exact.nbytes() < 250_000, "{most} bytes, then {}", exact.nbytes());
    }
}
