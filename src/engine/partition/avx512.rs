//! Eight hashes in one step: AVX-512 moves selected hashes together, and the answers of a word apart.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::{GROUP, Partitioner, WORD};
use crate::instructions::Avx512;

impl Partitioner for Avx512 {
    #[inline(always)]
    fn select(self, hashes: &[u64; GROUP], least: u64, width: u64, out: &mut [u64; GROUP]) -> u8 {
        // SAFETY: an `Avx512` exists, so the processor has the instructions; load and store are of eight words.
        unsafe {
            let hashes = _mm512_loadu_si512(hashes.as_ptr().cast());
            let above = _mm512_sub_epi64(hashes, _mm512_set1_epi64(least as i64));
            let selected = _mm512_cmple_epu64_mask(above, _mm512_set1_epi64(width as i64));
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_maskz_compress_epi64(selected, hashes));
            selected
        }
    }

    #[inline(always)]
    fn expand(self, bits: u64, own: &[bool; WORD], answers: &mut [bool; WORD]) {
        // SAFETY: as above; loads and store are of 64 bytes, and what is stored are bytes of either, all of them bools.
        unsafe {
            let (own, old) = (_mm512_loadu_si512(own.as_ptr().cast()), _mm512_loadu_si512(answers.as_ptr().cast()));
            _mm512_storeu_si512(answers.as_mut_ptr().cast(), _mm512_mask_expand_epi8(old, bits, own));
        }
    }
}
