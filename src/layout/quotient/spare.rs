//! The first line of a page: prints of the keys that found no room, and the time since when there was none for prints
//! either.
//!
//! It has 16 halves of words. Fifteen are prints of 24 bits above a tag of 8, zero where there is none; the last is
//! zero, or 1 above the tag of the last key that there was no room for.

use super::format::Line;
use super::place::{Pages, Place};
use crate::shape::quotient::SPARE;

impl Pages {
    /// The print of a key in the spare line: of all that its group knows of it, so that it is the same at any level.
    #[inline(always)]
    pub fn spare_print(&self, place: &Place) -> u32 {
        let one = self.at_level(0);
        let Place { line, bucket, print, .. } =
            if self.level == 0 { *place } else { one.place_at(0, self.index(place)) };
        let known = u64::from(print) << 12 | u64::from(bucket) << 6 | u64::from(line);
        ((known.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32).max(1)
    }
}

/// What a spare line says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spared {
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
pub fn ask(spare: &Line, print: u32) -> Spared {
    let (prints, since) = halves(spare).split_at(SPARE as usize);
    match prints.iter().find(|&&entry| entry >> 8 == print) {
        Some(entry) => Spared::Print(entry & 255),
        None if since[0] > 255 => Spared::Perhaps(since[0] & 255),
        None => Spared::No,
    }
}

/// The tags with which a key may be there.
pub fn tags_of(spare: &Line, print: u32) -> impl Iterator<Item = u32> {
    let (prints, since) = halves(spare).split_at(SPARE as usize);
    let prints = prints.iter().filter(move |&&entry| entry >> 8 == print);
    prints.chain(since.iter().filter(|&&since| since > 255)).map(|entry| entry & 255)
}

/// Gives a print a tag, if there is one; whether there is.
pub fn renew(spare: &mut Line, print: u32, tag: u32) -> bool {
    let entry = halves_mut(spare)[..SPARE as usize].iter_mut().find(|entry| **entry >> 8 == print);
    entry.map(|entry| *entry = *entry & !255 | tag).is_some()
}

/// Takes in the key of a print in one way or the other, where `age` tells how old a tag is.
pub fn put(spare: &mut Line, print: u32, tag: u32, age: impl Fn(u32) -> u32) {
    put_entry(spare, print << 8 | tag, &age);
}

/// Takes in a print and its tag, of two tags the younger.
fn put_entry(spare: &mut Line, entry: u32, age: &impl Fn(u32) -> u32) {
    let prints = &mut halves_mut(spare)[..SPARE as usize];
    if let Some(own) = prints.iter_mut().find(|own| **own >> 8 == entry >> 8) {
        *own = if age(entry & 255) < age(*own & 255) { entry } else { *own };
    } else if let Some(free) = prints.iter_mut().find(|own| **own >> 8 == 0) {
        *free = entry;
    } else {
        turn_away(spare, entry & 255, age);
    }
}

/// Turns away a key: the younger of two tags counts.
fn turn_away(spare: &mut Line, tag: u32, age: &impl Fn(u32) -> u32) {
    let since = &mut halves_mut(spare)[SPARE as usize];
    if *since <= 255 || age(tag) < age(*since & 255) {
        *since = 1 << 8 | tag;
    }
}

/// Whether a key that is turned away now leaves it as it is.
#[inline(always)]
pub fn turns_away(spare: &Line, tag: u32) -> bool {
    halves(spare)[SPARE as usize] == 1 << 8 | tag
}

/// Forgets what has a tag; says whether nothing is left.
pub fn expire(spare: &mut Line, tag: u32) -> bool {
    let mut left = 0;
    for half in halves_mut(spare) {
        *half = if *half & 255 == tag { 0 } else { *half };
        left |= *half >> 8;
    }
    left == 0
}

/// The tags of its prints, and the tag that it has turned keys away with.
pub fn tags(spare: &Line) -> (impl Iterator<Item = u32>, Option<u32>) {
    let (prints, since) = halves(spare).split_at(SPARE as usize);
    let there = |entry: &u32| (*entry > 255).then_some(entry & 255);
    (prints.iter().filter_map(there), there(&since[0]))
}

/// Takes in all that another has.
pub fn unite(spare: &mut Line, other: &Line, age: impl Fn(u32) -> u32) {
    let (prints, since) = halves(other).split_at(SPARE as usize);
    prints.iter().filter(|&&entry| entry >> 8 != 0).for_each(|&entry| put_entry(spare, entry, &age));
    if since[0] > 255 {
        turn_away(spare, since[0] & 255, &age);
    }
}
