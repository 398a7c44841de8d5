//! The cells of a filter that threads share: all pages, and a batch of keys over them.

use std::sync::atomic::AtomicU64;

use super::clock::{Call, SharedClock, TooLate, rotation_in};
use super::page::{AtomicLine, NEVER, Page, Probe, State, WORDS, lane_bits, slot};
use crate::Error;
use crate::family::Layout as _;
use crate::family::lines::cells::{LanesInLines, Pages, Vectors};
use crate::family::lines::shape::{LineShape, PAGE_LINES};
#[cfg(target_arch = "x86_64")]
use crate::instructions::{Avx2, Avx512};
use crate::instructions::{Instructions, Portable};
use crate::memory::{fallible, prefetch::Address};

/// Lines of a page.
const PAGE: usize = PAGE_LINES as usize;
/// Words of a page.
const PAGE_WORDS: usize = PAGE * WORDS;

/// The moment of a call for one key.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Time clock: the step in which the call takes effect.
    pub step: i64,
    /// Time clock: the step up to which a lookup counts lanes as dropped.
    pub horizon: i64,
    /// Time clock: the caller's time, which may be too late, or [`NEVER_LATE`](super::clock::NEVER_LATE).
    pub given: i64,
}

/// The pages of a filter, whatever their lanes and lines. Each call is for one key, by its hash.
pub(super) trait SharedCells: Send + Sync {
    /// Inserts a key, whether it is there or not.
    fn insert(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<(), TooLate>;

    /// Returns whether a key is there.
    fn contains(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<bool, TooLate>;

    /// Returns whether a key was there, and inserts it if it was not.
    fn seen(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<bool, TooLate>;

    /// Prefetches the lines of keys.
    fn prefetch(&self, hashes: &[u64]);

    /// Copies all words. Returns the rotation that each page had then.
    fn copy(&self, words: &mut [u64]) -> Vec<i64>;

    /// Clears the lanes that pages of these rotations would have cleared up to a step.
    fn age(&self, words: &mut [u64], rotations: &[i64], step: i64);

    /// Returns the chance that a key never inserted is reported by pages that count lanes up to this step.
    fn false_positive_rate(&self, horizon: i64) -> f64;

    /// Returns the bytes of the pages and their states.
    fn nbytes(&self) -> usize;
}

/// Makes the cells of a shape: empty, or with these words in this step.
pub(super) fn cells_of(shape: &LineShape, saved: Option<(&[u64], i64)>) -> Result<Box<dyn SharedCells>, Error> {
    Ok(match shape.lanes {
        8 => Box::new(SharedLines::<8>::new(shape, saved)?),
        16 => Box::new(SharedLines::<16>::new(shape, saved)?),
        _ => Box::new(SharedLines::<32>::new(shape, saved)?),
    })
}

// SAFETY: a line is atomic words, for which zero is a value.
#[allow(unsafe_code, reason = "the derive macro would triple the build time")]
unsafe impl bytemuck::Zeroable for AtomicLine {}

/// Pages of lines of `LANES` lanes each.
struct SharedLines<const LANES: usize> {
    pages: Pages,
    k: u32,
    lines: Vec<AtomicLine>,
    states: Vec<State>,
    instructions: Instructions,
}

impl<const LANES: usize> SharedLines<LANES> {
    fn new(shape: &LineShape, saved: Option<(&[u64], i64)>) -> Result<Self, Error> {
        let pages = shape.pages as usize;
        let lines: Vec<AtomicLine> = fallible::zeroed(pages * PAGE)?;
        let (words, step) = saved.map_or((&[][..], None), |(words, step)| (words, Some(step)));
        for (atomic, &word) in lines.iter().flat_map(|line| &line.0).zip(words) {
            atomic.store(word, std::sync::atomic::Ordering::Relaxed);
        }
        let state = |page: usize| {
            let rotation = step.map_or(NEVER, |step| rotation_in(step, page as i64, pages as i64));
            State(AtomicU64::new((rotation << 1) as u64))
        };
        let states = fallible::collected((0..pages).map(state))?;
        Ok(Self {
            pages: Pages::new(shape.pages, shape.lines),
            k: shape.k,
            lines,
            states,
            instructions: Instructions::best(),
        })
    }

    fn page(&self, page: usize) -> Page<'_, LANES> {
        Page { state: &self.states[page], lines: &self.lines.as_chunks::<PAGE>().0[page], k: self.k }
    }

    /// Returns the page of a key, and its bits there.
    #[inline(always)]
    fn probe<const LINES: usize>(&self, vectors: impl Vectors, hash: u64) -> (usize, Probe<LINES>) {
        let location = self.pages.location::<LINES>(hash);
        let page = location.page as usize;
        let mut probe = Probe { lines: [0; LINES], masks: [[0; WORDS]; LINES] };
        // A loop, because a closure of `map` was compiled apart, without vector instructions: 120 instructions per
        // line.
        for t in 0..LINES {
            probe.lines[t] = location.lines[t] % PAGE;
            // By intrinsics: portable code was compiled as one line of each key at a time, in twice the instructions.
            vectors.set(&mut probe.masks[t], vectors.mask(location.seeds[t]), &[u64::MAX; WORDS]);
        }
        (page, probe)
    }

    /// Runs an operation on a key, compiled for the processor's instructions.
    #[inline(always)]
    fn run<O: Operation>(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<O::Answer, TooLate> {
        match self.pages.lines {
            1 => self.run_of_lines::<O, 1>(clock, hash, at),
            2 => self.run_of_lines::<O, 2>(clock, hash, at),
            3 => self.run_of_lines::<O, 3>(clock, hash, at),
            _ => self.run_of_lines::<O, 4>(clock, hash, at),
        }
    }

    #[inline(always)]
    fn run_of_lines<O: Operation, const LINES: usize>(
        &self,
        clock: &SharedClock,
        hash: u64,
        at: Moment,
    ) -> Result<O::Answer, TooLate> {
        match self.instructions {
            // There is no third set: with AVX-512 too the words of a line are loaded one after the other.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "a function that is compiled for vector instructions")]
            // SAFETY: an `Avx2` exists, alone or in an `Avx512`, so the processor has the instructions.
            Instructions::Avx2(avx2) | Instructions::Avx512(Avx512(avx2)) => unsafe {
                self.apply_with_avx2::<O, LINES>(avx2, clock, hash, at)
            },
            _ => self.apply_portably::<O, LINES>(clock, hash, at),
        }
    }

    /// Applies an operation to a key, by AVX2. The operands are passed in registers. By their address, as a
    /// [`Machine`](crate::instructions::Machine) passes its work, `seen` takes 5 % longer.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn apply_with_avx2<O: Operation, const LINES: usize>(
        &self,
        avx2: Avx2,
        clock: &SharedClock,
        hash: u64,
        at: Moment,
    ) -> Result<O::Answer, TooLate> {
        self.apply::<O, LINES>(avx2, clock, hash, at)
    }

    /// Applies an operation to a key. It is a function of its own, so that the choice between the two needs no stack.
    #[inline(never)]
    fn apply_portably<O: Operation, const LINES: usize>(
        &self,
        clock: &SharedClock,
        hash: u64,
        at: Moment,
    ) -> Result<O::Answer, TooLate> {
        self.apply::<O, LINES>(Portable, clock, hash, at)
    }

    /// Applies an operation to a key.
    #[inline(always)]
    fn apply<O: Operation, const LINES: usize>(
        &self,
        vectors: impl Vectors,
        clock: &SharedClock,
        hash: u64,
        at: Moment,
    ) -> Result<O::Answer, TooLate> {
        let (page, probe) = self.probe::<LINES>(vectors, hash);
        let call = Call { clock, page: page as i64, step: at.step, horizon: at.horizon, given: at.given };
        O::apply(self.page(page), &probe, &call)
    }
}

impl<const LANES: usize> SharedCells for SharedLines<LANES> {
    fn insert(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<(), TooLate> {
        self.run::<InsertKey>(clock, hash, at)
    }

    fn contains(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<bool, TooLate> {
        self.run::<ContainsKey>(clock, hash, at)
    }

    fn seen(&self, clock: &SharedClock, hash: u64, at: Moment) -> Result<bool, TooLate> {
        self.run::<SeenKey>(clock, hash, at)
    }

    fn prefetch(&self, hashes: &[u64]) {
        let address = Address::at(self.lines.as_ptr().cast());
        hashes.iter().for_each(|&hash| self.pages.fetch(address, hash));
    }

    fn copy(&self, words: &mut [u64]) -> Vec<i64> {
        words.chunks_mut(PAGE_WORDS).enumerate().map(|(page, words)| self.page(page).copy(words)).collect()
    }

    fn age(&self, words: &mut [u64], rotations: &[i64], step: i64) {
        for (page, (words, &copied)) in words.chunks_mut(PAGE_WORDS).zip(rotations).enumerate() {
            let due = rotation_in(step, page as i64, rotations.len() as i64);
            for rotation in copied.max(due - LANES as i64) + 1..=due {
                let (word, bits) = lane_bits::<LANES>(slot::<LANES>(rotation));
                words.chunks_mut(WORDS).for_each(|line| line[word] &= !bits);
            }
        }
    }

    fn false_positive_rate(&self, horizon: i64) -> f64 {
        let (pages, layout) = (self.states.len(), LanesInLines::<LANES>::new(1, self.k, self.pages.lines));
        let mut words = [0; PAGE_WORDS];
        let rate = |page| {
            let rotation = self.page(page).copy(&mut words);
            let dropped = rotation_in(horizon, page as i64, pages as i64).saturating_sub(rotation);
            layout.false_positive_rate(&words, layout.rotation(rotation, u64::try_from(dropped).unwrap_or(0)))
        };
        (0..pages).map(rate).sum::<f64>() / pages as f64
    }

    fn nbytes(&self) -> usize {
        size_of_val(&self.lines[..]) + size_of_val(&self.states[..])
    }
}

/// What a call does with a key.
trait Operation {
    /// The result of the call.
    type Answer;

    /// Applies the operation to the page of the key.
    fn apply<const LANES: usize, const LINES: usize>(
        page: Page<'_, LANES>,
        probe: &Probe<LINES>,
        call: &Call<'_>,
    ) -> Result<Self::Answer, TooLate>;
}

struct InsertKey;
struct ContainsKey;
struct SeenKey;

impl Operation for InsertKey {
    type Answer = ();

    #[inline(always)]
    fn apply<const LANES: usize, const LINES: usize>(
        page: Page<'_, LANES>,
        probe: &Probe<LINES>,
        call: &Call<'_>,
    ) -> Result<(), TooLate> {
        page.insert(probe, call)?;
        call.clock.count();
        Ok(())
    }
}

impl Operation for ContainsKey {
    type Answer = bool;

    #[inline(always)]
    fn apply<const LANES: usize, const LINES: usize>(
        page: Page<'_, LANES>,
        probe: &Probe<LINES>,
        call: &Call<'_>,
    ) -> Result<bool, TooLate> {
        page.contains(probe, call)
    }
}

impl Operation for SeenKey {
    type Answer = bool;

    #[inline(always)]
    fn apply<const LANES: usize, const LINES: usize>(
        page: Page<'_, LANES>,
        probe: &Probe<LINES>,
        call: &Call<'_>,
    ) -> Result<bool, TooLate> {
        let seen = page.seen(probe, call)?;
        if !seen {
            call.clock.count();
        }
        Ok(seen)
    }
}
