//! A filter as a set: united, compared and emptied.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::calls::detached;
use super::filter::Filter;
use super::objects::object;
use crate::errors::raise;
use lately::filter;

impl Filter {
    /// It and another, as they are now. One lock at a time: two threads may unite the same two filters, each in its own
    /// order.
    fn both(&self, other: &Self) -> PyResult<(filter::AnyFilter, filter::AnyFilter)> {
        let theirs = other.snapshot()?;
        Ok((self.snapshot()?, theirs))
    }
}

#[pymethods]
impl Filter {
    /// A filter that holds the keys of both.
    ///
    /// Parameters
    /// ----------
    /// other : Filter
    ///     Of the same class, window, seed and parameters. Windows of time are brought to the later of both times, so
    ///     filters of different machines can be united. Windows of insertions can be united only in the same
    ///     generation, since nothing else relates their counts; `inserted` is then the lesser of both, and no window is
    ///     cut short.
    ///
    /// Returns
    /// -------
    /// Filter
    ///     A new one; every key that either would report, it reports. The chance of a false positive is that of as many
    ///     distinct keys as both have taken, so plan `capacity` for all machines together.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a parameter differs, which the message names, or the class has no union.
    ///
    /// Examples
    /// --------
    /// >>> paris, tokyo = (lately.AgePartitionedBloomFilter("1h", 0.001, capacity=10_000) for _ in range(2))
    /// >>> paris.insert(["a"], at=[1000]); tokyo.insert(["b"], at=[1500])
    /// >>> paris.union(tokyo).query(["a", "b", "c"], at=2000)
    /// array([ True,  True, False])
    fn union(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (ours, theirs) = (slf.get(), other.get());
        let united = detached(slf.py(), || {
            let (mut ours, theirs) = ours.both(theirs)?;
            ours.merge(&theirs).map_err(raise)?;
            PyResult::Ok(ours)
        })??;
        object(&slf.get_type(), united)
    }

    /// `union`.
    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::union(slf, other)
    }

    /// Takes in all keys of another filter, which must agree as in `union`.
    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        detached(py, || {
            let theirs = other.snapshot()?;
            let mut ours = self.write()?;
            ours.merge(&theirs).map_err(raise)?;
            self.watch.begin_anew(&ours.engine().clock());
            Ok(())
        })?
    }

    /// Whether both are of one family, with the same window, parameters, seed, times and cells: as if saved alike.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let other = other.get();
        detached(py, || {
            let (ours, theirs) = self.both(other)?;
            Ok(ours == theirs)
        })?
    }

    /// Forget all keys and times. Window, parameters and seed stay.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If processes share it.
    /// MemoryError
    ///     If there is not enough memory for empty cells beside those there are; nothing is forgotten then.
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
                    "a filter that processes share is not cleared: the others use it too",
                ));
            }
            let mut filter = self.write()?;
            *filter = filter.cleared().map_err(raise)?;
            self.forget_times();
            self.watch.begin_anew(&filter.engine().clock());
            Ok(())
        })?
    }
}
