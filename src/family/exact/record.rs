//! The saved form of a window: its keys, however the table lies in memory. Equal calls leave equal forms.

use super::table::Key;
use super::{Exact, Stamp, StampLine, alive, moment, stamp, window_start};
use crate::Error;
use crate::clock::Window;
use crate::memory::fallible;

/// A key of the window: its hash, and when it last counted as a number of keys ago or as a moment.
type Entry = [u64; 2];

impl<L: StampLine> Exact<L> {
    /// Reads the keys that were saved as these words into an empty table.
    pub(super) fn read(&mut self, words: &[u64]) -> Result<(), Error> {
        let Some((&keys, entries)) = words.split_first() else { return Ok(()) };
        let (entries, rest) = entries.as_chunks();
        if !rest.is_empty() || entries.len() as u64 != keys {
            return Err(Error::format("the keys are damaged: their number is not that of the header"));
        }
        self.restore(entries)
    }

    /// Returns the keys that may still be reported: the oldest first, and those of one moment in the order of their
    /// hashes.
    pub(super) fn entries_in_order(&self) -> Result<Vec<Entry>, Error> {
        let least = match self.window() {
            Window::Count { insertions } => window_start(insertions, self.latest + 1),
            Window::Time { .. } => alive(self.window(), self.latest),
        };
        let alive = || self.table.entries().filter(|&(_, stamp)| stamp >= L::Stamp::of(least));
        let mut entries: Vec<Entry> = fallible::with_room(alive().count())?;
        match self.window() {
            Window::Count { .. } => {
                entries.extend(alive().map(|(hash, stamp)| [hash, self.latest - stamp.into()]));
            }
            Window::Time { .. } => {
                entries.extend(alive().map(|(hash, stamp)| [hash, moment(stamp.into()) as u64]));
            }
        }
        sort(&mut entries, self.window());
        Ok(entries)
    }

    fn restore(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let window = self.window();
        self.latest = match (window, self.clock.latest()) {
            (Window::Count { insertions }, None) => insertions,
            (Window::Time { .. }, Some(latest)) if latest > i64::MIN => stamp(latest),
            (Window::Time { .. }, None) if entries.is_empty() => return Ok(()),
            _ => return Err(Error::format("the latest moment is damaged")),
        };
        let alive = alive(self.window(), self.latest);
        let mut before = [0; 2];
        let mut entries = entries.iter();
        while !entries.as_slice().is_empty() {
            let room = self.table.room(L::Stamp::of(alive), L::Stamp::of(self.latest))?;
            let mut table = self.table.open()?;
            for &[hash, at] in entries.by_ref().take(room) {
                let key = match window {
                    Window::Count { insertions } => [insertions.saturating_sub(at), 0],
                    Window::Time { .. } => [stamp(at as i64), hash],
                };
                let stamp = L::Stamp::of(key[0]);
                let of_window = key > before && (alive..=self.latest).contains(&key[0]);
                let lasting =
                    Key { hash, stamp, window_start: L::Stamp::of(1), alive: L::Stamp::of(alive), refresh: true };
                if !of_window || table.seen(lasting) {
                    return Err(Error::format(
                        "the keys are damaged: one lies outside the window, not in order, or twice",
                    ));
                }
                before = key;
            }
        }
        Ok(())
    }
}

/// Sorts entries, those of the oldest keys first. It is no method, so that it is compiled once.
fn sort(entries: &mut [Entry], window: Window) {
    let counts = matches!(window, Window::Count { .. });
    entries.sort_unstable_by_key(|&[hash, at]| (if counts { -(at as i64) } else { at as i64 }, hash));
}
