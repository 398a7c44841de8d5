//! Timers in k slices. A key has one timer in each slice.

use super::{TimerRotation, TimerWords};
use crate::clock::Clock;
use crate::family::timing::likelihood;
use crate::family::timing::shape::{MAX_HASHES, TimingShape};
use crate::family::{Layout, fill};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::bits::{odd_constants, scale};
use crate::memory::prefetch::{Address, in_flight};

/// Constants that choose a key's timer in each slice. Positions are made as in [`cells`](crate::family::arrays), with
/// the same error floor, n / 2^64 for n keys.
static PLACE: [u64; MAX_HASHES as usize] = odd_constants(0);

/// Number of timers of a slice that are counted for inference: places are hashed, so the first are as good as any. At k
/// = 7 the share of each of 16 blocks is right to 1 %, in 0.3 ms.
const SAMPLE: u64 = 1 << 14;

/// The layout of a timing filter: k slices of timers.
#[derive(Clone, Copy)]
pub struct TimersInSlices {
    pub(crate) timers: TimerWords,
    /// The number of words of one slice.
    stride: u64,
    k: u32,
    /// The number of a key's timers that must be equal.
    equal: u32,
}

impl TimersInSlices {
    /// Returns the layout of a shape.
    pub(crate) fn new(shape: TimingShape) -> Self {
        let timers = TimerWords::new(shape.bpt, shape.blocks, shape.words * u64::from(shape.k));
        Self { timers, stride: shape.words, k: shape.k, equal: shape.equal_timers }
    }

    /// Returns the word of a key's timer in one slice, and the shift in it.
    #[inline(always)]
    fn place(&self, slice: u32, hash: u64) -> (usize, u32) {
        let (word, shift) = self.timers.lanes.place(hash.wrapping_mul(PLACE[slice as usize]), self.stride);
        (slice as usize * self.stride as usize + word, shift)
    }

    /// Returns the value of a key's timer in one slice.
    #[inline(always)]
    fn timer(&self, words: &[u64], slice: u32, hash: u64) -> u64 {
        let (word, shift) = self.place(slice, hash);
        self.timers.lanes.get(words[word], shift)
    }

    /// Returns whether at least k' of a key's timers are equal (paper 4, "equal timers").
    fn some_equal(&self, words: &[u64], hash: u64) -> bool {
        let mut timers = [0; MAX_HASHES as usize];
        let timers = &mut timers[..self.k as usize];
        for (slice, timer) in (0..).zip(timers.iter_mut()) {
            *timer = self.timer(words, slice, hash);
        }
        timers.sort_unstable();
        timers.chunk_by(|a, b| a == b).any(|alike| alike.len() >= self.equal as usize)
    }

    /// Writes the numbers of the timers of a key, counted over all slices.
    #[inline(always)]
    pub(crate) fn cells(&self, hash: u64, cells: &mut [u64]) {
        let timers = self.stride * self.timers.per_word();
        for (slice, cell) in (0..).zip(cells) {
            *cell = slice * timers + scale(hash.wrapping_mul(PLACE[slice as usize]), timers);
        }
    }

    /// Returns how many of a key's timers are not set.
    pub(crate) fn unset(&self, words: &[u64], hash: u64) -> u64 {
        (0..self.k).map(|slice| u64::from(self.timer(words, slice, hash) == 0)).sum()
    }

    /// Returns the ages of a sample of the timers, for inference.
    pub(crate) fn sampled(&self, words: &[u64], clock: &Clock) -> likelihood::TimerLikelihood {
        let rotation = self.timers.rotation(clock.generation(), 0);
        let words_of_sample = (SAMPLE / self.timers.per_word()) as usize;
        let sample = words.chunks_exact(self.stride as usize).flat_map(|slice| slice.iter().take(words_of_sample));
        let timers = sample.clone().count() as u64 * self.timers.per_word();
        let all = self.timers;
        let live = sample.flat_map(move |&word| all.live_ages(word, rotation));
        likelihood::TimerLikelihood::new(clock.clone(), rotation.retained, timers, live)
    }

    /// Returns the chance that all timers of a fresh key are live.
    pub(crate) fn all_live(&self, words: &[u64], rotation: TimerRotation) -> f64 {
        self.live(words, rotation).iter().product()
    }

    /// Returns the share of live timers in each slice.
    pub(crate) fn live(&self, words: &[u64], rotation: TimerRotation) -> Vec<f64> {
        let timers = (self.stride * self.timers.per_word()) as f64;
        words
            .chunks_exact(self.stride as usize)
            .map(|slice| self.timers.count(slice, rotation) as f64 / timers)
            .collect()
    }
}

impl Layout for TimersInSlices {
    type Rotation = TimerRotation;

    fn generations(&self) -> u64 {
        self.timers.generations()
    }

    fn rotation(&self, generation: i64, pending: u64) -> TimerRotation {
        self.timers.rotation(generation, pending)
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        for slice in 0..self.k {
            words.fetch(self.place(slice, hash).0);
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], TimerRotation { newest, .. }: TimerRotation, hash: u64) {
        for slice in 0..self.k {
            let (word, shift) = self.place(slice, hash);
            words[word] = self.timers.lanes.with(words[word], shift, newest);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], TimerRotation { newest, retained }: TimerRotation, hash: u64) -> bool {
        let live = (0..self.k).fold(true, |live, slice| {
            let timer = self.timer(words, slice, hash);
            live & (timer != 0) & (self.timers.age(timer, newest) < retained)
        });
        live && (self.equal == 1 || self.some_equal(words, hash))
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        self.timers.open(words, generation);
    }

    /// Returns the age of a key's oldest timers and their number, as evidence.
    #[inline(always)]
    fn evidence(&self, words: &[u64], TimerRotation { newest, retained }: TimerRotation, hash: u64) -> Evidence {
        // The greatest age in the upper bits, and the number of timers of that age in the lowest eight. A branch would
        // be mispredicted at every second timer. An empty timer is older than any other.
        let mut oldest = 0u64;
        for slice in 0..self.k {
            let timer = self.timer(words, slice, hash);
            let age = (self.timers.age(timer, newest) | u64::from(timer == 0).wrapping_neg()) << 8;
            oldest = u64::max(oldest + u64::from(oldest & !0xff == age), age | 1);
        }
        Evidence::oldest(oldest >> 8, oldest & 0xff).if_present(oldest >> 8 < retained)
    }

    fn codes_run(
        &self,
        words: &[u64],
        rotation: TimerRotation,
        hashes: &[u64],
        codes: &mut [Code],
    ) -> Option<fn(Code) -> Evidence> {
        if self.generations() > Code::BLOCKS {
            return None;
        }
        let address = Address::of(words);
        let fetch = |hash| self.prefetch_query(address, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
            codes[i] = Code::of_timers(self.evidence(words, rotation, hash));
        });
        Some(Code::timers)
    }

    fn has_ages(&self) -> bool {
        true
    }

    /// Returns the share of live timers in each slice: all slices age alike.
    fn fill(&self, words: &[u64], rotation: TimerRotation) -> Vec<f64> {
        self.live(words, rotation)
    }

    fn match_rates(&self, words: &[u64], rotation: TimerRotation) -> Vec<f64> {
        self.live(words, rotation)
    }

    /// Returns the rate for live timers, equal or not: an upper bound where some must be equal.
    fn false_positive_rate(&self, words: &[u64], rotation: TimerRotation) -> f64 {
        fill::any([self.all_live(words, rotation)].into_iter())
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(self.sampled(words, clock)))
    }
}
