//! Reads columns and frames of polars by the Arrow interface, except for types that Arrow lacks. polars is not
//! imported.

use crate::errors::raise;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::classes::is_instance_of;
use super::{KeyReader, Keys, arrow, objects, prefixed};

/// Types that are not exported to Arrow: integers of 128 bits, which Arrow lacks; objects, which polars exports as
/// addresses; and columns of nulls only, which polars 2.1 exports with a buffer that Arrow does not allow.
const NOT_IN_ARROW: [&str; 4] = ["Int128", "UInt128", "Object", "Null"];

/// Reads the types of polars; `None` for other objects.
pub fn read(keys: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Option<Keys>> {
    Ok(match () {
        _ if is_instance_of(keys, "polars", "DataFrame")? => Some(read_frame(keys, reader)?),
        _ if is_instance_of(keys, "polars", "Series")? => read_series(keys, reader)?,
        _ => None,
    })
}

fn read_frame(frame: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let py = frame.py();
    let len: usize = frame.getattr(intern!(py, "height"))?.extract()?;
    let mut columns = Vec::new();
    for series in frame.call_method0(intern!(py, "get_columns"))?.try_iter()? {
        let series = series?;
        let name = series.getattr(intern!(py, "name"))?;
        let column = read_series(&series, reader).map_err(|error| prefixed(py, format!("column '{name}'"), error))?;
        columns.extend(column);
    }
    Keys::rows(len, columns, *reader.hasher).map_err(raise)
}

fn read_series(series: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<Option<Keys>> {
    let py = series.py();
    let dtype = series.getattr(intern!(py, "dtype"))?.to_string();
    if NOT_IN_ARROW.contains(&dtype.as_str()) {
        let list = series.call_method0(intern!(py, "to_list"))?.cast_into::<PyList>()?;
        return objects::read_list(&list, reader).map(Some);
    }
    arrow::read(series, *reader.hasher)
}
