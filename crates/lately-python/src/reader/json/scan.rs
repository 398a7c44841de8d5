//! Parses JSON in the bytes of a line of valid text. Functions return `None` for text that is not JSON. They are
//! stricter than Python's parser, which accepts NaN and more digits and depth.

use std::ops::Range;

/// A value, or a nested one, whose content is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonValue {
    pub kind: JsonKind,
    /// Where the value lies in the line; for text, without the quotes.
    pub range: Range<usize>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Text {
        escaped: bool,
    },
    Integer,
    Float,
    True,
    False,
    Null,
    /// An object or an array.
    Nested,
}

impl JsonValue {
    /// Returns the value for an object or an array.
    pub fn nested() -> Self {
        Self { kind: JsonKind::Nested, range: 0..0 }
    }
}

/// The greatest depth of values that is read. Python's limit is some hundreds.
const MAX_DEPTH: usize = 60;
/// The most digits of a number that is read. Python's limit is 4,300, and can be set lower.
const MAX_DIGITS: usize = 600;

/// A position in a line.
pub struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Creates the position at the start of a line.
    pub fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// Returns whether the position is at the end of the line.
    pub fn at_end(&self) -> bool {
        self.at == self.line.len()
    }

    #[inline(always)]
    fn next(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Skips white space.
    #[inline(always)]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.next() {
            self.at += 1;
        }
    }

    /// Skips a byte if it is the next, and returns whether it is.
    #[inline(always)]
    pub fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips a byte that must be the next.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Checks that values inside a value of this depth are read.
    pub fn deeper(&self, depth: usize) -> Option<()> {
        (depth < MAX_DEPTH).then_some(())
    }

    /// Reads a name after its opening quote. `None` if it has escapes.
    #[inline(always)]
    pub fn name(&mut self) -> Option<&'a [u8]> {
        match self.text()? {
            (range, false) => Some(&self.line[range]),
            _ => None,
        }
    }

    /// Reads text after its opening quote: where it lies, and whether it has escapes.
    #[inline(always)]
    fn text(&mut self) -> Option<(Range<usize>, bool)> {
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain(&self.line[self.at..]);
            match self.next()? {
                b'"' => {
                    self.at += 1;
                    return Some((start..self.at - 1, escaped));
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return None, // a control character
            }
        }
    }

    /// Skips an escape.
    fn escape(&mut self) -> Option<()> {
        match self.line.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                code(self.line.get(self.at + 2..self.at + 6)?)?;
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads the value at this position, in an object or array of this depth.
    #[inline(always)]
    pub fn value(&mut self, depth: usize) -> Option<JsonValue> {
        let start = self.at;
        let kind = match self.next()? {
            b'"' => {
                self.at += 1;
                let (range, escaped) = self.text()?;
                return Some(JsonValue { kind: JsonKind::Text { escaped }, range });
            }
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word(b"true", JsonKind::True)?,
            b'f' => self.word(b"false", JsonKind::False)?,
            b'n' => self.word(b"null", JsonKind::Null)?,
            b'{' | b'[' => {
                self.nested(depth)?;
                JsonKind::Nested
            }
            _ => return None,
        };
        Some(JsonValue { kind, range: start..self.at })
    }

    /// Skips a word.
    fn word(&mut self, word: &[u8], kind: JsonKind) -> Option<JsonKind> {
        self.line[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(kind)
    }

    /// Skips a number.
    fn number(&mut self) -> Option<JsonKind> {
        let start = self.at;
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        let mut kind = JsonKind::Integer;
        if self.takes(b'.') {
            self.digits()?;
            kind = JsonKind::Float;
        }
        if let Some(b'e' | b'E') = self.next() {
            self.at += 1;
            let _ = self.takes(b'+') || self.takes(b'-');
            self.digits()?;
            kind = JsonKind::Float;
        }
        (self.at - start <= MAX_DIGITS).then_some(kind)
    }

    /// Skips digits, at least one.
    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.next() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Skips an object or array.
    #[inline(never)]
    fn nested(&mut self, depth: usize) -> Option<()> {
        self.deeper(depth)?;
        let (named, close) = if self.takes(b'{') { (true, b'}') } else { self.expect(b'[').map(|()| (false, b']'))? };
        self.space();
        if self.takes(close) {
            return Some(());
        }
        loop {
            if named {
                self.expect(b'"')?;
                self.text()?;
                self.space();
                self.expect(b':')?;
                self.space();
            }
            self.value(depth + 1)?;
            self.space();
            if self.takes(close) {
                return Some(());
            }
            self.expect(b',')?;
            self.space();
        }
    }
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline(always)]
fn plain(text: &[u8]) -> usize {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // Sets the high bit of each byte of `word` that is less than `least`. Above the lowest such byte, bits may be
    // wrong.
    let less = |word: u64, least: u8| word.wrapping_sub(each(least)) & !word & each(0x80);
    let means = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let (words, _) = text.as_chunks::<8>();
    for (at, word) in (0..).step_by(8).zip(words) {
        let word = u64::from_le_bytes(*word);
        let found = less(word, b' ') | less(word ^ each(b'"'), 1) | less(word ^ each(b'\\'), 1);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
    }
    let rest = words.len() * 8;
    rest + text[rest..].iter().position(|&byte| means(byte)).unwrap_or(text.len() - rest)
}

/// Returns the number of four hexadecimal digits.
fn code(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
}

/// Decodes text with escapes, which were checked. `None` if an escape is half of a surrogate pair.
pub fn unescaped<'a>(text: &[u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    scratch.clear();
    let mut rest = text;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        scratch.extend_from_slice(&rest[..slash]);
        let escape = *rest.get(slash + 1)?;
        rest = &rest[slash + 2..];
        scratch.push(match escape {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut letter = code(rest.get(..4)?)?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&letter) {
                    let low = code(rest.strip_prefix(b"\\u")?.get(..4)?)?;
                    letter =
                        0x10000 + ((letter - 0xd800) << 10) + low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                    rest = &rest[6..];
                }
                scratch.extend_from_slice(char::from_u32(letter)?.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => other,
        });
    }
    scratch.extend_from_slice(rest);
    Some(scratch)
}
