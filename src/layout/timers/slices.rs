//! k slices of timers: which timer of each a key has.

use super::{TimerPhase, Timers};
use crate::clock::Clock;
use crate::inference::{Code, Evidence, Likelihood, Question, timing};
use crate::layout::Layout;
use crate::memory::bits::{odd_constants, scale};
use crate::memory::prefetch::{Address, in_flight};
use crate::shape::growing::any;
use crate::shape::timing::{MAX_HASHES, Shape};

/// Constants that choose a key's timer in each slice. Positions are made as in [`cells`](crate::layout::cells), with
/// the same error floor, n / 2^64 for n keys.
static PLACE: [u64; MAX_HASHES as usize] = odd_constants(0);

/// Timers of a slice to count for inference: places are hashed, so the first are as good as any. At k = 7 they give the
/// share of each of 16 blocks to 1 %, in 0.3 ms.
const SAMPLE: u64 = 1 << 14;

/// k slices of timers.
#[derive(Clone, Copy)]
pub struct TimersInSlices {
    pub(crate) timers: Timers,
    /// Words of one slice.
    stride: u64,
    k: u32,
    /// How many of a key's timers must be equal.
    equal: u32,
}

impl TimersInSlices {
    pub(crate) fn new(shape: Shape) -> Self {
        let timers = Timers::new(shape.bpt, shape.blocks, shape.words * u64::from(shape.k));
        Self { timers, stride: shape.words, k: shape.k, equal: shape.equal_timers }
    }

    /// The word and the shift in it of a key's timer in one slice.
    #[inline(always)]
    fn place(&self, slice: u32, hash: u64) -> (usize, u32) {
        let (word, shift) = self.timers.lanes.place(hash.wrapping_mul(PLACE[slice as usize]), self.stride);
        (slice as usize * self.stride as usize + word, shift)
    }

    /// The value of a key's timer in one slice.
    #[inline(always)]
    fn timer(&self, words: &[u64], slice: u32, hash: u64) -> u64 {
        let (word, shift) = self.place(slice, hash);
        self.timers.lanes.get(words[word], shift)
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

    /// Writes the numbers of the timers of a key, counted over all slices.
    #[inline(always)]
    pub(crate) fn cells(&self, hash: u64, cells: &mut [u64]) {
        let timers = self.stride * self.timers.per_word();
        for (slice, cell) in (0..).zip(cells) {
            *cell = slice * timers + scale(hash.wrapping_mul(PLACE[slice as usize]), timers);
        }
    }

    /// How many of a key's timers are not set.
    pub(crate) fn unset(&self, words: &[u64], hash: u64) -> u64 {
        (0..self.k).map(|slice| u64::from(self.timer(words, slice, hash) == 0)).sum()
    }

    /// What a sample of these words tells of all timers.
    pub(crate) fn sampled(&self, words: &[u64], clock: &Clock) -> timing::Timers {
        let phase = self.timers.phase(clock.generation(), 0);
        let words_of_sample = (SAMPLE / self.timers.per_word()) as usize;
        let sample = words.chunks_exact(self.stride as usize).flat_map(|slice| slice.iter().take(words_of_sample));
        let timers = sample.clone().count() as u64 * self.timers.per_word();
        let all = self.timers;
        let live = sample.flat_map(move |&word| all.live_ages(word, phase));
        timing::Timers::new(*clock, phase.kept, timers, live)
    }

    /// Chance that all timers of a fresh key are live.
    pub(crate) fn all_live(&self, words: &[u64], phase: TimerPhase) -> f64 {
        self.live(words, phase).iter().product()
    }

    /// Share of live timers in each slice.
    pub(crate) fn live(&self, words: &[u64], phase: TimerPhase) -> Vec<f64> {
        let timers = (self.stride * self.timers.per_word()) as f64;
        words.chunks_exact(self.stride as usize).map(|slice| self.timers.count(slice, phase) as f64 / timers).collect()
    }
}

impl Layout for TimersInSlices {
    type Phase = TimerPhase;

    fn generations(&self) -> u64 {
        self.timers.generations()
    }

    fn phase(&self, generation: i64, pending: u64) -> TimerPhase {
        self.timers.phase(generation, pending)
    }

    fn phase_within(&self, generation: i64, back: u64) -> Option<TimerPhase> {
        Some(self.timers.phase_within(generation, back))
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _: TimerPhase, hash: u64) {
        self.fetch_all(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        for slice in 0..self.k {
            words.fetch(self.place(slice, hash).0);
        }
    }

    #[inline(always)]
    fn insert(&self, words: &mut [u64], TimerPhase { newest, .. }: TimerPhase, hash: u64) {
        for slice in 0..self.k {
            let (word, shift) = self.place(slice, hash);
            words[word] = self.timers.lanes.with(words[word], shift, newest);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], TimerPhase { newest, kept }: TimerPhase, hash: u64) -> bool {
        let live = (0..self.k).fold(true, |live, slice| {
            let timer = self.timer(words, slice, hash);
            live & (timer != 0) & (self.timers.age(timer, newest) < kept)
        });
        live && (self.equal == 1 || self.some_equal(words, hash))
    }

    #[inline(always)]
    fn evidence(&self, words: &[u64], TimerPhase { newest, kept }: TimerPhase, hash: u64) -> Evidence {
        // The greatest age, above how many timers show it. Without a branch, which would be mispredicted at every
        // second timer. None is older than an empty one.
        let mut oldest = 0u64;
        for slice in 0..self.k {
            let timer = self.timer(words, slice, hash);
            let age = (self.timers.age(timer, newest) | u64::from(timer == 0).wrapping_neg()) << 8;
            oldest = u64::max(oldest + u64::from(oldest & !0xff == age), age | 1);
        }
        Evidence::oldest(oldest >> 8, [oldest & 0xff]).if_there(oldest >> 8 < kept)
    }

    fn coded(&self) -> Option<fn(Code) -> Evidence> {
        (self.generations() <= Code::BLOCKS).then_some(Code::timers::<1>)
    }

    fn codes_run(&self, words: &[u64], phase: TimerPhase, hashes: &[u64], codes: &mut [Code]) {
        let address = Address::of(words);
        let fetch = |hash| self.fetch_all(address, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
            codes[i] = Code::of_timers(self.evidence(words, phase, hash));
        });
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(self.sampled(words, clock)))
    }

    fn open(&self, words: &mut [u64], generation: i64) {
        self.timers.open(words, generation);
    }

    /// One share per slice: they age alike.
    fn fill(&self, words: &[u64], phase: TimerPhase) -> Vec<f64> {
        self.live(words, phase)
    }

    fn match_rates(&self, words: &[u64], phase: TimerPhase) -> Vec<f64> {
        self.live(words, phase)
    }

    /// With equal timers an upper bound: the rate for live timers, equal or not.
    fn false_positive_rate(&self, words: &[u64], phase: TimerPhase) -> f64 {
        any([self.all_live(words, phase)].into_iter())
    }
}
