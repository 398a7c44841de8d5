//! k slices of timers: which of them are a key's, which are live, and the sweep of those that have expired.

use std::ops::Range;

use crate::bits::{Address, odd_constants, scale};
use crate::clock::Clock;
use crate::inference::{Likelihood, Question, timing};
use crate::lanes::Lanes;
use crate::layout::Layout;
use crate::sizing::timing::{MAX_HASHES, Shape};

/// Which timer a key takes in each slice: positions are made as in [`cells`](crate::cells), with the same floor of
/// errors, n / 2^64 for n keys.
static PLACE: [u64; MAX_HASHES as usize] = odd_constants(0);

/// Timers of a slice that are counted for inference: places are hashed, so the first are as good as any. At k = 7 they
/// give the share of each of 16 blocks to 1 %, in 0.3 ms.
const SAMPLE: u64 = 1 << 14;

/// k slices of timers.
#[derive(Clone, Copy)]
pub(crate) struct Timers {
    lanes: Lanes,
    /// Words of one slice.
    stride: u64,
    k: u32,
    /// Generations kept beside the open one.
    blocks: u32,
    /// Distinct timestamps: 1 to so many.
    timestamps: u32,
    /// Parts in which the timers are swept.
    sweeps: u32,
    /// How many of a key's timers must be equal.
    equal: u32,
}

/// The timestamp of the open generation, and how many generations, counted from it, still count.
#[derive(Clone, Copy)]
pub(crate) struct Phase {
    newest: u64,
    kept: u64,
}

impl Timers {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            lanes: Lanes::new(shape.bpt),
            stride: shape.words,
            k: shape.k,
            blocks: shape.blocks,
            timestamps: shape.timestamps(),
            sweeps: shape.sweeps(),
            equal: shape.equal_timers,
        }
    }

    fn timestamp(&self, generation: i64) -> u64 {
        generation.rem_euclid(self.timestamps.into()) as u64 + 1
    }

    /// The timestamp of the generation `age` before that of `newest`; `age` is below the number of timestamps.
    fn before(&self, newest: u64, age: u64) -> u64 {
        if newest > age { newest - age } else { newest + u64::from(self.timestamps) - age }
    }

    /// The word and the shift in it of a key's timer in one slice.
    #[inline(always)]
    fn place(&self, slice: u32, hash: u64) -> (usize, u32) {
        let (word, shift) = self.lanes.place(hash.wrapping_mul(PLACE[slice as usize]), self.stride);
        (slice as usize * self.stride as usize + word, shift)
    }

    /// What a key's timer in one slice holds.
    #[inline(always)]
    fn timer(&self, words: &[u64], slice: u32, hash: u64) -> u64 {
        let (word, shift) = self.place(slice, hash);
        self.lanes.get(words[word], shift)
    }

    /// How many generations ago a timer was set, by the timestamp of the open one.
    #[inline(always)]
    fn age(&self, timer: u64, newest: u64) -> u64 {
        if timer <= newest { newest - timer } else { newest + u64::from(self.timestamps) - timer }
    }

    /// Whether at least k' of a key's timers are equal (paper 4, "equal timers").
    fn some_equal(&self, words: &[u64], hash: u64) -> bool {
        let mut timers = [0; MAX_HASHES as usize];
        let timers = &mut timers[..self.k as usize];
        for (slice, timer) in (0..).zip(timers.iter_mut()) {
            *timer = self.timer(words, slice, hash);
        }
        timers.sort_unstable();
        timers.chunk_by(|a, b| a == b).any(|alike| alike.len() >= self.equal as usize)
    }

    /// Which timer of all, counted through the slices, is a key's in one of them.
    #[inline(always)]
    pub(crate) fn cell(&self, slice: u32, hash: u64) -> u64 {
        let timers = self.stride * self.lanes.per_word();
        u64::from(slice) * timers + scale(hash.wrapping_mul(PLACE[slice as usize]), timers)
    }

    /// Full generations kept beside the open one.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Timers of a word.
    pub(crate) fn per_word(&self) -> u64 {
        self.lanes.per_word()
    }

    /// How many generations ago a timer was last set, counted from the first of these words; none where it is empty.
    #[inline(always)]
    pub(crate) fn age_of(&self, words: &[u64], timer: u64, Phase { newest, .. }: Phase) -> Option<u64> {
        let (word, shift) = self.lanes.at(timer);
        let timer = self.lanes.get(words[word], shift);
        (timer != 0).then(|| self.age(timer, newest))
    }

    /// Sets a timer as so many generations ago, unless it has been set since.
    #[inline(always)]
    pub(crate) fn raise(&self, words: &mut [u64], timer: u64, Phase { newest, .. }: Phase, age: u64) {
        let (word, shift) = self.lanes.at(timer);
        let there = self.lanes.get(words[word], shift);
        if there == 0 || self.age(there, newest) > age {
            words[word] = self.lanes.with(words[word], shift, self.before(newest, age));
        }
    }

    /// Starts fetching a timer.
    #[inline(always)]
    pub(crate) fn fetch(&self, words: Address, timer: u64) {
        words.fetch(self.lanes.at(timer).0);
    }

    /// Empties the expired timers of these words, as [`open`](Layout::open) does.
    pub(crate) fn sweep(&self, words: &mut [u64], generation: i64) {
        let newest = self.timestamp(generation);
        let (first, last) = (self.before(newest, self.blocks.into()), self.before(newest, 1));
        for word in words {
            *word = self.lanes.keep(*word, first, last);
        }
    }

    /// How many timers of these words are live.
    pub(crate) fn count(&self, words: &[u64], Phase { newest, kept }: Phase) -> u64 {
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

    /// Words of all slices.
    pub(crate) fn words(&self) -> usize {
        self.stride as usize * self.k as usize
    }

    /// How many timers of these words are set, live or not.
    pub(super) fn set(&self, words: &[u64]) -> u64 {
        words.iter().map(|&word| u64::from(self.lanes.count_within(word, 1, self.timestamps.into()))).sum()
    }

    /// How many of a key's timers are not set.
    pub(super) fn unset(&self, words: &[u64], hash: u64) -> u64 {
        (0..self.k).map(|slice| u64::from(self.timer(words, slice, hash) == 0)).sum()
    }

    /// What a sample of these words tells of all timers.
    pub(super) fn timers(&self, words: &[u64], clock: &Clock) -> timing::Timers {
        let Phase { newest, kept } = self.phase(clock.generation(), 0);
        let words_of_sample = (SAMPLE / self.lanes.per_word()) as usize;
        let sample = words.chunks_exact(self.stride as usize).flat_map(|slice| slice.iter().take(words_of_sample));
        let timers = sample.clone().count() as u64 * self.lanes.per_word();
        let lanes = self.lanes;
        let of_word = |word: &u64| {
            let word = *word;
            (0..lanes.per_word()).map(move |lane| lanes.get(word, lanes.shift(lane)))
        };
        let live = sample.flat_map(of_word).filter(|&timer| timer != 0).map(|timer| self.age(timer, newest));
        timing::Timers::new(*clock, kept, timers, live.filter(|&age| age < kept))
    }

    /// Share of live timers in each slice.
    fn live(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        let timers = (self.stride * self.lanes.per_word()) as f64;
        words.chunks_exact(self.stride as usize).map(|slice| self.count(slice, phase) as f64 / timers).collect()
    }
}

impl Layout for Timers {
    type Phase = Phase;

    fn generations(&self) -> u64 {
        u64::from(self.blocks) + 1
    }

    fn phase(&self, generation: i64, pending: u64) -> Phase {
        Phase { newest: self.timestamp(generation), kept: self.generations().saturating_sub(pending) }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _: Phase, hash: u64) {
        self.fetch_all(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        for slice in 0..self.k {
            words.fetch(self.place(slice, hash).0);
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], Phase { newest, .. }: Phase, hash: u64) {
        for slice in 0..self.k {
            let (word, shift) = self.place(slice, hash);
            words[word] = self.lanes.with(words[word], shift, newest);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], Phase { newest, kept }: Phase, hash: u64) -> bool {
        let live = (0..self.k).fold(true, |live, slice| {
            let timer = self.timer(words, slice, hash);
            live & (timer != 0) & (self.age(timer, newest) < kept)
        });
        live && (self.equal == 1 || self.some_equal(words, hash))
    }

    #[inline(always)]
    fn evidence(&self, words: &[u64], Phase { newest, kept }: Phase, hash: u64) -> u128 {
        let (mut oldest, mut count) = (0u64, 0);
        for slice in 0..self.k {
            let timer = self.timer(words, slice, hash);
            let age = if timer == 0 { u64::MAX } else { self.age(timer, newest) };
            // Without a branch, which would be mispredicted at every other timer.
            count = count * u32::from(age <= oldest) + u32::from(age >= oldest);
            oldest = oldest.max(age);
        }
        if oldest < kept { timing::oldest(oldest, count) } else { timing::ABSENT }
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(self.timers(words, clock)))
    }

    /// Sweeps one part of the timers, of which the expired ones become empty. All that counts was set in the `blocks`
    /// generations before this one; a timer with the timestamp of this one is as old as timestamps are many, since
    /// nothing has been set in it yet. [`Shape::sweeps`] proves that no timer is ever older.
    fn open(&self, words: &mut [u64], generation: i64) {
        self.sweep(&mut words[self.swept(generation)], generation);
    }

    /// Of each slice: they age alike.
    fn fill(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        self.live(words, phase)
    }

    fn match_rates(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        self.live(words, phase)
    }
}
