//! SipHash of four messages side by side, with AVX2.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::vectors::{CHUNK, Vectors};
use crate::instructions::Avx2;

// SAFETY, of all blocks here: an `Avx2` exists, so the processor has the instructions.
impl Vectors<4> for Avx2 {
    type Words = __m256i;
    type Strings = __m256i;

    #[inline(always)]
    fn words(self, words: [u64; 4]) -> Self::Words {
        // SAFETY: as above, and the load is of four words.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn array(self, words: Self::Words) -> [u64; 4] {
        let mut array = [0; 4];
        // SAFETY: as above, and the store is of four words.
        unsafe { _mm256_storeu_si256(array.as_mut_ptr().cast(), words) };
        array
    }

    #[inline(always)]
    fn next(self, strings: &[&[u8]; 4], first: usize) -> [Self::Words; CHUNK] {
        let [a, b, c, d] = *strings;
        let (a, b, c, d) = (load(self, a, first), load(self, b, first), load(self, c, first), load(self, d, first));
        // SAFETY: as above.
        unsafe {
            let (even, odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
            let (even_too, odd_too) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
            [
                _mm256_permute2x128_si256::<0x20>(even, even_too),
                _mm256_permute2x128_si256::<0x20>(odd, odd_too),
                _mm256_permute2x128_si256::<0x31>(even, even_too),
                _mm256_permute2x128_si256::<0x31>(odd, odd_too),
            ]
        }
    }

    #[inline(always)]
    fn rest(self, strings: &[&[u8]; 4]) -> Self::Words {
        self.words(strings.map(last_word))
    }

    #[inline(always)]
    fn are(self, words: Self::Words, number: u64) -> Self::Strings {
        // SAFETY: as above.
        unsafe { _mm256_cmpeq_epi64(words, _mm256_set1_epi64x(number as i64)) }
    }

    #[inline(always)]
    fn only(self, strings: Self::Strings, words: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm256_and_si256(strings, words) }
    }

    #[inline(always)]
    fn choose(self, strings: Self::Strings, one: Self::Words, other: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm256_blendv_epi8(other, one, strings) }
    }

    #[inline(always)]
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn round(self, [v0, v1, v2, v3]: [Self::Words; 4]) -> [Self::Words; 4] {
        // SAFETY: as above.
        unsafe {
            // Moves the bytes of each word by two: a rotation by 16 bits.
            let by_16 = _mm256_setr_epi64x(
                0x0504_0302_0100_0706,
                0x0d0c_0b0a_0908_0f0e,
                0x0504_0302_0100_0706,
                0x0d0c_0b0a_0908_0f0e,
            );
            let (v0, v2) = (_mm256_add_epi64(v0, v1), _mm256_add_epi64(v2, v3));
            let v1 = _mm256_xor_si256(rotated::<13, 51>(self, v1), v0);
            let v3 = _mm256_xor_si256(_mm256_shuffle_epi8(v3, by_16), v2);
            let v0 = _mm256_add_epi64(_mm256_shuffle_epi32::<0b10_11_00_01>(v0), v3);
            let v2 = _mm256_add_epi64(v2, v1);
            let v1 = _mm256_xor_si256(rotated::<17, 47>(self, v1), v2);
            let v3 = _mm256_xor_si256(rotated::<21, 43>(self, v3), v0);
            [v0, v1, _mm256_shuffle_epi32::<0b10_11_00_01>(v2), v3]
        }
    }
}

/// Returns words rotated to the left by `LEFT` bits; `RIGHT` is 64 less `LEFT`.
#[inline(always)]
fn rotated<const LEFT: i32, const RIGHT: i32>(_: Avx2, words: __m256i) -> __m256i {
    // SAFETY: as above.
    unsafe { _mm256_or_si256(_mm256_slli_epi64::<LEFT>(words), _mm256_srli_epi64::<RIGHT>(words)) }
}

/// Returns four whole words of a string from number `first` on, and zeros beyond its end.
#[inline(always)]
fn load(_: Avx2, string: &[u8], first: usize) -> __m256i {
    // SAFETY: as above, and only words that lie in the string are read.
    unsafe {
        let there = _mm256_set1_epi64x((string.len() / 8) as i64 - first as i64);
        let mask = _mm256_cmpgt_epi64(there, _mm256_setr_epi64x(0, 1, 2, 3));
        _mm256_maskload_epi64(string.as_ptr().wrapping_add(8 * first).cast(), mask)
    }
}

/// Returns the last word of a string.
#[inline(always)]
fn last_word(string: &[u8]) -> u64 {
    let len = string.len();
    let bytes = match (string.last_chunk(), len % 8) {
        (_, 0) => 0,
        (Some(&bytes), rest) => u64::from_le_bytes(bytes) >> (64 - 8 * rest),
        (None, 4..) => {
            let half = |from: usize| u32::from_le_bytes(std::array::from_fn(|i| string[from + i]));
            u64::from(half(0)) | u64::from(half(len - 4)) << (8 * (len - 4))
        }
        // One to three bytes: the first, the one in the middle and the last.
        (None, _) => [0, len / 2, len - 1].into_iter().fold(0, |word, i| word | u64::from(string[i]) << (8 * i)),
    };
    bytes | (len as u64) << 56
}
