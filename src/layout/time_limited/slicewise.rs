//! A batch meets the slices one by one: all keys of the batch meet one slice before any meets the next.
//!
//! What a key does to a slice depends on that slice alone. So the slices may come in any order, as long as each meets
//! the keys in order: cells and answers are those of one key after the other. Key by key, each access would go to
//! another slice, and whether one more follows would depend on the answer. Slice by slice, accesses stay in memory that
//! fits a cache, do not wait for each other, and no branch depends on what they find.

use std::cell::Cell;

use super::Slice;
use crate::layout::cells::Cells;
use crate::layout::parts::Part;
use crate::memory::prefetch::Address;
use crate::memory::prefetch::in_flight;

/// Keys that go through the slices together: the notes on them take 16 KiB.
const CHUNK: usize = 2048;
/// Up to this many keys go one by one: notes would take longer.
const FEW: usize = 12;
/// Words of the slices that a batch goes through, 1 MiB, up to which they stay in a second-level cache. Beyond it bits
/// are prefetched, which takes a third longer within the cache and a third less outside it.
const CACHED: usize = 1 << 17;
/// Keys whose bits are then in flight.
const AHEAD: usize = 32;

/// Whether to prefetch the bits of these slices.
fn far(slices: &[Slice]) -> bool {
    slices.iter().map(Slice::len).sum::<usize>() > CACHED
}

impl Slice {
    #[inline(always)]
    fn is_set(&self, words: &[u64], hash: u64) -> bool {
        self.bits.all_set(words, self.start, self.function, hash)
    }

    /// Calls `act` for each of `n` keys in order, with its number, the word of its bit in `own`, where the words of
    /// this slice lie, and the place of the bit in the word.
    #[inline(always)]
    fn each(
        &self,
        far: bool,
        own: Address,
        n: usize,
        hash: impl Fn(usize) -> u64,
        mut act: impl FnMut(usize, usize, u64),
    ) {
        let bit = |i| self.bits.bit(self.function, hash(i));
        let mut act = |i, bit: u64| act(i, (bit / 64) as usize, bit % 64);
        if !far {
            return (0..n).for_each(|i| act(i, bit(i)));
        }
        let fetched = |i| {
            let bit = bit(i);
            own.fetch((bit / 64) as usize);
            bit
        };
        let mut coming = [0; AHEAD];
        for (i, coming) in coming.iter_mut().enumerate().take(n) {
            *coming = fetched(i);
        }
        for i in 0..n {
            act(i, coming[i % AHEAD]);
            if i + AHEAD < n {
                coming[i % AHEAD] = fetched(i + AHEAD);
            }
        }
    }

    /// Sets the bits of the keys.
    fn set(&self, far: bool, words: &mut [u64], hashes: &[u64]) {
        let own = self.of_mut(words);
        self.each(far, Address::of(own), hashes.len(), |i| hashes[i], |_, word: usize, bit: u64| own[word] |= 1 << bit);
    }

    /// Sets the bits of the keys, and counts for each how many consecutive slices up to this one had it set.
    fn test_and_set(&self, far: bool, words: &mut [u64], hashes: &[u64], counts: &mut [u8]) {
        let own = self.of_mut(words);
        let address = Address::of(own);
        let act = |i: usize, word: usize, bit: u64| {
            let set = (own[word] >> bit & 1) as u8;
            own[word] |= 1 << bit;
            counts[i] = (counts[i] + 1) * set;
        };
        self.each(far, address, hashes.len(), |i| hashes[i], act);
    }

    /// Moves the `keys` whose bit is set to the front, in order, counts it for them, and returns how many they are.
    fn keep(&self, far: bool, words: &[u64], hashes: &[u64], keys: &mut [u16], counts: &mut [u8; CHUNK]) -> usize {
        let (own, keys) = (self.of(words), Cell::from_mut(keys).as_slice_of_cells());
        let mut kept = 0;
        let act = |i: usize, word: usize, bit: u64| {
            let key = keys[i].get();
            let set = own[word] >> bit & 1 == 1;
            counts[usize::from(key)] += u8::from(set);
            keys[kept].set(key);
            kept += usize::from(set);
        };
        self.each(far, Address::of(own), keys.len(), |i| hashes[usize::from(keys[i].get())], act);
        kept
    }
}

/// Sets the bits of all keys in each of these slices.
pub(crate) fn set(newest: &[Slice], words: &mut [u64], hashes: &[u64]) {
    let far = far(newest);
    newest.iter().for_each(|slice| slice.set(far, words, hashes));
}

/// Sets the bits of one key.
pub(crate) fn set_one(newest: &[Slice], words: &mut [u64], hash: u64) {
    newest.iter().for_each(|slice| slice.bits.set(words, slice.start, slice.function, hash));
}

/// Writes to `present` which keys have their bits in k consecutive slices of the live ones.
pub(crate) fn query(live: &[Slice], k: usize, words: &[u64], hashes: &[u64], present: &mut [bool]) {
    for (hashes, present) in hashes.chunks(CHUNK).zip(present.chunks_mut(CHUNK)) {
        if hashes.len() <= FEW {
            present.iter_mut().zip(hashes).for_each(|(present, &hash)| *present = contains(live, k, words, hash));
            continue;
        }
        let leads = Search::of(hashes, |_| true).leads(live, k, words, hashes);
        present.iter_mut().zip(leads).for_each(|(present, lead)| *present = usize::from(lead) == k);
    }
}

/// For each key in order: writes to `seen` whether its bits are set in k consecutive live slices, of which there are at
/// least k, then sets them in the k newest; without `refresh` only if it was not held.
pub(crate) fn duplicated(
    live: &[Slice],
    k: usize,
    words: &mut [u64],
    hashes: &[u64],
    refresh: bool,
    seen: &mut [bool],
) {
    let (newest, older) = live.split_at(k);
    for (hashes, seen) in hashes.chunks(CHUNK).zip(seen.chunks_mut(CHUNK)) {
        if hashes.len() <= FEW {
            for (&hash, seen) in hashes.iter().zip(seen) {
                *seen = contains(live, k, words, hash);
                if refresh || !*seen {
                    set_one(newest, words, hash);
                }
            }
        } else if refresh {
            // How many of the newest match, up to the oldest of them. If all do, the older ones need not be read.
            let (far, mut tails) = (far(live), [0; CHUNK]);
            newest.iter().for_each(|slice| slice.test_and_set(far, words, hashes, &mut tails));
            let leads = Search::of(hashes, |key| usize::from(tails[key]) < k).leads(older, k, words, hashes);
            for (i, seen) in seen.iter_mut().enumerate() {
                *seen = usize::from(tails[i] + leads[i]) >= k;
            }
        } else {
            // Older slices are not written; the newest are, by keys that depend on the answers to those before.
            let leads = Search::of(hashes, |_| true).leads(older, k, words, hashes);
            let address = Address::of(words);
            let fetch = |hash| newest.iter().for_each(|s| address.fetch(s.start + s.bits.word(s.function, hash)));
            in_flight(hashes, 0..hashes.len(), fetch, |i, hash| {
                let tail = newest.iter().fold(0, |tail, slice| (tail + 1) * usize::from(slice.is_set(words, hash)));
                seen[i] = tail + usize::from(leads[i]) >= k;
                if !seen[i] {
                    set_one(newest, words, hash);
                }
            });
        }
    }
}

/// Writes for each key which of the slices have its bit, the newest in the lowest bit.
pub(crate) fn matches(slices: &[Slice], words: &[u64], hashes: &[u64], matches: &mut [u128]) {
    matches.fill(0);
    let far = far(slices);
    for (age, slice) in slices.iter().enumerate() {
        let own = slice.of(words);
        let act = |i: usize, word: usize, bit: u64| matches[i] |= u128::from(own[word] >> bit & 1) << age;
        slice.each(far, Address::of(own), hashes.len(), |i| hashes[i], act);
    }
}

/// Keys of a chunk, by number, that look for k consecutive matches.
struct Search {
    /// Keys that have not found them yet.
    keys: [u16; CHUNK],
    len: usize,
    /// For each key of the chunk, how many slices match from the newest on; or k if any k consecutive ones do.
    leads: [u8; CHUNK],
}

impl Search {
    /// A search for the keys that `take` selects.
    fn of(hashes: &[u64], take: impl Fn(usize) -> bool) -> Self {
        let (mut keys, mut len) = ([0; CHUNK], 0);
        for key in 0..hashes.len() {
            keys[len] = key as u16;
            len += usize::from(take(key));
        }
        Self { keys, len, leads: [0; CHUNK] }
    }

    /// Any k consecutive slices have one among them whose age is a multiple of k. From each of these a key goes to
    /// older and to newer slices, as long as they match: eight slices of 30 for a key that is not there, a few more
    /// than k for one that is.
    fn leads(mut self, slices: &[Slice], k: usize, words: &[u64], hashes: &[u64]) -> [u8; CHUNK] {
        let far = far(slices);
        let (mut matching, mut onward) = ([0; CHUNK], [0; CHUNK]);
        for age in (0..slices.len()).step_by(k) {
            let mut counts = [0; CHUNK];
            matching[..self.len].copy_from_slice(&self.keys[..self.len]);
            let len = slices[age].keep(far, words, hashes, &mut matching[..self.len], &mut counts);
            let mut older = slices[age + 1..].iter().take(k - 1);
            let mut newer = slices[(age + 1).saturating_sub(k)..age].iter().rev();
            for neighbours in [&mut older as &mut dyn Iterator<Item = &Slice>, &mut newer] {
                onward[..len].copy_from_slice(&matching[..len]);
                let mut left = len;
                while left > 0
                    && let Some(slice) = neighbours.next()
                {
                    left = slice.keep(far, words, hashes, &mut onward[..left], &mut counts);
                }
            }
            self.note(&counts, age, k);
        }
        self.leads
    }

    /// Records what has been found around the slice of an age; a key with k matches looks no further.
    fn note(&mut self, counts: &[u8; CHUNK], age: usize, k: usize) {
        let mut left = 0;
        for i in 0..self.len {
            let key = self.keys[i];
            let (count, lead) = (counts[usize::from(key)], &mut self.leads[usize::from(key)]);
            let found = usize::from(count) >= k;
            // The slice of age 0 comes first, with nothing newer, so its count is the lead.
            *lead = if found || age == 0 { count.min(k as u8) } else { *lead };
            self.keys[left] = key;
            left += usize::from(!found);
        }
        self.len = left;
    }
}

/// Algorithm 1: looks for k consecutive matches from the k-th oldest live slice on, however many there are. At a
/// mismatch it goes k slices towards the newest, and keeps the matches it has found below.
pub(crate) fn contains(live: &[Slice], k: usize, words: &[u64], hash: u64) -> bool {
    let Some(mut i) = live.len().checked_sub(k) else {
        return false;
    };
    let (mut before, mut matches) = (0, 0);
    loop {
        if live[i].is_set(words, hash) {
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
