//! What entries say about keys, and what the lines are like: for [inference](crate::inference::quotient).

use super::format::Line;
use super::place::Pages;
use super::slots::Slots;
use super::spare;
use super::{Quotient, Rotation};
use crate::clock::{Clock, Window};
use crate::inference::line::STRETCHES;
use crate::inference::quotient::{QuotientLikelihood, StretchEpochs};
use crate::inference::{Evidence, Question};
use crate::instructions::{Portable, Work};
use crate::layout::Layout;

/// Lines of a stretch whose entries are counted, in whole pages, where there are more: 10,000 entries, an eighth of
/// them of each epoch.
const SAMPLE: usize = 256;
/// Lines of a page that are looked at first for marks.
const FIRST: usize = 16;
/// Longest tags, in bits, that are counted tag by tag, each in all slots of a line at once. Longer ones are counted
/// slot by slot.
const SLICED: u32 = 4;
/// Of more epochs those side by side are counted together: so many counts in all.
const COUNTS: usize = 64;

impl Rotation {
    /// How many pages have turned after this one.
    #[inline(always)]
    fn behind(self, pages: &Pages, page: u32) -> u64 {
        if pages.fine() {
            return 0;
        }
        let group = pages.group(page);
        let behind = self.turned.wrapping_sub(group);
        u64::from(if group > self.turned { behind.wrapping_add(pages.count as u32) } else { behind })
    }

    /// The evidence of a key of this page that is told to be so old.
    #[inline(always)]
    pub fn evidence_at(self, pages: &Pages, page: u32, told: Option<(u32, bool)>) -> Evidence {
        Evidence::epochs(told).in_stretch(self.behind(pages, page) >> pages.stretch_log2())
    }
}

impl Pages {
    /// Groups of a stretch, as a power of two.
    #[inline(always)]
    fn stretch_log2(&self) -> u32 {
        (self.steps() - 1).checked_ilog2().map_or(0, |log2| (log2 + 1).saturating_sub(STRETCHES.ilog2()))
    }

    /// Places of all pages, of which growth makes no more.
    pub fn all_places(&self) -> f64 {
        self.at_level(0).places() as f64 * self.count as f64
    }

    /// How many lines of a page are marked as of keys without room. It is not told where all that are looked at first
    /// are, since then there are as good as any number of such keys.
    #[inline(never)]
    pub fn marked(&self, page: &[Line]) -> Option<u32> {
        let marked = |lines: &[Line]| lines.iter().filter(|line| self.format.flagged(line)).count();
        let (first, others) = page[1..].split_at(FIRST.min(self.lines as usize));
        let of_first = marked(first);
        (of_first < first.len()).then(|| (of_first + marked(others)) as u32)
    }

    /// Adds the keys of a page, those in the spare among them, to a count for each epoch, the open one first. A key
    /// that has several entries is one of the youngest's epoch.
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
        spare::tags(format, &page[0]).for_each(|tag| add(tag, 1));
    }

    /// Whether no entry of the same key is younger.
    fn is_youngest(&self, page: &[Line], number: u32, at: u32, slot: u32, now: u32) -> bool {
        let age = |line: usize, slot| self.format.age(now, self.tag_of(page, line, slot));
        let own = (at as usize + 1, slot);
        let (place, _) = self.entry(Portable, number, at, &page[own.0], slot);
        let before = |(line, slot)| (age(line, slot), line, slot) < (age(own.0, own.1), own.0, own.1);
        !self.entries_of(Portable, page, &place).any(before)
    }
}

/// Counts the keys of a page by epochs.
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
    fn count_epochs(&self, page: &[Line], number: u32, phase: Rotation, counts: &mut [u64]) {
        let (pages, now) = (&self.pages, phase.tag(&self.pages, number));
        self.instructions.run(CountEpochs { pages, page, number, now, counts });
    }

    /// How many entries each epoch has, the open one first.
    pub fn entries(&self, lines: &[Line], phase: Rotation) -> Vec<u64> {
        let mut counts = vec![0; self.pages.kept as usize];
        for (number, page) in self.pages.all(lines) {
            self.count_epochs(page, number, phase, &mut counts);
        }
        counts
    }

    /// Chance that a fresh key is reported: its place has an entry, or its line says yes to all.
    pub fn rate(&self, lines: &[Line], phase: Rotation) -> f64 {
        let (format, places) = (self.pages.format, self.pages.places() as f64);
        let keys = |page: &[Line], number: u32, now: u32| -> u32 {
            let of_line = |(at, line): (u32, &Line)| match format.used(line) {
                used if format.count_bits == 0 && !self.pages.fine() => used,
                // Entries of one key have one place.
                used => (0..used)
                    .filter(|&slot| {
                        let kept = self.pages.is_kept(now, format.tag_in(line, slot));
                        kept && (format.count_bits == 0 || self.pages.is_youngest(page, number, at, slot, now))
                    })
                    .count() as u32,
            };
            (0..).zip(&page[1..]).map(of_line).sum()
        };
        let of_page = |(number, page): (u32, &[Line])| {
            let now = phase.tag(&self.pages, number);
            let kept = |tag: &u32| self.pages.is_kept(now, *tag);
            let prints = spare::tags(format, &page[0]).filter(kept).count() as f64;
            let prints = prints / f64::from(1 << format.spare_print_bits());
            let of_entries = f64::from(keys(page, number, now)) / places;
            let asked = page[1..].iter().filter(|line| format.flagged(line)).count() as f64;
            let spared = if spare::since(format, &page[0]).filter(kept).is_some() { 1.0 } else { prints };
            let rate = of_entries + (1.0 - of_entries) * spared * asked / f64::from(self.pages.lines);
            rate.min(1.0)
        };
        let pages = self.pages.count * self.pages.of_group();
        self.pages.all(lines).map(of_page).sum::<f64>() / pages as f64
    }

    /// Estimates how many different keys were inserted within a window, the filter's or a part of it in the same unit:
    /// the entries of its epochs, of the oldest one the share that lies in it, corrected for keys that share an entry.
    pub fn distinct(&self, words: &[u64], clock: &Clock, window: u64) -> f64 {
        let (phase, pages) = (self.rotation(clock.generation(), 0), self.pages);
        let length = match clock.window() {
            Window::Count { .. } => window as f64,
            Window::Time { .. } => window as f64 / 1e9,
        };
        let within = |behind: u64, entries: &[u64]| {
            let mut next = 0.0;
            let of_epoch = |(&entries, turns): (&u64, u64)| {
                let began = clock.began(turns * pages.steps() + behind);
                let share = ((length - next) / (began - next)).clamp(0.0, 1.0);
                next = began;
                if share.is_nan() { entries as f64 } else { entries as f64 * share }
            };
            entries.iter().zip(0..).map(of_epoch).sum::<f64>()
        };
        let (mut counts, mut entries) = (vec![0; pages.kept as usize], 0.0);
        for (number, page) in pages.all(words.as_chunks().0) {
            self.count_epochs(page, number, phase, &mut counts);
            if !pages.fine() {
                entries += within(phase.behind(&pages, number), &counts);
                counts.fill(0);
            }
        }
        // The epochs of fine tags begin on all pages together.
        entries += within(0, &counts);
        let places = pages.all_places();
        -places * (-(entries / places).min(0.999)).ln_1p()
    }

    /// What the lines are like, stretch by stretch.
    pub fn epochs(&self, lines: &[Line], clock: &Clock, question: &Question<'_>) -> QuotientLikelihood {
        let (phase, length) = (self.rotation(clock.generation(), 0), 1 << self.pages.stretch_log2());
        let (count, steps) = (self.pages.count, self.pages.steps());
        let stretch = |first: u64| {
            if !question.is_about(first / length) {
                return StretchEpochs::default();
            }
            // Of fine tags all pages are one stretch.
            let behind = length.min(steps - first);
            let pages = if self.pages.fine() { count } else { behind };
            let sampled = pages.min(SAMPLE.div_ceil(self.pages.stride()) as u64);
            let mut entries = vec![0; self.pages.kept as usize];
            for i in 0..sampled {
                let page = ((u64::from(phase.turned) + count - (first + i * pages / sampled) % count) % count) as u32;
                // All pages of a group are alike.
                let page = page << self.pages.level;
                self.count_epochs(self.pages.page(lines, page), page, phase, &mut entries);
            }
            let places = self.pages.places() as f64 * sampled as f64;
            let began = (0..entries.len() as u64).map(|turns| clock.began(turns * steps + first + behind / 2));
            let began: Vec<f64> = began.collect();
            let shares = shares(&entries, &began).into_iter().map(|entries| entries / places);
            StretchEpochs::new(clock, &began, shares)
        };
        QuotientLikelihood {
            stretches: (0..steps).step_by(length as usize).map(stretch).collect(),
            places: self.pages.places() as f64,
            lines: self.pages.lines.into(),
        }
    }
}

/// The entries of each epoch; of many, those that are counted together are shared by the time that each had.
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
