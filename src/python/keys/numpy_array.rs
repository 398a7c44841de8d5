//! NumPy arrays, hashed where they lie: any stride, and alignment does not matter.

use numpy::npyffi::PyArrayObject;
use numpy::prelude::*;
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};

use arrow_array::types::{ArrowPrimitiveType, Float16Type};

use super::{Keys, is_of, objects};
use crate::key::KeyHasher;
use crate::key::time::Unit;

/// An IEEE binary16.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// Reads an array of one dimension, or of two: then a row is a key.
pub fn read(array: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = array.py();
    if !is_of(array, "numpy.ma", "MaskedArray")? {
        return read_plain(array, hasher);
    }
    let module = py.import("numpy.ma")?;
    let data = module.call_method1("getdata", (array, false))?.cast_into::<PyUntypedArray>()?;
    let mask = module.call_method1("getmaskarray", (array,))?.cast_into::<PyUntypedArray>()?;
    read_masked(&data, &mask, hasher)
}

/// Splits rows and records into their columns, which have each a mask of their own.
fn read_masked(
    array: &Bound<'_, PyUntypedArray>,
    mask: &Bound<'_, PyUntypedArray>,
    hasher: KeyHasher,
) -> PyResult<Keys> {
    if let Some(parts) = Parts::of(array)? {
        return parts.read(hasher, |part| read_masked(&parts.pick(array, part)?, &parts.pick(mask, part)?, hasher));
    }
    let mask = Lane::new(mask);
    Ok(read_plain(array, hasher)?.masked(hasher.missing(), move |i| mask.get::<u8>(i) != 0))
}

fn read_plain(array: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    match Parts::of(array)? {
        Some(parts) => parts.read(hasher, |part| read_plain(&parts.pick(array, part)?, hasher)),
        None => read_lane(array, hasher),
    }
}

/// What a key of an array consists of, where it is a row.
struct Parts {
    rows: usize,
    kind: PartKind,
}

enum PartKind {
    /// The columns of two dimensions.
    Columns(usize),
    /// The fields of records.
    Fields(Vec<String>),
}

impl Parts {
    fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Self>> {
        let kind = match (array.shape(), array.dtype().names()) {
            ([_], None) => return Ok(None),
            ([_], Some(names)) => PartKind::Fields(names),
            (&[_, columns], _) => PartKind::Columns(columns),
            (shape, _) => {
                let message = format!("keys must be an array of one or two dimensions, not {}", shape.len());
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Some(Self { rows: array.shape()[0], kind }))
    }

    fn read(&self, hasher: KeyHasher, read: impl Fn(usize) -> PyResult<Keys>) -> PyResult<Keys> {
        let width = match &self.kind {
            PartKind::Columns(columns) => *columns,
            PartKind::Fields(names) => names.len(),
        };
        Ok(Keys::rows(self.rows, (0..width).map(read).collect::<PyResult<_>>()?, hasher))
    }

    /// One part of the data, or of the mask.
    fn pick<'py>(&self, array: &Bound<'py, PyUntypedArray>, part: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = array.py();
        let picked = match &self.kind {
            // As a plain array: a column of `numpy.matrix` would have two dimensions again.
            PartKind::Columns(_) => py
                .import(intern!(py, "numpy"))?
                .call_method1(intern!(py, "asarray"), (array,))?
                .get_item((PySlice::full(py), part))?,
            PartKind::Fields(names) => array.get_item(&names[part])?,
        };
        Ok(picked.cast_into()?)
    }
}

/// Reads an array of one dimension whose elements are no records.
fn read_lane(array: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = array.py();
    let dtype = array.dtype();
    if dtype.is_native_byteorder() == Some(false) {
        let native = dtype.call_method1(intern!(py, "newbyteorder"), (intern!(py, "="),))?;
        let array = array.call_method1(intern!(py, "astype"), (native,))?.cast_into()?;
        return read_lane(&array, hasher);
    }
    let width = dtype.itemsize();
    let lane = Lane::new(array);
    let len = array.len();
    Ok(match (dtype.kind(), width) {
        (b'b', 1) => Keys::each(len, move |i| hasher.integer(i64::from(lane.get::<u8>(i) != 0))),
        (b'i', 1) => Keys::each(len, move |i| hasher.integer(lane.get::<i8>(i).into())),
        (b'i', 2) => Keys::each(len, move |i| hasher.integer(lane.get::<i16>(i).into())),
        (b'i', 4) => Keys::each(len, move |i| hasher.integer(lane.get::<i32>(i).into())),
        (b'i', 8) => Keys::each(len, move |i| hasher.integer(lane.get::<i64>(i))),
        (b'u', 1) => Keys::each(len, move |i| hasher.unsigned(lane.get::<u8>(i).into())),
        (b'u', 2) => Keys::each(len, move |i| hasher.unsigned(lane.get::<u16>(i).into())),
        (b'u', 4) => Keys::each(len, move |i| hasher.unsigned(lane.get::<u32>(i).into())),
        (b'u', 8) => Keys::each(len, move |i| hasher.unsigned(lane.get::<u64>(i))),
        (b'f', 2) => Keys::each(len, move |i| hasher.float(Half::from_bits(lane.get::<u16>(i)).to_f64())),
        (b'f', 4) => Keys::each(len, move |i| hasher.float(lane.get::<f32>(i).into())),
        (b'f', 8) => Keys::each(len, move |i| hasher.float(lane.get::<f64>(i))),
        (b'f' | b'O' | b'T', _) => read_objects(array, hasher)?,
        (b'S', _) => Keys::each(len, move |i| hasher.bytes(without_padding(lane.bytes(i, width)))),
        (b'V', _) => Keys::each(len, move |i| hasher.bytes(lane.bytes(i, width))),
        (b'U', _) => Keys::new(len, move |start, out| {
            let mut utf8 = Vec::with_capacity(width);
            for (i, out) in (start..).zip(out) {
                encode(lane.bytes(i, width), &mut utf8);
                *out = hasher.text(&utf8);
            }
        }),
        (b'M' | b'm', _) => return read_times(array, false, hasher),
        _ => {
            let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
            return Err(PyTypeError::new_err(format!("NumPy type {name} cannot be a key")));
        }
    })
}

/// Objects, `StringDType` (whose layout is NumPy's own affair) and extended floats, element by element.
fn read_objects(array: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    let list = array.call_method0(intern!(array.py(), "tolist"))?.cast_into::<PyList>()?;
    objects::read(list.iter(), hasher)
}

/// Reads `datetime64`, as instants of UTC if `aware`, or `timedelta64`.
pub fn read_times(array: &Bound<'_, PyUntypedArray>, aware: bool, hasher: KeyHasher) -> PyResult<Keys> {
    const NOT_A_TIME: i64 = i64::MIN;
    let dtype = array.dtype();
    let (len, lane) = (array.len(), Lane::new(array));
    let Some(unit) = unit(&dtype)? else {
        // Without a unit only NaT means anything.
        if (0..len).any(|i| lane.get::<i64>(i) != NOT_A_TIME) {
            return Err(PyTypeError::new_err(format!("NumPy type {dtype} without a unit cannot be a key")));
        }
        return Ok(Keys::each(len, move |_| hasher.missing()));
    };
    fn times(len: usize, lane: Lane, missing: u64, hash: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Keys {
        Keys::each(len, move |i| match lane.get(i) {
            NOT_A_TIME => missing,
            ticks => hash(ticks),
        })
    }
    let missing = hasher.missing();
    Ok(match dtype.kind() {
        b'm' => times(len, lane, missing, move |ticks| hasher.duration(unit.duration(ticks))),
        _ if aware => times(len, lane, missing, move |ticks| hasher.aware(unit.instant(ticks))),
        _ => times(len, lane, missing, move |ticks| hasher.instant(unit.instant(ticks))),
    })
}

/// The unit of `datetime64` or `timedelta64`; `None` for the generic one.
pub fn unit(dtype: &Bound<'_, PyArrayDescr>) -> PyResult<Option<Unit>> {
    let py = dtype.py();
    let data = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "datetime_data"), (dtype,))?;
    let (code, count): (String, u64) = data.extract()?;
    Ok(Unit::from_numpy(&code, count))
}

/// The elements of an array of one dimension, in place.
pub struct Lane {
    /// Keeps the memory.
    _array: Py<PyUntypedArray>,
    first: *const u8,
    stride: isize,
}

// SAFETY: the memory is only read, and it lives as long as the array, which only a thread that holds the interpreter can
// end. Another thread may write to the array meanwhile, as with every NumPy function that lets go of the interpreter:
// then the hash is that of some bytes, and nothing depends on which.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    /// The elements of `array`.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> Self {
        debug_assert_eq!(array.ndim(), 1);
        let object: *mut PyArrayObject = array.as_array_ptr();
        // SAFETY: `object` is a live array.
        let first = unsafe { (*object).fields.data.cast_const().cast() };
        Self { _array: array.clone().unbind(), first, stride: array.strides()[0] }
    }

    /// Element `i`, which [`Keys::fill`] has seen to be within the array.
    #[inline(always)]
    pub fn get<T: bytemuck::Pod>(&self, i: usize) -> T {
        // SAFETY: the element is within the array and of T's size; any bytes are a T, and they need not be aligned.
        unsafe { self.first.offset(i as isize * self.stride).cast::<T>().read_unaligned() }
    }

    /// The `width` bytes of element `i`.
    #[inline(always)]
    fn bytes(&self, i: usize, width: usize) -> &[u8] {
        // SAFETY: the element is within the array and this wide.
        unsafe { std::slice::from_raw_parts(self.first.offset(i as isize * self.stride), width) }
    }
}

/// NumPy fills up with NULs and cannot tell them from data, so neither do we.
#[inline]
fn without_padding(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

/// Code points of four bytes each to UTF-8, surrogates included.
fn encode(ucs4: &[u8], utf8: &mut Vec<u8>) {
    utf8.clear();
    let (points, _) = ucs4.as_chunks::<4>();
    let len = points.iter().rposition(|&point| point != [0; 4]).map_or(0, |last| last + 1);
    let points = &points[..len];
    let all = points.iter().fold(0, |all, &point| all | u32::from_ne_bytes(point));
    if all < 0x80 {
        // Most strings are ASCII. Both this and the check run several characters at a time.
        return utf8.extend(points.iter().map(|&point| u32::from_ne_bytes(point) as u8));
    }
    for &point in points {
        let point = u32::from_ne_bytes(point);
        let low = |shift: u32| 0x80 | (point >> shift) as u8 & 0x3f;
        match point {
            0..0x80 => utf8.push(point as u8),
            0x80..0x800 => utf8.extend([0xc0 | (point >> 6) as u8, low(0)]),
            0x800..0x1_0000 => utf8.extend([0xe0 | (point >> 12) as u8, low(6), low(0)]),
            _ => utf8.extend([0xf0 | (point >> 18) as u8, low(12), low(6), low(0)]),
        }
    }
}
