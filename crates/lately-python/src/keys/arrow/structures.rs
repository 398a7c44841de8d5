//! The structures of Arrow's C data interface, and what they point to, checked before it is believed.
//!
//! A structure is read once, into trees of plain values: a [`Schema`], and a [`Column`] whose buffers have lengths.
//! Everything else reads those, and is safe. No check takes longer for more keys.
//!
//! Two claims cannot be checked, since the interface does not contain the length of a buffer: a buffer may be shorter
//! than the numbers beside it say, and the last offset of strings may lie beyond their data.

#![allow(unsafe_code, reason = "memory of other libraries, by the C data interface")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;
use std::ptr::null;
use std::slice;
use std::sync::Arc;

use bytemuck::Pod;

use super::field::{Field, Kind};
use crate::keys::DEEPEST;

/// A structure of the interface, which contains the function that releases it.
pub trait Structure: Sized {
    /// Returns the function; none in a structure that was released.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! structure {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $($field: $type,)*
            release: Option<unsafe extern "C" fn(*mut Self)>,
            private_data: *mut c_void,
        }

        impl Structure for $name {
            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
        }
    };
}

structure! {
    /// `ArrowSchema`.
    ArrowSchema {
        format: *const c_char,
        name: *const c_char,
        metadata: *const c_char,
        flags: i64,
        n_children: i64,
        children: *const *const ArrowSchema,
        dictionary: *const ArrowSchema,
    }
}

structure! {
    /// `ArrowArray`.
    ArrowArray {
        length: i64,
        null_count: i64,
        offset: i64,
        n_buffers: i64,
        n_children: i64,
        buffers: *const *const c_void,
        children: *const *const ArrowArray,
        dictionary: *const ArrowArray,
    }
}

structure! {
    /// `ArrowArrayStream`.
    ArrowArrayStream {
        get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
        get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
        get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    }
}

/// A structure that is released when it is dropped.
pub struct Owned<T: Structure>(T);

// SAFETY: the interface allows a structure to be released by any thread, and this one is only read before that.
unsafe impl Send for Owned<ArrowArray> {}
// SAFETY: as above.
unsafe impl Sync for Owned<ArrowArray> {}

impl<T: Structure> Owned<T> {
    /// Moves a structure out of its place, as the interface demands; none if it was released before.
    ///
    /// # Safety
    ///
    /// `place` points to an initialized structure, which no other thread uses.
    pub unsafe fn take(place: *mut T) -> Option<Self> {
        // SAFETY: by the contract of this function. The structure left behind is marked as released.
        let structure = unsafe {
            (*place).release().as_ref()?;
            let structure = place.read();
            *(*place).release() = None;
            structure
        };
        Some(Self(structure))
    }

    /// Has a function of the interface fill a structure.
    fn filled(fill: impl FnOnce(*mut T) -> c_int) -> Result<Option<Self>, c_int> {
        // SAFETY: null pointers, numbers and no functions: every structure may be all zero, and is then released.
        let mut structure: T = unsafe { std::mem::zeroed() };
        match fill(&raw mut structure) {
            // SAFETY: the structure was initialized above.
            0 => Ok(unsafe { Self::take(&raw mut structure) }),
            code => Err(code),
        }
    }
}

impl<T: Structure> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Structure> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the structure was moved here and not released yet.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// Why a stream failed: with a code and a text of its producer.
pub struct Failure(pub c_int, pub String);

impl Owned<ArrowArrayStream> {
    /// Returns the schema of all arrays to come.
    pub fn schema(&mut self) -> Result<Option<Owned<ArrowSchema>>, Failure> {
        let Some(get_schema) = self.0.get_schema else { return Ok(None) };
        // SAFETY: a stream that is not released, and a place for the schema.
        let schema = Owned::filled(|place| unsafe { get_schema(&raw mut self.0, place) });
        schema.map_err(|code| self.failure(code))
    }

    /// Returns the next array; none at the end.
    pub fn next(&mut self) -> Result<Option<Owned<ArrowArray>>, Failure> {
        let Some(get_next) = self.0.get_next else { return Ok(None) };
        // SAFETY: a stream that is not released, and a place for the array.
        let array = Owned::filled(|place| unsafe { get_next(&raw mut self.0, place) });
        array.map_err(|code| self.failure(code))
    }

    fn failure(&mut self, code: c_int) -> Failure {
        // SAFETY: a stream that is not released and has just failed.
        let message = self.0.get_last_error.map_or(null(), |get_last_error| unsafe { get_last_error(&raw mut self.0) });
        // SAFETY: null, or a C string that lives until the next call.
        let message = unsafe { message.as_ref().map(|message| CStr::from_ptr(message)) };
        Failure(code, message.map_or("no reason was given".into(), |message| message.to_string_lossy().into_owned()))
    }
}

/// A type as a schema describes it.
pub struct Schema {
    /// The type, in the short form of the interface.
    pub format: String,
    /// The name of a column, or empty.
    pub name: String,
    /// The extension type, if the values mean something other than their storage.
    pub extension: Option<String>,
    /// The types that this one is made of.
    pub children: Vec<Schema>,
    /// The type of the values, if this is that of the codes.
    pub dictionary: Option<Box<Schema>>,
}

/// The key of the metadata that contains the name of an extension type.
const EXTENSION: &[u8] = b"ARROW:extension:name";

impl ArrowSchema {
    /// Reads a schema that is not released.
    pub fn read(&self) -> Result<Schema, String> {
        self.read_within(DEEPEST)
    }

    /// Returns whether the schema was released.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }

    fn read_within(&self, deeper: u8) -> Result<Schema, String> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(format!("Arrow types may be nested at most {DEEPEST} deep"));
        };
        if self.format.is_null() {
            return Err("a format is missing".to_owned());
        }
        let text = |text: *const c_char| {
            // SAFETY: by the interface, null or a C string.
            let text = unsafe { text.as_ref().map(|text| CStr::from_ptr(text)) };
            text.map_or(Ok(String::new()), |text| text.to_str().map(str::to_owned))
        };
        let children = pointers(self.n_children, self.children).ok_or("children are missing")?;
        let children = children.iter().map(|&child| {
            // SAFETY: by the interface, null or a schema that lives as long as this.
            unsafe { child.as_ref() }.ok_or("a child is missing")?.read_within(deeper)
        });
        // SAFETY: by the interface, null or a schema that lives as long as this.
        let dictionary = unsafe { self.dictionary.as_ref() };
        Ok(Schema {
            format: text(self.format).map_err(|_| "a format is no UTF-8")?,
            name: text(self.name).map_err(|_| "a name is no UTF-8")?,
            extension: self.extension()?,
            children: children.collect::<Result<_, String>>()?,
            dictionary: dictionary.map(|schema| schema.read_within(deeper).map(Box::new)).transpose()?,
        })
    }

    /// Reads the extension type from the metadata: the number of pairs, and for each the length and the bytes of its
    /// key and of its value.
    fn extension(&self) -> Result<Option<String>, String> {
        if self.metadata.is_null() {
            return Ok(None);
        }
        let mut place = self.metadata.cast::<u8>();
        let mut next = |len: usize| {
            // SAFETY: by the interface, the metadata goes on for as many bytes as its numbers say.
            let bytes = unsafe { slice::from_raw_parts(place, len) };
            place = place.wrapping_add(len);
            bytes
        };
        let number = |bytes: &[u8]| {
            let number = i32::from_ne_bytes(bytes.try_into().expect("four bytes"));
            usize::try_from(number).map_err(|_| format!("metadata with the length {number}"))
        };
        for _ in 0..number(next(4))? {
            let len = number(next(4))?;
            let key = next(len);
            let len = number(next(4))?;
            let value = next(len);
            if key == EXTENSION {
                return Ok(Some(String::from_utf8_lossy(value).into_owned()));
            }
        }
        Ok(None)
    }
}

/// A buffer of an array, as long as the array says.
#[derive(Clone)]
pub struct Buffer {
    first: *const u8,
    len: usize,
    /// Keeps the memory.
    _array: Arc<Owned<ArrowArray>>,
}

// SAFETY: the memory is only read, and it lives as long as the array. A producer that writes to it meanwhile changes
// what is hashed, and nothing depends on which bytes are read.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns the bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: by the interface, that many bytes that live as long as the array; of none the pointer may be any.
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

/// An array, with buffers that have lengths. Its elements lie from `offset` on in all its buffers.
pub struct Column {
    pub len: usize,
    pub offset: usize,
    /// The bits of elements that are there, if any may be missing.
    pub present: Option<Buffer>,
    /// The buffers behind that: values, or offsets and data, or views and the data they lead to.
    pub buffers: Vec<Buffer>,
    pub children: Vec<Column>,
    pub dictionary: Option<Box<Column>>,
}

impl Owned<ArrowArray> {
    /// Reads an array of the type of `field`.
    pub fn read(self, field: &Field) -> Result<Column, String> {
        let array = Arc::new(self);
        array.0.read(field, 0, &array)
    }
}

impl ArrowArray {
    /// Reads an array, or one that it is made of, which has at least `least` elements.
    fn read(&self, field: &Field, least: usize, owner: &Arc<Owned<Self>>) -> Result<Column, String> {
        let lies = |what: &str| Err(format!("an array of {} {what}", field.name()));
        if self.release.is_none() {
            return lies("was released");
        }
        let (Ok(len), Ok(offset)) = (usize::try_from(self.length), usize::try_from(self.offset)) else {
            return lies("has a negative length or offset");
        };
        let end = len.checked_add(offset).filter(|end| {
            let bits = end.checked_add(1).and_then(|end| end.checked_mul(8 * field.kind.widest()));
            bits.is_some_and(|bits| bits <= isize::MAX as usize)
        });
        let Some(end) = end else { return lies("is longer than memory") };
        if len < least {
            return lies("is shorter than the rows it is of");
        }
        let Some(buffers) = pointers(self.n_buffers, self.buffers) else { return lies("has no buffers") };
        let (wanted, more) = field.kind.buffers();
        if field.kind != Kind::Null && (buffers.len() < wanted || buffers.len() > wanted && !more) {
            return lies(&format!("has {} buffers", buffers.len()));
        }
        let buffer = |number: usize, bytes: usize| {
            let first: *const u8 = buffers[number].cast();
            if bytes > isize::MAX as usize || first.addr().checked_add(bytes).is_none() {
                return Err(format!("a buffer of {bytes} bytes"));
            }
            match first.is_null() && bytes > 0 && len > 0 {
                true => Err(format!("an array of {} lacks a buffer", field.name())),
                false => Ok(Buffer { first, len: if first.is_null() { 0 } else { bytes }, _array: owner.clone() }),
            }
        };
        // Of an array without elements no buffer is read, and offsets may be missing.
        let end = if len == 0 { 0 } else { end };
        let may_lack = field.kind.has_validity() && self.null_count != 0 && !buffers[0].is_null();
        let present = may_lack.then(|| buffer(0, end.div_ceil(8))).transpose()?;
        let offsets = |width: usize| buffer(1, if len == 0 { 0 } else { (end + 1) * width });
        let own = match &field.kind {
            Kind::Null | Kind::Struct | Kind::Runs | Kind::FixedList(_) => Vec::new(),
            Kind::Boolean => vec![buffer(1, end.div_ceil(8))?],
            Kind::Strings { wide } | Kind::Bytes { wide } => {
                let offsets = offsets(if *wide { 8 } else { 4 })?;
                let last = last_offset(&offsets, *wide, offset, len)?;
                vec![offsets, buffer(2, last)?]
            }
            Kind::List { wide } => vec![offsets(if *wide { 8 } else { 4 })?],
            Kind::StringViews | Kind::ByteViews => {
                let [_, _, data @ .., lengths] = buffers else { return lies("lacks buffers of views") };
                let lengths: *const i64 = lengths.cast();
                if !data.is_empty() && lengths.is_null() {
                    return lies("lacks the lengths of its buffers");
                }
                let mut all = vec![buffer(1, end * 16)?];
                for number in 0..data.len() {
                    // SAFETY: by the interface there is a length for each of them.
                    let bytes = unsafe { lengths.add(number).read_unaligned() };
                    let bytes = usize::try_from(bytes).map_err(|_| format!("a buffer of {bytes} bytes"))?;
                    all.push(buffer(2 + number, bytes)?);
                }
                all
            }
            values => vec![buffer(1, end * values.width())?],
        };
        let within = match field.kind {
            Kind::Struct => end,
            Kind::FixedList(width) => end.checked_mul(width).ok_or("lists longer than memory")?,
            Kind::List { wide } => last_offset(&own[0], wide, offset, len)?,
            _ => 0,
        };
        let children = pointers(self.n_children, self.children)
            .filter(|children| children.len() == field.children.len())
            .ok_or_else(|| format!("an array with {} children", self.n_children))?;
        let children = field.children.iter().zip(children).map(|(field, &child)| {
            // SAFETY: by the interface, null or an array that lives as long as this.
            unsafe { child.as_ref() }.ok_or("a child is missing")?.read(field, within, owner)
        });
        let dictionary = field.dictionary.as_ref().map(|field| {
            // SAFETY: as above.
            unsafe { self.dictionary.as_ref() }.ok_or("a dictionary is missing")?.read(field, 0, owner)
        });
        Ok(Column {
            len,
            offset,
            present,
            children: children.collect::<Result<_, String>>()?,
            dictionary: dictionary.transpose()?.map(Box::new),
            buffers: own,
        })
    }
}

/// Checks the first and the last offset, and returns the last: the length of strings, or of the elements of lists.
fn last_offset(offsets: &Buffer, wide: bool, offset: usize, len: usize) -> Result<usize, String> {
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

/// Returns an array of `count` pointers; none if it is claimed and missing.
fn pointers<'a, T>(count: i64, first: *const *const T) -> Option<&'a [*const T]> {
    match usize::try_from(count).ok()? {
        0 => Some(&[]),
        _ if first.is_null() || !first.is_aligned() => None,
        // SAFETY: by the interface, that many pointers.
        count => Some(unsafe { slice::from_raw_parts(first, count) }),
    }
}
