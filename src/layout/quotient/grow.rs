//! Growth: the pages double while more keys come than planned for, and are halved when these have expired.
//!
//! At the next [level](Pages) every page becomes two, and each entry moves to the page that the highest bit of its
//! fingerprint selects. Nothing is lost: a key has the same index among all locations of its group before and after,
//! and leaving a level is the reverse of entering it. The number of locations does not change. So the rate stays the
//! share of locations that have an entry, and doubles with the keys.
//!
//! Fingerprints of the overflow line do not depend on the page and are the same at all levels, so they move to both
//! pages. All lines that receive keys of a flagged line are flagged.

use super::format::{Line, OVERFLOW_FLAG};
use super::pages::Pages;
use super::slots::Slots;
use super::{EpochRotation, Quotient, overflow};
use crate::Error;
use crate::clock::Window;
use crate::instructions::Work;
use crate::memory::Words;
use crate::shape::quotient::QuotientShape;

/// The number of pages, or of pairs that were one page, in which entries are counted to measure the load. The
/// measurement is right to 0.7 %, and includes pages at all phases.
const SAMPLE: u64 = 8;
/// The number of slots for each key that may be inserted until the load is measured again.
const SLOTS_PER_KEY: u64 = 32;
/// The number of keys until the load of a filter that has grown is measured again. It is small, because the filter
/// should shrink soon after its keys have expired, in a quiet stream too.
const INTERVAL_GROWN: u64 = 256;
/// Pages are halved if they will be as full as this share of the planned maximum, so that they do not double again at
/// once.
const HALVED: f64 = 0.97;

/// How full the pages of a filter that grows may be, as shares of the slots.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The greatest mean load of all pages.
    mean: f64,
    /// The planned load of a page just before it rotates.
    peak: f64,
}

impl Quotient {
    /// Returns the layout of a filter that grows, at the level to which `words` belong, and its words. Empty `words`
    /// stand for a new filter.
    pub fn growing(shape: QuotientShape, window: Window, words: Words) -> Result<(Self, Words), Error> {
        let fixed = Self::new(shape);
        let len = shape.nbytes() / 8;
        let words = if words.as_slice().is_empty() { Words::zeroed(len as usize)? } else { words };
        let times = words.as_slice().len() as u64 / len;
        let level = times.checked_ilog2().unwrap_or(0);
        if level > fixed.most_level() || len << level != words.as_slice().len() as u64 {
            return Err(Error::format(format!(
                "expected {len} words of cells, or 2, 4, .. times as many, got {}",
                words.as_slice().len()
            )));
        }
        let keys = shape.keys_per_epoch(window);
        let (mean, peak) = (shape.stored(keys), shape.load(keys));
        let slots = shape.pages as f64 * f64::from(shape.lines * fixed.pages.format.shape.slots);
        // The load of a filter of few keys deviates more from its mean than a sample of many.
        let limits = Limits { mean: (mean / slots * (1.01 + 3.0 / mean.sqrt())).min(0.97), peak };
        Ok((Self { pages: fixed.pages.at_level(level), limits: Some(limits), ..fixed }, words))
    }

    /// Returns the highest level. At least one bit of each fingerprint must be left, and the numbers of pages have 31
    /// bits.
    fn most_level(&self) -> u32 {
        let of_pages = self.pages.count.next_power_of_two().ilog2();
        u32::min(self.pages.format.fingerprint_bits - 1, 31 - of_pages)
    }

    /// Returns the number of keys from one measurement of the load to the next.
    #[inline(always)]
    pub fn interval(&self) -> u64 {
        let slots = self.pages.count * u64::from(self.pages.lines * self.pages.format.shape.slots);
        let interval = slots / SLOTS_PER_KEY;
        if self.pages.level > 0 { INTERVAL_GROWN.min(interval) } else { interval }.max(1)
    }

    /// Returns the level that the load of these lines calls for.
    pub fn target_level(&self, lines: &[Line]) -> u32 {
        let (level, Some(limits)) = (self.pages.level, self.limits) else { return self.pages.level };
        let (mean, fullest) = self.load(lines);
        if mean > limits.mean {
            (level + 1).min(self.most_level())
        } else if 2.0 * fullest <= HALVED * limits.peak {
            // The fullest counts: after a burst, pages that have rotated are empty while others are still full.
            level.saturating_sub(1)
        } else {
            level
        }
    }

    /// Returns the share of the slots that keys need, in the mean and of the fullest page. It is computed from a sample
    /// of the pages, or of pairs that were one page.
    fn load(&self, lines: &[Line]) -> (f64, f64) {
        let (pages, format) = (self.pages, self.pages.format);
        let width = pages.of_group().min(2);
        let all = (pages.count << pages.level) / width;
        let (sampled, slots) = (SAMPLE.min(all), width * u64::from(pages.lines * format.shape.slots));
        let used = |i: u64| -> u64 {
            let start = pages.start((i * all / sampled * width) as u32);
            let lines = lines[start..start + width as usize * pages.stride()].chunks_exact(pages.stride());
            let keys = |line| if format.count_bits == 0 { format.used(line) } else { format.keys(line) };
            lines.flat_map(|page| &page[1..]).map(|line| u64::from(keys(line))).sum()
        };
        let loads = (0..sampled).map(|i| used(i) as f64 / slots as f64);
        (loads.clone().sum::<f64>() / sampled as f64, loads.fold(0.0, f64::max))
    }

    /// Returns the layout at another level, and words with all keys of these lines.
    pub fn at_level(&self, level: u32, lines: &[Line], rotation: EpochRotation) -> Result<(Self, Words), Error> {
        let to = Self { pages: self.pages.at_level(level), ..*self };
        let len = (to.pages.count << level) as usize * to.pages.stride() * 8;
        let mut words = Words::zeroed(len)?;
        let new = words.to_mut()?.as_chunks_mut().0;
        self.instructions.run(ChangeLevel { from: &self.pages, to: &to.pages, rotation, old: lines, new });
        Ok((to, words))
    }
}

/// Moves all keys of the old lines to new lines at another level.
struct ChangeLevel<'a> {
    from: &'a Pages,
    to: &'a Pages,
    rotation: EpochRotation,
    old: &'a [Line],
    new: &'a mut [Line],
}

impl<M: Slots> Work<M> for ChangeLevel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { from, to, rotation, old, new } = self;
        let (lines, format) = (u64::from(from.lines), from.format);
        // Pages or lines of a group at the new level, by number, that receive keys of one at the old level.
        let heirs = |number: u64| match to.level.checked_sub(from.level) {
            Some(more) => number << more..(number + 1) << more,
            None => number >> (from.level - to.level)..(number >> (from.level - to.level)) + 1,
        };
        for (number, page) in from.all(old) {
            let (group, now) = (from.group(number), rotation.tag(from, number));
            let first = u64::from(number) % from.of_group();
            let page_at = |of_group: u64| to.start(group << to.level | of_group as u32);
            for heir in heirs(first) {
                // A fingerprint may have moved to both pages. It is that of one key, so the larger count is right.
                overflow::merge(format, &mut new[page_at(heir)], &page[0], now, u32::max);
            }
            for (at, line) in (0..).zip(&page[1..]) {
                for heir in heirs(first * lines + u64::from(at)) {
                    new[page_at(heir / lines) + (heir % lines) as usize + 1][0] |= line[0] & OVERFLOW_FLAG;
                }
                for slot in 0..format.used(line) {
                    let (location, tag_and_count) = from.entry(machine, number, at, line, slot);
                    if !from.is_retained(now, format.split_tag_and_count(tag_and_count).0) {
                        continue;
                    }
                    let location = to.location_at(group, from.index(&location));
                    to.insert_counted(machine, to.page_mut(new, location.page), &location, tag_and_count, now);
                }
            }
        }
    }
}
