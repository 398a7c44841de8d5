//! The Python face of the crate: thin, no logic of its own.

use pyo3::prelude::*;

mod keys;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::keys::hash_keys;
}
