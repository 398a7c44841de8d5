//! The cells of a filter that threads share: all pages, and a batch of keys over them.

use std::sync::atomic::AtomicU64;

use super::clock::{Call, SharedClock, TooLate, rotation_in};
use super::page::{Line, NEVER, Page, Probe, State, WORDS, lane_bits, slot};
use crate::Error;
use crate::instructions::{Instructions, Machine, Portable, Work};
use crate::layout::line::{Pages, Vectors};
use crate::memory::{fallible, prefetch::Address};
use crate::shape::line::{LineShape, MAX_LINES, PAGE_LINES};

/// Lines of a page.
const PAGE: usize = PAGE_LINES as usize;
/// Words of a page.
const PAGE_WORDS: usize = PAGE * WORDS;
/// Keys whose lines are prefetched before the first of them acts.
const AHEAD: usize = 16;

/// What a batch does with each key.
pub(super) enum Operation<'a> {
    Insert,
    Contains(&'a mut [bool]),
    Seen(&'a mut [bool]),
}

/// When the keys of a batch come.
#[derive(Clone, Copy)]
pub(super) enum When<'a> {
    /// In a window of insertions.
    Untimed,
    /// A lookup in a window of time in which nothing has been inserted.
    Empty,
    /// All at a moment that is never refused.
    Now(i64),
    /// Each at its own, in nanoseconds since the Unix epoch.
    Each(&'a [i64]),
}

/// The pages of a filter, whatever their lanes and lines.
pub(super) trait Cells: Send + Sync {
    /// Does one operation with each key, in order. An error leaves the keys from that one on as they were.
    fn act(&self, clock: &SharedClock, hashes: &[u64], when: When<'_>, operation: Operation<'_>) -> Result<(), Error>;

    /// Copies all words. Returns the rotation of each page then.
    fn copy(&self, words: &mut [u64]) -> Vec<i64>;

    /// Clears the lanes that pages of these rotations would have cleared up to a step.
    fn age(&self, words: &mut [u64], rotations: &[i64], step: i64);

    /// Bytes of the pages and their states.
    fn nbytes(&self) -> usize;
}

/// The cells of a shape: empty, or with these words in this step.
pub(super) fn cells_of(shape: &LineShape, saved: Option<(&[u64], i64)>) -> Result<Box<dyn Cells>, Error> {
    type Made = fn(&LineShape, Option<(&[u64], i64)>) -> Result<Box<dyn Cells>, Error>;
    const fn of_lanes<const LANES: usize>() -> [Made; MAX_LINES as usize] {
        [boxed::<LANES, 1>, boxed::<LANES, 2>, boxed::<LANES, 3>, boxed::<LANES, 4>]
    }
    fn boxed<const LANES: usize, const LINES: usize>(
        shape: &LineShape,
        saved: Option<(&[u64], i64)>,
    ) -> Result<Box<dyn Cells>, Error> {
        Ok(Box::new(SharedLines::<LANES, LINES>::new(shape, saved)?))
    }
    const ALL: [[Made; MAX_LINES as usize]; 3] = [of_lanes::<8>(), of_lanes::<16>(), of_lanes::<32>()];
    ALL[(shape.lanes / 8).ilog2() as usize][shape.lines as usize - 1](shape, saved)
}

/// Pages of lines of `LANES` lanes, of which a key has `LINES`.
struct SharedLines<const LANES: usize, const LINES: usize> {
    pages: Pages<LINES>,
    k: u32,
    lines: Vec<Line>,
    states: Vec<State>,
    instructions: Instructions,
}

impl<const LANES: usize, const LINES: usize> SharedLines<LANES, LINES> {
    fn new(shape: &LineShape, saved: Option<(&[u64], i64)>) -> Result<Self, Error> {
        let pages = shape.pages as usize;
        let lines: Vec<Line> = fallible::zeroed(pages * PAGE)?;
        let (words, step) = saved.map_or((&[][..], None), |(words, step)| (words, Some(step)));
        for (atomic, &word) in lines.iter().flat_map(|line| &line.0).zip(words) {
            atomic.store(word, std::sync::atomic::Ordering::Relaxed);
        }
        let state = |page: usize| {
            let rotation = step.map_or(NEVER, |step| rotation_in(step, page as i64, pages as i64));
            State(AtomicU64::new((rotation << 1) as u64))
        };
        let states = fallible::collected((0..pages).map(state))?;
        Ok(Self { pages: Pages::new(shape.pages), k: shape.k, lines, states, instructions: Instructions::best() })
    }

    fn page(&self, page: usize) -> Page<'_, LANES> {
        Page { state: &self.states[page], lines: &self.lines[page * PAGE..][..PAGE], k: self.k }
    }

    /// The page of a key, and its bits there.
    #[inline(always)]
    fn probe(&self, hash: u64) -> (usize, Probe<LINES>) {
        let location = self.pages.location(hash);
        let page = location.page as usize;
        let mut probe = Probe { lines: [0; LINES], masks: [[0; WORDS]; LINES] };
        // A loop: the closure of `map` was compiled apart, without vector instructions, in 120 instructions per line.
        for t in 0..LINES {
            probe.lines[t] = location.lines[t] % PAGE;
            probe.masks[t] = Portable.mask(location.seeds[t]);
        }
        (page, probe)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for line in self.pages.location(hash).lines {
            if let Some(line) = self.lines.get(line) {
                Address::at((&raw const *line).cast()).fetch(0);
            }
        }
    }
}

impl<const LANES: usize, const LINES: usize> Cells for SharedLines<LANES, LINES> {
    fn act(&self, clock: &SharedClock, hashes: &[u64], when: When<'_>, operation: Operation<'_>) -> Result<(), Error> {
        let work = Batch { cells: self, clock, hashes, when, operation };
        // Two sets of instructions: with AVX-512 the words of a line are loaded one by one all the same.
        match self.instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(machine) => machine.run(work),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512(machine) => machine.0.run(work),
            _ => Portable.run(work),
        }
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

    fn nbytes(&self) -> usize {
        size_of_val(&self.lines[..]) + size_of_val(&self.states[..])
    }
}

/// A batch of keys for the cells, compiled for each set of instructions.
struct Batch<'a, const LANES: usize, const LINES: usize> {
    cells: &'a SharedLines<LANES, LINES>,
    clock: &'a SharedClock,
    hashes: &'a [u64],
    when: When<'a>,
    operation: Operation<'a>,
}

impl<M: Machine, const LANES: usize, const LINES: usize> Work<M> for Batch<'_, LANES, LINES> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(mut self, _: M) -> Result<(), Error> {
        self.hashes.iter().skip(1).take(AHEAD - 1).for_each(|&hash| self.cells.prefetch(hash));
        for i in 0..self.hashes.len() {
            if let Some(&coming) = self.hashes.get(i + AHEAD) {
                self.cells.prefetch(coming);
            }
            self.one(i)?;
        }
        Ok(())
    }
}

impl<const LANES: usize, const LINES: usize> Batch<'_, LANES, LINES> {
    #[inline(always)]
    fn one(&mut self, i: usize) -> Result<(), Error> {
        let Some((now, asked)) = self.moment(i)? else {
            if let Operation::Contains(present) = &mut self.operation {
                present[i] = false;
            }
            return Ok(());
        };
        let (page, probe) = self.cells.probe(self.hashes[i]);
        let call = Call { clock: self.clock, page: page as i64, now, asked };
        let page = self.cells.page(page);
        let late = |TooLate| self.clock.too_late(asked.unwrap_or(now));
        match &mut self.operation {
            Operation::Insert => {
                page.insert(&probe, &call).map_err(late)?;
                self.clock.count();
            }
            Operation::Contains(present) => present[i] = page.contains(&probe, &call).map_err(late)?,
            Operation::Seen(seen) => {
                seen[i] = page.seen(&probe, &call).map_err(late)?;
                if !seen[i] {
                    self.clock.count();
                }
            }
        }
        Ok(())
    }

    /// The moment as of which a key acts, and the one that may be refused; none for a lookup before any insertion.
    #[inline(always)]
    fn moment(&self, i: usize) -> Result<Option<(i64, Option<i64>)>, Error> {
        let (moment, asked) = match self.when {
            When::Untimed => return Ok(Some((0, None))),
            When::Empty => return Ok(None),
            When::Now(moment) => (moment, None),
            When::Each(moments) => (moments[i], Some(moments[i])),
        };
        Ok(match self.operation {
            Operation::Contains(_) => self.clock.moment_to_read(moment).map(|now| (now, asked)),
            _ => Some((self.clock.advance(moment, asked.is_some())?, asked)),
        })
    }
}
