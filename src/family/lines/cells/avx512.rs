//! Lines in one piece: AVX-512, with its instructions for bytes and words.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::vectors::Vectors;
use super::{LINE, SUBLANES};
use crate::instructions::Avx512;

/// The bits of a sub-lane, twice: the instruction reads an index of five bits; only four matter.
static BITS: [u16; 32] = {
    let (mut bits, mut i) = ([0; 32], 0);
    while i < 32 {
        bits[i] = 1 << (i % 16);
        i += 1;
    }
    bits
};

// SAFETY, of all blocks here: an `Avx512` exists, so the processor has the instructions.
impl Vectors for Avx512 {
    type Mask = __m512i;

    #[inline(always)]
    fn mask(self, seed: u32) -> Self::Mask {
        // SAFETY: as above, and the loads are of the sixteen constants and of the 32 bits to choose from.
        unsafe {
            let (constants, bits) =
                (_mm512_loadu_si512(SUBLANES.as_ptr().cast()), _mm512_loadu_si512(BITS.as_ptr().cast()));
            let products = _mm512_mullo_epi32(_mm512_set1_epi32(seed as i32), constants);
            // Both sub-lanes of a product receive its highest 16 bits, and shift them down to their four.
            let highest = _mm512_set4_epi32(0x0f0e_0f0e, 0x0b0a_0b0a, 0x0706_0706, 0x0302_0302);
            let places = _mm512_srlv_epi16(_mm512_shuffle_epi8(products, highest), _mm512_set1_epi32(12 << 16 | 8));
            _mm512_permutexvar_epi16(places, bits)
        }
    }

    #[inline(always)]
    fn missing(self, line: &[u64; LINE], mask: Self::Mask) -> Self::Mask {
        // SAFETY: as above, and the load is of the eight words of a line.
        unsafe { _mm512_andnot_si512(_mm512_loadu_si512(line.as_ptr().cast()), mask) }
    }

    #[inline(always)]
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask {
        // SAFETY: as above.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn complete<const LANES: usize>(self, missing: Self::Mask) -> u32 {
        // SAFETY: as above.
        unsafe {
            match LANES {
                8 => u32::from(_mm512_testn_epi64_mask(missing, missing)),
                16 => u32::from(_mm512_testn_epi32_mask(missing, missing)),
                _ => _mm512_testn_epi16_mask(missing, missing),
            }
        }
    }

    #[inline(always)]
    fn set(self, line: &mut [u64; LINE], mask: Self::Mask, lanes: &[u64; LINE]) {
        // SAFETY: as above, and loads and store are of eight words.
        unsafe {
            let (words, lanes) = (_mm512_loadu_si512(line.as_ptr().cast()), _mm512_loadu_si512(lanes.as_ptr().cast()));
            _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(words, _mm512_and_si512(mask, lanes)));
        }
    }
}
