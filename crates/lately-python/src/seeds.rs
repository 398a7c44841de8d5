//! Seeds as users pass them, and as they are shown.

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use super::whole::Whole;
use lately::key::Seed;

/// An int, 16 secret bytes, or "random" for bytes that are drawn here.
pub struct GivenSeed(pub Seed);

impl GivenSeed {
    /// The default.
    pub fn public() -> Self {
        Self(Seed::Public(0))
    }
}

impl FromPyObject<'_, '_> for GivenSeed {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            let secret = <[u8; 16]>::try_from(bytes.as_bytes()).map_err(|_| {
                PyValueError::new_err(format!("a secret seed has 16 bytes, got {}", bytes.as_bytes().len()))
            })?;
            return Ok(Self(secret_of(secret)));
        }
        if let Ok(text) = value.cast::<PyString>() {
            if text != "random" {
                return Err(PyTypeError::new_err(format!(
                    "seed must be an int, 16 bytes or \"random\", got {}",
                    text.repr()?
                )));
            }
            return Ok(Self(Seed::Secret(secret()?)));
        }
        let whole = value.extract::<Whole>()?;
        if !whole.is_number() || value.is_instance_of::<PyFloat>() {
            let class = value.get_type();
            return Err(PyTypeError::new_err(format!(
                "seed must be an int, 16 bytes or \"random\", not {}",
                class.name()?
            )));
        }
        Ok(Self(Seed::Public(whole.within("seed")?)))
    }
}

/// Words that nobody can know.
pub fn secret() -> PyResult<[u64; 2]> {
    let mut words = [0; 2];
    getrandom::fill(bytemuck::bytes_of_mut(&mut words))
        .map_err(|error| PyOSError::new_err(format!("the system has no random bytes: {error}")))?;
    Ok(words)
}

fn secret_of(bytes: [u8; 16]) -> Seed {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    Seed::Secret([half(0), half(8)])
}

/// A public seed as an int; None for a secret, which is not shown.
pub fn shown(seed: Seed) -> Option<u64> {
    match seed {
        Seed::Public(seed) => Some(seed),
        Seed::Secret(_) => None,
    }
}

/// What a seed can be made from again, secret or not: for pickles.
pub fn retained<'py>(py: Python<'py>, seed: Seed) -> PyResult<Bound<'py, PyAny>> {
    Ok(match seed {
        Seed::Public(seed) => seed.into_pyobject(py)?.into_any(),
        Seed::Secret(words) => PyBytes::new(py, words.map(u64::to_le_bytes).as_flattened()).into_any(),
    })
}
