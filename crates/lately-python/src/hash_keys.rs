//! `lately.hash_keys`: the hashes of keys, as an array.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arguments::{Missing, SeedArgument, random_secret};
use super::batch::Batch;
use super::keys::read_keys;
use crate::arrays::array_of;
use lately::key::{KeyHasher, Seed};

/// Hash keys, as a filter of this seed does.
///
/// Keys that compare equal in Python have equal hashes: in any container, in every process and on every machine.
/// Missing values (None, NaN, NaT, NA, null) are one key.
///
/// Parameters
/// ----------
/// keys : array, list, tuple, column, frame or other iterable
///     Each element is a key: a string, bytes, an integer of any size, a float or decimal, a date, a time or a span of
///     time, a UUID, a member of an Enum, a tuple or list of these, or missing. A row of a frame or of a 2-D array is
///     one key, equal to the tuple of its elements, even of a single one.
///     NumPy, pandas, polars, pyarrow and objects with the Arrow PyCapsule interface are read without conversion.
///     For `Hashes` of the same seed, their hashes are returned.
/// seed : int or bytes, default 0
///     An int in [0, 2**64), or the 16 secret bytes of a filter.
/// missing : {"same", "distinct"}, default "same"
///     "same": all missing values are one key. "distinct": each is a key of its own, as nulls are in SQL's UNIQUE and
///     joins. So is a row with a missing field. Their hashes are drawn at random in each call.
///
/// Returns
/// -------
/// numpy.ndarray of uint64, shape (number of keys,)
///     One hash for each key, in order.
///
/// Raises
/// ------
/// TypeError
///     If `keys` is a single key, or contains a value whose type cannot be a key; the message names it.
/// ValueError
///     If `keys` is an array without or with more than two dimensions, or `Hashes` of another seed; if tuples are
///     nested more than 32 deep; or if `seed` is out of range.
///
/// Notes
/// -----
/// With an int as seed, hashes are XXH3. They are fast, and filters of equal seeds share them, on any machine. But an
/// attacker who chooses keys can choose keys that collide (the rate at which 10,000 victims were reported rose from
/// 0.1 % to 100 %). With a secret, hashes are SipHash-1-3: without it an attacker cannot find keys that collide.
/// The saved form and the pickles of a filter contain its secret, so keep them secret too. Nothing else shows it.
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
    signature = (keys, *, seed = SeedArgument::public(), missing = Missing::Same),
    text_signature = "(keys, *, seed=0, missing='same')"
)]
pub fn hash_keys<'py>(
    keys: &Bound<'py, PyAny>,
    seed: SeedArgument,
    missing: Missing,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (hasher, unequal) = missing.hashing(KeyHasher::of(seed.0));
    let py = keys.py();
    let mut hashes = Batch::untimed(read_keys(keys, &hasher)?).hashes(py)?;
    if let Some(unequal) = unequal {
        let random = KeyHasher::of(Seed::Secret(random_secret()?));
        let missing = hashes.iter_mut().enumerate().filter(|(_, hash)| **hash == unequal);
        missing.for_each(|(i, hash)| *hash = random.integer(i as i64));
    }
    array_of(py, hashes)
}
