//! Batches of Python objects.

use pyo3::prelude::*;

use super::{Keys, Reader, at};
use crate::memory::fallible;

/// Objects between two checks for Ctrl-C: about a millisecond.
const SIGNALS_EVERY: usize = 1 << 16;

/// Hashes the objects at once.
pub fn read<'py>(objects: impl ExactSizeIterator<Item = Bound<'py, PyAny>>, reader: Reader<'_>) -> PyResult<Keys> {
    let mut hashes = fallible::with_room(objects.len())?;
    for (index, object) in objects.enumerate() {
        if index % SIGNALS_EVERY == SIGNALS_EVERY - 1 {
            object.py().check_signals()?;
        }
        let hash = reader.key(&object).map_err(|error| at(object.py(), format!("key {index}"), error))?;
        hashes.push(hash);
    }
    Ok(Keys::made(hashes))
}
