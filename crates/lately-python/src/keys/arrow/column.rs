//! Reads an [`ArrowArray`] into an [`ArrowColumn`], whose buffers have lengths that were checked.
//!
//! Two lengths cannot be checked, because the interface does not contain the length of a buffer: a buffer may be
//! shorter than the numbers beside it require, and the last offset of strings may lie after their data.

use std::slice;
use std::sync::Arc;

use bytemuck::Pod;

use super::field::{ArrowField, ArrowKind};
use super::structures::{ArrowArray, Owned, pointers};

/// A buffer of an array, with the length that the array implies.
#[derive(Clone)]
pub struct ArrowBuffer {
    first: *const u8,
    len: usize,
    /// Keeps the memory alive.
    _array: Arc<Owned<ArrowArray>>,
}

// SAFETY: the memory is only read, and it lives as long as the array. If the producer writes to it meanwhile, other
// bytes are hashed, and no memory access depends on them.
unsafe impl Send for ArrowBuffer {}
// SAFETY: as above.
unsafe impl Sync for ArrowBuffer {}

impl ArrowBuffer {
    /// Returns the bytes of the buffer.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: by the interface, this many bytes live as long as the array. Without bytes the pointer is not read.
        if self.len == 0 { &[] } else { unsafe { slice::from_raw_parts(self.first, self.len) } }
    }

    /// Returns element `i` of a buffer of Ts, which need not be aligned.
    #[inline(always)]
    pub fn at<T: Pod>(&self, i: usize) -> T {
        bytemuck::pod_read_unaligned(&self.bytes()[i * size_of::<T>()..][..size_of::<T>()])
    }

    /// Returns bit `i` of a buffer of bits, the lowest first.
    #[inline(always)]
    pub fn bit(&self, i: usize) -> bool {
        self.bytes()[i / 8] >> (i % 8) & 1 != 0
    }
}

/// The elements of an array. They start at `offset` in each buffer.
pub struct ArrowColumn {
    pub len: usize,
    pub offset: usize,
    /// A bit for each element, which is zero if the element is missing. `None` if no element is missing.
    pub present: Option<ArrowBuffer>,
    /// The other buffers: values, or offsets and data, or views and their data.
    pub buffers: Vec<ArrowBuffer>,
    pub children: Vec<ArrowColumn>,
    pub dictionary: Option<Box<ArrowColumn>>,
}

impl ArrowColumn {
    /// Reads an array of the type of `field`.
    pub fn read(array: Owned<ArrowArray>, field: &ArrowField) -> Result<Self, String> {
        let owner = Arc::new(array);
        Self::read_part(&owner, field, 0, &owner)
    }

    /// Reads an array that is a part of `owner`, or `owner` itself. An error if it has fewer elements than `least`.
    fn read_part(
        array: &ArrowArray,
        field: &ArrowField,
        least: usize,
        owner: &Arc<Owned<ArrowArray>>,
    ) -> Result<Self, String> {
        let checked = CheckedArray::new(array, field, owner)?;
        let CheckedArray { len, offset, end, .. } = checked;
        if len < least {
            return Err(checked.error("is shorter than the rows it belongs to"));
        }
        let may_lack = field.kind.has_validity() && array.null_count != 0 && !checked.buffers[0].is_null();
        let present = may_lack.then(|| checked.buffer(0, end.div_ceil(8))).transpose()?;
        let buffers = checked.read_buffers()?;
        let least = match field.kind {
            ArrowKind::Struct => end,
            ArrowKind::FixedList(width) => end.checked_mul(width).ok_or("the lists are longer than memory")?,
            ArrowKind::List { wide } => last_offset(&buffers[0], wide, offset, len)?,
            _ => 0,
        };
        let children = pointers(array.n_children, array.children)
            .filter(|children| children.len() == field.children.len())
            .ok_or_else(|| format!("an array with {} children", array.n_children))?;
        let children = field.children.iter().zip(children).map(|(field, &child)| {
            // SAFETY: by the interface, null or an array that lives as long as `owner`.
            Self::read_part(unsafe { child.as_ref() }.ok_or("a child is missing")?, field, least, owner)
        });
        let children = children.collect::<Result<_, String>>()?;
        let dictionary = field.dictionary.as_ref().map(|field| {
            // SAFETY: by the interface, null or an array that lives as long as `owner`.
            Self::read_part(unsafe { array.dictionary.as_ref() }.ok_or("a dictionary is missing")?, field, 0, owner)
        });
        Ok(Self { len, offset, present, buffers, children, dictionary: dictionary.transpose()?.map(Box::new) })
    }
}

/// An array whose numbers are consistent.
struct CheckedArray<'a> {
    field: &'a ArrowField,
    owner: &'a Arc<Owned<ArrowArray>>,
    buffers: &'a [*const std::ffi::c_void],
    len: usize,
    offset: usize,
    /// Where the elements end in the buffers. It is 0 for an array without elements, whose buffers are not read.
    end: usize,
}

impl<'a> CheckedArray<'a> {
    fn new(array: &'a ArrowArray, field: &'a ArrowField, owner: &'a Arc<Owned<ArrowArray>>) -> Result<Self, String> {
        let error = |what: &str| format!("an array of {} {what}", field.name());
        if array.is_released() {
            return Err(error("was released"));
        }
        let (Ok(len), Ok(offset)) = (usize::try_from(array.length), usize::try_from(array.offset)) else {
            return Err(error("has a negative length or offset"));
        };
        let end = len.checked_add(offset).filter(|end| {
            let bits = end.checked_add(1).and_then(|end| end.checked_mul(8 * field.kind.widest()));
            bits.is_some_and(|bits| bits <= isize::MAX as usize)
        });
        let end = end.ok_or_else(|| error("is longer than memory"))?;
        let buffers = pointers(array.n_buffers, array.buffers).ok_or_else(|| error("has no buffers"))?;
        let (expected, more) = field.kind.buffers();
        if field.kind != ArrowKind::Null && (buffers.len() < expected || buffers.len() > expected && !more) {
            return Err(error(&format!("has {} buffers", buffers.len())));
        }
        Ok(Self { field, owner, buffers, len, offset, end: if len == 0 { 0 } else { end } })
    }

    fn error(&self, what: &str) -> String {
        format!("an array of {} {what}", self.field.name())
    }

    /// Returns a buffer of this many bytes.
    fn buffer(&self, number: usize, bytes: usize) -> Result<ArrowBuffer, String> {
        let first: *const u8 = self.buffers[number].cast();
        if bytes > isize::MAX as usize || first.addr().checked_add(bytes).is_none() {
            return Err(format!("a buffer of {bytes} bytes"));
        }
        match first.is_null() && bytes > 0 && self.len > 0 {
            true => Err(self.error("lacks a buffer")),
            false => {
                Ok(ArrowBuffer { first, len: if first.is_null() { 0 } else { bytes }, _array: self.owner.clone() })
            }
        }
    }

    /// Returns the buffer of offsets of strings or lists.
    fn offsets(&self, wide: bool) -> Result<ArrowBuffer, String> {
        let width = if wide { 8 } else { 4 };
        self.buffer(1, if self.len == 0 { 0 } else { (self.end + 1) * width })
    }

    /// Returns the buffers after the first, which has the missing elements.
    fn read_buffers(&self) -> Result<Vec<ArrowBuffer>, String> {
        Ok(match self.field.kind {
            ArrowKind::Null | ArrowKind::Struct | ArrowKind::Runs | ArrowKind::FixedList(_) => Vec::new(),
            ArrowKind::Boolean => vec![self.buffer(1, self.end.div_ceil(8))?],
            ArrowKind::Strings { wide } | ArrowKind::Bytes { wide } => {
                let offsets = self.offsets(wide)?;
                let last = last_offset(&offsets, wide, self.offset, self.len)?;
                vec![offsets, self.buffer(2, last)?]
            }
            ArrowKind::List { wide } => vec![self.offsets(wide)?],
            ArrowKind::ListViews { wide } => {
                let bytes = self.end * if wide { 8 } else { 4 };
                vec![self.buffer(1, bytes)?, self.buffer(2, bytes)?]
            }
            ArrowKind::StringViews | ArrowKind::ByteViews => self.read_views()?,
            values => vec![self.buffer(1, self.end * values.width())?],
        })
    }

    /// Returns the buffer of views, and those of their data.
    fn read_views(&self) -> Result<Vec<ArrowBuffer>, String> {
        let [_, _, data @ .., lengths] = self.buffers else { return Err(self.error("lacks buffers of views")) };
        let lengths: *const i64 = lengths.cast();
        if !data.is_empty() && lengths.is_null() {
            return Err(self.error("lacks the lengths of its buffers"));
        }
        let mut all = vec![self.buffer(1, self.end * 16)?];
        for number in 0..data.len() {
            // SAFETY: by the interface, there is a length for each buffer of data.
            let bytes = unsafe { lengths.add(number).read_unaligned() };
            let bytes = usize::try_from(bytes).map_err(|_| format!("a buffer of {bytes} bytes"))?;
            all.push(self.buffer(2 + number, bytes)?);
        }
        Ok(all)
    }
}

/// Checks the first and the last offset, and returns the last: the bytes of strings, or the elements of lists.
fn last_offset(offsets: &ArrowBuffer, wide: bool, offset: usize, len: usize) -> Result<usize, String> {
    if len == 0 {
        return Ok(0);
    }
    let at = |i| if wide { offsets.at::<i64>(i) } else { offsets.at::<i32>(i).into() };
    let (first, last) = (at(offset), at(offset + len));
    match usize::try_from(last) {
        Ok(bytes) if first >= 0 && last >= first => Ok(bytes),
        _ => Err(format!("offsets from {first} to {last}")),
    }
}
