//! Arrow arrays, hashed in place.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray, downcast_integer,
};
use arrow_schema::{DataType, Field, TimeUnit};

use super::Keys;
use crate::key::time::Unit;
use crate::key::{KeyHasher, Strings};

/// Metadata of a field whose values mean something other than their storage.
const EXTENSION: &str = "ARROW:extension:name";

/// Reads an array of the type of `field`; the error says why it cannot be keys.
pub fn read(field: &Field, array: &ArrayRef, hasher: KeyHasher) -> Result<Keys, String> {
    let keys = match (field.metadata().get(EXTENSION).map(String::as_str), field.data_type()) {
        (None, _) => read_values(field, array, hasher)?,
        (Some("arrow.uuid"), DataType::FixedSizeBinary(16)) => {
            let (_, values, _) = array.as_fixed_size_binary().clone().into_parts();
            Keys::each(array.len(), move |i| hasher.uuid(std::array::from_fn(|byte| values[16 * i + byte])))
        }
        (Some(name), _) => return Err(format!("Arrow extension type {name} cannot be a key")),
    };
    Ok(match array.nulls().cloned() {
        Some(nulls) => {
            keys.masked(nulls.len(), hasher.missing(), move |i| nulls.is_null(i)).map_err(|error| error.to_string())?
        }
        None => keys,
    })
}

/// Reads the values, with arbitrary values at nulls.
fn read_values(field: &Field, array: &ArrayRef, hasher: KeyHasher) -> Result<Keys, String> {
    let (len, missing) = (array.len(), hasher.missing());
    Ok(match field.data_type() {
        DataType::Null => Keys::each(len, move |_| missing),
        DataType::Boolean => {
            let values = array.as_boolean().values().clone();
            Keys::each(len, move |i| hasher.integer(values.value(i).into()))
        }
        DataType::Int8 => primitive::<Int8Type>(array, |value| i64::from(value) as u64).of_integers(hasher),
        DataType::Int16 => primitive::<Int16Type>(array, |value| i64::from(value) as u64).of_integers(hasher),
        DataType::Int32 => primitive::<Int32Type>(array, |value| i64::from(value) as u64).of_integers(hasher),
        DataType::Int64 => primitive::<Int64Type>(array, |value| value as u64).of_integers(hasher),
        DataType::UInt8 => primitive::<UInt8Type>(array, |value| value.into()).of_integers(hasher),
        DataType::UInt16 => primitive::<UInt16Type>(array, |value| value.into()).of_integers(hasher),
        DataType::UInt32 => primitive::<UInt32Type>(array, |value| value.into()).of_integers(hasher),
        DataType::UInt64 => primitive::<UInt64Type>(array, |value| value).of_unsigned(hasher),
        DataType::Float16 => primitive::<Float16Type>(array, move |value| hasher.float(value.to_f64())),
        DataType::Float32 => primitive::<Float32Type>(array, move |value| hasher.float(value.into())),
        DataType::Float64 => primitive::<Float64Type>(array, move |value| hasher.float(value)),
        DataType::Utf8 => Keys::of_texts(len, array.as_string::<i32>().clone(), hasher),
        DataType::LargeUtf8 => Keys::of_texts(len, array.as_string::<i64>().clone(), hasher),
        DataType::Utf8View => Keys::of_texts(len, array.as_string_view().clone(), hasher),
        DataType::Binary => Keys::of_byte_strings(len, array.as_binary::<i32>().clone(), hasher),
        DataType::LargeBinary => Keys::of_byte_strings(len, array.as_binary::<i64>().clone(), hasher),
        DataType::BinaryView => Keys::of_byte_strings(len, array.as_binary_view().clone(), hasher),
        DataType::FixedSizeBinary(_) => Keys::of_byte_strings(len, array.as_fixed_size_binary().clone(), hasher),
        DataType::Date32 => primitive::<Date32Type>(array, move |days| hasher.instant(Unit::DAY.instant(days.into()))),
        // Milliseconds of a date: the time of day does not count.
        DataType::Date64 => primitive::<Date64Type>(array, move |milliseconds| {
            hasher.instant(Unit::DAY.instant(milliseconds.div_euclid(86_400_000)))
        }),
        DataType::Timestamp(unit, zone) => {
            let unit = self::unit(unit);
            match zone {
                Some(_) => ticks(array, move |ticks| hasher.aware(unit.instant(ticks))),
                None => ticks(array, move |ticks| hasher.instant(unit.instant(ticks))),
            }
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let unit = self::unit(unit);
            let time = move |ticks| hasher.time_of_day(unit.instant(ticks));
            match field.data_type() {
                DataType::Time32(TimeUnit::Second) => primitive::<Time32SecondType>(array, move |t| time(t.into())),
                DataType::Time32(_) => primitive::<Time32MillisecondType>(array, move |t| time(t.into())),
                _ => ticks(array, time),
            }
        }
        DataType::Duration(unit) => {
            let unit = self::unit(unit);
            ticks(array, move |ticks| hasher.duration(unit.duration(ticks)))
        }
        DataType::Dictionary(code, values) => {
            let values =
                read(&field.clone().with_data_type((**values).clone()), array.as_any_dictionary().values(), hasher)?;
            macro_rules! taken {
                ($code:ty) => {{
                    let codes = array.as_dictionary::<$code>().keys().values().clone();
                    values.taken(len, move |i| codes[i].try_into().ok(), missing).map_err(|error| error.to_string())?
                }};
            }
            downcast_integer! {
                **code => (taken),
                _ => return Err(refused(field.data_type())),
            }
        }
        DataType::Decimal32(..) => decimals::<Decimal32Type, 4>(array, hasher, |value| value.to_le_bytes()),
        DataType::Decimal64(..) => decimals::<Decimal64Type, 8>(array, hasher, |value| value.to_le_bytes()),
        DataType::Decimal128(..) => decimals::<Decimal128Type, 16>(array, hasher, |value| value.to_le_bytes()),
        DataType::Decimal256(..) => decimals::<Decimal256Type, 32>(array, hasher, |value| value.to_le_bytes()),
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let ends = lists.offsets().clone();
            read(item, lists.values(), hasher)?.lists(len, move |i| ends[i] as usize..ends[i + 1] as usize, hasher)
        }
        DataType::LargeList(item) => {
            let lists = array.as_list::<i64>();
            let ends = lists.offsets().clone();
            read(item, lists.values(), hasher)?.lists(len, move |i| ends[i] as usize..ends[i + 1] as usize, hasher)
        }
        DataType::FixedSizeList(item, width) => {
            let width = *width as usize;
            let values = array.as_fixed_size_list().values();
            read(item, values, hasher)?.lists(len, move |i| i * width..(i + 1) * width, hasher)
        }
        DataType::RunEndEncoded(ends, values) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array, values, hasher)?,
            DataType::Int32 => runs::<Int32Type>(array, values, hasher)?,
            _ => runs::<Int64Type>(array, values, hasher)?,
        },
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let columns = columns.map(|(field, column)| {
                read(field, column, hasher).map_err(|error| format!("column '{}': {error}", field.name()))
            });
            Keys::rows(len, columns.collect::<Result<_, _>>()?, hasher).map_err(|error| error.to_string())?
        }
        other => return Err(refused(other)),
    })
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, hash: impl Fn(T::Native) -> u64 + Send + Sync + 'static) -> Keys {
    let values = array.as_primitive::<T>().values().clone();
    Keys::new(values.len(), move |start, out| {
        let values = &values[start..start + out.len()];
        out.iter_mut().zip(values).for_each(|(out, &value)| *out = hash(value));
    })
}

/// Decimals, by the bytes of their coefficients.
fn decimals<T: DecimalType, const WIDTH: usize>(
    array: &ArrayRef,
    hasher: KeyHasher,
    bytes: impl Fn(T::Native) -> [u8; WIDTH] + Send + Sync + 'static,
) -> Keys {
    let scale = array.as_primitive::<T>().scale();
    primitive::<T>(array, move |coefficient| hasher.decimal(&bytes(coefficient), scale))
}

/// Runs of equal keys, by the places where they end.
fn runs<T: RunEndIndexType<Native: Into<i64>>>(
    array: &ArrayRef,
    values: &Field,
    hasher: KeyHasher,
) -> Result<Keys, String> {
    let array = array.as_run::<T>();
    let ends = array.run_ends().clone();
    let (first, keys) = (ends.offset(), read(values, array.values(), hasher)?);
    let run = move |i: usize| Some(ends.values().partition_point(|&end| end.into() <= (first + i) as i64));
    keys.taken(array.len(), run, hasher.missing()).map_err(|error| error.to_string())
}

/// Ticks, which every type of time stores alike.
fn ticks(array: &ArrayRef, hash: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Keys {
    let data = array.to_data().into_builder().data_type(DataType::Int64).build();
    let ticks: PrimitiveArray<Int64Type> = data.expect("times are stored as int64").into();
    let ticks = ticks.values().clone();
    Keys::each(ticks.len(), move |i| hash(ticks[i]))
}

fn unit(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::Second => Unit::SECOND,
        TimeUnit::Millisecond => Unit::MILLISECOND,
        TimeUnit::Microsecond => Unit::MICROSECOND,
        TimeUnit::Nanosecond => Unit::NANOSECOND,
    }
}

/// Strings by their offsets. Offsets out of the data, which no honest producer makes, give an empty string.
impl<T: ByteArrayType<Offset: Into<i64>>> Strings for GenericByteArray<T> {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        let offsets = self.value_offsets();
        let (from, to) = (offsets[i].into() as usize, offsets[i + 1].into() as usize);
        self.value_data().get(from..to).unwrap_or_default()
    }
}

/// Strings by views of 16 bytes: the length, then the string itself if it has at most 12 bytes; otherwise its first
/// four bytes, the number of a buffer and an offset into it.
impl<T: ByteViewType> Strings for GenericByteViewArray<T> {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        let view = &self.views()[i];
        let len = *view as u32 as usize;
        if len <= 12 {
            return &bytemuck::bytes_of(view)[4..4 + len];
        }
        let (buffer, from) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        self.data_buffers().get(buffer).and_then(|buffer| buffer.get(from..from + len)).unwrap_or_default()
    }
}

impl Strings for FixedSizeBinaryArray {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        let width = self.value_length() as usize;
        &self.value_data()[i * width..(i + 1) * width]
    }
}

fn refused(data_type: &DataType) -> String {
    format!("Arrow type {data_type} cannot be a key")
}
