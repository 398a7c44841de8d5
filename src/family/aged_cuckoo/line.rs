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

/// A cyclic range of tags, but for zero. The numbers are bytes; as bytes [`Now`] would fit a register, and be packed
/// into it and unpacked for each single key, by 40 instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    low: u32,
    span: u32,
}

impl Tags {
    /// Returns the tags from that of the epoch `epochs` before the open one on.
    #[inline(always)]
    fn since(open: u8, epochs: u8) -> Self {
        let low = back(open, epochs);
        Self { low: low.into(), span: open.wrapping_sub(low).into() }
    }

    /// Returns those of the tags that are not younger than `last`, which is one of the tags if any is older.
    fn until(self, last: u8) -> Self {
        let span = last.wrapping_sub(self.low as u8).into();
        if span <= self.span { Self { span, ..self } } else { NO_TAGS }
    }

    /// Returns whether a tag is one of them.
    #[inline(always)]
    pub fn contain(self, tag: u8) -> bool {
        (tag != 0) & (tag.wrapping_sub(self.low as u8) <= self.span as u8)
    }
}

/// No tags.
const NO_TAGS: Tags = Tags { low: 0, span: 0 };

/// The open epoch, and what a key means to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The tag of the open epoch.
    pub open: u8,
    /// The tag that an insertion writes: of a late key that of its own epoch.
    pub own: u8,
    /// The tags of live entries.
    pub live: Tags,
    /// The tags of entries that a query reports.
    pub reported: Tags,
    /// Whether an entry may be younger than a key, or live and not reported.
    late: bool,
}

impl Now {
    /// Returns the tags while `generation` is open and the `retained` epochs before it are retained; `None` retains not
    /// even the open epoch. `retained` is less than the number of tags.
    #[inline(always)]
    pub fn new(generation: i64, retained: Option<u32>) -> Self {
        // Generations of insertions are not negative, and the remainder of an unsigned number takes half as long.
        let since_first =
            u64::try_from(generation).map_or_else(|_| generation.rem_euclid(TAGS) as u64, |n| n % TAGS as u64);
        let open = 1 + since_first as u8;
        let live = retained.map_or(NO_TAGS, |retained| Tags::since(open, retained as u8));
        Self { open, own: open, live, reported: live, late: false }
    }

    /// Returns the tags for a query that reports entries of these.
    #[inline(always)]
    pub fn reporting(reported: Tags) -> Self {
        Self { reported, ..Self::new(0, None) }
    }

    /// Returns the tags for a key of the epoch `own` before the open one, whose window begins with the epoch `oldest`
    /// before it. Both are live.
    pub fn late(self, own: u8, oldest: u8) -> Self {
        let now = Self { own: back(self.open, own), reported: Tags::since(self.open, oldest), ..self };
        Self { late: now != self, ..now }
    }

    /// Returns the tags for lines into which nothing was inserted after this generation, less than 255 ago. Tags of
    /// later epochs are there those of entries that expired long ago.
    pub fn as_of(self, generation: i64) -> Self {
        let last = Self::new(generation, None).open;
        Self { live: self.live.until(last), reported: self.reported.until(last), ..self }
    }

    /// Returns how many epochs ago a live tag was that of the open epoch.
    #[inline(always)]
    pub fn age(self, tag: u8) -> u8 {
        self.open.wrapping_sub(tag).wrapping_sub(u8::from(tag > self.open))
    }

    /// Returns the tag of the same age where another epoch is open, and zero for one that has expired.
    pub fn realigned(self, tag: u8, to: Self) -> u8 {
        if self.live.contain(tag) { back(to.open, self.age(tag)) } else { 0 }
    }

    /// Returns the younger of two tags, of which the second is live.
    #[inline(always)]
    pub fn younger(self, a: u8, b: u8) -> u8 {
        if self.live.contain(a) && self.age(a) < self.age(b) { a } else { b }
    }

    /// Returns the tag that an insertion writes over another, and whether that is reported. `found` is whether the
    /// other is the key's.
    #[inline(always)]
    pub fn renew(self, tag: u8, found: bool) -> (u8, bool) {
        if self.late { (self.younger(tag, self.own), found & self.reported.contain(tag)) } else { (self.own, found) }
    }
}

/// Returns the tag of the epoch `epochs` before that of a tag.
#[inline(always)]
fn back(tag: u8, epochs: u8) -> u8 {
    tag.wrapping_sub(epochs).wrapping_sub(u8::from(tag <= epochs))
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
    /// The byte from which the planes of bits are written, as one number of 16 bytes, and the bit at which they begin
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

    /// Returns the slots of each line whose entries have these tags, and those of them that have the fingerprint.
    ///
    /// For a key `alone` the bits are compared only where the bytes are equal, which for a new key they seldom are. In
    /// a batch of new keys and repeats that branch is mispredicted, and takes longer than the comparison.
    #[inline(always)]
    fn look<M: ByteVectors, const N: usize>(
        machine: M,
        lines: [&Line; N],
        fingerprint: u64,
        tags: Tags,
        alone: bool,
    ) -> [(u32, u32); N] {
        // Loops, because closures are compiled apart, without vector instructions.
        let (mut found, mut any) = ([(0, 0); N], 0);
        for (found, line) in found.iter_mut().zip(lines) {
            let live = Self::live(machine, line, tags);
            let mut equal = live;
            for p in 0..Self::BYTES {
                let start = Self::SLOTS * (1 + p);
                let from = start.min(32);
                equal &= machine.equal(vector(line, from), (fingerprint >> (8 * p)) as u8) >> (start - from);
            }
            (*found, any) = ((live, equal), any | equal);
        }
        if Self::BITS > 0 && (!alone || any != 0) {
            for (found, line) in found.iter_mut().zip(lines) {
                for x in 0..Self::BITS {
                    found.1 &= Self::plane(line, x) ^ (bit::<Self>(fingerprint, x) as u32).wrapping_sub(1);
                }
            }
        }
        found
    }

    /// Returns the slots of entries that have these tags.
    #[inline(always)]
    fn live<M: ByteVectors>(machine: M, line: &Line, tags: Tags) -> u32 {
        let of_slots = vector(line, 0);
        machine.within(of_slots, tags.low as u8, tags.span as u8) & !machine.equal(of_slots, 0) & Self::ALL
    }

    /// Returns a plane of bits, from slot 0 on.
    #[inline(always)]
    fn plane(line: &Line, x: usize) -> u32 {
        let bit = 8 * Self::PLANES + x * Self::SLOTS;
        let from = (bit / 8).min(60);
        let bytes = line[from..].first_chunk().expect("a line ends with byte 63");
        u32::from_le_bytes(*bytes) >> (bit - 8 * from)
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
        let of_bit = |x: usize| u64::from(Self::plane(line, x) >> slot & 1) << (8 * Self::BYTES + x);
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
pub fn sweep<F: Format, M: ByteVectors>(machine: M, line: &mut Line, live: Tags) {
    let kept = F::live(machine, line, live) | machine.equal(vector(line, 0), 0);
    let rejection = rejection(line);
    if kept & F::ALL == F::ALL && (rejection == 0 || live.contain(rejection)) {
        return;
    }
    let swept = |tag: u8| if live.contain(tag) { tag } else { 0 };
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
