//! SipHash of eight messages side by side, with AVX-512.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::vectors::{CHUNK, Vectors};
use crate::instructions::Avx512;

// SAFETY, of all blocks here: an `Avx512` exists, so the processor has the instructions.
impl Vectors<8> for Avx512 {
    type Words = __m512i;
    type Strings = __mmask8;

    #[inline(always)]
    fn words(self, words: [u64; 8]) -> Self::Words {
        // SAFETY: as above, and the load is of eight words.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn array(self, words: Self::Words) -> [u64; 8] {
        let mut array = [0; 8];
        // SAFETY: as above, and the store is of eight words.
        unsafe { _mm512_storeu_si512(array.as_mut_ptr().cast(), words) };
        array
    }

    #[inline(always)]
    fn next(self, strings: &[&[u8]; 8], first: usize) -> [Self::Words; CHUNK] {
        let [a, b, c, d, e, f, g, h] = *strings;
        let (a, b, c, d) = (load(self, a, first), load(self, b, first), load(self, c, first), load(self, d, first));
        let (e, f, g, h) = (load(self, e, first), load(self, f, first), load(self, g, first), load(self, h, first));
        // SAFETY: as above.
        unsafe {
            let (a, b) = (_mm512_castsi256_si512(a), _mm512_castsi256_si512(b));
            let (c, d) = (_mm512_castsi256_si512(c), _mm512_castsi256_si512(d));
            let (a, b) = (_mm512_inserti64x4::<1>(a, e), _mm512_inserti64x4::<1>(b, f));
            let (c, d) = (_mm512_inserti64x4::<1>(c, g), _mm512_inserti64x4::<1>(d, h));
            let (even, odd) = (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
            let (even_too, odd_too) = (_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
            let lower = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let upper = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            [
                _mm512_permutex2var_epi64(even, lower, even_too),
                _mm512_permutex2var_epi64(odd, lower, odd_too),
                _mm512_permutex2var_epi64(even, upper, even_too),
                _mm512_permutex2var_epi64(odd, upper, odd_too),
            ]
        }
    }

    #[inline(always)]
    fn rest(self, strings: &[&[u8]; 8]) -> Self::Words {
        let lengths = self.words(strings.map(|string| string.len() as u64));
        // SAFETY: as above.
        unsafe { _mm512_slli_epi64::<56>(lengths) }
    }

    #[inline(always)]
    fn are(self, words: Self::Words, number: u64) -> Self::Strings {
        // SAFETY: as above.
        unsafe { _mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(number as i64)) }
    }

    #[inline(always)]
    fn only(self, strings: Self::Strings, words: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm512_maskz_mov_epi64(strings, words) }
    }

    #[inline(always)]
    fn choose(self, strings: Self::Strings, one: Self::Words, other: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm512_mask_mov_epi64(other, strings, one) }
    }

    #[inline(always)]
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn round(self, [v0, v1, v2, v3]: [Self::Words; 4]) -> [Self::Words; 4] {
        // SAFETY: as above.
        unsafe {
            let (v0, v2) = (_mm512_add_epi64(v0, v1), _mm512_add_epi64(v2, v3));
            let v1 = _mm512_xor_si512(_mm512_rol_epi64::<13>(v1), v0);
            let v3 = _mm512_xor_si512(_mm512_rol_epi64::<16>(v3), v2);
            let v0 = _mm512_add_epi64(_mm512_rol_epi64::<32>(v0), v3);
            let v2 = _mm512_add_epi64(v2, v1);
            let v1 = _mm512_xor_si512(_mm512_rol_epi64::<17>(v1), v2);
            let v3 = _mm512_xor_si512(_mm512_rol_epi64::<21>(v3), v0);
            [v0, v1, _mm512_rol_epi64::<32>(v2), v3]
        }
    }
}

/// Returns the bytes of four words of a string from number `first` on, and zeros beyond its end.
#[inline(always)]
fn load(_: Avx512, string: &[u8], first: usize) -> __m256i {
    let left = string.len().saturating_sub(8 * first);
    let mask = if left < 32 { (1 << left) - 1 } else { u32::MAX };
    // SAFETY: as above, and only bytes that lie in the string are read.
    unsafe { _mm256_maskz_loadu_epi8(mask, string.as_ptr().wrapping_add(8 * first).cast()) }
}
