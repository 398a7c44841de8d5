//! The structures of Arrow's C data interface, and the [`Schema`] that is read from one.
//!
//! A structure is read once, into trees of plain values: a [`Schema`], and an
//! [`ArrowColumn`](super::column::ArrowColumn) whose buffers have lengths. All other code reads those, and is safe. The
//! time of the checks does not depend on the number of keys.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;
use std::ptr::null;
use std::slice;

use crate::keys::MAX_DEPTH;

/// A structure of the interface. It contains the function that releases it.
pub trait Structure: Sized {
    /// Returns the function, which is `None` after the release.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! structure {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $(pub(super) $field: $type,)*
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
    /// The structure `ArrowSchema`: a type.
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
    /// The structure `ArrowArray`: elements.
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
    /// The structure `ArrowArrayStream`: arrays of one type.
    ArrowArrayStream {
        get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
        get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
        get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    }
}

/// A structure that is released when it is dropped.
pub struct Owned<T: Structure>(T);

// SAFETY: the interface allows any thread to release a structure, and this one is only read before that.
unsafe impl Send for Owned<ArrowArray> {}
// SAFETY: as above.
unsafe impl Sync for Owned<ArrowArray> {}

impl<T: Structure> Owned<T> {
    /// Moves a structure out of its place, as the interface requires; `None` if it was released before.
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

    /// Calls a function of the interface that writes a structure.
    fn filled(fill: impl FnOnce(*mut T) -> c_int) -> Result<Option<Self>, c_int> {
        // SAFETY: null pointers, zeros and no functions are valid in every structure, which is then a released one.
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

/// The error of a stream: the code and the message of its producer.
pub struct StreamError(pub c_int, pub String);

impl Owned<ArrowArrayStream> {
    /// Returns the schema of all arrays to come.
    pub fn schema(&mut self) -> Result<Option<Owned<ArrowSchema>>, StreamError> {
        let Some(get_schema) = self.0.get_schema else { return Ok(None) };
        // SAFETY: the stream is not released, and `place` is a place for a schema.
        let schema = Owned::filled(|place| unsafe { get_schema(&raw mut self.0, place) });
        schema.map_err(|code| self.error(code))
    }

    /// Returns the next array; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Owned<ArrowArray>>, StreamError> {
        let Some(get_next) = self.0.get_next else { return Ok(None) };
        // SAFETY: the stream is not released, and `place` is a place for an array.
        let array = Owned::filled(|place| unsafe { get_next(&raw mut self.0, place) });
        array.map_err(|code| self.error(code))
    }

    /// Returns the error of a call that failed.
    fn error(&mut self, code: c_int) -> StreamError {
        // SAFETY: the stream is not released, and its last call failed.
        let message = self.0.get_last_error.map_or(null(), |get_last_error| unsafe { get_last_error(&raw mut self.0) });
        // SAFETY: null, or a C string that lives until the next call.
        let message = unsafe { message.as_ref().map(|message| CStr::from_ptr(message)) };
        StreamError(
            code,
            message.map_or("no reason was given".into(), |message| message.to_string_lossy().into_owned()),
        )
    }
}

/// The type that an [`ArrowSchema`] describes.
pub struct Schema {
    /// The type, in the format strings of the interface.
    pub format: String,
    /// The name of a column, or empty.
    pub name: String,
    /// The name of the extension type, if the type is one.
    pub extension: Option<String>,
    /// The types of the children.
    pub children: Vec<Schema>,
    /// The type of the dictionary's values, if this is the type of codes.
    pub dictionary: Option<Box<Schema>>,
}

/// The key of the metadata for the name of an extension type.
const EXTENSION: &[u8] = b"ARROW:extension:name";

impl ArrowSchema {
    /// Reads a schema, which must not be released.
    pub fn read(&self) -> Result<Schema, String> {
        self.read_within(MAX_DEPTH)
    }

    /// Returns whether the schema was released.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }

    fn read_within(&self, deeper: u8) -> Result<Schema, String> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(format!("Arrow types may be nested at most {MAX_DEPTH} deep"));
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
            // SAFETY: by the interface, null or a schema that lives as long as this one.
            unsafe { child.as_ref() }.ok_or("a child is missing")?.read_within(deeper)
        });
        // SAFETY: by the interface, null or a schema that lives as long as this one.
        let dictionary = unsafe { self.dictionary.as_ref() };
        Ok(Schema {
            format: text(self.format).map_err(|_| "a format is not UTF-8")?,
            name: text(self.name).map_err(|_| "a name is not UTF-8")?,
            extension: self.extension()?,
            children: children.collect::<Result<_, String>>()?,
            dictionary: dictionary.map(|schema| schema.read_within(deeper).map(Box::new)).transpose()?,
        })
    }

    /// Reads the name of the extension type from the metadata. It has the number of pairs, then for each pair the
    /// length and the bytes of the key and of the value.
    fn extension(&self) -> Result<Option<String>, String> {
        if self.metadata.is_null() {
            return Ok(None);
        }
        let mut place = self.metadata.cast::<u8>();
        let mut next = |len: usize| {
            // SAFETY: by the interface, the metadata has as many bytes as its numbers require.
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

impl ArrowArray {
    /// Returns whether the array was released.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

/// Returns an array of `count` pointers; `None` if it is missing.
pub fn pointers<'a, T>(count: i64, first: *const *const T) -> Option<&'a [*const T]> {
    match usize::try_from(count).ok()? {
        0 => Some(&[]),
        _ if first.is_null() || !first.is_aligned() => None,
        // SAFETY: by the interface, there are `count` pointers.
        count => Some(unsafe { slice::from_raw_parts(first, count) }),
    }
}
