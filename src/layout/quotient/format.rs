//! Where the fields of a line lie.
//!
//! | bits from | what |
//! |---|---|
//! | 0 | reach: how many of the highest buckets may have entries in second lines |
//! | 5 | whether the spare line of the page has to be asked |
//! | 6 | occupied: which buckets have a run, those at home first, then the foreign ones |
//! | 6 + B + BF | ends: which slots end a run |
//! | .. | planes: a bit of every slot each, the high bits of the values, from the lowest on |
//! | .. | planes of the counts, in a filter that counts |
//! | 512 - S LANE | lanes: a byte or two of every slot, the low bits of the values |
//!
//! A value is a fingerprint, above it a tag, and above both a count, of which the lanes have nothing. Slots in use
//! come first; entries of a bucket lie side by side, and the runs in the order of their buckets. Beyond the slots in
//! use ends and planes are zero.

use std::iter;
use std::sync::OnceLock;

use crate::shape::quotient::{COUNT_BITS, FINE_TAG_BITS, FINGERPRINT_BITS, Line as QuotientShape, TAG_BITS, line_of};

/// A line of 512 bits.
pub type Line = [u64; 8];

/// Bits of a line before the field of occupied buckets.
pub const OCCUPIED: u32 = 6;
/// The bits of a line's first word that tell its reach.
pub const REACH: u64 = 31;
/// The bit that says that the spare has to be asked.
pub const SPARE_FLAG: u64 = 32;

/// A line of a table, aligned as vectors like it.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Row(pub Line);

/// Bits that lie in a row, a bit of each slot.
#[derive(Clone, Copy)]
pub struct Field {
    word: u32,
    shift: u32,
    pub mask: u64,
}

impl Field {
    fn new(offset: u32, width: u32) -> Self {
        Self { word: offset / 64, shift: offset % 64, mask: u64::MAX >> (64 - width) }
    }

    /// What a line has there.
    #[inline(always)]
    pub fn get(self, line: &Line) -> u64 {
        let word = self.word as usize;
        let (low, high) = (line[word & 7], line[(word + 1) & 7]);
        (low >> self.shift | high << 1 << (63 - self.shift)) & self.mask
    }

    /// By how many bits what it has is shifted into each word of a line, to the left or to the right: 64 leave nothing.
    fn shifts(self) -> [Row; 2] {
        let mut shifts = [Row([64; 8]); 2];
        let word = self.word as usize;
        shifts[0].0[word] = self.shift.into();
        if self.shift > 0 && word < 7 {
            shifts[1].0[word + 1] = u64::from(64 - self.shift);
        }
        shifts
    }

    /// Writes it.
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
    /// Bits of a fingerprint, of a tag, and of a count, if there are any.
    pub fingerprint_bits: u32,
    pub tag_bits: u32,
    pub count_bits: u32,
    /// Bytes of a lane: 1 or 2.
    pub lane: u32,
    /// The first byte of the lanes.
    pub lanes: u32,
    /// The bits of a lane that belong to the fingerprint.
    pub lane_print: u32,
    /// Of those, the number.
    pub lane_print_bits: u32,
    pub occupied: Field,
    pub ends: Field,
    pub planes: Vec<Field>,
    /// How many of the planes are of the fingerprint.
    pub print_planes: usize,
    /// The planes of the counts.
    pub count_planes: Vec<Field>,
    /// By slot: the bits from it on, in the ends and in every plane, those of the counts among them.
    from: Box<[Row]>,
    /// By slot: its bit in the ends and in every plane.
    at: Box<[Row]>,
    /// By bits, the lowest for the ends, the others for the lower planes: all bits of these fields.
    fields: Box<[Row]>,
    /// The same for the higher planes, but those of the counts.
    high_fields: Box<[Row]>,
    /// All bits of the planes of the tag.
    tag_fields: Row,
    /// How the occupied buckets, the ends, and every plane are shifted to where they lie.
    pub shifts: Vec<[Row; 2]>,
    /// All bits but those of these fields.
    pub outside: Row,
}

/// Planes in a table of all their values.
const LOW_PLANES: u32 = 8;

impl Format {
    /// The lines with fingerprints, tags and counts of these sizes, of large pages or others; made once.
    pub fn of(fingerprint_bits: u32, tag_bits: u32, count_bits: u32, large: bool) -> &'static Self {
        const PRINTS: usize = (*FINGERPRINT_BITS.end() - *FINGERPRINT_BITS.start() + 1) as usize;
        const TAGS: usize = (*FINE_TAG_BITS.end() - *TAG_BITS.start() + 1) as usize;
        const COUNTS: usize = *COUNT_BITS.end() as usize + 1;
        type Once = OnceLock<Box<Format>>;
        static FORMATS: [[[[Once; 2]; COUNTS]; TAGS]; PRINTS] =
            [const { [const { [const { [const { OnceLock::new() }; 2] }; COUNTS] }; TAGS] }; PRINTS];
        let of_print = &FORMATS[(fingerprint_bits - FINGERPRINT_BITS.start()) as usize];
        let of_tag = &of_print[(tag_bits - TAG_BITS.start()) as usize];
        let format = || Box::new(Self::new(fingerprint_bits, tag_bits, count_bits, large));
        of_tag[count_bits as usize][usize::from(large)].get_or_init(format)
    }

    fn new(fingerprint_bits: u32, tag_bits: u32, count_bits: u32, large: bool) -> Self {
        let shape = line_of(fingerprint_bits, tag_bits, count_bits, large);
        let bits = fingerprint_bits + tag_bits;
        let lane = if bits < 16 { 1 } else { 2 };
        let ends = OCCUPIED + shape.buckets + shape.foreign;
        let planes = bits - 8 * lane;
        let offset = |field: u32| ends + field * shape.slots;
        let lane_print_bits = fingerprint_bits.min(8 * lane);
        let row = |holds: &dyn Fn(u32, u32) -> bool| {
            let mut row = Row([0; 8]);
            for (field, slot) in
                (0..=planes + count_bits).flat_map(|field| (0..shape.slots).map(move |slot| (field, slot)))
            {
                let bit = offset(field) + slot;
                row.0[(bit / 64) as usize] |= u64::from(holds(field, slot)) << (bit % 64);
            }
            row
        };
        let slots = 0..64;
        let low = planes.min(LOW_PLANES);
        let print_planes = fingerprint_bits - lane_print_bits;
        let occupied = Field::new(OCCUPIED, shape.buckets + shape.foreign);
        let of_slots = (0..=planes + count_bits).map(|field| Field::new(offset(field), shape.slots));
        Self {
            shape,
            fingerprint_bits,
            tag_bits,
            count_bits,
            lane,
            lanes: 64 - shape.slots * lane,
            lane_print: (1 << lane_print_bits) - 1,
            lane_print_bits,
            occupied,
            ends: Field::new(ends, shape.slots),
            planes: (1..=planes).map(|plane| Field::new(offset(plane), shape.slots)).collect(),
            print_planes: print_planes as usize,
            count_planes: (1..=count_bits).map(|plane| Field::new(offset(planes + plane), shape.slots)).collect(),
            from: slots.clone().map(|slot| row(&|_, s| s >= slot)).collect(),
            at: slots.map(|slot| row(&|_, s| s == slot)).collect(),
            fields: (0..2 << low).map(|bits: u32| row(&|field, _| bits >> field & 1 == 1)).collect(),
            high_fields: (0..1 << (planes - low))
                .map(|bits: u32| row(&|field, _| field <= planes && bits << low << 1 >> field & 1 == 1))
                .collect(),
            tag_fields: row(&|field, _| (print_planes + 1..=planes).contains(&field)),
            shifts: iter::once(occupied).chain(of_slots).map(Field::shifts).collect(),
            outside: {
                let mut outside = Row(row(&|_, _| true).0.map(|word| !word));
                outside.0[0] &= !(occupied.mask << OCCUPIED);
                outside
            },
        }
    }

    /// The bits from a slot on, in the ends and in every plane.
    #[inline(always)]
    pub fn from(&self, slot: u32) -> &Row {
        &self.from[slot as usize % 64]
    }

    /// The bits of a slot there.
    #[inline(always)]
    pub fn at(&self, slot: u32) -> &Row {
        &self.at[slot as usize % 64]
    }

    /// All bits of the ends, if `ends`, and of the planes where a value has a bit. There is `room` for a row that is
    /// put together of two, where planes are many.
    #[inline(always)]
    pub fn fields<'a>(&'a self, value: u32, ends: bool, room: &'a mut Row) -> &'a Row {
        let planes = value >> (8 * self.lane);
        if self.high_fields.len() > 1 {
            self.put_together(planes, ends, room);
            return room;
        }
        &self.fields[(planes << 1 | u32::from(ends)) as usize]
    }

    /// All bits of the ends, or none.
    #[inline(always)]
    pub fn end(&self, ends: bool) -> &Row {
        &self.fields[usize::from(ends)]
    }

    #[cold]
    fn put_together(&self, planes: u32, ends: bool, room: &mut Row) {
        let low = &self.fields[((planes & ((1 << LOW_PLANES) - 1)) << 1 | u32::from(ends)) as usize].0;
        let high = &self.high_fields[(planes >> LOW_PLANES) as usize].0;
        *room = Row(std::array::from_fn(|i| low[i] | high[i]));
    }

    /// All bits of the planes of the tag.
    #[inline(always)]
    pub fn tag_fields(&self) -> &Row {
        &self.tag_fields
    }

    /// The first of the buckets whose entries may be sent away.
    #[inline(always)]
    pub fn movable(&self) -> u32 {
        self.shape.buckets - self.shape.foreign
    }

    /// The fingerprint of a value.
    #[inline(always)]
    pub fn print(&self, value: u32) -> u32 {
        value & ((1 << self.fingerprint_bits) - 1)
    }

    /// The tag of a value.
    #[inline(always)]
    pub fn tag(&self, value: u32) -> u32 {
        value >> self.fingerprint_bits & ((1 << self.tag_bits) - 1)
    }

    /// The tag of a value, and its count above.
    #[inline(always)]
    pub fn mark(&self, value: u32) -> u32 {
        value >> self.fingerprint_bits
    }

    /// The tag and the count of a [mark](Self::mark).
    #[inline(always)]
    pub fn marked(&self, mark: u32) -> (u32, u32) {
        (mark & ((1 << self.tag_bits) - 1), mark >> self.tag_bits)
    }

    /// How many epochs ago a tag was that of the open one, which is now another.
    #[inline(always)]
    pub fn age(&self, now: u32, tag: u32) -> u32 {
        now.wrapping_sub(tag) & ((1 << self.tag_bits) - 1)
    }
}
