//! Keys hashed for a user, who may hand the hashes on.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::batch::Batch;
use super::missing::Missing;
use super::seeds::{GivenSeed, secret};
use lately::key::{KeyHasher, Seed};

/// The 64-bit hashes that a filter of this seed sees.
///
/// Keys that compare equal in Python hash equal, whatever holds them, in every process and on every machine; a missing
/// key (None, NaN, NaT, NA, null) is one key.
///
/// Parameters
/// ----------
/// keys : array, list, tuple, column, frame or other iterable
///     Each element is a key: a string, bytes, an integer of any size, a float or decimal, a date, a time or a span of
///     time, a UUID, a member of an Enum, a tuple or list of these, or missing. A row of a frame or of a 2-D array is
///     one key, equal to the tuple of its elements, also if it has only one.
///     NumPy, pandas, polars, pyarrow and everything with the Arrow PyCapsule interface are read without conversion.
///     `Hashes` of the same seed give their hashes back.
/// seed : int or bytes, default 0
///     In [0, 2**64), or the 16 secret bytes that a filter was made with.
/// missing : {"same", "distinct"}, default "same"
///     "same": all missing keys are one key. "distinct": each is a key of its own, as nulls are to SQL's UNIQUE and to
///     joins, and so is a row of which a field is missing: its hash is drawn at random, anew by each call.
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
#[pyo3(
    signature = (keys, *, seed = GivenSeed::public(), missing = Missing::Same),
    text_signature = "(keys, *, seed=0, missing='same')"
)]
pub fn hash_keys<'py>(
    keys: &Bound<'py, PyAny>,
    seed: GivenSeed,
    missing: Missing,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (hasher, unlike) = missing.hashing(KeyHasher::new(seed.0));
    let py = keys.py();
    let mut hashes = Batch::untimed(missing.read_keys(keys, hasher)?).hashes(py)?;
    if let Some(unlike) = unlike {
        let own = KeyHasher::new(Seed::Secret(secret()?));
        let places = hashes.iter_mut().enumerate().filter(|(_, hash)| **hash == unlike);
        places.for_each(|(i, hash)| *hash = own.integer(i as i64));
    }
    Ok(hashes.into_pyarray(py))
}
