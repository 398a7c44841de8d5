//! The Python module `lately._core`: thin, since everything it offers is done elsewhere.

mod answers;
mod arrays;
mod attributes;
mod batch;
mod build;
mod built;
mod calls;
mod cells;
mod classes;
mod copies;
mod deal;
mod errors;
mod exact;
mod figures;
mod files;
mod filter;
mod hash_keys;
mod inference;
mod instants;
mod keys;
mod learned;
mod missing;
mod moments;
mod numbers;
mod objects;
mod opening;
mod outline;
mod overfull;
mod records;
mod refresh;
mod seeds;
mod sets;
mod settle;
mod shared;
mod slice;
mod slicing;
mod spans;
mod times;
mod whole;

use pyo3::prelude::*;

/// What the classes of `lately` are made of; import from there.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::answers::{count, distinct, kept, missed, missed_by_block, overfull, parts, slice_bits};
    #[pymodule_export]
    use super::build::{build, plan};
    #[pymodule_export]
    use super::built::Built;
    #[pymodule_export]
    use super::calls::InternalError;
    #[pymodule_export]
    use super::deal::{Deal, Ranges, scatter};
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::exact::{Exact, duplicated_exactly};
    #[pymodule_export]
    use super::filter::{Filter, fail};
    #[pymodule_export]
    use super::hash_keys::hash_keys;
    #[pymodule_export]
    use super::instants::read_moment;
    #[pymodule_export]
    use super::keys::Hashes;
    #[pymodule_export]
    use super::learned::{Learned, read_insertions};
    #[pymodule_export]
    use super::moments::read_moments;
    #[pymodule_export]
    use super::opening::{from_bytes, from_parts, open, open_shared};
    #[pymodule_export]
    use super::outline::Outline;
    #[pymodule_export]
    use super::overfull::OverfullWarning;
    #[pymodule_export]
    use super::records::{Hashed, Lines, RecordReader};
    #[pymodule_export]
    use super::settle::{settle, since};
    #[pymodule_export]
    use super::slice::{Slice, cells, generations};
    #[pymodule_export]
    use super::slicing::{expected_messages, failure_rates, least_sites, slice_capacity, sliced_rate};
    #[pymodule_export]
    use super::spans::read_span;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("_debug_build", cfg!(debug_assertions))?;
        super::calls::register_at_fork(module)?;
        super::shared::register_at_fork(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
