//! Where the fields of a line lie.
//!
//! | bits from | field |
//! |---|---|
//! | 0 | evicted: how many of the highest buckets may have entries in alternate lines |
//! | 5 | flag: whether queries must read the overflow line of the page |
//! | 6 | occupied: which buckets have a run, home buckets first, then guest buckets |
//! | 6 + B + BG | ends: which slots end a run |
//! | .. | planes: one bit of every slot each, the high bits of the values, from the lowest on |
//! | .. | planes of the counts, in a filter that counts |
//! | 512 - S LANE | lanes: one or two bytes of every slot, the low bits of the values |
//!
//! A value is a fingerprint, above it a tag, and above both a count. No bit of a count lies in a lane. Slots in use
//! come first. Entries of a bucket lie side by side, and the runs lie in the order of their buckets. Beyond the slots
//! in use, ends and planes are zero.

use std::iter;
use std::sync::OnceLock;

use crate::shape::quotient::{
    COUNT_BITS, FINE_TAG_BITS, FINGERPRINT_BITS, LineFormat as QuotientShape, TAG_BITS, line_of,
};

/// A line of 512 bits.
pub type Line = [u64; 8];

/// The number of bits of a line before the field of occupied buckets.
pub const OCCUPIED: u32 = 6;
/// The bits of a line's first word that store the number of evicted buckets.
pub const EVICTED: u64 = 31;
/// The bit of a line's first word that is set if queries must read the overflow line.
pub const OVERFLOW_FLAG: u64 = 32;

/// A line of a table, aligned for vector loads.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct AlignedLine(pub Line);

/// A field of a line: adjacent bits, one for each slot or bucket.
#[derive(Clone, Copy)]
pub struct LineField {
    word: u32,
    shift: u32,
    pub mask: u64,
}

impl LineField {
    /// Returns the field of `width` bits from bit `offset` on.
    fn new(offset: u32, width: u32) -> Self {
        Self { word: offset / 64, shift: offset % 64, mask: u64::MAX >> (64 - width) }
    }

    /// Returns the bits of this field of a line.
    #[inline(always)]
    pub fn get(self, line: &Line) -> u64 {
        let word = self.word as usize;
        let (low, high) = (line[word & 7], line[(word + 1) & 7]);
        (low >> self.shift | high << 1 << (63 - self.shift)) & self.mask
    }

    /// Returns by how many places the bits of the field are shifted into each word of a line: to the left, and to the
    /// right. A shift by 64 leaves nothing.
    fn shifts(self) -> [AlignedLine; 2] {
        let mut shifts = [AlignedLine([64; 8]); 2];
        let word = self.word as usize;
        shifts[0].0[word] = self.shift.into();
        if self.shift > 0 && word < 7 {
            shifts[1].0[word + 1] = u64::from(64 - self.shift);
        }
        shifts
    }

    /// Writes the bits of this field of a line.
    #[inline(always)]
    pub fn set(self, line: &mut Line, bits: u64) {
        let word = self.word as usize;
        line[word & 7] = line[word & 7] & !(self.mask << self.shift) | bits << self.shift;
        let carried = |bits: u64| bits >> 1 >> (63 - self.shift);
        line[(word + 1) & 7] = line[(word + 1) & 7] & !carried(self.mask) | carried(bits);
    }
}

/// Where the fields of a line lie, and tables of their bits.
pub struct Format {
    pub shape: QuotientShape,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Bits of a tag.
    pub tag_bits: u32,
    /// Bits of a count, or 0 in a filter that does not count.
    pub count_bits: u32,
    /// Bytes of a lane: 1 or 2.
    pub lane: u32,
    /// The first byte of the lanes.
    pub lanes: u32,
    /// The bits of a lane that belong to the fingerprint.
    pub lane_fingerprint: u32,
    /// The number of bits of a lane that belong to the fingerprint.
    pub lane_fingerprint_bits: u32,
    pub occupied: LineField,
    pub ends: LineField,
    pub planes: Vec<LineField>,
    /// The number of planes of the fingerprint, which come before those of the tag.
    pub fingerprint_planes: usize,
    /// The planes of the counts.
    pub count_planes: Vec<LineField>,
    /// By slot: the bits from this slot on in the ends and in all planes, those of the counts included.
    from: Box<[AlignedLine]>,
    /// By slot: the bit of this slot in the ends and in all planes.
    at: Box<[AlignedLine]>,
    /// By a number whose lowest bit selects the ends and whose other bits select the lower planes: all bits of these.
    fields: Box<[AlignedLine]>,
    /// By a number whose bits select the higher planes, without those of the counts: all bits of these.
    high_fields: Box<[AlignedLine]>,
    /// All bits of the planes of the tag.
    tag_fields: AlignedLine,
    /// The shifts of the occupied buckets, the ends, and all planes to where they lie.
    pub shifts: Vec<[AlignedLine; 2]>,
    /// All bits outside the occupied buckets, the ends and the planes.
    pub outside: AlignedLine,
}

/// The number of planes in a table of all their values.
const LOW_PLANES: u32 = 8;

impl Format {
    /// Returns the format of lines with fingerprints, tags and counts of these sizes, in large pages or others. Formats
    /// are computed once and never freed.
    pub fn of(fingerprint_bits: u32, tag_bits: u32, count_bits: u32, large: bool) -> &'static Self {
        const FINGERPRINTS: usize = (*FINGERPRINT_BITS.end() - *FINGERPRINT_BITS.start() + 1) as usize;
        const TAGS: usize = (*FINE_TAG_BITS.end() - *TAG_BITS.start() + 1) as usize;
        const COUNTS: usize = *COUNT_BITS.end() as usize + 1;
        type Once = OnceLock<Box<Format>>;
        static FORMATS: [[[[Once; 2]; COUNTS]; TAGS]; FINGERPRINTS] =
            [const { [const { [const { [const { OnceLock::new() }; 2] }; COUNTS] }; TAGS] }; FINGERPRINTS];
        let of_fingerprint = &FORMATS[(fingerprint_bits - FINGERPRINT_BITS.start()) as usize];
        let of_tag = &of_fingerprint[(tag_bits - TAG_BITS.start()) as usize];
        let format = || Box::new(Self::new(fingerprint_bits, tag_bits, count_bits, large));
        of_tag[count_bits as usize][usize::from(large)].get_or_init(format)
    }

    fn new(fingerprint_bits: u32, tag_bits: u32, count_bits: u32, large: bool) -> Self {
        let shape = line_of(fingerprint_bits, tag_bits, count_bits, large);
        let bits = fingerprint_bits + tag_bits;
        let lane = if bits < 16 { 1 } else { 2 };
        let ends = OCCUPIED + shape.buckets + shape.eviction_buckets;
        let planes = bits - 8 * lane;
        let lane_fingerprint_bits = fingerprint_bits.min(8 * lane);
        // The ends, the planes of the values, and those of the counts.
        let of_slots: Vec<_> =
            (0..=planes + count_bits).map(|field| LineField::new(ends + field * shape.slots, shape.slots)).collect();
        let bits_of = |of_field: &dyn Fn(u32) -> u64| {
            let mut line = AlignedLine([0; 8]);
            for (number, field) in (0..).zip(&of_slots) {
                field.set(&mut line.0, of_field(number) & field.mask);
            }
            line
        };
        // All bits of the fields that a number selects, by one bit each.
        let selected = |fields: u32| bits_of(&|field| u64::MAX * u64::from(fields >> field & 1));
        let low = planes.min(LOW_PLANES);
        let fingerprint_planes = fingerprint_bits - lane_fingerprint_bits;
        let occupied = LineField::new(OCCUPIED, shape.buckets + shape.eviction_buckets);
        let (of_values, of_counts) = of_slots[1..].split_at(planes as usize);
        Self {
            shape,
            fingerprint_bits,
            tag_bits,
            count_bits,
            lane,
            lanes: 64 - shape.slots * lane,
            lane_fingerprint: (1 << lane_fingerprint_bits) - 1,
            lane_fingerprint_bits,
            occupied,
            ends: of_slots[0],
            planes: of_values.to_vec(),
            fingerprint_planes: fingerprint_planes as usize,
            count_planes: of_counts.to_vec(),
            from: (0..64).map(|slot| bits_of(&|_| u64::MAX << slot)).collect(),
            at: (0..64).map(|slot| bits_of(&|_| 1 << slot)).collect(),
            fields: (0..2 << low).map(selected).collect(),
            high_fields: (0..1 << (planes - low)).map(|planes: u32| selected(planes << low << 1)).collect(),
            tag_fields: selected((2 << planes) - (2 << fingerprint_planes)),
            shifts: iter::once(&occupied).chain(&of_slots).map(|field| field.shifts()).collect(),
            outside: {
                let mut outside = AlignedLine(selected(u32::MAX).0.map(|word| !word));
                outside.0[0] &= !(occupied.mask << OCCUPIED);
                outside
            },
        }
    }

    /// Returns the bits from a slot on in the ends and in all planes.
    #[inline(always)]
    pub fn from(&self, slot: u32) -> &AlignedLine {
        &self.from[slot as usize % 64]
    }

    /// Returns the bit of a slot in the ends and in all planes.
    #[inline(always)]
    pub fn at(&self, slot: u32) -> &AlignedLine {
        &self.at[slot as usize % 64]
    }

    /// Returns all bits of the ends, if `ends`, and of the planes in which a value has a one. If there are many planes,
    /// writes them to `room`.
    #[inline(always)]
    pub fn fields<'a>(&'a self, value: u32, ends: bool, room: &'a mut AlignedLine) -> &'a AlignedLine {
        let planes = value >> (8 * self.lane);
        if self.high_fields.len() > 1 {
            self.combine_fields(planes, ends, room);
            return room;
        }
        &self.fields[(planes << 1 | u32::from(ends)) as usize]
    }

    /// Returns all bits of the ends, or none.
    #[inline(always)]
    pub fn end(&self, ends: bool) -> &AlignedLine {
        &self.fields[usize::from(ends)]
    }

    /// Writes what [`fields`](Self::fields) returns to `room`, where two tables are needed.
    #[cold]
    fn combine_fields(&self, planes: u32, ends: bool, room: &mut AlignedLine) {
        let low = &self.fields[((planes & ((1 << LOW_PLANES) - 1)) << 1 | u32::from(ends)) as usize].0;
        let high = &self.high_fields[(planes >> LOW_PLANES) as usize].0;
        *room = AlignedLine(std::array::from_fn(|i| low[i] | high[i]));
    }

    /// Returns all bits of the planes of the tag.
    #[inline(always)]
    pub fn tag_fields(&self) -> &AlignedLine {
        &self.tag_fields
    }

    /// Returns the lowest bucket whose entries a line may evict.
    #[inline(always)]
    pub fn first_evictable(&self) -> u32 {
        self.shape.buckets - self.shape.eviction_buckets
    }

    /// Returns the fingerprint of a value.
    #[inline(always)]
    pub fn fingerprint(&self, value: u32) -> u32 {
        value & ((1 << self.fingerprint_bits) - 1)
    }

    /// Returns the tag of a value.
    #[inline(always)]
    pub fn tag(&self, value: u32) -> u32 {
        value >> self.fingerprint_bits & ((1 << self.tag_bits) - 1)
    }

    /// Returns the tag of a value, and its count above.
    #[inline(always)]
    pub fn tag_and_count(&self, value: u32) -> u32 {
        value >> self.fingerprint_bits
    }

    /// Splits a [tag and count](Self::tag_and_count) into the two.
    #[inline(always)]
    pub fn split_tag_and_count(&self, tag_and_count: u32) -> (u32, u32) {
        (tag_and_count & ((1 << self.tag_bits) - 1), tag_and_count >> self.tag_bits)
    }

    /// Returns how many epochs ago an epoch was open, by its tag and the tag `now` of the open epoch.
    #[inline(always)]
    pub fn age(&self, now: u32, tag: u32) -> u32 {
        now.wrapping_sub(tag) & ((1 << self.tag_bits) - 1)
    }
}
