//! NEON, for the comparison of lanes. Counted under an emulator, queries take a quarter fewer instructions than the
//! portable ones; the speed has not been measured. NEON cannot move selected bits of a word together or apart.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::*;

use super::format::{Format, Line};
use super::slots::Slots;
use crate::instructions::Neon;

/// The bits of a byte, twice.
static BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Slots for Neon {
    #[inline(always)]
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64 {
        // SAFETY: NEON is part of aarch64; the loads are of two of the eight words of a line, and of sixteen bytes.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            if format.lane == 1 {
                let (value, mask, mut equal) = (vdupq_n_u8(value as u8), vdupq_n_u8(mask as u8), [bits; 4]);
                for (i, equal) in equal.iter_mut().enumerate() {
                    let lanes = vreinterpretq_u8_u64(vld1q_u64(line[2 * i..][..2].as_ptr()));
                    *equal = vandq_u8(vceqq_u8(vandq_u8(lanes, mask), value), bits);
                }
                let eighths = vpaddq_u8(vpaddq_u8(equal[0], equal[1]), vpaddq_u8(equal[2], equal[3]));
                vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(eighths, eighths))) >> format.lanes
            } else {
                let (value, mask) = (vdupq_n_u16(value as u16), vdupq_n_u16(mask as u16));
                let mut equal = [mask; 4];
                for (i, equal) in equal.iter_mut().enumerate() {
                    let lanes = vreinterpretq_u16_u64(vld1q_u64(line[2 * i..][..2].as_ptr()));
                    *equal = vceqq_u16(vandq_u16(lanes, mask), value);
                }
                let [a, b, c, d] = equal.map(|equal| vreinterpretq_u8_u16(equal));
                let (low, high) = (vandq_u8(vuzp1q_u8(a, b), bits), vandq_u8(vuzp1q_u8(c, d), bits));
                let quarters = vpaddq_u8(low, high);
                let eighths = vpaddq_u8(quarters, quarters);
                let equal = vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(eighths, eighths)));
                u64::from(equal) >> (format.lanes / 2)
            }
        }
    }
}
