//! Where a hash lies: read as a number of mixed radix it is a page, a line there, a bucket and a fingerprint.

use std::ops::RangeInclusive;

use super::format::Format;
use crate::layout::partition::partition;
use crate::memory::bits::scale;
use crate::shape::quotient::QuotientShape;

/// A weyl constant: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where one key is at home.
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub page: u32,
    pub line: u32,
    pub bucket: u32,
    pub print: u32,
}

/// Pages of lines: all, or those at hand.
///
/// Pages turn in groups: of one page, unless the filter has grown. With each *level* a group has twice the pages, and a
/// fingerprint a bit less. That bit is not lost, it is in the number of the page, so that a key has the same place
/// among all places of its group at any level: [`Pages::index`].
#[derive(Clone, Copy)]
pub struct Pages {
    pub format: &'static Format,
    /// Lines of entries in a page.
    pub lines: u32,
    /// How many groups there are in all.
    pub count: u64,
    /// The first of those at hand, and the first beyond.
    pub first: u64,
    pub end: u64,
    /// The pages of a group, as a power of two.
    pub level: u32,
    /// Bits of a fingerprint that are used.
    pub print_bits: u32,
    /// Tags that count at a time, that of the open epoch among them.
    pub kept: u32,
    /// Epochs from one turn of a page to the next, as a power of two.
    pub epochs_per_turn_log2: u32,
    /// All bits, if tags are finer than turns, or none.
    fine: u32,
}

impl Pages {
    pub fn new(shape: QuotientShape) -> Self {
        Self {
            format: Format::of(shape.fingerprint_bits, shape.tag_bits, shape.count_bits, shape.large()),
            lines: shape.lines,
            count: shape.pages,
            first: 0,
            end: shape.pages,
            level: 0,
            print_bits: shape.fingerprint_bits,
            kept: shape.full_epochs() + 1,
            epochs_per_turn_log2: shape.epochs_per_turn_log2(),
            fine: if shape.epochs.is_some() { u32::MAX } else { 0 },
        }
    }

    /// Whether tags are finer than turns: all pages then begin their epochs together, and not as they turn.
    #[inline(always)]
    pub fn fine(&self) -> bool {
        self.fine != 0
    }

    /// How far the tag of a page lies behind that of the first. So pages do not turn all at once, and yet each when the
    /// oldest of its tags that count begin a [turn](Self::turn).
    #[inline(always)]
    pub fn behind_first(&self, page: u32) -> u32 {
        self.group(page) & self.fine
    }

    /// Whether what has a tag counts, while that of the open epoch is `now`.
    #[inline(always)]
    pub fn is_kept(&self, now: u32, tag: u32) -> bool {
        !self.fine() || self.format.age(now, tag) < self.kept
    }

    /// The number of the turn that a page had made last when a tag was that of its open epoch.
    #[inline(always)]
    pub fn turn(&self, tag: u32) -> u32 {
        self.format.age(tag, self.kept - 1) >> self.epochs_per_turn_log2
    }

    /// The tag that no key can have any more when a page turns and this is that of its open epoch, and those after it
    /// of the same turn: they come round.
    #[inline(always)]
    pub fn gone(&self, tag: u32) -> u32 {
        self.format.age(tag, self.kept - 1 + (1 << self.epochs_per_turn_log2))
    }

    /// Generations in an epoch.
    pub fn steps(&self) -> u64 {
        if self.fine() { 1 } else { self.count }
    }

    /// The groups at hand that turn when a generation opens.
    #[inline(always)]
    pub fn turning(&self, generation: i64) -> impl Iterator<Item = u64> + use<> {
        let (period, from) =
            if self.fine() { (1 << self.epochs_per_turn_log2, self.kept - 1) } else { (self.count, 0) };
        let first = self.first + (generation - i64::from(from) - self.first as i64).rem_euclid(period as i64) as u64;
        (first..self.end).step_by(period as usize)
    }

    /// The same keys in groups of 2^`level` pages, each of which takes a bit of the fingerprints.
    pub fn at_level(self, level: u32) -> Self {
        Self { level, print_bits: self.format.fingerprint_bits - level, ..self }
    }

    /// Pages of a group.
    pub fn of_group(&self) -> u64 {
        1 << self.level
    }

    /// The group of a page.
    #[inline(always)]
    pub fn group(&self, page: u32) -> u32 {
        page >> self.level
    }

    /// Places of a page.
    pub fn places(&self) -> u64 {
        u64::from(self.lines * self.format.shape.buckets) << self.print_bits
    }

    /// The number of a place among those of its group, the same at any level.
    pub fn index(&self, place: &Place) -> u64 {
        let bucket = u64::from(place.line) * u64::from(self.format.shape.buckets) + u64::from(place.bucket);
        let print = u64::from(place.print) & ((1 << self.print_bits) - 1);
        u64::from(place.page & ((1 << self.level) - 1)) * self.places() + (bucket << self.print_bits | print)
    }

    /// The place of a group that has this number.
    pub fn place_at(&self, group: u32, index: u64) -> Place {
        let (page, index) = (index / self.places(), index % self.places());
        let (bucket, buckets) = (index >> self.print_bits, u64::from(self.format.shape.buckets));
        Place {
            page: group << self.level | page as u32,
            line: (bucket / buckets) as u32,
            bucket: (bucket % buckets) as u32,
            print: (index & ((1 << self.print_bits) - 1)) as u32,
        }
    }

    /// Whether all of them are at hand.
    #[inline(always)]
    pub fn whole(&self) -> bool {
        self.end - self.first == self.count
    }

    /// Lines of a page, the spare among them.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.lines as usize + 1
    }

    /// Where a hash lies.
    #[inline(always)]
    pub fn place(&self, hash: u64) -> Place {
        let digit = |rest: u64, radix: u32| (scale(rest, radix.into()) as u32, rest.wrapping_mul(radix.into()));
        let pages = self.count << self.level;
        let (page, rest) = (scale(hash, pages), hash.wrapping_mul(pages));
        let (line, rest) = digit(rest, self.lines);
        let (bucket, rest) = digit(rest, self.format.shape.buckets);
        Place { page: page as u32, line, bucket, print: (rest >> (64 - self.print_bits)) as u32 }
    }

    /// The first line of a page that is at hand.
    #[inline(always)]
    pub fn start(&self, page: u32) -> usize {
        (u64::from(page) - (self.first << self.level)) as usize * self.stride()
    }

    /// The home line of a key, among all that are at hand.
    #[inline(always)]
    pub fn home_of(&self, place: &Place) -> usize {
        self.start(place.page) + place.line as usize + 1
    }

    /// How many lines further an entry lies when it is not at home: by its bucket, as
    /// [movable](Format::movable) as it is, and its fingerprint.
    #[inline(always)]
    fn hop(&self, movable: u32, print: u32) -> u32 {
        let mixed = u64::from(print << 5 | movable).wrapping_mul(SPREAD);
        1 + scale(mixed, u64::from(self.lines) - 1) as u32
    }

    /// The second line of an entry at home in this one.
    #[inline(always)]
    pub fn second(&self, line: u32, movable: u32, print: u32) -> u32 {
        let line = line + self.hop(movable, print);
        line - if line >= self.lines { self.lines } else { 0 }
    }

    /// The home of an entry whose second line is this one.
    #[inline(always)]
    pub fn home(&self, line: u32, movable: u32, print: u32) -> u32 {
        let hop = self.hop(movable, print);
        line + if line < hop { self.lines } else { 0 } - hop
    }

    /// Cuts them, at level 0, into at most `parts`: those of each, their words, and the hashes of the keys there. Into
    /// none, where that is one.
    pub fn partitions(
        self,
        words: &mut [u64],
        parts: usize,
    ) -> impl Iterator<Item = (Self, &mut [u64], RangeInclusive<u64>)> {
        let cut = partition(self.count, self.stride() * 8, words, parts);
        cut.map(move |(pages, words, hashes)| (Self { first: pages.start, end: pages.end, ..self }, words, hashes))
    }
}
