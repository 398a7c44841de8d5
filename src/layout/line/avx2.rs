//! Lines in two halves of 256 bits: AVX2.

use std::arch::x86_64::*;
use std::ops::Range;

use super::kernel::{InFlight, READ, blocks, runs_of_keys};
use super::{LINE, Lines, Phase, SUBLANES, Spot};

type Mask = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn mask(seed: u32) -> Mask {
    [half_mask(seed, 0), half_mask(seed, 8)]
}

/// The half of a mask that is made by the eight constants from `first` on.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn half_mask(seed: u32, first: usize) -> __m256i {
    // SAFETY: the load is of eight of the sixteen constants, and of nothing beyond them.
    let constants = unsafe { _mm256_loadu_si256(SUBLANES[first..first + 8].as_ptr().cast()) };
    let products = _mm256_mullo_epi32(_mm256_set1_epi32(seed as i32), constants);
    let upper = _mm256_srli_epi32::<28>(products);
    let lower = _mm256_and_si256(_mm256_srli_epi32::<24>(products), _mm256_set1_epi32(15));
    let upper = _mm256_sllv_epi32(_mm256_set1_epi32(0x1_0000), upper);
    _mm256_or_si256(upper, _mm256_sllv_epi32(_mm256_set1_epi32(1), lower))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn missing(line: &[u64; LINE], mask: Mask) -> Mask {
    // SAFETY: the loads are of four each of the eight words of a line.
    let words = unsafe { [_mm256_loadu_si256(line.as_ptr().cast()), _mm256_loadu_si256(line[4..].as_ptr().cast())] };
    [_mm256_andnot_si256(words[0], mask[0]), _mm256_andnot_si256(words[1], mask[1])]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn either(a: Mask, b: Mask) -> Mask {
    [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn complete<const LANES: usize>([low, high]: Mask) -> u32 {
    let zero = _mm256_setzero_si256();
    match LANES {
        8 => {
            let low = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(low, zero)));
            let high = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(high, zero)));
            (low | high << 4) as u32
        }
        16 => {
            let low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(low, zero)));
            let high = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(high, zero)));
            (low | high << 8) as u32
        }
        _ => {
            // Packing works within 128 bits; the permutation puts the quarters back in order.
            let packed = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, zero), _mm256_cmpeq_epi16(high, zero));
            _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(packed)) as u32
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set(line: &mut [u64; LINE], mask: Mask, lanes: &[u64; LINE]) {
    for (half, mask) in mask.into_iter().enumerate() {
        let (words, lanes) = (&mut line[4 * half..][..4], &lanes[4 * half..][..4]);
        // SAFETY: loads and store are of four words.
        unsafe {
            let set = _mm256_and_si256(mask, _mm256_loadu_si256(lanes.as_ptr().cast()));
            let old = _mm256_loadu_si256(words.as_ptr().cast());
            _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm256_or_si256(old, set));
        }
    }
}

runs_of_keys!(#[target_feature(enable = "avx2,bmi1,bmi2")]);
