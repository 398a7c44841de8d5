//! Arguments that several calls take: `seed`, `missing` and `refresh`.

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use super::whole::WholeNumber;
use lately::engine::Refresh;
use lately::key::{KeyHasher, Seed};

/// The argument `seed`: an int, 16 secret bytes, or "random" for bytes that are drawn here.
pub struct SeedArgument(pub Seed);

impl SeedArgument {
    /// Returns the default, the public seed 0.
    pub fn public() -> Self {
        Self(Seed::Public(0))
    }
}

impl FromPyObject<'_, '_> for SeedArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let refuse = |given| PyTypeError::new_err(format!("seed must be an int, 16 bytes or \"random\", {given}"));
        if let Ok(bytes) = value.cast::<PyBytes>() {
            let secret = <[u8; 16]>::try_from(bytes.as_bytes());
            let secret = secret.map_err(|_| {
                PyValueError::new_err(format!(
                    "seed must have 16 bytes if it is secret, got {}",
                    bytes.as_bytes().len()
                ))
            })?;
            return Ok(Self(Seed::from(secret)));
        }
        if let Ok(text) = value.cast::<PyString>() {
            return match text == "random" {
                true => Ok(Self(Seed::Secret(random_secret()?))),
                false => Err(refuse(format!("got {}", text.repr()?))),
            };
        }
        let whole = value.extract::<WholeNumber>()?;
        if !whole.is_number() || value.is_instance_of::<PyFloat>() {
            return Err(refuse(format!("not {}", value.get_type().name()?)));
        }
        Ok(Self(Seed::Public(whole.within("seed")?)))
    }
}

/// Returns 16 random bytes of the system.
pub fn random_secret() -> PyResult<[u64; 2]> {
    let mut words = [0; 2];
    getrandom::fill(bytemuck::bytes_of_mut(&mut words))
        .map_err(|error| PyOSError::new_err(format!("the system has no random bytes: {error}")))?;
    Ok(words)
}

/// Returns a public seed, and `None` for a secret, which no attribute shows.
pub fn public_seed(seed: Seed) -> Option<u64> {
    match seed {
        Seed::Public(seed) => Some(seed),
        Seed::Secret(_) => None,
    }
}

/// Returns a seed, secret or not, as an argument from which pickle builds it again.
pub fn seed_to_pickle<'py>(py: Python<'py>, seed: Seed) -> PyResult<Bound<'py, PyAny>> {
    Ok(match seed {
        Seed::Public(seed) => seed.into_pyobject(py)?.into_any(),
        Seed::Secret(words) => PyBytes::new(py, words.map(u64::to_le_bytes).as_flattened()).into_any(),
    })
}

/// The argument `missing`: which keys missing values are.
#[derive(Clone, Copy, PartialEq)]
pub enum Missing {
    /// All missing values are one key.
    Same,
    /// Each missing value is a key of its own. So is a row with a missing field.
    Distinct,
}

impl FromPyObject<'_, '_> for Missing {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<&str>() {
            Ok("same") => Ok(Self::Same),
            Ok("distinct") => Ok(Self::Distinct),
            // By `repr`: text that is not valid Unicode, which NumPy makes, enters no message as it is.
            Ok(_) => Err(PyValueError::new_err(format!("missing must be 'same' or 'distinct', got {:?}", *value))),
            Err(_) => Err(PyTypeError::new_err(format!("missing must be 'same' or 'distinct', got {:?}", *value))),
        }
    }
}

impl Missing {
    /// Returns the hasher for keys that may be missing, and the hash of keys that equal no other.
    pub fn hashing(self, hasher: KeyHasher) -> (KeyHasher, Option<u64>) {
        match self {
            Self::Same => (hasher, None),
            Self::Distinct => (hasher.with_missing_rows(), Some(hasher.missing())),
        }
    }
}

/// Parses the argument `refresh`: `True`, `False` or `"delivered"`.
pub fn parse_refresh(value: &Bound<'_, PyAny>) -> PyResult<Refresh> {
    if let Ok(refresh) = value.extract::<bool>() {
        return Ok(if refresh { Refresh::Always } else { Refresh::Unseen });
    }
    match value.extract::<&str>() {
        Ok("delivered") => Ok(Refresh::Delivered),
        Ok(other) => Err(PyValueError::new_err(format!("refresh must be True, False or 'delivered', got {other:?}"))),
        Err(_) => Err(PyTypeError::new_err(format!("refresh must be True, False or 'delivered', got {value:?}"))),
    }
}
