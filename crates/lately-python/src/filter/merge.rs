//! Merges, compares and clears filters.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::PyFilter;
use super::object::create;
use super::state::FilterState;
use crate::calls::detached;
use crate::errors::raise;
use lately::family::AnyFilter;

impl PyFilter {
    /// Returns copies of two filters. Only one lock is held at a time, because another thread may copy the same two in
    /// the other order.
    fn snapshots(&self, other: &Self) -> PyResult<(AnyFilter, AnyFilter)> {
        let theirs = other.snapshot()?;
        Ok((self.snapshot()?, theirs))
    }
}

#[pymethods]
impl PyFilter {
    /// Create a filter that holds the keys of both.
    ///
    /// Parameters
    /// ----------
    /// other : Filter
    ///     A filter of the same class, window, seed and parameters. Windows of time are moved to the later of both
    ///     times, so filters of different machines can be merged. Windows of insertions of an `AgedCuckooFilter`, such
    ///     as of threads that filled a filter each, can be merged at any counts. The merged window then has the last
    ///     `window` insertions of each, and its bytes are those of both until the other's keys have left it. Those of
    ///     other classes can be merged only in the same generation, because nothing else relates their counts.
    ///     `inserted` is then the larger count, less at most one generation, and no key leaves its window early.
    ///
    /// Returns
    /// -------
    /// Filter
    ///     A new filter. It reports every key that either of the two reports. Its rate of false positives is that of
    ///     all distinct keys of both, so plan `capacity` for all machines together.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter differs; the message names it. If filters of this class cannot be merged.
    ///
    /// Examples
    /// --------
    /// >>> paris, tokyo = (lately.AgePartitionedBloomFilter("1h", 0.001, capacity=10_000) for _ in range(2))
    /// >>> paris.insert(["a"], at=[1000]); tokyo.insert(["b"], at=[1500])
    /// >>> paris.union(tokyo).query(["a", "b", "c"], at=2000)
    /// array([ True,  True, False])
    fn union(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (ours, theirs) = (slf.get(), other.get());
        let merged = detached(slf.py(), || {
            let (mut ours, theirs) = ours.snapshots(theirs)?;
            ours.merge(&theirs).map_err(raise)?;
            PyResult::Ok(ours)
        })??;
        create(&slf.get_type(), FilterState::new(merged, None))
    }

    /// Create a filter that holds the keys of both, as `union` does.
    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::union(slf, other)
    }

    /// Insert all keys of another filter, which must have the same parameters as in `union`.
    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        detached(py, || {
            let theirs = other.snapshot()?;
            let mut ours = self.write()?;
            ours.merge(&theirs).map_err(raise)?;
            self.load.restart(&ours.engine().clock());
            Ok(())
        })?
    }

    /// Compare family, window, parameters, seed, times and cells: equal filters have equal saved forms.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let other = other.get();
        detached(py, || {
            let (ours, theirs) = self.snapshots(other)?;
            ours.equals(&theirs).map_err(raise)
        })?
    }

    /// Forget all keys and times. Window, parameters and seed stay.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the filter is shared by several processes.
    /// MemoryError
    ///     If there is no memory for the empty cells, which are allocated first. Nothing is forgotten then.
    ///
    /// Examples
    /// --------
    /// >>> f = lately.Filter("10min", 0.001)
    /// >>> f.add("a", at=1_000_000_000)
    /// >>> f.clear()
    /// >>> f.inserted, f.latest, "a" in f
    /// (0, None, False)
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            if self.shared.is_some() {
                return Err(PyValueError::new_err(
                    "a shared filter cannot be cleared while processes use it: save an empty one to another path",
                ));
            }
            let mut filter = self.write()?;
            *filter = filter.cleared().map_err(raise)?;
            self.forget_times();
            self.load.restart(&filter.engine().clock());
            Ok(())
        })?
    }
}
