//! The overflow line, the first of a page: fingerprints of keys that found no room in their lines, and the tag of the
//! last key that found no room here either.
//!
//! A line is 16 numbers of 32 bits. Fifteen are entries: a fingerprint of 24 bits above a tag of 8, or zero. The last
//! is zero, or 1 above the tag of the last key that was rejected. A longer tag leaves fewer bits to the fingerprint. In
//! a filter that counts, the low bits of the fingerprint are a count instead.

use super::format::{Format, Line};
use super::pages::{Location, Pages};
use crate::memory::bits::WEYL;
use crate::shape::quotient::{LINES_OF_SMALL, OVERFLOW_SLOTS};

/// The least number of bits for a tag.
const TAG_BITS: u32 = 8;

impl Format {
    /// Returns the number of bits for a tag in an overflow line.
    fn overflow_tag_bits(&self) -> u32 {
        self.tag_bits.max(TAG_BITS)
    }

    /// Returns the number of bits of a fingerprint in an overflow line.
    pub fn overflow_fingerprint_bits(&self) -> u32 {
        u32::BITS - self.overflow_tag_bits() - self.count_bits
    }

    /// Returns the bits above the tag of an entry.
    fn above_tag(&self, entry: u32) -> u32 {
        entry >> self.overflow_tag_bits()
    }

    /// Returns the tag of an entry.
    fn overflow_tag(&self, entry: u32) -> u32 {
        entry & ((1 << self.overflow_tag_bits()) - 1)
    }

    /// Returns the fingerprint of an entry, and its count.
    fn overflow_key(&self, entry: u32) -> (u32, u32) {
        let above = self.above_tag(entry);
        (above >> self.count_bits, above & ((1 << self.count_bits) - 1))
    }

    /// Returns an entry.
    fn overflow_entry(&self, fingerprint: u32, count: u32, tag: u32) -> u32 {
        (fingerprint << self.count_bits | count) << self.overflow_tag_bits() | tag
    }
}

impl Pages {
    /// Returns the fingerprint of a key in the overflow line. It is computed from the whole index of the key in its
    /// group, so it is the same at any level.
    #[inline(always)]
    pub fn overflow_fingerprint(&self, location: &Location) -> u32 {
        let one = self.at_level(0);
        let Location { line, bucket, fingerprint, .. } =
            if self.level == 0 { *location } else { one.location_at(0, self.index(location)) };
        let of_line = if self.lines > LINES_OF_SMALL { 7 } else { 6 };
        let index = (u64::from(fingerprint) << 6 | u64::from(bucket)) << of_line | u64::from(line);
        let mixed = index.wrapping_mul(WEYL);
        ((mixed >> (64 - self.format.overflow_fingerprint_bits())) as u32).max(1)
    }
}

/// The result of a search for a key in an overflow line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverflowMatch {
    /// The line does not contain the key.
    Absent,
    /// The line contains the fingerprint of the key, with this tag.
    Fingerprint(u32),
    /// The key may have been rejected while this tag was current.
    Rejected(u32),
}

/// Returns the entries of an overflow line.
fn entries(line: &Line) -> &[u32] {
    &bytemuck::cast_ref::<Line, [u32; 16]>(line)[..OVERFLOW_SLOTS as usize]
}

/// Returns the entries of an overflow line, to write.
fn entries_mut(line: &mut Line) -> &mut [u32] {
    &mut bytemuck::cast_mut::<Line, [u32; 16]>(line)[..OVERFLOW_SLOTS as usize]
}

/// Searches for the key with a fingerprint. A match of the fingerprint, which is certain for longer, comes first.
pub fn look_up(format: &Format, line: &Line, fingerprint: u32) -> OverflowMatch {
    match (entry_of(format, line, fingerprint), rejected(format, line)) {
        (Some((tag, _)), _) => OverflowMatch::Fingerprint(tag),
        (None, Some(tag)) => OverflowMatch::Rejected(tag),
        (None, None) => OverflowMatch::Absent,
    }
}

/// Returns the tag and the count of a fingerprint, if the line contains it.
pub fn entry_of(format: &Format, line: &Line, fingerprint: u32) -> Option<(u32, u32)> {
    let entry = entries(line).iter().find(|&&entry| format.overflow_key(entry).0 == fingerprint)?;
    Some((format.overflow_tag(*entry), format.overflow_key(*entry).1))
}

/// Returns the tag of the last key that the line rejected, if it has not expired.
pub fn rejected(format: &Format, line: &Line) -> Option<u32> {
    tag_of(format, bytemuck::cast_ref::<Line, [u32; 16]>(line)[OVERFLOW_SLOTS as usize])
}

/// Returns the tag of an entry, if it is not empty.
fn tag_of(format: &Format, entry: u32) -> Option<u32> {
    (format.above_tag(entry) > 0).then_some(format.overflow_tag(entry))
}

/// Returns the tags with which the line may contain a key.
pub fn tags_of(format: &Format, line: &Line, fingerprint: u32) -> impl Iterator<Item = u32> {
    entry_of(format, line, fingerprint).map(|(tag, _)| tag).into_iter().chain(rejected(format, line))
}

/// Writes the tag of a fingerprint and adds 1 to its count, if the line contains it. Returns whether it does.
pub fn renew(format: &Format, line: &mut Line, fingerprint: u32, tag: u32) -> bool {
    let entry = entries_mut(line).iter_mut().find(|entry| format.overflow_key(**entry).0 == fingerprint);
    let renewed = |old| format.overflow_entry(fingerprint, format.add_counts(format.overflow_key(old).1, 0), tag);
    entry.map(|entry| *entry = renewed(*entry)).is_some()
}

/// Inserts a fingerprint with a tag and a count, or rejects it if there is no room. `now` is the tag of the open epoch.
pub fn put(format: &Format, line: &mut Line, fingerprint: u32, tag_and_count: u32, now: u32) {
    let (tag, count) = format.split_tag_and_count(tag_and_count);
    let entry = format.overflow_entry(fingerprint, count, tag);
    put_entry(format, line, entry, now, |a, b| format.add_counts(a, b));
}

/// Inserts an entry, or rejects it if there is no room. If the line contains its fingerprint, the younger tag stays,
/// and `counts` computes the new count from both.
fn put_entry(format: &Format, line: &mut Line, entry: u32, now: u32, counts: impl Fn(u32, u32) -> u32) {
    let (all, (fingerprint, count)) = (entries_mut(line), format.overflow_key(entry));
    if let Some(own) = all.iter_mut().find(|own| format.overflow_key(**own).0 == fingerprint) {
        let (tag, old) = (format.overflow_tag(entry), format.overflow_tag(*own));
        let tag = if format.age(now, tag) < format.age(now, old) { tag } else { old };
        *own = format.overflow_entry(fingerprint, counts(format.overflow_key(*own).1, count), tag);
    } else if let Some(free) = all.iter_mut().find(|own| format.overflow_key(**own).0 == 0) {
        *free = entry;
    } else {
        reject(format, line, format.overflow_tag(entry), now);
    }
}

/// Records that a key with this tag was rejected. The younger of two tags stays, by the tag `now` of the open epoch.
fn reject(format: &Format, line: &mut Line, tag: u32, now: u32) {
    if rejected(format, line).is_none_or(|old| format.age(now, tag) < format.age(now, old)) {
        bytemuck::cast_mut::<Line, [u32; 16]>(line)[OVERFLOW_SLOTS as usize] = 1 << format.overflow_tag_bits() | tag;
    }
}

/// Removes all entries with a tag, and the tag of the last rejected key if it is the same. The lowest `any` bits of
/// tags are not compared. Returns whether the line is then empty.
pub fn expire(format: &Format, line: &mut Line, tag: u32, any: u32) -> bool {
    let mut left = 0;
    for entry in bytemuck::cast_mut::<Line, [u32; 16]>(line) {
        *entry = if (format.overflow_tag(*entry) ^ tag) >> any == 0 { 0 } else { *entry };
        left |= format.above_tag(*entry);
    }
    left == 0
}

/// Returns the tags of all entries.
pub fn tags(format: &Format, line: &Line) -> impl Iterator<Item = u32> {
    entries(line).iter().filter_map(|&entry| tag_of(format, entry))
}

/// Merges another line into this one. `counts` computes the count of a fingerprint that both contain. `now` is the tag
/// of the open epoch.
pub fn merge(format: &Format, line: &mut Line, other: &Line, now: u32, counts: impl Fn(u32, u32) -> u32) {
    for &entry in entries(other).iter().filter(|&&entry| format.overflow_key(entry).0 != 0) {
        put_entry(format, line, entry, now, &counts);
    }
    if let Some(tag) = rejected(format, other) {
        reject(format, line, tag, now);
    }
}
