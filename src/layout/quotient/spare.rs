//! The first line of a page: prints of the keys that found no room, and the time since when there was none for prints
//! either.
//!
//! It has 16 halves of words. Fifteen are prints of 24 bits above a tag of 8, zero where there is none; the last is
//! zero, or 1 above the tag of the last key that there was no room for. A longer tag leaves fewer bits to the prints.
//! Where keys are counted, the low bits of a print are a count instead.

use super::format::{Format, Line};
use super::place::{Pages, Place};
use crate::shape::quotient::{LINES_OF_SMALL, SPARE};

/// Fewest bits for a tag.
const TAG_BITS: u32 = 8;

impl Format {
    /// Bits for a tag in a spare line.
    fn spare_tag_bits(&self) -> u32 {
        self.tag_bits.max(TAG_BITS)
    }

    /// Bits of a print in a spare line.
    pub fn spare_print_bits(&self) -> u32 {
        u32::BITS - self.spare_tag_bits() - self.count_bits
    }

    /// What an entry of a spare line has above its tag.
    fn above_tag(&self, entry: u32) -> u32 {
        entry >> self.spare_tag_bits()
    }

    /// The tag of an entry of a spare line.
    fn spare_tag(&self, entry: u32) -> u32 {
        entry & ((1 << self.spare_tag_bits()) - 1)
    }

    /// The print of an entry of a spare line, and its count.
    fn spared(&self, entry: u32) -> (u32, u32) {
        let above = self.above_tag(entry);
        (above >> self.count_bits, above & ((1 << self.count_bits) - 1))
    }

    /// An entry of a spare line.
    fn to_spare(&self, print: u32, count: u32, tag: u32) -> u32 {
        (print << self.count_bits | count) << self.spare_tag_bits() | tag
    }
}

impl Pages {
    /// The print of a key in the spare line: of all that its group knows of it, so that it is the same at any level.
    #[inline(always)]
    pub fn spare_print(&self, place: &Place) -> u32 {
        let one = self.at_level(0);
        let Place { line, bucket, print, .. } =
            if self.level == 0 { *place } else { one.place_at(0, self.index(place)) };
        let of_line = if self.lines > LINES_OF_SMALL { 7 } else { 6 };
        let known = (u64::from(print) << 6 | u64::from(bucket)) << of_line | u64::from(line);
        let mixed = known.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> (64 - self.format.spare_print_bits())) as u32).max(1)
    }
}

/// What a spare line says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// It is not there.
    No,
    /// Its print is, with this tag.
    Print(u32),
    /// It may have been turned away when this was the tag.
    Perhaps(u32),
}

fn halves(spare: &Line) -> &[u32; 16] {
    bytemuck::cast_ref(spare)
}

fn halves_mut(spare: &mut Line) -> &mut [u32; 16] {
    bytemuck::cast_mut(spare)
}

/// What it says of the key of a print. One of its own, by which it is there for longer, comes before all.
pub fn ask(format: &Format, spare: &Line, print: u32) -> Overflow {
    match (print_of(format, spare, print), since(format, spare)) {
        (Some((tag, _)), _) => Overflow::Print(tag),
        (None, Some(tag)) => Overflow::Perhaps(tag),
        (None, None) => Overflow::No,
    }
}

/// The tag and the count of a print, if it is there.
pub fn print_of(format: &Format, spare: &Line, print: u32) -> Option<(u32, u32)> {
    let entry = halves(spare)[..SPARE as usize].iter().find(|&&entry| format.spared(entry).0 == print)?;
    Some((format.spare_tag(*entry), format.spared(*entry).1))
}

/// The tag that it has last turned keys away with.
pub fn since(format: &Format, spare: &Line) -> Option<u32> {
    tag_of(format, halves(spare)[SPARE as usize])
}

/// The tag of an entry, if it is one.
fn tag_of(format: &Format, entry: u32) -> Option<u32> {
    (format.above_tag(entry) > 0).then_some(format.spare_tag(entry))
}

/// The tags with which a key may be there.
pub fn tags_of(format: &Format, spare: &Line, print: u32) -> impl Iterator<Item = u32> {
    print_of(format, spare, print).map(|(tag, _)| tag).into_iter().chain(since(format, spare))
}

/// Gives a print a tag and counts the key once more, if it is there; whether it is.
pub fn renew(format: &Format, spare: &mut Line, print: u32, tag: u32) -> bool {
    let prints = &mut halves_mut(spare)[..SPARE as usize];
    let entry = prints.iter_mut().find(|entry| format.spared(**entry).0 == print);
    entry.map(|entry| *entry = format.to_spare(print, format.both(format.spared(*entry).1, 0), tag)).is_some()
}

/// Takes in the key of a print in one way or the other, with a tag and a count above it.
pub fn put(format: &Format, spare: &mut Line, print: u32, mark: u32, now: u32) {
    let (tag, count) = format.marked(mark);
    put_entry(format, spare, format.to_spare(print, count, tag), now, |a, b| format.both(a, b));
}

/// Takes in a print with count and tag, of two tags the younger.
fn put_entry(format: &Format, spare: &mut Line, entry: u32, now: u32, counts: impl Fn(u32, u32) -> u32) {
    let (prints, (print, count)) = (&mut halves_mut(spare)[..SPARE as usize], format.spared(entry));
    if let Some(own) = prints.iter_mut().find(|own| format.spared(**own).0 == print) {
        let (tag, old) = (format.spare_tag(entry), format.spare_tag(*own));
        let tag = if format.age(now, tag) < format.age(now, old) { tag } else { old };
        *own = format.to_spare(print, counts(format.spared(*own).1, count), tag);
    } else if let Some(free) = prints.iter_mut().find(|own| format.spared(**own).0 == 0) {
        *free = entry;
    } else {
        turn_away(format, spare, format.spare_tag(entry), now);
    }
}

/// Turns away a key: the younger of two tags counts.
fn turn_away(format: &Format, spare: &mut Line, tag: u32, now: u32) {
    if since(format, spare).is_none_or(|old| format.age(now, tag) < format.age(now, old)) {
        halves_mut(spare)[SPARE as usize] = 1 << format.spare_tag_bits() | tag;
    }
}

/// Forgets what has a tag, whatever its lowest bits are, as many as `any`; says whether nothing is left.
pub fn expire(format: &Format, spare: &mut Line, tag: u32, any: u32) -> bool {
    let mut left = 0;
    for half in halves_mut(spare) {
        *half = if (format.spare_tag(*half) ^ tag) >> any == 0 { 0 } else { *half };
        left |= format.above_tag(*half);
    }
    left == 0
}

/// The tags of its prints.
pub fn tags(format: &Format, spare: &Line) -> impl Iterator<Item = u32> {
    halves(spare)[..SPARE as usize].iter().filter_map(|&entry| tag_of(format, entry))
}

/// Takes in all that another has. The count of a print that both have follows from theirs.
pub fn merge(format: &Format, spare: &mut Line, other: &Line, now: u32, counts: impl Fn(u32, u32) -> u32) {
    let prints = &halves(other)[..SPARE as usize];
    for &entry in prints.iter().filter(|&&entry| format.spared(entry).0 != 0) {
        put_entry(format, spare, entry, now, &counts);
    }
    if let Some(tag) = since(format, other) {
        turn_away(format, spare, tag, now);
    }
}
