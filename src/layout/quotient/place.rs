//! Where a hash lies: read as a number of mixed radix it is a page, a line there, a bucket and a fingerprint.

use std::mem;
use std::ops::RangeInclusive;

use super::format::Format;
use crate::memory::bits::scale;
use crate::shape::quotient::Shape;

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
#[derive(Clone, Copy)]
pub struct Pages {
    pub format: &'static Format,
    /// Lines of entries in a page.
    pub lines: u32,
    /// How many pages there are in all.
    pub count: u64,
    /// The first of those at hand, and the first beyond.
    pub first: u64,
    pub end: u64,
}

impl Pages {
    pub fn new(shape: Shape) -> Self {
        let format = Format::of(shape.fingerprint_bits, shape.tag_bits);
        Self { format, lines: shape.lines, count: shape.pages, first: 0, end: shape.pages }
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
        let (page, rest) = (scale(hash, self.count), hash.wrapping_mul(self.count));
        let (line, rest) = digit(rest, self.lines);
        let (bucket, rest) = digit(rest, self.format.shape.buckets);
        Place { page: page as u32, line, bucket, print: (rest >> (64 - self.format.fingerprint_bits)) as u32 }
    }

    /// The first line of a page that is at hand.
    #[inline(always)]
    pub fn start(&self, page: u32) -> usize {
        (u64::from(page) - self.first) as usize * self.stride()
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

    /// Cuts them into at most `parts`: those of each, their words, and the hashes of the keys there. Into none, where
    /// that is one.
    pub fn cut(
        self,
        mut words: &mut [u64],
        parts: usize,
    ) -> impl Iterator<Item = (Self, &mut [u64], RangeInclusive<u64>)> {
        let parts = Some(self.count.min(parts as u64)).filter(|&parts| parts > 1).unwrap_or(0);
        let first = move |part: u64| (u128::from(part) * u128::from(self.count) / u128::from(parts)) as u64;
        // The least hash that `scale` puts into a page: one more than the greatest, where there is no such page.
        let least = move |page: u64| (u128::from(page) << 64).div_ceil(u128::from(self.count));
        (0..parts).map(move |part| {
            let (first, end) = (first(part), first(part + 1));
            let (own, rest) = mem::take(&mut words).split_at_mut((end - first) as usize * self.stride() * 8);
            words = rest;
            (Self { first, end, ..self }, own, least(first) as u64..=(least(end) - 1) as u64)
        })
    }
}
