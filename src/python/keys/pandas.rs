//! pandas columns, indexes and frames, by the arrays they are made of. pandas itself is never imported.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;

use super::numpy_array::{self, Lane};
use super::{Keys, at, is_of, read_keys};
use crate::key::KeyHasher;

/// Reads what is of pandas; `None` for anything else.
pub fn read(keys: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Option<Keys>> {
    let py = keys.py();
    Ok(match () {
        _ if is_of(keys, "pandas", "DataFrame")? => Some(read_frame(keys, hasher)?),
        _ if is_of(keys, "pandas", "MultiIndex")? => Some(read_levels(keys, hasher)?),
        _ if is_of(keys, "pandas", "Series")? || is_of(keys, "pandas", "Index")? => {
            Some(read_array(&keys.getattr(intern!(py, "array"))?, hasher)?)
        }
        _ if is_of(keys, "pandas.api.extensions", "ExtensionArray")? => Some(read_array(keys, hasher)?),
        _ => None,
    })
}

/// A frame: its rows are the keys.
fn read_frame(frame: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = frame.py();
    let (len, _): (usize, usize) = frame.getattr(intern!(py, "shape"))?.extract()?;
    let columns = frame.call_method0(intern!(py, "items"))?.try_iter()?.map(|item| {
        let (name, column): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        read_array(&column.getattr(intern!(py, "array"))?, hasher)
            .map_err(|error| at(py, format!("column '{name}'"), error))
    });
    Ok(Keys::rows(len, columns.collect::<PyResult<_>>()?, hasher))
}

/// An index of several levels: its keys are tuples, each level a dictionary.
fn read_levels(index: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = index.py();
    let levels = index.getattr(intern!(py, "levels"))?.try_iter()?;
    let codes = index.getattr(intern!(py, "codes"))?.try_iter()?;
    let columns = levels.zip(codes).map(|(level, codes)| read_dictionary(&level?, &codes?, hasher));
    Ok(Keys::rows(index.len()?, columns.collect::<PyResult<_>>()?, hasher))
}

/// One column, in the form pandas keeps it.
fn read_array(array: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let missing = hasher.missing();
    if let Some(categories) = array.getattr_opt(intern!(py, "categories"))? {
        return read_dictionary(&categories, &array.getattr(intern!(py, "codes"))?, hasher);
    }
    if dtype.getattr_opt(intern!(py, "storage"))?.is_some_and(|storage| storage.eq("pyarrow").unwrap_or(false)) {
        let arrow = array.call_method0(intern!(py, "__arrow_array__"))?;
        return read_keys(&arrow, hasher);
    }
    if dtype.hasattr(intern!(py, "tz"))? {
        let utc = array.call_method1(intern!(py, "tz_convert"), (py.None(),))?;
        return numpy_array::read_times(&to_numpy(&utc)?, true, hasher);
    }
    if let Some(numpy_dtype) = dtype.getattr_opt(intern!(py, "numpy_dtype"))? {
        let values = array.call_method1(intern!(py, "to_numpy"), (numpy_dtype, false, 0))?.cast_into()?;
        let mask = Lane::new(&array.call_method0(intern!(py, "isna"))?.cast_into()?);
        return Ok(numpy_array::read(&values, hasher)?.masked(missing, move |i| mask.get::<u8>(i) != 0));
    }
    numpy_array::read(&to_numpy(array)?, hasher)
}

fn to_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    Ok(array.call_method0(intern!(array.py(), "to_numpy"))?.cast_into()?)
}

/// `codes` count from 0 into `values`; a negative one is missing.
fn read_dictionary(values: &Bound<'_, PyAny>, codes: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
    let py = codes.py();
    let codes: Bound<'_, PyUntypedArray> =
        codes.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?.cast_into()?;
    let (len, codes) = (codes.len(), Lane::new(&codes));
    Ok(read_keys(values, hasher)?.taken(len, move |i| usize::try_from(codes.get::<i64>(i)).ok(), hasher.missing()))
}
