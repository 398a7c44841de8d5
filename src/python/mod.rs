//! The Python module `lately._core`: thin, since everything it offers is done elsewhere.

mod age_partitioned;
mod counting;
mod errors;
mod filter;
mod keys;
mod saving;
mod stable;
mod times;
mod whole;

use pyo3::prelude::*;

use crate::filter::{Counting, Stable};

/// The Python object of a filter, of its own class.
fn wrap(py: Python<'_>, filter: Box<dyn crate::filter::Filter>) -> PyResult<Py<PyAny>> {
    let kind = filter.kind();
    let base = PyClassInitializer::from(filter::Filter::new(filter));
    Ok(match kind {
        Counting::KIND => Py::new(py, base.add_subclass(counting::CountingBloomFilter))?.into_any(),
        Stable::KIND => Py::new(py, base.add_subclass(stable::StableBloomFilter))?.into_any(),
        _ => Py::new(py, base.add_subclass(age_partitioned::AgePartitionedBloomFilter))?.into_any(),
    })
}

/// Sliding-window filters; import them from `lately`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::age_partitioned::AgePartitionedBloomFilter;
    #[pymodule_export]
    use super::counting::CountingBloomFilter;
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::filter::Filter;
    #[pymodule_export]
    use super::keys::hash_keys;
    #[pymodule_export]
    use super::saving::{from_bytes, from_parts, open};
    #[pymodule_export]
    use super::stable::StableBloomFilter;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
