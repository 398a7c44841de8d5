//! Text of an encoding, as a key.

use crate::key::KeyHasher;

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
        match self.encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 if end <= self.valid => hasher.text(field),
            Encoding::Ascii => hasher.text(field),
            _ => self.hash_rarer(hasher, field),
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
