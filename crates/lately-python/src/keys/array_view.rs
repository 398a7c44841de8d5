//! Reads the elements of a NumPy array in place.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::null_mut;

use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NpyTypes, PY_ARRAY_API, get_type_object};
use numpy::prelude::*;
use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::Keys;
use lately::instructions::{Instructions, Work};
use lately::key::{KeyHasher, Strings};
use lately::memory::prefetch::Address;

/// The elements of a one-dimensional array, in place. No other object has the view, so its address, length and type do
/// not change after they are checked.
pub struct ArrayView {
    /// Keeps the memory alive.
    view: Py<PyUntypedArray>,
    first: *const u8,
    len: usize,
    stride: isize,
    width: usize,
}

// SAFETY: the memory is only read. It lives as long as the view, which only a thread attached to the interpreter drops.
// Another thread may write to the array meanwhile, as with every NumPy function that detaches from the interpreter. The
// hash is then that of other bytes, and no memory access depends on it.
unsafe impl Send for ArrayView {}
// SAFETY: as above.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// Creates a view of `array`. An error unless it has one dimension.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        // SAFETY: the array is alive, null keeps its type of elements, and `plain` is the type of plain arrays. The
        // result is a new reference, or null with an error set. A view of a plain type calls no Python, so the array
        // does not change between the checks below.
        let view = unsafe {
            let plain = get_type_object(py, NpyTypes::PyArray_Type);
            let view = PY_ARRAY_API.PyArray_View(py, array.as_array_ptr(), null_mut(), plain);
            Bound::from_owned_ptr_or_err(py, view)?.cast_into_unchecked::<PyUntypedArray>()
        };
        let (&[len], &[stride]) = (view.shape(), view.strides()) else {
            return Err(PyValueError::new_err(format!("expected an array of one dimension, got {}", view.ndim())));
        };
        // SAFETY: the view is a live array.
        let first = unsafe { (*_PyArray_GET_ITEM_DATA(view.as_array_ptr())).data.cast_const().cast() };
        Ok(Self { first, len, stride, width: view.dtype().itemsize(), view: view.unbind() })
    }

    /// Creates a view of `array`. An error unless its elements are as wide as a T.
    pub fn of<T>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let view = Self::new(array)?;
        match view.width == size_of::<T>() {
            true => Ok(view),
            false => Err(PyTypeError::new_err(format!(
                "expected elements of {} bytes, got an array of {}",
                size_of::<T>(),
                view.dtype(array.py())
            ))),
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of an element.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the array that is viewed.
    pub fn view<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyUntypedArray> {
        self.view.bind(py)
    }

    /// Returns the type of the elements.
    pub fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.view(py).dtype()
    }

    /// Returns the elements in `range`.
    #[inline(always)]
    pub fn elements<T: bytemuck::Pod>(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        self.elements_by(self.stride, range)
    }

    /// Returns the elements in `range`. `stride` is the view's, which may be a constant to the compiler.
    #[inline(always)]
    fn elements_by<T: bytemuck::Pod>(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        assert!(size_of::<T>() == self.width, "the elements have another width");
        self.addresses(stride, range).map(|address| {
            // SAFETY: an element of T's size lies at this address. Any bytes are a valid T, and need not be aligned.
            unsafe { address.cast::<T>().read_unaligned() }
        })
    }

    /// Returns the bytes of the elements in `range`.
    #[inline(always)]
    pub fn bytes(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: an element of this width lies at each address.
        let bytes = |address| unsafe { std::slice::from_raw_parts(address, self.width) };
        self.addresses(self.stride, range).map(bytes)
    }

    /// Returns the addresses of the elements in `range`, which is checked. `stride` is the view's.
    #[inline(always)]
    fn addresses(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = *const u8> {
        assert!(range.end <= self.len && stride == self.stride, "the range ends after the array");
        let first = self.first;
        // SAFETY: i is less than the number of elements, so the address lies within the array's memory.
        range.map(move |i| unsafe { first.offset(i as isize * stride) })
    }

    /// Returns whether the elements are in non-decreasing order. NaN is in no order.
    pub fn is_sorted<T: bytemuck::Pod + PartialOrd>(&self) -> bool {
        Instructions::best().run(IsSorted { view: self, of: PhantomData::<T> })
    }

    /// Prefetches element `i`, which may lie after the end.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        Address::at(self.first.wrapping_offset((i as isize).wrapping_mul(self.stride))).fetch(0);
    }

    /// Returns element `i`.
    #[inline(always)]
    pub fn get<T: bytemuck::Pod>(&self, i: usize) -> T {
        self.elements(i..i + 1).next().expect("there is one")
    }

    /// Returns element `i`, which is an object.
    ///
    /// # Safety
    ///
    /// The elements are objects. No Python runs while the object is borrowed, because it may change the array.
    #[inline(always)]
    pub unsafe fn object<'py>(&self, py: Python<'py>, i: usize) -> Borrowed<'_, 'py, PyAny> {
        let address = self.addresses(self.stride, i..i + 1).next().expect("there is one");
        // SAFETY: at this address lies a reference that the array holds, or null, which NumPy reads as None.
        unsafe {
            let object = address.cast::<*mut ffi::PyObject>().read_unaligned();
            Borrowed::from_ptr(py, if object.is_null() { ffi::Py_None() } else { object })
        }
    }

    /// Returns one key for each element.
    pub fn keys<T: bytemuck::Pod>(self, hash: impl Fn(T) -> u64 + Send + Sync + 'static) -> Keys {
        Keys::new(self.len, move |start, out| self.write(start, out, &hash))
    }

    /// Returns one key for each element, which is an integer. `bits` returns it as an i64's bits.
    pub fn integers<T: bytemuck::Pod>(
        self,
        hasher: KeyHasher,
        bits: impl Fn(T) -> u64 + Send + Sync + 'static,
    ) -> Keys {
        Keys::new(self.len, move |start, out| {
            self.write(start, out, &bits);
            hasher.integers(out);
        })
    }

    /// Writes a number for each element from `start` on.
    #[inline(always)]
    fn write<T: bytemuck::Pod>(&self, start: usize, out: &mut [u64], number: &impl Fn(T) -> u64) {
        let (range, contiguous) = (start..start + out.len(), size_of::<T>() as isize);
        // Contiguous elements have a separate loop, which compilers vectorise.
        if self.stride == contiguous {
            let elements = self.elements_by(contiguous, range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        } else {
            let elements = self.elements(range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        }
    }
}

/// The work of [`ArrayView::is_sorted`], for any vector instructions.
struct IsSorted<'a, T> {
    view: &'a ArrayView,
    of: PhantomData<T>,
}

impl<Machine, T: bytemuck::Pod + PartialOrd> Work<Machine> for IsSorted<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self, _: Machine) -> bool {
        let (view, contiguous) = (self.view, size_of::<T>() as isize);
        let sorted = |stride| {
            let elements = |range| view.elements_by::<T>(stride, range);
            let pairs = elements(0..view.len.saturating_sub(1)).zip(elements(1..view.len));
            // A number as wide as the elements, so that compilers vectorise the loop.
            pairs.fold(1, |sorted, (before, after)| sorted & u64::from(before <= after)) == 1
        };
        // Contiguous elements have a separate loop, which compilers vectorise.
        if view.stride == contiguous { sorted(contiguous) } else { sorted(view.stride) }
    }
}

impl Strings for ArrayView {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        self.bytes(i..i + 1).next().expect("there is one")
    }
}
