//! Reads CSV and similar formats, as Python's `csv` does in strict mode.

use std::ops::Range;

use memchr::{memchr, memchr2_iter, memchr3_iter};

use super::text::{BlockText, Encoding, PendingTexts};
use super::{Reader, RecordBatch, RowHasher};
use lately::key::KeyHasher;

/// Reads records whose fields are separated by a delimiter.
#[derive(Clone, Debug)]
pub struct CsvReader {
    /// The byte between fields: ASCII, and neither a quote nor the end of a line.
    pub delimiter: u8,
    /// Whether double quotes may enclose fields.
    pub quotes: bool,
    /// The number of fields of a record.
    pub width: usize,
    /// The fields of the key, in order.
    pub key: Vec<usize>,
    /// The field of the time.
    pub time: Option<usize>,
    /// Whether lines that start with `#` are comments.
    pub comments: bool,
    /// How bytes are decoded as text.
    pub encoding: Encoding,
    /// The longest record that is read.
    pub longest: usize,
}

/// A field of the present record.
#[derive(Clone, Default)]
struct CsvField {
    range: Range<usize>,
    quoted: bool,
    /// Whether the field contains doubled quotes.
    doubled: bool,
}

impl Reader for CsvReader {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, records: &mut RecordBatch) -> usize {
        let (rest, mut pending) = (&block[start..], PendingTexts::new());
        let (all, some) = (memchr3_iter(self.delimiter, b'\n', b'"', rest), memchr2_iter(self.delimiter, b'\n', rest));
        let stop = match self.quotes {
            true => self.read_records(block, start, all, hasher, &mut pending, records),
            false => self.read_records(block, start, some, hasher, &mut pending, records),
        };
        pending.flush(hasher, &mut records.hashes);
        stop
    }

    fn is_shared(&self, bytes: &[u8]) -> bool {
        !self.quotes || memchr(b'"', bytes).is_none()
    }
}

impl CsvReader {
    /// Reads records. `marks` are the positions, counted from `start`, where a field may end.
    #[inline(always)]
    fn read_records<'a>(
        &self,
        block: &'a [u8],
        start: usize,
        marks: impl Iterator<Item = usize>,
        hasher: &KeyHasher,
        pending: &mut PendingTexts<'a>,
        records: &mut RecordBatch,
    ) -> usize {
        let mut marks = marks.map(|mark| start + mark);
        let mut text = BlockText::new(block, &self.encoding);
        let row = RowHasher::new(hasher, self.key.len());
        let mut fields = vec![CsvField::default(); self.width];
        let mut scratch = Vec::new();
        let returns = |from: usize| memchr(b'\r', &block[from..]).map_or(usize::MAX, |position| from + position);
        let mut next_return = returns(start);
        let mut record = start;
        while record < block.len() {
            let blank = matches!(block[record], b'\n' | b'\r');
            if blank || self.comments && block[record] == b'#' {
                return record;
            }
            let Some(end) = self.fields(block, record, &mut marks, &mut fields) else { return record };
            if next_return < end {
                let stray = |field: &CsvField| !field.quoted && memchr(b'\r', &block[field.range.clone()]).is_some();
                if fields.iter().any(stray) {
                    return record;
                }
                next_return = returns(end);
            }
            if end - record > self.longest || !text.accepts(record, end) {
                return record;
            }
            if let Some(time) = self.time {
                let CsvField { range, doubled, .. } = &fields[time];
                if *doubled || !block[range.clone()].is_ascii() {
                    return record;
                }
                records.times.push(range.clone());
            }
            match self.key[..] {
                [field] if !fields[field].doubled => {
                    let CsvField { range, .. } = &fields[field];
                    pending.push(&text, hasher, &block[range.clone()], range.end, &mut records.hashes);
                }
                _ => {
                    pending.flush(hasher, &mut records.hashes);
                    let parts = self.key.iter().map(|&field| {
                        let CsvField { range, doubled, .. } = &fields[field];
                        let bytes = match doubled {
                            true => unescape_quotes(&block[range.clone()], &mut scratch),
                            false => &block[range.clone()],
                        };
                        Some(text.hash(hasher, bytes, range.end))
                    });
                    let Some(hash) = row.hash(hasher, parts) else { return record };
                    records.hashes.push(hash);
                }
            }
            records.ends.push(end);
            record = end;
        }
        record
    }

    /// Reads the fields of a record, and returns where it ends. `None` if the record is not read here.
    #[inline(always)]
    fn fields(
        &self,
        block: &[u8],
        record: usize,
        marks: &mut impl Iterator<Item = usize>,
        fields: &mut [CsvField],
    ) -> Option<usize> {
        let (mut begin, mut count) = (record, 0);
        loop {
            let field = fields.get_mut(count)?;
            let mut mark = marks.next().unwrap_or(block.len());
            *field = CsvField { range: begin..mark, ..CsvField::default() };
            if self.quotes && mark == begin && block.get(mark) == Some(&b'"') {
                let closing = closing(block, mark, marks, &mut field.doubled)?;
                (field.range, field.quoted) = (begin + 1..closing, true);
                mark = marks.next().unwrap_or(block.len());
                // After the closing quote the field must end.
                if mark != closing + 1
                    && !(mark == closing + 2 && block[mark - 1] == b'\r' && block.get(mark) == Some(&b'\n'))
                {
                    return None;
                }
            } else {
                // Quotes inside an unquoted field are part of its text.
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

/// Returns the position of the quote that closes the field whose opening quote lies at `open`.
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

/// Returns a field with one quote in place of each doubled quote.
fn unescape_quotes<'a>(field: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    let mut rest = field;
    while let Some(quote) = memchr(b'"', rest) {
        scratch.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 2..];
    }
    scratch.extend_from_slice(rest);
    scratch
}
