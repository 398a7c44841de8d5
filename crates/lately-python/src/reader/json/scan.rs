//! The grammar of JSON, over the bytes of a line of valid text. Nothing is given where it is not kept, and in a few
//! rare places more: Python's reader takes NaN, and has limits to digits and depth.

use std::ops::Range;

/// A single value, or that it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub kind: Kind,
    /// Where it stands in the line; of text what is between the quotes.
    pub range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Value {
    pub fn nested() -> Self {
        Self { kind: Kind::Nested, range: 0..0 }
    }
}

/// Deeper values are left to others; Python's limit is some hundreds.
const DEEPEST: usize = 60;
/// Longer numbers, too: Python takes no more than 4,300 digits, or fewer if it is told so.
const MOST_DIGITS: usize = 600;

/// A place in a line.
pub struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    pub fn at_end(&self) -> bool {
        self.at == self.line.len()
    }

    #[inline(always)]
    fn next(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Passes over white space.
    #[inline(always)]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.next() {
            self.at += 1;
        }
    }

    /// Passes over a byte, if it is the next.
    #[inline(always)]
    pub fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes over a byte that has to be the next.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Whether what is within a value at this depth may be read.
    pub fn deeper(&self, depth: usize) -> Option<()> {
        (depth < DEEPEST).then_some(())
    }

    /// A name, whose opening quote is behind; nothing if it is written with escapes.
    #[inline(always)]
    pub fn name(&mut self) -> Option<&'a [u8]> {
        match self.text()? {
            (range, false) => Some(&self.line[range]),
            _ => None,
        }
    }

    /// Text, whose opening quote is behind: where it stands, and whether it has escapes.
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

    /// Reads a value that begins here, of an object or array at this depth.
    #[inline(always)]
    pub fn value(&mut self, depth: usize) -> Option<Value> {
        let start = self.at;
        let kind = match self.next()? {
            b'"' => {
                self.at += 1;
                let (range, escaped) = self.text()?;
                return Some(Value { kind: Kind::Text { escaped }, range });
            }
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word(b"true", Kind::True)?,
            b'f' => self.word(b"false", Kind::False)?,
            b'n' => self.word(b"null", Kind::Null)?,
            b'{' | b'[' => {
                self.nested(depth)?;
                Kind::Nested
            }
            _ => return None,
        };
        Some(Value { kind, range: start..self.at })
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<Kind> {
        self.line[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(kind)
    }

    fn number(&mut self) -> Option<Kind> {
        let start = self.at;
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        let mut kind = Kind::Integer;
        if self.takes(b'.') {
            self.digits()?;
            kind = Kind::Float;
        }
        if let Some(b'e' | b'E') = self.next() {
            self.at += 1;
            let _ = self.takes(b'+') || self.takes(b'-');
            self.digits()?;
            kind = Kind::Float;
        }
        (self.at - start <= MOST_DIGITS).then_some(kind)
    }

    /// One digit or more.
    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.next() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes over an object or array.
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

/// How many bytes go before the first that means something in text: a quote, a backslash or a control character.
#[inline(always)]
fn plain(text: &[u8]) -> usize {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // The high bit of a byte is set, of the lowest one rightly, where that of `word` is less than `least`.
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

/// The number that four hexadecimal digits spell.
fn code(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
}

/// Text that is written with escapes; nothing if one is half a surrogate pair. The escapes are sound.
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
