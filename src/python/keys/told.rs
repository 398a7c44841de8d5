//! Checks what Arrow's C structures claim before it is believed. `arrow-array` trusts all of it, and fails an assertion
//! or reads out of bounds. No check takes longer for more keys.
//!
//! Two claims cannot be checked, since the structures do not give the length of a buffer: pointers to less than
//! claimed, and the last offset of strings.

use std::ffi::{CStr, c_char, c_void};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_schema::{DataType, FieldRef};

/// Types may be nested this deep, as keys are.
const DEEPEST: u8 = super::DEEPEST;

/// `ArrowSchema` of the Arrow C data interface.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const Schema,
    dictionary: *const Schema,
    release: *const c_void,
    private_data: *const c_void,
}

/// `ArrowArray` of the Arrow C data interface.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const Array,
    dictionary: *const Array,
    release: *const c_void,
    private_data: *const c_void,
}

const _: () = assert!(size_of::<Schema>() == size_of::<FFI_ArrowSchema>());
const _: () = assert!(size_of::<Array>() == size_of::<FFI_ArrowArray>());

/// Why a schema cannot be one of keys, if so.
pub fn check_schema(schema: &FFI_ArrowSchema) -> Result<(), String> {
    // SAFETY: both are the structure that the interface lays down.
    let schema = unsafe { &*(&raw const *schema).cast::<Schema>() };
    schema.check(DEEPEST)
}

/// Why an array cannot be of this type, which keys can be of, if so.
pub fn check_array(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    // SAFETY: both are the structure that the interface lays down.
    let array = unsafe { &*(&raw const *array).cast::<Array>() };
    array.check(data_type, 0)
}

impl Schema {
    fn check(&self, deeper: u8) -> Result<(), String> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(format!("Arrow types may be nested at most {DEEPEST} deep"));
        };
        if self.format.is_null() {
            return Err("a format is missing".to_owned());
        }
        // SAFETY: by the interface, a C string.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str();
        let format = text(self.format).map_err(|_| "a format is no UTF-8")?;
        if !self.name.is_null() && text(self.name).is_err() {
            return Err("a name is no UTF-8".to_owned());
        }
        let size = format.strip_prefix("+w:").or(format.strip_prefix("w:"));
        if size.is_some_and(|size| size.parse::<u32>().is_err()) {
            return Err(format!("the format {format} has no size"));
        }
        let children = pointers(self.n_children, self.children).ok_or("children are missing")?;
        let wanted = match format {
            "+r" => 2,
            _ if format.starts_with("+u") || format == "+s" => children.len(),
            _ if format.starts_with('+') => 1,
            _ => 0,
        };
        if children.len() != wanted {
            return Err(format!("the format {format} with {} children", children.len()));
        }
        for (number, &child) in children.iter().enumerate() {
            // SAFETY: by the interface, null or a schema that lives as long as this.
            let child = unsafe { child.as_ref() }.ok_or("a child is missing")?;
            child.check(deeper)?;
            // SAFETY: a C string, as was just checked.
            let kind = unsafe { CStr::from_ptr(child.format) }.to_bytes();
            if format == "+r" && number == 0 && !matches!(kind, b"s" | b"i" | b"l") {
                return Err("runs that end at no integers".to_owned());
            }
            if format == "+m" && (kind, child.n_children) != (b"+s", 2) {
                return Err("a map without pairs".to_owned());
            }
        }
        // SAFETY: as above.
        if let Some(dictionary) = unsafe { self.dictionary.as_ref() } {
            if !["c", "C", "s", "S", "i", "I", "l", "L"].contains(&format) {
                return Err(format!("a dictionary with codes of the format {format}"));
            }
            dictionary.check(deeper)?;
        }
        Ok(())
    }
}

impl Array {
    fn check(&self, data_type: &DataType, least: usize) -> Result<(), String> {
        let lies = |what: &str| Err(format!("an array of {data_type} {what}"));
        if self.release.is_null() {
            return lies("was released");
        }
        let (Ok(length), Ok(offset)) = (usize::try_from(self.length), usize::try_from(self.offset)) else {
            return lies("has a negative length or offset");
        };
        let widest = match data_type {
            DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0).max(16),
            DataType::Decimal256(..) => 32,
            _ => 16,
        };
        let bits = length.checked_add(offset + 1).and_then(|end| end.checked_mul(8 * widest));
        if bits.is_none_or(|bits| bits > isize::MAX as usize) {
            return lies("is longer than memory");
        }
        if length < least {
            return lies("is shorter than the rows it is of");
        }
        let Some(buffers) = pointers(self.n_buffers, self.buffers) else {
            return lies("has no buffers");
        };
        let (wanted, more) = match data_type {
            DataType::Null | DataType::RunEndEncoded(..) => (0, false),
            DataType::Struct(_) | DataType::FixedSizeList(..) => (1, false),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => (3, false),
            DataType::Utf8View | DataType::BinaryView => (3, true),
            _ => (2, false),
        };
        // Old producers give null arrays a validity buffer; it is not read.
        let enough = if more { buffers.len() >= wanted } else { buffers.len() == wanted };
        if !enough && *data_type != DataType::Null {
            return lies(&format!("has {} buffers", buffers.len()));
        }
        match data_type {
            DataType::Utf8 | DataType::Binary => self.check_offsets::<i32>(buffers[1], length, offset).map(|_| ()),
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.check_offsets::<i64>(buffers[1], length, offset).map(|_| ())
            }
            DataType::List(item) => {
                let elements = self.check_offsets::<i32>(buffers[1], length, offset)?;
                self.check_children([(item, elements)])
            }
            DataType::LargeList(item) => {
                let elements = self.check_offsets::<i64>(buffers[1], length, offset)?;
                self.check_children([(item, elements)])
            }
            DataType::FixedSizeList(item, width) => {
                let elements = usize::try_from(*width).ok().and_then(|width| width.checked_mul(length + offset));
                self.check_children([(item, elements.ok_or("lists longer than memory")?)])
            }
            DataType::RunEndEncoded(ends, values) => self.check_children([(ends, 0), (values, 0)]),
            DataType::Utf8View | DataType::BinaryView => check_views(buffers),
            DataType::Struct(fields) => self.check_children(fields.iter().map(|field| (field, length + offset))),
            DataType::Dictionary(_, values) => {
                // SAFETY: as above.
                let dictionary = unsafe { self.dictionary.as_ref() }.ok_or("a dictionary is missing")?;
                dictionary.check(values, 0)
            }
            _ => Ok(()),
        }
    }

    /// The arrays that this one is made of, by their fields, and how long they are at least.
    fn check_children<'a>(
        &self,
        fields: impl IntoIterator<IntoIter: ExactSizeIterator<Item = (&'a FieldRef, usize)>>,
    ) -> Result<(), String> {
        let fields = fields.into_iter();
        let children = pointers(self.n_children, self.children).filter(|children| children.len() == fields.len());
        let children = children.ok_or_else(|| format!("an array with {} children", self.n_children))?;
        fields.zip(children).try_for_each(|((field, least), &child)| {
            // SAFETY: by the interface, null or an array that lives as long as this.
            let child = unsafe { child.as_ref() }.ok_or("a child is missing")?;
            child.check(field.data_type(), least)
        })
    }

    /// The first and the last offset, which give the length of strings and lists. Returns the last.
    fn check_offsets<T: Copy + Into<i64>>(
        &self,
        offsets: *const c_void,
        length: usize,
        offset: usize,
    ) -> Result<usize, String> {
        if length == 0 {
            return Ok(0);
        }
        if offsets.is_null() {
            return Err("offsets are missing".to_owned());
        }
        // SAFETY: by the interface there are length + offset + 1 of them.
        let at = |i: usize| unsafe { offsets.cast::<T>().add(i).read_unaligned() }.into();
        let (first, last): (i64, i64) = (at(offset), at(offset + length));
        if first < 0 || last < first {
            return Err(format!("offsets from {first} to {last}"));
        }
        Ok(last as usize)
    }
}

/// The lengths of the buffers behind views, stored in the last buffer of all.
fn check_views(buffers: &[*const c_void]) -> Result<(), String> {
    let &[_, _, ref data @ .., lengths] = buffers else {
        return Err("buffers of views are missing".to_owned());
    };
    if data.is_empty() {
        return Ok(());
    }
    if lengths.is_null() {
        return Err("the lengths of buffers are missing".to_owned());
    }
    for i in 0..data.len() {
        // SAFETY: by the interface there is a length for each of them.
        let length = unsafe { lengths.cast::<i64>().add(i).read_unaligned() };
        if length < 0 {
            return Err(format!("a buffer of {length} bytes"));
        }
    }
    Ok(())
}

/// An array of `count` pointers; `None` if it is claimed but not there.
fn pointers<'a, T>(count: i64, first: *const *const T) -> Option<&'a [*const T]> {
    match usize::try_from(count).ok()? {
        0 => Some(&[]),
        _ if first.is_null() || !first.is_aligned() => None,
        // SAFETY: by the interface, that many pointers.
        count => Some(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}
