//! What lines say about keys, and what they are like: for [inference](crate::inference::line).
//!
//! Lanes next to each other share the keys of k - 1 generations, so that a run of them matches by chance more often than
//! the product of their rates has it: a loaded line has all of them loaded. So runs of up to k lanes are measured as one.
//! (At 15 bits per key with k = 2, on a uniform stream of 2^16 keys, posteriors are off by 0.0008 in the mean, and by
//! 0.0021 if lanes are taken for independent.) How full the line of a key itself is does not count: the evidence is its
//! lanes alone, and the rates are those of all lines that it could have had.
//!
//! What is left is that a lane beside a run which does not match speaks for a line of few keys. Posteriors between 0.2
//! and 0.8, those of a few keys in a hundred, are up to 0.045 too low with k = 4 for it, and 0.01 with k = 2; in the mean
//! over all keys that is 0.002 and less from 15 bits per key on (0.006 with 32 lanes, of which k = 4).

use super::{LanePhase, LanesInLines, Pages};
use crate::clock::Clock;
use crate::inference::Evidence;
use crate::inference::line::{STRETCHES, Stretches};
use crate::inference::ring::{Generation, Ring, not_ruled_out};
use crate::layout::Layout;
use crate::shape::line::SUBLANE_BITS;

/// Lines of a stretch of pages whose bits are counted, where there are more. The rates of a stretch are right to 4 %, by
/// chance too high or too low, since the loads of lines deviate by a third and more.
const SAMPLE: u64 = 256;

impl<const LANES: usize, const LINES: usize> LanesInLines<LANES, LINES> {
    /// How many pages have turned after this one.
    #[inline(always)]
    fn behind(&self, phase: LanePhase, page: u32) -> u64 {
        let behind = phase.turned.wrapping_sub(page);
        u64::from(if page > phase.turned { behind.wrapping_add(self.pages.count as u32) } else { behind })
    }

    /// Pages of a stretch, as a power of two.
    #[inline(always)]
    fn stretch_log2(&self) -> u32 {
        (self.pages.count - 1).checked_ilog2().map_or(0, |log2| (log2 + 1).saturating_sub(STRETCHES.ilog2()))
    }

    /// The evidence of a key of this page whose bits are in these lanes, a bit each by place.
    #[inline(always)]
    pub(super) fn says(&self, phase: LanePhase, page: u32, lanes: u32) -> Evidence {
        let generations = not_ruled_out(self.by_age(phase, page, lanes).into(), self.k, LANES as u32);
        generations.in_stretch(self.behind(phase, page) >> self.stretch_log2())
    }

    /// What the lines are like, stretch by stretch.
    pub(super) fn rings(&self, words: &[u64], clock: &Clock) -> Stretches {
        let (phase, length) = (self.phase(clock.generation(), 0), 1 << self.stretch_log2());
        let stretch = |first: u64| {
            let pages = length.min(self.pages.count - first);
            let sampled = SAMPLE.div_ceil(Pages::<LINES>::RANGE).min(pages);
            let page = |behind: u64| (u64::from(phase.turned) + self.pages.count - behind) % self.pages.count;
            let sample = (0..sampled).map(|i| page(first + i * pages / sampled));
            let chances = sample.flat_map(|page| self.chances_of(words, phase, page));
            Ring::of_runs(self.k, self.generations_of(clock, first + pages / 2), self.run_rates(chances))
        };
        Stretches((0..self.pages.count).step_by(length as usize).map(stretch).collect())
    }

    /// The generations of a page that so many have turned after.
    fn generations_of(&self, clock: &Clock, behind: u64) -> Vec<Generation> {
        // The latest insertion stands for the time it takes: see `Clock::exposure`.
        let mut next = -clock.gap();
        let generation = |turns: u64| {
            let began = clock.began(turns * self.pages.count + behind);
            let exposure = began - next;
            next = began;
            Generation { began, exposure }
        };
        (0..LANES as u64).map(generation).collect()
    }

    /// From the chances of a sample of lines, for each lane those of the runs of 1 to k lanes from it on.
    pub(super) fn run_rates(&self, chances: impl Iterator<Item = [f64; LANES]>) -> impl Iterator<Item = f64> {
        let k = self.k as usize;
        let (mut sums, mut lines) = (vec![0.0; LANES * k], 0);
        for chances in chances {
            lines += 1;
            for (lane, sums) in sums.chunks_mut(k).enumerate() {
                let mut run = 1.0;
                for (sum, chance) in sums.iter_mut().zip(chances[lane..].iter().chain(std::iter::repeat(&1.0))) {
                    run *= chance;
                    *sum += run;
                }
            }
        }
        // Where no line of the sample has the bits, half a line may have those of one key.
        let of_one = f64::from(SUBLANE_BITS).powi(-((LINES * 32 / LANES) as i32));
        sums.into_iter().enumerate().map(move |(i, sum)| {
            let least = 0.5 * of_one.powi((i % k + 1) as i32);
            f64::max(sum, least) / f64::from(lines)
        })
    }
}
