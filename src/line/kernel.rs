//! What a run of keys does to lines, whatever the instruction set.
//!
//! These are functions of slices that are inlined whole into one function per instruction set: intrinsics behind
//! closures are not, and then cost a call for every key (an insertion of 5 ns took 164).

use std::ops::Range;

use super::{LINE, Lines, Phase, Spot};
use crate::bits::{Address, has_run};

/// Keys in flight, in groups. A line is all that a key touches, so that more of them are needed to hide its latency
/// than where a key touches many.
const AHEAD: usize = 64;
const GROUP: usize = 8;

/// What instruction sets differ in: a key's mask in a line, and what is done with it.
///
/// # Safety
///
/// Whoever calls has been compiled for the instructions, and runs where the processor has them.
pub trait Simd {
    /// The bits of a key in all lanes of one line.
    type Mask: Copy;

    /// The mask made from 32 bits of a key.
    unsafe fn mask(seed: u32) -> Self::Mask;

    /// Which of the `LANES` lanes have, in each of the lines, all bits of its mask: a bit each.
    unsafe fn complete<const LANES: usize, const LINES: usize>(
        lines: [&[u64; LINE]; LINES],
        masks: [Self::Mask; LINES],
    ) -> u32;

    /// Sets the bits of the mask in those of the `LANES` lanes that `lanes` has a bit for.
    unsafe fn set<const LANES: usize>(line: &mut [u64; LINE], mask: Self::Mask, lanes: u32);
}

/// Inserts the keys of a run.
#[inline(always)]
pub fn insert<S: Simd, const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
) {
    let address = Address::of(words);
    for i in run {
        fetch_ahead(lines, address, hashes, i);
        let spot = lines.spot(hashes[i]);
        write::<S, LANES, LINES>(lines, words, phase, &spot, masks::<S, LINES>(&spot));
    }
}

/// Writes which keys of a run are there.
#[inline(always)]
pub fn query<S: Simd, const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &[u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    present: &mut [bool],
) {
    let address = Address::of(words);
    for i in run {
        fetch_ahead(lines, address, hashes, i);
        let spot = lines.spot(hashes[i]);
        present[i] = holds::<S, LANES, LINES>(lines, words, phase, &spot, masks::<S, LINES>(&spot));
    }
}

/// Writes which keys of a run were there and inserts them, all with `refresh`, else those that were not; says how many.
#[inline(always)]
pub fn duplicated<S: Simd, const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    refresh: bool,
    seen: &mut [bool],
) -> u64 {
    let (mut inserted, address) = (0, Address::of(words));
    for i in run {
        fetch_ahead(lines, address, hashes, i);
        let spot = lines.spot(hashes[i]);
        let masks = masks::<S, LINES>(&spot);
        seen[i] = holds::<S, LANES, LINES>(lines, words, phase, &spot, masks);
        if refresh || !seen[i] {
            write::<S, LANES, LINES>(lines, words, phase, &spot, masks);
            inserted += 1;
        }
    }
    inserted
}

/// Before key `i` of a batch: starts fetching the lines of keys to come, whatever their generation.
#[inline(always)]
fn fetch_ahead<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    address: Address,
    hashes: &[u64],
    i: usize,
) {
    let coming = match i {
        0 => 0..AHEAD + GROUP,
        i if i % GROUP == 0 => i + AHEAD..i + AHEAD + GROUP,
        _ => return,
    };
    let end = coming.end.min(hashes.len());
    for &hash in hashes.get(coming.start..end).unwrap_or_default() {
        lines.fetch(address, hash);
    }
}

#[inline(always)]
fn masks<S: Simd, const LINES: usize>(spot: &Spot<LINES>) -> [S::Mask; LINES] {
    // SAFETY: this is inlined into a function for the instructions of S, called where the processor has them.
    spot.seeds.map(
        #[inline(always)]
        |seed| unsafe { S::mask(seed) },
    )
}

/// Whether a key is there.
#[inline(always)]
fn holds<S: Simd, const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &[u64],
    phase: Phase,
    spot: &Spot<LINES>,
    masks: [S::Mask; LINES],
) -> bool {
    let read = spot.starts.map(|start| words[start..start + LINE].try_into().expect("a line has so many words"));
    // SAFETY: this is inlined into a function for the instructions of S, called where the processor has them.
    let lanes = unsafe { S::complete::<LANES, LINES>(read, masks) };
    has_run(u64::from(lines.by_age(phase, spot.page, lanes)), lines.k)
}

/// Writes a key into the k newest lanes of its lines.
#[inline(always)]
fn write<S: Simd, const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    spot: &Spot<LINES>,
    masks: [S::Mask; LINES],
) {
    let lanes = lines.written(phase, spot.page);
    for t in 0..LINES {
        let start = spot.starts[t];
        let line = (&mut words[start..start + LINE]).try_into().expect("a line has so many words");
        // SAFETY: this is inlined into a function for the instructions of S, called where the processor has them.
        unsafe { S::set::<LANES>(line, masks[t], lanes) };
    }
}
