//! A line of 64 bytes: slots with the tag of an epoch and a fingerprint each.
//!
//! Byte s is the tag of slot s. Then come P planes of S bytes and X planes of S bits: the fingerprints. Byte 63 is the
//! tag of the last key that found no room here, its *rejection*.
//!
//! Tags run from 1 to 255 and begin anew, epoch by epoch. Zero is the tag of no epoch, so that memory of zeros is an
//! empty table.

use super::shape::{LineFormat, TAGS};
use super::vectors::ByteVectors;

/// The bytes of a line.
pub type Line = [u8; 64];

/// The byte of the rejection.
const REJECTION: usize = 63;

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

/// Compilers know the numbers of a format where it is a constant, and fold them into the code for it.
impl LineFormat {
    /// Returns the number of slots.
    #[inline(always)]
    pub fn slots(self) -> usize {
        self.slots as usize
    }

    /// Returns the number of whole bytes of a fingerprint.
    #[inline(always)]
    fn bytes(self) -> usize {
        self.fingerprint_bits as usize / 8
    }

    /// Returns the number of bits of a fingerprint beside its bytes.
    #[inline(always)]
    pub fn bits(self) -> usize {
        self.fingerprint_bits as usize % 8
    }

    /// Returns a bit for each slot.
    #[inline(always)]
    pub fn all(self) -> u32 {
        (1 << self.slots()) - 1
    }

    /// Returns the byte at which the planes of bits begin.
    #[inline(always)]
    pub fn planes(self) -> usize {
        self.slots() * (1 + self.bytes())
    }

    /// Returns the slots of each line whose entries have these tags, and those of them that have the fingerprint.
    ///
    /// For a key `alone` the bits are compared only where the bytes are equal, which for a new key they seldom are. In
    /// a batch of new keys and repeats that branch is mispredicted, and takes longer than the comparison.
    #[inline(always)]
    pub fn look<M: ByteVectors, const N: usize>(
        self,
        machine: M,
        lines: [&Line; N],
        fingerprint: u64,
        tags: Tags,
        alone: bool,
    ) -> [(u32, u32); N] {
        // Loops, because closures are compiled apart, without vector instructions.
        let (mut found, mut any) = ([(0, 0); N], 0);
        for (found, line) in found.iter_mut().zip(lines) {
            let live = self.live(machine, line, tags);
            let mut equal = live;
            for p in 0..self.bytes() {
                let start = self.slots() * (1 + p);
                let from = start.min(32);
                equal &= machine.equal(vector(line, from), (fingerprint >> (8 * p)) as u8) >> (start - from);
            }
            (*found, any) = ((live, equal), any | equal);
        }
        if self.bits() > 0 && (!alone || any != 0) {
            for (found, line) in found.iter_mut().zip(lines) {
                for x in 0..self.bits() {
                    found.1 &= self.plane(line, x) ^ (self.bit(fingerprint, x) as u32).wrapping_sub(1);
                }
            }
        }
        found
    }

    /// Returns the slots of entries that have these tags.
    #[inline(always)]
    pub fn live<M: ByteVectors>(self, machine: M, line: &Line, tags: Tags) -> u32 {
        let of_slots = vector(line, 0);
        machine.within(of_slots, tags.low as u8, tags.span as u8) & !machine.equal(of_slots, 0) & self.all()
    }

    /// Returns a plane of bits, from slot 0 on.
    #[inline(always)]
    fn plane(self, line: &Line, x: usize) -> u32 {
        let bit = 8 * self.planes() + x * self.slots();
        let from = (bit / 8).min(60);
        let bytes = line[from..].first_chunk().expect("a line ends with byte 63");
        u32::from_le_bytes(*bytes) >> (bit - 8 * from)
    }

    /// Writes an entry, its tag last: the tag alone makes it live.
    #[inline(always)]
    pub fn write(self, line: &mut Line, slot: usize, fingerprint: u64, tag: u8) {
        for p in 0..self.bytes() {
            line[self.slots() * (1 + p) + slot] = (fingerprint >> (8 * p)) as u8;
        }
        if self.bits() > 0 {
            // The planes of bits are written as one number of 16 bytes.
            let from = self.planes().min(48);
            let shift = 8 * (self.planes() - from) + slot;
            let (mut bits, mut every) = (0, 0);
            for x in 0..self.bits() {
                bits |= u128::from(self.bit(fingerprint, x)) << (x * self.slots());
                every |= 1u128 << (x * self.slots());
            }
            let old = u128::from_le_bytes(*half(line, from));
            let new = old & !(every << shift) | bits << shift;
            line[from..from + 16].copy_from_slice(&new.to_le_bytes());
        }
        line[slot] = tag;
    }

    /// Returns the fingerprint of a slot.
    #[inline(always)]
    pub fn fingerprint(self, line: &Line, slot: usize) -> u64 {
        let of_byte = |p| u64::from(line[self.slots() * (1 + p) + slot]) << (8 * p);
        let bytes = (0..self.bytes()).fold(0, |bytes, p| bytes | of_byte(p));
        let of_bit = |x: usize| u64::from(self.plane(line, x) >> slot & 1) << (8 * self.bytes() + x);
        (0..self.bits()).fold(bytes, |all, x| all | of_bit(x))
    }

    /// Returns one of the bits of a fingerprint beside its bytes.
    #[inline(always)]
    fn bit(self, fingerprint: u64, x: usize) -> u64 {
        fingerprint >> (8 * self.bytes() + x) & 1
    }
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
pub fn sweep(format: LineFormat, machine: impl ByteVectors, line: &mut Line, live: Tags) {
    let kept = format.live(machine, line, live) | machine.equal(vector(line, 0), 0);
    let rejection = rejection(line);
    if kept & format.all() == format.all() && (rejection == 0 || live.contain(rejection)) {
        return;
    }
    let swept = |tag: u8| if live.contain(tag) { tag } else { 0 };
    line[..format.slots()].iter_mut().for_each(|tag| *tag = swept(*tag));
    line[REJECTION] = swept(line[REJECTION]);
}

#[inline(always)]
fn vector(line: &Line, from: usize) -> &[u8; 32] {
    line[from..].first_chunk().expect("planes begin in the first half, or are read from there")
}

#[inline(always)]
fn half(line: &Line, from: usize) -> &[u8; 16] {
    line[from..].first_chunk().expect("planes of bits end with the line")
}
