//! Keys of Rust's types, by hashes that equal those of Python's keys.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::*;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::KeyHasher;
use super::time::{Duration as Span, Time};

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    label = "this type has no hash that a filter could use",
    note = "pass the fields that make it unique as a tuple: `filter.seen((event.source, &event.id))`",
    note = "or implement `lately::Key` for a type of your own, by such a tuple",
    note = "or pass `lately::Hashed(hash)`, for example of `std::hash::BuildHasher::hash_one`"
)]
/// A value that can be a key of a filter.
///
/// Keys that are equal in Python have one hash, in either language and in every container: `5u8`, `5i64` and `5.0` are
/// one key, and so are `true` and `1`. Text and bytes are different keys. A tuple is a row of several fields, `None` is
/// Python's `None`, and `Some(key)` is `key`.
///
/// | in Rust | in Python |
/// |---|---|
/// | integers of every width, `NonZero`, `bool` | `int`, `bool` |
/// | `f32`, `f64` | `float`; NaN is `None` |
/// | `str`, `String`, `char` | `str` |
/// | `[u8]`, `[u8; N]`, `Vec<u8>`, `Bytes` with the feature `bytes` | `bytes` |
/// | `[K]`, `[K; N]`, `Vec<K>` of other keys | `list` |
/// | `Path`, `PathBuf` | `str`, as the path is written |
/// | `IpAddr` | `bytes`: its `packed` |
/// | `SocketAddr` | `tuple` of address and port, and of flow and scope unless both are 0 |
/// | `Duration` | `timedelta` |
/// | `SystemTime` | `datetime` with a time zone |
/// | `Uuid` with the feature `uuid` | `uuid.UUID` |
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

    /// Returns the hash of several keys in order, as one key: by default that of a list.
    #[doc(hidden)]
    #[inline]
    fn slice_to_hash(keys: &[Self], hasher: &KeyHasher) -> u64
    where
        Self: Sized,
    {
        let start = hasher.list_start(keys.len());
        keys.iter().fold(start, |chain, key| hasher.list_next(chain, key.to_hash(hasher)))
    }
}

/// A key that is hashed already: 64 bits, uniform for different keys.
///
/// A filter uses such hashes as they are. With the hashes of a [`KeyHasher`] of the filter's seed, the key is the one
/// that was hashed. Hashes of another function are keys of their own, and must be as good as random.
///
/// So a type that is only `std::hash::Hash` is a key by a hasher of your choice. With the state of the process its keys
/// are for this process alone: a saved filter needs a hasher with a fixed state.
///
/// ```
/// use std::hash::{BuildHasher, RandomState};
/// use lately::{Filter, Hashed, Window};
///
/// #[derive(Hash)]
/// enum Route { Home, Page(u32) }
///
/// let (state, mut filter) = (RandomState::new(), Filter::builder(Window::last(1000)).fpr(0.01).build()?);
/// assert!(!filter.seen(Hashed(state.hash_one(Route::Page(7)))));
/// assert!(filter.seen(Hashed(state.hash_one(Route::Page(7)))));
/// assert!(!filter.contains(Hashed(state.hash_one(Route::Home))));
/// # Ok::<(), lately::Error>(())
/// ```
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
keys!(u16, u32 => |hasher, key| hasher.unsigned((*key).into()));
keys!(NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroU128, NonZeroUsize => |hasher, key| {
    key.get().to_hash(hasher)
});
keys!(NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroI128, NonZeroIsize => |hasher, key| {
    key.get().to_hash(hasher)
});
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
keys!(Path, PathBuf => |hasher, key| hasher.text(key.as_os_str().as_encoded_bytes()));
keys!(Ipv4Addr, Ipv6Addr => |hasher, key| hasher.bytes(&key.octets()));
keys!(IpAddr => |hasher, key| match key {
    IpAddr::V4(address) => address.to_hash(hasher),
    IpAddr::V6(address) => address.to_hash(hasher),
});
keys!(SocketAddrV4 => |hasher, key| (key.ip(), key.port()).to_hash(hasher));
keys!(SocketAddrV6 => |hasher, key| match (key.flowinfo(), key.scope_id()) {
    (0, 0) => (key.ip(), key.port()).to_hash(hasher),
    (flow, scope) => (key.ip(), key.port(), flow, scope).to_hash(hasher),
});
keys!(SocketAddr => |hasher, key| match key {
    SocketAddr::V4(address) => address.to_hash(hasher),
    SocketAddr::V6(address) => address.to_hash(hasher),
});
keys!(Duration => |hasher, key| hasher.duration(Span::Exact(time(*key))));
keys!(SystemTime => |hasher, key| hasher.aware(match key.duration_since(UNIX_EPOCH) {
    Ok(since) => time(since),
    Err(before) => before_1970(time(before.duration())),
}));
#[cfg(feature = "uuid")]
keys!(uuid::Uuid => |hasher, key| hasher.uuid(key.into_bytes()));
#[cfg(feature = "bytes")]
keys!(bytes::Bytes => |hasher, key| hasher.bytes(key));

/// Returns a span of time as the hasher takes it.
fn time(span: Duration) -> Time {
    Time { seconds: span.as_secs().into(), attoseconds: u64::from(span.subsec_nanos()) * 1_000_000_000 }
}

/// Returns the moment this long before 1970.
fn before_1970(Time { seconds, attoseconds }: Time) -> Time {
    const SECOND: u64 = 1_000_000_000_000_000_000;
    match attoseconds {
        0 => Time { seconds: -seconds, attoseconds },
        _ => Time { seconds: -seconds - 1, attoseconds: SECOND - attoseconds },
    }
}

impl Key for u8 {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        hasher.unsigned((*self).into())
    }

    /// Several bytes are a byte string.
    #[inline]
    fn slice_to_hash(keys: &[Self], hasher: &KeyHasher) -> u64 {
        hasher.bytes(keys)
    }
}

impl<K: Key> Key for [K] {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        K::slice_to_hash(self, hasher)
    }
}

impl<K: Key> Key for Vec<K> {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        K::slice_to_hash(self, hasher)
    }
}

impl<K: Key, const N: usize> Key for [K; N] {
    #[inline]
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        K::slice_to_hash(self, hasher)
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
