//! A cache line of keys, each with a stamp.

use bytemuck::{Pod, Zeroable};

/// A stamp: when a key was last seen, counted from 1; 0 marks a place without a key.
pub trait Stamp: Copy + Ord + Into<u64> {
    /// The greatest stamp.
    const LAST: u64;

    /// Returns the stamp of a number, which is at most [`LAST`](Self::LAST).
    fn of(number: u64) -> Self;
}

impl Stamp for u32 {
    const LAST: u64 = u32::MAX as u64;

    #[inline(always)]
    fn of(number: u64) -> Self {
        number as u32
    }
}

impl Stamp for u64 {
    const LAST: u64 = u64::MAX;

    #[inline(always)]
    fn of(number: u64) -> Self {
        number
    }
}

/// A cache line of hashes with stamps, in 64 bytes.
pub trait StampLine: Pod + Send + Sync {
    type Stamp: Stamp;
    const KEYS: usize;

    fn hashes(&self) -> &[u64];
    fn stamps(&self) -> &[Self::Stamp];
    /// Returns the greatest stamp of a key that lies in a later line because this line was full.
    fn passed(&self) -> Self::Stamp;

    fn write(&mut self, place: usize, hash: u64, stamp: Self::Stamp);
    fn pass(&mut self, stamp: Self::Stamp);
    /// Makes all stamps earlier by `by`; those not later than that become 0.
    fn rebase(&mut self, by: Self::Stamp);

    /// Returns the places of this hash as one bit each. Places that were never taken have the hash 0. The one key of
    /// that hash may use them like its own, because its search ends there.
    #[inline(always)]
    fn places_of(&self, hash: u64) -> u8 {
        bits(self.hashes(), |&own| own == hash)
    }

    /// Returns the places whose stamps lie before `alive`.
    #[inline(always)]
    fn places_before(&self, alive: Self::Stamp) -> u8 {
        bits(self.stamps(), |&stamp| stamp < alive)
    }
}

#[inline(always)]
fn bits<T>(places: &[T], is: impl Fn(&T) -> bool) -> u8 {
    places.iter().enumerate().fold(0, |bits, (place, it)| bits | u8::from(is(it)) << place)
}

/// Defines a line of `$keys` keys with stamps of one type, and `$unused` unused words.
macro_rules! line {
    ($(#[$text:meta])* $Line:ident, $keys:literal, $Stamp:ty, $unused:literal) => {
        $(#[$text])*
        #[derive(Clone, Copy)]
        #[repr(C, align(64))]
        pub struct $Line {
            hashes: [u64; $keys],
            stamps: [$Stamp; $keys],
            passed: $Stamp,
            _unused: [u64; $unused],
        }

        // No byte of the line is padding.
        const _: () = assert!(size_of::<$Line>() == ($keys + $unused) * 8 + ($keys + 1) * size_of::<$Stamp>());

        // SAFETY: numbers fill the line, and all bits of a number are valid.
        #[allow(unsafe_code, reason = "the derive macro would triple the build time")]
        unsafe impl Zeroable for $Line {}
        // SAFETY: as above.
        #[allow(unsafe_code, reason = "the derive macro would triple the build time")]
        unsafe impl Pod for $Line {}

        impl StampLine for $Line {
            type Stamp = $Stamp;
            const KEYS: usize = $keys;

            #[inline(always)]
            fn hashes(&self) -> &[u64] {
                &self.hashes
            }

            #[inline(always)]
            fn stamps(&self) -> &[$Stamp] {
                &self.stamps
            }

            #[inline(always)]
            fn passed(&self) -> $Stamp {
                self.passed
            }

            #[inline(always)]
            fn write(&mut self, place: usize, hash: u64, stamp: $Stamp) {
                self.hashes[place] = hash;
                self.stamps[place] = stamp;
            }

            #[inline(always)]
            fn pass(&mut self, stamp: $Stamp) {
                self.passed = self.passed.max(stamp);
            }

            fn rebase(&mut self, by: $Stamp) {
                for stamp in self.stamps.iter_mut().chain([&mut self.passed]) {
                    *stamp = stamp.saturating_sub(by);
                }
            }
        }
    };
}

line!(
    /// Five keys, stamped with numbers of keys.
    Counted, 5, u32, 0
);
line!(
    /// Three keys, stamped with times.
    Timed, 3, u64, 1
);
