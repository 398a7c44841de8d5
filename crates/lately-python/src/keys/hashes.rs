//! `lately.Hashes`: keys that are hashed once, for several filters or another machine.

use std::sync::Arc;

use numpy::PyUntypedArray;
use numpy::prelude::*;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use super::Keys;
use super::array_view::ArrayView;
use super::classes::{is_instance_of, type_name};
use crate::arguments::{SeedArgument, public_seed, seed_to_pickle};
use crate::arrays::import_numpy;
use lately::key::{KeyHasher, Seed};

/// Keys that `hash_keys` hashed. Pass them in place of the keys to any call with a batch, for any filter of the same
/// seed.
///
/// Keys are then hashed once for several filters, or hashed on one machine and looked up on another.
///
/// Parameters
/// ----------
/// hashes : ndarray of uint64, shape (n,)
///     The result of ``lately.hash_keys(keys, seed=seed)``, or a part of it, of any stride. It is not copied.
/// seed : int or bytes, default 0
///     Seed of the hashes: an int in [0, 2**64), or 16 secret bytes.
///
/// Raises
/// ------
/// TypeError
///     If `hashes` is not an array of uint64, or is masked.
/// ValueError
///     If `hashes` has more or less than one dimension, or `seed` is out of range. Calls with keys raise it if their
///     seed differs; the message names both.
///
/// Notes
/// -----
/// `hash_keys` and `numpy.asarray` return the hashes without a copy, read-only.
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
    /// A one-dimensional read-only array. Callers get views of it.
    array: Py<PyUntypedArray>,
    /// The elements of `array`, for reading.
    elements: Arc<ArrayView>,
    seed: Seed,
}

impl Hashes {
    /// Returns the keys, for a hasher of the same seed.
    pub fn read(&self, hasher: KeyHasher) -> PyResult<Keys> {
        if hasher.has_missing_rows() {
            return Err(PyValueError::new_err(
                "missing='distinct' needs the keys themselves: Hashes do not store which of them are missing",
            ));
        }
        if hasher.seed() != self.seed {
            return Err(PyValueError::new_err(format!(
                "these hashes have seed={}, but here the seed is {}: hash the keys with that one",
                self.seed,
                hasher.seed()
            )));
        }
        let elements = self.elements.clone();
        Ok(Keys::new(elements.len(), move |start, out| {
            let hashes = elements.elements(start..start + out.len());
            out.iter_mut().zip(hashes).for_each(|(out, hash)| *out = hash);
        }))
    }

    /// Returns the seed of the hashes.
    pub fn key_seed(&self) -> Seed {
        self.seed
    }

    /// Returns a new view, whose shape the caller may change.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array.bind(py).call_method0(intern!(py, "view"))
    }
}

#[pymethods]
impl Hashes {
    #[new]
    #[pyo3(signature = (hashes, *, seed=SeedArgument::public()), text_signature = "(hashes, *, seed=0)")]
    fn new(hashes: &Bound<'_, PyAny>, seed: SeedArgument) -> PyResult<Self> {
        let (py, SeedArgument(seed)) = (hashes.py(), seed);
        import_numpy(py)?;
        let refuse = |what: &str| {
            let message = format!("hashes must be an ndarray of uint64, as lately.hash_keys returns it, not {what}");
            PyTypeError::new_err(message)
        };
        let array = hashes.cast::<PyUntypedArray>().map_err(|_| refuse(&type_name(hashes)))?;
        if is_instance_of(hashes, "numpy.ma", "MaskedArray")? {
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
        // Converted to native byte order, without a copy if it is native already.
        let view = array
            .call_method(intern!(py, "astype"), ("=u8",), Some(&[("copy", false)].into_py_dict(py)?))?
            .call_method1(intern!(py, "view"), (numpy.getattr(intern!(py, "ndarray"))?,))?;
        view.getattr(intern!(py, "flags"))?.setattr(intern!(py, "writeable"), false)?;
        let view = view.cast_into()?;
        Ok(Self { elements: Arc::new(ArrayView::of::<u64>(&view)?), array: view.unbind(), seed })
    }

    /// int or None: seed of the hashes. None for a secret, which is not shown.
    #[getter]
    fn seed(&self) -> Option<u64> {
        public_seed(self.seed)
    }

    fn __len__(&self) -> usize {
        self.elements.len()
    }

    /// Return the hashes, for `numpy.asarray`.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hashes = self.array.bind(py);
        let dtype = dtype.filter(|dtype| !dtype.is_none()).unwrap_or_else(|| hashes.dtype().into_any());
        let keywords = [("copy", copy == Some(true))].into_py_dict(py)?;
        let array = hashes.call_method(intern!(py, "astype"), (dtype,), Some(&keywords))?;
        match array.is(hashes) {
            true => self.view(py),
            false if copy == Some(false) => {
                Err(PyValueError::new_err("copy=False needs dtype=uint64: another type needs a copy of the hashes"))
            }
            false => Ok(array),
        }
    }

    /// Return the arguments from which pickle builds the hashes again.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((Bound<'py, PyAny>,), Bound<'py, PyDict>)> {
        Ok(((self.view(py)?,), [("seed", seed_to_pickle(py, self.seed)?)].into_py_dict(py)?))
    }

    fn __repr__(&self) -> String {
        format!("<Hashes seed={} len={}>", self.seed, self.__len__())
    }
}
