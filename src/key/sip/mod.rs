//! SipHash-1-3 (Aumasson, Bernstein, *SipHash: a fast short-input PRF*, 2012), the function of scheme 2: bytes by a
//! crate, many words and many strings at once here.

#![allow(clippy::needless_range_loop, reason = "loops over lanes read as what they become: one vector instruction")]

use siphasher::sip::SipHasher13;

use crate::instructions::{Instructions, Machine, Work};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod strings;

use strings::HashStrings;

/// "somepseudorandomlygeneratedbytes", as in the paper.
const INITIAL: [u64; 4] = [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];

/// One key of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SipKey([u64; 2]);

impl SipKey {
    /// The key of a kind of keys, drawn from a secret by SipHash-1-3 itself, so that kinds are separate domains.
    pub fn of_kind(secret: [u64; 2], kind: u8) -> Self {
        Self([0, 1].map(|half| Self(secret).hash(&[kind, half])))
    }

    /// SipHash-1-3 of some bytes.
    #[inline]
    pub fn hash(self, bytes: &[u8]) -> u64 {
        SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(bytes)
    }

    /// SipHash-1-3 of each of these words, as eight bytes, in their place. Several side by side: 1.2 ns each with
    /// AVX-512 and 2.3 with AVX2, where one after the other takes 4.9 (and XXH3 0.9).
    pub fn hash_words(self, words: &mut [u64]) {
        Instructions::best().run(HashWords { key: self, words });
    }

    /// SipHash-1-3 of each of these strings, of which there are as many as hashes.
    pub fn hash_strings(self, strings: &[&[u8]], hashes: &mut [u64]) {
        Instructions::best().run(HashStrings { key: self, strings, hashes });
    }

    #[inline(always)]
    fn hash_in_lanes<const LANES: usize>(self, words: &mut [u64]) {
        let (chunks, rest) = words.as_chunks_mut::<LANES>();
        chunks.iter_mut().for_each(|words| *words = self.lanes(*words));
        rest.iter_mut().for_each(|word| [*word] = self.lanes([*word]));
    }

    /// Loops over lanes, which compilers make vectors of.
    #[inline(always)]
    fn lanes<const LANES: usize>(self, words: [u64; LANES]) -> [u64; LANES] {
        /// The last block of a message of eight bytes: its length, above no bytes.
        const END: u64 = 8 << 56;
        let [k0, k1] = self.0;
        let mut v = [k0, k1, k0, k1].map(|key| [key; LANES]);
        for (v, initial) in v.iter_mut().zip(INITIAL) {
            v.iter_mut().for_each(|v| *v ^= initial);
        }
        for lane in 0..LANES {
            v[3][lane] ^= words[lane];
        }
        sip_round(&mut v);
        for lane in 0..LANES {
            v[0][lane] ^= words[lane];
            v[3][lane] ^= END;
        }
        sip_round(&mut v);
        for lane in 0..LANES {
            v[0][lane] ^= END;
            v[2][lane] ^= 0xff;
        }
        for _ in 0..3 {
            sip_round(&mut v);
        }
        std::array::from_fn(|lane| v[0][lane] ^ v[1][lane] ^ v[2][lane] ^ v[3][lane])
    }
}

struct HashWords<'a> {
    key: SipKey,
    words: &'a mut [u64],
}

impl<M: Machine> Work<M> for HashWords<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        match M::WORDS {
            8 => self.key.hash_in_lanes::<8>(self.words),
            4 => self.key.hash_in_lanes::<4>(self.words),
            _ => self.key.hash_in_lanes::<1>(self.words),
        }
    }
}

#[inline(always)]
fn sip_round<const LANES: usize>(v: &mut [[u64; LANES]; 4]) {
    for lane in 0..LANES {
        let [mut v0, mut v1, mut v2, mut v3] = [v[0][lane], v[1][lane], v[2][lane], v[3][lane]];
        v0 = v0.wrapping_add(v1);
        v2 = v2.wrapping_add(v3);
        v1 = v1.rotate_left(13) ^ v0;
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.rotate_left(32).wrapping_add(v3);
        v2 = v2.wrapping_add(v1);
        v1 = v1.rotate_left(17) ^ v2;
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.rotate_left(32);
        [v[0][lane], v[1][lane], v[2][lane], v[3][lane]] = [v0, v1, v2, v3];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_side_by_side_are_hashed_as_one_by_one() {
        let key = SipKey([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        for first in [0, 1, u64::MAX - 20, 1 << 63, 0x9e37_79b9_7f4a_7c15] {
            let words: [u64; 21] = std::array::from_fn(|i| first.wrapping_add(i as u64).wrapping_mul(first | 1));
            let expected = words.map(|word| key.hash(&word.to_le_bytes()));
            for end in (0..=words.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
                let mut hashes = words;
                key.hash_words(&mut hashes[..end]);
                assert_eq!(hashes[..end], expected[..end]);
                let mut hashes = words;
                key.hash_in_lanes::<4>(&mut hashes[..end]);
                assert_eq!(hashes[..end], expected[..end]);
            }
        }
    }
}
