//! The exact window, in memory of its keys: which of them were seen lately, without slack and without a rate.
//!
//! A key is known by its 64-bit hash alone, so two different keys of one window are taken for one another with chance
//! 2⁻⁶⁴: n keys and a window of W of them meet such a pair with chance n·W / 2⁶⁴ at most.
//!
//! The table keeps for each key the stamp of when it last counted: its number among the keys, or its
//! time. A key whose stamp lies too far back is dead, and its place is another's to take.

mod table;

use std::ops::Range;

use crate::Error;
use crate::clock::{Moments, Window};
use crate::engine::Refresh;
use crate::memory::prefetch::in_flight;
use table::{Key, Table};

/// The keys of a window, exactly.
pub struct Exact {
    table: Table,
    window: Window,
    /// The latest stamp: how many keys have counted, or the latest time.
    latest: u64,
}

impl Exact {
    /// A window that nothing has been seen in yet. In a window of time, `lateness` says how far times may step back
    /// from the latest one; keys stay for that much longer. `capacity` does not count.
    pub fn new(window: Window) -> Result<Self, Error> {
        let alive = match window {
            Window::Count { .. } => Some(window.check()?.capacity()),
            Window::Time { span, capacity, .. } => {
                // Any lateness will do.
                Window::Time { span, lateness: 0, capacity }.check()?;
                None
            }
        };
        Ok(Self { table: Table::new(alive)?, window, latest: 0 })
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
        let mut run = 0..0;
        while run.end < hashes.len() {
            let room = self.table.room(alive(self.window, self.latest))?;
            run = run.end..hashes.len().min(run.end.saturating_add(room));
            let keys = Run { hashes, run: run.clone(), unlike };
            let always = refresh == Refresh::Always;
            match self.window {
                Window::Count { .. } if refresh == Refresh::Delivered => {
                    self.act(keys, false, |latest, _| latest + 1, |seen| !seen, seen);
                }
                Window::Count { .. } => self.act(keys, always, |latest, _| latest + 1, |_| true, seen),
                Window::Time { .. } => self.act(keys, always, |_, i| stamp(at.moment(i)), |_| true, seen),
            }
        }
        Ok(())
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
    ) {
        let (homes, window, mut latest) = (self.table.homes(), self.window, self.latest);
        let see = |i, hash| {
            let stamp = now(latest, i);
            let later = latest.max(stamp);
            let key = Key { hash, stamp, lately: lately(window, stamp), alive: alive(window, later), renewed };
            seen[i] = keys.unlike != Some(hash) && self.table.see(key);
            latest = if counts(seen[i]) { later } else { latest };
        };
        in_flight(keys.hashes, keys.run, |hash| homes.fetch(hash), see);
        self.latest = latest;
    }

    /// The latest time of all keys so far, if the window is one of time and there was one.
    pub fn latest(&self) -> Option<i64> {
        let timed = matches!(self.window, Window::Time { .. }) && self.latest != 0;
        timed.then_some((self.latest ^ SIGN) as i64)
    }

    /// Bytes of the table.
    pub fn nbytes(&self) -> usize {
        self.table.nbytes()
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
