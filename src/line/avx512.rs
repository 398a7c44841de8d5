//! Lines in one piece.

use std::arch::x86_64::*;
use std::ops::Range;

use super::kernel::{self, Simd};
use super::{LINE, Lines, Phase, SUBLANES};

/// AVX-512, with its instructions for bytes and words.
pub struct Avx512;

impl Simd for Avx512 {
    type Mask = __m512i;

    #[inline(always)]
    unsafe fn mask(seed: u32) -> __m512i {
        // SAFETY: the caller vouches for the instructions; the load is of sixteen constants.
        unsafe {
            let constants = _mm512_loadu_si512(SUBLANES.as_ptr().cast());
            let products = _mm512_mullo_epi32(_mm512_set1_epi32(seed as i32), constants);
            let upper = _mm512_srli_epi32::<28>(products);
            let lower = _mm512_and_si512(_mm512_srli_epi32::<24>(products), _mm512_set1_epi32(15));
            let upper = _mm512_sllv_epi32(_mm512_set1_epi32(0x1_0000), upper);
            _mm512_or_si512(upper, _mm512_sllv_epi32(_mm512_set1_epi32(1), lower))
        }
    }

    #[inline(always)]
    unsafe fn complete<const LANES: usize, const LINES: usize>(
        lines: [&[u64; LINE]; LINES],
        masks: [__m512i; LINES],
    ) -> u32 {
        // SAFETY: the caller vouches for the instructions; the load is of the eight words of a line.
        unsafe {
            let mut missing = _mm512_setzero_si512();
            for (line, mask) in lines.into_iter().zip(masks) {
                let words = _mm512_loadu_si512(line.as_ptr().cast());
                missing = _mm512_or_si512(missing, _mm512_andnot_si512(words, mask));
            }
            match LANES {
                8 => u32::from(_mm512_testn_epi64_mask(missing, missing)),
                16 => u32::from(_mm512_testn_epi32_mask(missing, missing)),
                _ => _mm512_testn_epi16_mask(missing, missing),
            }
        }
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(line: &mut [u64; LINE], mask: __m512i, lanes: u32) {
        // SAFETY: the caller vouches for the instructions; load and store are of the eight words of a line.
        unsafe {
            let mask = match LANES {
                8 => _mm512_maskz_mov_epi64(lanes as u8, mask),
                16 => _mm512_maskz_mov_epi32(lanes as u16, mask),
                _ => _mm512_maskz_mov_epi16(lanes, mask),
            };
            let words = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(words, mask));
        }
    }
}

/// [`kernel::insert`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
pub unsafe fn insert<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
) {
    kernel::insert::<Avx512, LANES, LINES>(lines, words, phase, hashes, run);
}

/// [`kernel::query`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
pub unsafe fn query<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &[u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    present: &mut [bool],
) {
    kernel::query::<Avx512, LANES, LINES>(lines, words, phase, hashes, run, present);
}

/// [`kernel::duplicated`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
pub unsafe fn duplicated<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    refresh: bool,
    seen: &mut [bool],
) -> u64 {
    kernel::duplicated::<Avx512, LANES, LINES>(lines, words, phase, hashes, run, refresh, seen)
}
