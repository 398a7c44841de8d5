//! The Python module `lately._core`: thin, since everything it offers is done elsewhere.

mod age_partitioned;
mod arrays;
mod batch;
mod bloom;
mod counting;
mod errors;
mod filter;
mod fingerprint_buffer;
mod generalized;
mod guarded_epoch;
mod inference;
mod instants;
mod keys;
mod layout;
mod learned;
mod moments;
mod saving;
mod slice;
mod slicing;
mod spans;
mod stable;
mod swamp;
mod time_limited;
mod times;
mod timing;
mod whole;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::shape::Budget;
use layout::Layout;
use whole::Whole;

/// The Python object of a filter, of its own class.
fn wrap(py: Python<'_>, filter: crate::filter::Filter) -> PyResult<Py<PyAny>> {
    let family = filter.family().name;
    let base = PyClassInitializer::from(filter::Filter::new(filter));
    Ok(match family {
        "age-partitioned" | "age-partitioned-line" => {
            Py::new(py, base.add_subclass(age_partitioned::AgePartitionedBloomFilter))?.into_any()
        }
        "guarded-epoch" | "guarded-epoch-line" | "guarded-epoch-transposed" => {
            Py::new(py, base.add_subclass(guarded_epoch::GuardedEpochBloomFilter))?.into_any()
        }
        "timing" | "timing-line" => Py::new(py, base.add_subclass(timing::TimingBloomFilter))?.into_any(),
        "time-limited" => Py::new(py, base.add_subclass(time_limited::TimeLimitedBloomFilter))?.into_any(),
        "bloom" => Py::new(py, base.add_subclass(bloom::BloomFilter))?.into_any(),
        "counting" => Py::new(py, base.add_subclass(counting::CountingBloomFilter))?.into_any(),
        "stable" => Py::new(py, base.add_subclass(stable::StableBloomFilter))?.into_any(),
        "fingerprint-buffer" => Py::new(py, base.add_subclass(fingerprint_buffer::FingerprintBuffer))?.into_any(),
        "generalized" => Py::new(py, base.add_subclass(generalized::GeneralizedBloomFilter))?.into_any(),
        "swamp" => Py::new(py, base.add_subclass(swamp::Swamp))?.into_any(),
        family => unreachable!("filters of the family {family} have no class"),
    })
}

/// What a constructor is held to: the one of the two that was given.
fn budget(fpr: Option<f64>, nbytes: Option<Whole>) -> PyResult<Budget> {
    match (fpr, nbytes) {
        (Some(fpr), None) => Ok(Budget::Rate(fpr)),
        (None, Some(nbytes)) => Ok(Budget::Bytes(nbytes.within("nbytes")?)),
        _ => Err(PyTypeError::new_err("give fpr or nbytes, and not both")),
    }
}

/// Sliding-window filters; import them from `lately`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::age_partitioned::AgePartitionedBloomFilter;
    #[pymodule_export]
    use super::bloom::BloomFilter;
    #[pymodule_export]
    use super::counting::CountingBloomFilter;
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::filter::Filter;
    #[pymodule_export]
    use super::fingerprint_buffer::FingerprintBuffer;
    #[pymodule_export]
    use super::generalized::GeneralizedBloomFilter;
    #[pymodule_export]
    use super::guarded_epoch::GuardedEpochBloomFilter;
    #[pymodule_export]
    use super::instants::read_moment;
    #[pymodule_export]
    use super::keys::{Hashes, hash_keys};
    #[pymodule_export]
    use super::learned::{Learned, read_insertions};
    #[pymodule_export]
    use super::moments::read_moments;
    #[pymodule_export]
    use super::saving::{from_bytes, from_parts, open};
    #[pymodule_export]
    use super::slice::{Slice, settle};
    #[pymodule_export]
    use super::slicing::{expected_messages, failure_rates, least_sites, slice_capacity, sliced_rate};
    #[pymodule_export]
    use super::spans::read_span;
    #[pymodule_export]
    use super::stable::StableBloomFilter;
    #[pymodule_export]
    use super::swamp::Swamp;
    #[pymodule_export]
    use super::time_limited::TimeLimitedBloomFilter;
    #[pymodule_export]
    use super::timing::TimingBloomFilter;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
