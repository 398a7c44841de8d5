//! Keys of Rust's types, by hashes that equal those of Python's keys.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::KeyHasher;

/// A value that can be a key of a filter.
///
/// Keys that are equal in Python have one hash, in either language and in every container: `5u8`, `5i64` and `5.0` are
/// one key, and so are `true` and `1`. Text and bytes are different keys. A tuple is a row of several fields, `None` is
/// Python's `None`, and `Some(key)` is `key`.
///
/// | in Rust | in Python |
/// |---|---|
/// | integers of every width, `bool` | `int`, `bool` |
/// | `f32`, `f64` | `float`; NaN is `None` |
/// | `str`, `String`, `char` | `str` |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | `bytes` |
/// | tuples of up to eight keys, `()` | `tuple` |
/// | `Option` | the key, or `None` |
/// | [`Hashed`] | a hash of `lately.hash_keys` |
///
/// A type of your own is a key by the fields that make it unique:
///
/// ```
/// use lately::{Filter, Key, KeyHasher, Window};
///
/// struct Event { source: u32, id: String, body: Vec<u8> }
///
/// impl Key for Event {
///     fn to_hash(&self, hasher: &KeyHasher) -> u64 {
///         (self.source, &self.id).to_hash(hasher)
///     }
/// }
///
/// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
/// let event = Event { source: 7, id: "a".into(), body: vec![] };
/// assert!(!filter.seen(&event));
/// assert!(filter.seen((7, "a")));
/// # Ok::<(), lately::Error>(())
/// ```
pub trait Key {
    /// Returns the hash of the key.
    fn to_hash(&self, hasher: &KeyHasher) -> u64;
}

/// A key that is hashed already: 64 bits, uniform for different keys.
///
/// A filter uses such hashes as they are. With the hashes of a [`KeyHasher`] of the filter's seed, the key is the one
/// that was hashed. Hashes of another function are keys of their own, and must be as good as random.
///
/// ```
/// use lately::{Filter, Hashed, Key, Window};
///
/// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
/// filter.insert(Hashed("a".to_hash(filter.hasher())));
/// assert!(filter.contains("a"));
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hashed(pub u64);

impl Key for Hashed {
    #[inline]
    fn to_hash(&self, _: &KeyHasher) -> u64 {
        self.0
    }
}

/// Implements `Key` for types, by an expression of the hasher and the value.
macro_rules! keys {
    ($($type:ty),+ => |$hasher:ident, $key:ident| $hash:expr) => {
        $(impl Key for $type {
            #[inline]
            fn to_hash(&self, $hasher: &KeyHasher) -> u64 {
                let $key = self;
                $hash
            }
        })+
    };
}

keys!(i64 => |hasher, key| hasher.integer(*key));
keys!(u64 => |hasher, key| hasher.unsigned(*key));
keys!(isize => |hasher, key| hasher.integer(*key as i64));
keys!(usize => |hasher, key| hasher.unsigned(*key as u64));
keys!(u8, u16, u32 => |hasher, key| hasher.unsigned((*key).into()));
keys!(i8, i16, i32, bool => |hasher, key| hasher.integer((*key).into()));
keys!(i128 => |hasher, key| hasher.big_integer(&key.to_le_bytes()));
keys!(u128 => |hasher, key| {
    let mut bytes = [0; 17];
    bytes[..16].copy_from_slice(&key.to_le_bytes());
    hasher.big_integer(&bytes)
});
keys!(f32 => |hasher, key| hasher.float((*key).into()));
keys!(f64 => |hasher, key| hasher.float(*key));
keys!(str, String => |hasher, key| hasher.text(key));
keys!(char => |hasher, key| hasher.text(key.encode_utf8(&mut [0; 4])));
keys!([u8], Vec<u8> => |hasher, key| hasher.bytes(key));

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        hasher.bytes(self)
    }
}

impl<K: Key> Key for Option<K> {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        self.as_ref().map_or_else(|| hasher.missing(), |key| key.to_hash(hasher))
    }
}

/// Implements `Key` for pointers to keys.
macro_rules! pointers {
    ($($type:ty),+) => {
        $(impl<K: Key + ?Sized> Key for $type {
            #[inline]
            fn to_hash(&self, hasher: &KeyHasher) -> u64 {
                (**self).to_hash(hasher)
            }
        })+
    };
}

pointers!(&K, &mut K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        (**self).to_hash(hasher)
    }
}

impl Key for () {
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        hasher.row_start(0)
    }
}

/// Implements `Key` for tuples: rows of fields.
macro_rules! rows {
    ($($width:literal: $($field:ident $place:tt),+;)+) => {
        $(impl<$($field: Key),+> Key for ($($field,)+) {
            #[inline]
            fn to_hash(&self, hasher: &KeyHasher) -> u64 {
                let chain = hasher.row_start($width);
                $(let chain = hasher.row_next(chain, self.$place.to_hash(hasher));)+
                chain
            }
        })+
    };
}

rows! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
