//! The operations on a line that an [instruction set](crate::instructions) implements.

use super::LINE;
use crate::instructions::Machine;

/// Operations on the 512 bits of a line.
pub trait Vectors: Machine {
    /// The bits of a key in all lanes of one line.
    type Mask: Copy;

    /// Returns the mask that 32 bits of a key seed.
    fn mask(self, seed: u32) -> Self::Mask;

    /// Returns the bits of the mask that are not set in the line.
    fn missing(self, line: &[u64; LINE], mask: Self::Mask) -> Self::Mask;

    /// Returns the OR of two masks.
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// Returns the lanes without a missing bit, a bit for each.
    fn complete<const LANES: usize>(self, missing: Self::Mask) -> u32;

    /// Sets the bits in the line that are set both in the mask and in `lanes`.
    fn set(self, line: &mut [u64; LINE], mask: Self::Mask, lanes: &[u64; LINE]);
}
