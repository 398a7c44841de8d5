//! AVX2, with BMI2 for the bits of a word.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::format::{Format, Line};
use super::slots::Slots;
use crate::instructions::Avx2;

impl Slots for Avx2 {
    const SELECTS: bool = true;

    #[inline(always)]
    fn nth(self, bits: u64, n: u32) -> u64 {
        self.spread(1u64.wrapping_shl(n), bits)
    }

    #[inline(always)]
    fn spread(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: an `Avx2` exists, so the processor has BMI2.
        unsafe { _pdep_u64(bits, mask) }
    }

    #[inline(always)]
    fn gather(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: as above.
        unsafe { _pext_u64(bits, mask) }
    }

    #[inline(always)]
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64 {
        // SAFETY: an `Avx2` exists, so the processor has the instructions; each load is of four of the eight words of a
        // line.
        unsafe {
            let low = _mm256_loadu_si256(line.as_ptr().cast());
            let high = _mm256_loadu_si256(line.as_ptr().add(4).cast());
            if format.lane == 1 {
                let (value, mask) = (_mm256_set1_epi8(value as i8), _mm256_set1_epi8(mask as i8));
                let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(low, mask), value));
                let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(high, mask), value));
                (u64::from(low as u32) | u64::from(high as u32) << 32) >> format.lanes
            } else {
                let (value, mask) = (_mm256_set1_epi16(value as i16), _mm256_set1_epi16(mask as i16));
                let low = _mm256_cmpeq_epi16(_mm256_and_si256(low, mask), value);
                let high = _mm256_cmpeq_epi16(_mm256_and_si256(high, mask), value);
                // Packing works within 128 bits. The permutation restores the order of the quarters.
                let equal = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
                u64::from(_mm256_movemask_epi8(equal) as u32) >> (format.lanes / 2)
            }
        }
    }
}
