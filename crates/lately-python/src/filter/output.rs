//! Answers that only some families have. Methods of their classes, and sites, call these functions.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::PyFilter;
use crate::arrays::array_of;
use crate::calls::detached;
use crate::errors::raise;
use crate::time::moments::present;
use crate::whole::WholeNumber;
use lately::Error;
use lately::clock::Moments;
use lately::family::AnyFilter;
use lately::family::baselines::generalized;
use lately::memory::fallible;

/// Returns an answer, or the error that filters of this family do not have it.
fn supported<T>(answer: Option<T>) -> Result<T, Error> {
    answer.ok_or_else(|| Error::value("filters of this family have no such answer"))
}

/// Counts the occurrences of keys, for the methods `count` of `Swamp` and `CountingBloomFilter`.
#[pyfunction]
pub fn count<'py>(filter: &Bound<'py, PyFilter>, keys: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (py, base) = (filter.py(), filter.get());
    let count = |hashes: &[u64], _: Moments<'_>, counts: &mut [u64]| {
        base.with(|filter| filter.engine().count(hashes, counts)).map_err(raise)
    };
    array_of(py, base.batch(py, keys, None, false)?.run(py, 1, count)?)
}

/// Estimates the number of distinct keys, for the methods `distinct` of `Swamp` and `AgedCuckooFilter`. The latter
/// accepts a window.
#[pyfunction]
#[pyo3(signature = (filter, window=None))]
pub fn distinct(py: Python<'_>, filter: &Bound<'_, PyFilter>, window: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
    let filter = filter.get();
    let window = filter.query_window(window)?;
    detached(py, || filter.with(|filter| supported(filter.distinct(window))))?.map_err(raise)
}

/// Counts the different keys in the window, for the length of an `ExactFilter`. Reads the whole table.
#[pyfunction]
pub fn keys(py: Python<'_>, filter: &Bound<'_, PyFilter>) -> PyResult<usize> {
    let filter = filter.get();
    let keys = |filter: &AnyFilter| supported(filter.engine().keys(present(filter.window())));
    detached(py, || filter.with(keys))?.map_err(raise)
}

/// Computes the rates of false negatives at these ages, for `GeneralizedBloomFilter.false_negative_rates`.
#[pyfunction]
pub fn missed<'py>(filter: &Bound<'py, PyFilter>, ages: Vec<WholeNumber>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (py, filter) = (filter.py(), filter.get());
    let ages = ages.into_iter().map(|age| age.within("ages")).collect::<PyResult<Vec<u64>>>()?;
    let memory = detached(py, || {
        filter.with(|filter| supported(filter.shape_as().map(generalized::shape::GeneralizedShape::memory)))
    })?
    .map_err(raise)?;
    array_of(py, fallible::collected(ages.into_iter().map(|age| memory.missed(age as f64))).map_err(raise)?)
}

/// Computes the rate of false negatives in each block of the window, for `TimingBloomFilter.false_negative_rates`.
#[pyfunction]
pub fn missed_by_block<'py>(filter: &Bound<'py, PyFilter>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (py, filter) = (filter.py(), filter.get());
    array_of(py, detached(py, || filter.with(|filter| filter.shape().false_negative_rates(filter.window())))?)
}

/// Returns the number of parts of a `TimingBloomFilter`: one, unless the filter grows.
#[pyfunction]
pub fn parts(py: Python<'_>, filter: &Bound<'_, PyFilter>) -> PyResult<usize> {
    let filter = filter.get();
    detached(py, || filter.with(|filter| filter.engine().tables()))
}

/// Returns the bits of each slice of a `TimeLimitedBloomFilter`, the newest first.
#[pyfunction]
pub fn slice_bits<'py>(filter: &Bound<'py, PyFilter>) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (py, filter) = (filter.py(), filter.get());
    let bits = detached(py, || filter.with(|filter| supported(filter.engine().slice_bits())))?;
    array_of(py, bits.map_err(raise)?)
}

/// Returns the message that the filter is overfull, if it is. From the first call on the filter does not warn.
#[pyfunction]
pub fn overfull(filter: &Bound<'_, PyFilter>) -> Option<String> {
    filter.get().load.defer()
}
