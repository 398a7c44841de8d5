//! Batches of the time-limited filter, slice by slice: all keys of a batch are processed in one slice before any is in
//! the next.
//!
//! What a key changes in a slice depends on that slice alone. So slices may be processed in any order. As long as each
//! receives the keys in order, cells and answers are those of one key after the other. Key by key, each access would
//! read another slice, and whether one more follows would depend on the answer. Slice by slice, accesses stay in memory
//! that fits a cache, do not wait for each other, and no branch depends on what they read.

use std::cell::Cell;

use super::{Place, Slice};
use crate::Error;
use crate::family::arrays::SliceCells;
use crate::memory::bits::ones;
use crate::memory::prefetch::{Address, in_flight};

/// The number of keys that are processed together. Their counts take 16 KiB.
const CHUNK: usize = 2048;
/// The greatest number of keys that are processed singly, because that is faster for so few.
const MAX_SINGLE_KEYS: usize = 12;
/// Words of slices, 1 MiB, that stay in a second-level cache. If a batch reads more, bits are prefetched, which takes a
/// third longer within the cache and a third less outside it.
const CACHED: usize = 1 << 17;
/// Number of keys whose bits are prefetched ahead.
const AHEAD: usize = 32;

/// Returns whether to prefetch the bits of some slices.
fn exceeds_cache(slices: &[Slice]) -> bool {
    slices.iter().map(|slice| slice.words.as_slice().len()).sum::<usize>() > CACHED
}

impl Place {
    /// Returns whether the bit of a key is set.
    #[inline(always)]
    fn is_set(self, words: &[u64], hash: u64) -> bool {
        self.bits.all_set(words, 0, self.function, hash)
    }

    /// Sets the bit of a key.
    #[inline(always)]
    fn set(self, words: &mut [u64], hash: u64) {
        self.bits.set(words, 0, self.function, hash);
    }

    /// Calls `apply` for each of `n` keys in order, with its number, the word of its bit in the slice, whose address is
    /// `own`, and the place of the bit in the word.
    #[inline(always)]
    fn for_each(
        self,
        prefetch: bool,
        own: Address,
        n: usize,
        hash: impl Fn(usize) -> u64,
        mut apply: impl FnMut(usize, usize, u64),
    ) {
        let bit = |i| self.bits.bit(self.function, hash(i));
        let mut apply = |i, bit: u64| apply(i, (bit / 64) as usize, bit % 64);
        if !prefetch {
            return (0..n).for_each(|i| apply(i, bit(i)));
        }
        let prefetched = |i| {
            let bit = bit(i);
            own.fetch((bit / 64) as usize);
            bit
        };
        let mut coming = [0; AHEAD];
        for (i, coming) in coming.iter_mut().enumerate().take(n) {
            *coming = prefetched(i);
        }
        for i in 0..n {
            apply(i, coming[i % AHEAD]);
            if i + AHEAD < n {
                coming[i % AHEAD] = prefetched(i + AHEAD);
            }
        }
    }
}

impl Slice {
    /// Returns whether the bit of a key is set.
    #[inline(always)]
    fn is_set(&self, hash: u64) -> bool {
        self.place.is_set(self.words.as_slice(), hash)
    }

    /// Sets the bits of the keys, and counts for each key how many consecutive slices up to this one had it set, if
    /// `counts` has room for them.
    fn test_and_set(&mut self, prefetch: bool, hashes: &[u64], counts: Option<&mut [u8]>) -> Result<(), Error> {
        let (own, len) = (self.words.to_mut()?, hashes.len());
        let address = Address::of(own);
        let Some(counts) = counts else {
            self.place.for_each(prefetch, address, len, |i| hashes[i], |_, word, bit| own[word] |= 1 << bit);
            return Ok(());
        };
        let apply = |i: usize, word: usize, bit: u64| {
            let set = (own[word] >> bit & 1) as u8;
            own[word] |= 1 << bit;
            counts[i] = (counts[i] + 1) * set;
        };
        self.place.for_each(prefetch, address, len, |i| hashes[i], apply);
        Ok(())
    }

    /// Moves the `keys` whose bit is set to the front, in order, adds 1 to their counts, and returns their number.
    fn retain(&self, prefetch: bool, hashes: &[u64], keys: &mut [u16], counts: &mut [u8; CHUNK]) -> usize {
        let (own, keys) = (self.words.as_slice(), Cell::from_mut(keys).as_slice_of_cells());
        let mut retained = 0;
        let apply = |i: usize, word: usize, bit: u64| {
            let key = keys[i].get();
            let set = own[word] >> bit & 1 == 1;
            counts[usize::from(key)] += u8::from(set);
            keys[retained].set(key);
            retained += usize::from(set);
        };
        self.place.for_each(prefetch, Address::of(own), keys.len(), |i| hashes[usize::from(keys[i].get())], apply);
        retained
    }
}

/// Sets the bits of all keys in each of these slices.
pub(crate) fn set(newest: &mut [Slice], hashes: &[u64]) -> Result<(), Error> {
    let prefetch = exceeds_cache(newest);
    newest.iter_mut().try_for_each(|slice| slice.test_and_set(prefetch, hashes, None))
}

/// Sets the bits of one key.
pub(crate) fn set_one(newest: &mut [Slice], hash: u64) -> Result<(), Error> {
    newest.iter_mut().try_for_each(|slice| {
        slice.place.set(slice.words.to_mut()?, hash);
        Ok(())
    })
}

/// Writes to `present` which keys have their bits set in k consecutive live slices.
pub(crate) fn query(live: &[Slice], k: usize, hashes: &[u64], present: &mut [bool]) {
    for (hashes, present) in hashes.chunks(CHUNK).zip(present.chunks_mut(CHUNK)) {
        if hashes.len() <= MAX_SINGLE_KEYS {
            present.iter_mut().zip(hashes).for_each(|(present, &hash)| *present = contains(live, k, hash));
            continue;
        }
        let leads = Search::of(hashes, |_| true).leads(live, k, hashes);
        present.iter_mut().zip(leads).for_each(|(present, lead)| *present = usize::from(lead) == k);
    }
}

/// Writes to `seen`, for each key in order, whether its bits are set in k consecutive live slices, and then sets them
/// in the k newest; without `refresh` only for keys that were not found. At least k slices must be live.
pub(crate) fn duplicated(
    live: &mut [Slice],
    k: usize,
    hashes: &[u64],
    refresh: bool,
    seen: &mut [bool],
) -> Result<(), Error> {
    let prefetch = exceeds_cache(live);
    for (hashes, seen) in hashes.chunks(CHUNK).zip(seen.chunks_mut(CHUNK)) {
        if hashes.len() <= MAX_SINGLE_KEYS {
            for (&hash, seen) in hashes.iter().zip(seen) {
                *seen = contains(live, k, hash);
                if refresh || !*seen {
                    set_one(&mut live[..k], hash)?;
                }
            }
            continue;
        }
        let (newest, older) = live.split_at_mut(k);
        if refresh {
            // The tail of a key is the number of matches in the newest slices, up to the oldest of these. If all match,
            // the older slices need not be read.
            let mut tails = [0; CHUNK];
            newest.iter_mut().try_for_each(|slice| slice.test_and_set(prefetch, hashes, Some(&mut tails)))?;
            let leads = Search::of(hashes, |key| usize::from(tails[key]) < k).leads(older, k, hashes);
            for (i, seen) in seen.iter_mut().enumerate() {
                *seen = usize::from(tails[i] + leads[i]) >= k;
            }
        } else {
            // Older slices are not written. The newest are, depending on the answers to earlier keys.
            let leads = Search::of(hashes, |_| true).leads(older, k, hashes);
            let own = newest.iter_mut().map(|slice| Ok((slice.place, slice.words.to_mut()?)));
            let mut own = own.collect::<Result<Vec<(Place, &mut [u64])>, Error>>()?;
            let places: Vec<_> = own.iter().map(|(place, words)| (*place, Address::of(words))).collect();
            let fetch = |hash| {
                for &(Place { bits, function }, address) in &places {
                    address.fetch(bits.word(function, hash));
                }
            };
            in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
                let is_set = |place: Place, words: &[u64]| usize::from(place.is_set(words, hash));
                let tail = own.iter().fold(0, |tail, (place, words)| (tail + 1) * is_set(*place, words));
                seen[i] = tail + usize::from(leads[i]) >= k;
                if !seen[i] {
                    own.iter_mut().for_each(|(place, words)| place.set(words, hash));
                }
            });
        }
    }
    Ok(())
}

/// Writes for each key which groups of `width` generations, the newest in the lowest bit, have a generation all of
/// whose slices have its bit set: k of them, or fewer if the oldest are gone.
pub(crate) fn possible(slices: &[Slice], k: usize, width: usize, hashes: &[u64], groups: &mut [u128]) {
    groups.fill(0);
    let (prefetch, mut runs) = (exceeds_cache(slices), vec![0; hashes.len()]);
    for (age, slice) in slices.iter().enumerate() {
        let (own, group) = (slice.words.as_slice(), (age + 1).saturating_sub(k) / width);
        let apply = |i: usize, word: usize, bit: u64| {
            runs[i] = (runs[i] + 1).min(k as u8) * (own[word] >> bit & 1) as u8;
            groups[i] |= u128::from(usize::from(runs[i]) == k) << group;
        };
        slice.place.for_each(prefetch, Address::of(own), hashes.len(), |i| hashes[i], apply);
    }
    let up_to = |generations: usize| ones(generations.div_ceil(width) as u32);
    for (groups, &run) in groups.iter_mut().zip(&runs).filter(|&(_, &run)| run > 0) {
        *groups |= up_to(slices.len()) & !up_to((slices.len() - usize::from(run)) / width * width);
    }
}

/// A search for k consecutive matches, of keys of a chunk by number.
struct Search {
    /// The keys that have not found them yet.
    keys: [u16; CHUNK],
    len: usize,
    /// For each key of the chunk, how many slices match from the newest on; k if any k consecutive slices match.
    leads: [u8; CHUNK],
}

impl Search {
    /// Returns a search for the keys that `select` selects.
    fn of(hashes: &[u64], select: impl Fn(usize) -> bool) -> Self {
        let (mut keys, mut len) = ([0; CHUNK], 0);
        for key in 0..hashes.len() {
            keys[len] = key as u16;
            len += usize::from(select(key));
        }
        Self { keys, len, leads: [0; CHUNK] }
    }

    /// Searches the slices, and returns the leads. One of any k consecutive slices has an age that is a multiple of k.
    /// From each of these a key proceeds to older and to newer slices, as long as they match. It reads eight slices of
    /// 30 for an absent key, and a few more than k for a present one.
    fn leads(mut self, slices: &[Slice], k: usize, hashes: &[u64]) -> [u8; CHUNK] {
        let prefetch = exceeds_cache(slices);
        let (mut matching, mut onward) = ([0; CHUNK], [0; CHUNK]);
        for age in (0..slices.len()).step_by(k) {
            let mut counts = [0; CHUNK];
            matching[..self.len].copy_from_slice(&self.keys[..self.len]);
            let len = slices[age].retain(prefetch, hashes, &mut matching[..self.len], &mut counts);
            let mut older = slices[age + 1..].iter().take(k - 1);
            let mut newer = slices[(age + 1).saturating_sub(k)..age].iter().rev();
            for neighbours in [&mut older as &mut dyn Iterator<Item = &Slice>, &mut newer] {
                onward[..len].copy_from_slice(&matching[..len]);
                let mut left = len;
                while left > 0
                    && let Some(slice) = neighbours.next()
                {
                    left = slice.retain(prefetch, hashes, &mut onward[..left], &mut counts);
                }
            }
            self.record(&counts, age, k);
        }
        self.leads
    }

    /// Records the matches around the slice of this age, and removes the keys that have found k of them.
    fn record(&mut self, counts: &[u8; CHUNK], age: usize, k: usize) {
        let mut left = 0;
        for i in 0..self.len {
            let key = self.keys[i];
            let (count, lead) = (counts[usize::from(key)], &mut self.leads[usize::from(key)]);
            let found = usize::from(count) >= k;
            // The slice of age 0 comes first. No slice is newer, so its count is the lead.
            *lead = if found || age == 0 { count.min(k as u8) } else { *lead };
            self.keys[left] = key;
            left += usize::from(!found);
        }
        self.len = left;
    }
}

/// Returns whether k consecutive live slices match, by algorithm 1. The search starts at the k-th oldest slice. At a
/// mismatch it continues k slices newer, and keeps the matches that it has found below.
pub(crate) fn contains(live: &[Slice], k: usize, hash: u64) -> bool {
    let Some(mut i) = live.len().checked_sub(k) else {
        return false;
    };
    let (mut before, mut matches) = (0, 0);
    loop {
        if live[i].is_set(hash) {
            (i, matches) = (i + 1, matches + 1);
            if before + matches == k {
                return true;
            }
        } else if i >= k {
            (i, before, matches) = (i - k, matches, 0);
        } else {
            return false;
        }
    }
}
