//! Timers in lines: the timers of a key lie in consecutive words of one cache line, one in each, or of two lines of one
//! page.
//!
//! The line is found as in the other families' [`line`] layout. 32 bits of the hash choose the first of a key's words
//! in it, and a place in each word. Two keys of a line have the same timers with chance 2^-32.
//!
//! Pages do not rotate separately: all timers age at once, as in slices.

mod kernel;
mod sample;

use std::ops::Range;

use super::{TimerRotation, TimerWords};
use crate::clock::Clock;
use crate::family::abilities::{Codes, Divide, Infer, Partition, Shorten};
use crate::family::lines::cells::{LINE, Pages, Run};
use crate::family::lines::shape::PAGE_LINES;
use crate::family::timing::shape::line::TimingLineShape;
use crate::family::{Abilities, Layout, Occupancy};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::instructions::Instructions;
use crate::memory::prefetch::Address;
use kernel::Probe;

/// Words of a page.
const PAGE: usize = PAGE_LINES as usize * LINE;

/// Pages of lines of timers. A key has timers in `LINES` lines of one page.
#[derive(Clone, Copy)]
pub struct TimersInLines<const LINES: usize> {
    pub(crate) timers: TimerWords,
    pages: Pages<LINES>,
    /// The number of timers of a key in each of its lines.
    k: [u32; LINES],
    instructions: Instructions,
}

impl<const LINES: usize> TimersInLines<LINES> {
    /// Returns the layout of a shape.
    pub(crate) fn new(shape: TimingLineShape) -> Self {
        Self {
            timers: TimerWords::new(shape.bpt, shape.blocks, shape.pages * PAGE as u64),
            pages: Pages::new(shape.pages),
            k: std::array::from_fn(|line| shape.k_of(line as u32)),
            instructions: Instructions::best(),
        }
    }

    /// Returns the word of each timer of a key in this partition, and the shift in it.
    #[inline(always)]
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u32)> {
        let location = self.pages.location(hash);
        (0..LINES).flat_map(move |t| {
            let probe = Probe::new(&self.timers, location.seeds[t], self.k[t]);
            let words = (0..LINE).filter(move |&word| probe.words[word] != 0);
            words.map(move |word| (location.lines[t] * LINE + word, probe.shifts[word] as u32))
        })
    }

    /// Returns a run of keys for these timers.
    #[inline(always)]
    fn run<'a>(&'a self, rotation: TimerRotation, hashes: &'a [u64], run: Range<usize>) -> Run<'a, Self, LINES> {
        Run { cells: self, rotation, hashes, run }
    }

    /// Writes the numbers of the timers of a key, counted over all words.
    #[inline(always)]
    pub(crate) fn cells(&self, hash: u64, cells: &mut [u64]) {
        let number = |word: usize, shift: u32| word as u64 * self.timers.per_word() + self.timers.lanes.lane(shift);
        for (cell, (word, shift)) in cells.iter_mut().zip(self.places(hash)) {
            *cell = number(word, shift);
        }
    }
}

impl<const LINES: usize> Layout for TimersInLines<LINES> {
    type Rotation = TimerRotation;

    fn generations(&self) -> u64 {
        self.timers.generations()
    }

    fn rotation(&self, generation: i64, pending: u64) -> TimerRotation {
        self.timers.rotation(generation, pending)
    }

    #[inline(always)]
    fn prefetch_insert(&self, words: Address, _: TimerRotation, hash: u64) {
        self.pages.fetch(words, hash);
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.pages.fetch(words, hash);
    }

    fn insert(&self, words: &mut [u64], rotation: TimerRotation, hash: u64) {
        self.insert_run(words, rotation, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], rotation: TimerRotation, hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, rotation, &[hash], 0..1, &mut present);
        present[0]
    }

    fn insert_run(&self, words: &mut [u64], rotation: TimerRotation, hashes: &[u64], run: Range<usize>) {
        self.run(rotation, hashes, run).insert(words);
    }

    fn query_run(
        &self,
        words: &[u64],
        rotation: TimerRotation,
        hashes: &[u64],
        run: Range<usize>,
        present: &mut [bool],
    ) {
        self.run(rotation, hashes, run).query(words, present);
    }

    fn duplicated_run(
        &self,
        words: &mut [u64],
        rotation: TimerRotation,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        self.run(rotation, hashes, run).duplicated(words, refresh, seen)
    }

    /// Sweeps the words of this partition that are due.
    fn open(&self, words: &mut [u64], generation: i64) {
        let place = self.pages.first as usize * PAGE..self.pages.end as usize * PAGE;
        self.timers.sweep(&mut words[self.timers.swept_within(generation, place)], generation);
    }

    #[inline(always)]
    fn abilities(&self) -> Abilities<'_, Self> {
        Abilities {
            shorten: Some(self),
            infer: Some(self),
            codes: (self.generations() <= Code::BLOCKS).then_some(self as _),
            divide: Some(self),
            ..Abilities::NONE
        }
    }
}

impl<const LINES: usize> Occupancy for TimersInLines<LINES> {
    /// Returns one share for all timers: they age alike, and all words are equally full.
    fn fill(&self, words: &[u64], rotation: TimerRotation) -> Vec<f64> {
        let timers = words.len() as u64 * self.timers.per_word();
        vec![self.timers.count(words, rotation) as f64 / timers as f64]
    }

    /// Returns the share of live timers. Timers of a key are live together more often than if they were independent,
    /// because they share a line.
    fn match_rates(&self, words: &[u64], rotation: TimerRotation) -> Vec<f64> {
        self.fill(words, rotation)
    }

    fn false_positive_rate(&self, words: &[u64], rotation: TimerRotation) -> f64 {
        self.reported(words, rotation)
    }
}

impl<const LINES: usize> Infer<TimerRotation> for TimersInLines<LINES> {
    fn evidence_run(&self, words: &[u64], rotation: TimerRotation, hashes: &[u64], evidence: &mut [Evidence]) {
        self.run(rotation, hashes, 0..hashes.len()).encode(words, evidence);
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Box<dyn Likelihood> {
        Box::new(self.sampled(words, clock, question))
    }
}

impl<const LINES: usize> Codes<TimerRotation> for TimersInLines<LINES> {
    fn decoder(&self) -> fn(Code) -> Evidence {
        Code::timers::<LINES>
    }

    fn codes_run(&self, words: &[u64], rotation: TimerRotation, hashes: &[u64], codes: &mut [Code]) {
        self.run(rotation, hashes, 0..hashes.len()).encode(words, codes);
    }
}

impl<const LINES: usize> Divide<Self> for TimersInLines<LINES> {
    /// Divides the pages into ranges.
    fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
        for (pages, words, hashes) in self.pages.partitions(words, count) {
            each(Partition { layout: Self { pages, ..*self }, words, hashes });
        }
    }
}

impl<const LINES: usize> Shorten<TimerRotation> for TimersInLines<LINES> {
    fn rotation_within(&self, generation: i64, back: u64) -> TimerRotation {
        self.timers.rotation_within(generation, back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::timing::likelihood::TimerCounts;
    use crate::instructions::Portable;

    fn hashes(count: u64) -> Vec<u64> {
        (0..count).map(|i| xxhash_rust::xxh3::xxh3_64(&(i % 700).to_le_bytes())).collect()
    }

    fn shape(k: u32, bpt: u32, lines: u32) -> TimingLineShape {
        TimingLineShape::new(k, bpt, ((1u64 << bpt) - 2).min(20) as u32, 5, lines).unwrap()
    }

    /// Returns the evidence about a key, read timer by timer.
    fn evidence_of<const LINES: usize>(
        layout: &TimersInLines<LINES>,
        words: &[u64],
        rotation: TimerRotation,
        hash: u64,
    ) -> Evidence {
        let mut cells = vec![0; layout.k.iter().sum::<u32>() as usize];
        layout.cells(hash, &mut cells);
        let ages: Option<Vec<u64>> = cells.iter().map(|&cell| layout.timers.age_of(words, cell, rotation)).collect();
        let Some(oldest) =
            ages.as_ref().and_then(|ages| ages.iter().max().copied().filter(|&age| age < rotation.retained))
        else {
            return Evidence::ABSENT;
        };
        let (mut ages, mut counts) = (ages.unwrap().into_iter(), [0; LINES]);
        for (count, k) in counts.iter_mut().zip(layout.k) {
            *count = ages.by_ref().take(k as usize).filter(|&age| age == oldest).count() as u64;
        }
        Evidence::oldest(oldest, counts)
    }

    /// Returns the final words and all answers of runs of keys, ten runs to a generation.
    fn words_and_answers<const LINES: usize>(
        shape: TimingLineShape,
        instructions: Instructions,
    ) -> (Vec<u64>, Vec<bool>) {
        let layout = TimersInLines::<LINES> { instructions, ..TimersInLines::new(shape) };
        let (hashes, mut words, mut answers) = (hashes(3000), vec![0; 5 * PAGE], Vec::new());
        let cuts = [0, 1, 2, 7, 8, 9, 40, 41, 130, 203, 300, 512, 513, 700, 1900, 2999, 3000];
        for (cut, generation) in cuts.windows(2).zip([-9, -1, 0, 1, 2, 3, 4, 5, 20, 21, 1 << 40].into_iter().cycle()) {
            let run = cut[0]..cut[1];
            layout.open(&mut words, generation);
            let rotation = layout.rotation(generation, 0);
            let mut seen = vec![false; hashes.len()];
            layout.insert_run(&mut words, rotation, &hashes, run.clone());
            for refresh in [false, true] {
                let inserted = layout.duplicated_run(&mut words, rotation, &hashes, run.clone(), refresh, &mut seen);
                assert!(!refresh || inserted == run.len() as u64);
                answers.extend_from_slice(&seen);
            }
            for pending in [0, 1, 3, 400] {
                let rotation = layout.rotation(generation, pending);
                layout.query_run(&words, rotation, &hashes, 0..hashes.len(), &mut seen);
                answers.extend_from_slice(&seen);
                let mut evidence = vec![Evidence::default(); hashes.len()];
                layout.evidence_run(&words, rotation, &hashes, &mut evidence);
                assert!(
                    evidence
                        .iter()
                        .copied()
                        .eq(hashes.iter().map(|&hash| evidence_of(&layout, &words, rotation, hash)))
                );
                assert!(seen.iter().copied().eq(evidence.iter().map(|&evidence| evidence != Evidence::ABSENT)));
                let mut codes = vec![Code::default(); hashes.len()];
                layout.codes_run(&words, rotation, &hashes, &mut codes);
                assert!(evidence.into_iter().eq(codes.into_iter().map(layout.decoder())));
            }
        }
        (words, answers)
    }

    fn agree<const LINES: usize>() {
        for (k, bpt) in [(1, 2), (3, 3), (8, 5), (7, 16), (6, 21), (8, 32)] {
            let shape = shape(k * LINES as u32, bpt, LINES as u32);
            let portable = words_and_answers::<LINES>(shape, Instructions::Portable(Portable));
            let share = portable.1.iter().filter(|&&seen| seen).count() as f64 / portable.1.len() as f64;
            assert!(0.1 < share && share < 0.9, "both answers must occur: {share}");
            for instructions in Instructions::available() {
                assert!(
                    words_and_answers::<LINES>(shape, instructions) == portable,
                    "{instructions:?} {LINES} {k} {bpt}"
                );
            }
        }
    }

    #[test]
    fn all_instruction_sets_agree() {
        agree::<1>();
        agree::<2>();
    }

    /// Counts fewer and more blocks than are counted singly.
    #[test]
    fn blocks_counted_singly_equal_those_counted_at_once() {
        fn check<const LINES: usize>(k: u32, bpt: u32, instructions: Instructions) {
            let layout = TimersInLines::<LINES> { instructions, ..TimersInLines::new(shape(k, bpt, LINES as u32)) };
            let mut words = vec![0; 5 * PAGE];
            let keys: Vec<u64> = (0..5000u64).map(|i| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes())).collect();
            for (generation, keys) in (0..25).zip(keys.chunks(200)) {
                layout.open(&mut words, generation);
                layout.insert_run(&mut words, layout.rotation(generation, 0), keys, 0..keys.len());
            }
            let (rotation, t) = (layout.rotation(24, 0), LINES - 1);
            let sums =
                || TimerCounts::new(rotation.retained, layout.k[t], layout.timers.per_word(), layout.sample().len());
            let every: Vec<u64> = (0..rotation.retained).collect();
            let at_once = layout.of_all(&words, rotation, t, sums());
            for block in 0..rotation.retained {
                let one = layout.of_blocks(&words, rotation, t, &[block], sums());
                assert_eq!(one.of(block), at_once.of(block), "{k} {bpt} {block}");
                assert!(one.of(block)[0][0] > 0.0, "the block has timers");
            }
            assert_eq!(layout.of_blocks(&words, rotation, t, &every, sums()).of(0), at_once.of(0));
        }
        for instructions in Instructions::available() {
            for (k, bpt) in [(1, 3), (3, 2), (8, 5), (5, 6)] {
                check::<1>(k, bpt, instructions);
                check::<2>(2 * k, bpt, instructions);
            }
        }
    }

    /// A key has one timer in each of k consecutive words of each line. The lines lie in one page, in separate ranges.
    #[test]
    fn an_insertion_sets_k_timers_and_a_query_needs_all_of_them() {
        fn check<const LINES: usize>(shape: TimingLineShape) {
            let layout = TimersInLines::<LINES>::new(shape);
            let (range, mut starts) = (PAGE / LINES, [0; LINE]);
            for hash in hashes(300) {
                let (rotation, mut words) = (layout.rotation(7, 0), vec![0; 5 * PAGE]);
                layout.insert(&mut words, rotation, hash);
                let mut cells = vec![u64::MAX; shape.k as usize];
                layout.cells(hash, &mut cells);
                let set: Vec<usize> = (0..words.len()).filter(|&word| words[word] != 0).collect();
                assert_eq!(
                    set,
                    cells.iter().map(|cell| (cell / layout.timers.per_word()) as usize).collect::<Vec<_>>()
                );
                let page = set[0] / PAGE;
                for t in 0..LINES {
                    let within = page * PAGE + t * range..page * PAGE + (t + 1) * range;
                    let of_line: Vec<usize> = set.iter().copied().filter(|word| within.contains(word)).collect();
                    let k = shape.k_of(t as u32) as usize;
                    assert!(of_line.len() == k && of_line.iter().all(|word| word / LINE == of_line[0] / LINE));
                    let probe = |word: usize| of_line.contains(&(of_line[0] / LINE * LINE + word % LINE));
                    let begins = |&word: &usize| (word..word + k).all(probe) && (k == LINE || !probe(word + LINE - 1));
                    starts[(0..LINE).find(begins).unwrap()] += 1;
                }
                assert!(
                    layout.contains(&words, rotation, hash) && !layout.contains(&words, layout.rotation(7, 900), hash)
                );
                for &cell in &cells {
                    assert_eq!(layout.timers.age_of(&words, cell, rotation), Some(0));
                    let (mut without, (word, _)) = (words.clone(), layout.timers.lanes.at(cell));
                    without[word] = 0;
                    assert!(!layout.contains(&without, rotation, hash), "every timer is needed");
                }
            }
            // 300 keys in each line: 37 of them begin at a given word, give or take 6.
            assert!(shape.k_of(0) == 8 || starts.into_iter().all(|start| start > 5 * LINES), "{starts:?}");
        }
        check::<1>(shape(1, 2, 1));
        check::<1>(shape(5, 7, 1));
        check::<1>(shape(8, 32, 1));
        check::<2>(shape(2, 3, 2));
        check::<2>(shape(9, 4, 2));
        check::<2>(shape(16, 2, 2));
    }

    #[test]
    fn partitions_have_the_words_of_the_whole() {
        let layout = TimersInLines::<2>::new(shape(9, 4, 2));
        let hashes = hashes(700);
        let (mut whole, mut cut) = (vec![0; 5 * PAGE], vec![0; 5 * PAGE]);
        for generation in 0..60 {
            let own = |hash: &&u64| **hash % 60 == generation as u64;
            layout.open(&mut whole, generation);
            hashes.iter().filter(own).for_each(|&hash| layout.insert(&mut whole, layout.rotation(generation, 0), hash));
            let mut parts = Vec::new();
            layout.divide(&mut cut, 3, &mut |part| parts.push(part));
            assert_eq!(parts.len(), 3);
            for part in parts {
                part.layout.open(part.words, generation);
                for &hash in hashes.iter().filter(own).filter(|hash| part.hashes.contains(hash)) {
                    part.layout.insert(part.words, part.layout.rotation(generation, 0), hash);
                }
            }
            assert_eq!(whole, cut, "{generation}");
        }
        layout.divide(&mut whole, 1, &mut |_| panic!("one partition is no division"));
    }
}
