//! Lines by 64-bit words alone.

use super::kernel::Simd;
use super::{LINE, SUBLANES};

/// No instructions but those that every processor has.
pub struct Portable;

impl Simd for Portable {
    type Mask = [u64; LINE];

    #[inline(always)]
    unsafe fn mask(seed: u32) -> Self::Mask {
        let pair = |i: usize| {
            let product = seed.wrapping_mul(SUBLANES[i]);
            0x1_0000u32 << (product >> 28) | 1 << (product >> 24 & 15)
        };
        std::array::from_fn(|word| u64::from(pair(2 * word)) | u64::from(pair(2 * word + 1)) << 32)
    }

    #[inline(always)]
    unsafe fn complete<const LANES: usize, const LINES: usize>(
        lines: [&[u64; LINE]; LINES],
        masks: [Self::Mask; LINES],
    ) -> u32 {
        let mut missing = [0; LINE];
        for (line, mask) in lines.into_iter().zip(masks) {
            for i in 0..LINE {
                missing[i] |= mask[i] & !line[i];
            }
        }
        let none_missing = |lane| missing[lane / (LANES / LINE)] & bits::<LANES>(lane) == 0;
        (0..LANES).fold(0, |complete, lane| complete | u32::from(none_missing(lane)) << lane)
    }

    #[inline(always)]
    unsafe fn set<const LANES: usize>(line: &mut [u64; LINE], mask: Self::Mask, lanes: u32) {
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            line[lane / (LANES / LINE)] |= mask[lane / (LANES / LINE)] & bits::<LANES>(lane);
            left &= left - 1;
        }
    }
}

/// The bits of a lane in its word.
#[inline(always)]
fn bits<const LANES: usize>(lane: usize) -> u64 {
    let per_word = LANES / LINE;
    u64::MAX >> (64 - 64 / per_word) << (lane % per_word * (64 / per_word))
}
