//! A piece of a batch, sorted by the part of the cells that its keys lie in.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use std::array;
use std::ops::RangeInclusive;

use super::hashes::{Chosen, Hashes, WORD};
use crate::Error;
use crate::instructions::{Instructions, Machine, Work};
use crate::memory::fallible;

/// Keys that a thread sorts before it hands them on. With half as many an insertion took a twentieth longer, with a
/// quarter a fifth; with twice as many it took as long. Few where every run of the code is slow, or millions of runs
/// are to be had.
pub const PIECE: usize = if cfg!(any(fuzzing, miri)) { 64 } else { 16_384 };
/// Keys of a piece that are hashed at a time: their hashes are still in the first cache when they are sorted.
pub const AT_ONCE: usize = if PIECE < 1024 { PIECE } else { 1024 };
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

    /// The same room for another piece.
    pub fn begin(&mut self) {
        (self.count, self.len) = (0, 0);
    }

    /// Has each of these take the next keys of a piece whose hashes lie in its part. All but the last keys of a piece
    /// come in whole words.
    pub fn take(all: &mut [Self], hashes: &[u64], parts: &[RangeInclusive<u64>]) {
        let (pairs, last) = all.as_chunks_mut::<2>();
        let (pairs_of_parts, last_part) = parts.as_chunks();
        for (sorted, parts) in pairs.iter_mut().zip(pairs_of_parts) {
            Instructions::best().run(Take { hashes, sorted, parts });
        }
        if let ([sorted], [part]) = (last, last_part) {
            Instructions::best().run(Take { hashes, sorted: array::from_mut(sorted), parts: array::from_ref(part) });
        }
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

/// Takes the keys of so many parts from hashes that are read once: two together in a sixth less time.
struct Take<'a, const PARTS: usize> {
    hashes: &'a [u64],
    sorted: &'a mut [Sorted; PARTS],
    parts: &'a [RangeInclusive<u64>; PARTS],
}

impl<M: Sorts, const PARTS: usize> Work<M> for Take<'_, PARTS> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        let Self { hashes, sorted, parts } = self;
        let parts = parts.each_ref().map(|part| (*part.start(), part.end() - part.start()));
        for word in 0..hashes.len() / WORD + 1 {
            let here = &hashes[word * WORD..hashes.len().min((word + 1) * WORD)];
            let (groups, rest) = here.as_chunks::<GROUP>();
            let mut kept = sorted.each_ref().map(|sorted| sorted.count);
            let mut bits = [0; PARTS];
            for sorted in &mut *sorted {
                if sorted.hashes.len() < sorted.count + MORE {
                    sorted.hashes.resize(PIECE + MORE, 0);
                }
            }
            for (i, group) in groups.iter().enumerate() {
                for (n, (least, width)) in parts.into_iter().enumerate() {
                    if let Some(out) = sorted[n].hashes[kept[n]..].first_chunk_mut() {
                        let chosen = machine.choose(group, least, width, out);
                        bits[n] |= u64::from(chosen) << (i * GROUP);
                        kept[n] += chosen.count_ones() as usize;
                    }
                }
            }
            for (i, &hash) in (groups.len() * GROUP..).zip(rest) {
                for (n, (least, width)) in parts.into_iter().enumerate() {
                    sorted[n].hashes[kept[n]] = hash;
                    let belongs = hash.wrapping_sub(least) <= width;
                    bits[n] |= u64::from(belongs) << i;
                    kept[n] += usize::from(belongs);
                }
            }
            for (n, sorted) in sorted.iter_mut().enumerate() {
                let word = sorted.len / WORD;
                (sorted.chosen.bits[word], sorted.chosen.before[word]) = (bits[n], sorted.count as u16);
                (sorted.count, sorted.len) = (kept[n], sorted.len + here.len());
            }
        }
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

    fn hash(i: usize) -> u64 {
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Checks the keys of a part of a piece, has them act, and writes their answers back.
    fn check(machine: Instructions, sorted: &mut Sorted, piece: &[u64], part: &RangeInclusive<u64>) {
        let len = piece.len();
        let own: Vec<usize> = (0..len).filter(|&i| part.contains(&piece[i])).collect();
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
        machine.run(Spread { sorted, answers: &mut answers });
        let expected = |i| if part.contains(&piece[i]) { i % 3 == 1 } else { i % 5 < 2 };
        assert!((0..len).all(|i| answers[i] == expected(i)), "{machine:?}");
    }

    #[test]
    fn keys_are_chosen_in_order_and_answers_come_back_to_their_places() {
        let mut sorted = [Sorted::room(5).unwrap(), Sorted::room(5).unwrap()];
        for len in [0, 1, 7, 8, 9, 63, 64, PIECE - 1, PIECE] {
            let piece: Vec<u64> = (0..len).map(hash).collect();
            let third = u64::MAX / 3;
            for parts in [[0..=third, third + 1..=u64::MAX], [0..=u64::MAX, 5..=5]] {
                for machine in Instructions::available() {
                    sorted.iter_mut().for_each(Sorted::begin);
                    machine.run(Take { hashes: &piece, sorted: &mut sorted, parts: &parts });
                    sorted.iter_mut().zip(&parts).for_each(|(sorted, part)| check(machine, sorted, &piece, part));
                }
            }
        }
    }

    #[test]
    fn any_number_of_parts_take_a_piece_bit_by_bit() {
        for parts in 1..=5 {
            let mut sorted: Vec<_> = (0..parts).map(|_| Sorted::room(parts).unwrap()).collect();
            let least = |part: usize| (part as u128 * (1 << 64)) / parts as u128;
            let ranges: Vec<_> = (0..parts).map(|i| least(i) as u64..=(least(i + 1) - 1) as u64).collect();
            for (piece, at_once) in [(PIECE, WORD), (PIECE - 1, AT_ONCE), (AT_ONCE / 2 + 1, AT_ONCE)] {
                let piece: Vec<u64> = (0..piece).map(hash).collect();
                sorted.iter_mut().for_each(Sorted::begin);
                piece.chunks(at_once).for_each(|hashes| Sorted::take(&mut sorted, hashes, &ranges));
                for (sorted, range) in sorted.iter_mut().zip(&ranges) {
                    check(Instructions::best(), sorted, &piece, range);
                }
            }
        }
    }
}
