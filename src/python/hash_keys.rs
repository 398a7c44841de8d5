//! Keys hashed for a user, who may hand the hashes on.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::batch::Batch;
use super::keys::read_keys;
use super::seeds::GivenSeed;
use crate::key::KeyHasher;

/// The 64-bit hashes that a filter of this seed sees.
///
/// Keys that compare equal in Python hash equal, whatever holds them, in every process and on every machine; a missing
/// key (None, NaN, NaT, NA, null) is one key.
///
/// Parameters
/// ----------
/// keys : array, list, tuple, column, frame or other iterable
///     Each element is a key: a string, bytes, an integer of any size, a float, a date, a time or a span of time, a
///     tuple of these, or missing. A row of a frame or of a 2-D array is one key, equal to the tuple of its elements.
///     NumPy, pandas, polars, pyarrow and everything with the Arrow PyCapsule interface are read without conversion.
///     `Hashes` of the same seed give their hashes back.
/// seed : int or bytes, default 0
///     In [0, 2**64), or the 16 secret bytes that a filter was made with.
///
/// Returns
/// -------
/// numpy.ndarray of uint64, shape (number of keys,)
///     One hash a key, in order.
///
/// Raises
/// ------
/// TypeError
///     If `keys` is a single key, or one of them is of a type that cannot be a key; the message names it.
/// ValueError
///     If `keys` is an array of no or more than two dimensions, or `Hashes` of another seed, tuples are nested more
///     than 32 deep, or `seed` is out of range.
///
/// Notes
/// -----
/// Hashes of an int as seed are XXH3. They are fast, and filters of one such seed share them, here and on other
/// machines; but whoever chooses keys can choose keys that collide (10,000 victims went from 0.1 % to 100 % reported).
/// Hashes of a secret are SipHash-1-3: without it nobody can tell which keys collide. A filter keeps its secret in its
/// saved form and in pickles, which are secrets then too, and shows it nowhere else.
///
/// Examples
/// --------
/// >>> import lately
/// >>> five, text, half = lately.hash_keys([5, "5", 0.5])
/// >>> bool(five == lately.hash_keys([5.0])[0])
/// True
/// >>> bool(five == text)
/// False
#[pyfunction]
#[pyo3(signature = (keys, *, seed = GivenSeed::public()), text_signature = "(keys, *, seed=0)")]
pub fn hash_keys<'py>(keys: &Bound<'py, PyAny>, seed: GivenSeed) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (py, keys) = (keys.py(), read_keys(keys, KeyHasher::new(seed.0))?);
    Ok(Batch::untimed(keys).hashes(py)?.into_pyarray(py))
}
