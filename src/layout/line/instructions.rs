//! The instruction sets that lines are worked on with. One is chosen for a filter.

use super::portable::Portable;
use super::vectors::{Vectors, Work};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// The instruction set of a filter, looked up once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instructions {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Instructions {
    /// All that the processor has, the best last.
    pub fn available() -> impl Iterator<Item = Self> {
        let available = [Some(Self::Portable(Portable))].into_iter();
        #[cfg(target_arch = "x86_64")]
        let available = available.chain([Avx2::detect().map(Self::Avx2), Avx512::detect().map(Self::Avx512)]);
        available.flatten()
    }

    /// The best of them.
    pub fn best() -> Self {
        Self::available().last().expect("every processor has the portable ones")
    }

    /// Does work with these instructions.
    #[inline(always)]
    pub fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            Self::Portable(portable) => portable.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(work),
        }
    }
}
