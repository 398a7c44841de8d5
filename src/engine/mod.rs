//! The engine: runs a batch of keys through the cells of a filter, whatever their layout.
//!
//! A batch is cut into runs of keys that belong to one generation, so that the clock is read once per run and not per
//! key. While one key is processed, the cells of a key several places later are prefetched, so that memory latencies
//! overlap. Prefetching crosses the ends of runs, since a run may be a single key where every insertion is a
//! generation. Keys still take effect in order: a batch returns what its keys return in single calls, repeats included.
//!
//! The keys of a batch take four forms on their way. [`Keys`](crate::key::Keys) have been read, and are hashed when
//! needed. A [`Chunk`] is a range of them that threads share. `SelectedHashes` are the hashes of a chunk, or those of
//! one partition of the cells. A run is a range of these within one generation.

mod aged;
mod any_cells;
pub mod chain;
pub(crate) mod hashes;
mod partition;
pub(crate) mod run;
pub mod threads;

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;

pub use aged::Aged;
pub use any_cells::AnyCells;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::inference::EvidenceSource;
use crate::memory::Words;
use crate::memory::mapped::{RECORD, TABLE};
use threads::Chunk;

/// Which keys [`duplicated`](Engine::duplicated) inserts, and which keys advance the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Every key is inserted, so that its window begins anew.
    Always,
    /// Unseen keys are inserted. Every key advances the window.
    Unseen,
    /// Unseen keys are inserted, and in a window of insertions only these advance it: the last W *delivered* (paper 4,
    /// definition 4). A key that never stops coming is then never delivered again.
    Delivered,
}

impl Refresh {
    /// Returns whether a key is inserted, given whether it was `seen`.
    pub(crate) fn inserts(self, seen: bool) -> bool {
        self == Self::Always || !seen
    }

    /// Returns whether the generation of a key depends on the answers to the keys before it.
    fn waits(self, clock: &Clock) -> bool {
        self == Self::Delivered && matches!(clock.window(), Window::Count { .. })
    }
}

/// How keys are inserted: when they came, and whether they are looked up first.
pub struct Insertion<'a> {
    /// When the keys came.
    pub at: Moments<'a>,
    /// Which keys are inserted, by what is written to `seen`; `None` inserts all of them.
    pub refresh: Option<Refresh>,
    /// Receives for each key whether the filter contained it before; empty without `refresh`.
    pub seen: &'a mut [bool],
}

impl<'a> Insertion<'a> {
    /// Returns the insertion of all keys, without answers.
    pub fn of_all(at: Moments<'a>) -> Self {
        Self { at, refresh: None, seen: &mut [] }
    }

    /// Returns the insertion of the keys in a range.
    pub(crate) fn part(&mut self, range: Range<usize>) -> Insertion<'_> {
        let (at, refresh) = (self.at.slice(range.clone()), self.refresh);
        Insertion { at, refresh, seen: if refresh.is_some() { &mut self.seen[range] } else { &mut [] } }
    }
}

/// Keys to look up.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The hashes of the keys.
    pub hashes: &'a [u64],
    /// When the keys are looked up. On a time clock that decides how many generations have opened since the last
    /// insertion.
    pub at: Moments<'a>,
    /// The window, in insertions or nanoseconds; `None` is that of the filter, which is at least as long.
    pub window: Option<u64>,
}

impl<'a> Query<'a> {
    /// Returns the query of one of the keys.
    fn one(self, i: usize) -> Self {
        Self { hashes: &self.hashes[i..i + 1], at: self.at.slice(i..i + 1), ..self }
    }
}

/// The cells of a filter with their clock, which process batches, whatever the layout.
///
/// A call that returns an error has changed nothing.
pub trait Engine: EvidenceSource + Any + Send + Sync {
    /// Inserts the keys in order, each after it has been looked up if the insertion demands it.
    fn process(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error>;

    /// Processes the keys of a chunk, by several threads if the cells can be divided. The result is that of
    /// [`process`](Self::process).
    fn process_shared(&mut self, keys: &mut Chunk<'_>, insertion: Insertion<'_>) -> Result<(), Error> {
        self.process(keys.hashes()?, insertion)
    }

    /// Inserts the keys in order.
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.process(hashes, Insertion::of_all(at))
    }

    /// Writes to `seen`, for each key in order, whether the filter contains it, and then inserts it as `refresh`
    /// demands.
    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.process(hashes, Insertion { at, refresh: Some(refresh), seen })
    }

    /// Writes to `present` which of the keys the filter contains, and changes nothing.
    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.query_within(Query { hashes, at, window: None }, present)
    }

    /// Writes to `present` which of the keys were inserted within the window of the query. Returns an error for a
    /// window of its own if the cells do not store how old keys are.
    fn query_within(&self, query: Query<'_>, present: &mut [bool]) -> Result<(), Error>;

    /// Returns whether the filter contains one key, or `None` where that takes more than a look into its cells: the
    /// window is one of insertions, and the cells are those of this process alone.
    fn contains_untimed(&self, hash: u64) -> Option<bool> {
        let _ = hash;
        None
    }

    /// Returns whether the filter contains one key, and inserts it; or `None`, and does nothing, where
    /// [`contains_untimed`](Self::contains_untimed) or each insertion takes more than that.
    fn seen_untimed(&mut self, hash: u64) -> Option<bool> {
        let _ = hash;
        None
    }

    /// Returns whether the filter contains one key. The result is that of [`query`](Self::query).
    fn contains_one(&self, hash: u64, at: Moments<'_>) -> Result<bool, Error> {
        if let Moments::Untimed = at
            && let Some(present) = self.contains_untimed(hash)
        {
            return Ok(present);
        }
        let mut present = [false];
        self.query(&[hash], at, &mut present)?;
        Ok(present[0])
    }

    /// Returns whether the filter contains one key, and inserts it as `refresh` demands. The result is that of
    /// [`duplicated`](Self::duplicated).
    fn seen_one(&mut self, hash: u64, at: Moments<'_>, refresh: Refresh) -> Result<bool, Error> {
        if let (Moments::Untimed, Refresh::Always) = (at, refresh)
            && let Some(seen) = self.seen_untimed(hash)
        {
            return Ok(seen);
        }
        let mut seen = [false];
        self.duplicated(&[hash], at, refresh, &mut seen)?;
        Ok(seen[0])
    }

    /// Inserts one key. The result is that of [`insert`](Self::insert).
    fn insert_one(&mut self, hash: u64, at: Moments<'_>) -> Result<(), Error> {
        match at {
            Moments::Untimed if self.seen_untimed(hash).is_some() => Ok(()),
            _ => self.insert(&[hash], at),
        }
    }

    /// Writes to `counts` how often each key was inserted within the window. Returns an error by default: most cells do
    /// not count.
    fn count(&self, hashes: &[u64], counts: &mut [u64]) -> Result<(), Error> {
        let _ = (hashes, counts);
        Err(no_counts())
    }

    /// Estimates how many different keys were inserted within the window, from cells that count fingerprints.
    fn distinct(&self) -> Option<f64> {
        None
    }

    /// Returns the bits of each slice, the newest first, of slices that come and go.
    fn slice_bits(&self) -> Option<Vec<u64>> {
        None
    }

    /// Returns the number of different keys in the window at a moment, of cells that store every key.
    fn keys(&self, at: Moments<'_>) -> Option<usize> {
        let _ = at;
        None
    }

    /// Merges all keys of another engine, which has the same parameters. On a time clock the earlier engine is first
    /// brought to the generation of the later one. On a count clock both must be in the same generation, unless the
    /// cells can be numbered anew.
    fn merge(&mut self, other: &dyn Engine) -> Result<(), Error>;

    /// Rejects cells from a file to be verified, if later keys would be missed with them. By default accepts all cells.
    fn verify(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns whether several processes may use the cells while one of them writes: see [`shared`](crate::shared).
    fn shareable(&self) -> bool {
        false
    }

    /// Reads the clock of a file that other processes write to, and opens the generations that a killed process has
    /// left unopened. Every write calls it first, under the lock of the file.
    fn catch_up(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Sets the clock to a record and a table from a file that processes share. Words in memory of their own then open
    /// the generations that the record leaves unopened; words in the file wait for [`catch_up`](Self::catch_up), since
    /// only a process that has the lock may write to them.
    fn restore(&mut self, record: [u64; RECORD], table: &[u64; TABLE]) -> Result<(), Error> {
        let _ = (record, table);
        Err(Error::format("filters of this family cannot be shared by processes"))
    }

    /// Sets how far [ahead](Clock::max_ahead) of the system's clock the moment of a key may lie.
    fn set_max_ahead(&mut self, max_ahead: Option<u64>);

    /// Returns the cells: of a chain of tables, those of the newest.
    fn words(&self) -> &Words;

    /// Returns the number of bytes of all cells.
    fn nbytes(&self) -> usize {
        size_of_val(self.words().as_slice())
    }

    /// Returns the most bytes that the insertion of a key writes, but for the first write to a copy: by default all.
    fn most_written(&self) -> usize {
        self.nbytes()
    }

    /// Returns all that is saved, in order: the cells, or the pieces of a chain. An error if there is not enough memory
    /// for it.
    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        Ok(vec![Cow::Borrowed(self.words().as_slice())])
    }

    /// Returns all that is saved in one piece.
    fn to_words(&self) -> Result<Words, Error> {
        let pieces = self.pieces()?;
        if let [Cow::Borrowed(_)] = pieces[..] {
            return self.words().own();
        }
        let mut all = Words::zeroed(pieces.iter().map(|piece| piece.len()).sum())?;
        let mut rest = all.to_mut()?;
        for piece in pieces {
            let (own, after) = rest.split_at_mut(piece.len());
            own.copy_from_slice(&piece);
            rest = after;
        }
        Ok(all)
    }

    /// Returns the number of tables of cells that answer together.
    fn tables(&self) -> usize {
        1
    }

    /// Returns the share of set bits in each segment that rotates as one, the newest first.
    fn fill(&self) -> Vec<f64>;

    /// Returns the chance that a fresh key matches in each segment that rotates as one, the newest first.
    fn match_rates(&self) -> Vec<f64>;

    /// Returns the number of entries by age in generations, the youngest first, of cells that store keys as entries.
    fn entries(&self) -> Option<Vec<f64>> {
        None
    }

    /// Returns the chance that a key never inserted is reported now, computed from the actual bits.
    fn false_positive_rate(&self) -> f64;

    /// Returns a copy, which shares the words until either is written to.
    fn clone_box(&self) -> Box<dyn Engine>;
}

/// Returns the error of a query for a shorter window, if the cells do not store how old keys are.
pub(crate) fn no_ages() -> Error {
    Error::value(
        "this filter has no ages to answer for a shorter window: omit window, or use an AgedCuckooFilter, a \
         TimingBloomFilter or an ExactFilter",
    )
}

/// Returns the error of a count, if the cells do not count.
fn no_counts() -> Error {
    Error::value("this filter does not count: use a Swamp or a CountingBloomFilter, which have windows of insertions")
}

/// Returns the error of a merge of filters that cannot be merged, for this reason.
pub(crate) fn not_mergeable(reason: &str) -> Error {
    Error::value(format!("cannot merge these filters: {reason}"))
}

impl Clone for Box<dyn Engine> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
