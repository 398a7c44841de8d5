//! A piece of a batch, scattered by the partition of the cells that its keys lie in.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod tests;

use std::array;
use std::ops::RangeInclusive;

use super::hashes::{SelectedHashes, Selection, WORD};
use crate::Error;
use crate::instructions::{Instructions, Machine, Work};
use crate::memory::fallible;

/// Number of keys that a thread scatters before it passes them on. With half as many an insertion took a twentieth
/// longer, with a quarter a fifth; with twice as many it took as long. Fuzzing needs millions of runs and Miri is slow,
/// so pieces are short there.
pub const PIECE: usize = if cfg!(any(fuzzing, miri)) { 64 } else { 16_384 };
/// Number of keys of a piece that are hashed together: their hashes are in the first cache when they are scattered.
pub const BLOCK: usize = if PIECE < 1024 { PIECE } else { 1024 };
/// Number of hashes that one step of a [`Partitioner`] reads.
const GROUP: usize = 8;
/// Number of hashes that are written between two checks of the room: those of a word, and a group that is not selected.
const OVERRUN: usize = WORD + GROUP;

/// The keys of a piece that lie in one partition, in order, with their answers.
pub(crate) struct Partitioned {
    /// The hashes of these keys, with room for [`OVERRUN`] more.
    hashes: Vec<u64>,
    count: usize,
    /// Which keys of the piece these are.
    selection: Selection,
    /// The number of keys in the piece.
    len: usize,
    answers: Vec<bool>,
}

impl Partitioned {
    /// Returns an empty piece of a batch for `partitions` partitions. It has room for twice its share of the keys, and
    /// grows if more of them lie in this partition.
    pub fn with_partitions(partitions: usize) -> Result<Self, Error> {
        let words = PIECE.div_ceil(WORD) + 1;
        let selection = Selection { bits: fallible::zeroed(words)?, before: fallible::zeroed(words)? };
        let room = (2 * PIECE / partitions).min(PIECE);
        let (hashes, answers) = (fallible::zeroed(room + OVERRUN)?, fallible::zeroed(room + WORD)?);
        Ok(Self { hashes, count: 0, selection, len: 0, answers })
    }

    /// Removes all keys, and keeps the room.
    pub fn clear(&mut self) {
        (self.count, self.len) = (0, 0);
    }

    /// Appends to each of `all` the hashes that lie in its partition. All calls for a piece but the last have a
    /// multiple of 64 hashes.
    pub fn scatter(all: &mut [Self], hashes: &[u64], partitions: &[RangeInclusive<u64>]) {
        let (pairs, last) = all.as_chunks_mut::<2>();
        let (pairs_of_partitions, last_partition) = partitions.as_chunks();
        for (to, partitions) in pairs.iter_mut().zip(pairs_of_partitions) {
            Instructions::best().run(Scatter { hashes, to, partitions });
        }
        if let ([to], [partition]) = (last, last_partition) {
            let (to, partitions) = (array::from_mut(to), array::from_ref(partition));
            Instructions::best().run(Scatter { hashes, to, partitions });
        }
    }

    /// Calls `process` with the keys and the place of their answers.
    pub fn process(&mut self, process: impl FnOnce(SelectedHashes<'_>, &mut [bool])) {
        let hashes =
            SelectedHashes { hashes: &self.hashes[..self.count], selection: Some(&self.selection), len: self.len };
        // `gather` reads whole words of answers.
        self.answers.resize(self.count + WORD, false);
        process(hashes, &mut self.answers[..self.count]);
    }

    /// Writes the answers to the places of their keys in the piece.
    pub fn gather(&self, answers: &mut [bool]) {
        Instructions::best().run(Gather { partitioned: self, answers });
    }
}

/// The steps of scattering and gathering that an [instruction set](crate::instructions) implements.
pub trait Partitioner: Machine {
    /// Selects those of eight hashes that are at most `width` above `least`, and writes them to the front of `out`, in
    /// order. Returns which these are, a bit for each.
    #[inline(always)]
    fn select(self, hashes: &[u64; GROUP], least: u64, width: u64, out: &mut [u64; GROUP]) -> u8 {
        let (mut selected, mut count) = (0, 0);
        // Every hash is written, and overwritten unless it belongs there: a branch would be mispredicted half the time.
        for (i, &hash) in hashes.iter().enumerate() {
            let belongs = hash.wrapping_sub(least) <= width;
            out[count % GROUP] = hash;
            count += usize::from(belongs);
            selected |= u8::from(belongs) << i;
        }
        selected
    }

    /// Writes the first answers of `own`, in order, to the places of `answers` whose bit is set in `bits`.
    #[inline(always)]
    fn expand(self, bits: u64, own: &[bool; WORD], answers: &mut [bool; WORD]) {
        expand_few(bits, own, answers);
    }
}

/// Does what [`expand`](Partitioner::expand) does, where there may be fewer than a word of bits or answers.
#[inline(always)]
fn expand_few(mut bits: u64, own: &[bool], answers: &mut [bool]) {
    let mut own = own.iter();
    while let (true, Some(&own)) = (bits != 0, own.next()) {
        answers[bits.trailing_zeros() as usize] = own;
        bits &= bits - 1;
    }
}

impl Partitioner for crate::instructions::Portable {}
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
impl Partitioner for crate::instructions::Neon {}

/// Scatters hashes to `PARTITIONS` partitions in one pass. Two in one pass take a sixth less time than two passes.
struct Scatter<'a, const PARTITIONS: usize> {
    hashes: &'a [u64],
    to: &'a mut [Partitioned; PARTITIONS],
    partitions: &'a [RangeInclusive<u64>; PARTITIONS],
}

impl<M: Partitioner, const PARTITIONS: usize> Work<M> for Scatter<'_, PARTITIONS> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { hashes, to, partitions } = self;
        let partitions = partitions.each_ref().map(|hashes| (*hashes.start(), hashes.end() - hashes.start()));
        for word in 0..hashes.len() / WORD + 1 {
            let here = &hashes[word * WORD..hashes.len().min((word + 1) * WORD)];
            let (groups, rest) = here.as_chunks::<GROUP>();
            let mut counts = to.each_ref().map(|to| to.count);
            let mut bits = [0; PARTITIONS];
            for to in &mut *to {
                if to.hashes.len() < to.count + OVERRUN {
                    to.hashes.resize(PIECE + OVERRUN, 0);
                }
            }
            for (i, group) in groups.iter().enumerate() {
                for (n, (least, width)) in partitions.into_iter().enumerate() {
                    if let Some(out) = to[n].hashes[counts[n]..].first_chunk_mut() {
                        let selected = machine.select(group, least, width, out);
                        bits[n] |= u64::from(selected) << (i * GROUP);
                        counts[n] += selected.count_ones() as usize;
                    }
                }
            }
            for (i, &hash) in (groups.len() * GROUP..).zip(rest) {
                for (n, (least, width)) in partitions.into_iter().enumerate() {
                    to[n].hashes[counts[n]] = hash;
                    let belongs = hash.wrapping_sub(least) <= width;
                    bits[n] |= u64::from(belongs) << i;
                    counts[n] += usize::from(belongs);
                }
            }
            for (n, to) in to.iter_mut().enumerate() {
                let word = to.len / WORD;
                (to.selection.bits[word], to.selection.before[word]) = (bits[n], to.count as u16);
                (to.count, to.len) = (counts[n], to.len + here.len());
            }
        }
    }
}

/// Gathers the answers of one partition.
struct Gather<'a> {
    partitioned: &'a Partitioned,
    answers: &'a mut [bool],
}

impl<M: Partitioner> Work<M> for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { partitioned: Partitioned { selection, answers: own, .. }, answers } = self;
        let own_of = |word: usize| &own[usize::from(selection.before[word])..];
        let (words, rest) = answers.as_chunks_mut::<WORD>();
        let last = words.len();
        for (word, answers) in words.iter_mut().enumerate() {
            if let Some(own) = own_of(word).first_chunk() {
                machine.expand(selection.bits[word], own, answers);
            }
        }
        if !rest.is_empty() {
            expand_few(selection.bits[last], own_of(last), rest);
        }
    }
}
