//! Decodes text of an encoding, and hashes it as keys.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::RecordOptions;
use lately::key::{KeyHasher, TOGETHER};

/// How bytes are decoded as text.
#[derive(Clone)]
pub enum Encoding {
    /// UTF-8. A key that is not valid is a key of bytes.
    Utf8,
    /// UTF-8. A record that is not valid is malformed.
    StrictUtf8,
    /// Another encoding that extends ASCII, by its name and its decoder. A record that it does not decode is malformed.
    Other(String, Arc<Decode>),
}

/// A function that decodes bytes, or returns `None` if they are not valid.
pub type Decode = dyn Fn(&[u8]) -> Option<String> + Send + Sync;

impl Encoding {
    /// Returns what is wrong with a record that is not valid.
    pub fn not_valid(&self) -> String {
        let name = if let Self::Other(name, _) = self { name } else { "utf-8" };
        format!("not valid {name}")
    }

    /// Returns the text of bytes, or `None` if they are not valid.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        match self {
            Self::Other(_, decode) if !bytes.is_ascii() => decode(bytes).map(Cow::Owned),
            _ => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        }
    }
}

impl Debug for Encoding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if let Self::Other(name, _) = self { name } else { "utf-8" })
    }
}

/// Number of bytes that are validated at a time, so that a reader that stops early does not validate the whole block.
const VALIDATED_AHEAD: usize = 1 << 14;

/// The text of a block, validated as far as records were read.
pub struct BlockText<'a> {
    block: &'a [u8],
    encoding: &'a Encoding,
    ignore_case: bool,
    /// The bytes before this position are valid UTF-8, back to the last invalid byte.
    valid: usize,
}

impl<'a> BlockText<'a> {
    /// Creates the text of a block. Nothing is validated yet.
    pub fn new(block: &'a [u8], options: &'a RecordOptions) -> Self {
        Self { block, encoding: &options.encoding, ignore_case: options.ignore_case, valid: 0 }
    }

    /// Returns whether a record is valid. Records are passed in order.
    #[inline(always)]
    pub fn accepts(&mut self, start: usize, end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 if end <= self.valid => true,
            _ => self.check(start, end),
        }
    }

    /// Checks a record, and validates UTF-8.
    fn check(&mut self, start: usize, end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 => {
                self.validate(start, end);
                true
            }
            Encoding::StrictUtf8 => self.validate(start, end),
            Encoding::Other(..) => self.encoding.decode(&self.block[start..end]).is_some(),
        }
    }

    /// Returns whether a part of the block is valid UTF-8.
    fn validate(&mut self, start: usize, end: usize) -> bool {
        let from = self.valid.max(start);
        let to = end.max(from + VALIDATED_AHEAD).min(self.block.len());
        self.valid = match std::str::from_utf8(&self.block[from..to]) {
            Ok(_) => to,
            Err(error) => from + error.valid_up_to(),
        };
        end <= self.valid
    }

    /// Returns the hash of a field, which may differ from the block by removed quotes. In the block it ends at `end`,
    /// and lies in the record that was accepted last.
    #[inline(always)]
    pub fn hash(&self, hasher: &KeyHasher, field: &[u8], end: usize) -> u64 {
        if self.is_utf8(field, end) { hasher.text(field) } else { self.hash_decoded(hasher, field) }
    }

    /// Returns whether the bytes of a field that ends at `end` are its key in UTF-8.
    #[inline(always)]
    fn is_utf8(&self, field: &[u8], end: usize) -> bool {
        !self.ignore_case
            && match self.encoding {
                Encoding::Utf8 | Encoding::StrictUtf8 => end <= self.valid,
                Encoding::Other(..) => field.is_ascii(),
            }
    }

    /// Returns the hash of a field that must be decoded, or is a key of bytes.
    #[cold]
    fn hash_decoded(&self, hasher: &KeyHasher, field: &[u8]) -> u64 {
        match self.encoding.decode(field) {
            Some(text) if self.ignore_case => hasher.text(text.to_lowercase()),
            Some(text) => hasher.text(text.as_bytes()),
            None if self.ignore_case => hasher.bytes(&field.to_ascii_lowercase()),
            None => hasher.bytes(field),
        }
    }
}

/// Keys that are hashed together. With a secret, that is faster than single hashes.
pub struct PendingTexts<'a> {
    texts: [&'a [u8]; TOGETHER],
    count: usize,
}

impl<'a> PendingTexts<'a> {
    /// Creates an empty group of texts.
    pub fn new() -> Self {
        Self { texts: [[].as_slice(); TOGETHER], count: 0 }
    }

    /// Adds a key that is a field of the block. Its hash is written at a later [`flush`](Self::flush) at the latest.
    #[inline(always)]
    pub fn push(
        &mut self,
        text: &BlockText<'_>,
        hasher: &KeyHasher,
        field: &'a [u8],
        end: usize,
        hashes: &mut Vec<u64>,
    ) {
        if !text.is_utf8(field, end) {
            self.flush(hasher, hashes);
            return hashes.push(text.hash(hasher, field, end));
        }
        self.texts[self.count] = field;
        self.count += 1;
        if self.count == TOGETHER {
            self.flush(hasher, hashes);
        }
    }

    /// Writes the hashes of all keys of the group.
    #[inline(always)]
    pub fn flush(&mut self, hasher: &KeyHasher, hashes: &mut Vec<u64>) {
        if self.count > 0 {
            self.hash(hasher, hashes);
        }
    }

    #[inline(never)]
    fn hash(&mut self, hasher: &KeyHasher, hashes: &mut Vec<u64>) {
        let first = hashes.len();
        hashes.resize(first + self.count, 0);
        hasher.texts(&self.texts[..self.count], &mut hashes[first..]);
        self.count = 0;
    }
}
