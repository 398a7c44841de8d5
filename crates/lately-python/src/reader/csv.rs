//! CSV and its kin, as Python's `csv` reads them in strict mode.

use std::ops::Range;

use memchr::{memchr, memchr2_iter, memchr3_iter};

use super::text::{Encoding, Text, Waiting};
use super::{Found, Reader, Row};
use lately::key::KeyHasher;

/// Records of fields.
#[derive(Clone, Debug)]
pub struct Csv {
    /// What stands between fields: ASCII, and neither a quote nor the end of a line.
    pub delimiter: u8,
    /// Whether double quotes enclose fields.
    pub quotes: bool,
    /// Fields of a record.
    pub width: usize,
    /// Which of them make the key, in order.
    pub key: Vec<usize>,
    /// Which is the time.
    pub time: Option<usize>,
    /// Whether lines that begin with `#` are comments.
    pub comments: bool,
    /// How bytes are text.
    pub encoding: Encoding,
    /// Longer records are left to others.
    pub longest: usize,
}

#[derive(Clone, Default)]
struct Field {
    range: Range<usize>,
    quoted: bool,
    /// Whether quotes within stand twice.
    doubled: bool,
}

impl Reader for Csv {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, found: &mut Found) -> usize {
        let (rest, mut waiting) = (&block[start..], Waiting::new());
        let (all, some) = (memchr3_iter(self.delimiter, b'\n', b'"', rest), memchr2_iter(self.delimiter, b'\n', rest));
        let stop = match self.quotes {
            true => self.take(block, start, all, hasher, &mut waiting, found),
            false => self.take(block, start, some, hasher, &mut waiting, found),
        };
        waiting.finish(hasher, &mut found.hashes);
        stop
    }

    fn is_shared(&self, bytes: &[u8]) -> bool {
        !self.quotes || memchr(b'"', bytes).is_none()
    }
}

impl Csv {
    /// `marks` are the places, from `start` on, where a field may end.
    #[inline(always)]
    fn take<'a>(
        &self,
        block: &'a [u8],
        start: usize,
        marks: impl Iterator<Item = usize>,
        hasher: &KeyHasher,
        waiting: &mut Waiting<'a>,
        found: &mut Found,
    ) -> usize {
        let mut marks = marks.map(|mark| start + mark);
        let mut text = Text::new(block, self.encoding);
        let row = Row::new(hasher, self.key.len());
        let mut fields = vec![Field::default(); self.width];
        let mut scratch = Vec::new();
        let returns = |from: usize| memchr(b'\r', &block[from..]).map_or(usize::MAX, |place| from + place);
        let mut next_return = returns(start);
        let mut record = start;
        while record < block.len() {
            let blank = matches!(block[record], b'\n' | b'\r');
            if blank || self.comments && block[record] == b'#' {
                return record;
            }
            let Some(end) = self.fields(block, record, &mut marks, &mut fields) else { return record };
            if next_return < end {
                let stray = |field: &Field| !field.quoted && memchr(b'\r', &block[field.range.clone()]).is_some();
                if fields.iter().any(stray) {
                    return record;
                }
                next_return = returns(end);
            }
            if end - record > self.longest || !text.takes(record, end) {
                return record;
            }
            if let Some(time) = self.time {
                let Field { range, doubled, .. } = &fields[time];
                if *doubled || !block[range.clone()].is_ascii() {
                    return record;
                }
                found.times.push(range.clone());
            }
            match self.key[..] {
                [field] if !fields[field].doubled => {
                    let Field { range, .. } = &fields[field];
                    waiting.add(&text, hasher, &block[range.clone()], range.end, &mut found.hashes);
                }
                _ => {
                    waiting.finish(hasher, &mut found.hashes);
                    let parts = self.key.iter().map(|&field| {
                        let Field { range, doubled, .. } = &fields[field];
                        let bytes = match doubled {
                            true => undoubled(&block[range.clone()], &mut scratch),
                            false => &block[range.clone()],
                        };
                        Some(text.hash(hasher, bytes, range.end))
                    });
                    let Some(hash) = row.hash(hasher, parts) else { return record };
                    found.hashes.push(hash);
                }
            }
            found.ends.push(end);
            record = end;
        }
        record
    }

    /// Reads the fields of a record; gives where it ends, if it is one.
    #[inline(always)]
    fn fields(
        &self,
        block: &[u8],
        record: usize,
        marks: &mut impl Iterator<Item = usize>,
        fields: &mut [Field],
    ) -> Option<usize> {
        let (mut begin, mut count) = (record, 0);
        loop {
            let field = fields.get_mut(count)?;
            let mut mark = marks.next().unwrap_or(block.len());
            *field = Field { range: begin..mark, ..Field::default() };
            if self.quotes && mark == begin && block.get(mark) == Some(&b'"') {
                let closing = closing(block, mark, marks, &mut field.doubled)?;
                (field.range, field.quoted) = (begin + 1..closing, true);
                mark = marks.next().unwrap_or(block.len());
                // Behind the closing quote the field ends, or it is none.
                if mark != closing + 1
                    && !(mark == closing + 2 && block[mark - 1] == b'\r' && block.get(mark) == Some(&b'\n'))
                {
                    return None;
                }
            } else {
                // Quotes within a field mean nothing.
                while self.quotes && block.get(mark) == Some(&b'"') {
                    mark = marks.next().unwrap_or(block.len());
                }
                field.range.end = mark;
            }
            count += 1;
            begin = mark + 1;
            match block.get(mark) {
                Some(&byte) if byte == self.delimiter => {}
                Some(b'"') => return None,
                ended => {
                    if ended.is_some()
                        && !field.quoted
                        && field.range.end > field.range.start
                        && block[mark - 1] == b'\r'
                    {
                        field.range.end -= 1;
                    }
                    return (count == self.width).then_some(begin.min(block.len()));
                }
            }
        }
    }
}

/// The place of the quote that closes the field whose quote opens it at `open`.
fn closing(block: &[u8], open: usize, marks: &mut impl Iterator<Item = usize>, doubled: &mut bool) -> Option<usize> {
    debug_assert_eq!(block[open], b'"');
    loop {
        let quote = marks.find(|&mark| block[mark] == b'"')?;
        if block.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        *doubled = true;
        marks.next();
    }
}

/// A field with one quote for each two.
fn undoubled<'a>(field: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    let mut rest = field;
    while let Some(quote) = memchr(b'"', rest) {
        scratch.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 2..];
    }
    scratch.extend_from_slice(rest);
    scratch
}
