//! The exact answers of the one-liners.

use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::{Missing, SeedArgument, parse_refresh, random_secret};
use super::batch::Batch;
use super::filter::PyFilter;
use super::keys::{Hashes, read_keys};
use super::time::moments::OwnedMoments;
use super::time::span::read_span;
use super::time::window;
use super::whole::Threads;
use crate::arrays::{array_of, import_numpy};
use crate::errors::raise;
use lately::clock::Window;
use lately::engine::Refresh;
use lately::family::AnyFilter;
use lately::family::exact::shape::ExactShape;
use lately::key::{KeyHasher, Keys};

/// Computes `lately.duplicated` without `fpr`, by an exact window. The times `at` are in order.
#[pyfunction]
#[pyo3(signature = (keys, window, *, at, refresh, missing, seed, threads))]
pub fn duplicated_exactly<'py>(
    keys: &Bound<'py, PyAny>,
    window: &Bound<'_, PyAny>,
    at: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = parse_refresh)] refresh: Refresh,
    missing: Missing,
    seed: &Bound<'_, PyAny>,
    threads: Threads,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let py = keys.py();
    let hashes = keys.cast::<Hashes>().ok();
    let seed = match hashes {
        Some(hashes) if seed.eq("random").unwrap_or(false) => hashes.get().key_seed(),
        _ => seed.extract::<SeedArgument>()?.0,
    };
    let span = match at {
        Some(_) => Some(read_span(window, "window")?),
        None if window::is_count(window)? => None,
        None => {
            read_span(window, "window")?;
            return Err(PyTypeError::new_err("a window of time needs at: when each key was seen"));
        }
    };
    let shape = ExactShape { missing_differ: missing == Missing::Distinct };
    let mut read = read_keys(keys, &missing.hashing(KeyHasher::of(seed)).0)?;
    if hashes.is_some() {
        read = scatter_hashes(read)?;
    }
    let window = match span {
        Some(span) => Window::Time { span, lateness: 0, capacity: 1 },
        // A longer window answers as one of all these keys does, which needs less memory.
        None if window.gt(read.len())? => Window::Count { insertions: read.len().max(1) as u64 },
        None => window::read(window, None, None, false)?,
    };
    let moments = OwnedMoments::read(at, window, read.len())?;
    import_numpy(py)?;
    let exact = AnyFilter::new(shape, window, seed).map_err(raise)?.with_max_ahead(None);
    let seen = PyFilter::of(exact, None).duplicated_batch(py, &Batch { keys: read, moments }, refresh, threads)?;
    array_of(py, seen)
}

/// Scatters hashes by a secret. The table places keys by their hashes. Hashes of a caller may lie close together, by
/// chance or because an attacker chose them, and would fill a part of the table.
fn scatter_hashes(keys: Keys) -> PyResult<Keys> {
    let [first, second] = random_secret()?.map(|word| word | 1);
    // Each step is reversible, so different hashes stay different.
    Ok(keys.mapped(move |hash| {
        let mixed = hash.wrapping_mul(first);
        (mixed ^ mixed >> 32).wrapping_mul(second)
    }))
}
