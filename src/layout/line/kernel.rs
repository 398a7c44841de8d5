//! What a run of keys does to lines, written once and compiled once per instruction set.
//!
//! A macro, because a generic function would not do: intrinsics are inlined only into functions that have their target
//! features, and neither a generic function nor a closure of an `inline(always)` one has. Where they are not, each costs
//! a call that passes its vectors through memory (measured: 90 to 400 ns per key in place of 5).

use std::ops::Range;

use super::LINE;
use super::pages::{AHEAD, Pages, Spot};
use crate::memory::prefetch::Address;

/// Keys read before their answers are made of what was read, which vector instructions do for several at once.
pub const READ: usize = 64;

/// The blocks of a run whose keys are read before they are answered.
pub fn blocks(run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    run.clone().step_by(READ).map(move |start| start..(start + READ).min(run.end))
}

/// The keys of a run and where they are, worked out once: when the lines of a key are fetched, `AHEAD` keys before it
/// acts. Those of later runs are fetched too, whatever their generation.
pub(crate) struct InFlight<'a, const LINES: usize> {
    pages: Pages<LINES>,
    address: Address,
    hashes: &'a [u64],
    spots: [Spot<LINES>; AHEAD],
}

impl<'a, const LINES: usize> InFlight<'a, LINES> {
    /// Before the first key of a run.
    #[inline(always)]
    pub fn new(pages: Pages<LINES>, words: &[u64], hashes: &'a [u64], run: &Range<usize>) -> Self {
        let address = Address::of(words);
        if run.start == 0 {
            hashes.iter().take(AHEAD).for_each(|&hash| pages.fetch(address, hash));
        }
        let mut spots = [Spot { page: 0, lines: [0; LINES], seeds: [0; LINES] }; AHEAD];
        for i in run.clone().take(AHEAD) {
            spots[i % AHEAD] = pages.spot(hashes[i]);
        }
        Self { pages, address, hashes, spots }
    }

    /// Where key `i` is, the next of the run.
    #[inline(always)]
    pub fn next(&mut self, i: usize) -> Spot<LINES> {
        let spot = self.spots[i % AHEAD];
        if let Some(&coming) = self.hashes.get(i + AHEAD) {
            let coming = self.pages.spot(coming);
            for line in coming.lines {
                self.address.fetch(line * LINE);
            }
            self.spots[i % AHEAD] = coming;
        }
        spot
    }
}

/// Functions for runs of keys, out of what the module they are made in says of its instruction set: the type `Mask`, the
/// bits of a key in all lanes of one line, and
/// - `mask(seed)`: the mask made from 32 bits of a key,
/// - `missing(line, mask)`: the bits of the mask that the line does not have,
/// - `either(a, b)`: the bits of both,
/// - `complete::<LANES>(missing)`: the lanes where no bit is missing, a bit each,
/// - `set(line, mask, lanes)`: sets the bits of the mask that `lanes` has too.
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
            let written = layout.written();
            if let &[hash] = &hashes[run.clone()] {
                // Alone, a key is done before a ring for those in flight is there.
                let spot = layout.pages.spot(hash);
                let lanes = &written[layout.newest(phase, spot.page) as usize];
                return write(words.as_chunks_mut().0, &spot, &masks(&spot), lanes);
            }
            let (mut coming, lines) = (InFlight::new(layout.pages, words, hashes, &run), words.as_chunks_mut().0);
            for i in run {
                let spot = coming.next(i);
                write(lines, &spot, &masks(&spot), &written[layout.newest(phase, spot.page) as usize]);
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
            if let &[hash] = &hashes[run.clone()] {
                let spot = layout.pages.spot(hash);
                let lanes = read::<LANES, LINES>(words.as_chunks().0, &spot, &masks(&spot));
                present[run.start] = layout.reported(layout.kept_by_age(phase, spot.page, lanes));
                return;
            }
            let (mut coming, lines) = (InFlight::new(layout.pages, words, hashes, &run), words.as_chunks().0);
            for block in blocks(run) {
                let (mut pages, mut lanes) = ([0; READ], [0; READ]);
                for (i, (page, lanes)) in block.clone().zip(pages.iter_mut().zip(&mut lanes)) {
                    let spot = coming.next(i);
                    (*page, *lanes) = (spot.page, read::<LANES, LINES>(lines, &spot, &masks(&spot)));
                }
                report(layout, phase, &pages, &lanes, &mut present[block]);
            }
        }

        /// Writes which of the keys are there whose pages and lanes these are. Not inlined, since what it keeps in
        /// registers would push out what reading them needs there.
        #[inline(never)]
        $(#[$features])?
        fn report<const LANES: usize, const LINES: usize>(
            layout: &Lines<LANES, LINES>,
            phase: Phase,
            pages: &[u32; READ],
            lanes: &[u32; READ],
            present: &mut [bool],
        ) {
            for (present, (&page, &lanes)) in present.iter_mut().zip(pages.iter().zip(lanes)) {
                *present = layout.reported(layout.kept_by_age(phase, page, lanes));
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
            let run = 0..hashes.len();
            let (mut coming, lines) = (InFlight::new(layout.pages, words, hashes, &run), words.as_chunks().0);
            for (i, evidence) in run.zip(evidence) {
                let spot = coming.next(i);
                let lanes = read::<LANES, LINES>(lines, &spot, &masks(&spot));
                *evidence = layout.says(phase, spot.page, lanes);
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
            let (mut coming, lines) = (InFlight::new(layout.pages, words, hashes, &run), words.as_chunks_mut().0);
            let (written, mut inserted) = (layout.written(), 0);
            for (i, seen) in run.clone().zip(&mut seen[run]) {
                let spot = coming.next(i);
                let masks = masks(&spot);
                let lanes = read::<LANES, LINES>(lines, &spot, &masks);
                *seen = layout.reported(layout.by_age(phase, spot.page, lanes));
                if refresh || !*seen {
                    write(lines, &spot, &masks, &written[layout.newest(phase, spot.page) as usize]);
                    inserted += 1;
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

        /// Sets the bits of a key in some lanes of each of its lines, the bits of which are given.
        #[inline]
        $(#[$features])?
        fn write<const LINES: usize>(
            lines: &mut [[u64; LINE]],
            spot: &Spot<LINES>,
            masks: &[Mask; LINES],
            lanes: &[u64; LINE],
        ) {
            for t in 0..LINES {
                set(&mut lines[spot.lines[t]], masks[t], lanes);
            }
        }
    };
}
pub(super) use runs_of_keys;
