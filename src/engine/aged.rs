//! The engine of all cells that age by generations, in any layout. It is compiled for that of the default, whose single
//! keys need no call through a pointer then, and once for [all others](AnyCells).

use super::hashes::SelectedHashes;
use super::run::{AgedMut, age, for_query_runs, of_clock, publish};
use super::threads::{self, Chunk, Owned};
use super::{AnyCells, Engine, Insertion, Query, no_counts, not_mergeable};
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::abilities::Partition;
use crate::inference::{Code, Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;
use crate::memory::mapped::{LiveClock, RECORD, TABLE};

/// Cells that age by generations: a layout, its words, and the clock that opens the generations.
#[derive(Clone)]
pub struct Aged<L> {
    /// Where the bits of a key lie.
    pub layout: L,
    /// The cells.
    pub words: Words,
    /// The clock of the cells.
    pub clock: Clock,
}

impl Aged<AnyCells> {
    /// Returns an engine of any layout, boxed.
    pub fn boxed(layout: impl Layout, words: Words, clock: Clock) -> Box<dyn Engine> {
        AnyCells::of(layout).engine(words, clock)
    }
}

impl<L: Layout> Aged<L> {
    /// Returns the clock in a record and a table from a file, and the number of generations that the cells have yet to
    /// open.
    #[inline]
    fn clock_of(&self, record: [u64; RECORD], table: impl FnOnce() -> [u64; TABLE]) -> (Clock, u64) {
        let (record, pending_rotations) = of_clock(record);
        let clock = self.clock.clone().with_record(record);
        let generation = clock.generation();
        let clock = if clock.has_shares() { clock.with_table(generation, &table()) } else { clock };
        (clock, pending_rotations)
    }

    /// Returns the clock and the generations of [`clock_of`](Self::clock_of), and rejects a damaged clock.
    fn recorded(&self, record: [u64; RECORD], table: impl FnOnce() -> [u64; TABLE]) -> Result<(Clock, u64), Error> {
        let (clock, pending_rotations) = self.clock_of(record, table);
        if clock.is_sound() { Ok((clock, pending_rotations)) } else { Err(Error::format("the clock is damaged")) }
    }

    /// Reads the clock beside the cells, and opens the generations that a killed process has left unopened.
    fn catch_up_with_others(&mut self) -> Result<(), Error> {
        let Some(live) = self.words.live() else { return Ok(()) };
        live.end_move();
        let (clock, pending_rotations) = self.recorded(live.read(), || live.table())?;
        self.clock = clock;
        if pending_rotations > 0 {
            let (words, live) = self.words.to_mut_live()?;
            age(&self.layout, words, self.clock.generation(), pending_rotations);
            publish(live, &self.clock, 0);
        }
        Ok(())
    }

    /// Returns the clock beside the cells, if their entries may move while they are read.
    #[inline(always)]
    fn unsettled(&self) -> Option<LiveClock<'_>> {
        self.words.live().filter(|_| self.layout.abilities().still.is_some())
    }

    /// Answers queries as of the clock as it is.
    fn answer(&self, query: Query<'_>, present: &mut [bool]) -> Result<(), Error> {
        let answer = |rotation: Option<L::Rotation>, run: std::ops::Range<usize>| match rotation {
            Some(rotation) => self.layout.query_run(self.words.as_slice(), rotation, query.hashes, run, present),
            None => present[run].fill(false),
        };
        // A clock of this process alone is not copied.
        match self.words.live() {
            None => for_query_runs(&self.layout, &self.clock, query, answer),
            Some(_) => for_query_runs(&self.layout, &self.clock(), query, answer),
        }
    }

    /// Processes one key as [`seen_untimed`](Engine::seen_untimed) does, where the open generation is full.
    #[cold]
    fn seen_at_end(&mut self, hash: u64) -> Option<bool> {
        self.words.request_huge(self.clock.inserted(), 0);
        let words = self.words.private_mut()?;
        // The query comes first, while the old generation is open.
        let seen = self.layout.contains(words, self.layout.rotation(self.clock.generation(), 0), hash);
        self.clock.open_next();
        self.clock.count(1);
        age(&self.layout, words, self.clock.generation(), 1);
        self.layout.insert(words, self.layout.rotation(self.clock.generation(), 0), hash);
        Some(seen)
    }

    /// Returns the rotation of the open generation.
    fn rotation(&self) -> L::Rotation {
        let clock = self.clock();
        self.layout.rotation(clock.generation(), clock.expired())
    }
}

impl<L: Layout> Engine for Aged<L> {
    fn process(&mut self, hashes: &[u64], insertion: Insertion<'_>) -> Result<(), Error> {
        self.catch_up()?;
        let insertion = Insertion { at: self.clock.admit(insertion.at)?, ..insertion };
        self.words.request_huge(self.clock.inserted(), hashes.len());
        let (words, live) = self.words.to_mut_live()?;
        let mut cells = AgedMut { layout: &self.layout, words, clock: &mut self.clock, live };
        cells.process(SelectedHashes::all(hashes), insertion);
        publish(live, &self.clock, 0);
        Ok(())
    }

    fn process_shared(&mut self, keys: &mut Chunk<'_>, mut insertion: Insertion<'_>) -> Result<(), Error> {
        self.catch_up()?;
        let admitted = self.clock.admit(insertion.at)?;
        let at = std::mem::replace(&mut insertion.at, admitted);
        // If other processes use the cells and this one is killed, all cells agree with its clock. Where only delivered
        // keys count, the generation of a key depends on the answers to all keys before it.
        let waits = insertion.refresh.is_some_and(|refresh| refresh.waits(&self.clock));
        let count = if waits || self.words.live().is_some() { 1 } else { keys.partitions() };
        self.words.request_huge(self.clock.inserted(), keys.len());
        let (clock, words) = (self.clock.clone(), self.words.to_mut()?);
        let cells = |Partition { layout, words, .. }| Box::new(Owned { clock: clock.clone(), layout, words }) as _;
        match threads::divided(&self.layout, words, count, cells, keys, &mut insertion)? {
            Some(after) => self.clock = after,
            None => self.process(keys.hashes()?, Insertion { at, ..insertion })?,
        }
        Ok(())
    }

    fn query_within(&self, query: Query<'_>, present: &mut [bool]) -> Result<(), Error> {
        let Some(live) = self.unsettled() else { return self.answer(query, present) };
        let (answered, settled) = live.look(|| self.answer(query, present));
        if settled {
            return answered;
        }
        answered?;
        // Another process moves entries: each key that was not found may have been among them.
        for (i, present) in present.iter_mut().enumerate().filter(|(_, present)| !**present) {
            *present = live.settled(
                |found| !matches!(found, Ok(false)),
                || {
                    let mut found = [false];
                    self.answer(query.one(i), &mut found).map(|()| found[0])
                },
            )?;
        }
        Ok(())
    }

    // A search for runs takes longer than all the rest.
    fn contains_untimed(&self, hash: u64) -> Option<bool> {
        let words = self.words.private().filter(|_| self.clock.counts())?;
        Some(self.layout.contains(words, self.layout.rotation(self.clock.generation(), 0), hash))
    }

    fn seen_untimed(&mut self, hash: u64) -> Option<bool> {
        if !self.clock.counts_several() {
            return None;
        }
        if !self.clock.has_room() {
            return self.seen_at_end(hash);
        }
        let (words, rotation) = (self.words.private_mut()?, self.layout.rotation(self.clock.generation(), 0));
        self.clock.count(1);
        Some(self.layout.seen(words, rotation, hash))
    }

    fn count(&self, hashes: &[u64], counts: &mut [u64]) -> Result<(), Error> {
        for (count, &hash) in counts.iter_mut().zip(hashes) {
            *count = self.layout.count(self.words.as_slice(), hash).ok_or_else(no_counts)?;
        }
        Ok(())
    }

    fn distinct(&self) -> Option<f64> {
        self.layout.distinct(self.words.as_slice())
    }

    fn merge(&mut self, other: &dyn Engine) -> Result<(), Error> {
        if self.words.live().is_some() {
            return Err(Error::value(
                "cannot merge into a filter that processes share: save it, open the file, and merge into that",
            ));
        }
        if !self.layout.sets_bits() && self.layout.abilities().merge.is_none() {
            return Err(not_mergeable("the cells of this family cannot be combined"));
        }
        let (clock, ours_opened, theirs_opened) = self.clock.merged(&other.clock(), false)?;
        let (mut ours, mut theirs) = (self.words.clone(), other.words().clone());
        for (words, opened) in [(&mut ours, ours_opened), (&mut theirs, theirs_opened)] {
            if opened > 0 {
                age(&self.layout, words.to_mut()?, clock.generation(), opened);
            }
        }
        let (words, others) = (ours.to_mut()?, theirs.as_slice());
        match self.layout.abilities().merge {
            Some(merge) => merge(&self.layout, words, others, self.layout.rotation(clock.generation(), 0)),
            None => words.iter_mut().zip(others).for_each(|(word, other)| *word |= other),
        }
        (self.words, self.clock) = (ours, clock);
        Ok(())
    }

    fn verify(&self) -> Result<(), Error> {
        self.layout.verify(self.words.as_slice(), &self.clock)
    }

    fn shareable(&self) -> bool {
        self.layout.sets_bits() || self.layout.abilities().still.is_some()
    }

    // Only this test is inlined: most cells belong to one process, and a single insertion is short.
    #[inline(always)]
    fn catch_up(&mut self) -> Result<(), Error> {
        if self.words.live().is_some() { self.catch_up_with_others() } else { Ok(()) }
    }

    fn restore(&mut self, record: [u64; RECORD], table: &[u64; TABLE]) -> Result<(), Error> {
        let (clock, pending_rotations) = self.recorded(record, || *table)?;
        if pending_rotations > 0 && self.words.live().is_none() {
            age(&self.layout, self.words.to_mut()?, clock.generation(), pending_rotations);
        }
        self.clock = clock;
        Ok(())
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock.set_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the bytes of all cells in a window of time, where a gap may end many generations.
    fn most_written(&self) -> usize {
        let words = self.words.as_slice().len();
        8 * if self.clock.counts() { self.layout.most_opened(words) } else { words }
    }

    fn fill(&self) -> Vec<f64> {
        self.layout.fill(self.words.as_slice(), self.rotation())
    }

    fn match_rates(&self) -> Vec<f64> {
        self.layout.match_rates(self.words.as_slice(), self.rotation())
    }

    fn entries(&self) -> Option<Vec<f64>> {
        self.layout.entries(self.words.as_slice(), self.rotation())
    }

    fn false_positive_rate(&self) -> f64 {
        self.layout.false_positive_rate(self.words.as_slice(), self.rotation())
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl<L: Layout> EvidenceSource for Aged<L> {
    #[inline]
    fn clock(&self) -> Clock {
        match self.words.live() {
            None => self.clock.clone(),
            Some(live) => self.clock_of(live.read(), || live.table()).0,
        }
    }

    #[inline]
    fn inserted(&self) -> u64 {
        match self.words.live() {
            None => self.clock.inserted(),
            Some(_) => self.clock().inserted(),
        }
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let read = |hashes: &[u64], evidence: &mut [Evidence]| {
            self.layout.evidence_run(self.words.as_slice(), self.rotation(), hashes, evidence);
        };
        let Some(live) = self.unsettled() else { return read(hashes, evidence) };
        for (hash, evidence) in hashes.chunks(1).zip(evidence.chunks_mut(1)) {
            live.settled(|()| false, || read(hash, evidence));
        }
    }

    fn codes(&self, hashes: &[u64], codes: &mut [Code]) -> Option<fn(Code) -> Evidence> {
        self.layout.codes_run(self.words.as_slice(), self.rotation(), hashes, codes)
    }

    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        self.layout.likelihood(self.words.as_slice(), &self.clock(), question)
    }
}
