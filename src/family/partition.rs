//! Pages divided among threads. The hash of a key determines its page, so each thread has keys of its own.

use std::mem;
use std::ops::{Range, RangeInclusive};

/// Divides `count` pages of `page` words each into at most `partitions`. Returns the numbers of the pages of each,
/// their words, and the hashes of their keys; none if there would be only one partition.
pub fn partition(
    count: u64,
    page: usize,
    mut words: &mut [u64],
    partitions: usize,
) -> impl Iterator<Item = (Range<u64>, &mut [u64], RangeInclusive<u64>)> {
    let partitions = Some(count.min(partitions as u64)).filter(|&partitions| partitions > 1).unwrap_or(0);
    let first = move |partition: u64| (u128::from(partition) * u128::from(count) / u128::from(partitions)) as u64;
    // The least hash that `scale` maps to a page; beyond the last page, one more than the greatest hash.
    let least = move |page: u64| (u128::from(page) << 64).div_ceil(u128::from(count));
    (0..partitions).map(move |partition| {
        let pages = first(partition)..first(partition + 1);
        let (own, rest) = mem::take(&mut words).split_at_mut((pages.end - pages.start) as usize * page);
        words = rest;
        let hashes = least(pages.start) as u64..=(least(pages.end) - 1) as u64;
        (pages, own, hashes)
    })
}
