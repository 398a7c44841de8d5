//! How a key reads and writes lines of timers: all 8 words of a line at once, in loops without branches that compilers
//! vectorise. Words without a timer of the key are masked.

use super::{TimerRotation, TimerWords, TimersInLines};
use crate::family::lines::cells::{Encode, LINE, LineKernel, Location, Pages, ReadLines, Vectors};
use crate::inference::{Code, Evidence};
use crate::instructions::Instructions;
use crate::memory::bits::odd_constants;

/// Factors for the 32 bits of a key that choose its place in each word. They differ from the constants that choose a
/// line and, in other layouts, bits.
static PLACES: [u32; LINE] = {
    let (constants, mut high, mut i) = (odd_constants::<LINE>(24), [0; LINE], 0);
    while i < LINE {
        high[i] = (constants[i] >> 32) as u32 | 1;
        i += 1;
    }
    high
};
/// The factor for the 32 bits of a key that chooses the first of its words.
const FIRST: u32 = (odd_constants::<1>(24 + LINE as u64)[0] >> 32) as u32 | 1;

/// The timers of a key in one line.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    /// The shift of the key's timer in every word.
    pub shifts: [u64; LINE],
    /// All ones for the words that have a timer of the key, else 0.
    pub words: [u64; LINE],
}

impl Probe {
    /// Returns the timers that 32 bits of a key choose, `k` of them.
    #[inline(always)]
    pub fn new(timers: &TimerWords, seed: u32, k: u32) -> Self {
        let first = u64::from(seed.wrapping_mul(FIRST) >> 29);
        let (per_word, bits) = (timers.per_word(), timers.lanes.bits());
        let mut probe = Self { shifts: [0; LINE], words: [0; LINE] };
        for (word, place) in PLACES.into_iter().enumerate() {
            // In 64 bits: vectors multiply lower halves in one step, 32-bit numbers in two.
            let choice = (u64::from(seed) * u64::from(place)) & u64::from(u32::MAX);
            probe.shifts[word] = ((choice * per_word) >> 32) * bits;
            // All ones if the word is fewer than k after the first, by arithmetic.
            let after = (word as u64).wrapping_sub(first) & (LINE as u64 - 1);
            probe.words[word] = ((after.wrapping_sub(u64::from(k)) as i64) >> 63) as u64;
        }
        probe
    }

    /// Returns words whose top bit is set where a timer of the key is not live.
    #[inline(always)]
    fn missing(
        &self,
        timers: &TimerWords,
        TimerRotation { newest, retained }: TimerRotation,
        line: &[u64; LINE],
    ) -> [u64; LINE] {
        let most = timers.lanes.most();
        let mut missing = [0; LINE];
        for word in 0..LINE {
            let timer = line[word] >> self.shifts[word] & most;
            // A timer is live if it is younger than `retained` and not 0: both differences are negative.
            let live = timers.age(timer, newest).wrapping_sub(retained) & timer.wrapping_neg();
            missing[word] = !live & self.words[word];
        }
        missing
    }

    /// Returns how many generations ago each timer was set: more than all generations if it is empty, and -1 in words
    /// without a timer of the key. Signed, because vectors compare signed numbers.
    #[inline(always)]
    fn ages(&self, timers: &TimerWords, newest: u64, line: &[u64; LINE]) -> [i64; LINE] {
        let most = timers.lanes.most();
        let mut ages = [0; LINE];
        for word in 0..LINE {
            let timer = line[word] >> self.shifts[word] & most;
            let empty = timer.wrapping_sub(1) & 1 << 62;
            ages[word] = (empty | timers.age(timer, newest) | !self.words[word]) as i64;
        }
        ages
    }

    /// Sets the timers of the key.
    #[inline(always)]
    fn set(&self, timers: &TimerWords, newest: u64, line: &mut [u64; LINE]) {
        let most = timers.lanes.most();
        for (word, (shift, probe)) in line.iter_mut().zip(self.shifts.into_iter().zip(self.words)) {
            *word = (*word & !((most << shift) & probe)) | ((newest << shift) & probe);
        }
    }
}

/// The age of the oldest timers of a key, and how many timers of each line have it, a byte for each line. Evidence is
/// computed from it for several keys at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Oldest {
    age: i64,
    counts: u64,
}

impl<const LINES: usize> LineKernel<LINES> for TimersInLines<LINES> {
    type Rotation = TimerRotation;
    type Probe<V: Vectors> = [Probe; LINES];
    /// Whether all timers of a key are live.
    type Read = bool;
    type Ages = ReadOldest;

    #[inline(always)]
    fn pages(&self) -> Pages<LINES> {
        self.pages
    }

    #[inline(always)]
    fn instructions(&self) -> Instructions {
        self.instructions
    }

    #[inline(always)]
    fn probe<V: Vectors>(&self, _: V, location: &Location<LINES>) -> [Probe; LINES] {
        let mut probe = [Probe { shifts: [0; LINE], words: [0; LINE] }; LINES];
        for (probe, (seed, k)) in probe.iter_mut().zip(location.seeds.into_iter().zip(self.k)) {
            *probe = Probe::new(&self.timers, seed, k);
        }
        probe
    }

    #[inline(always)]
    fn read<V: Vectors>(
        &self,
        _: V,
        lines: &[[u64; LINE]],
        rotation: TimerRotation,
        location: &Location<LINES>,
        probe: &[Probe; LINES],
    ) -> bool {
        let mut any = 0;
        for t in 0..LINES {
            for word in probe[t].missing(&self.timers, rotation, &lines[location.lines[t]]) {
                any |= word;
            }
        }
        any >> 63 == 0
    }

    #[inline(always)]
    fn reports(&self, _: TimerRotation, _page: u32, all_live: bool) -> bool {
        all_live
    }

    #[inline(always)]
    fn evidence_at(
        &self,
        TimerRotation { retained, .. }: TimerRotation,
        _page: u32,
        Oldest { age, counts }: Oldest,
    ) -> Evidence {
        let mut of_lines = [0; LINES];
        for (t, of_line) in of_lines.iter_mut().enumerate() {
            *of_line = counts >> (8 * t) & 0xff;
        }
        Evidence::oldest(age as u64, of_lines).if_present(age < retained as i64)
    }

    #[inline(always)]
    fn write<V: Vectors>(
        &self,
        _: V,
        lines: &mut [[u64; LINE]],
        rotation: TimerRotation,
        location: &Location<LINES>,
        probe: &[Probe; LINES],
    ) {
        for t in 0..LINES {
            probe[t].set(&self.timers, rotation.newest, &mut lines[location.lines[t]]);
        }
    }
}

/// Reads the oldest timers of a key.
pub(crate) struct ReadOldest;

impl<const LINES: usize> ReadLines<TimersInLines<LINES>, LINES> for ReadOldest {
    type Value = Oldest;

    #[inline(always)]
    fn read<V: Vectors>(
        cells: &TimersInLines<LINES>,
        vectors: V,
        lines: &[[u64; LINE]],
        TimerRotation { newest, .. }: TimerRotation,
        location: &Location<LINES>,
    ) -> Oldest {
        let (probe, mut ages, mut oldest) = (cells.probe(vectors, location), [[0; LINE]; LINES], i64::MIN);
        for t in 0..LINES {
            ages[t] = probe[t].ages(&cells.timers, newest, &lines[location.lines[t]]);
            for age in ages[t] {
                oldest = i64::max(oldest, age);
            }
        }
        let mut counts = 0;
        for (t, ages) in ages.iter().enumerate() {
            counts |= vectors.equal(ages, oldest) << (8 * t);
        }
        Oldest { age: oldest, counts }
    }
}

impl<const LINES: usize> Encode<TimersInLines<LINES>, LINES> for Code {
    #[inline(always)]
    fn encode(cells: &TimersInLines<LINES>, rotation: TimerRotation, page: u32, read: Oldest) -> Self {
        const { assert!(LINES <= 2) };
        Self::of_timers(cells.evidence_at(rotation, page, read))
    }
}
