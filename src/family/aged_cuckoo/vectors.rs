//! Comparisons of 32 bytes at once, as masks with a bit for each byte.

use crate::instructions::Machine;
#[cfg(any(test, not(target_arch = "x86_64")))]
use crate::instructions::Portable;

/// The comparisons that lines need.
pub trait ByteVectors: Machine {
    /// Returns which bytes equal `value`.
    fn equal(self, bytes: &[u8; 32], value: u8) -> u32;

    /// Returns which bytes lie in the cyclic range from `low` to `low + span`.
    fn within(self, bytes: &[u8; 32], low: u8, span: u8) -> u32;
}

/// SSE2, which every processor of this architecture has: two halves of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod sse2 {
    use std::arch::x86_64::*;

    use super::ByteVectors;
    use crate::instructions::Portable;

    impl ByteVectors for Portable {
        #[inline(always)]
        fn equal(self, bytes: &[u8; 32], value: u8) -> u32 {
            // SAFETY: SSE2 is part of x86_64.
            let [low, high] = bytemuck::cast::<[u8; 32], [__m128i; 2]>(*bytes)
                .map(|half| unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(half, _mm_set1_epi8(value as i8))) as u32 });
            low | high << 16
        }

        #[inline(always)]
        fn within(self, bytes: &[u8; 32], low: u8, span: u8) -> u32 {
            // SAFETY: SSE2 is part of x86_64.
            let [low, high] = bytemuck::cast::<[u8; 32], [__m128i; 2]>(*bytes).map(|half| unsafe {
                let above = _mm_sub_epi8(half, _mm_set1_epi8(low as i8));
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(span as i8)), above)) as u32
            });
            low | high << 16
        }
    }
}

/// Plain code, which compilers vectorise where they can.
#[cfg(not(target_arch = "x86_64"))]
impl ByteVectors for Portable {
    #[inline(always)]
    fn equal(self, bytes: &[u8; 32], value: u8) -> u32 {
        mask(bytes.map(|byte| byte == value))
    }

    #[inline(always)]
    fn within(self, bytes: &[u8; 32], low: u8, span: u8) -> u32 {
        mask(bytes.map(|byte| byte.wrapping_sub(low) <= span))
    }
}

/// Returns the bits of 32 truths: eight at a time, by a product that moves the lowest bit of each byte to the top byte.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn mask(truths: [bool; 32]) -> u32 {
    let eighths: [[bool; 8]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| truths[8 * i + j]));
    let bits = eighths.map(|eight| u64::from_le_bytes(eight.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56);
    (0..).zip(bits).fold(0, |all, (i, bits)| all | (bits as u32) << (8 * i))
}

/// One vector of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::ByteVectors;
    use crate::instructions::Avx2;

    impl ByteVectors for Avx2 {
        #[inline(always)]
        fn equal(self, bytes: &[u8; 32], value: u8) -> u32 {
            let bytes = bytemuck::cast::<[u8; 32], __m256i>(*bytes);
            // SAFETY: an `Avx2` exists, so the processor has the instructions.
            unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(value as i8))) as u32 }
        }

        #[inline(always)]
        fn within(self, bytes: &[u8; 32], low: u8, span: u8) -> u32 {
            let bytes = bytemuck::cast::<[u8; 32], __m256i>(*bytes);
            // SAFETY: as above.
            unsafe {
                let above = _mm256_sub_epi8(bytes, _mm256_set1_epi8(low as i8));
                let least = _mm256_min_epu8(above, _mm256_set1_epi8(span as i8));
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, above)) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::instructions::Avx512;
    use crate::instructions::{Instructions, Work};

    struct Compare<'a>(&'a [u8; 32], [u8; 2]);

    impl<M: ByteVectors> Work<M> for Compare<'_> {
        type Output = [u32; 2];

        fn run(self, machine: M) -> [u32; 2] {
            let Self(bytes, [a, b]) = self;
            [machine.equal(bytes, a), machine.within(bytes, a, b)]
        }
    }

    #[test]
    fn all_instruction_sets_compare_like_single_bytes() {
        let mut state = 1u64;
        for round in 0..2_000u64 {
            let mut next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 56) as u8 & if round % 2 == 0 { 0xff } else { 7 }
            };
            let (bytes, [a, b]): ([u8; 32], [u8; 2]) = (std::array::from_fn(|_| next()), [next(), next()]);
            let expected = [mask(bytes.map(|byte| byte == a)), mask(bytes.map(|byte| byte.wrapping_sub(a) <= b))];
            let single = bytes.iter().rev().fold(0, |all, &byte| all << 1 | u32::from(byte == a));
            assert_eq!(expected[0], single);
            for instructions in Instructions::available() {
                let compare = Compare(&bytes, [a, b]);
                let compared = match instructions {
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx2(machine) | Instructions::Avx512(Avx512(machine)) => machine.run(compare),
                    _ => Portable.run(compare),
                };
                assert_eq!(compared, expected);
            }
        }
    }
}
