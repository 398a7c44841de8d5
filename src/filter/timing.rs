//! The timing Bloom filter and its block variant (paper 4, section 4: *One is Enough: Distributed Filtering for
//! Duplicate Elimination*; paper 5, section 3: J. L. Dautrich, C. V. Ravishankar, *Inferring Insertion
//! Times and Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019).
//!
//! The cells are timers of a few bits, which hold the block of insertions in which they were last set, modulo the
//! number of timestamps; 0 is empty. An insertion sets k of them. A key is there when its k timers are all set and none
//! has expired. Blocks of one insertion are the timing Bloom filter, longer ones the block variant.
//!
//! Where this differs from the papers:
//! - The k timers of a key lie in k slices, one each, so they are always distinct (erratum INF-7) and the rate of false
//!   positives is a power of the fill, exactly.
//! - A block ends when the insertion that needs the next one arrives, so N full blocks and one key more are always
//!   there: B = ceil((W - 1) / N). A timer has expired at age N + 1, which is paper 5's ceil((w - b) / B) + 1 where B
//!   divides W - 1 (there b, the insertions into the open block, is never 0 here).
//! - Paper 4's timers count down; here they hold timestamps as in paper 5, and nothing is written as time passes but
//!   by the sweep, which does its share at the beginning of each block, not after each insertion.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::batch::{Aged, Engine};
use crate::bits::{Address, odd_constants};
use crate::clock::{Clock, Window};
use crate::inference::{Likelihood, timing};
use crate::lanes::Lanes;
use crate::layout::Layout;
use crate::sizing::runs::Accesses;
use crate::sizing::timing::{MAX_HASHES, Shape};
use crate::words::Words;

/// Which timer a key takes in each slice: positions are made as in [`cells`](crate::cells), with the same floor of
/// errors, n / 2^64 for n keys.
static PLACE: [u64; MAX_HASHES as usize] = odd_constants(0);

/// Timers of a slice that are counted for inference: places are hashed, so the first are as good as any. At k = 7 they
/// give the share of each of 16 blocks to 1 %, in 0.3 ms.
const SAMPLE: u64 = 1 << 14;

/// k slices of timers.
#[derive(Clone, Copy)]
struct Timers {
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
struct Phase {
    newest: u64,
    kept: u64,
}

impl Timers {
    fn new(shape: Shape) -> Self {
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

    /// Share of live timers in each slice.
    fn live(&self, words: &[u64], Phase { newest, kept }: Phase) -> Vec<f64> {
        if kept == 0 {
            return vec![0.0; self.k as usize];
        }
        let oldest = self.before(newest, kept - 1);
        let live = |slice: &[u64]| -> u64 {
            slice.iter().map(|&word| u64::from(self.lanes.count_within(word, oldest, newest))).sum()
        };
        let timers = (self.stride * self.lanes.per_word()) as f64;
        words.chunks_exact(self.stride as usize).map(|slice| live(slice) as f64 / timers).collect()
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

    fn likelihood(&self, words: &[u64], clock: &Clock) -> Option<Box<dyn Likelihood>> {
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
        Some(Box::new(timing::Timers::new(*clock, kept, timers, live.filter(|&age| age < kept))))
    }

    /// Sweeps one part of the timers, of which the expired ones become empty. All that counts was set in the `blocks`
    /// generations before this one; a timer with the timestamp of this one is as old as timestamps are many, since
    /// nothing has been set in it yet. [`Shape::sweeps`] proves that no timer is ever older.
    fn open(&self, words: &mut [u64], generation: i64) {
        let newest = self.timestamp(generation);
        let (first, last) = (self.before(newest, self.blocks.into()), self.before(newest, 1));
        let part = words.len().div_ceil(self.sweeps as usize);
        let start = (generation.rem_euclid(self.sweeps.into()) as usize * part).min(words.len());
        let end = (start + part).min(words.len());
        for word in &mut words[start..end] {
            *word = self.lanes.keep(*word, first, last);
        }
    }

    /// Of each slice: they age alike.
    fn fill(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        self.live(words, phase)
    }

    fn match_rates(&self, words: &[u64], phase: Phase) -> Vec<f64> {
        self.live(words, phase)
    }
}

/// A timing Bloom filter: has a key been inserted within the last `window` insertions, or span of time?
#[derive(Clone)]
pub struct Timing {
    shape: Shape,
    seed: u64,
    timers: Aged<Timers>,
}

impl Timing {
    /// Its number in the saved form.
    pub const KIND: u16 = 3;

    /// An empty filter.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        Ok(Self::assemble(shape, Clock::new(window.check()?, shape.blocks), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, bpt, blocks, slice_timers, equal_timers, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(narrow(k)?, narrow(bpt)?, narrow(blocks)?, slice_timers, narrow(equal_timers)?)
            .map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, resume(shape.blocks), seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        Self { shape, seed, timers: Aged { layout: Timers::new(shape), words, clock } }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    fn window(&self) -> Window {
        self.timers.clock.window()
    }
}

impl Filter for Timing {
    fn engine(&self) -> &dyn Engine {
        &self.timers
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.timers
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("k", self.shape.k.into()),
            ("bpt", self.shape.bpt.into()),
            ("blocks", self.shape.blocks.into()),
            ("slice_timers", self.shape.slice_timers()),
            ("equal_timers", self.shape.equal_timers.into()),
        ]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.window())
    }

    fn slack(&self) -> u64 {
        self.window().slack(self.shape.blocks, 1)
    }

    fn npws(&self) -> f64 {
        self.shape.npws(self.window())
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.window())
    }

    /// One in each slice, all of which a query looks at.
    fn cache_lines(&self) -> Lines {
        let k = f64::from(self.shape.k);
        Lines { insert: k, hit: k, miss: k }
    }

    /// With equal timers an upper bound: that of the live timers, equal or not.
    fn false_positive_rate(&self) -> f64 {
        self.timers.match_rates().into_iter().product()
    }

    fn false_negative_rates(&self) -> Vec<f64> {
        self.shape.false_negative_rates(self.window())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
