//! What a key does in lines of timers: all 8 words of a line at once, those without a timer of the key masked, in loops
//! without branches that compilers vectorise.

use super::{TimerPhase, Timers, TimersInLines};
use crate::inference::{Code, Evidence};
use crate::instructions::Instructions;
use crate::layout::line::{InLines, LINE, Pages, Spot, Told, Vectors};
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
/// The factor that chooses the first of its words.
const FIRST: u32 = (odd_constants::<1>(24 + LINE as u64)[0] >> 32) as u32 | 1;

/// The timers of a key in one line.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// The shift of its timer in every word.
    pub shifts: [u64; LINE],
    /// All ones in the words that have a timer of it, else 0.
    pub words: [u64; LINE],
}

impl Taken {
    #[inline(always)]
    pub fn new(timers: &Timers, seed: u32, k: u32) -> Self {
        let first = u64::from(seed.wrapping_mul(FIRST) >> 29);
        let (per_word, bits) = (timers.per_word(), timers.lanes.bits());
        let mut taken = Self { shifts: [0; LINE], words: [0; LINE] };
        for (word, place) in PLACES.into_iter().enumerate() {
            // In 64 bits: vectors multiply lower halves in one step, 32-bit numbers in two.
            let choice = (u64::from(seed) * u64::from(place)) & u64::from(u32::MAX);
            taken.shifts[word] = ((choice * per_word) >> 32) * bits;
            // Arithmetic: all ones if the word is fewer than k after the first.
            let after = (word as u64).wrapping_sub(first) & (LINE as u64 - 1);
            taken.words[word] = ((after.wrapping_sub(u64::from(k)) as i64) >> 63) as u64;
        }
        taken
    }

    /// In the top bits: where a timer of the key is not live.
    #[inline(always)]
    fn missing(&self, timers: &Timers, TimerPhase { newest, kept }: TimerPhase, line: &[u64; LINE]) -> [u64; LINE] {
        let most = timers.lanes.most();
        let mut missing = [0; LINE];
        for word in 0..LINE {
            let timer = line[word] >> self.shifts[word] & most;
            // A timer is live if it is younger than `kept` and not 0: both differences are negative.
            let live = timers.age(timer, newest).wrapping_sub(kept) & timer.wrapping_neg();
            missing[word] = !live & self.words[word];
        }
        missing
    }

    /// How many generations ago each timer was set, more than all generations if it is empty; -1 in words without one.
    /// With a sign, as vectors compare them.
    #[inline(always)]
    fn ages(&self, timers: &Timers, newest: u64, line: &[u64; LINE]) -> [i64; LINE] {
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
    fn set(&self, timers: &Timers, newest: u64, line: &mut [u64; LINE]) {
        let most = timers.lanes.most();
        for (word, (shift, taken)) in line.iter_mut().zip(self.shifts.into_iter().zip(self.words)) {
            *word = (*word & !((most << shift) & taken)) | ((newest << shift) & taken);
        }
    }
}

/// The age of the oldest timers of a key, and how many of each line show it, a byte for each: what evidence is made of,
/// for several keys at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Oldest {
    age: i64,
    counts: u64,
}

impl<const LINES: usize> InLines<LINES> for TimersInLines<LINES> {
    type Phase = TimerPhase;
    type Taken<V: Vectors> = [Taken; LINES];
    /// Whether all timers of a key are live.
    type Read = bool;
    type Aged = Oldest;

    #[inline(always)]
    fn pages(&self) -> Pages<LINES> {
        self.pages
    }

    #[inline(always)]
    fn instructions(&self) -> Instructions {
        self.instructions
    }

    #[inline(always)]
    fn taken<V: Vectors>(&self, _: V, spot: &Spot<LINES>) -> [Taken; LINES] {
        let mut taken = [Taken { shifts: [0; LINE], words: [0; LINE] }; LINES];
        for (taken, (seed, k)) in taken.iter_mut().zip(spot.seeds.into_iter().zip(self.k)) {
            *taken = Taken::new(&self.timers, seed, k);
        }
        taken
    }

    #[inline(always)]
    fn read<V: Vectors>(
        &self,
        _: V,
        lines: &[[u64; LINE]],
        phase: TimerPhase,
        spot: &Spot<LINES>,
        taken: &[Taken; LINES],
    ) -> bool {
        let mut any = 0;
        for t in 0..LINES {
            for word in taken[t].missing(&self.timers, phase, &lines[spot.lines[t]]) {
                any |= word;
            }
        }
        any >> 63 == 0
    }

    #[inline(always)]
    fn holds(&self, _: TimerPhase, _page: u32, all_live: bool) -> bool {
        all_live
    }

    #[inline(always)]
    fn read_age<V: Vectors>(
        &self,
        vectors: V,
        lines: &[[u64; LINE]],
        TimerPhase { newest, .. }: TimerPhase,
        spot: &Spot<LINES>,
    ) -> Oldest {
        let (taken, mut ages, mut oldest) = (self.taken(vectors, spot), [[0; LINE]; LINES], i64::MIN);
        for t in 0..LINES {
            ages[t] = taken[t].ages(&self.timers, newest, &lines[spot.lines[t]]);
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

    #[inline(always)]
    fn says(&self, TimerPhase { kept, .. }: TimerPhase, _page: u32, Oldest { age, counts }: Oldest) -> Evidence {
        let mut of_lines = [0; LINES];
        for (t, of_line) in of_lines.iter_mut().enumerate() {
            *of_line = counts >> (8 * t) & 0xff;
        }
        Evidence::oldest(age as u64, of_lines).if_there(age < kept as i64)
    }

    #[inline(always)]
    fn write<V: Vectors>(
        &self,
        _: V,
        lines: &mut [[u64; LINE]],
        phase: TimerPhase,
        spot: &Spot<LINES>,
        taken: &[Taken; LINES],
    ) {
        for t in 0..LINES {
            taken[t].set(&self.timers, phase.newest, &mut lines[spot.lines[t]]);
        }
    }
}

impl<const LINES: usize> Told<TimersInLines<LINES>, LINES> for Code {
    #[inline(always)]
    fn told(cells: &TimersInLines<LINES>, phase: TimerPhase, page: u32, read: Oldest) -> Self {
        const { assert!(LINES <= 2) };
        Self::of_timers(cells.says(phase, page, read))
    }
}
