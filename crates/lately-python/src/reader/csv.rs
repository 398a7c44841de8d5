//! Reads CSV and similar formats, by the crate `csv-core`. It is lenient; here, as in Python's strict mode, a quoted
//! field must end at its closing quote, so that a stray quote does not swallow the lines after it.

use std::ops::Range;

use csv_core::ReadRecordResult;
use memchr::memchr;

use super::lines::without_end;
use super::text::{BlockText, PendingTexts};
use super::{Fault, Reader, RecordBatch, RecordOptions, RowHasher};
use lately::key::KeyHasher;

/// Reads records whose fields are separated by a delimiter.
#[derive(Clone, Debug)]
pub struct CsvReader {
    delimiter: u8,
    quotes: bool,
    /// The number of fields of a record.
    pub width: usize,
    /// The fields of the key, in order.
    pub key: Vec<usize>,
    /// The field of the time.
    pub time: Option<usize>,
    /// The line with the names of fields, if lines that start with `#` are comments.
    pub comments: Option<Vec<u8>>,
    pub options: RecordOptions,
}

/// The record that was parsed last.
#[derive(Default)]
struct ParsedFields {
    /// The fields without quotes, one after the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
}

/// How parsing a record ended.
enum Parsed {
    /// With the record, which ends here in the block.
    Record(usize),
    /// With the block, where it may continue in the next one.
    Unfinished,
    /// With the input, inside a quoted field.
    Unclosed,
}

impl ParsedFields {
    fn field(&self, i: usize) -> &[u8] {
        &self.text[i.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[i]]
    }

    /// Parses the record at the start of `rest`. The position that it returns is within `rest`.
    fn parse(&mut self, parser: &mut csv_core::Reader, rest: &[u8], last: bool) -> Parsed {
        let (mut read, mut written) = (0, 0);
        self.count = 0;
        let (mut input, mut is_ended) = (rest, false);
        loop {
            let (result, bytes_read, bytes_written, new_ends) =
                parser.read_record(&input[read..], &mut self.text[written..], &mut self.ends[self.count..]);
            (read, written, self.count) = (read + bytes_read, written + bytes_written, self.count + new_ends);
            match result {
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len() + 1024, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len() + 16, 0),
                ReadRecordResult::Record if is_ended => return Parsed::Record(rest.len()),
                ReadRecordResult::Record => {
                    let is_pair = rest[read - 1] == b'\r' && rest.get(read) == Some(&b'\n');
                    return Parsed::Record(read + usize::from(is_pair));
                }
                _ if !last => return Parsed::Unfinished,
                // The last record may lack its end. Inside quotes, a newline does not end it.
                _ if !is_ended => (input, read, is_ended) = (b"\n", 0, true),
                _ => return Parsed::Unclosed,
            }
        }
    }

    /// Returns whether each quoted field of `raw`, which has no line end, ends at its closing quote.
    fn is_strict(&self, raw: &[u8], delimiter: u8) -> bool {
        let read_field = |mut rest: &'_ [u8], i: usize| {
            let field = self.field(i);
            let Some(quoted) = rest.strip_prefix(b"\"") else { return rest.strip_prefix(field).map(<[u8]>::len) };
            rest = quoted;
            for (part, text) in field.split(|&byte| byte == b'"').enumerate() {
                rest = if part > 0 { rest.strip_prefix(b"\"\"")? } else { rest };
                rest = rest.strip_prefix(text)?;
            }
            rest.strip_prefix(b"\"").map(<[u8]>::len)
        };
        let mut rest = raw;
        for i in 0..self.count {
            let Some(left) = read_field(rest, i) else { return false };
            rest = &rest[rest.len() - left..];
            if i + 1 < self.count {
                match rest.split_first() {
                    Some((&byte, after)) if byte == delimiter => rest = after,
                    _ => return false,
                }
            }
        }
        rest.is_empty()
    }
}

impl CsvReader {
    /// Creates a reader. `delimiter` is ASCII, and neither a quote nor the end of a line.
    pub fn new(delimiter: u8, quotes: bool, options: RecordOptions) -> Self {
        Self { delimiter, quotes, width: 0, key: vec![], time: None, comments: None, options }
    }

    /// Returns a parser before the start of a record.
    fn parser(&self) -> csv_core::Reader {
        let mut parser = csv_core::ReaderBuilder::new().delimiter(self.delimiter).quoting(self.quotes).build();
        reset(&mut parser);
        parser
    }

    /// Returns the fields of the record at `start`, and where it ends. `None` if it may continue in the next block.
    #[allow(clippy::type_complexity, reason = "fields, and where the record ends")]
    pub fn fields(&self, block: &[u8], start: usize, last: bool) -> Result<Option<(Vec<Vec<u8>>, usize)>, String> {
        let mut row = ParsedFields::default();
        match row.parse(&mut self.parser(), &block[start..], last) {
            Parsed::Unfinished if block.len() - start <= self.options.longest => Ok(None),
            Parsed::Record(len) => {
                let raw = without_end(&block[start..start + len]);
                self.check(&row, raw)?;
                Ok(Some(((0..row.count).map(|i| row.field(i).to_vec()).collect(), start + len)))
            }
            Parsed::Unfinished => Err(self.options.too_long()),
            Parsed::Unclosed => Err(UNCLOSED.to_owned()),
        }
    }

    /// Checks the quotes of a record. Returns whether the fields lie in its bytes as they are.
    fn check(&self, row: &ParsedFields, raw: &[u8]) -> Result<bool, String> {
        let is_plain = row.count > 0 && row.ends[row.count - 1] + row.count - 1 == raw.len();
        match is_plain || row.is_strict(raw, self.delimiter) {
            true => Ok(is_plain),
            false => Err("a quoted field must end at its closing quote, with a delimiter after it".to_owned()),
        }
    }

    /// Parses and checks the record at `start`. Returns where it ends, and whether its fields lie in the block as they
    /// are; or what is wrong, and where to read on. `None` if the record may continue in the next block.
    fn record(
        &self,
        parser: &mut csv_core::Reader,
        row: &mut ParsedFields,
        text: &mut BlockText<'_>,
        block: &[u8],
        start: usize,
        last: bool,
    ) -> Option<Result<(usize, bool), (String, usize)>> {
        let rest = &block[start..];
        // Only the first line is malformed: a stray quote must not drop the lines after it.
        let first_line = || memchr(b'\n', rest).map_or(block.len(), |newline| start + newline + 1);
        let wrong = |reason: String| Some(Err((reason, first_line())));
        let end = match row.parse(parser, rest, last) {
            Parsed::Record(len) => start + len,
            Parsed::Unfinished if rest.len() <= self.options.longest => return None,
            Parsed::Unfinished => return wrong(self.options.too_long()),
            Parsed::Unclosed => return wrong(UNCLOSED.to_owned()),
        };
        let is_plain = match self.check(row, without_end(&block[start..end])) {
            Ok(is_plain) => is_plain,
            Err(reason) => return wrong(reason),
        };
        if row.count != self.width {
            let stray = !self.quotes && (0..row.count).any(|i| row.field(i).starts_with(b"\""));
            let hint = if stray { "; if quotes enclose fields, add --quotes" } else { "" };
            return wrong(format!("{} fields where the header has {}{hint}", row.count, self.width));
        }
        match () {
            () if end - start > self.options.longest => Some(Err((self.options.too_long(), end))),
            () if !text.accepts(start, end) => Some(Err((self.options.encoding.not_valid(), end))),
            () => Some(Ok((end, is_plain))),
        }
    }

    /// Skips a comment. Returns what is wrong with it: the names of other fields.
    fn comment(&self, line: &[u8]) -> Option<String> {
        let names = self.comments.as_ref()?;
        (line.starts_with(b"#fields") && line != names)
            .then(|| "the fields of this header differ from the first".into())
    }
}

/// Sets a parser to the start of a record that is not the first of a file: there a byte order mark is skipped.
fn reset(parser: &mut csv_core::Reader) {
    parser.reset();
    parser.read_record(b"\n", &mut [], &mut []);
}

const UNCLOSED: &str = "the quote that begins a field is never closed";

impl Reader for CsvReader {
    fn read(&self, block: &[u8], start: usize, last: bool, hasher: &KeyHasher) -> RecordBatch {
        let mut records = RecordBatch::default();
        let (mut text, mut pending) = (BlockText::new(block, &self.options), PendingTexts::new());
        let hasher_of_rows = RowHasher::new(hasher, self.key.len());
        let (mut parser, mut row) = (self.parser(), ParsedFields::default());
        let mut at = start;
        while at < block.len() {
            if let b'\n' | b'\r' = block[at] {
                at += 1 + usize::from(block[at..].starts_with(b"\r\n"));
                records.blank += 1;
                continue;
            }
            if self.comments.is_some() && block[at] == b'#' {
                let end = memchr(b'\n', &block[at..]).map_or(block.len(), |newline| at + newline + 1);
                if let Some(reason) = self.comment(without_end(&block[at..end])) {
                    records.fault = Some(Fault { position: at, reason, is_fatal: true });
                    break;
                }
                at = end;
                continue;
            }
            let (end, is_plain) = match self.record(&mut parser, &mut row, &mut text, block, at, last) {
                Some(Ok(found)) => found,
                Some(Err((reason, next))) => {
                    if !records.reject(at, reason, &self.options) {
                        break;
                    }
                    reset(&mut parser);
                    at = next;
                    continue;
                }
                None => break,
            };
            if let Some(time) = self.time {
                records.push_time(row.field(time), &self.options);
            }
            // Each field before it in the block is followed by a delimiter.
            let place = |i: usize| -> Range<usize> { at + row.ends[i] + i - row.field(i).len()..at + row.ends[i] + i };
            match self.key[..] {
                [i] if is_plain => pending.push(&text, hasher, &block[place(i)], place(i).end, &mut records.hashes),
                _ => {
                    pending.flush(hasher, &mut records.hashes);
                    let fields = self.key.iter().map(|&i| {
                        let end = if is_plain { place(i).end } else { end };
                        Ok::<_, std::convert::Infallible>(text.hash(hasher, row.field(i), end))
                    });
                    let Ok(hash) = hasher_of_rows.hash(hasher, fields);
                    records.hashes.push(hash);
                }
            }
            records.spans.push(at..end);
            at = end;
        }
        pending.flush(hasher, &mut records.hashes);
        records.stop = at;
        records
    }

    fn is_shared(&self, bytes: &[u8]) -> bool {
        !self.quotes || memchr(b'"', bytes).is_none()
    }
}
