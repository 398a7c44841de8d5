//! XXH3-64 of many integers at once. The crate hashes bytes, and compilers do not vectorise that.

use crate::instructions::{Instructions, Machine, Portable, Work};

/// The word that XXH3 derives from its secret for messages of 4 to 8 bytes.
const SECRET: u64 = 0xc73a_b174_c5ec_d5a2;
/// The factor of XXH3 for eight bytes.
const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

/// Least number of words for which it pays to choose instructions, which takes as long as hashing some forty.
const MIN_WORDS: usize = 64;

/// Replaces each of these words by the XXH3-64 of its eight bytes.
pub(super) fn hash_words(seed: u64, words: &mut [u64]) {
    match words.len() < MIN_WORDS {
        true => Portable.run(HashWords { seed, words }),
        false => Instructions::best().run(HashWords { seed, words }),
    }
}

struct HashWords<'a> {
    seed: u64,
    words: &'a mut [u64],
}

impl<M: Machine> Work<M> for HashWords<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: M) {
        let flip = SECRET.wrapping_sub(self.seed ^ u64::from((self.seed as u32).swap_bytes()) << 32);
        for word in self.words {
            let mut hash = word.rotate_left(32) ^ flip;
            hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
            hash = hash.wrapping_mul(FACTOR);
            hash = (hash ^ ((hash >> 35) + 8)).wrapping_mul(FACTOR);
            *word = hash ^ hash >> 28;
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    #[test]
    fn words_at_once_are_hashed_as_the_crate_hashes_each() {
        for first in [0, 1, u64::MAX - 20, 1 << 63, 0x9e37_79b9_7f4a_7c15] {
            let words: [u64; 21] = std::array::from_fn(|i| first.wrapping_add(i as u64).wrapping_mul(first | 1));
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let expected = words.map(|word| xxh3_64_with_seed(&word.to_le_bytes(), seed));
                for machine in Instructions::available() {
                    let mut hashes = words;
                    machine.run(HashWords { seed, words: &mut hashes[..20] });
                    assert_eq!((&hashes[..20], hashes[20]), (&expected[..20], words[20]), "{machine:?}");
                }
            }
        }
    }
}
