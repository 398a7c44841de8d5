//! The exact window, in memory of its keys: which of them were seen lately, without slack and without a rate.
//!
//! A key is known by its 64-bit hash alone, so two different keys of one window are taken for one another with chance
//! 2⁻⁶⁴: n keys and a window of W of them meet such a pair with chance n·W / 2⁶⁴ at most.
//!
//! The table keeps for each key the stamp of when it last counted: its number among the keys, or its
//! time. A key whose stamp lies too far back is dead, and its place is another's to take.

mod line;
mod table;

use std::ops::Range;

use crate::Error;
use crate::clock::{Moments, Window};
use crate::engine::Refresh;
use crate::memory::prefetch::in_flight;
use line::{Counted, Line, Stamp, Timed};
use table::{Key, Table};

/// Windows of at most this many keys have stamps of 32 bits.
const SHORT: u64 = 1 << 31;

/// The keys of a window, exactly.
pub struct Exact(Kind);

enum Kind {
    Counted(Stamped<Counted>),
    Timed(Stamped<Timed>),
}

impl Exact {
    /// A window that nothing has been seen in yet. In a window of time, `lateness` says how far times may step back
    /// from the latest one; keys stay for that much longer. `capacity` does not count.
    pub fn new(window: Window) -> Result<Self, Error> {
        Ok(Self(match window {
            Window::Count { insertions } => match window.check()?.capacity() {
                alive if insertions <= SHORT => Kind::Counted(Stamped::new(Table::of(alive)?, window)),
                alive => Kind::Timed(Stamped::new(Table::of(alive)?, window)),
            },
            Window::Time { span, capacity, .. } => {
                // Any lateness will do.
                Window::Time { span, lateness: 0, capacity }.check()?;
                Kind::Timed(Stamped::new(Table::growing()?, window))
            }
        }))
    }

    /// For each key in order: writes to `seen` whether it was seen within the window, then remembers it as `refresh`
    /// says.
    ///
    /// In a window of time a key was seen lately if that was at most the window before its own time. It is never
    /// remembered as of an earlier time than before. Times that step back by more than the lateness miss keys.
    ///
    /// A key whose hash is `unlike` is like no other: never seen, never remembered.
    ///
    /// Where memory is refused, the keys before that are remembered.
    pub fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        unlike: Option<u64>,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        match &mut self.0 {
            Kind::Counted(keys) => keys.duplicated(hashes, at, refresh, unlike, seen),
            Kind::Timed(keys) => keys.duplicated(hashes, at, refresh, unlike, seen),
        }
    }

    /// The latest time of all keys so far, if the window is one of time and there was one.
    pub fn latest(&self) -> Option<i64> {
        match &self.0 {
            Kind::Timed(Stamped { window: Window::Time { .. }, latest: latest @ 1.., .. }) => Some(moment(*latest)),
            _ => None,
        }
    }

    /// Bytes of the table.
    pub fn nbytes(&self) -> usize {
        match &self.0 {
            Kind::Counted(keys) => keys.table.nbytes(),
            Kind::Timed(keys) => keys.table.nbytes(),
        }
    }
}

/// The keys of a window in lines of one kind.
struct Stamped<L> {
    table: Table<L>,
    window: Window,
    /// The latest stamp: how many keys have counted, less those that all stamps were made earlier by; or the latest
    /// time.
    latest: u64,
}

impl<L: Line> Stamped<L> {
    fn new(table: Table<L>, window: Window) -> Self {
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
        // Each time is asked for, one by one.
        let at = at.for_all(&mut copied)?;
        while run.end < hashes.len() {
            let room = self.room()?;
            run = run.end..hashes.len().min(run.end.saturating_add(room));
            let keys = Run { hashes, run: run.clone(), unlike };
            let always = refresh == Refresh::Always;
            match self.window {
                Window::Count { .. } if refresh == Refresh::Delivered => {
                    self.act(keys, false, |latest, _| latest + 1, |seen| !seen, seen)?;
                }
                Window::Count { .. } => self.act(keys, always, |latest, _| latest + 1, |_| true, seen)?,
                Window::Time { .. } => self.act(keys, always, |_, i| stamp(at.moment(i)), |_| true, seen)?,
            }
        }
        Ok(())
    }

    /// Makes room for new keys, at least one, and stamps for them; returns for how many.
    fn room(&mut self) -> Result<usize, Error> {
        let alive = alive(self.window, self.latest);
        let room = self.table.room(L::Stamp::of(alive))?;
        let Window::Count { .. } = self.window else { return Ok(room) };
        if self.latest == L::Stamp::LAST {
            // The window takes at most half of the stamps.
            self.table.rebase(L::Stamp::of(alive - 1))?;
            self.latest -= alive - 1;
        }
        Ok(room.min(usize::try_from(L::Stamp::LAST - self.latest).unwrap_or(usize::MAX)))
    }

    /// `duplicated` for keys that there is room for. `now` makes the stamp of key `i` from the latest one; a key
    /// `counts` or leaves that as it is.
    #[inline(always)]
    fn act(
        &mut self,
        keys: Run<'_>,
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
            seen[i] = keys.unlike != Some(hash) && table.see(Key { hash, stamp, lately, alive, renewed });
            latest = if counts(seen[i]) { later } else { latest };
        };
        in_flight(keys.hashes, keys.run, |hash| homes.fetch(hash), see);
        self.latest = latest;
        Ok(())
    }
}

/// Keys of a batch, those of `run`.
struct Run<'a> {
    hashes: &'a [u64],
    run: Range<usize>,
    /// The hash of keys that are like no other.
    unlike: Option<u64>,
}

const SIGN: u64 = 1 << 63;

/// A moment as a stamp, in the same order. The least moment is no time, so the stamp is not 0.
#[inline(always)]
fn stamp(moment: i64) -> u64 {
    moment as u64 ^ SIGN
}

fn moment(stamp: u64) -> i64 {
    (stamp ^ SIGN) as i64
}

/// The least stamp that was lately as of this one.
#[inline(always)]
fn lately(window: Window, stamp: u64) -> u64 {
    let (Window::Count { insertions: span } | Window::Time { span, .. }) = window;
    stamp.saturating_sub(span).max(1)
}

/// The least stamp that may be lately for a key to come, where this is the latest one.
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

    /// Four billion keys later: every stamp is made earlier in the midst of a window, and nobody is forgotten.
    #[test]
    fn stamps_end_and_begin_again() {
        for (refresh, before) in [(Refresh::Always, 700), (Refresh::Unseen, 1), (Refresh::Delivered, 350)] {
            let window = 500;
            let mut exact = Exact::new(Window::Count { insertions: window }).unwrap();
            let Kind::Counted(keys) = &mut exact.0 else { panic!("a short window") };
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
            let Kind::Counted(keys) = &exact.0 else { unreachable!() };
            assert!(keys.latest < u64::from(u32::MAX) / 2, "no stamps were made earlier");
        }
    }
}
