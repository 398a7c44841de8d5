//! The engine: how a batch of keys meets a filter's cells, whatever the layout.
//!
//! A batch is cut into runs of keys that belong to one generation, so no key pays for the clock. While a key is worked
//! on, the cells of the key `AHEAD` places later are prefetched, so that memory latencies overlap. Prefetching crosses
//! runs, since a run may be a single key where every insertion is a generation. Keys still act one after the other: a
//! batch gives what its keys give one by one, repeats included.
//!
//! A batch of keys has four names on its way. [`Keys`](crate::key::Keys) have been read, and are hashed as needed. A
//! [`Stretch`] of them is hashed at a time, in pieces that threads take in turn. `Hashes` are those whose cells are at
//! hand: a whole stretch, or the keys of one part. A run of these belongs to one generation.

mod aged;
pub mod growing;
pub(crate) mod hashes;
pub(crate) mod run;
mod sort;
pub mod threads;
mod time_limited;

use std::any::Any;

pub use aged::Aged;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::Words;
use crate::memory::mapped::RECORD;
use threads::Stretch;

/// Which keys [`duplicated`](Engine::duplicated) inserts, so that their window begins anew, and which the window
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// It inserts every key.
    Always,
    /// It inserts those that were not there. The window goes on with every key, there or not.
    Unseen,
    /// The same, but a window of insertions goes on only with those it inserts: the last W *delivered* (paper 4,
    /// definition 4). A key that is asked for without end then never comes through again.
    Delivered,
}

impl Refresh {
    /// Whether a key is inserted that was there or not.
    pub(crate) fn takes(self, seen: bool) -> bool {
        self == Self::Always || !seen
    }

    /// Whether the clock has to wait for the answers.
    fn waits(self, clock: &Clock) -> bool {
        self == Self::Delivered && matches!(clock.window(), Window::Count { .. })
    }
}

/// A filter's cells as the outside sees them: batches in, answers out, whatever the layout.
///
/// An error leaves everything as it was.
pub trait Engine: Any + Send + Sync {
    /// Inserts the keys in order.
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error>;

    /// Writes to `present` which of the keys the filter holds. Changes nothing. On a time clock, generations that have
    /// begun since the last insertion count, key by key.
    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error>;

    /// The same for a window that is at most the filter's own, in insertions or nanoseconds, if the cells know how old
    /// keys are.
    fn query_within(&self, hashes: &[u64], at: Moments<'_>, window: u64, present: &mut [bool]) -> Result<(), Error> {
        let _ = (hashes, at, window, present);
        Err(no_ages())
    }

    /// For each key in order: writes to `seen` whether the filter holds it, then inserts it as `refresh` says.
    fn duplicated(&mut self, hashes: &[u64], at: Moments<'_>, refresh: Refresh, seen: &mut [bool])
    -> Result<(), Error>;

    /// [`insert`](Self::insert), shared by threads as far as the cells can be; the result is that of one thread.
    fn insert_shared(&mut self, keys: &mut Stretch<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.insert(keys.hashes()?, at)
    }

    /// [`duplicated`](Self::duplicated), shared by threads as far as the cells can be; the result is that of one
    /// thread.
    fn duplicated_shared(
        &mut self,
        keys: &mut Stretch<'_>,
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.duplicated(keys.hashes()?, at, refresh, seen)
    }

    /// Takes in all keys of the other, which has the same parameters. On a time clock the earlier one is first brought
    /// to the generation of the other; on a count clock both must be in the same one.
    fn unite(&mut self, other: &dyn Engine) -> Result<(), Error>;

    /// Refuses cells that it could not have left, if they are read from somewhere.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses cells that would miss keys to come, if they are read from somewhere.
    fn verify(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether other processes may use its cells, while one of them writes to them: see [`shared`](crate::shared).
    fn shareable(&self) -> bool {
        false
    }

    /// Takes up the clock of a file that other processes write to, and finishes what one of them that was killed has
    /// begun. All that writes does so first.
    fn catch_up(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Goes on where a process has told the clock to be, with cells that have yet to age by the last
    /// `unaged` generations.
    fn take_up(&mut self, told: [u64; RECORD]) -> Result<(), Error> {
        let _ = told;
        Err(Error::format("filters of this family cannot be shared by processes"))
    }

    /// The filter's clock.
    fn clock(&self) -> Clock;

    /// Sets how far [ahead](Clock::ahead) of the system's clock a key may lie.
    fn set_ahead(&mut self, ahead: Option<u64>);

    /// The cells.
    fn words(&self) -> &Words;

    /// Share of the bits set in each part that rotates as one, the newest first.
    fn fill(&self) -> Vec<f64>;

    /// Chance that a fresh key matches in each part that rotates as one, the newest first.
    fn match_rates(&self) -> Vec<f64>;

    /// Chance that a key never inserted is reported now, from the actual bits.
    fn false_positive_rate(&self) -> f64;

    /// Writes what the cells say about each key, for the [likelihood](Self::likelihood) to read.
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]);

    /// How codes are read, if all of its evidence has one.
    fn coded(&self) -> Option<fn(Code) -> Evidence> {
        None
    }

    /// Writes the codes of what the cells say about each key.
    fn codes(&self, hashes: &[u64], codes: &mut [Code]) {
        let _ = (hashes, codes);
        unreachable!("evidence of these cells has no codes");
    }

    /// What evidence tells about ages in the current state of the cells, if this layout has a likelihood.
    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>>;

    /// A copy that shares the words until either writes.
    fn clone_box(&self) -> Box<dyn Engine>;
}

/// A shorter window is asked for, and the cells do not know how old keys are.
fn no_ages() -> Error {
    Error::value(
        "window is for filters that know how old keys are, AgedQuotientFilter and TimingBloomFilter; this one \
         answers for its own alone",
    )
}

impl Clone for Box<dyn Engine> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
