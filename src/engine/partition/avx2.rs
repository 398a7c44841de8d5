//! Four hashes in one step, by AVX2. It has no instruction that moves selected words together, but one that permutes.
//! BMI2 moves eight answers apart.

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

impl Partitioner for Avx2 {
    #[inline(always)]
    fn select(self, hashes: &[u64; GROUP], least: u64, width: u64, out: &mut [u64; GROUP]) -> u8 {
        let (first, second) = (&hashes[..HALF], &hashes[HALF..]);
        let selected = select_half(self, first, least, width, out);
        selected | select_half(self, second, least, width, &mut out[selected.count_ones() as usize..]) << HALF
    }

    #[inline(always)]
    fn expand(self, bits: u64, own: &[bool; WORD], answers: &mut [bool; WORD]) {
        const BYTES: u64 = u64::MAX / 255;
        let mut next = 0;
        for (i, answers) in answers.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let bits = bits >> (8 * i) & 255;
            // At most 56 answers come before the last eight.
            let Some(own) = own[next..].first_chunk::<8>() else { return };
            next += bits.count_ones() as usize;
            // SAFETY: an `Avx2` exists, so the processor has the instructions.
            let (places, own) = unsafe {
                let places = _pdep_u64(bits, BYTES) * 255;
                (places, _pdep_u64(u64::from_le_bytes(own.map(u8::from)), places))
            };
            let all = u64::from_le_bytes(answers.map(u8::from)) & !places | own;
            *answers = all.to_le_bytes().map(|byte| byte != 0);
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
