//! Reads NumPy arrays in place, with any stride and alignment.

use numpy::PyUntypedArray;
use numpy::prelude::*;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};

use super::array_view::ArrayView;
use super::arrow::half;
use super::calendar::unit;
use super::classes::is_instance_of;
use super::{KeyReader, Keys, objects};
use crate::errors::raise;
use lately::key::{KeyHasher, Strings};

/// Reads a one-dimensional array, or a two-dimensional one, whose rows are keys.
pub(super) fn read(array: &Bound<'_, PyUntypedArray>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = array.py();
    // For a plain array the class of masked arrays is not looked up, which takes as long as to hash ten keys.
    if array.is_exact_instance_of::<PyUntypedArray>() || !is_instance_of(array, "numpy.ma", "MaskedArray")? {
        return read_plain(array, reader);
    }
    let module = py.import("numpy.ma")?;
    let data = module.call_method1("getdata", (array, false))?.cast_into::<PyUntypedArray>()?;
    let mask = module.call_method1("getmaskarray", (array,))?.cast_into::<PyUntypedArray>()?;
    read_masked(&data, &mask, reader)
}

/// Reads a masked array. Each column of rows and records has its own mask.
fn read_masked(
    array: &Bound<'_, PyUntypedArray>,
    mask: &Bound<'_, PyUntypedArray>,
    reader: KeyReader<'_>,
) -> PyResult<Keys> {
    if let Some(columns) = Columns::of(array)? {
        let reader = reader.within()?;
        let read = |column| read_masked(&columns.get(array, column)?, &columns.get(mask, column)?, reader);
        return columns.read(reader, read);
    }
    masked(read_plain(array, reader)?, mask, *reader.hasher)
}

/// Returns `keys` with missing keys where a mask of bools is true.
pub fn masked(keys: Keys, mask: &Bound<'_, PyUntypedArray>, hasher: KeyHasher) -> PyResult<Keys> {
    let mask = ArrayView::of::<u8>(mask)?;
    keys.masked(mask.len(), hasher.missing(), move |i| mask.get::<u8>(i) != 0).map_err(raise)
}

fn read_plain(array: &Bound<'_, PyUntypedArray>, reader: KeyReader<'_>) -> PyResult<Keys> {
    match Columns::of(array)? {
        Some(columns) => {
            let reader = reader.within()?;
            columns.read(reader, |column| read_plain(&columns.get(array, column)?, reader))
        }
        None => read_elements(array, reader),
    }
}

/// The columns of an array whose keys are rows.
struct Columns {
    rows: usize,
    columns: ColumnKind,
}

enum ColumnKind {
    /// The second dimension has this length.
    Dimension(usize),
    /// The fields of records have these names.
    Fields(Vec<String>),
}

impl Columns {
    /// Returns the columns, and `None` for an array whose elements are keys.
    fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Self>> {
        let columns = match (array.shape(), array.dtype().names()) {
            ([_], None) => return Ok(None),
            ([_], Some(names)) => ColumnKind::Fields(names),
            (&[_, columns], _) => ColumnKind::Dimension(columns),
            (shape, _) => {
                let message = format!("keys must have one or two dimensions, got {}", shape.len());
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Some(Self { rows: array.shape()[0], columns }))
    }

    /// Returns keys that are the rows of the columns that `read` returns.
    fn read(&self, reader: KeyReader<'_>, read: impl Fn(usize) -> PyResult<Keys>) -> PyResult<Keys> {
        let width = match &self.columns {
            ColumnKind::Dimension(columns) => *columns,
            ColumnKind::Fields(names) => names.len(),
        };
        Keys::rows(self.rows, (0..width).map(read).collect::<PyResult<_>>()?, *reader.hasher).map_err(raise)
    }

    /// Returns a column of the array, or of its mask.
    fn get<'py>(&self, array: &Bound<'py, PyUntypedArray>, column: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = array.py();
        let values = match &self.columns {
            // The array is converted to a plain one, because a column of `numpy.matrix` has two dimensions.
            ColumnKind::Dimension(_) => py
                .import(intern!(py, "numpy"))?
                .call_method1(intern!(py, "asarray"), (array,))?
                .get_item((PySlice::full(py), column))?,
            ColumnKind::Fields(names) => array.get_item(&names[column])?,
        };
        Ok(values.cast_into()?)
    }
}

/// Reads a one-dimensional array whose elements are keys.
fn read_elements(array: &Bound<'_, PyUntypedArray>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let (py, hasher) = (array.py(), *reader.hasher);
    let view = ArrayView::new(array)?;
    let dtype = view.dtype(py);
    if dtype.is_native_byteorder() == Some(false) {
        let native = dtype.call_method1(intern!(py, "newbyteorder"), (intern!(py, "="),))?;
        let array = view.view(py).call_method1(intern!(py, "astype"), (native,))?.cast_into()?;
        return read_elements(&array, reader.within()?);
    }
    Ok(match (dtype.kind(), view.width()) {
        (b'b', 1) => view.integers(hasher, |flag: u8| u64::from(flag != 0)),
        (b'i', 1) => view.integers(hasher, |value: i8| i64::from(value) as u64),
        (b'i', 2) => view.integers(hasher, |value: i16| i64::from(value) as u64),
        (b'i', 4) => view.integers(hasher, |value: i32| i64::from(value) as u64),
        (b'i', 8) => view.integers(hasher, |value: u64| value),
        (b'u', 1) => view.integers(hasher, |value: u8| value.into()),
        (b'u', 2) => view.integers(hasher, |value: u16| value.into()),
        (b'u', 4) => view.integers(hasher, |value: u32| value.into()),
        (b'u', 8) => view.keys(|value: u64| value).of_unsigned(hasher),
        (b'f', 2) => view.keys(move |bits: u16| hasher.float(half(bits))),
        (b'f', 4) => view.keys(move |value: f32| hasher.float(value.into())),
        (b'f', 8) => view.keys(move |value: f64| hasher.float(value)),
        (b'O', _) => read_objects(view, py, reader.within()?)?,
        (b'f' | b'T', _) => read_as_list(view, py, reader.within()?)?,
        (b'S', _) => Keys::of_byte_strings(view.len(), WithoutPadding(view), hasher),
        (b'V', _) => Keys::of_byte_strings(view.len(), view, hasher),
        (b'U', width) => Keys::new(view.len(), move |start, out| {
            let mut utf8 = Vec::with_capacity(width);
            for (ucs4, out) in view.bytes(start..start + out.len()).zip(out) {
                encode(ucs4, &mut utf8);
                *out = hasher.text(&utf8);
            }
        }),
        (b'M' | b'm', _) => return times_of(view, py, false, hasher),
        _ => {
            let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
            return Err(PyTypeError::new_err(format!("NumPy type {name} cannot be a key")));
        }
    })
}

/// Reads objects in place. The array may change meanwhile, as a list may.
fn read_objects(view: ArrayView, py: Python<'_>, reader: KeyReader<'_>) -> PyResult<Keys> {
    // SAFETY: the elements are objects, and `objects::read` borrows them only until Python runs.
    objects::read(py, || view.len(), reader, |i| unsafe { view.object(py, i) })
}

/// Reads `StringDType` (whose layout is private to NumPy) and extended floats as a list.
fn read_as_list(view: ArrayView, py: Python<'_>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let list = view.view(py).call_method0(intern!(py, "tolist"))?.cast_into::<PyList>()?;
    objects::read_list(&list, reader)
}

/// Reads an array of `datetime64`, as instants in UTC if `aware`, or of `timedelta64`.
pub(super) fn read_times(array: &Bound<'_, PyUntypedArray>, aware: bool, reader: KeyReader<'_>) -> PyResult<Keys> {
    let view = ArrayView::new(array)?;
    match view.dtype(array.py()).kind() {
        b'M' | b'm' => times_of(view, array.py(), aware, *reader.hasher),
        _ => Err(PyTypeError::new_err(format!(
            "expected an array of datetime64 or timedelta64, got one of {}",
            array.dtype()
        ))),
    }
}

/// Returns the keys of a view of times.
fn times_of(view: ArrayView, py: Python<'_>, aware: bool, hasher: KeyHasher) -> PyResult<Keys> {
    const NOT_A_TIME: i64 = i64::MIN;
    let dtype = view.dtype(py);
    let missing = hasher.missing();
    let Some(unit) = unit(&dtype)? else {
        // Without a unit only NaT is defined.
        if view.elements::<i64>(0..view.len()).any(|ticks| ticks != NOT_A_TIME) {
            return Err(PyTypeError::new_err(format!("NumPy type {dtype} without a unit cannot be a key")));
        }
        return Ok(Keys::each(view.len(), move |_| missing));
    };
    fn times(view: ArrayView, missing: u64, hash: impl Fn(i64) -> u64 + Send + Sync + 'static) -> Keys {
        view.keys(move |ticks| match ticks {
            NOT_A_TIME => missing,
            ticks => hash(ticks),
        })
    }
    Ok(match dtype.kind() {
        b'm' => times(view, missing, move |ticks| hasher.duration(unit.duration(ticks))),
        _ if aware => times(view, missing, move |ticks| hasher.aware(unit.instant(ticks))),
        _ => times(view, missing, move |ticks| hasher.instant(unit.instant(ticks))),
    })
}

/// An array of byte strings that are padded with NULs.
struct WithoutPadding(ArrayView);

impl Strings for WithoutPadding {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        without_padding(self.0.at(i))
    }
}

/// Returns a string without NULs at its end. In NumPy they do not differ from padding.
#[inline]
fn without_padding(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

/// Encodes code points of four bytes each as UTF-8, surrogates included.
#[inline(always)]
fn encode(ucs4: &[u8], utf8: &mut Vec<u8>) {
    utf8.clear();
    let (points, _) = ucs4.as_chunks::<4>();
    let len = points.iter().rposition(|&point| point != [0; 4]).map_or(0, |last| last + 1);
    let points = &points[..len];
    let all = points.iter().fold(0, |all, &point| all | u32::from_ne_bytes(point));
    if all < 0x80 {
        // Most strings are ASCII. Compilers vectorise this and the check.
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
