//! The engine: whatever a filter's cells look like, this is how a batch of keys meets them.
//!
//! A batch is cut into runs of keys that belong to one generation, so that no key pays for the clock. The cells of the
//! key `AHEAD` places on are fetched while the present one is worked on, so that the latencies of memory overlap: across
//! runs too, since where every insertion is a generation a run is a single key. Keys still act one after the other: a
//! batch gives what its keys give one by one, repeats included.

use std::ops::Range;

use crate::Error;
use crate::bits::Address;
use crate::clock::{Clock, Moments, Window};
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::threads::{self, Shared};
use crate::words::Words;

/// Keys in flight. More than 16 to 64 outstanding lines gain nothing; they only evict each other.
const AHEAD: usize = 16;

/// Cells that age by generations: a layout, its words, and the clock that opens the generations.
#[derive(Clone)]
pub struct Aged<L> {
    pub(crate) layout: L,
    pub(crate) words: Words,
    pub(crate) clock: Clock,
}

/// A filter's cells as the outside sees them: batches in, answers out, whatever the layout.
///
/// An error leaves everything as it was.
pub trait Engine: Send + Sync {
    /// Inserts the keys in order.
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error>;

    /// Writes to `present` which of the keys the filter holds. Changes nothing: on a time clock, generations that
    /// have begun since the last insertion are taken into account key by key.
    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error>;

    /// For each key in order: writes to `seen` whether the filter holds it, then inserts it: always with `refresh`,
    /// without it only when it was not there, so that the age of the first sighting runs on.
    fn duplicated(&mut self, hashes: &[u64], at: Moments<'_>, refresh: bool, seen: &mut [bool]) -> Result<(), Error>;

    /// [`insert`](Self::insert), shared by threads as far as the cells can be; all is as if there were one.
    fn insert_shared(&mut self, keys: &mut Shared<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.insert(keys.hashes(), at)
    }

    /// [`duplicated`](Self::duplicated), shared by threads as far as the cells can be; all is as if there were one.
    fn duplicated_shared(
        &mut self,
        keys: &mut Shared<'_>,
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

    /// Writes what the cells say about each key, for the [likelihood](Self::likelihood) to read.
    fn evidence(&self, hashes: &[u64], evidence: &mut [u128]);

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

/// The cells that a batch acts on, all of a filter or a part of them, and the clock that ages them meanwhile.
pub(crate) struct Current<'a, L> {
    pub layout: L,
    pub words: &'a mut [u64],
    pub clock: &'a mut Clock,
}

/// The keys of a batch that have their cells at hand, in order.
#[derive(Clone, Copy)]
pub(crate) struct Chosen<'a> {
    pub hashes: &'a [u64],
    /// Where in the batch they stand, unless they are all of it.
    pub places: Option<&'a [u16]>,
    /// Keys of the batch.
    pub len: usize,
}

impl Chosen<'_> {
    /// Those of a range of the batch.
    #[inline(always)]
    fn within(&self, range: Range<usize>) -> Range<usize> {
        match self.places {
            None => range,
            Some(places) => {
                let before = |end| places.partition_point(|&place| usize::from(place) < end);
                before(range.start)..before(range.end)
            }
        }
    }
}

impl<L: Layout> Current<'_, L> {
    /// Inserts the keys in order.
    pub fn insert(&mut self, keys: Chosen<'_>, at: Moments<'_>) {
        if self.clock.turns_each_insertion() && keys.places.is_none() {
            return self.insert_each(keys.hashes);
        }
        let (mut start, mut phase, mut i) = (0, None, 0);
        while i < keys.len {
            let (mut begun, run) = self.clock.run(at, i, keys.len);
            if run == 0 {
                self.clock.turn();
                begun = 1;
            }
            if self.changes(begun) {
                if let Some(phase) = phase {
                    self.layout.insert_run(self.words, phase, keys.hashes, keys.within(start..i));
                }
                self.age(begun);
                start = i;
            }
            if start == i {
                phase = Some(self.phase());
            }
            self.clock.count(run as u64);
            i += run;
        }
        if let Some(phase) = phase {
            self.layout.insert_run(self.words, phase, keys.hashes, keys.within(start..i));
        }
    }

    /// For each key in order: writes to `seen` whether it was there, then inserts it, always with `refresh`, else only
    /// when it was not there.
    pub fn duplicated(&mut self, keys: Chosen<'_>, at: Moments<'_>, refresh: bool, seen: &mut [bool]) {
        if self.clock.turns_each_insertion() && keys.places.is_none() {
            return self.duplicated_each(keys.hashes, refresh, seen);
        }
        let (mut start, mut phase, mut i) = (0, self.phase(), 0);
        while i < keys.len {
            let (begun, run) = self.clock.run(at, i, keys.len);
            let full = run == 0 && self.layout.turns(self.clock.generation() + 1);
            if full || self.changes(begun) {
                self.layout.duplicated_run(self.words, phase, keys.hashes, keys.within(start..i), refresh, seen);
                self.age(begun);
                start = i;
            }
            if start == i {
                phase = self.phase();
            }
            if full {
                // Looked up while the old generation is still open; only an insertion opens the next.
                let key = keys.within(i..i + 1);
                self.layout.query_run(self.words, phase, keys.hashes, key.clone(), seen);
                if refresh || !seen[key.clone()].contains(&true) {
                    self.clock.turn();
                    self.age(1);
                    keys.hashes[key].iter().for_each(|&hash| self.layout.insert(self.words, self.phase(), hash));
                    self.clock.count(1);
                }
                i += 1;
                start = i;
            } else if run == 0 {
                self.clock.turn();
            } else if refresh {
                self.clock.count(run as u64);
                i += run;
            } else {
                // How many were inserted has to be known before the clock can go on.
                let own = keys.within(i..i + run);
                self.clock.count(self.layout.duplicated_run(self.words, phase, keys.hashes, own, false, seen));
                i += run;
                start = i;
            }
        }
        self.layout.duplicated_run(self.words, phase, keys.hashes, keys.within(start..i), refresh, seen);
    }

    /// [`insert`](Self::insert) where every insertion opens a generation.
    fn insert_each(&mut self, hashes: &[u64]) {
        let (layout, phase, address) = (self.layout, self.phase(), Address::of(self.words));
        let fetch = |hash| layout.fetch_newest(address, phase, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |_, hash| self.insert_next(hash));
    }

    /// [`duplicated`](Self::duplicated) where every insertion opens a generation.
    fn duplicated_each(&mut self, hashes: &[u64], refresh: bool, seen: &mut [bool]) {
        let (layout, address) = (self.layout, Address::of(self.words));
        let fetch = |hash| layout.fetch_all(address, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
            // Looked up while the old generation is still open; only an insertion opens the next.
            seen[i] = layout.contains(self.words, self.phase(), hash);
            if refresh || !seen[i] {
                self.insert_next(hash);
            }
        });
    }

    /// Opens the next generation, but for the first insertion, and inserts a key.
    #[inline(always)]
    fn insert_next(&mut self, hash: u64) {
        if self.clock.inserted() > 0 {
            self.clock.turn();
            if self.changes(1) {
                self.age(1);
            }
        }
        self.clock.count(1);
        self.layout.insert(self.words, self.phase(), hash);
    }

    /// Whether one of the last `begun` generations changes the cells at hand.
    fn changes(&self, begun: u64) -> bool {
        let turns = |later| self.layout.turns(self.clock.generation() - later as i64);
        begun >= self.layout.generations() || (0..begun).any(turns)
    }

    fn phase(&self) -> L::Phase {
        self.layout.phase(self.clock.generation(), 0)
    }

    fn age(&mut self, begun: u64) {
        age(self.layout, self.words, self.clock.generation(), begun);
    }
}

impl<L: Layout> Aged<L> {
    fn current(&mut self) -> Result<Current<'_, L>, Error> {
        Ok(Current { layout: self.layout, words: self.words.to_mut()?, clock: &mut self.clock })
    }
}

/// All keys of a batch.
fn all(hashes: &[u64]) -> Chosen<'_> {
    Chosen { hashes, places: None, len: hashes.len() }
}

impl<L: Layout> Engine for Aged<L> {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.current()?.insert(all(hashes), at);
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
        self.current()?.duplicated(all(hashes), at, refresh, seen);
        Ok(())
    }

    fn insert_shared(&mut self, keys: &mut Shared<'_>, at: Moments<'_>) -> Result<(), Error> {
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
        keys: &mut Shared<'_>,
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

    fn evidence(&self, hashes: &[u64], evidence: &mut [u128]) {
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

/// Calls `act` on the keys of a run of the batch `hashes`, in order and with their places, with the cells of the keys to
/// come on their way. Those of later runs are fetched as this one sees them: only a hint, and after a long run a wrong
/// one for no more than `AHEAD` keys.
#[inline(always)]
pub(crate) fn in_flight(hashes: &[u64], run: Range<usize>, fetch: impl Fn(u64), mut act: impl FnMut(usize, u64)) {
    if run.start == 0 {
        hashes.iter().take(AHEAD).for_each(|&hash| fetch(hash));
    }
    for i in run {
        if let Some(&coming) = hashes.get(i + AHEAD) {
            fetch(coming);
        }
        act(i, hashes[i]);
    }
}

/// Opens the last `begun` generations up to `open`; a gap longer than the filter remembers empties it at once.
fn age<L: Layout>(layout: L, words: &mut [u64], open: i64, begun: u64) {
    if begun >= layout.generations() {
        words.fill(0);
    } else {
        for later in (0..begun).rev() {
            layout.open(words, open - later as i64);
        }
    }
}
