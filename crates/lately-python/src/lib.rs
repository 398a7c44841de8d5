//! The Python module `lately._core`: conversions, locks and signals around the core crate.

#![deny(unsafe_code)]

mod arguments;
mod arrays;
mod batch;
mod build;
mod calls;
#[expect(unsafe_code, reason = "exports cells by the buffer protocol")]
mod cells;
mod choose;
mod claims;
mod errors;
mod exact;
mod figures;
mod files;
mod filter;
mod filter_spec;
mod hash_keys;
mod inference;
mod keys;
mod lazy;
#[expect(unsafe_code, reason = "reads filters in the buffers of Python objects")]
mod opening;
mod reader;
mod records;
mod scatter;
mod shared;
mod slice;
mod slicing;
mod time;
mod whole;

use pyo3::prelude::*;

/// The native part of the package `lately`, which exports what users import.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::build::{build, meanings};
    #[pymodule_export]
    use super::calls::InternalError;
    #[pymodule_export]
    use super::choose::{compare, variants};
    #[pymodule_export]
    use super::claims::KeyClaim;
    #[pymodule_export]
    use super::errors::FormatError;
    #[pymodule_export]
    use super::exact::duplicated_exactly;
    #[pymodule_export]
    use super::filter::output::{count, distinct, keys, missed, missed_by_block, overfull, parts, slice_bits};
    #[pymodule_export]
    use super::filter::overfull::OverfullWarning;
    #[pymodule_export]
    use super::filter::state::FilterState;
    #[pymodule_export]
    use super::filter::{PyFilter, fail};
    #[pymodule_export]
    use super::filter_spec::FilterSpec;
    #[pymodule_export]
    use super::hash_keys::hash_keys;
    #[pymodule_export]
    use super::keys::Hashes;
    #[pymodule_export]
    use super::opening::{from_bytes, from_parts, open, open_shared};
    #[pymodule_export]
    use super::records::{RecordHashes, RecordReader, Records};
    #[pymodule_export]
    use super::scatter::{Ranges, Scattered, part_of};
    #[pymodule_export]
    use super::slice::{Slice, cells};
    #[pymodule_export]
    use super::slicing::{SlicedShape, slice_capacity};
    #[pymodule_export]
    use super::time::instant::read_moment;
    #[pymodule_export]
    use super::time::moments::read_moments;
    #[pymodule_export]
    use super::time::span::read_span;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("_debug_build", cfg!(debug_assertions))?;
        super::calls::register_at_fork(module)?;
        super::shared::register_at_fork(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
