//! Pages divided among threads. A hash says which page a key lies in, so each thread has keys of its own.

use std::mem;
use std::ops::{Range, RangeInclusive};

/// Cuts `count` pages of `page` words each into at most `parts`: which pages each has, their words, and the hashes of
/// the keys there. Returns none if there would be only one.
pub fn cut(
    count: u64,
    page: usize,
    mut words: &mut [u64],
    parts: usize,
) -> impl Iterator<Item = (Range<u64>, &mut [u64], RangeInclusive<u64>)> {
    let parts = Some(count.min(parts as u64)).filter(|&parts| parts > 1).unwrap_or(0);
    let first = move |part: u64| (u128::from(part) * u128::from(count) / u128::from(parts)) as u64;
    // The least hash that `scale` maps to a page; for no such page, one more than the greatest hash.
    let least = move |page: u64| (u128::from(page) << 64).div_ceil(u128::from(count));
    (0..parts).map(move |part| {
        let pages = first(part)..first(part + 1);
        let (own, rest) = mem::take(&mut words).split_at_mut((pages.end - pages.start) as usize * page);
        words = rest;
        let hashes = least(pages.start) as u64..=(least(pages.end) - 1) as u64;
        (pages, own, hashes)
    })
}
