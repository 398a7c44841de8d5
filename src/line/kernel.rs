//! What a run of keys does to lines, written once and compiled once per instruction set.
//!
//! A macro, because a generic function would not do: intrinsics are inlined only into functions that have their target
//! features, and neither a generic function nor a closure of an `inline(always)` one has. Where they are not, each costs
//! a call that passes its vectors through memory (measured: 90 to 400 ns per key in place of 5).

use std::ops::Range;

use super::Lines;
use crate::bits::Address;

/// Keys in flight, in groups. A line is all that a key touches, so that more of them are needed to hide its latency
/// than where a key touches many.
const AHEAD: usize = 64;
const GROUP: usize = 8;

/// A run cut where the groups of its batch begin.
pub fn groups(run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let first = run.start / GROUP * GROUP;
    (first..run.end).step_by(GROUP).map(move |start| start.max(run.start)..(start + GROUP).min(run.end))
}

/// Before the keys from `start` on of a batch: starts fetching the lines of keys to come, whatever their generation.
#[inline(always)]
pub fn fetch_ahead<const LANES: usize, const LINES: usize>(
    layout: &Lines<LANES, LINES>,
    address: Address,
    hashes: &[u64],
    start: usize,
) {
    let coming = match start {
        0 => 0..AHEAD + GROUP,
        start if start % GROUP == 0 => start + AHEAD..start + AHEAD + GROUP,
        _ => return,
    };
    let end = coming.end.min(hashes.len());
    for &hash in hashes.get(coming.start..end).unwrap_or_default() {
        layout.fetch(address, hash);
    }
}

/// Functions for runs of keys, out of what the module they are made in says of its instruction set: the type `Mask`, the
/// bits of a key in all lanes of one line, and
/// - `mask(seed)`: the mask made from 32 bits of a key,
/// - `missing(line, mask)`: the bits of the mask that the line does not have,
/// - `either(a, b)`: the bits of both,
/// - `complete::<LANES>(missing)`: the lanes where no bit is missing, a bit each,
/// - `set::<LANES>(line, mask, lanes)`: sets the bits of the mask in those lanes of the line that `lanes` has a bit for.
macro_rules! runs_of_keys {
    ($(#[$features:meta])?) => {
        /// Inserts the keys of a run.
        $(#[$features])?
        pub fn insert<const LANES: usize, const LINES: usize>(
            layout: &Lines<LANES, LINES>,
            words: &mut [u64],
            phase: Phase,
            hashes: &[u64],
            run: Range<usize>,
        ) {
            let (address, lines) = (Address::of(words), words.as_chunks_mut().0);
            for group in groups(run) {
                fetch_ahead(layout, address, hashes, group.start);
                for &hash in &hashes[group] {
                    let spot = layout.spot(hash);
                    write::<LANES, LINES>(lines, &spot, &masks(&spot), layout.written(phase, spot.page));
                }
            }
        }

        /// Writes which keys of a run are there.
        $(#[$features])?
        pub fn query<const LANES: usize, const LINES: usize>(
            layout: &Lines<LANES, LINES>,
            words: &[u64],
            phase: Phase,
            hashes: &[u64],
            run: Range<usize>,
            present: &mut [bool],
        ) {
            let (address, lines) = (Address::of(words), words.as_chunks().0);
            for group in groups(run) {
                fetch_ahead(layout, address, hashes, group.start);
                for (&hash, present) in hashes[group.clone()].iter().zip(&mut present[group]) {
                    let spot = layout.spot(hash);
                    let lanes = read::<LANES, LINES>(lines, &spot, &masks(&spot));
                    *present = layout.reported(phase, spot.page, lanes);
                }
            }
        }

        /// Writes what the lanes say about each key of a batch.
        $(#[$features])?
        pub fn evidence<const LANES: usize, const LINES: usize>(
            layout: &Lines<LANES, LINES>,
            words: &[u64],
            phase: Phase,
            hashes: &[u64],
            evidence: &mut [u128],
        ) {
            let (address, lines) = (Address::of(words), words.as_chunks().0);
            for group in groups(0..hashes.len()) {
                fetch_ahead(layout, address, hashes, group.start);
                for (&hash, evidence) in hashes[group.clone()].iter().zip(&mut evidence[group]) {
                    let spot = layout.spot(hash);
                    let lanes = read::<LANES, LINES>(lines, &spot, &masks(&spot));
                    *evidence = layout.says(phase, spot.page, lanes);
                }
            }
        }

        /// Writes which keys of a run were there and inserts them, all with `refresh`, else those that were not; says
        /// how many.
        $(#[$features])?
        pub fn duplicated<const LANES: usize, const LINES: usize>(
            layout: &Lines<LANES, LINES>,
            words: &mut [u64],
            phase: Phase,
            hashes: &[u64],
            run: Range<usize>,
            refresh: bool,
            seen: &mut [bool],
        ) -> u64 {
            let (address, lines) = (Address::of(words), words.as_chunks_mut().0);
            let mut inserted = 0;
            for group in groups(run) {
                fetch_ahead(layout, address, hashes, group.start);
                for (&hash, seen) in hashes[group.clone()].iter().zip(&mut seen[group]) {
                    let spot = layout.spot(hash);
                    let masks = masks(&spot);
                    let lanes = read::<LANES, LINES>(lines, &spot, &masks);
                    *seen = layout.reported(phase, spot.page, lanes);
                    if refresh || !*seen {
                        write::<LANES, LINES>(lines, &spot, &masks, layout.written(phase, spot.page));
                        inserted += 1;
                    }
                }
            }
            inserted
        }

        /// The mask of a key in each of its lines.
        #[inline]
        $(#[$features])?
        fn masks<const LINES: usize>(spot: &Spot<LINES>) -> [Mask; LINES] {
            let mut masks = [mask(spot.seeds[0]); LINES];
            for t in 1..LINES {
                masks[t] = mask(spot.seeds[t]);
            }
            masks
        }

        /// The lanes that have all bits of a key in each of its lines.
        #[inline]
        $(#[$features])?
        fn read<const LANES: usize, const LINES: usize>(
            lines: &[[u64; LINE]],
            spot: &Spot<LINES>,
            masks: &[Mask; LINES],
        ) -> u32 {
            let mut none = missing(&lines[spot.lines[0]], masks[0]);
            for t in 1..LINES {
                none = either(none, missing(&lines[spot.lines[t]], masks[t]));
            }
            complete::<LANES>(none)
        }

        /// Sets the bits of a key in some lanes of each of its lines.
        #[inline]
        $(#[$features])?
        fn write<const LANES: usize, const LINES: usize>(
            lines: &mut [[u64; LINE]],
            spot: &Spot<LINES>,
            masks: &[Mask; LINES],
            lanes: u32,
        ) {
            for t in 0..LINES {
                set::<LANES>(&mut lines[spot.lines[t]], masks[t], lanes);
            }
        }
    };
}
pub(super) use runs_of_keys;
