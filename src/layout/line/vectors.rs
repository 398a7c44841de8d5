//! The instruction sets for work on lines: one is chosen per filter, and the work is compiled for each.
//!
//! Intrinsics are inlined only into functions that have their target features, and a generic function cannot have them
//! for one instruction set alone. So, as in the memchr crate, all work on a key is `inline(always)`, from the body of a
//! [`Work`] down to the intrinsics. It becomes part of the one function that has the features, [`Vectors::run`]. Code
//! that is not inlined there has no vectors: each intrinsic costs a call that passes them through memory (measured: 90
//! to 400 ns per key instead of 5). A closure is not `inline(always)`, so none of them handles vectors.

use super::LINE;

/// What an instruction set does with the 512 bits of a line. Only a processor that has it can make a value.
pub(crate) trait Vectors: Copy {
    /// The bits of a key in all lanes of one line.
    type Mask: Copy;

    /// Does work in a function that is compiled for these instructions and never inlined.
    fn run<W: Work>(self, work: W) -> W::Output;

    /// The mask made from 32 bits of a key.
    fn mask(self, seed: u32) -> Self::Mask;

    /// The bits of the mask that the line does not have.
    fn missing(self, line: &[u64; LINE], mask: Self::Mask) -> Self::Mask;

    /// The bits of both.
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// The lanes where no bit is missing, a bit each.
    fn complete<const LANES: usize>(self, missing: Self::Mask) -> u32;

    /// Sets the bits of the mask that `lanes` has too.
    fn set(self, line: &mut [u64; LINE], mask: Self::Mask, lanes: &[u64; LINE]);
}

/// Work that is compiled for each instruction set. Compilers also vectorise the parts that do not use [`Vectors`].
pub(crate) trait Work {
    /// Its result.
    type Output;

    /// Does it.
    fn run<V: Vectors>(self, vectors: V) -> Self::Output;
}
