//! Four hashes in one step, by AVX2, and eight answers. It has no instructions that move selected words together or
//! bytes apart, but some that permute. (`pdep` moves eight answers apart, too: in 3 cycles on most processors, in
//! hundreds on AMD's before Zen 3, where two threads then gained nothing.)

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::{GROUP, Partitioner, WORD};
use crate::instructions::Avx2;

/// Number of hashes in a vector.
const HALF: usize = GROUP / 2;

/// For each selection of four hashes, the 32-bit halves to move to the front: two of each selected hash, in order. The
/// rest may be any.
static TOGETHER: [[u32; GROUP]; 1 << HALF] = {
    let (mut halves, mut selected) = ([[0; GROUP]; 1 << HALF], 0);
    while selected < 1 << HALF {
        let (mut hash, mut count) = (0, 0);
        while hash < HALF {
            if selected >> hash & 1 == 1 {
                (halves[selected][count], halves[selected][count + 1]) = (2 * hash as u32, 2 * hash as u32 + 1);
                count += 2;
            }
            hash += 1;
        }
        selected += 1;
    }
    halves
};

/// For each selection of eight answers, the place among the selected that each of the eight has; 128 without one.
static APART: [[u8; GROUP]; 1 << GROUP] = {
    let (mut places, mut selected) = ([[128; GROUP]; 1 << GROUP], 0);
    while selected < 1 << GROUP {
        let (mut answer, mut count) = (0, 0);
        while answer < GROUP {
            if selected >> answer & 1 == 1 {
                (places[selected][answer], count) = (count, count + 1);
            }
            answer += 1;
        }
        selected += 1;
    }
    places
};

impl Partitioner for Avx2 {
    #[inline(always)]
    fn select(self, hashes: &[u64; GROUP], least: u64, width: u64, out: &mut [u64; GROUP]) -> u8 {
        let (first, second) = (&hashes[..HALF], &hashes[HALF..]);
        let selected = select_half(self, first, least, width, out);
        selected | select_half(self, second, least, width, &mut out[selected.count_ones() as usize..]) << HALF
    }

    #[inline(always)]
    fn expand(self, bits: u64, own: &[bool; WORD], answers: &mut [bool; WORD]) {
        let mut next = 0;
        for (bits, answers) in bits.to_le_bytes().into_iter().zip(answers.as_chunks_mut::<GROUP>().0) {
            // At most 56 answers come before the last eight.
            let Some(own) = own[next..].first_chunk::<GROUP>() else { return };
            next += bits.count_ones() as usize;
            // SAFETY: an `Avx2` exists, so the processor has the instructions; loads and store are of eight bytes, and
            // what is stored are bytes of either, all of them bools.
            unsafe {
                let places = _mm_loadl_epi64(APART[usize::from(bits)].as_ptr().cast());
                let (own, old) = (_mm_loadl_epi64(own.as_ptr().cast()), _mm_loadl_epi64(answers.as_ptr().cast()));
                let new = _mm_blendv_epi8(_mm_shuffle_epi8(own, places), old, places);
                _mm_storel_epi64(answers.as_mut_ptr().cast(), new);
            }
        }
    }
}

/// Selects among four hashes as [`Partitioner::select`] does among eight.
#[inline(always)]
fn select_half(_: Avx2, hashes: &[u64], least: u64, width: u64, out: &mut [u64]) -> u8 {
    let (hashes, out) = (&hashes[..HALF], &mut out[..HALF]);
    // SAFETY: an `Avx2` exists, so the processor has the instructions; loads and store are of four words.
    unsafe {
        let hashes = _mm256_loadu_si256(hashes.as_ptr().cast());
        let above = _mm256_sub_epi64(hashes, _mm256_set1_epi64x(least as i64));
        // The comparison is signed, so the highest bit of both sides is flipped.
        let above = _mm256_xor_si256(above, _mm256_set1_epi64x(i64::MIN));
        let beyond = _mm256_cmpgt_epi64(above, _mm256_set1_epi64x(width as i64 ^ i64::MIN));
        let selected = !_mm256_movemask_pd(_mm256_castsi256_pd(beyond)) as u8 & 0b1111;
        let halves = _mm256_loadu_si256(TOGETHER[usize::from(selected)].as_ptr().cast());
        _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_permutevar8x32_epi32(hashes, halves));
        selected
    }
}
