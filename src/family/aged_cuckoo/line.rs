//! A line of 64 bytes: slots with the tag of an epoch and a fingerprint each.
//!
//! Byte s is the tag of slot s. Then come P planes of S bytes and X planes of S bits: the fingerprints. Byte 63 is the
//! tag of the last key that found no room here, its *rejection*.
//!
//! Tags run from 1 to 255 and begin anew, epoch by epoch. Zero is the tag of no epoch, so that memory of zeros is an
//! empty table.

use super::vectors::ByteVectors;

/// The bytes of a line.
pub type Line = [u8; 64];

/// The byte of the rejection.
const REJECTION: usize = 63;

/// Number of tags.
pub const TAGS: i64 = 255;

/// The open epoch, and which tags are live: those in a cyclic range, but for zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The tag of the open epoch.
    pub tag: u8,
    low: u8,
    span: u8,
}

impl Now {
    /// Returns the tags that are live while `generation` is open and the `retained` epochs before it are retained;
    /// `None` retains not even the open epoch. `retained` is less than the number of tags.
    pub fn new(generation: i64, retained: Option<u32>) -> Self {
        let tag = 1 + generation.rem_euclid(TAGS) as u8;
        let Some(retained) = retained else { return Self { tag, low: 0, span: 0 } };
        let back = retained as u8;
        let low = tag.wrapping_sub(back).wrapping_sub(u8::from(tag <= back));
        Self { tag, low, span: tag.wrapping_sub(low) }
    }

    /// Returns whether a tag is live.
    #[inline(always)]
    pub fn is_live(self, tag: u8) -> bool {
        (tag != 0) & (tag.wrapping_sub(self.low) <= self.span)
    }

    /// Returns how many epochs ago a live tag was that of the open epoch.
    #[inline(always)]
    pub fn age(self, tag: u8) -> u8 {
        self.tag.wrapping_sub(tag).wrapping_sub(u8::from(tag > self.tag))
    }

    /// Returns the younger of two tags, of which the second is live.
    #[inline(always)]
    pub fn younger(self, a: u8, b: u8) -> u8 {
        if self.is_live(a) && self.age(a) < self.age(b) { a } else { b }
    }
}

/// A format of lines: `S` slots with fingerprints of `P` bytes and `X` bits.
pub trait Format {
    /// Number of slots.
    const SLOTS: usize;
    /// Number of bytes of a fingerprint.
    const BYTES: usize;
    /// Number of bits of a fingerprint beside its bytes.
    const BITS: usize;
    /// Number of bits of a fingerprint.
    const FINGERPRINT: u32 = (8 * Self::BYTES + Self::BITS) as u32;
    /// A bit for each slot.
    const ALL: u32 = (1 << Self::SLOTS) - 1;
    /// The byte at which the planes of bits begin.
    const PLANES: usize = Self::SLOTS * (1 + Self::BYTES);
    /// The byte from which the planes of bits are read, as one number of 16 bytes, and the bit at which they begin
    /// there.
    const FROM: usize = if Self::PLANES < 48 { Self::PLANES } else { 48 };
    const SHIFT: usize = 8 * (Self::PLANES - Self::FROM);
    /// The bit of slot 0 in each plane of bits.
    const EVERY: u128 = {
        let (mut mask, mut x) = (0, 0);
        while x < Self::BITS {
            mask |= 1 << (x * Self::SLOTS);
            x += 1;
        }
        mask
    };
    #[cfg(test)]
    /// Whether the planes fit a line, and the masks their numbers.
    const FITS: bool = Self::SLOTS <= 31
        && Self::SLOTS * Self::BITS <= 128 - Self::SHIFT
        && 8 * Self::PLANES + Self::SLOTS * Self::BITS <= 8 * REJECTION;

    /// Returns the slots of live entries, and those of them that have the fingerprint.
    #[inline(always)]
    fn look<M: ByteVectors>(machine: M, line: &Line, fingerprint: u64, now: Now) -> (u32, u32) {
        let live = Self::live(machine, line, now);
        let mut equal = live;
        for p in 0..Self::BYTES {
            let start = Self::SLOTS * (1 + p);
            let from = start.min(32);
            equal &= machine.equal(vector(line, from), (fingerprint >> (8 * p)) as u8) >> (start - from);
        }
        if Self::BITS > 0 {
            let planes = Self::planes(line);
            for x in 0..Self::BITS {
                equal &= (planes >> (x * Self::SLOTS)) as u32 ^ (bit::<Self>(fingerprint, x) as u32).wrapping_sub(1);
            }
        }
        (live, equal)
    }

    /// Returns the slots of live entries.
    #[inline(always)]
    fn live<M: ByteVectors>(machine: M, line: &Line, now: Now) -> u32 {
        let tags = vector(line, 0);
        machine.within(tags, now.low, now.span) & !machine.equal(tags, 0) & Self::ALL
    }

    /// Returns the planes of bits, from slot 0 of the first on.
    #[inline(always)]
    fn planes(line: &Line) -> u128 {
        u128::from_le_bytes(*half(line, Self::FROM)) >> Self::SHIFT
    }

    /// Writes an entry, its tag last: the tag alone makes it live.
    #[inline(always)]
    fn write(line: &mut Line, slot: usize, fingerprint: u64, tag: u8) {
        for p in 0..Self::BYTES {
            line[Self::SLOTS * (1 + p) + slot] = (fingerprint >> (8 * p)) as u8;
        }
        if Self::BITS > 0 {
            let shift = Self::SHIFT + slot;
            let of_plane = |x| u128::from(bit::<Self>(fingerprint, x)) << (x * Self::SLOTS);
            let bits = (0..Self::BITS).fold(0, |bits, x| bits | of_plane(x));
            let old = u128::from_le_bytes(*half(line, Self::FROM));
            let new = old & !(Self::EVERY << shift) | bits << shift;
            line[Self::FROM..Self::FROM + 16].copy_from_slice(&new.to_le_bytes());
        }
        line[slot] = tag;
    }

    /// Returns the fingerprint of a slot.
    #[inline(always)]
    fn fingerprint(line: &Line, slot: usize) -> u64 {
        let of_byte = |p| u64::from(line[Self::SLOTS * (1 + p) + slot]) << (8 * p);
        let bytes = (0..Self::BYTES).fold(0, |bytes, p| bytes | of_byte(p));
        let planes = Self::planes(line) >> slot;
        let of_bit = |x: usize| ((planes >> (x * Self::SLOTS)) as u64 & 1) << (8 * Self::BYTES + x);
        (0..Self::BITS).fold(bytes, |all, x| all | of_bit(x))
    }
}

/// The format of lines of these numbers.
pub struct Slots<const S: usize, const P: usize, const X: usize>;

impl<const S: usize, const P: usize, const X: usize> Format for Slots<S, P, X> {
    const SLOTS: usize = S;
    const BYTES: usize = P;
    const BITS: usize = X;
}

/// Returns the tag of the rejection.
#[inline(always)]
pub fn rejection(line: &Line) -> u8 {
    line[REJECTION]
}

/// Writes the tag of the rejection.
#[inline(always)]
pub fn reject(line: &mut Line, tag: u8) {
    line[REJECTION] = tag;
}

/// Clears expired tags, of entries and of the rejection. Writes only where there are any, so that zeros which the
/// system has promised take no memory.
#[inline(always)]
pub fn sweep<F: Format, M: ByteVectors>(machine: M, line: &mut Line, now: Now) {
    let kept = F::live(machine, line, now) | machine.equal(vector(line, 0), 0);
    let rejection = rejection(line);
    if kept & F::ALL == F::ALL && (rejection == 0 || now.is_live(rejection)) {
        return;
    }
    let swept = |tag: u8| if now.is_live(tag) { tag } else { 0 };
    line[..F::SLOTS].iter_mut().for_each(|tag| *tag = swept(*tag));
    line[REJECTION] = swept(line[REJECTION]);
}

#[inline(always)]
fn bit<F: Format + ?Sized>(fingerprint: u64, x: usize) -> u64 {
    fingerprint >> (8 * F::BYTES + x) & 1
}

#[inline(always)]
fn vector(line: &Line, from: usize) -> &[u8; 32] {
    line[from..].first_chunk().expect("planes begin in the first half, or are read from there")
}

#[inline(always)]
fn half(line: &Line, from: usize) -> &[u8; 16] {
    line[from..].first_chunk().expect("planes of bits end with the line")
}
