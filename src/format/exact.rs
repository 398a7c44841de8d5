//! The file format of an exact window: kind 15. All numbers are little-endian.
//!
//! The header is that of every filter. The parameters are 16 words:
//!
//! | word | what |
//! |---|---|
//! | 0 | 0: insertions, 1: time |
//! | 1 | window: insertions, or nanoseconds |
//! | 2 | lateness in nanoseconds, or zero |
//! | 3 | zero |
//! | 4 | keys so far |
//! | 5, 6 | 1 and the latest moment, in nanoseconds since the epoch (time), or zeros |
//! | 7 | how far ahead of the wall clock a key may lie: 0 the default, else nanoseconds + 1, or 2^64 - 1 without a limit |
//! | 8 | if a key came without a time of its own, the [time of the filter](super) as in its first word, else 0 |
//! | 9 | 1 if each missing key is its own, else 0 |
//! | 10, 11 | the other two words of the time of the filter, or zeros |
//!
//! The cells are two words for each key of the window, the oldest first: the hash, and when the key last counted as a
//! number of keys ago or as a moment in nanoseconds since the epoch. So equal windows have equal bytes, however their
//! tables lie in memory.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::SaveError;
use super::preamble::fill;
use crate::Error;
use crate::clock::{MAX_INSERTED, Window};
use crate::family::exact::{Entry, Exact, Record};
use crate::key::Seed;
use crate::memory::fallible;

const MAGIC: [u8; 8] = *b"\x89LAT\r\n\x1a\n";
const VERSION: u16 = 1;
/// The kind of an exact window.
const KIND: u16 = 15;
const HEADER: usize = 64;
const WORDS: usize = 16;
/// Number of bytes before the cells.
const BEFORE: usize = HEADER + 8 * WORDS;
/// Number of keys read at a time, so that memory follows the bytes there are, not the number in the header.
const KEYS_AT_ONCE: u64 = 1 << 16;

/// An exact window with the settings that its owner stores beside it.
#[derive(Clone)]
pub struct Saved {
    /// The window.
    pub exact: Exact,
    /// Whether each missing key is distinct.
    pub distinct: bool,
    /// The seed of the key hashes.
    pub seed: Seed,
}

/// Returns whether bytes begin with the header of an exact window.
pub fn is_exact(bytes: &[u8]) -> bool {
    bytes.len() >= 12 && bytes[..8] == MAGIC && bytes[10..12] == KIND.to_le_bytes()
}

/// The saved form of a window, which is written in pieces: memory is allocated for its keys once.
pub struct Written {
    head: [u8; BEFORE],
    entries: Vec<Entry>,
    /// Whether the seed is a secret, so that only the owner of a file may read it.
    secret: bool,
}

impl Saved {
    /// Returns the saved form. An error if there is not enough memory for it.
    pub fn written(&self) -> Result<Written, Error> {
        Written::of(&self.exact, self.distinct, self.seed)
    }
}

impl Written {
    /// Reads a window. An error if there is not enough memory for its keys.
    pub fn of(exact: &Exact, distinct: bool, seed: Seed) -> Result<Self, Error> {
        let record = exact.to_record()?;
        let [unit, window, lateness] = match record.window {
            Window::Count { insertions } => [0, insertions, 0],
            Window::Time { span, lateness, .. } => [1, span, lateness],
        };
        let max_ahead = record.window.write_max_ahead(exact.clock().max_ahead());
        let [by_system, boot, offset] = record.time;
        let latest = [record.latest.is_some().into(), record.latest.unwrap_or(0) as u64];
        let flags = [max_ahead, by_system, distinct.into(), boot, offset];
        let mut parameters = [0; WORDS];
        let all = [unit, window, lateness, 0, record.inserted].into_iter().chain(latest).chain(flags);
        parameters.iter_mut().zip(all).for_each(|(word, value)| *word = value);

        let mut written = Self { head: [0; BEFORE], entries: record.entries, secret: matches!(seed, Seed::Secret(_)) };
        let mut cells = Xxh3::new();
        written.pieces(|piece| {
            cells.update(piece);
            Ok::<_, Error>(())
        })?;
        let [first, second] = seed.words();
        let sums = [first, 8 * WORDS as u64, 16 * written.entries.len() as u64, cells.digest(), second];
        let mut head: Vec<u8> = MAGIC.to_vec();
        head.extend([VERSION, KIND, seed.scheme(), 0].into_iter().flat_map(u16::to_le_bytes));
        head.extend(sums.into_iter().flat_map(u64::to_le_bytes));
        let parameters: Vec<u8> = parameters.into_iter().flat_map(u64::to_le_bytes).collect();
        head.extend(xxh3_64(&[&head[..], &parameters[..]].concat()).to_le_bytes());
        head.extend(parameters);
        written.head.copy_from_slice(&head);
        Ok(written)
    }

    /// Returns the number of bytes.
    pub fn nbytes(&self) -> usize {
        BEFORE + 16 * self.entries.len()
    }

    /// Writes the bytes.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        self.pieces(|piece| out.write_all(piece))
    }

    /// Returns the bytes. An error if there is not enough memory for them.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = fallible::with_room(self.nbytes())?;
        bytes.extend(self.head);
        self.pieces(|piece| {
            bytes.extend(piece);
            Ok::<_, Error>(())
        })?;
        Ok(bytes)
    }

    /// Calls `each` with the cells, piece by piece.
    fn pieces<E>(&self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut words = [[0; 2]; 4096];
        for entries in self.entries.chunks(words.len()) {
            words.iter_mut().zip(entries).for_each(|(word, &(hash, at))| *word = [hash.to_le(), (at as u64).to_le()]);
            each(bytemuck::cast_slice(&words[..entries.len()]))?;
        }
        Ok(())
    }
}

/// Reads a window, and not a byte beyond it.
pub fn read(source: &mut impl Read) -> Result<Saved, SaveError> {
    let mut before = [0; BEFORE];
    fill(source, &mut before)?;
    let half = |at: usize| u16::from_le_bytes([before[at], before[at + 1]]);
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| before[at + i]));
    if !is_exact(&before) {
        return Err(Error::format("not a saved exact filter").into());
    }
    if half(8) != VERSION || word(24) != 8 * WORDS as u64 {
        return Err(Error::format(format!("saved in format {}, but this version reads {VERSION}", half(8))).into());
    }
    if xxh3_64(&[&before[..56], &before[HEADER..]].concat()) != word(56) || word(32) % 16 != 0 {
        return Err(Error::format("the header or the parameters are damaged").into());
    }
    let parameters: [u64; WORDS] = std::array::from_fn(|i| word(HEADER + 8 * i));
    let mut cells: Vec<[u64; 2]> = Vec::new();
    let keys = word(32) / 16;
    while (cells.len() as u64) < keys {
        let more = (keys - cells.len() as u64).min(KEYS_AT_ONCE) as usize;
        let start = cells.len();
        fallible::resize(&mut cells, start + more)?;
        fill(source, bytemuck::cast_slice_mut(&mut cells[start..]))?;
    }
    if xxh3_64(bytemuck::cast_slice(&cells)) != word(40) {
        return Err(Error::format("the cells are damaged").into());
    }
    let seed = Seed::from_words(half(12), [word(16), word(48)]).ok_or_else(|| {
        Error::format(format!("keys were hashed by scheme {}, but this version has 1 and 2", half(12)))
    })?;
    Ok(saved(parameters, cells, seed)?)
}

fn saved(parameters: [u64; WORDS], cells: Vec<[u64; 2]>, seed: Seed) -> Result<Saved, Error> {
    let [unit, window, lateness, _, inserted, timed, latest, max_ahead, by_system, distinct, boot, offset, ..] =
        parameters;
    let window = match unit {
        0 => Window::Count { insertions: window },
        1 => Window::Time { span: window, lateness, capacity: 1 },
        _ => return Err(Error::format("the parameters are damaged")),
    };
    if inserted > MAX_INSERTED || timed > unit || unit == 0 && by_system > 0 || distinct > 1 {
        return Err(Error::format("the parameters are damaged"));
    }
    let latest = (timed == 1).then_some(latest as i64);
    let entries = cells.into_iter().map(|[hash, at]| (hash, at as i64)).collect();
    let record = Record { window, inserted, latest, time: [by_system, boot, offset], entries };
    let max_ahead = window.read_max_ahead(max_ahead);
    let exact = Exact::from_record(&record).map_err(|error| match error {
        Error::Memory { .. } => error,
        error => Error::format(error.to_string()),
    })?;
    Ok(Saved { exact: exact.with_max_ahead(max_ahead), distinct: distinct == 1, seed })
}

/// Writes the saved form to a file, which is replaced in one step when all of it is on disk.
#[cfg(feature = "file")]
pub fn save(written: &Written, path: &std::path::Path) -> Result<(), SaveError> {
    use super::replace::{Purpose, file};

    Ok(file(path, written.secret, Purpose::Save, |file| written.write(file))?)
}
