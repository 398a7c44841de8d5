//! The Python module `lately._core`: thin, since everything it offers is done elsewhere.

mod filter;
mod keys;
mod saving;
mod times;

/// Sliding-window filters; import them from `lately`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::filter::{AgePartitionedBloomFilter, Filter};
    #[pymodule_export]
    use super::keys::hash_keys;
    #[pymodule_export]
    use super::saving::{FormatError, from_bytes, from_parts, open};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
