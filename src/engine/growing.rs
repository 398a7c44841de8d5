//! Timers of dynamic size (paper 4, section 5): parts of one size are added as keys come, and dropped when all of their
//! timers have expired. Keys go to the newest part, queries ask all parts.
//!
//! All parts have the same hash functions, as in the paper. A key seen again while an older part holds it is written
//! into the newest like any other; the older part forgets it in its own time.

use super::{Engine, Refresh};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::inference::{Evidence, Likelihood, Question, timing};
use crate::layout::Layout;
use crate::layout::parts::{self, Part as _};
use crate::layout::timers::{TimerPhase, TimersInSlices};
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::memory::prefetch::in_flight;
use crate::shape::growing::{self, Limit, any};

/// Words before the table: number of parts, load of the newest.
const HEAD: usize = 2;

/// Parts whose timers are prefetched, the newest first: at the planned rate there are no more. With 16 keys ahead and k
/// = 7, a hundred parts would be 11,000 lines, and the last would evict the first before they are read.
const FETCHED: usize = 2;

/// One part, as in its row of the table.
#[derive(Clone, Copy)]
struct Part {
    /// The word its timers begin at.
    start: usize,
    len: usize,
    /// The generation of its last insertion, or the one it was opened in.
    last: i64,
}

impl parts::Part for Part {
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

impl Part {
    fn of(self, words: &[u64]) -> &[u64] {
        &words[self.start..][..self.len]
    }

    fn of_mut(self, words: &mut [u64]) -> &mut [u64] {
        &mut words[self.start..][..self.len]
    }
}

/// The parts, the newest first, and their clock.
#[derive(Clone)]
pub struct Growing {
    layout: TimersInSlices,
    limit: Limit,
    /// The most that one key adds to the load.
    step: u64,
    clock: Clock,
    /// Head, table and timers: all that is saved.
    words: Words,
    /// The table, as `words` has it.
    parts: Vec<Part>,
    /// The newest part's count of what the limit bounds: keys, or set timers.
    load: u64,
}

impl Growing {
    /// The parts that [`lay_out`](Self::lay_out) wrote into these words; without words, one empty part.
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

    /// Reads the table, trusting nothing.
    fn read(mut self) -> Result<Self, Error> {
        let damaged = || Error::format("the table of parts is damaged");
        let [parts, load, ..] = *self.words.as_slice() else {
            return Err(damaged());
        };
        let (len, mut newer) = (self.layout.timers.words(), self.clock.generation());
        let table = parts::read(self.words.as_slice(), HEAD, parts, |_, row| {
            let older = row[0] as i64 <= newer;
            newer = row[0] as i64;
            older.then_some(Part { start: 0, len, last: newer })
        });
        let parts = table.filter(|parts| !parts.is_empty() && load <= self.limit.most()).ok_or_else(damaged)?;
        (self.parts, self.load) = (parts, load);
        Ok(self)
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    fn empty(&self, generation: i64) -> Part {
        Part { start: 0, len: self.layout.timers.words(), last: generation }
    }

    /// Replaces the parts; `load` is that of the newest. On an error nothing has changed.
    fn lay_out(&mut self, mut parts: Vec<Part>, load: u64) -> Result<(), Error> {
        parts::lay_out(&mut self.words, &[parts.len() as u64, load], &mut parts)?;
        (self.parts, self.load) = (parts, load);
        Ok(())
    }

    /// Opens the last `begun` generations up to `open`: drops parts whose last insertion no longer counts, and sweeps
    /// the timers of the others. On an error nothing has changed.
    fn age(&mut self, open: i64, begun: u64) -> Result<(), Error> {
        let live = self.parts.partition_point(|part| open.abs_diff(part.last) < self.layout.generations());
        if live == 0 {
            return self.lay_out(vec![self.empty(open)], 0);
        }
        if live < self.parts.len() {
            self.lay_out(self.parts[..live].to_vec(), self.load)?;
        }
        let (layout, limit, newest, words) = (self.layout, self.limit, self.parts[0], self.words.to_mut()?);
        for generation in (0..begun).rev().map(|later| open - later as i64) {
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

    /// What a key would add to the load.
    #[inline(always)]
    fn need(layout: &TimersInSlices, limit: Limit, newest: &[u64], phase: TimerPhase, hash: u64) -> u64 {
        match limit {
            Limit::Keys(_) => u64::from(!layout.contains(newest, phase, hash)),
            Limit::Timers(_) => layout.unset(newest, hash),
        }
    }

    #[inline(always)]
    fn contains(layout: &TimersInSlices, parts: &[Part], words: &[u64], phase: TimerPhase, hash: u64) -> bool {
        parts.iter().any(|part| layout.contains(part.of(words), phase, hash))
    }

    /// Addresses of the timers to prefetch.
    fn ahead(parts: &[Part], words: &[u64]) -> [Option<Address>; FETCHED] {
        std::array::from_fn(|i| parts.get(i).map(|part| Address::of(part.of(words))))
    }

    /// Inserts the keys in order. With `seen`, writes there which were held; then without `refresh` only the others are
    /// inserted.
    ///
    /// If a new part cannot be allocated, the error leaves the filter as it was before that key; the keys before it are
    /// inserted.
    fn take(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: bool,
        mut seen: Option<&mut [bool]>,
    ) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.words.to_mut()?;
        let mut i = 0;
        while i < hashes.len() {
            let mut clock = self.clock;
            let (begun, run) = clock.run(at, i, hashes.len());
            if begun > 0 {
                self.age(clock.generation(), begun)?;
            }
            let end = i + run;
            while i < end {
                // No further than the keys go: after an error a moment can be told again.
                self.clock.reach(at, i..i + 1);
                let sure = usize::try_from((self.limit.most() - self.load) / self.step).unwrap_or(usize::MAX);
                let next = end.min(i.saturating_add(sure.max(1)));
                if sure == 0 {
                    self.make_room(hashes[i], refresh || seen.is_none())?;
                }
                self.write(&hashes[i..next], refresh, seen.as_deref_mut().map(|seen| &mut seen[i..next]))?;
                self.clock.reach(at, i..next);
                i = next;
            }
        }
        Ok(())
    }

    /// Opens another part if the newest has no room for this key and the key will be inserted: `always`, or if it is
    /// not held.
    fn make_room(&mut self, hash: u64, always: bool) -> Result<(), Error> {
        let (phase, words) = (self.layout.phase(self.clock.generation(), 0), self.words.as_slice());
        let need = Self::need(&self.layout, self.limit, self.parts[0].of(words), phase, hash);
        let wanted = always || !Self::contains(&self.layout, &self.parts, words, phase, hash);
        if wanted && self.load + need > self.limit.most() {
            let newest = self.empty(self.clock.generation());
            self.lay_out([&[newest], &self.parts[..]].concat(), 0)?;
        }
        Ok(())
    }

    /// Does [`take`](Self::take) for keys of one generation that the newest part has room for.
    fn write(&mut self, hashes: &[u64], refresh: bool, mut seen: Option<&mut [bool]>) -> Result<(), Error> {
        let (generation, words) = (self.clock.generation(), self.words.to_mut()?);
        let (layout, limit, parts) = (&self.layout, self.limit, &self.parts);
        let phase = layout.phase(generation, 0);
        let addresses = Self::ahead(if seen.is_some() { parts } else { &parts[..1] }, words);
        let mut inserted = false;
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| addresses.iter().flatten().for_each(|&address| layout.fetch_all(address, hash)),
            |j, hash| {
                if let Some(seen) = &mut seen {
                    seen[j] = Self::contains(layout, parts, words, phase, hash);
                    if seen[j] && !refresh {
                        return;
                    }
                }
                let newest = parts[0].of_mut(words);
                self.load += Self::need(layout, limit, newest, phase, hash);
                layout.insert(newest, phase, hash);
                inserted = true;
            },
        );
        if inserted {
            self.parts[0].last = generation;
            self.parts[0].write(parts::row::<Part>(words, HEAD, 0));
            words[1] = self.load;
        }
        self.clock.count(hashes.len() as u64);
        Ok(())
    }

    /// As [`Aged`](super::Aged) does.
    fn query_runs(&self, hashes: &[u64], present: &mut [bool], next: impl Fn(usize) -> (Option<TimerPhase>, usize)) {
        let (layout, parts, words) = (&self.layout, &self.parts, self.words.as_slice());
        let addresses = Self::ahead(parts, words);
        let mut i = 0;
        while i < hashes.len() {
            let (phase, run) = next(i);
            let holds = |hash| phase.is_some_and(|phase| Self::contains(layout, parts, words, phase, hash));
            in_flight(
                hashes,
                i..i + run,
                |hash| addresses.iter().flatten().for_each(|&address| layout.fetch_all(address, hash)),
                |j, hash| present[j] = holds(hash),
            );
            i += run;
        }
    }

    /// One value for each slice of each part, the newest part first.
    fn live(&self) -> Vec<f64> {
        let phase = self.layout.phase(self.clock.generation(), 0);
        self.parts.iter().flat_map(|part| self.layout.fill(part.of(self.words.as_slice()), phase)).collect()
    }
}

impl Engine for Growing {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.take(hashes, at, true, None)
    }

    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let (at, generation) = (self.clock.asked(at), self.clock.generation());
        self.query_runs(hashes, present, |i| {
            let (pending, run) = self.clock.pending(at, i, hashes.len());
            (Some(self.layout.phase(generation, pending)), run)
        });
        Ok(())
    }

    fn query_within(&self, hashes: &[u64], at: Moments<'_>, window: u64, present: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let window = self.clock.window().part(window)?;
        let (at, generation) = (self.clock.asked(at), self.clock.generation());
        self.query_runs(hashes, present, |i| {
            let (back, run) = self.clock.within(window, at, i, hashes.len());
            (back.map(|back| self.layout.timers.phase_within(generation, back)), run)
        });
        Ok(())
    }

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.take(hashes, at, refresh == Refresh::Always, Some(seen))
    }

    fn unite(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(Error::value("timing filters that grow cannot be united: their parts were opened at different times"))
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn set_ahead(&mut self, ahead: Option<u64>) {
        self.clock = self.clock.with_ahead(ahead);
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn fill(&self) -> Vec<f64> {
        self.live()
    }

    fn match_rates(&self) -> Vec<f64> {
        self.live()
    }

    /// An upper bound where keys have been seen again in another part: parts then match less independently.
    fn false_positive_rate(&self) -> f64 {
        let phase = self.layout.phase(self.clock.generation(), 0);
        any(self.parts.iter().map(|part| self.layout.all_live(part.of(self.words.as_slice()), phase)))
    }

    /// The evidence of the newest part that has the key.
    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let (layout, parts, words) = (&self.layout, &self.parts, self.words.as_slice());
        let (addresses, phase) = (Self::ahead(parts, words), layout.phase(self.clock.generation(), 0));
        in_flight(
            hashes,
            0..hashes.len(),
            |hash| addresses.iter().flatten().for_each(|&address| layout.fetch_all(address, hash)),
            |i, hash| {
                let mut said = parts.iter().map(|part| layout.evidence(part.of(words), phase, hash));
                let newest = said.by_ref().enumerate().find(|&(_, said)| said != Evidence::ABSENT);
                evidence[i] = newest.map_or(Evidence::ABSENT, |(part, said)| said.in_part(part));
            },
        );
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let timers = |part: &Part| self.layout.sampled(part.of(self.words.as_slice()), &self.clock);
        Some(Box::new(timing::Parts::new(self.parts.iter().map(timers).collect())))
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}
