//! Filters as bytes of serde: their saved form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use super::{ConcurrentFilter, ExactWindow, Filter};

/// Reads bytes, or a sequence of numbers where a format such as JSON has no bytes.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the saved form of a filter, as bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

macro_rules! as_bytes {
    ($($filter:ty => |$one:ident| $bytes:expr;)*) => {$(
        /// Writes the saved form as bytes. For large filters take `save`, which needs no copy of the cells.
        impl Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $one = self;
                serializer.serialize_bytes(&$bytes)
            }
        }

        /// Reads the saved form. Rejects what `from_bytes` rejects.
        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::from_bytes(&deserializer.deserialize_byte_buf(Bytes)?).map_err(D::Error::custom)
            }
        }
    )*};
}

as_bytes! {
    Filter => |filter| filter.to_bytes();
    ExactWindow => |exact| exact.to_bytes();
    ConcurrentFilter => |filter| filter.to_bytes().map_err(S::Error::custom)?;
}
