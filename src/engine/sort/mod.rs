//! A piece of a batch, sorted by the part of the cells that its keys lie in.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use std::ops::RangeInclusive;

use super::hashes::{Chosen, Hashes, WORD};
use crate::Error;
use crate::instructions::{Instructions, Machine, Work};
use crate::memory::fallible;

/// Keys hashed and sorted at a time: their hashes take 64 KiB. Few where every run of the code is slow, or millions of
/// runs are to be had.
pub const PIECE: usize = if cfg!(any(fuzzing, miri)) { 64 } else { 8192 };
/// Hashes that are looked at together.
const GROUP: usize = 8;
/// Hashes that are written before there is a look at the room: those of a word, and a group that is not kept.
const MORE: usize = WORD + GROUP;

/// The keys of a piece that lie in one part, in order, and what becomes of them.
pub(crate) struct Sorted {
    /// Their hashes, and room for a word of more.
    hashes: Vec<u64>,
    count: usize,
    chosen: Chosen,
    /// Keys of the piece.
    len: usize,
    /// Their answers.
    answers: Vec<bool>,
}

impl Sorted {
    /// Room for the keys of a piece of which there are so many parts: for twice their share, and it grows where more of
    /// them lie in this.
    pub fn room(parts: usize) -> Result<Self, Error> {
        let words = PIECE.div_ceil(WORD) + 1;
        let chosen = Chosen { bits: fallible::zeroed(words)?, before: fallible::zeroed(words)? };
        let room = (2 * PIECE / parts).min(PIECE);
        let (hashes, answers) = (fallible::zeroed(room + MORE)?, fallible::zeroed(room + WORD)?);
        Ok(Self { hashes, count: 0, chosen, len: 0, answers })
    }

    /// Takes those of a piece whose hashes lie in a range.
    pub fn take(&mut self, piece: &[u64], part: &RangeInclusive<u64>) {
        let (least, width) = (*part.start(), part.end() - part.start());
        Instructions::best().run(Take { piece, least, width, sorted: self });
    }

    /// Has the keys act: `act` writes an answer for each.
    pub fn act(&mut self, act: impl FnOnce(Hashes<'_>, &mut [bool])) {
        let hashes = Hashes { hashes: &self.hashes[..self.count], chosen: Some(&self.chosen), len: self.len };
        // And room for a word of more, as behind the hashes.
        self.answers.resize(self.count + WORD, false);
        act(hashes, &mut self.answers[..self.count]);
    }

    /// Writes the answers to the places of their keys.
    pub fn spread(&self, answers: &mut [bool]) {
        Instructions::best().run(Spread { sorted: self, answers });
    }
}

/// What sorting asks of an [instruction set](crate::instructions).
pub trait Sorts: Machine {
    /// Writes those of some hashes that are at most `width` above `least` to the front of `out`, in order; says which,
    /// a bit each.
    #[inline(always)]
    fn choose(self, hashes: &[u64; GROUP], least: u64, width: u64, out: &mut [u64; GROUP]) -> u8 {
        let (mut chosen, mut kept) = (0, 0);
        // Each is written, and kept only if it belongs there: a branch would be mispredicted half the time.
        for (i, &hash) in hashes.iter().enumerate() {
            let belongs = hash.wrapping_sub(least) <= width;
            out[kept % GROUP] = hash;
            kept += usize::from(belongs);
            chosen |= u8::from(belongs) << i;
        }
        chosen
    }

    /// Writes the first of the answers at hand, in order, where a word has its bits, and nothing elsewhere.
    #[inline(always)]
    fn spread(self, bits: u64, own: &[bool; WORD], answers: &mut [bool; WORD]) {
        spread_few(bits, own, answers);
    }
}

/// The same where there may be fewer than a word of them.
#[inline(always)]
fn spread_few(mut bits: u64, own: &[bool], answers: &mut [bool]) {
    let mut own = own.iter();
    while let (true, Some(&own)) = (bits != 0, own.next()) {
        answers[bits.trailing_zeros() as usize] = own;
        bits &= bits - 1;
    }
}

impl Sorts for crate::instructions::Portable {}
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
impl Sorts for crate::instructions::Neon {}

struct Take<'a> {
    piece: &'a [u64],
    least: u64,
    width: u64,
    sorted: &'a mut Sorted,
}

impl<M: Sorts> Work<M> for Take<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { piece, least, width, sorted } = self;
        let (mut kept, words) = (0, piece.len() / WORD + 1);
        let Chosen { bits, before } = &mut sorted.chosen;
        for (word, (bits, before)) in bits[..words].iter_mut().zip(&mut before[..words]).enumerate() {
            (*bits, *before) = (0, kept as u16);
            if sorted.hashes.len() < kept + MORE {
                sorted.hashes.resize(PIECE + MORE, 0);
            }
            let here = &piece[word * WORD..piece.len().min((word + 1) * WORD)];
            let (groups, rest) = here.as_chunks::<GROUP>();
            for (i, group) in groups.iter().enumerate() {
                if let Some(out) = sorted.hashes[kept..].first_chunk_mut() {
                    let chosen = machine.choose(group, least, width, out);
                    *bits |= u64::from(chosen) << (i * GROUP);
                    kept += chosen.count_ones() as usize;
                }
            }
            for (i, &hash) in (groups.len() * GROUP..).zip(rest) {
                sorted.hashes[kept] = hash;
                let belongs = hash.wrapping_sub(least) <= width;
                *bits |= u64::from(belongs) << i;
                kept += usize::from(belongs);
            }
        }
        (sorted.count, sorted.len) = (kept, piece.len());
    }
}

struct Spread<'a> {
    sorted: &'a Sorted,
    answers: &'a mut [bool],
}

impl<M: Sorts> Work<M> for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { sorted: Sorted { chosen, answers: own, .. }, answers } = self;
        let own_of = |word: usize| &own[usize::from(chosen.before[word])..];
        let (words, rest) = answers.as_chunks_mut::<WORD>();
        let last = words.len();
        for (word, answers) in words.iter_mut().enumerate() {
            if let Some(own) = own_of(word).first_chunk() {
                machine.spread(chosen.bits[word], own, answers);
            }
        }
        if !rest.is_empty() {
            spread_few(chosen.bits[last], own_of(last), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_chosen_in_order_and_answers_come_back_to_their_places() {
        let hash = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut sorted = Sorted::room(5).unwrap();
        for len in [0, 1, 7, 8, 9, 63, 64, PIECE - 1, PIECE] {
            let piece: Vec<u64> = (0..len).map(hash).collect();
            for part in [0..=u64::MAX / 3, u64::MAX / 3 + 1..=u64::MAX, 0..=u64::MAX, 5..=5] {
                let own: Vec<usize> = (0..len).filter(|&i| part.contains(&piece[i])).collect();
                for machine in Instructions::available() {
                    let (least, width) = (*part.start(), part.end() - part.start());
                    machine.run(Take { piece: &piece, least, width, sorted: &mut sorted });
                    sorted.act(|keys, answers| {
                        let hashes: Vec<u64> = own.iter().map(|&i| piece[i]).collect();
                        assert_eq!((keys.hashes, keys.len), (&hashes[..], len), "{machine:?}");
                        let chosen = keys.chosen.unwrap();
                        for range in [0..0, 0..len, len / 3..len / 2, len..len] {
                            let within = own.iter().filter(|place| range.contains(place)).count();
                            assert_eq!(chosen.within(range).len(), within);
                        }
                        answers.iter_mut().zip(&own).for_each(|(answer, place)| *answer = place % 3 == 1);
                    });
                    // Those of other parts stay as they are.
                    let mut answers: Vec<bool> = (0..len).map(|i| i % 5 < 2).collect();
                    machine.run(Spread { sorted: &sorted, answers: &mut answers });
                    let expected = |i| if part.contains(&piece[i]) { i % 3 == 1 } else { i % 5 < 2 };
                    assert!((0..len).all(|i| answers[i] == expected(i)), "{machine:?}");
                }
            }
        }
    }
}
