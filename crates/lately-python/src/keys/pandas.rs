//! Reads columns, indexes and frames of pandas by their underlying arrays. pandas is not imported.

use crate::errors::raise;
use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;

use super::array_view::ArrayView;
use super::classes::is_instance_of;
use super::numpy_array;
use super::{KeyReader, Keys, prefixed};

/// Reads the types of pandas; `None` for other objects.
pub fn read(keys: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Option<Keys>> {
    let py = keys.py();
    Ok(match () {
        _ if is_instance_of(keys, "pandas", "DataFrame")? => Some(read_frame(keys, reader)?),
        _ if is_instance_of(keys, "pandas", "MultiIndex")? => Some(read_levels(keys, reader)?),
        _ if is_instance_of(keys, "pandas", "Series")? || is_instance_of(keys, "pandas", "Index")? => {
            Some(read_array(&keys.getattr(intern!(py, "array"))?, reader)?)
        }
        _ if is_instance_of(keys, "pandas.api.extensions", "ExtensionArray")? => Some(read_array(keys, reader)?),
        _ => None,
    })
}

/// Reads a frame, whose rows are the keys.
fn read_frame(frame: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = frame.py();
    let (len, _): (usize, usize) = frame.getattr(intern!(py, "shape"))?.extract()?;
    let columns = frame.call_method0(intern!(py, "items"))?.try_iter()?.map(|item| {
        let (name, column): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        read_array(&column.getattr(intern!(py, "array"))?, reader)
            .map_err(|error| prefixed(py, format!("column '{name}'"), error))
    });
    Keys::rows(len, columns.collect::<PyResult<_>>()?, *reader.hasher).map_err(raise)
}

/// Reads an index of several levels, whose keys are tuples. Each level is a dictionary.
fn read_levels(index: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = index.py();
    let levels = index.getattr(intern!(py, "levels"))?.try_iter()?;
    let codes = index.getattr(intern!(py, "codes"))?.try_iter()?;
    let columns = levels.zip(codes).map(|(level, codes)| read_dictionary(&level?, &codes?, reader));
    Keys::rows(index.len()?, columns.collect::<PyResult<_>>()?, *reader.hasher).map_err(raise)
}

/// Reads the keys of a pandas column.
fn read_array(array: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    if let Some(categories) = array.getattr_opt(intern!(py, "categories"))? {
        return read_dictionary(&categories, &array.getattr(intern!(py, "codes"))?, reader);
    }
    if dtype.getattr_opt(intern!(py, "storage"))?.is_some_and(|storage| storage.eq("pyarrow").unwrap_or(false)) {
        let arrow = array.call_method0(intern!(py, "__arrow_array__"))?;
        return super::read(&arrow, reader.within()?);
    }
    if dtype.hasattr(intern!(py, "tz"))? {
        let utc = array.call_method1(intern!(py, "tz_convert"), (py.None(),))?;
        return numpy_array::read_times(&to_numpy(&utc)?, true, reader);
    }
    if let Some(numpy_dtype) = dtype.getattr_opt(intern!(py, "numpy_dtype"))? {
        let values = array.call_method1(intern!(py, "to_numpy"), (numpy_dtype, false, 0))?.cast_into()?;
        let mask = array.call_method0(intern!(py, "isna"))?.cast_into()?;
        return numpy_array::masked(numpy_array::read(&values, reader)?, &mask, *reader.hasher);
    }
    numpy_array::read(&to_numpy(array)?, reader)
}

/// Returns a column as a NumPy array.
fn to_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    Ok(array.call_method0(intern!(array.py(), "to_numpy"))?.cast_into()?)
}

/// Reads codes, which are positions in `values`, or negative for a missing key.
fn read_dictionary(values: &Bound<'_, PyAny>, codes: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = codes.py();
    let codes =
        ArrayView::of::<i64>(&codes.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?.cast_into()?)?;
    let (keys, missing) = (super::read(values, reader.within()?)?, reader.hasher.missing());
    keys.taken(codes.len(), move |i| usize::try_from(codes.get::<i64>(i)).ok(), missing).map_err(raise)
}
