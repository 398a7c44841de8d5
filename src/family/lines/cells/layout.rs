//! The traits of a layout, for lines of lanes.

use std::ops::Range;

use super::kernel::Keys;
use super::pages::ANY;
use super::{LINE, LaneRotation, LanesInLines, portable};
use crate::clock::Clock;
use crate::family::abilities::Partition;
use crate::family::lines::shape::PAGE_LINES;
use crate::family::{Layout, runs};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::prefetch::Address;

impl<const LANES: usize> Layout for LanesInLines<LANES> {
    type Rotation = LaneRotation;

    fn sets_bits(&self) -> bool {
        true
    }

    /// Returns the number of steps until every page has rotated all of its lanes.
    fn generations(&self) -> u64 {
        LANES as u64 * self.pages.count
    }

    fn rotation(&self, generation: i64, pending: u64) -> LaneRotation {
        // There are fewer than 2^27 pages, so no conversion truncates.
        let pages = self.pages.count as i64;
        let retained = |rotations: u64| Self::ALL.unbounded_shr(u32::try_from(rotations).unwrap_or(u32::MAX));
        let rotated = generation.div_euclid(pages);
        // Usually none are pending, and a division costs a fifth of what a single key does.
        let (rotations, more) =
            if pending == 0 { (0, 0) } else { (pending / self.pages.count, pending % self.pages.count) };
        LaneRotation {
            rotated: (generation - rotated * pages) as u32,
            newest: rotated.wrapping_neg().rem_euclid(LANES as i64) as u32,
            more: more as u32,
            retained: [retained(rotations), retained(rotations.saturating_add(1))],
        }
    }

    #[inline(always)]
    fn prefetch_query(&self, words: Address, hash: u64) {
        self.pages.fetch(words, hash);
    }

    fn insert(&self, words: &mut [u64], rotation: LaneRotation, hash: u64) {
        self.insert_run(words, rotation, &[hash], 0..1);
    }

    fn contains(&self, words: &[u64], rotation: LaneRotation, hash: u64) -> bool {
        let mut present = [false];
        self.query_run(words, rotation, &[hash], 0..1, &mut present);
        present[0]
    }

    fn seen(&self, words: &mut [u64], rotation: LaneRotation, hash: u64) -> bool {
        let mut seen = [false];
        self.duplicated_run(words, rotation, &[hash], 0..1, true, &mut seen);
        seen[0]
    }

    // Inlined, the rotation stays in registers. A copy of it as a whole waits until all of its fields are in memory,
    // for 5 of the 80 ns of a single key.
    #[inline(always)]
    fn insert_run(&self, words: &mut [u64], rotation: LaneRotation, hashes: &[u64], run: Range<usize>) {
        self.insert_keys(words, Keys { rotation, hashes, run });
    }

    #[inline(always)]
    fn query_run(
        &self,
        words: &[u64],
        rotation: LaneRotation,
        hashes: &[u64],
        run: Range<usize>,
        present: &mut [bool],
    ) {
        self.query_keys(words, Keys { rotation, hashes, run }, present);
    }

    #[inline(always)]
    fn duplicated_run(
        &self,
        words: &mut [u64],
        rotation: LaneRotation,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        self.duplicated_keys(words, Keys { rotation, hashes, run }, refresh, seen)
    }

    /// Rotates one page, if it belongs to this partition.
    fn open(&self, words: &mut [u64], generation: i64) {
        let rotation = self.rotation(generation, 0);
        let (word, bits) = portable::lane_bits::<LANES>(rotation.newest as usize);
        let rotated = u64::from(rotation.rotated);
        if !(self.pages.first..self.pages.end).contains(&rotated) {
            return;
        }
        let first = ((rotated - self.pages.first) * PAGE_LINES) as usize;
        for line in &mut words.as_chunks_mut::<LINE>().0[first..first + PAGE_LINES as usize] {
            line[word] &= !bits;
        }
        // Prefetches the next page, so that its rotation does not wait for memory. After the last page comes the first.
        let next = if rotated + 1 == self.pages.end { 0 } else { first + PAGE_LINES as usize };
        let address = Address::of(words);
        for line in next..next + PAGE_LINES as usize {
            address.fetch(line * LINE);
        }
    }

    fn evidence_run(&self, words: &[u64], rotation: LaneRotation, hashes: &[u64], evidence: &mut [Evidence]) {
        self.encode_keys(words, Keys { rotation, hashes, run: 0..hashes.len() }, evidence);
    }

    /// Returns whether the page that rotates belongs to this partition.
    #[inline(always)]
    fn rotates(&self, generation: i64) -> bool {
        let rotations = || generation.rem_euclid(self.pages.count as i64) as u64;
        self.pages.whole() || (self.pages.first..self.pages.end).contains(&rotations())
    }

    fn codes_run(
        &self,
        words: &[u64],
        rotation: LaneRotation,
        hashes: &[u64],
        codes: &mut [Code],
    ) -> Option<fn(Code) -> Evidence> {
        (LANES <= Code::GENERATIONS).then(|| {
            self.encode_keys(words, Keys { rotation, hashes, run: 0..hashes.len() }, codes);
            Code::generations as _
        })
    }

    /// Divides the pages into ranges.
    fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
        for (pages, words, hashes) in self.pages.partitions(words, count) {
            each(Partition { layout: Self { pages, ..*self }, words, hashes });
        }
    }

    fn fill(&self, words: &[u64], rotation: LaneRotation) -> Vec<f64> {
        let mut ones = vec![0; LANES];
        for (line, newest) in self.lines(words, rotation) {
            for (age, ones) in ones.iter_mut().enumerate() {
                let (word, bits) = portable::lane_bits::<LANES>((newest as usize + age) % LANES);
                *ones += u64::from((line[word] & bits).count_ones());
            }
        }
        let bits_of_a_lane = 64 * words.len() as u64 / LANES as u64;
        ones.into_iter().map(|ones| ones as f64 / bits_of_a_lane as f64).collect()
    }

    /// Returns the mean chance of each lane. Lanes of a line match together more often than if they were independent,
    /// because they share keys: see [`false_positive_rate`](Layout::false_positive_rate).
    fn match_rates(&self, words: &[u64], rotation: LaneRotation) -> Vec<f64> {
        let mut sums = vec![0.0; LANES];
        for chances in self.chances(words, rotation) {
            sums.iter_mut().zip(chances).for_each(|(sum, chance)| *sum += chance);
        }
        sums.into_iter().map(|sum| sum / (self.pages.count * self.pages.range::<ANY>()) as f64).collect()
    }

    /// Returns the mean over the lines: given the bits of a line, its lanes match independently.
    fn false_positive_rate(&self, words: &[u64], rotation: LaneRotation) -> f64 {
        let rates = (0..self.pages.count).flat_map(|page| {
            let retained = self.retained(rotation, page as u32);
            self.chances_of(words, rotation, page).map(move |chances| {
                let counted = |age: usize| if retained >> age & 1 == 1 { chances[age] } else { 0.0 };
                runs::false_positive_rate(self.k, &std::array::from_fn::<_, LANES, _>(counted))
            })
        });
        rates.sum::<f64>() / (self.pages.count * self.pages.range::<ANY>()) as f64
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(self.rings(words, clock, question)))
    }
}
