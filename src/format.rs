//! The file format of a saved filter. All numbers are little-endian. Version 1 is:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `89 4C 41 54 0D 0A 1A 0A`: no text, `LAT`, and line ends that a transfer in text mode would damage |
//! | 8..10 | version of this format: 1 |
//! | 10..12 | kind of filter: 1 age-partitioned, 2 the same in lines, 3 guarded-epoch, 4 in lines, 5 transposed, 6 aged cuckoo, 7 timing, 8 time-limited, 9 SWAMP, 10 Bloom, 11 counting, 12 fingerprint buffer, 13 generalized, 14 stable, 15 exact window |
//! | 12..14 | scheme its keys are hashed by ([`key`](crate::key)): 1 or 2 |
//! | 14..16 | zero |
//! | 16..24 | seed; of scheme 2 the first half of the secret |
//! | 24..32 | bytes of the parameters that follow this header, a multiple of 64 |
//! | 32..40 | bytes of the cells that follow them |
//! | 40..48 | xxh3-64 of the cells |
//! | 48..56 | zero; of scheme 2 the second half of the secret, so that the file is one too |
//! | 56..64 | xxh3-64 of bytes 0..56 and the parameters |
//! | 64.. | parameters: 64-bit words, zero up to their length |
//! | .. | cells: the words of the filter, at a multiple of 64 bytes, so that a mapped file is used in place |
//!
//! The parameters of every filter begin with the fields of its clock:
//!
//! | word | what |
//! |---|---|
//! | 0 | 0: insertions, 1: time |
//! | 1 | window: insertions (of a Bloom filter the keys it is planned for), or nanoseconds |
//! | 2, 3 | lateness in nanoseconds, capacity in keys (time), or zero |
//! | 4 | keys so far: inserted, or looked up by `seen` and not inserted; of a window that counts deliveries only those inserted |
//! | 5, 6 | 1 and the latest moment seen, in nanoseconds since the epoch (time), or zeros |
//!
//! Four more words follow the parameters of the family, which are listed below:
//!
//! | word | what |
//! |---|---|
//! | 0 | how far ahead of the wall clock a key may lie: 0 a window and at least a minute, else nanoseconds + 1, or 2^64 - 1 where nothing is too far |
//! | 1 | 1 + 2 s where a key has come without a time of its own, if the wall clock was s seconds ahead of the filter's time, else 0 |
//! | 2 | a number of the start of the machine, or zero |
//! | 3 | the filter's time less the nanoseconds since that start, or zero |
//!
//! In lines with a window of time, 67 words follow if a key has come: the open generation, the keys so far when it
//! began, the moment until which it may have keys if that is later than the latest, and for each place i the moment at
//! which the last group of generations ended whose number is i modulo 64. A generation ends by time or by count
//! ([`clock`](crate::clock)); of l retained rounds of the pages half, rounded down, are as long as the window. A group
//! is of 1/62 of the retained generations, rounded up.
//!
//! Versions before these words wrote zeros there, and ignore what they contain.
//!
//! The parameters of the age-partitioned filter are k, l, slice bits, blocks, block bits and parts; those of the
//! guarded-epoch filter are r, k, segment bits, blocks, block bits and parts. Parameters that do not apply are zero. In
//! lines the parameters are k and l, or r, and then pages and lines per key; the cells are pages of 64 lines of 64
//! bytes, with lane 0 of a line in its lowest bits. Transposed, the parameters are r, k and positions; the cells are
//! numbers of r + 1 bits in sequence, where bit (-epoch) mod (r + 1) belongs to an epoch.
//!
//! The parameters of the timing filter are k, bits per timer, blocks, timers of a slice (of whole words) and equal
//! timers. A word contains as many timers as fit, from its lowest bit on. If the size is dynamic, two words follow: the
//! limit of a part in keys and in timers, one of which is zero. The cells then begin with a table:
//!
//! | word | what |
//! |---|---|
//! | 0 | number of parts, at least 1 |
//! | 1 | load of the newest part: the keys it has taken, or its timers that are set |
//! | 2.. | for each part, the newest first: its last insertion, in nanoseconds since the epoch |
//! | .. | the timers of each part, in the same order |
//!
//! The parameters of the time-limited filter are k, l and the bits of the first slices. The cells begin with a table:
//!
//! | word | what |
//! |---|---|
//! | 0 | number of slices, at least k |
//! | 1 | begin of the open generation, in nanoseconds since the epoch |
//! | 2 | number of the newest slice's hash function, below k; the next older one's is one less, modulo k |
//! | 3.. | for each slice, the newest first: words of bits, capacity, count, last update in nanoseconds since the epoch |
//! | .. | the bits of each slice, in the same order |
//!
//! The parameters of the counting filter are k and slice cells; the cells are 4-bit counters, low bits first, slice
//! after slice up to a whole word, and a word for each place of the queue.
//!
//! The parameters of the Bloom filter are k, the bits of the one array and the bits of a slice, one of which is zero;
//! the cells are bits, low ones first, slice after slice without a gap.
//!
//! The parameters of the stable filter are k, slice cells, bits and decrements; the cells are packed like those of the
//! Bloom filter.
//!
//! The parameter of the fingerprint buffer is the bits of a fingerprint.
//!
//! The parameters of SWAMP are the slots of the table and the bits of a remainder. The cells are the fingerprints of
//! the buffer, low bits first, up to a whole word; then blocks of 64 slots:
//!
//! | word | what |
//! |---|---|
//! | 0 | which of 64 quotients have a run |
//! | 1 | which of the slots end a run |
//! | 2 | for each 8 quotients a byte: the slot of the block, at most 255, where the first of their runs begins, or would |
//! | 3.. | the entries, low bits first: in the lowest bit a digit less 1, then a remainder |
//!
//! The parameters of the aged cuckoo filter are the bits of a fingerprint, the epochs, pages, lines of a page, distinct
//! keys or zero, and 1 for a chain of tables, 2 for one without `capacity`, or zero. The cells are lines of 64 bytes.
//! Byte s of a line is the tag of slot s; then come P planes of S bytes and X planes of S bits: fingerprints of 8 P + X
//! bits. A line has as many slots S as fit. Byte 63 is the tag of the last key that was rejected. Tag 0 marks a free
//! slot, and epoch e has the tag 1 + (e mod 255). [The family](crate::family::aged_cuckoo) defines which hash lies
//! where. The cells of a chain begin with a table:
//!
//! | word | what |
//! |---|---|
//! | 0 | number of tables, at least 1 |
//! | 1.. | for each table, the oldest first: bits of a fingerprint, pages, lines of a page, epoch of its last insertion |
//! | .. | the lines of each table, in the same order |
//!
//! The parameters of the generalized filter are bits, k1 and k0; the cells are bits, low ones first.
//!
//! The parameter of the exact window is 1 where each missing key is a key of its own, or zero. The cells are the number
//! of keys, and two words for each key of the window, the oldest first: the hash, and when the key last counted as a
//! number of keys ago or as a moment in nanoseconds since the epoch. So equal windows have equal bytes, however their
//! tables lie in memory.
//!
//! # Shared by processes
//!
//! A file that several processes map and [write to](crate::shared) cannot maintain its checksums, and its clock changes
//! with every batch. Such a file has version 4, which differs in this:
//!
//! | bytes | what |
//! |---|---|
//! | 8..10 | 4 |
//! | 40..48 | zero: the cells have no checksum. Their number and the parameters are checked, not their values |
//! | behind the parameters | 96 words: the clock as it is now. The clock among the parameters is that of the day the file was made, so that their checksum holds |
//! | .. | the cells |
//! | behind the cells | 8 words: the first repeats the number below, the others are zero |
//! | behind them | the [claims](crate::claims): 16,384 of 4 words, zeros where no key is claimed |
//!
//! The first of these words is a number that grows by one with each change. If it is even, words 8 to 15 are the clock,
//! else words 16 to 23. Word 1 is not zero while an entry moves. Words 24 to 89 are the table of lines with a window of
//! time, as above from the keys so far on. The other words are zero or ignored. The number behind the cells is written
//! last. If it is greater than the first, the file was copied while it was written, or the machine failed: the clock is
//! older than the cells, and the file is rejected.
//!
//! | word of the clock | what |
//! |---|---|
//! | 0 | keys so far |
//! | 1, 2 | 1 and the latest moment seen, or zeros |
//! | 3 | as word 1 of the four words above |
//! | 4 | the open generation, which is the one after the last key's while it opens |
//! | 5 | how many generations, up to this, the cells have yet to open: not 0 only where a process was killed |
//! | 6, 7 | as words 2 and 3 of the four words above |
//!
//! Copies that are saved elsewhere have version 1.
//!
//! A reader trusts nothing. Lengths are compared with the bytes there are before anything is allocated, checksums
//! before anything is used, and parameters are checked as if a user had passed them. Any pattern of bits is a legal
//! filter, with two exceptions: lines of entries must end as many runs as they have, and tables and counters must count
//! what their windows contain. The checksums guard against damage, not against an adversary.

#[cfg(feature = "file")]
mod file;
mod preamble;
#[cfg(feature = "file")]
mod replace;

use std::fmt;
use std::io::{Read, Write};

use crate::Error;
use crate::family::AnyFilter;
use crate::memory::{Lender, Words};
#[cfg(feature = "file")]
pub use file::{map, open, open_within, save, save_interruptibly};
#[cfg(feature = "file")]
pub(crate) use file::{open_shared, save_shared};
use preamble::Preamble;
pub use preamble::preamble;

/// The reason why a filter could not be saved or read.
#[derive(Debug)]
pub enum SaveError {
    /// The file cannot be written, read or replaced.
    Io(std::io::Error),
    /// The bytes are no filter, or there is no memory for it.
    Filter(Error),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Filter(error) => Some(error),
        }
    }
}

#[doc(hidden)]
impl From<SaveError> for Error {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Io(error) => Self::of_system(error.to_string(), error),
            SaveError::Filter(error) => error,
        }
    }
}

impl From<std::io::Error> for SaveError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for SaveError {
    fn from(error: Error) -> Self {
        Self::Filter(error)
    }
}

/// Returns the filter saved in `bytes`. The cells stay in `bytes` until the filter is written to.
pub fn from_bytes(bytes: Lender) -> Result<AnyFilter, Error> {
    lent(bytes, true)
}

fn lent(bytes: Lender, verify: bool) -> Result<AnyFilter, Error> {
    let all: &[u8] = (*bytes).as_ref();
    let mut preamble = Preamble::read(&mut &*all, Some(all.len() as u64)).map_err(in_memory)?;
    preamble.cells_sum = preamble.cells_sum.filter(|_| verify);
    let (start, len) = (preamble.len, preamble.cells);
    preamble.filter(Words::lent(bytes, start, len / 8)?, None)
}

/// Returns the filter of this preamble and these cells, which stay where they are until the filter is written to.
pub fn from_parts(preamble: &[u8], cells: Lender) -> Result<AnyFilter, Error> {
    let len = (*cells).as_ref().len();
    let bytes = preamble.len() as u64 + len as u64;
    let preamble = Preamble::read(&mut &preamble[..], Some(bytes)).map_err(in_memory)?;
    preamble.filter(Words::lent(cells, 0, len / 8)?, None)
}

/// Writes a filter to any byte sink. More data may follow it, because [`read`] finds its end.
pub fn write(filter: &AnyFilter, target: &mut impl Write) -> Result<(), SaveError> {
    let cells = filter.engine().pieces()?;
    target.write_all(&preamble(filter, &cells))?;
    Ok(cells.iter().try_for_each(|piece| target.write_all(bytemuck::cast_slice(piece)))?)
}

/// Reads a filter from any byte source, and not a byte beyond it.
pub fn read(source: &mut impl Read) -> Result<AnyFilter, SaveError> {
    let preamble = Preamble::read(source, None)?;
    let words = preamble.words(source)?;
    Ok(preamble.filter(words, None)?)
}

/// Returns the error of reading bytes in memory, where no input or output can fail.
pub fn in_memory(error: SaveError) -> Error {
    match error {
        SaveError::Filter(error) => error,
        SaveError::Io(error) => Error::format(error.to_string()),
    }
}
