//! Lines in one piece: AVX-512, with its instructions for bytes and words.

use std::arch::x86_64::*;
use std::ops::Range;

use super::kernel::{InFlight, READ, blocks, runs_of_keys};
use super::{LINE, Lines, Phase, SUBLANES, Spot};

type Mask = __m512i;

/// The bits of a sub-lane, twice over: what chooses among them is read to five bits, of which four count.
static BITS: [u16; 32] = {
    let (mut bits, mut i) = ([0; 32], 0);
    while i < 32 {
        bits[i] = 1 << (i % 16);
        i += 1;
    }
    bits
};

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn mask(seed: u32) -> Mask {
    // SAFETY: the loads are of the sixteen constants and of the 32 bits to choose from.
    let (constants, bits) =
        unsafe { (_mm512_loadu_si512(SUBLANES.as_ptr().cast()), _mm512_loadu_si512(BITS.as_ptr().cast())) };
    let products = _mm512_mullo_epi32(_mm512_set1_epi32(seed as i32), constants);
    let (upper, lower) = (_mm512_srli_epi32::<12>(products), _mm512_srli_epi32::<24>(products));
    // The halves of both: where the first has a bit that of the second, else that of the third.
    let places = _mm512_ternarylogic_epi32::<0b1100_1010>(_mm512_set1_epi32(-1 << 16), upper, lower);
    _mm512_permutexvar_epi16(places, bits)
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
fn set(line: &mut [u64; LINE], mask: Mask, lanes: &[u64; LINE]) {
    // SAFETY: loads and store are of eight words.
    unsafe {
        let (words, lanes) = (_mm512_loadu_si512(line.as_ptr().cast()), _mm512_loadu_si512(lanes.as_ptr().cast()));
        _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(words, _mm512_and_si512(mask, lanes)));
    }
}

runs_of_keys!(#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]);
