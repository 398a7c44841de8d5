//! NumPy arrays, hashed in place: with any stride and any alignment.

use numpy::prelude::*;
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};

use super::array_view::ArrayView;
use super::arrow::half;
use super::{Keys, Reader, is_of, objects};
use crate::errors::raise;
use lately::key::time::Unit;
use lately::key::{KeyHasher, Strings};

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
    let mask = ArrayView::of::<u8>(mask)?;
    keys.masked(mask.len(), hasher.missing(), move |i| mask.get::<u8>(i) != 0).map_err(raise)
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
        Keys::rows(self.rows, (0..width).map(read).collect::<PyResult<_>>()?, *reader.hasher).map_err(raise)
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
    let lane = ArrayView::new(array)?;
    let dtype = lane.dtype(py);
    if dtype.is_native_byteorder() == Some(false) {
        let native = dtype.call_method1(intern!(py, "newbyteorder"), (intern!(py, "="),))?;
        let array = lane.view(py).call_method1(intern!(py, "astype"), (native,))?.cast_into()?;
        return read_lane(&array, reader.within()?);
    }
    Ok(match (dtype.kind(), lane.width()) {
        (b'b', 1) => lane.integers(hasher, |flag: u8| u64::from(flag != 0)),
        (b'i', 1) => lane.integers(hasher, |value: i8| i64::from(value) as u64),
        (b'i', 2) => lane.integers(hasher, |value: i16| i64::from(value) as u64),
        (b'i', 4) => lane.integers(hasher, |value: i32| i64::from(value) as u64),
        (b'i', 8) => lane.integers(hasher, |value: u64| value),
        (b'u', 1) => lane.integers(hasher, |value: u8| value.into()),
        (b'u', 2) => lane.integers(hasher, |value: u16| value.into()),
        (b'u', 4) => lane.integers(hasher, |value: u32| value.into()),
        (b'u', 8) => lane.keys(|value: u64| value).of_unsigned(hasher),
        (b'f', 2) => lane.keys(move |bits: u16| hasher.float(half(bits))),
        (b'f', 4) => lane.keys(move |value: f32| hasher.float(value.into())),
        (b'f', 8) => lane.keys(move |value: f64| hasher.float(value)),
        (b'O', _) => read_objects(lane, py, reader.within()?)?,
        (b'f' | b'T', _) => read_as_list(lane, py, reader.within()?)?,
        (b'S', _) => Keys::of_byte_strings(lane.len(), WithoutPadding(lane), hasher),
        (b'V', _) => Keys::of_byte_strings(lane.len(), lane, hasher),
        (b'U', width) => Keys::new(lane.len(), move |start, out| {
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
fn read_objects(lane: ArrayView, py: Python<'_>, reader: Reader<'_>) -> PyResult<Keys> {
    // SAFETY: it is an array of objects, and they are lent until Python runs.
    objects::read(py, || lane.len(), reader, |i| unsafe { lane.object(py, i) })
}

/// `StringDType` (whose layout is private to NumPy) and extended floats, element by element.
fn read_as_list(lane: ArrayView, py: Python<'_>, reader: Reader<'_>) -> PyResult<Keys> {
    let list = lane.view(py).call_method0(intern!(py, "tolist"))?.cast_into::<PyList>()?;
    objects::read_list(&list, reader)
}

/// Reads `datetime64`, as instants in UTC if `aware`, or `timedelta64`.
pub(super) fn read_times(array: &Bound<'_, PyUntypedArray>, aware: bool, reader: Reader<'_>) -> PyResult<Keys> {
    let lane = ArrayView::new(array)?;
    match lane.dtype(array.py()).kind() {
        b'M' | b'm' => times_of(lane, array.py(), aware, *reader.hasher),
        _ => Err(PyTypeError::new_err(format!("an array of times is wanted, not of {}", array.dtype()))),
    }
}

fn times_of(lane: ArrayView, py: Python<'_>, aware: bool, hasher: KeyHasher) -> PyResult<Keys> {
    const NOT_A_TIME: i64 = i64::MIN;
    let dtype = lane.dtype(py);
    let missing = hasher.missing();
    let Some(unit) = unit(&dtype)? else {
        // Without a unit only NaT has a meaning.
        if lane.elements::<i64>(0..lane.len()).any(|ticks| ticks != NOT_A_TIME) {
            return Err(PyTypeError::new_err(format!("NumPy type {dtype} without a unit cannot be a key")));
        }
        return Ok(Keys::each(lane.len(), move |_| missing));
    };
    fn times(lane: ArrayView, missing: u64, hash: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Keys {
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

/// An array of padded byte strings.
struct WithoutPadding(ArrayView);

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
