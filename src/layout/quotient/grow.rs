//! More pages while more keys come than were planned for, and fewer again when they have gone.
//!
//! With the next [level](Pages) every page becomes two, and each entry moves to the one that the highest bit of its
//! place in the page names. Nothing is lost: a key has the same place among all places of its group before and after,
//! so that a level can be left as it was entered. There are as many places as before, and the rate stays the share of
//! them that has an entry: with twice the keys it is twice as high.
//!
//! Prints of the spare line, which tell no place but are the same at all levels, go to both pages. All lines that have
//! taken keys of a line with a flag have one.

use super::format::{Line, SPARE_FLAG};
use super::place::Pages;
use super::slots::Slots;
use super::{Quotient, Rotation, spare};
use crate::Error;
use crate::clock::Window;
use crate::instructions::Work;
use crate::memory::Words;
use crate::shape::quotient::QuotientShape;

/// Pages, or pairs that were one, whose entries are counted to tell how full all are: to 0.7 %, at phases of all kinds.
const SAMPLE: u64 = 8;
/// The share of all slots, as one over it, that keys may take until the next look.
const LOOKS: u64 = 32;
/// The same for a filter that has grown, in keys: it is to shrink soon after its keys have gone, in a quiet stream too.
const LOOKS_GROWN: u64 = 256;
/// Pairs of pages become one where it will be as full as this share of what was planned for at most, so that they do
/// not come and go.
const MERGED: f64 = 0.97;

/// How full the pages of a filter that grows may be, as shares of the slots.
#[derive(Clone, Copy)]
pub struct Limits {
    /// In the mean: of more it grows.
    mean: f64,
    /// Just before a turn.
    peak: f64,
}

impl Quotient {
    /// The lines of a filter that grows: at the level that these words are of, or new ones.
    pub fn growing(shape: QuotientShape, window: Window, words: Words) -> Result<(Self, Words), Error> {
        let fixed = Self::new(shape);
        let len = shape.nbytes() / 8;
        let words = if words.as_slice().is_empty() { Words::zeroed(len as usize)? } else { words };
        let times = words.as_slice().len() as u64 / len;
        let level = times.checked_ilog2().unwrap_or(0);
        if level > fixed.most_level() || len << level != words.as_slice().len() as u64 {
            return Err(Error::format("the cells differ in number from what the parameters say"));
        }
        let keys = shape.keys_per_epoch(window);
        let (mean, peak) = (shape.stored(keys), shape.load(keys));
        let slots = shape.pages as f64 * f64::from(shape.lines * fixed.pages.format.shape.slots);
        // Few keys come and go by more than a sample of many.
        let limits = Limits { mean: (mean / slots * (1.01 + 3.0 / mean.sqrt())).min(0.97), peak };
        Ok((Self { pages: fixed.pages.at_level(level), limits: Some(limits), ..fixed }, words))
    }

    /// The highest level: a bit of each fingerprint is left, and pages have numbers of 31 bits.
    fn most_level(&self) -> u32 {
        let of_pages = self.pages.count.next_power_of_two().ilog2();
        u32::min(self.pages.format.fingerprint_bits - 1, 31 - of_pages)
    }

    /// Keys from one look at the load to the next.
    #[inline(always)]
    pub fn looks(&self) -> u64 {
        let slots = self.pages.count * u64::from(self.pages.lines * self.pages.format.shape.slots);
        if self.pages.level > 0 { LOOKS_GROWN.min(slots / LOOKS) } else { slots / LOOKS }.max(1)
    }

    /// The level that is right for these lines.
    pub fn target_level(&self, lines: &[Line]) -> u32 {
        let (level, Some(limits)) = (self.pages.level, self.limits) else { return self.pages.level };
        let (mean, fullest) = self.load(lines);
        if mean > limits.mean {
            (level + 1).min(self.most_level())
        } else if 2.0 * fullest <= MERGED * limits.peak {
            // After a burst a page that has turned is empty while others are still full.
            level.saturating_sub(1)
        } else {
            level
        }
    }

    /// The share of the slots that keys need, by a sample of the pages, or of pairs of those that were one: in the
    /// mean, and of the fullest.
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

    /// The same lines at another level.
    pub fn at_level(&self, level: u32, lines: &[Line], phase: Rotation) -> Result<(Self, Words), Error> {
        let to = Self { pages: self.pages.at_level(level), ..*self };
        let len = (to.pages.count << level) as usize * to.pages.stride() * 8;
        let mut words = Words::zeroed(len)?;
        let new = words.to_mut()?.as_chunks_mut().0;
        self.instructions.run(Move { from: &self.pages, to: &to.pages, phase, old: lines, new });
        Ok((to, words))
    }
}

/// Moves all that lines hold to those of another level.
struct Move<'a> {
    from: &'a Pages,
    to: &'a Pages,
    phase: Rotation,
    old: &'a [Line],
    new: &'a mut [Line],
}

impl<M: Slots> Work<M> for Move<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { from, to, phase, old, new } = self;
        let (lines, format) = (u64::from(from.lines), from.format);
        // Numbers of pages in a group, and of lines in one: those at the new level that have keys of an old one.
        let heirs = |number: u64| match to.level.checked_sub(from.level) {
            Some(more) => number << more..(number + 1) << more,
            None => number >> (from.level - to.level)..(number >> (from.level - to.level)) + 1,
        };
        for (number, page) in from.all(old) {
            let (group, now) = (from.group(number), phase.tag(from, number));
            let first = u64::from(number) % from.of_group();
            let page_at = |of_group: u64| to.start(group << to.level | of_group as u32);
            for heir in heirs(first) {
                // A print may have gone to both pages: it is one key's, and the larger count is the whole.
                spare::merge(format, &mut new[page_at(heir)], &page[0], now, u32::max);
            }
            for (at, line) in (0..).zip(&page[1..]) {
                for heir in heirs(first * lines + u64::from(at)) {
                    new[page_at(heir / lines) + (heir % lines) as usize + 1][0] |= line[0] & SPARE_FLAG;
                }
                for slot in 0..format.used(line) {
                    let (place, mark) = from.entry(machine, number, at, line, slot);
                    if !from.is_kept(now, format.marked(mark).0) {
                        continue;
                    }
                    let place = to.place_at(group, from.index(&place));
                    to.put_counted(machine, to.page_mut(new, place.page), &place, mark, now);
                }
            }
        }
    }
}
