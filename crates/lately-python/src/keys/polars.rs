//! polars columns and frames, by the Arrow interface, except for types that Arrow cannot carry. polars itself is never
//! imported.

use crate::errors::raise;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::{Keys, Reader, arrow, at, is_of, objects};

/// Integers of 128 bits, which Arrow does not have; objects, which polars exports as their addresses; and columns of
/// only nulls, which polars 2.1 exports with a buffer that Arrow does not allow there.
const NOT_IN_ARROW: [&str; 4] = ["Int128", "UInt128", "Object", "Null"];

/// Reads polars' types; `None` for anything else.
pub fn read(keys: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<Option<Keys>> {
    Ok(match () {
        _ if is_of(keys, "polars", "DataFrame")? => Some(read_frame(keys, reader)?),
        _ if is_of(keys, "polars", "Series")? => read_series(keys, reader)?,
        _ => None,
    })
}

fn read_frame(frame: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<Keys> {
    let py = frame.py();
    let len: usize = frame.getattr(intern!(py, "height"))?.extract()?;
    let mut columns = Vec::new();
    for series in frame.call_method0(intern!(py, "get_columns"))?.try_iter()? {
        let series = series?;
        let name = series.getattr(intern!(py, "name"))?;
        let column = read_series(&series, reader).map_err(|error| at(py, format!("column '{name}'"), error))?;
        columns.extend(column);
    }
    Keys::rows(len, columns, *reader.hasher).map_err(raise)
}

fn read_series(series: &Bound<'_, PyAny>, reader: Reader<'_>) -> PyResult<Option<Keys>> {
    let py = series.py();
    let dtype = series.getattr(intern!(py, "dtype"))?.to_string();
    if NOT_IN_ARROW.contains(&dtype.as_str()) {
        let list = series.call_method0(intern!(py, "to_list"))?.cast_into::<PyList>()?;
        return objects::read_list(&list, reader).map(Some);
    }
    arrow::read(series, *reader.hasher)
}
