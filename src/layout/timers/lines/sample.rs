//! How full lines of timers are, from a sample: for [inference](crate::inference::timing), and for the rate of false
//! positives of the current timers.

use super::{LINE, PAGE, TimerPhase, TimersInLines};
use crate::clock::Clock;
use crate::inference::timing::{InLines, OfLine};
use crate::layout::line::Pages;

/// Lines of each range to sample for inference. They tell to some 4 % how well other keys explain timers of one block,
/// since the loads of lines deviate; it takes some 3 ms.
const SAMPLE: usize = 2048;

impl<const LINES: usize> TimersInLines<LINES> {
    /// What a sample of these words tells of all timers.
    pub(crate) fn sampled(&self, words: &[u64], clock: &Clock) -> InLines {
        let phase = self.timers.phase(clock.generation(), 0);
        let range = Pages::<LINES>::RANGE as usize;
        let all = self.pages.count as usize * range;
        // All lines of a small filter, each for several of the 8 runs of words that keys have.
        let sampled = SAMPLE.min(all * LINE);
        let of_line = |t: usize| {
            let mut timers = OfLine::new(phase.kept, self.k[t], self.timers.per_word());
            for i in 0..sampled {
                let number = (i as u128 * all as u128 / sampled as u128) as usize;
                let line = &words[(number / range) * PAGE + (t * range + number % range) * LINE..][..LINE];
                let ages = (0..self.k[t] as usize)
                    .flat_map(|run| self.timers.live_ages(line[(i + run) % LINE], phase).map(move |age| (age, run)));
                timers.add(ages);
            }
            timers
        };
        InLines::new(*clock, phase.kept, (0..LINES).map(of_line).collect())
    }

    /// Chance that a fresh key is reported: given the timers, words match independently.
    pub(super) fn reported(&self, words: &[u64], phase: TimerPhase) -> f64 {
        let range = Pages::<LINES>::RANGE as usize;
        let per_word = self.timers.per_word() as f64;
        let of_line = |line: &[u64], k: u32| {
            let live: [f64; LINE] =
                std::array::from_fn(|word| self.timers.count(&line[word..=word], phase) as f64 / per_word);
            let run = |start: usize| (start..start + k as usize).map(|word| live[word % LINE]).product::<f64>();
            (0..LINE).map(run).sum::<f64>() / LINE as f64
        };
        let of_page = |page: &[u64]| {
            let ranges = page.chunks_exact(range * LINE).zip(self.k);
            ranges
                .map(|(lines, k)| lines.chunks_exact(LINE).map(|line| of_line(line, k)).sum::<f64>() / range as f64)
                .product::<f64>()
        };
        words.chunks_exact(PAGE).map(of_page).sum::<f64>() / self.pages.count as f64
    }
}
