//! Lines in two halves of 256 bits.

use std::arch::x86_64::*;
use std::ops::Range;

use super::kernel::{self, Simd};
use super::{LINE, Lines, Phase, SUBLANES};

/// AVX2.
pub struct Avx2;

impl Simd for Avx2 {
    type Mask = [__m256i; 2];

    #[inline(always)]
    unsafe fn mask(seed: u32) -> Self::Mask {
        // SAFETY: the caller vouches for the instructions; the loads are of eight of the sixteen constants each.
        unsafe {
            let seeds = _mm256_set1_epi32(seed as i32);
            let mut mask = [_mm256_setzero_si256(); 2];
            for (half, mask) in mask.iter_mut().enumerate() {
                let constants = _mm256_loadu_si256(SUBLANES.as_ptr().add(8 * half).cast());
                let products = _mm256_mullo_epi32(seeds, constants);
                let upper = _mm256_srli_epi32::<28>(products);
                let lower = _mm256_and_si256(_mm256_srli_epi32::<24>(products), _mm256_set1_epi32(15));
                let upper = _mm256_sllv_epi32(_mm256_set1_epi32(0x1_0000), upper);
                *mask = _mm256_or_si256(upper, _mm256_sllv_epi32(_mm256_set1_epi32(1), lower));
            }
            mask
        }
    }

    #[inline(always)]
    unsafe fn complete<const LANES: usize, const LINES: usize>(
        lines: [&[u64; LINE]; LINES],
        masks: [Self::Mask; LINES],
    ) -> u32 {
        // SAFETY: the caller vouches for the instructions; both loads lie within the eight words of a line.
        unsafe {
            let zero = _mm256_setzero_si256();
            let [mut low, mut high] = [zero; 2];
            for (line, mask) in lines.into_iter().zip(masks) {
                let words = _mm256_loadu_si256(line.as_ptr().cast());
                low = _mm256_or_si256(low, _mm256_andnot_si256(words, mask[0]));
                let words = _mm256_loadu_si256(line.as_ptr().add(4).cast());
                high = _mm256_or_si256(high, _mm256_andnot_si256(words, mask[1]));
            }
            match LANES {
                8 => {
                    let (low, high) = (_mm256_cmpeq_epi64(low, zero), _mm256_cmpeq_epi64(high, zero));
                    let (low, high) = (_mm256_castsi256_pd(low), _mm256_castsi256_pd(high));
                    (_mm256_movemask_pd(low) | _mm256_movemask_pd(high) << 4) as u32
                }
                16 => {
                    let (low, high) = (_mm256_cmpeq_epi32(low, zero), _mm256_cmpeq_epi32(high, zero));
                    let (low, high) = (_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
                    (_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8) as u32
                }
                _ => {
                    // Packing works within 128 bits; the permutation puts the quarters back in order.
                    let (low, high) = (_mm256_cmpeq_epi16(low, zero), _mm256_cmpeq_epi16(high, zero));
                    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
                    _mm256_movemask_epi8(packed) as u32
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(line: &mut [u64; LINE], mask: Self::Mask, lanes: u32) {
        // SAFETY: the caller vouches for the instructions; loads and stores lie within the eight words of a line.
        unsafe {
            for (half, mask) in mask.into_iter().enumerate() {
                let lanes = lanes >> (LANES / 2 * half);
                let chosen = match LANES {
                    8 => {
                        let bits = _mm256_setr_epi64x(1, 2, 4, 8);
                        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64::from(lanes)), bits), bits)
                    }
                    16 => {
                        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(lanes as i32), bits), bits)
                    }
                    _ => {
                        let bits = _mm256_sllv_epi32(
                            _mm256_set1_epi32(0x2_0001),
                            _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14),
                        );
                        _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(lanes as i16), bits), bits)
                    }
                };
                let place = line.as_mut_ptr().add(4 * half);
                let words = _mm256_loadu_si256(place.cast_const().cast());
                _mm256_storeu_si256(place.cast(), _mm256_or_si256(words, _mm256_and_si256(mask, chosen)));
            }
        }
    }
}

/// [`kernel::insert`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub unsafe fn insert<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
) {
    kernel::insert::<Avx2, LANES, LINES>(lines, words, phase, hashes, run);
}

/// [`kernel::query`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub unsafe fn query<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &[u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    present: &mut [bool],
) {
    kernel::query::<Avx2, LANES, LINES>(lines, words, phase, hashes, run, present);
}

/// [`kernel::duplicated`] in these instructions.
///
/// # Safety
///
/// The processor has them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub unsafe fn duplicated<const LANES: usize, const LINES: usize>(
    lines: &Lines<LANES, LINES>,
    words: &mut [u64],
    phase: Phase,
    hashes: &[u64],
    run: Range<usize>,
    refresh: bool,
    seen: &mut [bool],
) -> u64 {
    kernel::duplicated::<Avx2, LANES, LINES>(lines, words, phase, hashes, run, refresh, seen)
}
