//! Text of an encoding, as a key.

use lately::key::{KeyHasher, TOGETHER};

/// How bytes are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8; what is not valid is a key of bytes.
    Utf8,
    /// UTF-8; a record that is not valid is malformed.
    StrictUtf8,
    /// A letter for each byte.
    Latin1,
    /// One of which only the printable letters of ASCII are known here.
    Ascii,
}

/// Bytes looked at at a time: a reader that stops soon has not looked at the whole block.
const AHEAD: usize = 1 << 14;

/// The text of a block, as far as it has been looked at.
pub struct Text<'a> {
    block: &'a [u8],
    encoding: Encoding,
    /// What lies before this, from the last place on that was not valid, is valid UTF-8.
    valid: usize,
}

impl<'a> Text<'a> {
    pub fn new(block: &'a [u8], encoding: Encoding) -> Self {
        Self { block, encoding, valid: 0 }
    }

    /// Whether a record, or a line, is text that can be read here. It follows those asked for before.
    #[inline(always)]
    pub fn takes(&mut self, start: usize, end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 if end <= self.valid => true,
            _ => self.looks(start, end),
        }
    }

    fn looks(&mut self, start: usize, end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 => {
                self.look(start, end);
                true
            }
            Encoding::StrictUtf8 => self.look(start, end),
            Encoding::Latin1 => true,
            Encoding::Ascii => {
                self.block[start..end].iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n'))
            }
        }
    }

    /// Whether a part of the block is valid UTF-8.
    fn look(&mut self, start: usize, end: usize) -> bool {
        let from = self.valid.max(start);
        let to = end.max(from + AHEAD).min(self.block.len());
        self.valid = match std::str::from_utf8(&self.block[from..to]) {
            Ok(_) => to,
            Err(error) => from + error.valid_up_to(),
        };
        end <= self.valid
    }

    /// The hash of a field that ends there, or of one made of it without the quotes in it. It is part of what `takes`
    /// was asked for last.
    #[inline(always)]
    pub fn hash(&self, hasher: &KeyHasher, field: &[u8], end: usize) -> u64 {
        if self.is_itself(end) { hasher.text(field) } else { self.hash_rarer(hasher, field) }
    }

    /// Whether the bytes of a field that ends there are the text.
    #[inline(always)]
    fn is_itself(&self, end: usize) -> bool {
        match self.encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 => end <= self.valid,
            Encoding::Ascii => true,
            Encoding::Latin1 => false,
        }
    }

    #[cold]
    fn hash_rarer(&self, hasher: &KeyHasher, field: &[u8]) -> u64 {
        match (self.encoding, std::str::from_utf8(field)) {
            (Encoding::Latin1, _) => hasher.text(field.iter().map(|&byte| char::from(byte)).collect::<String>()),
            (_, Ok(text)) => hasher.text(text),
            (_, Err(_)) => hasher.bytes(field),
        }
    }
}

/// Keys whose hashes are made together: with a secret that is faster than one by one.
pub struct Waiting<'a> {
    texts: [&'a [u8]; TOGETHER],
    count: usize,
}

impl<'a> Waiting<'a> {
    pub fn new() -> Self {
        Self { texts: [[].as_slice(); TOGETHER], count: 0 }
    }

    /// Adds the hash of a key that is a field of the block, now or when [`finish`](Self::finish) is called.
    #[inline(always)]
    pub fn add(&mut self, text: &Text<'_>, hasher: &KeyHasher, field: &'a [u8], end: usize, hashes: &mut Vec<u64>) {
        if !text.is_itself(end) {
            self.finish(hasher, hashes);
            return hashes.push(text.hash(hasher, field, end));
        }
        self.texts[self.count] = field;
        self.count += 1;
        if self.count == TOGETHER {
            self.finish(hasher, hashes);
        }
    }

    /// Adds the hashes of those that wait.
    #[inline(always)]
    pub fn finish(&mut self, hasher: &KeyHasher, hashes: &mut Vec<u64>) {
        if self.count > 0 {
            self.make(hasher, hashes);
        }
    }

    #[inline(never)]
    fn make(&mut self, hasher: &KeyHasher, hashes: &mut Vec<u64>) {
        let first = hashes.len();
        hashes.resize(first + self.count, 0);
        hasher.texts(&self.texts[..self.count], &mut hashes[first..]);
        self.count = 0;
    }
}
