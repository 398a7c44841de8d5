//! Hashes integers of any size, and numbers that are ratios of integers.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt};

use super::KeyReader;
use lately::key::KeyHasher;

/// Hashes an integer of any size.
pub(super) fn hash_integer(integer: &Bound<'_, PyInt>, hasher: &KeyHasher) -> PyResult<u64> {
    match integer.extract::<i64>() {
        Ok(value) => Ok(hasher.integer(value)),
        Err(_) => Ok(hasher.big_integer(&twos_complement(integer)?)),
    }
}

/// Returns an integer as little-endian two's complement.
fn twos_complement(integer: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = integer.py();
    // One more bit than the magnitude, for the sign.
    let bits: usize = integer.call_method0(intern!(py, "bit_length"))?.extract()?;
    let signed = PyDict::new(py);
    signed.set_item(intern!(py, "signed"), true)?;
    let bytes = integer.call_method(intern!(py, "to_bytes"), (bits / 8 + 1, intern!(py, "little")), Some(&signed))?;
    Ok(bytes.cast_into::<PyBytes>()?.as_bytes().to_vec())
}

/// Hashes a number that is finite or NaN: as a double if it equals one, otherwise as a ratio of integers.
pub(super) fn hash_ratio(key: &Bound<'_, PyAny>, reader: KeyReader<'_>) -> PyResult<u64> {
    let (py, hasher) = (key.py(), reader.hasher);
    let float: f64 = key.call_method0(intern!(py, "__float__"))?.extract()?;
    if float.is_nan() || key.eq(float)? {
        return Ok(hasher.float(float));
    }
    let (numerator, denominator): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        key.call_method0(intern!(py, "as_integer_ratio"))?.extract()?;
    let numerator = twos_complement(&numerator)?;
    if denominator.eq(1)? {
        return Ok(hasher.big_integer(&numerator));
    }
    Ok(hasher.ratio(&numerator, &twos_complement(&denominator)?))
}
