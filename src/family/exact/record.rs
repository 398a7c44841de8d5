//! The content of a window, apart from how the table lies in memory.

use super::table::Key;
use super::{Exact, Stamp, StampLine, Stamped, Stamps, alive, lately, moment, stamp};
use crate::Error;
use crate::clock::Window;
use crate::memory::fallible;

/// A key of the window: its hash, and when it last counted as a number of keys ago or as a moment.
pub type Entry = (u64, i64);

/// The content of a window: equal after equal calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The window. `capacity` has no effect.
    pub window: Window,
    /// Number of keys so far.
    pub inserted: u64,
    /// The latest moment, in a window of time.
    pub latest: Option<i64>,
    /// The filter's time: whether a key came without one of its own, and if so
    /// [the stamp](crate::clock::system::Stamp).
    pub time: [u64; 3],
    /// The keys that may still be reported: the oldest first, and those of one moment in the order of their hashes.
    pub entries: Vec<Entry>,
}

impl Exact {
    /// Returns the content of the window.
    pub fn to_record(&self) -> Result<Record, Error> {
        let entries = match &self.kind {
            Stamps::Counted(keys) => keys.entries(),
            Stamps::Timed(keys) => keys.entries(),
        }?;
        let (inserted, time) = (self.inserted, self.clock.stamp());
        Ok(Record { window: self.window(), inserted, latest: self.latest(), time, entries })
    }

    /// Creates a window from a record. An error names the field of the record that is out of range.
    pub fn from_record(record: &Record) -> Result<Self, Error> {
        let mut exact = Self::new(record.window)?;
        exact.inserted = record.inserted;
        exact.clock = exact.clock.resumed(record.inserted, record.latest).with_stamp(record.time);
        match &mut exact.kind {
            Stamps::Counted(keys) => keys.restore(record)?,
            Stamps::Timed(keys) => keys.restore(record)?,
        }
        Ok(exact)
    }
}

impl<L: StampLine> Stamped<L> {
    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let least = match self.window {
            Window::Count { .. } => lately(self.window, self.latest + 1),
            Window::Time { .. } => alive(self.window, self.latest),
        };
        let least = L::Stamp::of(least);
        let alive = || self.table.entries().filter(|&(_, stamp)| stamp >= least);
        let mut entries: Vec<Entry> = fallible::with_room(alive().count())?;
        match self.window {
            Window::Count { .. } => {
                entries.extend(alive().map(|(hash, stamp)| (hash, (self.latest - stamp.into()) as i64)));
            }
            Window::Time { .. } => entries.extend(alive().map(|(hash, stamp)| (hash, moment(stamp.into())))),
        }
        match self.window {
            Window::Count { .. } => entries.sort_unstable_by_key(|&(_, ago)| std::cmp::Reverse(ago)),
            Window::Time { .. } => entries.sort_unstable_by_key(|&(hash, moment)| (moment, hash)),
        }
        Ok(entries)
    }

    fn restore(&mut self, record: &Record) -> Result<(), Error> {
        self.latest = match (self.window, record.latest) {
            (Window::Count { insertions }, None) => insertions,
            (Window::Time { .. }, Some(latest)) if latest > i64::MIN => stamp(latest),
            (Window::Time { .. }, None) if record.entries.is_empty() => return Ok(()),
            _ => return Err(Error::format("the latest moment is damaged")),
        };
        let alive = alive(self.window, self.latest);
        let mut before = 0;
        let mut entries = record.entries.iter();
        while !entries.as_slice().is_empty() {
            let room = self.table.room(L::Stamp::of(alive), L::Stamp::of(self.latest))?;
            let mut table = self.table.open()?;
            for &(hash, at) in entries.by_ref().take(room) {
                let (key, in_order) = match self.window {
                    Window::Count { insertions } => {
                        let stamp = u64::try_from(at).ok().and_then(|ago| insertions.checked_sub(ago)).unwrap_or(0);
                        (stamp, stamp > before)
                    }
                    Window::Time { .. } => (stamp(at), stamp(at) >= before),
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
