//! The evidence of entries, and how full the lines are: for [inference](crate::inference::quotient).

use super::format::Line;
use super::pages::Pages;
use super::slots::Slots;
use super::{EpochRotation, Quotient, overflow};
use crate::clock::{Clock, Window};
use crate::family::Layout;
use crate::inference::quotient::{QuotientLikelihood, RangeEpochs};
use crate::inference::{Evidence, PAGE_RANGES, Question};
use crate::instructions::{Portable, Work};

/// Number of lines of a page range whose entries are counted, in whole pages, if it has more. They have 10,000
/// entries, an eighth of them of each epoch.
const SAMPLE: usize = 256;
/// Number of lines of a page whose flags are read first.
const FIRST: usize = 16;
/// The length in bits of the longest tags that are counted tag by tag, each in all slots of a line at once. Longer tags
/// are counted slot by slot.
const SLICED: u32 = 4;
/// The number of counts of a page range. If there are more epochs, adjacent epochs are counted together.
const COUNTS: usize = 64;

impl EpochRotation {
    /// Returns how many pages have rotated after this one.
    #[inline(always)]
    fn behind(self, pages: &Pages, page: u32) -> u64 {
        if pages.fine() {
            return 0;
        }
        let group = pages.group(page);
        let behind = self.rotated.wrapping_sub(group);
        u64::from(if group > self.rotated { behind.wrapping_add(pages.count as u32) } else { behind })
    }

    /// Returns the evidence of a key of this page, from its [age](Pages::age).
    #[inline(always)]
    pub fn evidence_at(self, pages: &Pages, page: u32, age: Option<(u32, bool)>) -> Evidence {
        Evidence::epochs(age).in_page_range(self.behind(pages, page) >> pages.range_log2())
    }
}

impl Pages {
    /// Returns the binary logarithm of the number of groups in a page range.
    #[inline(always)]
    fn range_log2(&self) -> u32 {
        (self.steps() - 1).checked_ilog2().map_or(0, |log2| (log2 + 1).saturating_sub(PAGE_RANGES.ilog2()))
    }

    /// Returns the number of locations in all pages, which growth does not change.
    pub fn all_locations(&self) -> f64 {
        self.at_level(0).locations() as f64 * self.count as f64
    }

    /// Returns the number of flagged lines of a page: those that may have rejected keys. Returns `None` if all of the
    /// first lines are flagged, because any number of rejected keys is then possible.
    #[inline(never)]
    pub fn flagged_lines(&self, page: &[Line]) -> Option<u32> {
        let flagged = |lines: &[Line]| lines.iter().filter(|line| self.format.flagged(line)).count();
        let (first, others) = page[1..].split_at(FIRST.min(self.lines as usize));
        let of_first = flagged(first);
        (of_first < first.len()).then(|| (of_first + flagged(others)) as u32)
    }

    /// Adds the keys of a page, its overflow line included, to a count for each epoch, the open one first. A key with
    /// several entries counts in the epoch of the youngest.
    #[inline(always)]
    fn count<M: Slots>(&self, machine: M, page: &[Line], number: u32, now: u32, counts: &mut [u64]) {
        let format = self.format;
        let mut add = |tag: u32, keys: u64| {
            if let Some(count) = counts.get_mut(format.age(now, tag) as usize) {
                *count += keys;
            }
        };
        for (at, line) in (0..).zip(&page[1..]) {
            let used = format.used(line);
            if format.count_bits > 0 {
                let youngest = (0..used).filter(|&slot| self.is_youngest(page, number, at, slot, now));
                youngest.for_each(|slot| add(format.tag_in(line, slot), 1));
            } else if format.tag_bits <= SLICED {
                let used = u64::MAX.checked_shr(64 - used).unwrap_or(0);
                for tag in 0..1 << format.tag_bits {
                    add(tag, format.with_tag(machine, line, used, tag, 0).count_ones().into());
                }
            } else {
                format.tags(line).for_each(|tag| add(tag, 1));
            }
        }
        overflow::tags(format, &page[0]).for_each(|tag| add(tag, 1));
    }

    /// Returns whether no other entry of the same key is younger.
    fn is_youngest(&self, page: &[Line], number: u32, at: u32, slot: u32, now: u32) -> bool {
        let age = |line: usize, slot| self.format.age(now, self.tag_of(page, line, slot));
        let own = (at as usize + 1, slot);
        let (location, _) = self.entry(Portable, number, at, &page[own.0], slot);
        let before = |(line, slot)| (age(line, slot), line, slot) < (age(own.0, own.1), own.0, own.1);
        !self.entries_of(Portable, page, &location).any(before)
    }
}

/// Adds the keys of a page to a count for each epoch.
struct CountEpochs<'a> {
    pages: &'a Pages,
    page: &'a [Line],
    number: u32,
    now: u32,
    counts: &'a mut [u64],
}

impl<M: Slots> Work<M> for CountEpochs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        self.pages.count(machine, self.page, self.number, self.now, self.counts);
    }
}

impl Quotient {
    /// Adds the keys of a page to a count for each epoch.
    fn count_epochs(&self, page: &[Line], number: u32, rotation: EpochRotation, counts: &mut [u64]) {
        let (pages, now) = (&self.pages, rotation.tag(&self.pages, number));
        self.instructions.run(CountEpochs { pages, page, number, now, counts });
    }

    /// Returns the number of keys of each epoch, the open one first.
    pub fn entries(&self, lines: &[Line], rotation: EpochRotation) -> Vec<u64> {
        let mut counts = vec![0; self.pages.retained as usize];
        for (number, page) in self.pages.all(lines) {
            self.count_epochs(page, number, rotation, &mut counts);
        }
        counts
    }

    /// Returns the chance that a fresh key is reported: its location has an entry, or its home line is flagged and the
    /// overflow line reports it.
    pub fn rate(&self, lines: &[Line], rotation: EpochRotation) -> f64 {
        let (format, locations) = (self.pages.format, self.pages.locations() as f64);
        let keys = |page: &[Line], number: u32, now: u32| -> u32 {
            let of_line = |(at, line): (u32, &Line)| match format.used(line) {
                used if format.count_bits == 0 && !self.pages.fine() => used,
                // Entries of one key have one location.
                used => (0..used)
                    .filter(|&slot| {
                        let retained = self.pages.is_retained(now, format.tag_in(line, slot));
                        retained && (format.count_bits == 0 || self.pages.is_youngest(page, number, at, slot, now))
                    })
                    .count() as u32,
            };
            (0..).zip(&page[1..]).map(of_line).sum()
        };
        let of_page = |(number, page): (u32, &[Line])| {
            let now = rotation.tag(&self.pages, number);
            let retained = |tag: &u32| self.pages.is_retained(now, *tag);
            let fingerprints = overflow::tags(format, &page[0]).filter(retained).count() as f64;
            let fingerprints = fingerprints / f64::from(1 << format.overflow_fingerprint_bits());
            let of_entries = f64::from(keys(page, number, now)) / locations;
            let flagged = page[1..].iter().filter(|line| format.flagged(line)).count() as f64;
            let rejects = overflow::rejected(format, &page[0]).filter(retained).is_some();
            let of_overflow = if rejects { 1.0 } else { fingerprints };
            let rate = of_entries + (1.0 - of_entries) * of_overflow * flagged / f64::from(self.pages.lines);
            rate.min(1.0)
        };
        let pages = self.pages.count * self.pages.of_group();
        self.pages.all(lines).map(of_page).sum::<f64>() / pages as f64
    }

    /// Estimates how many different keys were inserted within a window, that of the filter or a shorter one in the same
    /// unit. Adds the entries of its epochs (of the oldest, the share that lies in the window), and corrects the sum
    /// for keys that share an entry.
    pub fn distinct(&self, words: &[u64], clock: &Clock, window: u64) -> f64 {
        let (rotation, pages) = (self.rotation(clock.generation(), 0), self.pages);
        let length = match clock.window() {
            Window::Count { .. } => window as f64,
            Window::Time { .. } => window as f64 / 1e9,
        };
        let within = |behind: u64, entries: &[u64]| {
            let mut next = 0.0;
            let of_epoch = |(&entries, rotations): (&u64, u64)| {
                let began = clock.began(rotations * pages.steps() + behind);
                let share = ((length - next) / (began - next)).clamp(0.0, 1.0);
                next = began;
                if share.is_nan() { entries as f64 } else { entries as f64 * share }
            };
            entries.iter().zip(0..).map(of_epoch).sum::<f64>()
        };
        let (mut counts, mut entries) = (vec![0; pages.retained as usize], 0.0);
        for (number, page) in pages.all(words.as_chunks().0) {
            self.count_epochs(page, number, rotation, &mut counts);
            if !pages.fine() {
                entries += within(rotation.behind(&pages, number), &counts);
                counts.fill(0);
            }
        }
        // With fine tags, epochs begin on all pages together.
        entries += within(0, &counts);
        let locations = pages.all_locations();
        -locations * (-(entries / locations).min(0.999)).ln_1p()
    }

    /// Returns how full the lines are, for each page range.
    pub fn epochs(&self, lines: &[Line], clock: &Clock, question: &Question<'_>) -> QuotientLikelihood {
        let (rotation, length) = (self.rotation(clock.generation(), 0), 1 << self.pages.range_log2());
        let (count, steps) = (self.pages.count, self.pages.steps());
        let range = |first: u64| {
            if !question.includes_range(first / length) {
                return RangeEpochs::default();
            }
            // With fine tags all pages are one page range.
            let behind = length.min(steps - first);
            let pages = if self.pages.fine() { count } else { behind };
            let sampled = pages.min(SAMPLE.div_ceil(self.pages.stride()) as u64);
            let mut entries = vec![0; self.pages.retained as usize];
            for i in 0..sampled {
                let group = (u64::from(rotation.rotated) + count - (first + i * pages / sampled) % count) % count;
                // The first page of a group is as good a sample as any.
                let page = (group as u32) << self.pages.level;
                self.count_epochs(self.pages.page(lines, page), page, rotation, &mut entries);
            }
            let locations = self.pages.locations() as f64 * sampled as f64;
            let epochs = 0..entries.len() as u64;
            let began: Vec<f64> = epochs.map(|epoch| clock.began(epoch * steps + first + behind / 2)).collect();
            let shares = shares(&entries, &began).into_iter().map(|entries| entries / locations);
            RangeEpochs::new(clock, &began, shares)
        };
        QuotientLikelihood {
            ranges: (0..steps).step_by(length as usize).map(range).collect(),
            locations: self.pages.locations() as f64,
            lines: self.pages.lines.into(),
        }
    }
}

/// Returns the entries of each epoch. If there are many epochs, adjacent epochs share their sum by the time that each
/// was open.
fn shares(entries: &[u64], began: &[f64]) -> Vec<f64> {
    let (together, mut next, mut shares) = (entries.len().div_ceil(COUNTS), 0.0, Vec::new());
    for (entries, began) in entries.chunks(together).zip(began.chunks(together)) {
        let (sum, length) = (entries.iter().sum::<u64>() as f64, began[began.len() - 1] - next);
        for &began in began {
            let share = if together == 1 || length == 0.0 { 1.0 } else { (began - next) / length };
            shares.push(sum * share);
            next = began;
        }
    }
    shares
}
