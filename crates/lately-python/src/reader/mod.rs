//! Reads records from blocks of bytes: where each lies, the hash of its key, and its time.
//!
//! This is the whole grammar of the command for text, CSV, Zeek logs and JSON lines. Python only cuts files into blocks
//! of lines. A reader reads every record of a block, or states what is wrong with it.

use std::convert::Infallible;
use std::ops::Range;

use memchr::memchr;

use lately::key::KeyHasher;
use lately::parallel::share;

mod csv;
mod json;
mod lines;
mod text;
mod times;

pub use csv::CsvReader;
pub use json::JsonReader;
pub use lines::{LineReader, Words};
pub use text::Encoding;

/// The options of a reader of records that all formats have.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    pub encoding: Encoding,
    /// Whether keys are compared in lower case.
    pub ignore_case: bool,
    /// The most bytes of a record.
    pub longest: usize,
    /// How many decimal places a number of a time has before it counts nanoseconds. `None`: the caller reads all times.
    pub places: Option<u32>,
    /// Whether malformed records are skipped. Otherwise the first one ends the batch.
    pub skip_malformed: bool,
}

/// Reads the records of one format.
pub trait Reader: Send + Sync {
    /// Reads the records of `block` from `start` on. It stops before a record that may continue in the next block,
    /// unless this block is the `last`.
    fn read(&self, block: &[u8], start: usize, last: bool, hasher: &KeyHasher) -> RecordBatch;

    /// Returns whether several threads may read these bytes, which start with a record: no record has several lines,
    /// and reading takes long enough.
    fn is_shared(&self, bytes: &[u8]) -> bool;
}

/// Reads records with several threads, each from the start of a line. A few bytes are read by one thread.
pub fn read_shared(
    reader: &dyn Reader,
    block: &[u8],
    start: usize,
    last: bool,
    hasher: &KeyHasher,
    threads: usize,
) -> RecordBatch {
    let rest = &block[start..];
    let threads = threads.min(rest.len() / BYTES_PER_THREAD);
    if threads <= 1 || !reader.is_shared(rest) {
        return reader.read(block, start, last, hasher);
    }
    let mut begin = start;
    let mut parts: Vec<_> = (1..=threads)
        .map(|part| {
            let near = begin.max(start + rest.len() / threads * part);
            let end = match memchr(b'\n', &block[near..]) {
                Some(newline) if part < threads => near + newline + 1,
                _ => block.len(),
            };
            (std::mem::replace(&mut begin, end)..end, RecordBatch::default())
        })
        .collect();
    let read = |(part, records): &mut (Range<usize>, RecordBatch)| {
        *records = reader.read(&block[..part.end], part.start, last, hasher);
        Ok::<_, Infallible>(())
    };
    let Ok(()) = share(threads, parts.iter_mut(), || (), |(), part| read(part));
    let mut all = RecordBatch { stop: start, ..RecordBatch::default() };
    for (part, records) in parts {
        all.append(records);
        if all.stop < part.end {
            break;
        }
    }
    all
}

/// Least number of bytes for a thread. Reading them takes several times as long as starting the thread, some 30 µs.
const BYTES_PER_THREAD: usize = 1 << 16;

/// The records of a block, and what was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Where each record lies.
    pub spans: Vec<Range<usize>>,
    /// The hash of each record's key.
    pub hashes: Vec<u64>,
    /// The time of each record in nanoseconds since 1970, if times are read.
    pub moments: Vec<i64>,
    /// Times that are not numbers, with the index of their record. Their moments are 0.
    pub texts: Vec<(usize, String)>,
    /// For each field of the key, whether a record has it.
    pub fields_present: Vec<bool>,
    /// The number of blank lines, which are not records.
    pub blank: usize,
    /// The number of malformed records.
    pub malformed: usize,
    /// The first malformed record: where it lies, and what is wrong.
    pub fault: Option<Fault>,
    /// Where the reader stopped: at the end of the block, at the first malformed record if these are not skipped, or at
    /// a record that may continue in the next block.
    pub stop: usize,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub position: usize,
    pub reason: String,
    /// Whether the file cannot be read further, even if malformed records are skipped.
    pub is_fatal: bool,
}

impl RecordBatch {
    fn append(&mut self, mut next: Self) {
        let count = self.spans.len();
        self.spans.append(&mut next.spans);
        self.hashes.append(&mut next.hashes);
        self.moments.append(&mut next.moments);
        self.texts.extend(next.texts.into_iter().map(|(i, text)| (count + i, text)));
        self.fields_present.resize(self.fields_present.len().max(next.fields_present.len()), false);
        self.fields_present.iter_mut().zip(next.fields_present).for_each(|(has, more)| *has |= more);
        self.blank += next.blank;
        self.malformed += next.malformed;
        self.fault = self.fault.take().or(next.fault);
        self.stop = next.stop;
    }

    /// Counts a malformed record. Returns whether to read on.
    fn reject(&mut self, position: usize, reason: String, options: &RecordOptions) -> bool {
        self.malformed += 1;
        self.fault.get_or_insert(Fault { position, reason, is_fatal: false });
        options.skip_malformed
    }

    /// Adds the time of a record.
    fn push_time(&mut self, text: &[u8], options: &RecordOptions) {
        let moment = options.places.and_then(|places| times::nanoseconds(text, places));
        if moment.is_none() {
            self.texts.push((self.moments.len(), String::from_utf8_lossy(text).into_owned()));
        }
        self.moments.push(moment.unwrap_or(0));
    }
}

impl RecordOptions {
    fn too_long(&self) -> String {
        format!("longer than --max-record {}", self.longest)
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

    /// Returns the hash of a key.
    #[inline(always)]
    fn hash<E>(self, hasher: &KeyHasher, mut fields: impl Iterator<Item = Result<u64, E>>) -> Result<u64, E> {
        match self.start {
            None => fields.next().unwrap_or(Ok(0)),
            Some(start) => fields.try_fold(start, |chain, field| Ok(hasher.row_next(chain, field?))),
        }
    }
}
