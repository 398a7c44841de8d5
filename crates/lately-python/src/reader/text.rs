//! Decodes text of an encoding, and hashes it as keys.

use lately::key::{KeyHasher, TOGETHER};

/// How bytes are decoded as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8. A key that is not valid is a key of bytes.
    Utf8,
    /// UTF-8. A record that is not valid is malformed.
    StrictUtf8,
    /// Another encoding that extends ASCII: the letter of each byte. `None` for a byte that is not a letter by itself,
    /// whose records are not read here.
    Bytes(Box<[Option<char>; 256]>),
}

/// Number of bytes that are validated at a time, so that a reader that stops early does not validate the whole block.
const VALIDATED_AHEAD: usize = 1 << 14;

/// The text of a block, validated as far as records were read.
pub struct BlockText<'a> {
    block: &'a [u8],
    encoding: &'a Encoding,
    /// The bytes before this position are valid UTF-8, back to the last invalid byte.
    valid: usize,
}

impl<'a> BlockText<'a> {
    /// Creates the text of a block. Nothing is validated yet.
    pub fn new(block: &'a [u8], encoding: &'a Encoding) -> Self {
        Self { block, encoding, valid: 0 }
    }

    /// Returns whether a record is text that is read here. Records are passed in order.
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
            Encoding::Bytes(letters) => self.block[start..end].iter().all(|&byte| letters[byte as usize].is_some()),
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

    /// Returns whether the bytes of a field that ends at `end` are its text in UTF-8.
    #[inline(always)]
    fn is_utf8(&self, field: &[u8], end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 => end <= self.valid,
            Encoding::Bytes(_) => field.is_ascii(),
        }
    }

    /// Returns the hash of a field that must be decoded, or is a key of bytes.
    #[cold]
    fn hash_decoded(&self, hasher: &KeyHasher, field: &[u8]) -> u64 {
        match (self.encoding, std::str::from_utf8(field)) {
            (Encoding::Bytes(letters), _) => {
                hasher.text(field.iter().filter_map(|&byte| letters[byte as usize]).collect::<String>())
            }
            (_, Ok(text)) => hasher.text(text),
            (_, Err(_)) => hasher.bytes(field),
        }
    }
}

/// Keys that are hashed together. With a secret, that is faster than single hashes.
pub struct PendingTexts<'a> {
    texts: [&'a [u8]; TOGETHER],
    count: usize,
}

impl<'a> PendingTexts<'a> {
    /// Creates an empty group.
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
