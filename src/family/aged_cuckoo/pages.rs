//! Where a hash lies: read as a number of mixed radix it is a page, a line there, and a fingerprint.

use super::line::Line;
use super::shape::LineFormat;
use crate::memory::bits::scale;

/// The two lines of a key, counted from the first line of the partition, and its fingerprint.
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub first: u32,
    pub second: u32,
    pub fingerprint: u64,
}

/// Pages of lines: all pages, or those of a partition. The order of hashes is the order of pages.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// The number of all pages.
    pub count: u64,
    /// The number of lines of a page, which is even.
    pub lines: u32,
    /// The first page of this partition.
    pub first: u64,
    /// The format of the lines.
    pub format: LineFormat,
}

impl Pages {
    /// Returns the place of a key.
    #[inline(always)]
    pub fn place(&self, hash: u64) -> Place {
        self.place_of(hash, self.format.fingerprint_bits)
    }

    /// Returns the place of a key whose fingerprint has this many bits, which the compiler may know.
    #[inline(always)]
    pub fn place_of(&self, hash: u64, fingerprint_bits: u32) -> Place {
        let (page, rest) = (scale(hash, self.count), hash.wrapping_mul(self.count));
        let (line, rest) = (scale(rest, self.lines.into()) as u32, rest.wrapping_mul(self.lines.into()));
        let (fingerprint, start) = (rest >> (64 - fingerprint_bits), (page - self.first) as u32 * self.lines);
        Place { first: start + line, second: start + self.reflected(line, fingerprint), fingerprint }
    }

    /// Returns the other line of an entry, both counted from the first line of its page.
    ///
    /// It is the reflection of the line at a point that the fingerprint chooses, so that the reflection of the other
    /// line is this one. The point is odd and the number of lines even, so no line is its own reflection.
    #[inline(always)]
    fn reflected(&self, line: u32, fingerprint: u64) -> u32 {
        let mixed = (fingerprint as u32).wrapping_mul(0x9E37_79B1);
        let point = ((u64::from(mixed) * u64::from(self.lines)) >> 32) as u32 | 1;
        let other = point.wrapping_sub(line);
        if point < line { other.wrapping_add(self.lines) } else { other }
    }

    /// Returns the other line of an entry.
    #[inline(always)]
    pub fn other_line(&self, line: u32, fingerprint: u64) -> u32 {
        let within = line % self.lines;
        line - within + self.reflected(within, fingerprint)
    }

    /// Returns the number of lines of all pages.
    pub fn all_lines(&self) -> u64 {
        self.count * u64::from(self.lines)
    }

    /// Returns the lines of this partition that are swept when an epoch opens, one of `sweeps` shares of all lines.
    pub fn swept<'a>(&self, lines: &'a mut [Line], share: u64, sweeps: u64) -> &'a mut [Line] {
        let before = |share: u64| (u128::from(self.all_lines()) * u128::from(share) / u128::from(sweeps)) as u64;
        let start = self.first * u64::from(self.lines);
        let own = |line: u64| (line.saturating_sub(start) as usize).min(lines.len());
        let range = own(before(share))..own(before(share + 1));
        &mut lines[range]
    }
}
