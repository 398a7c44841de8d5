//! `Hashes`: hashed keys, so that many filters can be asked about them, on this machine or another.

use std::sync::Arc;

use numpy::PyUntypedArray;
use numpy::prelude::*;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use super::array_view::ArrayView;
use super::{Keys, is_of, scalar};
use crate::seeds::{GivenSeed, retained, shown};
use lately::key::{KeyHasher, Seed};

/// Keys that `hash_keys` has hashed. Pass them instead of the keys to any call that takes a batch, of any filter of the
/// same seed.
///
/// A key is then hashed once and asked of many filters, or hashed on one machine and looked up on another.
///
/// Parameters
/// ----------
/// hashes : ndarray of uint64, shape (n,)
///     What ``lately.hash_keys(keys, seed=seed)`` gave, or a part of it, of any stride. It is not copied.
/// seed : int or bytes, default 0
///     The seed they were made with: in [0, 2**64), or 16 secret bytes.
///
/// Raises
/// ------
/// TypeError
///     If `hashes` is no array of uint64, or a masked one.
/// ValueError
///     If it does not have one dimension, or `seed` is out of range. A call that takes keys raises it if its seed
///     differs; the message names both.
///
/// Notes
/// -----
/// `hash_keys` and `numpy.asarray` give the hashes back, without a copy and read-only.
///
/// Examples
/// --------
/// >>> day, week = (lately.AgePartitionedBloomFilter(window=n, fpr=0.001) for n in (1000, 7000))
/// >>> hashes = lately.Hashes(lately.hash_keys(["a", "b", "a"]))
/// >>> day.duplicated(hashes)
/// array([False, False,  True])
/// >>> week.insert(hashes)
/// >>> week.query(["a", "b", "c"])
/// array([ True,  True, False])
/// >>> hashes
/// <Hashes seed=0 len=3>
#[pyclass(frozen, module = "lately")]
pub struct Hashes {
    /// A one-dimensional read-only view, of which views are handed out. The lane reads a view of its own.
    view: Py<PyUntypedArray>,
    lane: Arc<ArrayView>,
    seed: Seed,
}

impl Hashes {
    /// The keys, for a hasher of the same seed.
    pub fn read(&self, hasher: KeyHasher) -> PyResult<Keys> {
        if hasher.seed() != self.seed {
            return Err(PyValueError::new_err(format!(
                "these hashes were made with seed={}, but here the seed is {}: hash the keys with that one",
                self.seed,
                hasher.seed()
            )));
        }
        let lane = self.lane.clone();
        Ok(Keys::new(lane.len(), move |start, out| {
            let hashes = lane.elements(start..start + out.len());
            out.iter_mut().zip(hashes).for_each(|(out, hash)| *out = hash);
        }))
    }

    /// The seed they were made with.
    pub fn seed_of(&self) -> Seed {
        self.seed
    }

    /// A view whose shape its taker may change.
    fn fresh<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view.bind(py).call_method0(intern!(py, "view"))
    }
}

#[pymethods]
impl Hashes {
    #[new]
    #[pyo3(signature = (hashes, *, seed=GivenSeed::public()), text_signature = "(hashes, *, seed=0)")]
    fn new(hashes: &Bound<'_, PyAny>, seed: GivenSeed) -> PyResult<Self> {
        let (py, GivenSeed(seed)) = (hashes.py(), seed);
        let refuse = |what: &str| {
            let message = format!("hashes must be an ndarray of uint64, as lately.hash_keys gives it, not {what}");
            PyTypeError::new_err(message)
        };
        let array = hashes.cast::<PyUntypedArray>().map_err(|_| refuse(&scalar::type_name(hashes)))?;
        if is_of(hashes, "numpy.ma", "MaskedArray")? {
            return Err(refuse("a masked array"));
        }
        let dtype = array.dtype();
        if (dtype.kind(), dtype.itemsize()) != (b'u', 8) {
            return Err(refuse(&format!("an array of {dtype}")));
        }
        if array.ndim() != 1 {
            return Err(PyValueError::new_err(format!("hashes must have one dimension, got {}", array.ndim())));
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        // Native byte order, without a copy if it already is.
        let view = array
            .call_method(intern!(py, "astype"), ("=u8",), Some(&[("copy", false)].into_py_dict(py)?))?
            .call_method1(intern!(py, "view"), (numpy.getattr(intern!(py, "ndarray"))?,))?;
        view.getattr(intern!(py, "flags"))?.setattr(intern!(py, "writeable"), false)?;
        let view = view.cast_into()?;
        Ok(Self { lane: Arc::new(ArrayView::of::<u64>(&view)?), view: view.unbind(), seed })
    }

    /// int or None: the seed they were made with; None of a secret one, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        shown(self.seed)
    }

    fn __len__(&self) -> usize {
        self.lane.len()
    }

    /// The hashes, for `numpy.asarray`.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view.bind(py);
        let dtype = dtype.filter(|dtype| !dtype.is_none()).unwrap_or_else(|| view.dtype().into_any());
        let keywords = [("copy", copy == Some(true))].into_py_dict(py)?;
        let array = view.call_method(intern!(py, "astype"), (dtype,), Some(&keywords))?;
        match array.is(view) {
            true => self.fresh(py),
            false if copy == Some(false) => {
                Err(PyValueError::new_err("hashes are uint64; as another type they have to be copied"))
            }
            false => Ok(array),
        }
    }

    /// The arguments with which pickle makes them again.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((Bound<'py, PyAny>,), Bound<'py, PyDict>)> {
        Ok(((self.fresh(py)?,), [("seed", retained(py, self.seed)?)].into_py_dict(py)?))
    }

    fn __repr__(&self) -> String {
        format!("<Hashes seed={} len={}>", self.seed, self.__len__())
    }
}
