//! The Python module `lately._core`: conversions, locks and signals around the core crate.

#![allow(unsafe_code, reason = "buffers of other libraries")]

mod arrays;
mod attributes;
mod batch;
mod build;
mod calls;
mod cells;
mod choose;
mod classes;
mod copies;
mod deal;
mod errors;
mod exact;
mod figures;
mod files;
mod filter;
mod filter_spec;
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
mod output;
mod overfull;
mod reader;
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
mod unclaimed;
mod whole;

use pyo3::prelude::*;

/// What the classes of `lately` are made of; import from there.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::build::{build, plan};
    #[pymodule_export]
    use super::calls::InternalError;
    #[pymodule_export]
    use super::choose::{choose, compare, variants};
    #[pymodule_export]
    use super::deal::{Deal, Ranges, scatter};
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::exact::{Exact, UnclaimedExact, duplicated_exactly};
    #[pymodule_export]
    use super::filter::{Filter, fail};
    #[pymodule_export]
    use super::filter_spec::FilterSpec;
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
    use super::output::{count, distinct, missed, missed_by_block, overfull, parts, retained, slice_bits};
    #[pymodule_export]
    use super::overfull::OverfullWarning;
    #[pymodule_export]
    use super::records::{Hashed, Lines, RecordReader};
    #[pymodule_export]
    use super::settle::{settle, since};
    #[pymodule_export]
    use super::shared::shared_path;
    #[pymodule_export]
    use super::slice::{Slice, cells, generations};
    #[pymodule_export]
    use super::slicing::{expected_messages, failure_rates, least_sites, slice_capacity, sliced_rate};
    #[pymodule_export]
    use super::spans::read_span;
    #[pymodule_export]
    use super::unclaimed::Unclaimed;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("_debug_build", cfg!(debug_assertions))?;
        super::calls::register_at_fork(module)?;
        super::shared::register_at_fork(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
