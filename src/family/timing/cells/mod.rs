//! Timers in words: which are live, and how expired timers are swept.

mod slices;

use std::ops::Range;

use super::shape::{sweeps, timestamps};
use crate::memory::lanes::Lanes;
use crate::memory::prefetch::Address;
pub use slices::TimersInSlices;

/// The timers of a filter, in words.
#[derive(Clone, Copy)]
pub struct TimerWords {
    pub(crate) lanes: Lanes,
    /// The number of words of all timers.
    words: u64,
    /// The number of generations retained beyond the open one.
    blocks: u32,
    /// The greatest timestamp; the least is 1, and 0 is an empty timer.
    pub(crate) timestamps: u32,
    /// The number of generations in which all words are swept once.
    sweeps: u32,
}

/// The timestamp of the open generation, and the number of generations up to it that are retained.
#[derive(Clone, Copy)]
pub struct TimerRotation {
    pub(crate) newest: u64,
    pub(crate) retained: u64,
}

impl TimerWords {
    /// Returns timers of `bpt` bits in `words` words, which retain `blocks` generations beyond the open one.
    pub(crate) fn new(bpt: u32, blocks: u32, words: u64) -> Self {
        Self { lanes: Lanes::new(bpt), words, blocks, timestamps: timestamps(bpt), sweeps: sweeps(bpt, blocks) }
    }

    /// Returns the number of generations after which a timer has expired.
    pub(crate) fn generations(&self) -> u64 {
        u64::from(self.blocks) + 1
    }

    /// Returns the rotation while `generation` is open, as it will be after `pending` more generations.
    pub(crate) fn rotation(&self, generation: i64, pending: u64) -> TimerRotation {
        TimerRotation { newest: self.timestamp(generation), retained: self.generations().saturating_sub(pending) }
    }

    /// Returns the timestamp of a generation.
    fn timestamp(&self, generation: i64) -> u64 {
        generation.rem_euclid(self.timestamps.into()) as u64 + 1
    }

    /// Returns the timestamp of the generation `age` before that of `newest`; `age` is below the number of timestamps.
    fn before(&self, newest: u64, age: u64) -> u64 {
        if newest > age { newest - age } else { newest + u64::from(self.timestamps) - age }
    }

    /// Returns how many generations ago a timer was set, if `newest` is the timestamp of the open one. A branch on
    /// which of the two is greater would be mispredicted.
    #[inline(always)]
    pub(crate) fn age(&self, timer: u64, newest: u64) -> u64 {
        let ago = newest.wrapping_sub(timer);
        ago.wrapping_add((((ago as i64) >> 63) as u64) & u64::from(self.timestamps))
    }

    /// Returns the number of generations retained beyond the open one.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the number of timers of a word.
    pub(crate) fn per_word(&self) -> u64 {
        self.lanes.per_word()
    }

    /// Returns how many generations ago a timer, counted from the first of these words, was last set; `None` if it is
    /// empty.
    #[inline(always)]
    pub(crate) fn age_of(&self, words: &[u64], timer: u64, TimerRotation { newest, .. }: TimerRotation) -> Option<u64> {
        let (word, shift) = self.lanes.at(timer);
        let timer = self.lanes.get(words[word], shift);
        (timer != 0).then(|| self.age(timer, newest))
    }

    /// Sets a timer to `age` generations ago, unless it has been set since then.
    #[inline(always)]
    pub(crate) fn raise(&self, words: &mut [u64], timer: u64, TimerRotation { newest, .. }: TimerRotation, age: u64) {
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

    /// Empties the expired timers of these words, just before a generation opens. Live timers were set in the
    /// `blocks` generations before it. A timer with the new generation's timestamp is a full cycle of timestamps old,
    /// because none has been set in the new generation yet. [`sweeps`] proves that no timer is ever older.
    pub(crate) fn sweep(&self, words: &mut [u64], generation: i64) {
        let newest = self.timestamp(generation);
        let (first, last) = (self.before(newest, self.blocks.into()), self.before(newest, 1));
        for word in words {
            *word = self.lanes.keep(*word, first, last);
        }
    }

    /// Returns how many timers of these words are live.
    pub(crate) fn count(&self, words: &[u64], TimerRotation { newest, retained }: TimerRotation) -> u64 {
        if retained == 0 {
            return 0;
        }
        let oldest = self.before(newest, retained - 1);
        words.iter().map(|&word| u64::from(self.lanes.count_within(word, oldest, newest))).sum()
    }

    /// Returns the words that are swept when a generation opens.
    pub(crate) fn swept(&self, generation: i64) -> Range<usize> {
        let words = self.words();
        let part = words.div_ceil(self.sweeps as usize);
        let start = (generation.rem_euclid(self.sweeps.into()) as usize * part).min(words);
        start..(start + part).min(words)
    }

    /// Returns the words that are swept within `place` when a generation opens, counted from the start of `place`.
    pub(crate) fn swept_within(&self, generation: i64, place: Range<usize>) -> Range<usize> {
        let swept = self.swept(generation);
        let start = swept.start.clamp(place.start, place.end);
        start - place.start..swept.end.clamp(start, place.end) - place.start
    }

    /// Sweeps the words that are due just before a generation opens.
    pub(crate) fn open(&self, words: &mut [u64], generation: i64) {
        self.sweep(&mut words[self.swept(generation)], generation);
    }

    /// Returns the ages of the live timers of a word.
    pub(crate) fn live_ages(
        self,
        word: u64,
        TimerRotation { newest, retained }: TimerRotation,
    ) -> impl Iterator<Item = u64> {
        let timers = (0..self.lanes.per_word()).map(move |lane| self.lanes.get(word, self.lanes.shift(lane)));
        timers.filter(|&timer| timer != 0).map(move |timer| self.age(timer, newest)).filter(move |&age| age < retained)
    }

    /// Returns the number of words of all timers.
    pub(crate) fn words(&self) -> usize {
        usize::try_from(self.words).unwrap_or(usize::MAX)
    }

    /// Returns how many timers of these words are set, live or expired.
    pub(crate) fn set(&self, words: &[u64]) -> u64 {
        words.iter().map(|&word| u64::from(self.lanes.count_within(word, 1, self.timestamps.into()))).sum()
    }
}
