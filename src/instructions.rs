//! The instruction sets that work is compiled for, and the choice of one. No other module tests what the processor has.
//!
//! Intrinsics are inlined only into functions that have their target features, and a generic function cannot have them
//! for one instruction set alone. So, as in the memchr crate, all work on a key is `inline(always)`, from the body of a
//! [`Work`] down to the intrinsics. It becomes part of the one function that has the features, [`Machine::run`]. Code
//! that is not inlined there has no vectors: each intrinsic costs a call that passes them through memory (measured: 90
//! to 400 ns per key instead of 5). A closure is not `inline(always)`, so none of them handles vectors.

/// Work that is compiled for an instruction set. Compilers vectorise the code without intrinsics too.
pub trait Work<M> {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run(self, machine: M) -> Self::Output;
}

/// An instruction set. A value of this type is the proof that the processor has it. The operations that a kind of work
/// needs are a trait beside that work.
pub trait Machine: Copy {
    /// Does work in a function that is compiled for these instructions, and never inlined.
    fn run<W: Work<Self>>(self, work: W) -> W::Output;
}

/// Work that is compiled for every instruction set of this architecture.
#[cfg(target_arch = "x86_64")]
pub trait AnyWork<T>: Work<Portable, Output = T> + Work<Avx2, Output = T> + Work<Avx512, Output = T> {}
#[cfg(target_arch = "x86_64")]
impl<T, W: Work<Portable, Output = T> + Work<Avx2, Output = T> + Work<Avx512, Output = T>> AnyWork<T> for W {}

/// Work that is compiled for every instruction set of this architecture.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub trait AnyWork<T>: Work<Portable, Output = T> + Work<Neon, Output = T> {}
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
impl<T, W: Work<Portable, Output = T> + Work<Neon, Output = T>> AnyWork<T> for W {}

/// Work that is compiled for every instruction set of this architecture.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
pub trait AnyWork<T>: Work<Portable, Output = T> {}
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
impl<T, W: Work<Portable, Output = T>> AnyWork<T> for W {}

/// The instructions that every processor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portable;

impl Machine for Portable {
    #[inline(never)]
    fn run<W: Work<Self>>(self, work: W) -> W::Output {
        work.run(self)
    }
}

/// NEON, which every processor of this architecture has.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neon;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
impl Machine for Neon {
    #[inline(never)]
    fn run<W: Work<Self>>(self, work: W) -> W::Output {
        work.run(self)
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "functions that are compiled for vector instructions")]
mod x86_64 {
    use std::arch::is_x86_feature_detected as has;

    use super::{Machine, Work};

    /// AVX2, with the bit instructions that came with it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Avx2(());

    impl Avx2 {
        /// Returns the instruction set, if the processor has it.
        pub fn detect() -> Option<Self> {
            (has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt")).then_some(Self(()))
        }
    }

    impl Machine for Avx2 {
        #[inline(always)]
        fn run<W: Work<Self>>(self, work: W) -> W::Output {
            #[inline(never)]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
            fn run<W: Work<Avx2>>(machine: Avx2, work: W) -> W::Output {
                work.run(machine)
            }
            // SAFETY: an `Avx2` exists, so the processor has the instructions.
            unsafe { run(self, work) }
        }
    }

    /// AVX-512 with VBMI2, which moves bytes together and apart: processors from 2019 on. Older processors use AVX2.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Avx512(pub Avx2);

    impl Avx512 {
        /// Returns the instruction set, if the processor has it.
        pub fn detect() -> Option<Self> {
            let vectors = has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq");
            Avx2::detect().filter(|_| vectors && has!("avx512vbmi2")).map(Self)
        }
    }

    impl Machine for Avx512 {
        #[inline(always)]
        fn run<W: Work<Self>>(self, work: W) -> W::Output {
            #[inline(never)]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,avx2,bmi1,bmi2,popcnt,lzcnt")]
            fn run<W: Work<Avx512>>(machine: Avx512, work: W) -> W::Output {
                work.run(machine)
            }
            // SAFETY: an `Avx512` exists, so the processor has the instructions.
            unsafe { run(self, work) }
        }
    }
}

/// The instruction set of a filter, chosen once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instructions {
    Portable(Portable),
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(Neon),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Instructions {
    /// Returns all instruction sets that the processor has, the best last.
    pub fn available() -> impl Iterator<Item = Self> {
        let available = [Some(Self::Portable(Portable))].into_iter();
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        let available = available.chain([Some(Self::Neon(Neon))]);
        #[cfg(target_arch = "x86_64")]
        let available = available.chain([Avx2::detect().map(Self::Avx2), Avx512::detect().map(Self::Avx512)]);
        available.flatten()
    }

    /// Returns the best instruction set that the processor has.
    pub fn best() -> Self {
        Self::available().last().expect("every processor has the portable ones")
    }

    /// Does work with these instructions.
    #[inline(always)]
    pub fn run<T, W: AnyWork<T>>(self, work: W) -> T {
        match self {
            Self::Portable(machine) => machine.run(work),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(machine) => machine.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(machine) => machine.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(machine) => machine.run(work),
        }
    }
}
