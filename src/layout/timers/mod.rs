//! Timers in words, wherever those of a key lie: which are live, and how expired ones are swept.

mod lines;
mod slices;

use std::ops::Range;

use crate::memory::lanes::Lanes;
use crate::memory::prefetch::Address;
use crate::shape::timing::{sweeps, timestamps};
pub use lines::TimersInLines;
pub use slices::TimersInSlices;

/// Timers of a filter, by the words they lie in.
#[derive(Clone, Copy)]
pub struct Timers {
    pub(crate) lanes: Lanes,
    /// Words of all timers.
    words: u64,
    /// Generations kept beyond the open one.
    blocks: u32,
    /// The greatest timestamp: they run from 1 to this.
    pub(crate) timestamps: u32,
    /// Parts in which the timers are swept.
    sweeps: u32,
}

/// The timestamp of the open generation, and how many generations up to it still count.
#[derive(Clone, Copy)]
pub struct TimerPhase {
    pub(crate) newest: u64,
    pub(crate) kept: u64,
}

impl Timers {
    pub(crate) fn new(bpt: u32, blocks: u32, words: u64) -> Self {
        Self { lanes: Lanes::new(bpt), words, blocks, timestamps: timestamps(bpt), sweeps: sweeps(bpt, blocks) }
    }

    /// Generations after which a timer no longer counts.
    pub(crate) fn generations(&self) -> u64 {
        u64::from(self.blocks) + 1
    }

    /// The phase of timers whose open generation is `generation`, as they will be once `pending` more have begun.
    pub(crate) fn phase(&self, generation: i64, pending: u64) -> TimerPhase {
        TimerPhase { newest: self.timestamp(generation), kept: self.generations().saturating_sub(pending) }
    }

    /// The phase of a query for what was set in the open generation and the `back` before it.
    pub(crate) fn phase_within(&self, generation: i64, back: u64) -> TimerPhase {
        TimerPhase { newest: self.timestamp(generation), kept: back + 1 }
    }

    fn timestamp(&self, generation: i64) -> u64 {
        generation.rem_euclid(self.timestamps.into()) as u64 + 1
    }

    /// The timestamp of the generation `age` before that of `newest`; `age` is below the number of timestamps.
    fn before(&self, newest: u64, age: u64) -> u64 {
        if newest > age { newest - age } else { newest + u64::from(self.timestamps) - age }
    }

    /// How many generations ago a timer was set, by the timestamp of the open one. Without a branch: which is the
    /// greater cannot be predicted.
    #[inline(always)]
    pub(crate) fn age(&self, timer: u64, newest: u64) -> u64 {
        let ago = newest.wrapping_sub(timer);
        ago.wrapping_add((((ago as i64) >> 63) as u64) & u64::from(self.timestamps))
    }

    /// Full generations kept beyond the open one.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Timers of a word.
    pub(crate) fn per_word(&self) -> u64 {
        self.lanes.per_word()
    }

    /// How many generations ago a timer, counted from the first of these words, was last set; `None` if it is empty.
    #[inline(always)]
    pub(crate) fn age_of(&self, words: &[u64], timer: u64, TimerPhase { newest, .. }: TimerPhase) -> Option<u64> {
        let (word, shift) = self.lanes.at(timer);
        let timer = self.lanes.get(words[word], shift);
        (timer != 0).then(|| self.age(timer, newest))
    }

    /// Sets a timer to `age` generations ago, unless it has been set since.
    #[inline(always)]
    pub(crate) fn raise(&self, words: &mut [u64], timer: u64, TimerPhase { newest, .. }: TimerPhase, age: u64) {
        let (word, shift) = self.lanes.at(timer);
        let there = self.lanes.get(words[word], shift);
        if there == 0 || self.age(there, newest) > age {
            words[word] = self.lanes.with(words[word], shift, self.before(newest, age));
        }
    }

    /// Prefetches a timer.
    #[inline(always)]
    pub(crate) fn fetch(&self, words: Address, timer: u64) {
        words.fetch(self.lanes.at(timer).0);
    }

    /// Empties the expired timers of these words, just before a generation opens. All that counts was set in the
    /// `blocks` generations before it. A timer with the new generation's timestamp is a full cycle of timestamps old,
    /// since nothing has been set in the new one yet. [`sweeps`] proves that no timer is ever older.
    pub(crate) fn sweep(&self, words: &mut [u64], generation: i64) {
        let newest = self.timestamp(generation);
        let (first, last) = (self.before(newest, self.blocks.into()), self.before(newest, 1));
        for word in words {
            *word = self.lanes.keep(*word, first, last);
        }
    }

    /// How many timers of these words are live.
    pub(crate) fn count(&self, words: &[u64], TimerPhase { newest, kept }: TimerPhase) -> u64 {
        if kept == 0 {
            return 0;
        }
        let oldest = self.before(newest, kept - 1);
        words.iter().map(|&word| u64::from(self.lanes.count_within(word, oldest, newest))).sum()
    }

    /// The words that are swept when a generation opens.
    pub(crate) fn swept(&self, generation: i64) -> Range<usize> {
        let words = self.words();
        let part = words.div_ceil(self.sweeps as usize);
        let start = (generation.rem_euclid(self.sweeps.into()) as usize * part).min(words);
        start..(start + part).min(words)
    }

    /// The words to sweep among those in this place, counted from its first.
    pub(crate) fn swept_within(&self, generation: i64, place: Range<usize>) -> Range<usize> {
        let swept = self.swept(generation);
        let start = swept.start.clamp(place.start, place.end);
        start - place.start..swept.end.clamp(start, place.end) - place.start
    }

    /// Sweeps those of all words that are due, just before a generation opens.
    pub(crate) fn open(&self, words: &mut [u64], generation: i64) {
        self.sweep(&mut words[self.swept(generation)], generation);
    }

    /// The ages of the live timers of a word.
    pub(crate) fn live_ages(self, word: u64, TimerPhase { newest, kept }: TimerPhase) -> impl Iterator<Item = u64> {
        let timers = (0..self.lanes.per_word()).map(move |lane| self.lanes.get(word, self.lanes.shift(lane)));
        timers.filter(|&timer| timer != 0).map(move |timer| self.age(timer, newest)).filter(move |&age| age < kept)
    }

    /// Words of all timers.
    pub(crate) fn words(&self) -> usize {
        self.words as usize
    }

    /// How many timers of these words are set, live or not.
    pub(crate) fn set(&self, words: &[u64]) -> u64 {
        words.iter().map(|&word| u64::from(self.lanes.count_within(word, 1, self.timestamps.into()))).sum()
    }
}

/// Which timers a key has, whatever the layout.
#[derive(Clone, Copy)]
pub(crate) enum Places {
    Slices(TimersInSlices),
    OneLine(TimersInLines<1>),
    TwoLines(TimersInLines<2>),
}

impl Places {
    /// The timers themselves.
    pub(crate) fn timers(&self) -> Timers {
        match self {
            Self::Slices(slices) => slices.timers,
            Self::OneLine(lines) => lines.timers,
            Self::TwoLines(lines) => lines.timers,
        }
    }

    /// Writes the k cells of each key, counted over all words.
    pub(crate) fn of_keys<'a>(&self, keys: impl Iterator<Item = (u64, &'a mut [u64])>) {
        match self {
            Self::Slices(slices) => keys.for_each(|(hash, cells)| slices.cells(hash, cells)),
            Self::OneLine(lines) => keys.for_each(|(hash, cells)| lines.cells(hash, cells)),
            Self::TwoLines(lines) => keys.for_each(|(hash, cells)| lines.cells(hash, cells)),
        }
    }
}
