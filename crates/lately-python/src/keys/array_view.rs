//! The elements of a NumPy array, read in place.

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

/// The elements of an array of one dimension, in place, by a view that nobody else has: its address, length and type
/// stay as they were when they were checked.
pub struct ArrayView {
    /// Keeps the memory.
    view: Py<PyUntypedArray>,
    first: *const u8,
    len: usize,
    stride: isize,
    width: usize,
}

// SAFETY: the memory is only read, and it lives as long as the view, which only a thread that holds the interpreter can
// end. Another thread may write to the array meanwhile, as with every NumPy function that detaches from the
// interpreter: then the hash is that of some bytes, and nothing depends on which.
unsafe impl Send for ArrayView {}
// SAFETY: as above.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// The elements of `array`; refused unless it has one dimension.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        // SAFETY: a live array, no other type of elements, and the type of plain arrays. The result is a new reference,
        // or null with an error set. A view of a plain type calls no Python, so nothing happens between the checks
        // below.
        let view = unsafe {
            let plain = get_type_object(py, NpyTypes::PyArray_Type);
            let view = PY_ARRAY_API.PyArray_View(py, array.as_array_ptr(), null_mut(), plain);
            Bound::from_owned_ptr_or_err(py, view)?.cast_into_unchecked::<PyUntypedArray>()
        };
        let (&[len], &[stride]) = (view.shape(), view.strides()) else {
            return Err(PyValueError::new_err(format!("an array of one dimension is wanted, not of {}", view.ndim())));
        };
        // SAFETY: the view is a live array.
        let first = unsafe { (*_PyArray_GET_ITEM_DATA(view.as_array_ptr())).data.cast_const().cast() };
        Ok(Self { first, len, stride, width: view.dtype().itemsize(), view: view.unbind() })
    }

    /// The elements of `array`; refused unless they are as wide as a T.
    pub fn of<T>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let lane = Self::new(array)?;
        match lane.width == size_of::<T>() {
            true => Ok(lane),
            false => Err(PyTypeError::new_err(format!("an array of {} cannot be read here", lane.dtype(array.py())))),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of each.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The view that they lie in.
    pub fn view<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyUntypedArray> {
        self.view.bind(py)
    }

    /// Their type.
    pub fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.view(py).dtype()
    }

    /// The elements in `range`.
    #[inline(always)]
    pub fn elements<T: bytemuck::Pod>(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        self.elements_by(self.stride, range)
    }

    /// The same, with their stride.
    #[inline(always)]
    fn elements_by<T: bytemuck::Pod>(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = T> {
        assert!(size_of::<T>() == self.width, "elements of another width");
        self.places(stride, range).map(|place| {
            // SAFETY: an element is at its place, of T's size; any bytes are a T, and they need not be aligned.
            unsafe { place.cast::<T>().read_unaligned() }
        })
    }

    /// The bytes of the elements in `range`.
    #[inline(always)]
    pub fn bytes(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        // SAFETY: an element is at its place, and this wide.
        self.places(self.stride, range).map(|place| unsafe { std::slice::from_raw_parts(place, self.width) })
    }

    /// The addresses of the elements in `range`, which lies within the array; `stride` is theirs.
    #[inline(always)]
    fn places(&self, stride: isize, range: Range<usize>) -> impl ExactSizeIterator<Item = *const u8> {
        assert!(range.end <= self.len && stride == self.stride, "elements beyond the end of an array");
        let first = self.first;
        // SAFETY: i is less than the number of elements, so this is within the memory of the array.
        range.map(move |i| unsafe { first.offset(i as isize * stride) })
    }

    /// Whether no element is less than the one before it, or is not to be compared.
    pub fn is_sorted<T: bytemuck::Pod + PartialOrd>(&self) -> bool {
        Instructions::best().run(IsSorted { lane: self, of: PhantomData::<T> })
    }

    /// Prefetches element `i`, which may lie beyond the end.
    #[inline(always)]
    pub fn fetch(&self, i: usize) {
        Address::at(self.first.wrapping_offset((i as isize).wrapping_mul(self.stride))).fetch(0);
    }

    /// Element `i`.
    #[inline(always)]
    pub fn get<T: bytemuck::Pod>(&self, i: usize) -> T {
        self.elements(i..i + 1).next().expect("there is one")
    }

    /// Element `i`, as an object.
    ///
    /// # Safety
    ///
    /// The elements are objects, and no Python runs as long as this one is lent: the array may change.
    #[inline(always)]
    pub unsafe fn object<'py>(&self, py: Python<'py>, i: usize) -> Borrowed<'_, 'py, PyAny> {
        let place = self.places(self.stride, i..i + 1).next().expect("there is one");
        // SAFETY: at its place is a reference that the array holds, or null, which NumPy takes for None.
        unsafe {
            let object = place.cast::<*mut ffi::PyObject>().read_unaligned();
            Borrowed::from_ptr(py, if object.is_null() { ffi::Py_None() } else { object })
        }
    }

    /// One key per element.
    pub fn keys<T: bytemuck::Pod>(self, hash: impl Fn(T) -> u64 + Send + Sync + 'static) -> Keys {
        Keys::new(self.len, move |start, out| self.write(start, out, &hash))
    }

    /// One key per element, which is an integer that fits an i64, of these bits.
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

    /// Writes a number for each of the elements from `start` on.
    #[inline(always)]
    fn write<T: bytemuck::Pod>(&self, start: usize, out: &mut [u64], number: &impl Fn(T) -> u64) {
        let (range, beside) = (start..start + out.len(), size_of::<T>() as isize);
        // Elements that lie beside each other have a loop of their own, which compilers vectorise.
        if self.stride == beside {
            let elements = self.elements_by(beside, range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        } else {
            let elements = self.elements(range);
            out.iter_mut().zip(elements).for_each(|(out, element)| *out = number(element));
        }
    }
}

/// [`ArrayView::is_sorted`].
struct IsSorted<'a, T> {
    lane: &'a ArrayView,
    of: PhantomData<T>,
}

impl<M, T: bytemuck::Pod + PartialOrd> Work<M> for IsSorted<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self, _: M) -> bool {
        let (lane, beside) = (self.lane, size_of::<T>() as isize);
        let sorted = |stride| {
            let (before, after) =
                (lane.elements_by::<T>(stride, 0..lane.len - 1), lane.elements_by::<T>(stride, 1..lane.len));
            // As wide as what is compared, which compilers vectorise.
            before.zip(after).fold(1, |sorted, (before, after)| sorted & u64::from(before <= after)) == 1
        };
        if lane.stride == beside { sorted(beside) } else { sorted(lane.stride) }
    }
}

impl Strings for ArrayView {
    #[inline(always)]
    fn at(&self, i: usize) -> &[u8] {
        self.bytes(i..i + 1).next().expect("there is one")
    }
}
