//! What a run of keys does to lines of timers: all 8 words of a line at once, those that a key does not take masked, in
//! loops without branches that compilers make vectors of.

use std::ops::Range;

use super::{Lines, Phase, Timers};
use crate::layout::line::{AHEAD, LINE, Pages, Spot, Work};
use crate::memory::bits::odd_constants;
use crate::memory::prefetch::Address;

/// What the 32 bits of a key are multiplied with, to choose its place in each word: apart from the constants that choose
/// a line and, in other layouts, bits.
static PLACES: [u32; LINE] = {
    let (constants, mut high, mut i) = (odd_constants::<LINE>(24), [0; LINE], 0);
    while i < LINE {
        high[i] = (constants[i] >> 32) as u32 | 1;
        i += 1;
    }
    high
};
/// The same, to choose the first of its words.
const FIRST: u32 = (odd_constants::<1>(24 + LINE as u64)[0] >> 32) as u32 | 1;

/// The timers of a key in one line.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// The shift of its timer in every word.
    pub shifts: [u64; LINE],
    /// All ones in the words that it takes a timer of, else 0.
    pub words: [u64; LINE],
}

impl Taken {
    #[inline(always)]
    pub fn new(timers: &Timers, seed: u32, k: u32) -> Self {
        let first = u64::from(seed.wrapping_mul(FIRST) >> 29);
        let (per_word, bits) = (timers.per_word(), timers.lanes.bits());
        let mut taken = Self { shifts: [0; LINE], words: [0; LINE] };
        for (word, place) in PLACES.into_iter().enumerate() {
            // In 64 bits: vectors have the product of their lower halves in one step, that of 32 bits in two.
            let choice = (u64::from(seed) * u64::from(place)) & u64::from(u32::MAX);
            taken.shifts[word] = ((choice * per_word) >> 32) * bits;
            // As arithmetic: all ones where the word is fewer than k after the first.
            let after = (word as u64).wrapping_sub(first) & (LINE as u64 - 1);
            taken.words[word] = ((after.wrapping_sub(u64::from(k)) as i64) >> 63) as u64;
        }
        taken
    }

    /// In the top bits: where a timer of the key is not live.
    #[inline(always)]
    fn missing(&self, timers: &Timers, Phase { newest, kept }: Phase, line: &[u64; LINE]) -> [u64; LINE] {
        let (most, timestamps) = (timers.lanes.most(), u64::from(timers.timestamps));
        let mut missing = [0; LINE];
        for word in 0..LINE {
            let timer = line[word] >> self.shifts[word] & most;
            let ago = newest.wrapping_sub(timer);
            let age = ago.wrapping_add((((ago as i64) >> 63) as u64) & timestamps);
            // Live is what is younger than `kept` and not 0: both differences are negative.
            let live = age.wrapping_sub(kept) & timer.wrapping_neg();
            missing[word] = !live & self.words[word];
        }
        missing
    }

    /// Sets the timers of the key.
    #[inline(always)]
    fn set(&self, timers: &Timers, newest: u64, line: &mut [u64; LINE]) {
        let most = timers.lanes.most();
        for (word, (shift, taken)) in line.iter_mut().zip(self.shifts.into_iter().zip(self.words)) {
            *word = (*word & !((most << shift) & taken)) | ((newest << shift) & taken);
        }
    }
}

impl<const LINES: usize> Lines<LINES> {
    #[inline(always)]
    fn taken(&self, spot: &Spot<LINES>) -> [Taken; LINES] {
        let mut taken = [Taken { shifts: [0; LINE], words: [0; LINE] }; LINES];
        for (taken, (seed, k)) in taken.iter_mut().zip(spot.seeds.into_iter().zip(self.k)) {
            *taken = Taken::new(&self.timers, seed, k);
        }
        taken
    }

    #[inline(always)]
    fn all_live(&self, lines: &[[u64; LINE]], phase: Phase, spot: &Spot<LINES>, taken: &[Taken; LINES]) -> bool {
        let mut any = 0;
        for t in 0..LINES {
            let missing = taken[t].missing(&self.timers, phase, &lines[spot.lines[t]]);
            for word in missing {
                any |= word;
            }
        }
        any >> 63 == 0
    }

    #[inline(always)]
    fn set(&self, lines: &mut [[u64; LINE]], phase: Phase, spot: &Spot<LINES>, taken: &[Taken; LINES]) {
        for t in 0..LINES {
            taken[t].set(&self.timers, phase.newest, &mut lines[spot.lines[t]]);
        }
    }
}

/// Begins a run: the first lines of a batch are fetched, the others while keys act.
#[inline(always)]
fn begin<const LINES: usize>(pages: &Pages<LINES>, words: &[u64], hashes: &[u64], run: &Range<usize>) -> Address {
    let address = Address::of(words);
    if run.start == 0 {
        hashes.iter().take(AHEAD).for_each(|&hash| pages.fetch(address, hash));
    }
    address
}

/// Where the next key is; meanwhile the lines of one to come are fetched.
#[inline(always)]
fn next<const LINES: usize>(pages: &Pages<LINES>, address: Address, hashes: &[u64], i: usize) -> Spot<LINES> {
    if let Some(&coming) = hashes.get(i + AHEAD) {
        pages.fetch(address, coming);
    }
    pages.spot(hashes[i])
}

/// Inserts the keys of a run.
pub(crate) struct Insert<'a, const LINES: usize> {
    pub layout: &'a Lines<LINES>,
    pub words: &'a mut [u64],
    pub phase: Phase,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
}

impl<const LINES: usize> Work for Insert<'_, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { layout, words, phase, hashes, run } = self;
        let address = begin(&layout.pages, words, hashes, &run);
        let lines = words.as_chunks_mut().0;
        for i in run {
            let spot = next(&layout.pages, address, hashes, i);
            layout.set(lines, phase, &spot, &layout.taken(&spot));
        }
    }
}

/// Writes which keys of a run are there.
pub(crate) struct Query<'a, const LINES: usize> {
    pub layout: &'a Lines<LINES>,
    pub words: &'a [u64],
    pub phase: Phase,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub present: &'a mut [bool],
}

impl<const LINES: usize> Work for Query<'_, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { layout, words, phase, hashes, run, present } = self;
        let address = begin(&layout.pages, words, hashes, &run);
        let lines = words.as_chunks().0;
        for (i, present) in run.clone().zip(&mut present[run]) {
            let spot = next(&layout.pages, address, hashes, i);
            *present = layout.all_live(lines, phase, &spot, &layout.taken(&spot));
        }
    }
}

/// Writes which keys of a run were there and inserts them, all with `refresh`, else those that were not; says how many.
pub(crate) struct Duplicated<'a, const LINES: usize> {
    pub layout: &'a Lines<LINES>,
    pub words: &'a mut [u64],
    pub phase: Phase,
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub refresh: bool,
    pub seen: &'a mut [bool],
}

impl<const LINES: usize> Work for Duplicated<'_, LINES> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Self { layout, words, phase, hashes, run, refresh, seen } = self;
        let address = begin(&layout.pages, words, hashes, &run);
        let (lines, mut inserted) = (words.as_chunks_mut().0, 0);
        for (i, seen) in run.clone().zip(&mut seen[run]) {
            let spot = next(&layout.pages, address, hashes, i);
            let taken = layout.taken(&spot);
            *seen = layout.all_live(lines, phase, &spot, &taken);
            if refresh || !*seen {
                layout.set(lines, phase, &spot, &taken);
                inserted += 1;
            }
        }
        inserted
    }
}
