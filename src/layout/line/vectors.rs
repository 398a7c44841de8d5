//! What work on lines of lanes asks of an [instruction set](crate::instructions).

use super::LINE;
use crate::instructions::Machine;

/// What an instruction set does with the 512 bits of a line.
pub trait Vectors: Machine {
    /// The bits of a key in all lanes of one line.
    type Mask: Copy;

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

    /// How many of the numbers are this one.
    #[inline(always)]
    fn equal(self, numbers: &[i64; LINE], to: i64) -> u64 {
        numbers.iter().map(|&number| u64::from(number == to)).sum()
    }
}
