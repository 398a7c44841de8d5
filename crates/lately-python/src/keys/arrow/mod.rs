//! Reads Arrow columns in place.
//!
//! An array may be a slice: its elements start at an offset in its buffers. A nested array applies its offset to its
//! children, which have offsets of their own. Every reader here reads the elements `from..from + len` of a column.

#[expect(unsafe_code, reason = "takes structures of other libraries out of capsules")]
mod capsule;
#[expect(unsafe_code, reason = "reads buffers of other libraries, by the C data interface")]
mod column;
mod field;
#[expect(unsafe_code, reason = "reads structures of other libraries, by the C data interface")]
mod structures;

use std::marker::PhantomData;

use bytemuck::Pod;

use super::Keys;
pub use capsule::read;
use column::{ArrowBuffer, ArrowColumn};
use field::{ArrowField, ArrowKind};
use lately::Error;
use lately::key::time::Unit;
use lately::key::{KeyHasher, Strings};

/// Reads the keys `from..from + len` of a column.
fn keys(field: &ArrowField, column: &ArrowColumn, from: usize, len: usize, hasher: KeyHasher) -> Result<Keys, Error> {
    let start = column.offset + from;
    let keys = values(field, column, start, len, hasher)?;
    match column.present.clone() {
        Some(present) => keys.masked(len, hasher.missing(), move |i| !present.bit(start + i)),
        None => Ok(keys),
    }
}

/// Reads the values from `start` on in the buffers. A missing element may have any value.
fn values(
    field: &ArrowField,
    column: &ArrowColumn,
    start: usize,
    len: usize,
    hasher: KeyHasher,
) -> Result<Keys, Error> {
    let elements = |child: usize| {
        let column = &column.children[child];
        keys(&field.children[child], column, 0, column.len, hasher)
    };
    let fixed = Elements { buffers: &column.buffers, start, len };
    if let (Some(values), Some(dictionary)) = (&field.dictionary, &column.dictionary) {
        return decoded(keys(values, dictionary, 0, dictionary.len, hasher)?, field.kind, fixed, hasher.missing());
    }
    Ok(match field.kind {
        ArrowKind::Null => Keys::each(len, move |_| hasher.missing()),
        ArrowKind::Boolean => {
            let values = column.buffers[0].clone();
            Keys::each(len, move |i| hasher.integer(values.bit(start + i).into()))
        }
        ArrowKind::Signed(1) => fixed.each(|value: i8| i64::from(value) as u64).of_integers(hasher),
        ArrowKind::Signed(2) => fixed.each(|value: i16| i64::from(value) as u64).of_integers(hasher),
        ArrowKind::Signed(4) => fixed.each(|value: i32| i64::from(value) as u64).of_integers(hasher),
        ArrowKind::Signed(_) => fixed.each(|value: i64| value as u64).of_integers(hasher),
        ArrowKind::Unsigned(1) => fixed.each(|value: u8| value.into()).of_integers(hasher),
        ArrowKind::Unsigned(2) => fixed.each(|value: u16| value.into()).of_integers(hasher),
        ArrowKind::Unsigned(4) => fixed.each(|value: u32| value.into()).of_integers(hasher),
        ArrowKind::Unsigned(_) => fixed.each(|value: u64| value).of_unsigned(hasher),
        ArrowKind::Float(2) => fixed.each(move |value| hasher.float(half(value))),
        ArrowKind::Float(4) => fixed.each(move |value: f32| hasher.float(value.into())),
        ArrowKind::Float(_) => fixed.each(move |value: f64| hasher.float(value)),
        ArrowKind::Strings { wide: false } => Keys::of_texts(len, fixed.by_offsets::<i32>(), hasher),
        ArrowKind::Strings { wide: true } => Keys::of_texts(len, fixed.by_offsets::<i64>(), hasher),
        ArrowKind::Bytes { wide: false } => Keys::of_byte_strings(len, fixed.by_offsets::<i32>(), hasher),
        ArrowKind::Bytes { wide: true } => Keys::of_byte_strings(len, fixed.by_offsets::<i64>(), hasher),
        ArrowKind::StringViews => Keys::of_texts(len, fixed.by_views(), hasher),
        ArrowKind::ByteViews => Keys::of_byte_strings(len, fixed.by_views(), hasher),
        ArrowKind::FixedBytes(width) => {
            Keys::of_byte_strings(len, FixedWidth { values: column.buffers[0].clone(), start, width }, hasher)
        }
        ArrowKind::Uuid => fixed.each(move |value: [u8; 16]| hasher.uuid(value)),
        ArrowKind::Decimal(4, scale) => fixed.each(move |value: [u8; 4]| hasher.decimal(&value, scale)),
        ArrowKind::Decimal(8, scale) => fixed.each(move |value: [u8; 8]| hasher.decimal(&value, scale)),
        ArrowKind::Decimal(16, scale) => fixed.each(move |value: [u8; 16]| hasher.decimal(&value, scale)),
        ArrowKind::Decimal(_, scale) => fixed.each(move |value: [u8; 32]| hasher.decimal(&value, scale)),
        ArrowKind::Days => fixed.each(move |days: i32| hasher.instant(Unit::DAY.instant(days.into()))),
        ArrowKind::DaysInMilliseconds => {
            fixed.each(move |time: i64| hasher.instant(Unit::DAY.instant(time.div_euclid(86_400_000))))
        }
        ArrowKind::Time(4, unit) => fixed.each(move |time: i32| hasher.time_of_day(unit.instant(time.into()))),
        ArrowKind::Time(_, unit) => fixed.each(move |time: i64| hasher.time_of_day(unit.instant(time))),
        ArrowKind::Instant { unit, aware: true } => fixed.each(move |time: i64| hasher.aware(unit.instant(time))),
        ArrowKind::Instant { unit, aware: false } => fixed.each(move |time: i64| hasher.instant(unit.instant(time))),
        ArrowKind::Duration(unit) => fixed.each(move |time: i64| hasher.duration(unit.duration(time))),
        ArrowKind::List { wide: false } => fixed.lists::<i32>(elements(0)?, hasher),
        ArrowKind::List { wide: true } => fixed.lists::<i64>(elements(0)?, hasher),
        ArrowKind::ListViews { wide: false } => fixed.list_views::<i32>(elements(0)?, hasher),
        ArrowKind::ListViews { wide: true } => fixed.list_views::<i64>(elements(0)?, hasher),
        ArrowKind::FixedList(width) => {
            elements(0)?.lists(len, move |i| (start + i) * width..(start + i + 1) * width, hasher)
        }
        ArrowKind::Struct => {
            let columns = field.children.iter().zip(&column.children);
            let columns = columns.map(|(field, column)| keys(field, column, start, len, hasher));
            Keys::rows(len, columns.collect::<Result<_, _>>()?, hasher)?
        }
        ArrowKind::Runs => {
            let (ends, elements) = (&column.children[0], elements(1)?);
            let (first, count, ends) = (ends.offset, ends.len, ends.buffers[0].clone());
            let end: fn(&ArrowBuffer, usize) -> i64 = match field.children[0].kind {
                ArrowKind::Signed(2) => |ends, i| ends.at::<i16>(i).into(),
                ArrowKind::Signed(4) => |ends, i| ends.at::<i32>(i).into(),
                _ => |ends, i| ends.at(i),
            };
            let run = move |i: usize| Some(first_after(count, (start + i) as i64, |run| end(&ends, first + run)));
            elements.taken(len, run, hasher.missing())?
        }
    })
}

/// Returns the index of the first of `count` ascending ends that lies after `element`, or `count`.
fn first_after(count: usize, element: i64, end: impl Fn(usize) -> i64) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if end(middle) <= element { low = middle + 1 } else { high = middle }
    }
    low
}

/// Reads codes of this kind, which are positions in a dictionary of keys.
fn decoded(keys: Keys, kind: ArrowKind, codes: Elements<'_>, missing: u64) -> Result<Keys, Error> {
    let (len, start, codes) = (codes.len, codes.start, codes.buffers[0].clone());
    match kind {
        ArrowKind::Signed(1) => keys.taken(len, move |i| codes.at::<i8>(start + i).try_into().ok(), missing),
        ArrowKind::Signed(2) => keys.taken(len, move |i| codes.at::<i16>(start + i).try_into().ok(), missing),
        ArrowKind::Signed(4) => keys.taken(len, move |i| codes.at::<i32>(start + i).try_into().ok(), missing),
        ArrowKind::Signed(_) => keys.taken(len, move |i| codes.at::<i64>(start + i).try_into().ok(), missing),
        ArrowKind::Unsigned(1) => keys.taken(len, move |i| Some(codes.at::<u8>(start + i).into()), missing),
        ArrowKind::Unsigned(2) => keys.taken(len, move |i| Some(codes.at::<u16>(start + i).into()), missing),
        ArrowKind::Unsigned(4) => keys.taken(len, move |i| codes.at::<u32>(start + i).try_into().ok(), missing),
        _ => keys.taken(len, move |i| codes.at::<u64>(start + i).try_into().ok(), missing),
    }
}

/// The elements `start..start + len` of a column's buffers.
struct Elements<'a> {
    buffers: &'a [ArrowBuffer],
    start: usize,
    len: usize,
}

impl Elements<'_> {
    /// Hashes elements that are values of a fixed width.
    fn each<T: Pod>(self, hash: impl Fn(T) -> u64 + Send + Sync + 'static) -> Keys {
        let (values, first) = (self.buffers[0].clone(), self.start);
        Keys::new(self.len, move |start, out| {
            let values = &values.bytes()[(first + start) * size_of::<T>()..][..out.len() * size_of::<T>()];
            let values = values.chunks_exact(size_of::<T>());
            out.iter_mut().zip(values).for_each(|(out, value)| *out = hash(bytemuck::pod_read_unaligned(value)));
        })
    }

    /// Returns strings that are given by offsets.
    fn by_offsets<T: Offset>(self) -> ByOffsets<T> {
        let [offsets, data] = self.buffers else { unreachable!("strings have two buffers") };
        ByOffsets { offsets: offsets.clone(), data: data.clone(), start: self.start, of: PhantomData }
    }

    /// Returns strings that are given by views.
    fn by_views(self) -> ByViews {
        let [views, data @ ..] = self.buffers else { unreachable!("views have a buffer") };
        ByViews { views: views.clone(), data: data.to_vec(), start: self.start }
    }

    /// Hashes lists of these elements, which are given by offsets.
    fn lists<T: Offset>(self, elements: Keys, hasher: KeyHasher) -> Keys {
        let (ends, start) = (self.buffers[0].clone(), self.start);
        let list = move |i| ends.at::<T>(start + i).place()..ends.at::<T>(start + i + 1).place();
        elements.lists(self.len, list, hasher)
    }

    /// Hashes lists of these elements, which are given by offsets and sizes.
    fn list_views<T: Offset>(self, elements: Keys, hasher: KeyHasher) -> Keys {
        let [offsets, sizes] = self.buffers else { unreachable!("views of lists have two buffers") };
        let (offsets, sizes, start) = (offsets.clone(), sizes.clone(), self.start);
        let list = move |i| {
            let first = offsets.at::<T>(start + i).place();
            first..first.saturating_add(sizes.at::<T>(start + i).place())
        };
        elements.lists(self.len, list, hasher)
    }
}

/// An offset into a buffer, of 4 bytes or of 8.
trait Offset: Pod + Send + Sync {
    /// Returns the position. A negative offset lies after every buffer.
    fn place(self) -> usize;
}

impl Offset for i32 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

impl Offset for i64 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// Strings that are given by offsets. Invalid offsets, which only a faulty producer writes, give an empty string.
struct ByOffsets<T> {
    offsets: ArrowBuffer,
    data: ArrowBuffer,
    start: usize,
    of: PhantomData<T>,
}

impl<T: Offset> Strings for ByOffsets<T> {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        let offset = |i: usize| self.offsets.at::<T>(i).place();
        self.data.bytes().get(offset(self.start + i)..offset(self.start + i + 1)).unwrap_or_default()
    }
}

/// Strings that are given by views of 16 bytes: the length, then the string itself if it has at most 12 bytes;
/// otherwise its first four bytes, the number of a buffer and an offset into it. Invalid views give an empty string.
struct ByViews {
    views: ArrowBuffer,
    data: Vec<ArrowBuffer>,
    start: usize,
}

impl Strings for ByViews {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        let view = &self.views.bytes()[(self.start + i) * 16..][..16];
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| view[at + byte])) as usize;
        let len = number(0);
        if len <= 12 {
            return &view[4..4 + len];
        }
        let from = number(12);
        self.data.get(number(8)).and_then(|data| data.bytes().get(from..from.checked_add(len)?)).unwrap_or_default()
    }
}

/// Strings of one length, without gaps.
struct FixedWidth {
    values: ArrowBuffer,
    start: usize,
    width: usize,
}

impl Strings for FixedWidth {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        &self.values.bytes()[(self.start + i) * self.width..][..self.width]
    }
}

/// Converts a floating-point number of 16 bits: a sign, 5 bits of exponent, and 10 bits of fraction.
pub fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}
