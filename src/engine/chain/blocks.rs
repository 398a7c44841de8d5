//! Blocks of keys of one generation: older tables answer for all keys of a block before the newest takes them.

use std::slice::from_ref;

use super::super::hashes::SelectedHashes;
use super::super::run::{BLOCK, age, gather, next_run};
use super::super::threads::Process;
use super::super::{Insertion, Refresh};
use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::growth::{Growth, RotationOf, TableOf};
use crate::memory::prefetch::{Address, in_flight};

/// Returns whether any of the tables contains a key.
pub fn contains<G: Growth>(tables: &[TableOf<G>], rotation: RotationOf<G>, hash: u64) -> bool {
    let contains =
        |table: &TableOf<G>| table.layout.contains(table.words.as_slice(), G::rotation_of(table, rotation), hash);
    tables.iter().any(contains)
}

/// Adds to `present` which keys of a block any of the tables contains, in one rotation or each key in its own.
pub fn look_up<G: Growth>(tables: &[TableOf<G>], rotations: &[RotationOf<G>], hashes: &[u64], present: &mut [bool]) {
    let (mut answers, all) = ([false; BLOCK], 0..hashes.len());
    for table in tables {
        let (layout, words, answers) = (&table.layout, table.words.as_slice(), &mut answers[..hashes.len()]);
        if let &[rotation] = rotations {
            layout.query_run(words, G::rotation_of(table, rotation), hashes, all.clone(), answers);
        } else {
            let prefetch = |hash| layout.prefetch_query(Address::of(words), hash);
            in_flight(hashes, all.clone(), prefetch, |i, hash| {
                answers[i] = layout.contains(words, G::rotation_of(table, rotations[i]), hash);
            });
        }
        present.iter_mut().zip(answers).for_each(|(present, answer)| *present |= *answer);
    }
}

/// Processes the keys of a block: looks them up in the `older` tables, and inserts them into the newest by `insert`,
/// until one ends the run because it finds no room. Returns the number of keys done.
pub fn apply<G: Growth>(
    older: &[TableOf<G>],
    rotations: &[RotationOf<G>],
    hashes: &[u64],
    refresh: Option<Refresh>,
    seen: &mut [bool],
    mut insert: impl FnMut(&[RotationOf<G>], &[u64], Option<(bool, &mut [bool])>) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let Some(refresh) = refresh else { return insert(rotations, hashes, None) };
    let mut before = [false; BLOCK];
    let before = &mut before[..hashes.len()];
    look_up::<G>(older, rotations, hashes, before);
    if refresh == Refresh::Always || !before.contains(&true) {
        let done = insert(rotations, hashes, Some((refresh == Refresh::Always, seen)))?;
        seen.iter_mut().zip(&*before).for_each(|(seen, &before)| *seen |= before);
        return Ok(done);
    }
    // Keys that older tables contain are not inserted.
    let new: Vec<usize> = (0..hashes.len()).filter(|&i| !before[i]).collect();
    let of_new: Vec<u64> = new.iter().map(|&i| hashes[i]).collect();
    let own: Vec<_> = new.iter().filter_map(|&i| rotations.get(i).copied()).collect();
    let (mut answers, rotations) = (vec![false; new.len()], if rotations.len() == 1 { rotations } else { &own });
    let done = insert(rotations, &of_new, Some((false, &mut answers)))?;
    seen.copy_from_slice(before);
    new.iter().zip(answers).take(done).for_each(|(&i, answer)| seen[i] = answer);
    Ok(new.get(done).copied().unwrap_or(hashes.len()))
}

/// One partition of the newest table, and the older tables.
pub struct Part<'a, G: Growth> {
    pub clock: Clock,
    pub layout: G::Cells,
    pub words: &'a mut [u64],
    pub older: &'a [TableOf<G>],
}

impl<G: Growth> Process for Part<'_, G> {
    fn process(&mut self, keys: SelectedHashes<'_>, Insertion { at, refresh, seen }: Insertion<'_>) {
        let Self { clock, layout, words, older } = self;
        let (mut i, mut each) = (0, Vec::new());
        while i < keys.len {
            let (opened, rotation, run) = next_run(layout, clock, at, i, keys.len);
            if opened > 0 {
                age(layout, words, clock.generation(), opened);
                *older = &older[expired::<G>(older, clock, layout.generations())..];
            }
            let run = gather(layout, clock, at, keys, i, (rotation, run), &mut each);
            let own = keys.within(i..i + run);
            for start in own.clone().step_by(BLOCK) {
                let block = start..own.end.min(start + BLOCK);
                let seen = if refresh.is_some() { &mut seen[block.clone()] } else { &mut [] };
                let rotations = rotations(&rotation, &each, start - own.start..block.end - own.start);
                let insert = |rotations: &[_], hashes: &[u64], seen: Option<(bool, &mut [bool])>| {
                    match (rotations, seen, layout.abilities().late) {
                        (&[rotation], None, _) => layout.insert_run(words, rotation, hashes, 0..hashes.len()),
                        (&[rotation], Some((refresh, seen)), _) => {
                            layout.duplicated_run(words, rotation, hashes, 0..hashes.len(), refresh, seen);
                        }
                        (_, seen, Some(late)) => late.process_late(words, rotations, hashes, seen),
                        (_, _, None) => unreachable!("only late keys have rotations of their own"),
                    }
                    Ok(hashes.len())
                };
                // The newest table has room for every key.
                let _ = apply::<G>(older, rotations, &keys.hashes[block], refresh, seen, insert);
            }
            clock.count(run as u64);
            i += run;
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

/// Returns the rotations of a range of the keys that were [gathered](gather).
pub fn rotations<'a, R>(of_all: &'a R, each: &'a [R], range: std::ops::Range<usize>) -> &'a [R] {
    if each.is_empty() { from_ref(of_all) } else { &each[range] }
}

/// Returns how many of the tables, the oldest first, have expired by a clock.
pub fn expired<G: Growth>(tables: &[TableOf<G>], clock: &Clock, generations: u64) -> usize {
    tables.partition_point(|table| clock.generation().abs_diff(G::generation(clock, table.last)) >= generations)
}
