//! The engine: whatever a filter's cells look like, this is how a batch of keys meets them.
//!
//! A batch is cut into runs of keys that belong to one generation, so that no key pays for the clock. The cells of the
//! key `AHEAD` places on are fetched while the present one is worked on, so that the latencies of memory overlap:
//! across runs too, since where every insertion is a generation a run is a single key. Keys still act one after the
//! other: a batch gives what its keys give one by one, repeats included.
//!
//! Keys have four names on their way. [`Keys`](crate::key::Keys) have been read, and are hashed where they are wanted.
//! A [`Stretch`] of them is hashed at a time, in pieces that threads take in turn. `Hashes` are those that have their
//! cells at hand, all of a stretch or those of one part. A run of them belongs to one generation.

pub mod growing;
mod run;
pub mod threads;
mod time_limited;

use std::any::Any;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::inference::{Evidence, Likelihood, Question};
use crate::layout::Layout;
use crate::memory::Words;
use run::{AgedMut, Hashes, age};
use threads::Stretch;

/// Cells that age by generations: a layout, its words, and the clock that opens the generations.
#[derive(Clone)]
pub struct Aged<L> {
    /// Where the bits of a key lie.
    pub layout: L,
    /// The cells.
    pub words: Words,
    /// Where they are in time.
    pub clock: Clock,
}

/// A filter's cells as the outside sees them: batches in, answers out, whatever the layout.
///
/// An error leaves everything as it was.
pub trait Engine: Any + Send + Sync {
    /// Inserts the keys in order.
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error>;

    /// Writes to `present` which of the keys the filter holds. Changes nothing: on a time clock, generations that
    /// have begun since the last insertion are taken into account key by key.
    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error>;

    /// For each key in order: writes to `seen` whether the filter holds it, then inserts it: always with `refresh`,
    /// without it only when it was not there, so that the age of the first sighting runs on.
    fn duplicated(&mut self, hashes: &[u64], at: Moments<'_>, refresh: bool, seen: &mut [bool]) -> Result<(), Error>;

    /// [`insert`](Self::insert), shared by threads as far as the cells can be; all is as if there were one.
    fn insert_shared(&mut self, keys: &mut Stretch<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.insert(keys.hashes(), at)
    }

    /// [`duplicated`](Self::duplicated), shared by threads as far as the cells can be; all is as if there were one.
    fn duplicated_shared(
        &mut self,
        keys: &mut Stretch<'_>,
        at: Moments<'_>,
        refresh: bool,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.duplicated(keys.hashes(), at, refresh, seen)
    }

    /// Takes in all keys of the other, which has the same parameters. On a time clock the one behind is brought to the
    /// generation of the other first; on a count clock both have to be in the same.
    fn unite(&mut self, other: &dyn Engine) -> Result<(), Error>;

    /// Where the filter is in time.
    fn clock(&self) -> &Clock;

    /// The cells.
    fn words(&self) -> &Words;

    /// Share of the bits set in each part that ages as one, the newest first.
    fn fill(&self) -> Vec<f64>;

    /// Chance that a fresh key matches in each part that ages as one, the newest first.
    fn match_rates(&self) -> Vec<f64>;

    /// Chance that a key never inserted is reported now, from the bits as they are.
    fn false_positive_rate(&self) -> f64;

    /// Writes what the cells say about each key, for the [likelihood](Self::likelihood) to read.
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]);

    /// What evidence tells about ages while the cells are as they are, if that has been worked out.
    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>>;

    /// A copy that shares the words until either writes.
    fn clone_box(&self) -> Box<dyn Engine>;
}

impl Clone for Box<dyn Engine> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

impl<L: Layout> Aged<L> {
    /// Of any layout, in a box.
    pub(crate) fn boxed(layout: L, words: Words, clock: Clock) -> Box<dyn Engine> {
        Box::new(Self { layout, words, clock })
    }

    fn to_mut(&mut self) -> Result<AgedMut<'_, L>, Error> {
        Ok(AgedMut { layout: self.layout, words: self.words.to_mut()?, clock: &mut self.clock })
    }
}

impl<L: Layout> Engine for Aged<L> {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.to_mut()?.insert(Hashes::all(hashes), at);
        Ok(())
    }

    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let (layout, words) = (self.layout, self.words.as_slice());
        let mut i = 0;
        while i < hashes.len() {
            let (pending, run) = self.clock.pending(at, i, hashes.len());
            let phase = layout.phase(self.clock.generation(), pending);
            layout.query_run(words, phase, hashes, i..i + run, present);
            i += run;
        }
        Ok(())
    }

    fn duplicated(&mut self, hashes: &[u64], at: Moments<'_>, refresh: bool, seen: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.to_mut()?.duplicated(Hashes::all(hashes), at, refresh, seen);
        Ok(())
    }

    fn insert_shared(&mut self, keys: &mut Stretch<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.clock.check(at, true)?;
        let parts = self.layout.cut(self.words.to_mut()?, keys.parts());
        if parts.is_empty() {
            return self.insert(keys.hashes(), at);
        }
        self.clock = threads::insert(parts, self.clock, keys, at);
        Ok(())
    }

    fn duplicated_shared(
        &mut self,
        keys: &mut Stretch<'_>,
        at: Moments<'_>,
        refresh: bool,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.clock.check(at, true)?;
        // Without `refresh` the generation of a key depends on the answers to all before it, if insertions count.
        let by_place = refresh || matches!(self.clock.window(), Window::Time { .. });
        let parts = self.layout.cut(self.words.to_mut()?, if by_place { keys.parts() } else { 1 });
        if parts.is_empty() {
            return self.duplicated(keys.hashes(), at, refresh, seen);
        }
        self.clock = threads::duplicated(parts, self.clock, keys, at, refresh, seen);
        Ok(())
    }

    fn unite(&mut self, other: &dyn Engine) -> Result<(), Error> {
        let (clock, ours_begun, theirs_begun) = self.clock.united(other.clock())?;
        let (mut ours, mut theirs) = (self.words.clone(), other.words().clone());
        for (words, begun) in [(&mut ours, ours_begun), (&mut theirs, theirs_begun)] {
            if begun > 0 {
                age(self.layout, words.to_mut()?, clock.generation(), begun);
            }
        }
        self.layout.unite(ours.to_mut()?, theirs.as_slice())?;
        (self.words, self.clock) = (ours, clock);
        Ok(())
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn fill(&self) -> Vec<f64> {
        self.layout.fill(self.words.as_slice(), self.layout.phase(self.clock.generation(), 0))
    }

    fn match_rates(&self) -> Vec<f64> {
        self.layout.match_rates(self.words.as_slice(), self.layout.phase(self.clock.generation(), 0))
    }

    fn false_positive_rate(&self) -> f64 {
        self.layout.false_positive_rate(self.words.as_slice(), self.layout.phase(self.clock.generation(), 0))
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let phase = self.layout.phase(self.clock.generation(), 0);
        self.layout.evidence_run(self.words.as_slice(), phase, hashes, evidence);
    }

    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        self.layout.likelihood(self.words.as_slice(), &self.clock, question)
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}
