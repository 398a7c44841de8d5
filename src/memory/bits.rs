//! Arithmetic on bits that the layouts share.

use std::ops::{BitAnd, BitOr, Shl, Shr};

/// Returns `hash` scaled to `0..range`: the high half of the product, which uses the top bits and needs no division.
#[inline(always)]
pub fn scale(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

/// Returns a number whose `n` lowest bits are set; `n` is at most 128.
pub fn ones(n: u32) -> u128 {
    u128::MAX.checked_shr(128 - n).unwrap_or(0)
}

/// A vector of bits, `u64` or `u128`: shifts of `u64` take a fifth of the time.
pub trait BitVector:
    Copy
    + Default
    + PartialEq
    + From<bool>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
}

impl BitVector for u64 {}
impl BitVector for u128 {}

/// Returns whether `bits` has at least `length` consecutive ones.
///
/// Each step shortens every run of ones: after it, a bit is one if `covered` bits from it on were.
#[inline(always)]
pub fn has_run<V: BitVector>(mut bits: V, length: u32) -> bool {
    let mut covered = 1;
    while covered < length {
        let step = covered.min(length - covered);
        bits = bits & bits >> step;
        covered += step;
    }
    bits != V::default()
}

/// A Weyl constant: 2^64 divided by the golden ratio.
pub const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a fixed sequence of odd 64-bit constants, from number `skip` on: the splitmix64 generator from 0, with the
/// lowest bit set.
pub const fn odd_constants<const N: usize>(skip: u64) -> [u64; N] {
    let mut constants = [0; N];
    let mut i = 0;
    while i < N {
        let mut z = WEYL.wrapping_mul(skip + i as u64 + 1);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        constants[i] = (z ^ (z >> 31)) | 1;
        i += 1;
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_where_a_plain_count_finds_them() {
        let mut bits = 1u128;
        for round in 0..2000u32 {
            bits = bits.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            let bits = if round % 2 == 0 { bits } else { bits | bits >> 1 | bits >> 3 };
            let bits = if round % 3 == 0 { bits >> 64 } else { bits };
            let longest = (0..128).scan(0, |run, i| {
                *run = if bits >> i & 1 == 1 { *run + 1 } else { 0 };
                Some(*run)
            });
            let longest = longest.max().unwrap();
            for length in 1..=128 {
                assert_eq!(has_run(bits, length), length <= longest, "{bits:b} {length}");
                if length <= 64 && bits >> 64 == 0 {
                    assert_eq!(has_run(bits as u64, length), length <= longest, "{bits:b} {length}");
                }
            }
        }
        assert!(has_run(u128::MAX, 128) && !has_run(u128::MAX >> 1, 128) && !has_run(0u64, 1));
    }

    #[test]
    fn scaling_covers_the_range_and_nothing_beyond() {
        assert_eq!([scale(0, 7), scale(u64::MAX, 7), scale(1 << 63, 7)], [0, 6, 3]);
        assert_eq!([ones(0), ones(1), ones(127), ones(128)], [0, 1, u128::MAX >> 1, u128::MAX]);
    }
}
