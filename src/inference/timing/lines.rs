//! What timers tell that share a line: the [timing filter in lines](crate::shape::timing::line).
//!
//! As with timers in slices, an insertion of the key in block a explains why c of its timers show a. Otherwise other
//! keys touched all of them in that block, and none since. Timers of a line are touched together: by one key that has
//! several of them, or by many keys that fell into the same line. So the chances are counted for the c timers at once,
//! over lines: the mean product of the shares of c words, where a word's share is of timers that show a block, or that
//! show no younger one. Loads of a line in different blocks are independent, so the key's other timers, which have been
//! overwritten since, tell nothing of block a.
//!
//! Two approximations remain: the two lines of a page are taken as independent, and a key that comes again in every
//! block as a different key each time.

use super::{RANGES, by_prior, of_block_at, of_none};
use crate::clock::Clock;
use crate::inference::{ByPrior, Evidence, Hazard, Likelihood, Span};

/// Words of a line: the most timers that one key has there.
const WORDS: usize = 8;

/// A value for each number of timers, from 0 to all.
type ByCount = [f64; WORDS + 1];

/// Counts over a sample of lines, one of those that a key has.
pub struct OfLine {
    /// Timers of a key, each in a word of its own.
    k: usize,
    /// Timers of a word.
    per_word: f64,
    /// Blocks of a range of ages.
    width: u64,
    lines: f64,
    /// For each range of ages and each number of timers: the sum over lines of the chance that all show one block of
    /// the range.
    touched: Vec<ByCount>,
    /// The chance that none shows a younger block than the range, summed over lines, as the decrease from the range
    /// before.
    sooner: Vec<ByCount>,
    /// The ages of a line at a time, each above the number of its word.
    ages: Vec<u64>,
}

impl OfLine {
    /// No lines counted yet: timers of `blocks` kept blocks, k of a line to a key, `per_word` to a word.
    pub fn new(blocks: u64, k: u32, per_word: u64) -> Self {
        let width = blocks.div_ceil(RANGES);
        let nothing = vec![[0.0; WORDS + 1]; blocks.div_ceil(width) as usize + 1];
        let (sooner, ages) = (nothing.clone(), Vec::new());
        Self { k: k as usize, per_word: per_word as f64, width, lines: 0.0, touched: nothing, sooner, ages }
    }

    /// Adds the k words of a line that some key has timers in: the ages of their live timers, each with the number of
    /// its word.
    pub fn add(&mut self, ages: impl Iterator<Item = (u64, usize)>) {
        let mut sorted = std::mem::take(&mut self.ages);
        sorted.clear();
        sorted.extend(ages.map(|(age, word)| age * WORDS as u64 + word as u64));
        sorted.sort_unstable();
        self.lines += 1.0;
        let (mut older, mut none_younger) = ([1.0; WORDS], [1.0; WORDS + 1]);
        for block in sorted.chunk_by(|a, b| a / WORDS as u64 == b / WORDS as u64) {
            let mut share = [0.0; WORDS];
            block.iter().for_each(|word| share[(word % WORDS as u64) as usize] += 1.0 / self.per_word);
            older.iter_mut().zip(share).for_each(|(older, share)| *older = f64::max(*older - share, 0.0));
            let range = (block[0] / WORDS as u64 / self.width) as usize;
            let before = none_younger;
            none_younger = self.by_count(older);
            for (count, chance) in self.by_count(share).into_iter().enumerate() {
                self.touched[range][count] += chance;
                self.sooner[range + 1][count] += before[count] - none_younger[count];
            }
        }
        self.ages = sorted;
    }

    /// For each number of timers: the product of their words' shares, averaged over all choices of that many of the k
    /// words.
    fn by_count(&self, shares: [f64; WORDS]) -> ByCount {
        // Word by word: the mean over choices among the words so far, by whether this word is chosen.
        let mut means = [0.0; WORDS + 1];
        means[0] = 1.0;
        for (words, share) in (1..=self.k).zip(shares) {
            for count in (1..=words).rev() {
                let chosen = count as f64 / words as f64;
                means[count] = (1.0 - chosen) * means[count] + chosen * share * means[count - 1];
            }
        }
        means
    }

    /// For each range of ages and each number of timers: the chance that all show one block of the range, and the
    /// chance that none shows a younger block than all of it.
    fn chances(self) -> Vec<(ByCount, ByCount)> {
        let Self { width, lines, per_word, .. } = self;
        let mut none_younger = [1.0; WORDS + 1];
        let of_range = |(touched, sooner): (ByCount, ByCount)| {
            let of_block = std::array::from_fn(|count| {
                // A sample without a key of a block does not prove that there is none.
                let least = 0.5 * per_word.powi(-(count as i32));
                touched[count].max(least) / lines / width as f64
            });
            none_younger.iter_mut().zip(sooner).for_each(|(none, sooner)| *none -= sooner / lines);
            (of_block, none_younger)
        };
        self.touched.into_iter().zip(self.sooner).map(of_range).collect()
    }
}

/// Timers in lines, in one state.
pub struct InLines {
    clock: Clock,
    /// Blocks kept, the open one among them.
    blocks: u64,
    /// Blocks in a range.
    width: u64,
    /// For each line of a key, each range of ages and each number of timers: see [`OfLine::chances`].
    lines: Vec<Vec<(ByCount, ByCount)>>,
}

impl InLines {
    /// Timers of `blocks` kept blocks, and the sample of each line of a key.
    pub fn new(clock: Clock, blocks: u64, lines: Vec<OfLine>) -> Self {
        let width = blocks.div_ceil(RANGES);
        Self { clock, blocks, width, lines: lines.into_iter().map(OfLine::chances).collect() }
    }

    /// How much likelier an insertion in a block makes it that `count` timers of a line show it.
    fn line_explains(&self, line: &[(ByCount, ByCount)], age: u64, count: usize) -> f64 {
        if count == 0 {
            return 1.0;
        }
        let (range, within) = ((age / self.width) as usize, (age % self.width) as f64 / self.width as f64);
        let (of_block, before_range) = (line[range].0[count], line[range].1[count]);
        let none_younger = before_range + within * (line[range + 1].1[count] - before_range);
        (none_younger / of_block).max(1.0)
    }

    /// The same of all lines of a key.
    fn explains(&self, evidence: Evidence) -> f64 {
        let of_line =
            |(number, line): (usize, &Vec<_>)| self.line_explains(line, evidence.age(), evidence.count(number));
        self.lines.iter().enumerate().map(of_line).product::<f64>().min(f64::MAX)
    }
}

impl Likelihood for InLines {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            return of_none(&self.clock, self.blocks, spans);
        }
        of_block_at(&self.clock, evidence.age(), self.explains(evidence), (1.0, 0.0), hazard, spans);
    }

    fn by_prior(&self, evidence: Evidence, age: f64) -> Option<ByPrior> {
        by_prior(&self.clock, self.blocks, evidence, |evidence| self.explains(evidence), age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_over_all_choices_of_words() {
        let shares = [0.5, 0.1, 0.0, 0.9, 0.3, 0.7, 1.0, 0.2];
        for k in 1..=8u32 {
            let of_line = OfLine::new(3, k, 4);
            let means = of_line.by_count(shares);
            for count in 0..=k {
                let choices: Vec<u32> = (0..1u32 << k).filter(|words| words.count_ones() == count).collect();
                let product = |&words: &u32| -> f64 {
                    (0..8).filter(|word| words >> word & 1 == 1).map(|word| shares[word]).product()
                };
                let mean = choices.iter().map(product).sum::<f64>() / choices.len() as f64;
                assert!((means[count as usize] - mean).abs() < 1e-12, "{k} {count}");
            }
        }
    }

    /// Half of the lines have one timer of each word touched in block 1, the other half in blocks 0 and 2.
    #[test]
    fn chances_are_means_over_lines_and_not_products_of_means() {
        let mut of_line = OfLine::new(3, 2, 2);
        for line in 0..10 {
            let blocks: &[u64] = if line % 2 == 0 { &[1] } else { &[0, 2] };
            of_line.add(blocks.iter().flat_map(|&block| [(block, 0), (block, 1)]));
        }
        let chances = of_line.chances();
        let of_block: Vec<_> = chances[..3].iter().map(|(of_block, _)| of_block[1..=2].to_vec()).collect();
        let none_younger: Vec<_> = chances.iter().map(|(_, none)| none[1..=2].to_vec()).collect();
        assert_eq!(of_block, vec![vec![0.25, 0.125]; 3]);
        let expected = [[1.0, 1.0], [0.75, 0.625], [0.5, 0.25], [0.25, 0.125]];
        assert_eq!(none_younger, expected.map(|chances| chances.to_vec()));
    }
}
