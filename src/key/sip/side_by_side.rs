//! The number of messages that each instruction set hashes side by side.

use super::vectors::Vectors;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use crate::instructions::Neon;
#[cfg(target_arch = "x86_64")]
use crate::instructions::{Avx2, Avx512};
use crate::instructions::{Portable, Work};

/// Work that hashes messages.
pub trait Messages {
    /// Hashes `N` messages at a time, and the remaining ones in sequence.
    fn n_at_a_time<const N: usize>(self, machine: impl Vectors<N>);

    /// Hashes the messages in sequence.
    fn one_by_one(self);
}

/// Work that hashes messages, as many side by side as a vector has words.
pub struct SideBySide<T>(pub T);

impl<T: Messages> Work<Portable> for SideBySide<T> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Portable) {
        self.0.one_by_one();
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Messages> Work<Avx2> for SideBySide<T> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: Avx2) {
        self.0.n_at_a_time::<4>(machine);
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Messages> Work<Avx512> for SideBySide<T> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: Avx512) {
        self.0.n_at_a_time::<8>(machine);
    }
}

/// With two words to a vector nothing is gained.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
impl<T: Messages> Work<Neon> for SideBySide<T> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Neon) {
        self.0.one_by_one();
    }
}
