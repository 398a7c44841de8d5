//! Where a hash lies: read as a number of mixed radix it is a page, a line there, a bucket and a fingerprint.

use std::ops::RangeInclusive;

use super::format::{Format, Line};
use crate::family::partition::partition;
use crate::memory::bits::{WEYL, scale};
use crate::shape::quotient::QuotientShape;

/// The location of one key: its page, its home line there, its bucket in the line, and its fingerprint.
#[derive(Clone, Copy, Default)]
pub struct Location {
    pub page: u32,
    pub line: u32,
    pub bucket: u32,
    pub fingerprint: u32,
}

/// Pages of lines: all pages, or those of a partition.
///
/// Pages rotate in groups. A group is one page, unless the filter has grown. With each *level* a group has twice the
/// pages, and a fingerprint has one bit less. That bit selects the page, so a key has the same [index](Pages::index)
/// among all locations of its group at any level.
#[derive(Clone, Copy)]
pub struct Pages {
    pub format: &'static Format,
    /// The number of lines of entries in a page.
    pub lines: u32,
    /// The number of all groups.
    pub count: u64,
    /// The first group of this partition.
    pub first: u64,
    /// The first group beyond this partition.
    pub end: u64,
    /// The binary logarithm of the number of pages in a group.
    pub level: u32,
    /// The number of bits of a fingerprint that are used at this level.
    fingerprint_bits: u32,
    /// The number of epochs that are retained, the open one included.
    pub retained: u32,
    /// The binary logarithm of the number of epochs from one rotation of a page to the next.
    pub epochs_per_rotation_log2: u32,
    /// All ones if tags are finer than rotations, else 0.
    fine: u32,
}

impl Pages {
    /// Returns all pages of a shape, at level 0.
    pub fn new(shape: QuotientShape) -> Self {
        Self {
            format: Format::of(shape.fingerprint_bits, shape.tag_bits, shape.count_bits, shape.large()),
            lines: shape.lines,
            count: shape.pages,
            first: 0,
            end: shape.pages,
            level: 0,
            fingerprint_bits: shape.fingerprint_bits,
            retained: shape.full_epochs() + 1,
            epochs_per_rotation_log2: shape.epochs_per_rotation_log2(),
            fine: if shape.epochs.is_some() { u32::MAX } else { 0 },
        }
    }

    /// Returns whether tags are finer than rotations. All pages then begin their epochs together, not when they rotate.
    #[inline(always)]
    pub fn fine(&self) -> bool {
        self.fine != 0
    }

    /// Returns how far the tag of a page lies behind that of the first page, if tags are fine. Pages therefore rotate
    /// at different times, each when its oldest retained tags begin a [rotation](Self::rotation_of).
    #[inline(always)]
    pub fn behind_first(&self, page: u32) -> u32 {
        self.group(page) & self.fine
    }

    /// Returns whether the epoch with a tag is retained while `now` is the tag of the open epoch.
    #[inline(always)]
    pub fn is_retained(&self, now: u32, tag: u32) -> bool {
        !self.fine() || self.format.age(now, tag) < self.retained
    }

    /// Returns the number of the last rotation of a page before the epoch with this tag.
    #[inline(always)]
    pub fn rotation_of(&self, tag: u32) -> u32 {
        self.format.age(tag, self.retained - 1) >> self.epochs_per_rotation_log2
    }

    /// Returns the first of the tags that expire when a page rotates, if `tag` is that of its open epoch. The tags
    /// after it, up to the next rotation, expire too.
    #[inline(always)]
    pub fn expired(&self, tag: u32) -> u32 {
        self.format.age(tag, self.retained - 1 + (1 << self.epochs_per_rotation_log2))
    }

    /// Returns the number of generations in an epoch.
    pub fn steps(&self) -> u64 {
        if self.fine() { 1 } else { self.count }
    }

    /// Returns the groups of this partition that rotate when a generation opens.
    #[inline(always)]
    pub fn rotating(&self, generation: i64) -> impl Iterator<Item = u64> + use<> {
        let (period, from) =
            if self.fine() { (1 << self.epochs_per_rotation_log2, self.retained - 1) } else { (self.count, 0) };
        let first = self.first + (generation - i64::from(from) - self.first as i64).rem_euclid(period as i64) as u64;
        (first..self.end).step_by(period as usize)
    }

    /// Returns pages for the same keys in groups of 2^`level`. Each level takes one bit of the fingerprints.
    pub fn at_level(self, level: u32) -> Self {
        Self { level, fingerprint_bits: self.format.fingerprint_bits - level, ..self }
    }

    /// Returns the number of pages in a group.
    pub fn of_group(&self) -> u64 {
        1 << self.level
    }

    /// Returns the group of a page.
    #[inline(always)]
    pub fn group(&self, page: u32) -> u32 {
        page >> self.level
    }

    /// Returns the number of locations in a page.
    pub fn locations(&self) -> u64 {
        u64::from(self.lines * self.format.shape.buckets) << self.fingerprint_bits
    }

    /// Returns the number of a location among those of its group, which is the same at any level.
    pub fn index(&self, location: &Location) -> u64 {
        let bucket = u64::from(location.line) * u64::from(self.format.shape.buckets) + u64::from(location.bucket);
        let fingerprint = u64::from(location.fingerprint) & ((1 << self.fingerprint_bits) - 1);
        u64::from(location.page & ((1 << self.level) - 1)) * self.locations()
            + (bucket << self.fingerprint_bits | fingerprint)
    }

    /// Returns the location with this number in a group.
    pub fn location_at(&self, group: u32, index: u64) -> Location {
        let (page, index) = (index / self.locations(), index % self.locations());
        let (bucket, buckets) = (index >> self.fingerprint_bits, u64::from(self.format.shape.buckets));
        Location {
            page: group << self.level | page as u32,
            line: (bucket / buckets) as u32,
            bucket: (bucket % buckets) as u32,
            fingerprint: (index & ((1 << self.fingerprint_bits) - 1)) as u32,
        }
    }

    /// Returns whether this partition has all groups.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.end - self.first == self.count
    }

    /// Returns the number of lines of a page, the overflow line included.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.lines as usize + 1
    }

    /// Returns the location of a key.
    #[inline(always)]
    pub fn location(&self, hash: u64) -> Location {
        let digit = |rest: u64, radix: u32| (scale(rest, radix.into()) as u32, rest.wrapping_mul(radix.into()));
        let pages = self.count << self.level;
        let (page, rest) = (scale(hash, pages), hash.wrapping_mul(pages));
        let (line, rest) = digit(rest, self.lines);
        let (bucket, rest) = digit(rest, self.format.shape.buckets);
        Location { page: page as u32, line, bucket, fingerprint: (rest >> (64 - self.fingerprint_bits)) as u32 }
    }

    /// Returns the first line of a page, counted from the first line of this partition.
    #[inline(always)]
    pub fn start(&self, page: u32) -> usize {
        (u64::from(page) - (self.first << self.level)) as usize * self.stride()
    }

    /// Returns the home line of a key, counted from the first line of this partition.
    #[inline(always)]
    pub fn home_line(&self, location: &Location) -> usize {
        self.start(location.page) + location.line as usize + 1
    }

    /// Returns the lines of a page, the overflow line first.
    #[inline(always)]
    pub fn page<'a>(&self, lines: &'a [Line], page: u32) -> &'a [Line] {
        &lines[self.start(page)..][..self.stride()]
    }

    /// Returns the lines of a page to write, the overflow line first.
    #[inline(always)]
    pub fn page_mut<'a>(&self, lines: &'a mut [Line], page: u32) -> &'a mut [Line] {
        &mut lines[self.start(page)..][..self.stride()]
    }

    /// Returns all pages of this partition, with their numbers.
    pub fn all<'a>(&self, lines: &'a [Line]) -> impl Iterator<Item = (u32, &'a [Line])> + use<'a> {
        ((self.first << self.level) as u32..).zip(lines.chunks_exact(self.stride()))
    }

    /// Returns how many lines after its home line an entry lies if it is evicted. Depends on its bucket, counted from
    /// the first evictable one, and on its fingerprint.
    #[inline(always)]
    fn distance(&self, evictable: u32, fingerprint: u32) -> u32 {
        let mixed = u64::from(fingerprint << 5 | evictable).wrapping_mul(WEYL);
        1 + scale(mixed, u64::from(self.lines) - 1) as u32
    }

    /// Returns the alternate line of an entry, from its home line.
    #[inline(always)]
    pub fn alternate_line(&self, line: u32, evictable: u32, fingerprint: u32) -> u32 {
        let line = line + self.distance(evictable, fingerprint);
        line - if line >= self.lines { self.lines } else { 0 }
    }

    /// Returns the home line of an entry, from its alternate line.
    #[inline(always)]
    pub fn home_of_guest(&self, line: u32, evictable: u32, fingerprint: u32) -> u32 {
        let distance = self.distance(evictable, fingerprint);
        line + if line < distance { self.lines } else { 0 } - distance
    }

    /// Divides the pages, at level 0, into at most `count` partitions, and returns each with its words and the hashes
    /// of its keys; none if there would be only one.
    pub fn partitions(
        self,
        words: &mut [u64],
        count: usize,
    ) -> impl Iterator<Item = (Self, &mut [u64], RangeInclusive<u64>)> {
        let partitions = partition(self.count, self.stride() * 8, words, count);
        partitions
            .map(move |(pages, words, hashes)| (Self { first: pages.start, end: pages.end, ..self }, words, hashes))
    }
}
