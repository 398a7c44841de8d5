//! The likelihood of timers that share a line: the [timing filter in lines](crate::family::timing::shape::line).
//!
//! As with timers in slices, an insertion of the key in block a explains why c of its timers show a. Otherwise other
//! keys touched all of them in that block, and none since. Timers of a line are touched together: by one key that has
//! several of them, or by many keys that fell into the same line. So the chances are counted for the c timers at once,
//! over lines: the mean product of the shares of c words, where a word's share is of timers that show a block, or that
//! show no younger one. Loads of a line in different blocks are independent, so the key's other timers, which have been
//! overwritten since, carry no information about block a.
//!
//! Two approximations remain: the two lines of a page are taken as independent, and a key that comes again in every
//! block as a different key each time.

use super::{RANGES, of_block_at, of_none, posterior_curve};
use crate::clock::Clock;
use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span};

/// Number of words of a line: the greatest number of timers that one key has there.
const WORDS: usize = 8;

/// A value for each number of timers, from 0 to all.
type ByCount = [f64; WORDS + 1];

/// Returns in how many ways each number of a key's words can be chosen, from the counts of timers in its words: a word
/// counts once for each timer that may be the key's.
///
/// The results are whole numbers, for a sample as well: exact in any order, as long as there are fewer than 2^53 of
/// them. A line has at most 2^40, of eight words of 32 timers.
#[inline(always)]
fn ways(words: impl Iterator<Item = f64>) -> ByCount {
    // Word by word: the ways among the words so far, without this word or with it.
    let mut ways = [0.0; WORDS + 1];
    ways[0] = 1.0;
    for count in words {
        for chosen in (1..=WORDS).rev() {
            ways[chosen] += count * ways[chosen - 1];
        }
    }
    ways
}

/// Adds the ways of `N` lines, several at once.
#[inline(always)]
fn add<const N: usize>(sums: &mut ByCount, words: &[[f64; N]]) {
    let mut of_lines = [[0.0; WORDS]; WORDS + 1];
    for first in (0..N).step_by(WORDS) {
        let mut ways = [[0.0; WORDS]; WORDS + 1];
        ways[0] = [1.0; WORDS];
        for (before, counts) in words.iter().enumerate() {
            for chosen in (1..=before + 1).rev() {
                for line in 0..WORDS {
                    ways[chosen][line] += counts[first + line] * ways[chosen - 1][line];
                }
            }
        }
        for chosen in 0..=WORDS {
            for line in 0..WORDS {
                of_lines[chosen][line] += ways[chosen][line];
            }
        }
    }
    sums.iter_mut().zip(of_lines).for_each(|(sum, of_lines)| *sum += of_lines.iter().sum::<f64>());
}

/// Counts over a sample of lines, for one of the lines that a key has.
pub struct TimerCounts {
    /// Number of timers of a key, each in a word of its own.
    k: usize,
    /// Number of timers of a word.
    per_word: f64,
    /// Number of blocks of a range of ages.
    width: u64,
    lines: f64,
    /// For each range of ages and each number of timers: the [`ways`] in which all show one block of the range, and
    /// those in which none shows a younger block than the range, summed over lines.
    ranges: Vec<(ByCount, ByCount)>,
}

impl TimerCounts {
    /// Creates empty counts of `lines` lines: with `blocks` retained blocks, k timers of a key in a line, and
    /// `per_word` timers in a word.
    pub fn new(blocks: u64, k: u32, per_word: u64, lines: usize) -> Self {
        let width = blocks.div_ceil(RANGES);
        let ranges = vec![([0.0; WORDS + 1], [0.0; WORDS + 1]); blocks.div_ceil(width) as usize + 1];
        Self { k: k as usize, per_word: per_word as f64, width, lines: lines as f64, ranges }
    }

    /// Returns the number of blocks of a range of ages.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Returns the counts of one range, for one timer or more.
    #[cfg(test)]
    pub fn of(&self, range: u64) -> [&[f64]; 2] {
        let (touched, none_younger) = &self.ranges[range as usize];
        [&touched[1..], &none_younger[1..]]
    }

    /// Adds the timers of `N` lines in one range, in each of a key's words: how many timers show one block of it, and
    /// how many show none that is younger than all of it.
    #[inline(always)]
    pub fn add<const N: usize>(&mut self, range: u64, of_block: &[[f64; N]], none_younger: &[[f64; N]]) {
        let sums = &mut self.ranges[range as usize];
        add(&mut sums.0, of_block);
        add(&mut sums.1, none_younger);
    }

    /// Returns for each range of ages and each number of timers the chance that all show one block of the range, and
    /// the chance that none shows a younger block than all of it.
    fn chances(self) -> Vec<(ByCount, ByCount)> {
        let choices = ways((0..self.k).map(|_| 1.0));
        let share = |sums: ByCount, least: f64| {
            std::array::from_fn(|count| {
                let of_all = self.per_word.powi(count as i32);
                // There are no more timers than the key has.
                let mean = if count <= self.k { sums[count] / choices[count] } else { 0.0 };
                f64::max(mean, least) / of_all / self.lines
            })
        };
        let of_range = |&(touched, none_younger): &(ByCount, ByCount)| {
            // A sample without a key of a block does not prove that there is none.
            let of_block: ByCount = share(touched, 0.5);
            (of_block.map(|chance| chance / self.width as f64), share(none_younger, 0.0))
        };
        self.ranges.iter().map(of_range).collect()
    }
}

/// Counts over a sample of lines, made line by line for all ranges at once.
pub struct LineCounter {
    sums: TimerCounts,
    /// The ages of a line at a time, each above the number of its word.
    ages: Vec<u64>,
}

impl LineCounter {
    /// Creates counts of no lines.
    pub fn new(sums: TimerCounts) -> Self {
        Self { sums, ages: Vec::new() }
    }

    /// Adds the k words of a line in which some key has timers: the ages of their live timers, each with the number of
    /// its word.
    pub fn add(&mut self, ages: impl Iterator<Item = (u64, usize)>) {
        let mut sorted = std::mem::take(&mut self.ages);
        sorted.clear();
        sorted.extend(ages.map(|(age, word)| age * WORDS as u64 + word as u64));
        sorted.sort_unstable();
        let (k, width, ranges) = (self.sums.k, self.sums.width, &mut self.sums.ranges);
        let of_words = |counts: [f64; WORDS]| ways(counts.into_iter().take(k));
        let mut older = [self.sums.per_word; WORDS];
        let mut none_younger = of_words(older);
        ranges[0].1.iter_mut().zip(none_younger).for_each(|(sum, ways)| *sum += ways);
        for block in sorted.chunk_by(|a, b| a / WORDS as u64 == b / WORDS as u64) {
            let mut counts = [0.0; WORDS];
            block.iter().for_each(|word| counts[(word % WORDS as u64) as usize] += 1.0);
            older.iter_mut().zip(counts).for_each(|(older, count)| *older -= count);
            let range = (block[0] / WORDS as u64 / width) as usize;
            let before = none_younger;
            none_younger = of_words(older);
            for (count, ways) in of_words(counts).into_iter().enumerate() {
                ranges[range].0[count] += ways;
                // As the difference to the range before, until all lines are counted.
                ranges[range + 1].1[count] += none_younger[count] - before[count];
            }
        }
        self.ages = sorted;
    }

    /// Returns the finished counts.
    pub fn sums(mut self) -> TimerCounts {
        let mut none_younger = [0.0; WORDS + 1];
        for (_, sums) in &mut self.sums.ranges {
            sums.iter_mut().zip(&mut none_younger).for_each(|(sum, of_all)| {
                *of_all += *sum;
                *sum = *of_all;
            });
        }
        self.sums
    }
}

/// The likelihood of timers in lines, in one state.
pub struct LineLikelihood {
    clock: Clock,
    /// Number of retained blocks, the open one included.
    blocks: u64,
    /// Number of blocks in a range.
    width: u64,
    /// For each line of a key, each range of ages and each number of timers: see [`TimerCounts::chances`].
    lines: Vec<Vec<(ByCount, ByCount)>>,
}

impl LineLikelihood {
    /// Creates the likelihood of timers of `blocks` retained blocks, from the sample of each line of a key.
    pub fn new(clock: Clock, blocks: u64, lines: Vec<TimerCounts>) -> Self {
        let width = blocks.div_ceil(RANGES);
        Self { clock, blocks, width, lines: lines.into_iter().map(TimerCounts::chances).collect() }
    }

    /// Returns by which factor an insertion in a block raises the chance that `count` timers of a line show it.
    fn line_explains(&self, line: &[(ByCount, ByCount)], age: u64, count: usize) -> f64 {
        if count == 0 {
            return 1.0;
        }
        let (range, within) = ((age / self.width) as usize, (age % self.width) as f64 / self.width as f64);
        let (of_block, before_range) = (line[range].0[count], line[range].1[count]);
        let none_younger = before_range + within * (line[range + 1].1[count] - before_range);
        (none_younger / of_block).max(1.0)
    }

    /// Returns by which factor an insertion in the oldest block raises the chance of the evidence of all of a key's
    /// lines.
    fn explains(&self, evidence: Evidence) -> f64 {
        let of_line =
            |(number, line): (usize, &Vec<_>)| self.line_explains(line, evidence.age(), evidence.count(number));
        self.lines.iter().enumerate().map(of_line).product::<f64>().min(f64::MAX)
    }
}

impl Likelihood for LineLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            return of_none(&self.clock, self.blocks, spans);
        }
        of_block_at(&self.clock, evidence.age(), self.explains(evidence), (1.0, 0.0), hazard, spans);
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        posterior_curve(&self.clock, self.blocks, evidence, |evidence| self.explains(evidence), age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_those_of_all_choices_of_words() {
        let counts = [5.0, 1.0, 0.0, 9.0, 3.0, 7.0, 10.0, 2.0];
        for k in 1..=8usize {
            let ways = ways(counts.into_iter().take(k));
            for (count, way) in ways.iter().enumerate().take(k + 1) {
                let choices = (0..1u32 << k).filter(|words| words.count_ones() as usize == count);
                let product = |words: u32| -> f64 {
                    (0..8).filter(|word| words >> word & 1 == 1).map(|word| counts[word]).product()
                };
                assert_eq!(*way, choices.map(product).sum::<f64>(), "{k} {count}");
            }
        }
    }

    /// Half of the lines have one timer of each word touched in block 1, the other half in blocks 0 and 2.
    #[test]
    fn chances_are_means_over_lines_and_not_products_of_means() {
        let mut of_line = LineCounter::new(TimerCounts::new(3, 2, 2, 10));
        for line in 0..10 {
            let blocks: &[u64] = if line % 2 == 0 { &[1] } else { &[0, 2] };
            of_line.add(blocks.iter().flat_map(|&block| [(block, 0), (block, 1)]));
        }
        let chances = of_line.sums().chances();
        let of_block: Vec<_> = chances[..3].iter().map(|(of_block, _)| of_block[1..=2].to_vec()).collect();
        let none_younger: Vec<_> = chances.iter().map(|(_, none)| none[1..=2].to_vec()).collect();
        assert_eq!(of_block, vec![vec![0.25, 0.125]; 3]);
        let expected = [[1.0, 1.0], [0.75, 0.625], [0.5, 0.25], [0.25, 0.125]];
        assert_eq!(none_younger, expected.map(|chances| chances.to_vec()));
    }
}
