//! What the processor can do, and work that is compiled once for each of its instruction sets.

/// Instruction sets that lines are worked on with, looked up once per filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Work that compilers make vectors of by themselves. Its `run` and all that it calls for every key have to be
/// `inline(always)`: what is not inlined has not the instructions of the function that calls it.
pub(crate) trait Work {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run(self) -> Self::Output;
}

impl Instructions {
    /// All that the processor has, the best last.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut, reason = "nothing to add"))]
        let mut available = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let bmi = has!("bmi1") && has!("bmi2");
            if bmi && has!("avx2") {
                available.push(Self::Avx2);
            }
            if bmi && has!("avx512f") && has!("avx512bw") {
                available.push(Self::Avx512);
            }
        }
        available
    }

    /// The best of them.
    pub fn best() -> Self {
        *Self::available().last().expect("every processor has the portable ones")
    }

    /// Does work with these instructions.
    #[inline(always)]
    pub fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            Self::Portable => work.run(),
            // SAFETY: the processor has the instructions, or they were not among the available ones.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { with_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { with_avx512(work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn with_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}
