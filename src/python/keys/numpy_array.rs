//! NumPy arrays, hashed in place: with any stride and any alignment.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::null_mut;

use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NpyTypes, PY_ARRAY_API, get_type_object};
use numpy::prelude::*;
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};
use pyo3::{ffi, intern};

use arrow_array::types::{ArrowPrimitiveType, Float16Type};

use super::{Keys, Reader, is_of, objects};
use crate::instructions::{Instructions, Work};
use crate::key::time::Unit;
use crate::key::{KeyHasher, Strings};
use crate::memory::prefetch::Address;

/// An IEEE binary16.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// Reads an array of one dimension, or of two, of which each row is a key.
pub(super) fn read(array: &Bound<'_, PyUntypedArray>, reader: Reader<'_>) -> PyResult<Keys> {
    let py = array.py();
    // A plain array needs no look at the class of masked ones, which takes as long as to hash ten keys.
    if array.is_exact_instance_of::<PyUntypedArray>() || !is_of(array, "numpy.ma", "MaskedArray")? {
        return read_plain(array, reader);
    }
    let module = py.import("numpy.ma")?;
    let data = module.call_method1("getdata", (array, false))?.cast_into::<PyUntypedArray>()?;
    let mask = module.call_method1("getmaskarray", (array,))?.cast_into::<PyUntypedArray>()?;
    read_masked(&data, &mask, reader)
}

/// Splits rows and records into their columns, each with a mask of its own.
fn read_masked(
    array: &Bound<'_, PyUntypedArray>,
    mask: &Bound<'_, PyUntypedArray>,
    reader: Reader<'_>,
) -> PyResult<Keys> {
    if let Some(parts) = Parts::of(array)? {
        let reader = reader.within()?;
        return parts.read(reader, |part| read_masked(&parts.pick(array, part)?, &parts.pick(mask, part)?, reader));
    }
    masked(read_plain(array, reader)?, mask, *reader.hasher)
}

/// `keys`, but missing where a mask of bools says so.
pub fn masked(keys: Keys, mask: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    let mask = Lane::of::<u8>(mask)?;
    Ok(keys.masked(mask.len, hasher.missing(), move |i| mask.get::<u8>(i) != 0)?)
}

fn read_plain(array: &Bound<'_, PyUntypedArray>, reader: Reader<'_>) -> PyResult<Keys> {
    match Parts::of(array)? {
        Some(parts) => {
            let reader = reader.within()?;
            parts.read(reader, |part| read_plain(&parts.pick(array, part)?, reader))
        }
        None => read_lane(array, reader),
    }
}

/// The parts of a key, if it is a row.
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

    fn read(&self, reader: Reader<'_>, read: impl Fn(usize) -> PyResult<Keys>) -> PyResult<Keys> {
        let width = match &self.kind {
            PartKind::Columns(columns) => *columns,
            PartKind::Fields(names) => names.len(),
        };
        Ok(Keys::rows(self.rows, (0..width).map(read).collect::<PyResult<_>>()?, *reader.hasher)?)
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

/// Reads an array of one dimension whose elements are not records.
fn read_lane(array: &Bound<'_, PyUntypedArray>, reader: Reader<'_>) -> PyResult<Keys> {
    let (py, hasher) = (array.py(), *reader.hasher);
    let lane = Lane::new(array)?;
    let dtype = lane.dtype(py);
    if dtype.is_native_byteorder() == Some(false) {
        let native = dtype.call_method1(intern!(py, "newbyteorder"), (intern!(py, "="),))?;
        let array = lane.view.bind(py).call_method1(intern!(py, "astype"), (native,))?.cast_into()?;
        return read_lane(&array, reader.within()?);
    }
    Ok(match (dtype.kind(), lane.width) {
        (b'b', 1) => lane.integers(hasher, |flag: u8| u64::from(flag != 0)),
        (b'i', 1) => lane.integers(hasher, |value: i8| i64::from(value) as u64),
        (b'i', 2) => lane.integers(hasher, |value: i16| i64::from(value) as u64),
        (b'i', 4) => lane.integers(hasher, |value: i32| i64::from(value) as u64),
        (b'i', 8) => lane.integers(hasher, |value: u64| value),
        (b'u', 1) => lane.integers(hasher, |value: u8| value.into()),
        (b'u', 2) => lane.integers(hasher, |value: u16| value.into()),
        (b'u', 4) => lane.integers(hasher, |value: u32| value.into()),
        (b'u', 8) => lane.keys(|value: u64| value).of_unsigned(hasher),
        (b'f', 2) => lane.keys(move |bits: u16| hasher.float(Half::from_bits(bits).to_f64())),
        (b'f', 4) => lane.keys(move |value: f32| hasher.float(value.into())),
        (b'f', 8) => lane.keys(move |value: f64| hasher.float(value)),
        (b'O', _) => read_objects(lane, py, reader.within()?)?,
        (b'f' | b'T', _) => read_as_list(lane, py, reader.within()?)?,
        (b'S', _) => Keys::of_byte_strings(lane.len, WithoutPadding(lane), hasher),
        (b'V', _) => Keys::of_byte_strings(lane.len, lane, hasher),
        (b'U', width) => Keys::new(lane.len, move |start, out| {
            let mut utf8 = Vec::with_capacity(width);
            for (ucs4, out) in lane.bytes(start..start + out.len()).zip(out) {
                encode(ucs4, &mut utf8);
                *out = hasher.text(&utf8);
            }
        }),
        (b'M' | b'm', _) => return times_of(lane, py, false, hasher),
        _ => {
            let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
            return Err(PyTypeError::new_err(format!("NumPy type {name} cannot be a key")));
        }
    })
}

/// Objects, in place; the array may change meanwhile, as a list may.
fn read_objects(lane: Lane, py: Python<'_>, reader: Reader<'_>) -> PyResult<Keys> {
    // SAFETY: it is an array of objects, and they are lent until Python runs.
    objects::read(py, lane.len, reader, |i| Some(unsafe { lane.object(py, i) }))
}

/// `StringDType` (whose layout is private to NumPy) and extended floats, element by element.
fn read_as_list(lane: Lane, py: Python<'_>, reader: Reader<'_>) -> PyResult<Keys> {
    let list = lane.view.bind(py).call_method0(intern!(py, "tolist"))?.cast_into::<PyList>()?;
    objects::read_list(&list, reader)
}

/// Reads `datetime64`, as instants in UTC if `aware`, or `timedelta64`.
pub(super) fn read_times(array: &Bound<'_, PyUntypedArray>, aware: bool, reader: Reader<'_>) -> PyResult<Keys> {
    let lane = Lane::new(array)?;
    match lane.dtype(array.py()).kind() {
        b'M' | b'm' => times_of(lane, array.py(), aware, *reader.hasher),
        _ => Err(PyTypeError::new_err(format!("an array of times is wanted, not of {}", array.dtype()))),
    }
}

fn times_of(lane: Lane, py: Python<'_>, aware: bool, hasher: KeyHasher) -> PyResult<Keys> {
    const NOT_A_TIME: i64 = i64::MIN;
    let dtype = lane.dtype(py);
    let missing = hasher.missing();
    let Some(unit) = unit(&dtype)? else {
        // Without a unit only NaT has a meaning.
        if lane.elements::<i64>(0..lane.len).any(|ticks| ticks != NOT_A_TIME) {
            return Err(PyTypeError::new_err(format!("NumPy type {dtype} without a unit cannot be a key")));
        }
        return Ok(Keys::each(lane.len, move |_| missing));
    };
    fn times(lane: Lane, missing: u64, hash: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Keys {
        lane.keys(move |ticks| match ticks {
            NOT_A_TIME => missing,
            ticks => hash(ticks),
        })
    }
    Ok(match dtype.kind() {
        b'm' => times(lane, missing, move |ticks| hasher.duration(unit.duration(ticks))),
        _ if aware => times(lane, missing, move |ticks| hasher.aware(unit.instant(ticks))),
        _ => times(lane, missing, move |ticks| hasher.instant(unit.instant(ticks))),
    })
}

/// The unit of `datetime64` or `timedelta64`; `None` for the generic one.
pub fn unit(dtype: &Bound<'_, PyArrayDescr>) -> PyResult<Option<Unit>> {
    let py = dtype.py();
    let data = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "datetime_data"), (dtype,))?;
    let (code, count): (String, u64) = data.extract()?;
    Ok(Unit::from_numpy(&code, count))
}

/// The elements of an array of one dimension, in place, by a view that nobody else has: its address, length and type
/// stay as they were when they were checked.
pub struct Lane {
    /// Keeps the memory.
    view: Py<PyUntypedArray>,
    first: *const u8,
    len: usize,
    stride: isize,
    width: usize,
}

// SAFETY: the memory is only read, and it lives as long as the view, which only a thread that holds the interpreter can
// end. Another thread may write to the array meanwhile, as with every NumPy function that detaches from the
// interpreter: then the hash is that of some bytes, and nothing depends on which.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    /// The elements of `array`; refused unless it has one dimension.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        // SAFETY: a live array, no other type of elements, and the type of plain arrays. The result is a new reference,
        // or null with an error set. A view of a plain type calls no Python, so nothing happens between the checks
        // below.
        let view = unsafe {
            let plain = get_type_object(py, NpyTypes::PyArray_Type);
            let view = PY_ARRAY_API.PyArray_View(py, array.as_array_ptr(), null_mut(), plain);
            Bound::from_owned_ptr_or_err(py, view)?.cast_into_unchecked::<PyUntypedArray>()
        };
        let (&[len], &[stride]) = (view.shape(), view.strides()) else {
            return Err(PyValueError::new_err(format!("an array of one dimension is wanted, not of {}", view.ndim())));
        };
        // SAFETY: the view is a live array.
        let first = unsafe { (*_PyArray_GET_ITEM_DATA(view.as_array_ptr())).data.cast_const().cast() };
        Ok(Self { first, len, stride, width: view.dtype().itemsize(), view: view.unbind() })
    }

    /// The elements of `array`; refused unless they are as wide as a T.
    pub fn of<T>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let lane = Self::new(array)?;
        match lane.width == size_of::<T>() {
            true => Ok(lane),
            false => Err(PyTypeError::new_err(format!("an array of {} cannot be read here", lane.dtype(array.py())))),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Their type.
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.view.bind(py).dtype()
    }

    /// The elements in `range`.
    #[inline(always)]
    pub fn elements<T: bytemuck::Pod>(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        self.elements_by(self.stride, range)
    }

    /// The same, with their stride.
    #[inline(always)]
    fn elements_by<T: bytemuck::Pod>(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        assert!(size_of::<T>() == self.width, "elements of another width");
        self.places(stride, range).map(|place| {
            // SAFETY: an element is at its place, of T's size; any bytes are a T, and they need not be aligned.
            unsafe { place.cast::<T>().read_unaligned() }
        })
    }

    /// The bytes of the elements in `range`.
    #[inline(always)]
    fn bytes(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: an element is at its place, and this wide.
        self.places(self.stride, range).map(|place| unsafe { std::slice::from_raw_parts(place, self.width) })
    }

    /// The addresses of the elements in `range`, which lies within the array; `stride` is theirs.
    #[inline(always)]
    fn places(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = *const u8> {
        assert!(range.end <= self.len && stride == self.stride, "elements beyond the end of an array");
        let first = self.first;
        // SAFETY: i is less than the number of elements, so this is within the memory of the array.
        range.map(move |i| unsafe { first.offset(i as isize * stride) })
    }

    /// Whether no element is less than the one before it, or is not to be compared.
    pub fn is_sorted<T: bytemuck::Pod + PartialOrd>(&self) -> bool {
        Instructions::best().run(IsSorted { lane: self, of: PhantomData::<T> })
    }

    /// Prefetches element `i`, which may lie beyond the end.
    #[inline(always)]
    pub fn fetch(&self, i: usize) {
        Address::at(self.first.wrapping_offset((i as isize).wrapping_mul(self.stride))).fetch(0);
    }

    /// Element `i`.
    #[inline(always)]
    pub fn get<T: bytemuck::Pod>(&self, i: usize) -> T {
        self.elements(i..i + 1).next().expect("there is one")
    }

    /// Element `i`, as an object.
    ///
    /// # Safety
    ///
    /// The elements are objects, and no Python runs as long as this one is lent: the array may change.
    #[inline(always)]
    unsafe fn object<'py>(&self, py: Python<'py>, i: usize) -> Borrowed<'_, 'py, PyAny> {
        let place = self.places(self.stride, i..i + 1).next().expect("there is one");
        // SAFETY: at its place is a reference that the array holds, or null, which NumPy takes for None.
        unsafe {
            let object = place.cast::<*mut ffi::PyObject>().read_unaligned();
            Borrowed::from_ptr(py, if object.is_null() { ffi::Py_None() } else { object })
        }
    }

    /// One key per element.
    fn keys<T: bytemuck::Pod>(self, hash: impl Fn(T) -> u64 + Send + Sync + 'static) -> Keys {
        Keys::new(self.len, move |start, out| self.write(start, out, &hash))
    }

    /// One key per element, which is an integer that fits an i64, of these bits.
    fn integers<T: bytemuck::Pod>(self, hasher: KeyHasher, bits: impl Fn(T) -> u64 + Send + Sync + 'static) -> Keys {
        Keys::new(self.len, move |start, out| {
            self.write(start, out, &bits);
            hasher.integers(out);
        })
    }

    /// Writes a number for each of the elements from `start` on.
    #[inline(always)]
    fn write<T: bytemuck::Pod>(&self, start: usize, out: &mut [u64], number: &impl Fn(T) -> u64) {
        let (range, beside) = (start..start + out.len(), size_of::<T>() as isize);
        // Elements that lie beside each other have a loop of their own, which compilers vectorise.
        if self.stride == beside {
            let elements = self.elements_by(beside, range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        } else {
            let elements = self.elements(range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        }
    }
}

/// [`Lane::is_sorted`].
struct IsSorted<'a, T> {
    lane: &'a Lane,
    of: PhantomData<T>,
}

impl<M, T: bytemuck::Pod + PartialOrd> Work<M> for IsSorted<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self, _: M) -> bool {
        let (lane, beside) = (self.lane, size_of::<T>() as isize);
        let sorted = |stride| {
            let (before, after) =
                (lane.elements_by::<T>(stride, 0..lane.len - 1), lane.elements_by::<T>(stride, 1..lane.len));
            // As wide as what is compared, which compilers vectorise.
            before.zip(after).fold(1, |sorted, (before, after)| sorted & u64::from(before <= after)) == 1
        };
        if lane.stride == beside { sorted(beside) } else { sorted(lane.stride) }
    }
}

impl Strings for Lane {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        self.bytes(i..i + 1).next().expect("there is one")
    }
}

/// An array of padded byte strings.
struct WithoutPadding(Lane);

impl Strings for WithoutPadding {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        without_padding(self.0.at(i))
    }
}

/// NumPy pads with NULs and cannot tell them from data, so neither can we.
#[inline]
fn without_padding(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

/// Code points of four bytes each to UTF-8, surrogates included.
#[inline(always)]
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
