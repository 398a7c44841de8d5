//! How full lines of timers are, from a sample: for [inference](crate::family::timing::likelihood), and for the rate of
//! false positives of the current timers.

use super::{LINE, PAGE, TimerRotation, TimersInLines};
use crate::clock::Clock;
use crate::family::lines::cells::Pages;
use crate::family::timing::likelihood::{LineCounter, LineLikelihood, TimerCounts};
use crate::inference::{Evidence, Question};
use crate::instructions::Work;

/// Number of lines of each range that are sampled for inference. The loads of lines deviate, so the rate at which other
/// keys set the timers of one block is right to some 4 %.
const SAMPLE: usize = 2048;
/// Number of lines that are counted together; samples are a multiple of it.
const TOGETHER: usize = 64;
/// The greatest number of blocks that are counted singly, in some 10 to 40 microseconds each. All blocks together take
/// 2 to 4 ms.
const COUNTED_SINGLY: u64 = 64;

impl<const LINES: usize> TimersInLines<LINES> {
    /// Returns the sums of a sample of the timers, of all ages or of those that the question is about.
    pub(crate) fn sampled(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> LineLikelihood {
        let rotation = self.timers.rotation(clock.generation(), 0);
        let mut blocks: Vec<u64> = match question.few {
            Some(few) => few.iter().filter(|&&one| one != Evidence::ABSENT).map(|one| one.age()).collect(),
            None => (0..rotation.retained.min(COUNTED_SINGLY + 1)).collect(),
        };
        blocks.sort_unstable();
        blocks.dedup();
        let of_line = |t: usize| {
            let sums = TimerCounts::new(rotation.retained, self.k[t], self.timers.per_word(), self.sample().len());
            if sums.width() == 1 && blocks.len() as u64 <= COUNTED_SINGLY {
                self.of_blocks(words, rotation, t, &blocks, sums)
            } else {
                self.of_all(words, rotation, t, sums)
            }
        };
        LineLikelihood::new(*clock, rotation.retained, (0..LINES).map(of_line).collect())
    }

    /// Returns the numbers of the lines of a sample. A small filter has all of its lines in it, each for several of the
    /// 8 runs of words that a key may have.
    pub(super) fn sample(&self) -> impl ExactSizeIterator<Item = usize> {
        let all = self.pages.count as usize * Pages::<LINES>::RANGE as usize;
        // All divisors are constant powers of two.
        let small = all * LINE <= SAMPLE;
        (0..SAMPLE.min(all * LINE)).map(move |i| if small { i / LINE } else { i * all / SAMPLE })
    }

    /// Returns the line of this number among those that may be the t-th of a key.
    #[inline(always)]
    fn line<'w>(&self, words: &'w [u64], t: usize, number: usize) -> &'w [u64] {
        let range = Pages::<LINES>::RANGE as usize;
        &words[(number / range) * PAGE + (t * range + number % range) * LINE..][..LINE]
    }

    /// Returns the sums of all blocks.
    pub(super) fn of_all(&self, words: &[u64], rotation: TimerRotation, t: usize, sums: TimerCounts) -> TimerCounts {
        let mut timers = LineCounter::new(sums);
        for (i, number) in self.sample().enumerate() {
            let line = self.line(words, t, number);
            let ages = (0..self.k[t] as usize)
                .flat_map(|run| self.timers.live_ages(line[(i + run) % LINE], rotation).map(move |age| (age, run)));
            timers.add(ages);
        }
        timers.sums()
    }

    /// Returns the sums of these blocks.
    pub(super) fn of_blocks(
        &self,
        words: &[u64],
        rotation: TimerRotation,
        t: usize,
        blocks: &[u64],
        mut sums: TimerCounts,
    ) -> TimerCounts {
        let (mut lines, k) = (self.sample().enumerate(), self.k[t] as usize);
        while lines.len() > 0 && !blocks.is_empty() {
            let mut runs = [[0; TOGETHER]; LINE];
            for (line, (i, number)) in lines.by_ref().take(TOGETHER).enumerate() {
                let words = self.line(words, t, number);
                runs.iter_mut().take(k).enumerate().for_each(|(run, to)| to[line] = words[(i + run) % LINE]);
            }
            let runs = &runs[..k];
            self.instructions.run(CountBlocks { cells: self, rotation, runs, blocks, sums: &mut sums });
        }
        sums
    }

    /// Returns the chance that a fresh key is reported: given the timers, words match independently.
    pub(super) fn reported(&self, words: &[u64], rotation: TimerRotation) -> f64 {
        let range = Pages::<LINES>::RANGE as usize;
        let per_word = self.timers.per_word() as f64;
        let of_line = |line: &[u64], k: u32| {
            let live: [f64; LINE] =
                std::array::from_fn(|word| self.timers.count(&line[word..=word], rotation) as f64 / per_word);
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

/// Counts blocks in the runs of words of some lines.
struct CountBlocks<'a, const LINES: usize> {
    cells: &'a TimersInLines<LINES>,
    rotation: TimerRotation,
    runs: &'a [[u64; TOGETHER]],
    blocks: &'a [u64],
    sums: &'a mut TimerCounts,
}

impl<M, const LINES: usize> Work<M> for CountBlocks<'_, LINES> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let Self { cells: &TimersInLines { timers, .. }, rotation: TimerRotation { newest, .. }, runs, blocks, sums } =
            self;
        let (mut of_block, mut none_younger) = ([[0.0; TOGETHER]; LINE], [[0.0; TOGETHER]; LINE]);
        for &block in blocks {
            let own = timers.before(newest, block);
            let younger = block.checked_sub(1).map(|younger| timers.before(newest, younger));
            for (run, words) in runs.iter().enumerate() {
                for line in 0..TOGETHER {
                    of_block[run][line] = f64::from(timers.lanes.count(words[line], own));
                }
                none_younger[run] = [timers.per_word() as f64; TOGETHER];
                if let Some(first) = younger {
                    for line in 0..TOGETHER {
                        none_younger[run][line] -= f64::from(timers.lanes.count_within(words[line], first, newest));
                    }
                }
            }
            sums.add(block, &of_block[..runs.len()], &none_younger[..runs.len()]);
        }
    }
}
