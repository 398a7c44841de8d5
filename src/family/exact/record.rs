//! The saved form of a window: its keys, however the table lies in memory. Equal calls leave equal forms.

use super::table::Key;
use super::{Exact, Stamp, StampLine, Stamped, Stamps, alive, lately, moment, stamp, with_keys};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::memory::fallible;

/// A key of the window: its hash, and when it last counted as a number of keys ago or as a moment.
type Entry = [u64; 2];

impl Exact {
    /// Reads the window that was saved as these words, at this time; from no words, an empty one.
    pub fn read(clock: Clock, words: &[u64]) -> Result<Self, Error> {
        let mut kind = Stamps::new(clock.window())?;
        if let Some((&keys, entries)) = words.split_first() {
            let (entries, rest) = entries.as_chunks();
            if !rest.is_empty() || entries.len() as u64 != keys {
                return Err(Error::format("the keys are damaged: their number is not that of the header"));
            }
            with_keys!(&mut kind, table => table.restore(entries, clock.latest())?);
        }
        Ok(Self { kind, clock, unlike: None })
    }
}

impl<L: StampLine> Stamped<L> {
    /// Returns the keys that may still be reported: the oldest first, and those of one moment in the order of their
    /// hashes.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Error> {
        let least = match self.window {
            Window::Count { insertions } => lately(insertions, self.latest + 1),
            Window::Time { .. } => alive(self.window, self.latest),
        };
        let alive = || self.table.entries().filter(|&(_, stamp)| stamp >= L::Stamp::of(least));
        let mut entries: Vec<Entry> = fallible::with_room(alive().count())?;
        match self.window {
            Window::Count { .. } => {
                entries.extend(alive().map(|(hash, stamp)| [hash, self.latest - stamp.into()]));
                entries.sort_unstable_by_key(|&[_, ago]| std::cmp::Reverse(ago));
            }
            Window::Time { .. } => {
                entries.extend(alive().map(|(hash, stamp)| [hash, moment(stamp.into()) as u64]));
                entries.sort_unstable_by_key(|&[hash, at]| (at as i64, hash));
            }
        }
        Ok(entries)
    }

    fn restore(&mut self, entries: &[Entry], latest: Option<i64>) -> Result<(), Error> {
        self.latest = match (self.window, latest) {
            (Window::Count { insertions }, None) => insertions,
            (Window::Time { .. }, Some(latest)) if latest > i64::MIN => stamp(latest),
            (Window::Time { .. }, None) if entries.is_empty() => return Ok(()),
            _ => return Err(Error::format("the latest moment is damaged")),
        };
        let alive = alive(self.window, self.latest);
        let mut before = 0;
        let mut entries = entries.iter();
        while !entries.as_slice().is_empty() {
            let room = self.table.room(L::Stamp::of(alive), L::Stamp::of(self.latest))?;
            let mut table = self.table.open()?;
            for &[hash, at] in entries.by_ref().take(room) {
                let (key, in_order) = match self.window {
                    Window::Count { insertions } => {
                        let stamp = insertions.saturating_sub(at);
                        (stamp, stamp > before)
                    }
                    Window::Time { .. } => (stamp(at as i64), stamp(at as i64) >= before),
                };
                if !in_order || key < alive || key > self.latest {
                    return Err(Error::format("the keys are damaged: one lies outside the window, or before another"));
                }
                before = key;
                let stamp = L::Stamp::of(key);
                table.seen(Key { hash, stamp, lately: L::Stamp::of(1), alive: L::Stamp::of(alive), renewed: true });
            }
        }
        Ok(())
    }
}
