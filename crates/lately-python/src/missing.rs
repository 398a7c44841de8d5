//! Parses the `missing=` argument of the one-liners.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::keys::{Hashes, read_keys};
use lately::key::{KeyHasher, Keys};

/// Which keys missing values are.
#[derive(Clone, Copy, PartialEq)]
pub enum Missing {
    /// They are one key.
    Same,
    /// Each is a key of its own. So is a row with a missing field.
    Distinct,
}

impl FromPyObject<'_, '_> for Missing {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<&str>() {
            Ok("same") => Ok(Self::Same),
            Ok("distinct") => Ok(Self::Distinct),
            Ok(other) => Err(PyValueError::new_err(format!("missing must be 'same' or 'distinct', got '{other}'"))),
            Err(_) => Err(PyTypeError::new_err(format!("missing must be 'same' or 'distinct', got {}", *value))),
        }
    }
}

impl Missing {
    /// Returns the hasher for such keys, and the hash of keys that equal no other.
    pub fn hashing(self, hasher: KeyHasher) -> (KeyHasher, Option<u64>) {
        match self {
            Self::Same => (hasher, None),
            Self::Distinct => (hasher.with_missing_rows(), Some(hasher.missing())),
        }
    }

    /// Reads keys for that hasher.
    pub fn read_keys(self, keys: &Bound<'_, PyAny>, hasher: KeyHasher) -> PyResult<Keys> {
        if self == Self::Distinct && keys.is_instance_of::<Hashes>() {
            let message = "missing='distinct' needs the keys themselves: Hashes do not store which of them are missing";
            return Err(PyValueError::new_err(message));
        }
        read_keys(keys, &hasher)
    }
}
