//! Lines in four quarters of 128 bits: NEON. Counted under an emulator, a query takes 69, 117 and 172 instructions with
//! 8, 16 and 32 lanes in one, two and three lines, where the compiler makes 127, 275 and 506 of the portable code; its
//! speed has not been measured.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::*;

use super::vectors::Vectors;
use super::{LINE, SUBLANES};
use crate::instructions::Neon;

/// The bits of a byte, twice.
static BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

// SAFETY, of all blocks here: NEON is part of aarch64.
impl Vectors for Neon {
    type Mask = [uint16x8_t; 4];

    #[inline(always)]
    fn mask(self, seed: u32) -> Self::Mask {
        // SAFETY: as above.
        unsafe {
            // The highest byte of each product has the place in the upper sub-lane above the place in the lower one.
            let low = vuzp2q_u16(products(self, seed, 0), products(self, seed, 4));
            let high = vuzp2q_u16(products(self, seed, 8), products(self, seed, 12));
            let pairs = vuzp2q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
            let (upper, lower) = (vshrq_n_u8::<4>(pairs), vandq_u8(pairs, vdupq_n_u8(15)));
            let (low, high) = (vzip1q_u8(lower, upper), vzip2q_u8(lower, upper));
            let one = vdupq_n_u16(1);
            [
                vshlq_u16(one, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(low)))),
                vshlq_u16(one, vreinterpretq_s16_u16(vmovl_high_u8(low))),
                vshlq_u16(one, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(high)))),
                vshlq_u16(one, vreinterpretq_s16_u16(vmovl_high_u8(high))),
            ]
        }
    }

    #[inline(always)]
    fn missing(self, line: &[u64; LINE], mut mask: Self::Mask) -> Self::Mask {
        for (i, mask) in mask.iter_mut().enumerate() {
            // SAFETY: as above.
            *mask = unsafe { vbicq_u16(*mask, quarter(self, line, i)) };
        }
        mask
    }

    #[inline(always)]
    fn either(self, mut a: Self::Mask, b: Self::Mask) -> Self::Mask {
        for (a, b) in a.iter_mut().zip(b) {
            // SAFETY: as above.
            *a = unsafe { vorrq_u16(*a, b) };
        }
        a
    }

    #[inline(always)]
    fn complete<const LANES: usize>(self, [a, b, c, d]: Self::Mask) -> u32 {
        // SAFETY: as above, and the load is of sixteen bytes.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            match LANES {
                8 => {
                    let low = vuzp1q_u32(complete_64(self, a), complete_64(self, b));
                    let high = vuzp1q_u32(complete_64(self, c), complete_64(self, d));
                    let lanes = vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
                    u32::from(vaddvq_u16(vandq_u16(lanes, vmovl_u8(vget_low_u8(bits)))))
                }
                16 => {
                    let low = vuzp1q_u16(complete_32(self, a), complete_32(self, b));
                    let high = vuzp1q_u16(complete_32(self, c), complete_32(self, d));
                    let lanes = vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
                    let lanes = vandq_u8(lanes, bits);
                    gathered(self, lanes, lanes) & 0xffff
                }
                _ => {
                    let low = vuzp1q_u8(complete_16(self, a), complete_16(self, b));
                    let high = vuzp1q_u8(complete_16(self, c), complete_16(self, d));
                    gathered(self, vandq_u8(low, bits), vandq_u8(high, bits))
                }
            }
        }
    }

    #[inline(always)]
    fn set(self, line: &mut [u64; LINE], mask: Self::Mask, lanes: &[u64; LINE]) {
        for (i, mask) in mask.into_iter().enumerate() {
            // SAFETY: as above, and the store is of two of the eight words of a line.
            unsafe {
                let set = vorrq_u16(quarter(self, line, i), vandq_u16(mask, quarter(self, lanes, i)));
                vst1q_u64(line[2 * i..][..2].as_mut_ptr(), vreinterpretq_u64_u16(set));
            }
        }
    }
}

/// Returns the products of the seed and four constants from `first` on.
#[inline(always)]
fn products(_: Neon, seed: u32, first: usize) -> uint16x8_t {
    // SAFETY: as above, and the load is of four constants.
    unsafe { vreinterpretq_u16_u32(vmulq_n_u32(vld1q_u32(SUBLANES[first..][..4].as_ptr()), seed)) }
}

/// Returns two of the eight words of a line.
#[inline(always)]
fn quarter(_: Neon, line: &[u64; LINE], i: usize) -> uint16x8_t {
    // SAFETY: as above, and the load is of two words.
    unsafe { vreinterpretq_u16_u64(vld1q_u64(line[2 * i..][..2].as_ptr())) }
}

/// Returns all ones in the lanes of 64 bits without a missing bit.
#[inline(always)]
fn complete_64(_: Neon, missing: uint16x8_t) -> uint32x4_t {
    // SAFETY: as above.
    unsafe { vreinterpretq_u32_u64(vceqzq_u64(vreinterpretq_u64_u16(missing))) }
}

/// Returns all ones in the lanes of 32 bits without a missing bit.
#[inline(always)]
fn complete_32(_: Neon, missing: uint16x8_t) -> uint16x8_t {
    // SAFETY: as above.
    unsafe { vreinterpretq_u16_u32(vceqzq_u32(vreinterpretq_u32_u16(missing))) }
}

/// Returns all ones in the lanes of 16 bits without a missing bit.
#[inline(always)]
fn complete_16(_: Neon, missing: uint16x8_t) -> uint8x16_t {
    // SAFETY: as above.
    unsafe { vreinterpretq_u8_u16(vceqzq_u16(missing)) }
}

/// Returns the bits of 32 bytes side by side. Each byte has at most the bit of its own place among eight.
#[inline(always)]
fn gathered(_: Neon, low: uint8x16_t, high: uint8x16_t) -> u32 {
    // SAFETY: as above.
    unsafe {
        let quarters = vpaddq_u8(low, high);
        let halves = vpaddq_u8(quarters, quarters);
        vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(halves, halves)))
    }
}
