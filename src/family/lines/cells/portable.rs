//! Lines in sixteen pieces of 32 bits, for every processor; compilers vectorise them where they can.

use super::vectors::Vectors;
use super::{LINE, SUBLANES};
use crate::instructions::Portable;

impl Vectors for Portable {
    type Mask = [u64; LINE];

    // On x86_64 only processors older than AVX2 get here, and all layouts share this function, which would be inlined
    // into each.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn mask(self, seed: u32) -> Self::Mask {
        let mut mask = [0; LINE];
        for (i, constant) in SUBLANES.into_iter().enumerate() {
            let product = seed.wrapping_mul(constant);
            let pair = 0x1_0000u32 << (product >> 28) | 1 << (product >> 24 & 15);
            mask[i / 2] |= u64::from(pair) << (32 * (i % 2));
        }
        mask
    }

    #[inline(always)]
    fn missing(self, line: &[u64; LINE], mask: Self::Mask) -> Self::Mask {
        let mut missing = mask;
        for i in 0..LINE {
            missing[i] &= !line[i];
        }
        missing
    }

    #[inline(always)]
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask {
        let mut either = a;
        for i in 0..LINE {
            either[i] |= b[i];
        }
        either
    }

    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn complete<const LANES: usize>(self, missing: Self::Mask) -> u32 {
        let mut complete = 0;
        for lane in 0..LANES {
            let (word, bits) = lane_bits::<LANES>(lane);
            complete |= u32::from(missing[word] & bits == 0) << lane;
        }
        complete
    }

    #[inline(always)]
    fn set(self, line: &mut [u64; LINE], mask: Self::Mask, lanes: &[u64; LINE]) {
        for i in 0..LINE {
            line[i] |= mask[i] & lanes[i];
        }
    }
}

/// Returns the word of a line in which a lane lies, and the bits of the lane there.
#[inline]
pub const fn lane_bits<const LANES: usize>(lane: usize) -> (usize, u64) {
    let (per_word, width) = (LANES / LINE, 64 * LINE / LANES);
    (lane / per_word, u64::MAX >> (64 - width) << (lane % per_word * width))
}
