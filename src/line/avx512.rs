//! Lines in one piece: AVX-512, with its instructions for bytes and words.

use std::arch::x86_64::*;
use std::ops::Range;

use super::kernel::{fetch_ahead, groups, runs_of_keys};
use super::{LINE, Lines, Phase, SUBLANES, Spot};
use crate::bits::Address;

type Mask = __m512i;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn mask(seed: u32) -> Mask {
    // SAFETY: the load is of the sixteen constants.
    let constants = unsafe { _mm512_loadu_si512(SUBLANES.as_ptr().cast()) };
    let products = _mm512_mullo_epi32(_mm512_set1_epi32(seed as i32), constants);
    let upper = _mm512_srli_epi32::<28>(products);
    let lower = _mm512_and_si512(_mm512_srli_epi32::<24>(products), _mm512_set1_epi32(15));
    let upper = _mm512_sllv_epi32(_mm512_set1_epi32(0x1_0000), upper);
    _mm512_or_si512(upper, _mm512_sllv_epi32(_mm512_set1_epi32(1), lower))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn missing(line: &[u64; LINE], mask: Mask) -> Mask {
    // SAFETY: the load is of the eight words of a line.
    _mm512_andnot_si512(unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }, mask)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn either(a: Mask, b: Mask) -> Mask {
    _mm512_or_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn complete<const LANES: usize>(missing: Mask) -> u32 {
    match LANES {
        8 => u32::from(_mm512_testn_epi64_mask(missing, missing)),
        16 => u32::from(_mm512_testn_epi32_mask(missing, missing)),
        _ => _mm512_testn_epi16_mask(missing, missing),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn set<const LANES: usize>(line: &mut [u64; LINE], mask: Mask, lanes: u32) {
    let mask = match LANES {
        8 => _mm512_maskz_mov_epi64(lanes as u8, mask),
        16 => _mm512_maskz_mov_epi32(lanes as u16, mask),
        _ => _mm512_maskz_mov_epi16(lanes, mask),
    };
    // SAFETY: load and store are of the eight words of a line.
    unsafe {
        let words = _mm512_loadu_si512(line.as_ptr().cast());
        _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(words, mask));
    }
}

runs_of_keys!(#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]);
