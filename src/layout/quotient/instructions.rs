//! Which instruction set a filter works with, looked up once.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::machine::{Machine, Portable, Work};

/// An instruction set of this processor.
#[derive(Clone, Copy)]
pub enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Instructions {
    /// All that the processor has, the best last.
    pub fn available() -> impl Iterator<Item = Self> {
        #[cfg(not(target_arch = "x86_64"))]
        let better = [];
        #[cfg(target_arch = "x86_64")]
        let better = [Avx2::here().map(Self::Avx2), Avx512::here().map(Self::Avx512)];
        std::iter::once(Self::Portable).chain(better.into_iter().flatten())
    }

    /// The best of them.
    pub fn best() -> Self {
        Self::available().last().expect("every processor has the portable ones")
    }

    /// Does work with these instructions.
    #[inline(always)]
    pub fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            Self::Portable => Portable.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(machine) => machine.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(machine) => machine.run(work),
        }
    }
}
