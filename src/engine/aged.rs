//! An engine whose cells age by generations, in any layout.

use std::any::Any;
use std::ops::Range;

use super::hashes::Hashes;
use super::run::{AgedMut, age, tell};
use super::threads::{self, Stretch};
use super::{Engine, Refresh, no_ages};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::layout::Layout;
use crate::memory::Words;
use crate::memory::mapped::RECORD;

/// Cells that age by generations: a layout, its words, and the clock that opens the generations.
#[derive(Clone)]
pub struct Aged<L> {
    /// Where the bits of a key lie.
    pub layout: L,
    /// The cells.
    pub words: Words,
    /// Their clock.
    pub clock: Clock,
}

impl<L: Layout> Aged<L> {
    /// An engine of any layout, boxed.
    pub(crate) fn boxed(layout: L, words: Words, clock: Clock) -> Box<dyn Engine> {
        Box::new(Self { layout, words, clock })
    }

    /// Has keys act in pieces, after each of which the cells look how full they are. What the pieces are depends on
    /// the keys so far alone, so that batches give what their keys give one by one.
    fn in_pieces(&mut self, keys: usize, act: &mut dyn FnMut(AgedMut<'_, L>, Range<usize>)) -> Result<(), Error> {
        let mut start = 0;
        while start < keys {
            let (before, every) = (self.clock.inserted(), self.layout.looks_every().unwrap_or(u64::MAX));
            let room = usize::try_from(every - before % every).unwrap_or(usize::MAX);
            let end = keys.min(start.saturating_add(room));
            let words = self.words.to_mut()?;
            act(AgedMut { layout: self.layout, words, clock: &mut self.clock, live: None }, start..end);
            let after = self.clock.inserted();
            if after > before && after.is_multiple_of(every) {
                let phase = self.layout.phase(self.clock.generation(), 0);
                if let Some((layout, words)) = self.layout.regrown(self.words.as_slice(), phase) {
                    (self.layout, self.words) = (layout, words);
                }
            }
            start = end;
        }
        Ok(())
    }

    /// Into how many parts to cut the cells for these keys. One, where other processes write to them: of a process that
    /// is killed, all cells are then as far as its clock.
    fn threads(&self, keys: &Stretch<'_>) -> usize {
        if self.words.live().is_some() { 1 } else { keys.parts() }
    }

    /// Has keys answered run by run: with the phase in which they are asked for, in a window that is at most the
    /// filter's own, or in this; or with none, where no key is left to be there.
    pub(crate) fn answer(
        &self,
        keys: usize,
        at: Moments<'_>,
        window: Option<u64>,
        mut answer: impl FnMut(Option<L::Phase>, Range<usize>),
    ) -> Result<(), Error> {
        let clock = self.clock();
        let generation = clock.generation();
        if window.is_some() {
            self.layout.phase_within(generation, 0).ok_or_else(no_ages)?;
        }
        clock.check(at, false)?;
        let window = window.map(|window| clock.window().part(window)).transpose()?;
        let (at, mut i) = (clock.asked(at), 0);
        while i < keys {
            let (phase, run) = match window {
                None => {
                    let (pending, run) = clock.pending(at, i, keys);
                    (Some(self.layout.phase(generation, pending)), run)
                }
                Some(window) => {
                    let (back, run) = clock.within(window, at, i, keys);
                    (back.and_then(|back| self.layout.phase_within(generation, back)), run)
                }
            };
            answer(phase, i..i + run);
            i += run;
        }
        Ok(())
    }

    /// Answers whether keys are there.
    fn present(&self, hashes: &[u64], at: Moments<'_>, window: Option<u64>, present: &mut [bool]) -> Result<(), Error> {
        self.answer(hashes.len(), at, window, |phase, run| match phase {
            Some(phase) => self.layout.query_run(self.words.as_slice(), phase, hashes, run, present),
            None => present[run].fill(false),
        })
    }
}

impl<L: Layout> Engine for Aged<L> {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.catch_up()?;
        self.clock.check(at, true)?;
        if self.layout.looks_every().is_some() {
            return self.in_pieces(hashes.len(), &mut |mut cells, keys| {
                cells.insert(Hashes::all(&hashes[keys.clone()]), at.slice(keys));
            });
        }
        // The layout is copied last: within a `Result` it is packed in pieces that wait for each other, and the
        // insertion of a single key took a fifth longer.
        let (words, live) = self.words.to_mut_live()?;
        AgedMut { layout: self.layout, words, clock: &mut self.clock, live }.insert(Hashes::all(hashes), at);
        tell(live, &self.clock, 0);
        Ok(())
    }

    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.present(hashes, at, None, present)
    }

    fn query_within(&self, hashes: &[u64], at: Moments<'_>, window: u64, present: &mut [bool]) -> Result<(), Error> {
        self.present(hashes, at, Some(window), present)
    }

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.catch_up()?;
        self.clock.check(at, true)?;
        if self.layout.looks_every().is_some() {
            return self.in_pieces(hashes.len(), &mut |mut cells, keys| {
                let own = Hashes::all(&hashes[keys.clone()]);
                cells.duplicated(own, at.slice(keys.clone()), refresh, &mut seen[keys]);
            });
        }
        let (words, live) = self.words.to_mut_live()?;
        let mut cells = AgedMut { layout: self.layout, words, clock: &mut self.clock, live };
        cells.duplicated(Hashes::all(hashes), at, refresh, seen);
        tell(live, &self.clock, 0);
        Ok(())
    }

    fn insert_shared(&mut self, keys: &mut Stretch<'_>, at: Moments<'_>) -> Result<(), Error> {
        self.catch_up()?;
        self.clock.check(at, true)?;
        let threads = self.threads(keys);
        let parts = self.layout.cut(self.words.to_mut()?, threads);
        if parts.is_empty() {
            return self.insert(keys.hashes()?, at);
        }
        self.clock = threads::insert(parts, self.clock, keys, at)?;
        Ok(())
    }

    fn duplicated_shared(
        &mut self,
        keys: &mut Stretch<'_>,
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        self.catch_up()?;
        self.clock.check(at, true)?;
        // Where only what is delivered counts, the generation of a key depends on the answers to all before it.
        let threads = if refresh.waits(&self.clock) { 1 } else { self.threads(keys) };
        let parts = self.layout.cut(self.words.to_mut()?, threads);
        if parts.is_empty() {
            return self.duplicated(keys.hashes()?, at, refresh, seen);
        }
        self.clock = threads::duplicated(parts, self.clock, keys, at, refresh, seen)?;
        Ok(())
    }

    fn unite(&mut self, other: &dyn Engine) -> Result<(), Error> {
        if self.words.live().is_some() {
            return Err(Error::value(
                "a filter that processes share takes in no other: save it, open it, and unite that",
            ));
        }
        let (clock, ours_begun, theirs_begun) = self.clock.united(&other.clock())?;
        let theirs = (other as &dyn Any).downcast_ref::<Self>().map_or(self.layout, |theirs| theirs.layout);
        let (mut ours, mut theirs) = ((self.layout, self.words.clone()), (theirs, other.words().clone()));
        for ((layout, words), begun) in [(&mut ours, ours_begun), (&mut theirs, theirs_begun)] {
            if begun > 0 {
                age(*layout, words.to_mut()?, clock.generation(), begun);
            }
        }
        let phase = self.layout.phase(clock.generation(), 0);
        let grown = |from: &(L, Words), to: &(L, Words)| from.0.grown_as(&to.0, from.1.as_slice(), phase);
        if let Some(grown) = grown(&ours, &theirs)? {
            ours = grown;
        } else if let Some(grown) = grown(&theirs, &ours)? {
            theirs = grown;
        }
        ours.0.unite(ours.1.to_mut()?, theirs.1.as_slice(), phase)?;
        ((self.layout, self.words), self.clock) = (ours, clock);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.layout.check(self.words.as_slice())
    }

    fn verify(&self) -> Result<(), Error> {
        self.layout.verify(self.words.as_slice(), &self.clock)
    }

    fn shareable(&self) -> bool {
        L::SETS_BITS
    }

    #[inline]
    fn catch_up(&mut self) -> Result<(), Error> {
        let Some(live) = self.words.live() else { return Ok(()) };
        self.take_up(live.read())
    }

    fn take_up(
        &mut self,
        [inserted, timed, latest, by_system, generation, unaged]: [u64; RECORD],
    ) -> Result<(), Error> {
        let clock = self.clock.retold([inserted, timed, latest, by_system, generation]);
        if !clock.is_sound() {
            return Err(Error::format("the clock is damaged"));
        }
        let (words, live) = self.words.to_mut_live()?;
        if unaged > 0 {
            age(self.layout, words, clock.generation(), unaged);
            tell(live, &clock, 0);
        }
        self.clock = clock;
        Ok(())
    }

    #[inline]
    fn clock(&self) -> Clock {
        match self.words.live() {
            None => self.clock,
            Some(live) => {
                let [told @ .., _] = live.read();
                self.clock.retold(told)
            }
        }
    }

    fn set_ahead(&mut self, ahead: Option<u64>) {
        self.clock = self.clock.with_ahead(ahead);
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn fill(&self) -> Vec<f64> {
        self.layout.fill(self.words.as_slice(), self.layout.phase(self.clock().generation(), 0))
    }

    fn match_rates(&self) -> Vec<f64> {
        self.layout.match_rates(self.words.as_slice(), self.layout.phase(self.clock().generation(), 0))
    }

    fn false_positive_rate(&self) -> f64 {
        self.layout.false_positive_rate(self.words.as_slice(), self.layout.phase(self.clock().generation(), 0))
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let phase = self.layout.phase(self.clock().generation(), 0);
        self.layout.evidence_run(self.words.as_slice(), phase, hashes, evidence);
    }

    fn coded(&self) -> Option<fn(Code) -> Evidence> {
        self.layout.coded()
    }

    fn codes(&self, hashes: &[u64], codes: &mut [Code]) {
        let phase = self.layout.phase(self.clock().generation(), 0);
        self.layout.codes_run(self.words.as_slice(), phase, hashes, codes);
    }

    fn likelihood(&self, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        self.layout.likelihood(self.words.as_slice(), &self.clock(), question)
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}
