//! What only filters of some families can answer, or those at a site: functions that their classes and sites call.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::calls::detached;
use super::filter::Filter;
use super::whole::Whole;
use crate::errors::raise;
use lately::Error;
use lately::clock::Moments;
use lately::engine::Aged;
use lately::engine::growing::Growing;
use lately::filter;
use lately::layout::quotient::Quotient;
use lately::layout::swamp::Buffered;
use lately::layout::time_limited::Slices;
use lately::memory::fallible;
use lately::shape::generalized;
use lately::shard::Row;

/// An answer of some families only, or the error that this family has none.
fn only<T>(found: Option<T>) -> Result<T, Error> {
    found.ok_or_else(|| Error::value("filters of this family have no such answer"))
}

/// `Swamp.count` and `CountingBloomFilter.count`, and `AgedQuotientFilter.count`, which takes moments and a window.
#[pyfunction]
#[pyo3(signature = (filter, keys, at=None, window=None))]
pub fn count<'py>(
    filter: &Bound<'py, Filter>,
    keys: &Bound<'_, PyAny>,
    at: Option<&Bound<'_, PyAny>>,
    window: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (py, base) = (filter.py(), filter.get());
    let window = window.map(|window| base.part(Some(window))).transpose()?;
    let count = |hashes: &[u64], at: Moments<'_>, counts: &mut [u64]| {
        base.with(|filter| filter.engine().count(hashes, at, window, counts)).map_err(raise)
    };
    Ok(base.batch(py, keys, at, false)?.run(py, 1, count)?.into_pyarray(py))
}

/// `Swamp.distinct`, and `AgedQuotientFilter.distinct`, which takes a window.
#[pyfunction]
#[pyo3(signature = (filter, window=None))]
pub fn distinct(py: Python<'_>, filter: &Bound<'_, Filter>, window: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
    let filter = filter.get();
    let window = filter.part(window)?;
    let of_buffer = |Aged::<Buffered> { layout, words, .. }: &_| layout.distinct(words.as_slice());
    let of_entries = |Aged::<Quotient> { layout, words, clock }: &_| layout.distinct(words.as_slice(), clock, window);
    let distinct = |filter: &filter::AnyFilter| {
        only(filter.engine_as().map(of_buffer).or_else(|| filter.engine_as().map(of_entries)))
    };
    detached(py, || filter.with(distinct))?.map_err(raise)
}

/// `GeneralizedBloomFilter.false_negative_rates`.
#[pyfunction]
pub fn missed<'py>(filter: &Bound<'py, Filter>, ages: Vec<Whole>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (py, filter) = (filter.py(), filter.get());
    let ages = ages.into_iter().map(|age| age.within("ages")).collect::<PyResult<Vec<u64>>>()?;
    let memory =
        detached(py, || filter.with(|filter| only(filter.shape_as().map(generalized::GeneralizedShape::memory))))?
            .map_err(raise)?;
    Ok(fallible::collected(ages.into_iter().map(|age| memory.missed(age as f64))).map_err(raise)?.into_pyarray(py))
}

/// `TimingBloomFilter.false_negative_rates`.
#[pyfunction]
pub fn missed_by_block<'py>(filter: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (py, filter) = (filter.py(), filter.get());
    Ok(detached(py, || filter.with(filter::AnyFilter::false_negative_rates))?.into_pyarray(py))
}

/// `TimingBloomFilter.parts`: one unless it grows.
#[pyfunction]
pub fn parts(py: Python<'_>, filter: &Bound<'_, Filter>) -> PyResult<usize> {
    let filter = filter.get();
    detached(py, || filter.with(|filter| filter.engine_as().map_or(1, Growing::parts)))
}

/// `TimingBloomFilter.kept`, and `BloomFilter.kept`, which is more than any stream has.
#[pyfunction]
pub fn retained(py: Python<'_>, filter: &Bound<'_, Filter>) -> PyResult<i64> {
    let filter = filter.get();
    detached(py, || {
        filter.with(|filter| Row::of(filter).map_or_else(|_| filter.shape().retained().into(), |row| row.retained()))
    })
}

/// `TimeLimitedBloomFilter.slice_bits`.
#[pyfunction]
pub fn slice_bits<'py>(filter: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (py, filter) = (filter.py(), filter.get());
    Ok(detached(py, || filter.with(|filter| only(filter.engine_as().map(Slices::slice_bits))))?
        .map_err(raise)?
        .into_pyarray(py))
}

/// What a filter would warn of, or has; from the first call on it does not warn.
#[pyfunction]
pub fn overfull(filter: &Bound<'_, Filter>) -> Option<String> {
    filter.get().watch().aside()
}
