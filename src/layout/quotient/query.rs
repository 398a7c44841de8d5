//! Queries of many keys, block by block. One key in twelve needs more than its home line. These keys are deferred until
//! the next block is done, so that no key waits for memory or for a mispredicted branch.

use std::mem;
use std::ops::Range;

use super::format::Line;
use super::pages::Pages;
use super::run::{BLOCK, Deferred, prefetch_alternate_line};
use super::slots::Slots;
use crate::instructions::Work;
use crate::memory::prefetch::Address;

/// Writes which keys of a run the pages contain, where entries of all epochs are retained.
pub struct QueryBlocks<'a> {
    pub pages: &'a Pages,
    pub lines: &'a [Line],
    pub hashes: &'a [u64],
    pub run: Range<usize>,
    pub present: &'a mut [bool],
}

/// The home line of a key, counted from the first line of the partition, with its bucket and fingerprint. If the line
/// is computed again from a location, queries of absent keys take a sixth longer.
#[derive(Clone, Copy, Default)]
struct Home {
    line: usize,
    bucket: u32,
    fingerprint: u32,
}

impl<M: Slots> Work<M> for QueryBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { pages, lines, hashes, run, present } = self;
        let address = Address::of(lines.as_flattened());
        let (hashes, present) = (&hashes[run.clone()], &mut present[run]);
        let (mut coming, mut homes) = ([Home::default(); BLOCK], [Home::default(); BLOCK]);
        let mut before = (&[][..], &mut [][..], Deferred::default());
        let mut blocks = hashes.chunks(BLOCK);
        prefetch_home_lines(pages, address, blocks.next().unwrap_or_default(), &mut coming);
        for (hashes, present) in hashes.chunks(BLOCK).zip(present.chunks_mut(BLOCK)) {
            mem::swap(&mut coming, &mut homes);
            prefetch_home_lines(pages, address, blocks.next().unwrap_or_default(), &mut coming);
            let deferred = query_home_lines(machine, pages, lines, &homes, present);
            for &key in deferred.keys() {
                prefetch_alternate_line(pages, address, lines, &pages.location(hashes[usize::from(key)]));
            }
            query_outside_home(machine, pages, lines, before);
            before = (hashes, present, deferred);
        }
        query_outside_home(machine, pages, lines, before);
    }
}

/// Computes the home lines of keys, and prefetches them.
#[inline(always)]
fn prefetch_home_lines(pages: &Pages, address: Address, hashes: &[u64], homes: &mut [Home; BLOCK]) {
    for (home, &hash) in homes.iter_mut().zip(hashes) {
        let location = pages.location(hash);
        let line = pages.home_line(&location);
        address.fetch(line * 8);
        *home = Home { line, bucket: location.bucket, fingerprint: location.fingerprint };
    }
}

/// Writes which keys lie in their home lines, and returns the absent keys that may lie in other lines.
#[inline(always)]
fn query_home_lines<M: Slots>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    homes: &[Home; BLOCK],
    present: &mut [bool],
) -> Deferred {
    let (format, mut deferred) = (pages.format, Deferred::default());
    for ((key, home), present) in (0..).zip(homes).zip(present) {
        let line = &lines[home.line];
        *present = format.find(machine, line, home.bucket, home.fingerprint) != 0;
        deferred.add_if(key, !(*present | format.is_complete(line, home.bucket)));
    }
    deferred
}

/// Writes which of the deferred keys of a block lie outside their home lines.
#[inline(always)]
fn query_outside_home<M: Slots>(
    machine: M,
    pages: &Pages,
    lines: &[Line],
    (hashes, present, deferred): (&[u64], &mut [bool], Deferred),
) {
    for &key in deferred.keys() {
        let location = pages.location(hashes[usize::from(key)]);
        let page = pages.page(lines, location.page);
        present[usize::from(key)] = pages.is_outside_home(machine, page, &location);
    }
}
