//! Reads records from a block of bytes: where each ends, and the hash of its key.
//!
//! A reader reads frequent forms of records. At a rare or malformed record it stops, and returns the place. The command
//! then reads that one record with Python's `csv` or `json`, which also report what is wrong with it. They are the
//! specification: a record that is read here has the same key there.

use std::convert::Infallible;
use std::ops::Range;

use memchr::memchr;

use lately::key::KeyHasher;
use lately::parallel::share;

mod csv;
mod json;
mod lines;
mod text;

pub use csv::CsvReader;
pub use json::JsonReader;
#[allow(unused_imports, reason = "the tests use this limit")]
pub use json::MAX_FIELDS;
pub use lines::LineReader;
pub use text::Encoding;

/// Reads the records of one format.
pub trait Reader {
    /// Reads records from `start` on, and adds them to `records`. Returns where it stopped: at the end of the block, or
    /// at the start of a record that it does not read.
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, records: &mut RecordBatch) -> usize;

    /// Returns whether several threads may read these bytes, which start with a record: no record has several lines,
    /// and reading takes long enough.
    fn is_shared(&self, bytes: &[u8]) -> bool;
}

/// Reads records with several threads, each from the start of a line. A few bytes are read by one thread.
pub fn read_shared(
    reader: &(dyn Reader + Send + Sync),
    block: &[u8],
    start: usize,
    hasher: &KeyHasher,
    threads: usize,
) -> (RecordBatch, usize) {
    let rest = &block[start..];
    let threads = threads.min(rest.len() / BYTES_PER_THREAD);
    let mut all = RecordBatch::default();
    if threads <= 1 || !reader.is_shared(rest) {
        let stop = reader.read(block, start, hasher, &mut all);
        return (all, stop);
    }
    let mut begin = start;
    let mut parts: Vec<_> = (1..=threads)
        .map(|part| {
            let near = begin.max(start + rest.len() / threads * part);
            let end = match memchr(b'\n', &block[near..]) {
                Some(newline) if part < threads => near + newline + 1,
                _ => block.len(),
            };
            (std::mem::replace(&mut begin, end)..end, RecordBatch::default(), 0)
        })
        .collect();
    let read = |(part, records, stop): &mut (Range<usize>, RecordBatch, usize)| {
        *stop = reader.read(&block[..part.end], part.start, hasher, records);
        Ok::<_, Infallible>(())
    };
    let Ok(()) = share(threads, parts.iter_mut(), || (), |(), part| read(part));
    let mut at = start;
    for (part, records, stop) in parts {
        all.append(records);
        at = stop;
        if stop < part.end {
            break;
        }
    }
    (all, at)
}

/// Least number of bytes for a thread. Reading them takes several times as long as starting the thread, some 30 µs.
const BYTES_PER_THREAD: usize = 1 << 16;

/// Consecutive records of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Where each record ends.
    pub ends: Vec<usize>,
    /// The hash of each record's key.
    pub hashes: Vec<u64>,
    /// Where the time of each record lies, if times are read: a number or text, in JSON with its quotes.
    pub times: Vec<Range<usize>>,
    /// A bit for each field of the key, set if a record has the field.
    pub fields_present: u64,
}

impl RecordBatch {
    fn append(&mut self, mut next: Self) {
        self.ends.append(&mut next.ends);
        self.hashes.append(&mut next.hashes);
        self.times.append(&mut next.times);
        self.fields_present |= next.fields_present;
    }
}

/// Combines the hashes of a key's fields. A key of one field is that field.
#[derive(Clone, Copy)]
struct RowHasher {
    start: Option<u64>,
}

impl RowHasher {
    fn new(hasher: &KeyHasher, width: usize) -> Self {
        Self { start: (width != 1).then(|| hasher.row_start(width)) }
    }

    /// Returns the hash of a key, or `None` if that of a field is unknown.
    #[inline(always)]
    fn hash(self, hasher: &KeyHasher, mut fields: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        match self.start {
            None => fields.next()?,
            Some(start) => fields.try_fold(start, |chain, field| Some(hasher.row_next(chain, field?))),
        }
    }
}
