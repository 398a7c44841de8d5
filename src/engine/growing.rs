//! Timers of dynamic size (paper 4, section 5). Parts of one size are added as keys come, and dropped when all of their
//! timers have expired. Insertions write to the newest part, queries read all parts.
//!
//! All parts have the same hash functions, as in the paper. A key that comes again while an older part contains it is
//! inserted into the newest part like any other. It expires from the older part in that part's own time.

use super::run::for_query_runs;
use super::{Engine, Refresh, not_mergeable};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::segments::{self, Segment as _};
use crate::family::timing::cells::{TimerRotation, TimersInSlices};
use crate::family::timing::growing::{self, Limit, any};
use crate::family::{Layout, timing};
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;
use crate::memory::prefetch::{Address, in_flight};

/// Words before the table of parts: the number of parts, and the load of the newest.
const HEAD: usize = 2;

/// Number of parts whose timers are prefetched, the newest first: at the planned rate there are no more. With 16 keys
/// ahead and k = 7, a hundred parts would be 11,000 lines, and the last would evict the first before they are read.
const PREFETCHED: usize = 2;

/// A part of the timers, as its row of the table stores it.
#[derive(Clone, Copy)]
struct TimerPart {
    /// The word at which the timers begin; 0 while the part has none.
    start: usize,
    len: usize,
    /// The moment of the last insertion, or the one at which the part was added.
    last: i64,
}

impl segments::Segment for TimerPart {
    const ROW: usize = 1;

    fn len(&self) -> usize {
        self.len
    }

    fn start(&mut self) -> &mut usize {
        &mut self.start
    }

    fn write(&self, row: &mut [u64]) {
        row[0] = self.last as u64;
    }
}

impl TimerPart {
    /// Returns the words of this part.
    fn of(self, words: &[u64]) -> &[u64] {
        &words[self.start..][..self.len]
    }

    /// Returns the words of this part, to write.
    fn of_mut(self, words: &mut [u64]) -> &mut [u64] {
        &mut words[self.start..][..self.len]
    }
}

/// An engine of parts of timers that come and go, the newest first.
#[derive(Clone)]
pub struct Growing {
    layout: TimersInSlices,
    limit: Limit,
    /// The most that one key can add to the load.
    step: u64,
    clock: Clock,
    /// Head, table and timers: all that is saved.
    words: Words,
    /// The table, as `words` stores it.
    parts: Vec<TimerPart>,
    /// The number of keys, or of set timers, of the newest part: see [`Limit`].
    load: u64,
}

impl Growing {
    /// Returns the parts that [`lay_out`](Self::lay_out) wrote into these words; without words, one empty part.
    pub(crate) fn new(shape: growing::Growing, clock: Clock, words: Words) -> Result<Self, Error> {
        let growing::Growing { part: shape, limit } = shape;
        let layout = TimersInSlices::new(shape);
        let mut new = Self { layout, limit, step: limit.step(shape), clock, words, parts: Vec::new(), load: 0 };
        if !new.words.as_slice().is_empty() {
            return new.read();
        }
        new.lay_out(vec![new.empty(0)], 0)?;
        Ok(new)
    }

    /// Reads the table of parts, and rejects one that is damaged.
    fn read(mut self) -> Result<Self, Error> {
        let damaged = || Error::format("the table of parts is damaged");
        let [parts, load, ..] = *self.words.as_slice() else {
            return Err(damaged());
        };
        let (len, mut newer) = (self.layout.timers.words(), self.clock.latest().unwrap_or(0));
        let table = segments::read(self.words.as_slice(), HEAD, parts, |_, row| {
            let older = row[0] as i64 <= newer;
            newer = row[0] as i64;
            older.then_some(TimerPart { start: 0, len, last: newer })
        });
        let parts = table.filter(|parts| !parts.is_empty() && load <= self.limit.most()).ok_or_else(damaged)?;
        (self.parts, self.load) = (parts, load);
        Ok(self)
    }

    /// Returns a part without timers, added at this moment.
    fn empty(&self, moment: i64) -> TimerPart {
        TimerPart { start: 0, len: self.layout.timers.words(), last: moment }
    }

    /// Replaces the parts; `load` is that of the newest. A call that returns an error has changed nothing.
    fn lay_out(&mut self, mut parts: Vec<TimerPart>, load: u64) -> Result<(), Error> {
        segments::lay_out(&mut self.words, &[parts.len() as u64, load], &mut parts)?;
        (self.parts, self.load) = (parts, load);
        Ok(())
    }

    /// Opens the last `opened` generations up to that of a clock: drops parts whose last insertion has expired, and
    /// sweeps the timers of the others. A call that returns an error has changed nothing.
    fn age(&mut self, clock: &Clock, opened: u64) -> Result<(), Error> {
        let open = clock.generation();
        let retained = |part: &TimerPart| open.abs_diff(clock.generation_at(part.last)) < self.layout.generations();
        let live = self.parts.partition_point(retained);
        if live == 0 {
            return self.lay_out(vec![self.empty(clock.latest().unwrap_or(0))], 0);
        }
        if live < self.parts.len() {
            self.lay_out(self.parts[..live].to_vec(), self.load)?;
        }
        let (layout, limit, newest, words) = (self.layout, self.limit, self.parts[0], self.words.to_mut()?);
        for generation in (0..opened).rev().map(|later| open - later as i64) {
            let set = |words: &[u64]| match limit {
                Limit::Keys(_) => 0,
                Limit::Timers(_) => layout.timers.set(&newest.of(words)[layout.timers.swept(generation)]),
            };
            let before = set(words);
            for part in &self.parts {
                layout.open(part.of_mut(words), generation);
            }
            self.load = self.load.saturating_sub(before - set(words));
        }
        words[1] = self.load;
        Ok(())
    }

    /// Returns what a key would add to the load.
    #[inline(always)]
    fn need(layout: &TimersInSlices, limit: Limit, newest: &[u64], rotation: TimerRotation, hash: u64) -> u64 {
        match limit {
            Limit::Keys(_) => u64::from(!layout.contains(newest, rotation, hash)),
            Limit::Timers(_) => layout.unset(newest, hash),
        }
    }

    /// Returns whether any part contains a key.
    #[inline(always)]
    fn contains(
        layout: &TimersInSlices,
        parts: &[TimerPart],
        words: &[u64],
        rotation: TimerRotation,
        hash: u64,
    ) -> bool {
        parts.iter().any(|part| layout.contains(part.of(words), rotation, hash))
    }

    /// Returns the addresses of the parts whose timers are prefetched.
    fn prefetched(parts: &[TimerPart], words: &[u64]) -> [Option<Address>; PREFETCHED] {
        std::array::from_fn(|i| parts.get(i).map(|part| Address::of(part.of(words))))
    }

    /// Inserts the keys in order. With `seen`, writes there which keys the parts contained; then without `refresh` only
    /// the other keys are inserted.
    ///
    /// If a new part cannot be allocated, the filter stays as it was before that key, and contains the keys before it.
    fn process(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: bool,
        mut seen: Option<&mut [bool]>,
    ) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.words.to_mut()?;
        let mut i = 0;
        while i < hashes.len() {
            let mut clock = self.clock;
            let (opened, run) = clock.run(at, i, hashes.len());
            if opened > 0 {
                self.age(&clock, opened)?;
            }
            let end = i + run;
            while i < end {
                // The clock moves no further than the keys inserted, so that after an error a moment can be passed
                // again.
                self.clock.reach(at, i..i + 1);
                // The newest part has room for this many keys, whichever they are.
                let room = usize::try_from((self.limit.most() - self.load) / self.step).unwrap_or(usize::MAX);
                let next = end.min(i.saturating_add(room.max(1)));
                if room == 0 {
                    self.make_room(hashes[i], refresh || seen.is_none())?;
                }
                let inserted =
                    self.write(&hashes[i..next], refresh, seen.as_deref_mut().map(|seen| &mut seen[i..next]))?;
                self.clock.reach(at, i..next);
                if inserted && let Some(latest) = self.clock.latest() {
                    self.parts[0].last = latest;
                    self.parts[0].write(segments::row::<TimerPart>(self.words.to_mut()?, HEAD, 0));
                }
                i = next;
            }
        }
        Ok(())
    }

    /// Adds a part if the newest has no room for this key and the key will be inserted: `always`, or if no part
    /// contains it.
    fn make_room(&mut self, hash: u64, always: bool) -> Result<(), Error> {
        let (rotation, words) = (self.layout.rotation(self.clock.generation(), 0), self.words.as_slice());
        let need = Self::need(&self.layout, self.limit, self.parts[0].of(words), rotation, hash);
        let inserts = always || !Self::contains(&self.layout, &self.parts, words, rotation, hash);
        if inserts && self.load + need > self.limit.most() {
            let newest = self.empty(self.clock.latest().unwrap_or(0));
            self.lay_out([&[newest], &self.parts[..]].concat(), 0)?;
        }
        Ok(())
    }

    /// Inserts keys of one generation, for which the newest part has room, as [`process`](Self::process) does. Returns
    /// whether a key was inserted.
    fn write(&mut self, hashes: &[u64], refresh: bool, mut seen: Option<&mut [bool]>) -> Result<bool, Error> {
        let (generation, words) = (self.clock.generation(), self.words.to_mut()?);
        let (layout, limit, parts) = (&self.layout, self.limit, &self.parts);
        let rotation = layout.rotation(generation, 0);
        let addresses = Self::prefetched(if seen.is_some() { parts } else { &parts[..1] }, words);
        let mut inserted = false;
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| addresses.iter().flatten().for_each(|&address| layout.prefetch_query(address, hash)),
            |j, hash| {
                if let Some(seen) = &mut seen {
                    seen[j] = Self::contains(layout, parts, words, rotation, hash);
                    if seen[j] && !refresh {
                        return;
                    }
                }
                let newest = parts[0].of_mut(words);
                self.load += Self::need(layout, limit, newest, rotation, hash);
                layout.insert(newest, rotation, hash);
                inserted = true;
            },
        );
        words[1] = self.load;
        self.clock.count(hashes.len() as u64);
        Ok(inserted)
    }

    /// Returns the share of live timers in each slice of each part, the newest part first.
    fn live(&self) -> Vec<f64> {
        let rotation = self.layout.rotation(self.clock.generation(), 0);
        self.parts.iter().flat_map(|part| self.layout.fill(part.of(self.words.as_slice()), rotation)).collect()
    }
}

impl Engine for Growing {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.process(hashes, at, true, None)
    }

    fn query_within(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        window: Option<u64>,
        present: &mut [bool],
    ) -> Result<(), Error> {
        let (layout, parts, words) = (&self.layout, &self.parts, self.words.as_slice());
        let addresses = Self::prefetched(parts, words);
        let prefetch = |hash| addresses.iter().flatten().for_each(|&address| layout.prefetch_query(address, hash));
        for_query_runs(layout, &self.clock, hashes.len(), at, window, |rotation, run| match rotation {
            Some(rotation) => in_flight(hashes, run, prefetch, |i, hash| {
                present[i] = Self::contains(layout, parts, words, rotation, hash);
            }),
            None => present[run].fill(false),
        })
    }

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.process(hashes, at, refresh == Refresh::Always, Some(seen))
    }

    fn merge(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(not_mergeable("timing filters that grow have parts of different times"))
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock = self.clock.with_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn tables(&self) -> usize {
        self.parts.len()
    }

    fn fill(&self) -> Vec<f64> {
        self.live()
    }

    fn match_rates(&self) -> Vec<f64> {
        self.live()
    }

    /// Returns an upper bound where a key has been inserted into several parts: parts then match less independently.
    fn false_positive_rate(&self) -> f64 {
        let rotation = self.layout.rotation(self.clock.generation(), 0);
        any(self.parts.iter().map(|part| self.layout.all_live(part.of(self.words.as_slice()), rotation)))
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl EvidenceSource for Growing {
    fn clock(&self) -> Clock {
        self.clock
    }

    /// Writes the evidence of the newest part that contains the key.
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let (layout, parts, words) = (&self.layout, &self.parts, self.words.as_slice());
        let (addresses, rotation) = (Self::prefetched(parts, words), layout.rotation(self.clock.generation(), 0));
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| addresses.iter().flatten().for_each(|&address| layout.prefetch_query(address, hash)),
            |i, hash| {
                let mut of_parts = parts.iter().map(|part| layout.evidence(part.of(words), rotation, hash)).enumerate();
                let newest = of_parts.find(|&(_, one)| one != Evidence::ABSENT);
                evidence[i] = newest.map_or(Evidence::ABSENT, |(part, one)| one.in_part(part));
            },
        );
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let latest = self.clock.latest().unwrap_or(0);
        let timers = |part: &TimerPart| {
            let since_last = latest.abs_diff(part.last) as f64 / 1e9;
            (since_last, self.layout.sampled(part.of(self.words.as_slice()), &self.clock))
        };
        Some(Box::new(timing::likelihood::PartsLikelihood::new(self.parts.iter().map(timers).collect())))
    }
}
