//! Records in a block of bytes: where each ends, and the hash of its key, straight from the bytes.
//!
//! A reader takes records from a place of the block on, as far as it understands them, and says where it stopped. It
//! understands what is frequent; what is rare or malformed is left to others, who also say what is wrong with it: the
//! readers of the command, in Python, that take records one by one. Their answers are the specification: a record that
//! is taken here has the key that they would give it.

use std::convert::Infallible;
use std::ops::Range;

use memchr::memchr;

use lately::key::KeyHasher;
use lately::parallel::share;

mod csv;
mod json;
mod lines;
mod text;

pub use csv::Csv;
pub use json::Json;
#[allow(unused_imports, reason = "a bound that the tests use")]
pub use json::MOST_FIELDS;
pub use lines::Lines;
pub use text::Encoding;

/// What a reader finds.
pub trait Reader {
    /// Takes records from `start` on, and adds them to `found`. Gives the place where it stopped: the end of the block,
    /// or where a record begins that is not taken.
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, found: &mut Found) -> usize;

    /// Whether threads may share these bytes, which begin with a record: none spans lines, and it takes long enough.
    fn is_shared(&self, bytes: &[u8]) -> bool;
}

/// The same by several threads, where each may begin at a line. A few bytes are not shared.
pub fn read_shared(
    reader: &(dyn Reader + Send + Sync),
    block: &[u8],
    start: usize,
    hasher: &KeyHasher,
    threads: usize,
) -> (Found, usize) {
    let rest = &block[start..];
    let threads = threads.min(rest.len() / WORTH);
    let mut all = Found::default();
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
            (std::mem::replace(&mut begin, end)..end, Found::default(), 0)
        })
        .collect();
    let read = |(part, found, stop): &mut (Range<usize>, Found, usize)| {
        *stop = reader.read(&block[..part.end], part.start, hasher, found);
        Ok::<_, Infallible>(())
    };
    let Ok(()) = share(threads, parts.iter_mut(), || (), |(), part| read(part));
    let mut at = start;
    for (part, found, stop) in parts {
        all.append(found);
        at = stop;
        if stop < part.end {
            break;
        }
    }
    (all, at)
}

/// Bytes that take a thread several times as long as it takes to start it, some 30 µs.
const WORTH: usize = 1 << 16;

/// Records that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where each ends.
    pub ends: Vec<usize>,
    /// The hash of the key of each.
    pub hashes: Vec<u64>,
    /// Where the time of each stands, if one is asked for: a number or text, in JSON with its quotes.
    pub times: Vec<Range<usize>>,
    /// Which fields of the key some record had, by their bits.
    pub met: u64,
}

impl Found {
    fn append(&mut self, mut next: Self) {
        self.ends.append(&mut next.ends);
        self.hashes.append(&mut next.hashes);
        self.times.append(&mut next.times);
        self.met |= next.met;
    }
}

/// Chains the hashes of the fields of a key; a key of one field is that field.
#[derive(Clone, Copy)]
struct Row {
    start: Option<u64>,
}

impl Row {
    fn new(hasher: &KeyHasher, width: usize) -> Self {
        Self { start: (width != 1).then(|| hasher.row_start(width)) }
    }

    /// The hash of a key, or nothing if that of a field cannot be told.
    #[inline(always)]
    fn hash(self, hasher: &KeyHasher, mut fields: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        match self.start {
            None => fields.next()?,
            Some(start) => fields.try_fold(start, |chain, field| Some(hasher.row_next(chain, field?))),
        }
    }
}
