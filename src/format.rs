//! The saved form of a filter. All numbers are little endian; version 1 is:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `89 4C 41 54 0D 0A 1A 0A`: no text, `LAT`, and line ends that a transfer in text mode would damage |
//! | 8..10 | version of this format: 1 |
//! | 10..12 | kind of filter: 1 age-partitioned, 2 guarded-epoch, 3 timing, 4 time-limited, 5 Bloom, 6 counting, 7 stable, 8 fingerprint buffer, 10 generalized, 11 SWAMP, 16 age-partitioned in lines, 17 guarded-epoch in lines, 18 guarded-epoch transposed, 19 timing in lines, 20 aged quotient, 21 the same where it grows, 22 and 23 these where they count, 24 and 25 the first two where tags are finer than turns |
//! | 12..14 | scheme its keys are hashed by ([`key`](crate::key)): 1 or 2 |
//! | 14..16 | zero |
//! | 16..24 | seed; of scheme 2 the first half of the secret |
//! | 24..32 | bytes of the parameters that follow this header, a multiple of 64 |
//! | 32..40 | bytes of the cells that follow them |
//! | 40..48 | xxh3-64 of the cells |
//! | 48..56 | zero; of scheme 2 the second half of the secret, so that the file is one too |
//! | 56..64 | xxh3-64 of bytes 0..56 and the parameters |
//! | 64.. | parameters: 64-bit words, zero up to their length |
//! | .. | cells: the words of the filter, at a multiple of 64 bytes, so that a mapped file is used where it lies |
//!
//! The parameters of every filter begin with its clock:
//!
//! | word | what |
//! |---|---|
//! | 0 | 0: insertions, 1: time |
//! | 1 | window: insertions (of a Bloom filter the keys it is planned for), or nanoseconds |
//! | 2, 3 | lateness in nanoseconds, capacity in keys (time), or zero |
//! | 4 | keys so far: inserted, or asked for and not inserted; of a window that counts deliveries only those inserted |
//! | 5, 6 | 1 and the latest moment seen, in nanoseconds since the epoch (time), or zeros |
//!
//! Behind those of its family, named below, come two more:
//!
//! | word | what |
//! |---|---|
//! | 0 | how far ahead of the system's clock a key may lie: 0 a day, else nanoseconds + 1, or 2^64 - 1 where nothing is too far |
//! | 1 | 1 where a key has come without a time of its own, else 0 |
//!
//! Versions before these two wrote zeros, and pass over what is there.
//!
//! The age-partitioned filter goes on with k, l, slice bits, blocks, block bits and parts, the guarded-epoch filter
//! with r, k, segment bits, blocks, block bits and parts: zero where they do not apply. In lines they go on with k and
//! l, or with r, and then pages and lines per key; their cells are pages of 64 lines of 64 bytes, lane 0 of a line in
//! its lowest bits. Transposed it goes on with r, k and positions; its cells are numbers of r + 1 bits, one after the
//! other, in which bit (-epoch) mod (r + 1) is that of an epoch.
//!
//! The timing filter goes on with k, bits per timer, blocks, timers of a slice (of whole words) and equal timers. A
//! word holds as many timers as fit, from its lowest bit on. If its size is dynamic, two words follow: the keys and the
//! timers that a part takes, of which one is zero. Its cells then begin with a table:
//!
//! | word | what |
//! |---|---|
//! | 0 | number of parts, at least 1 |
//! | 1 | load of the newest part: the keys it has taken, or its timers that are set |
//! | 2.. | for each part, the newest first: generation of its last insertion |
//! | .. | the timers of each part, in the same order |
//!
//! In lines it goes on with k, bits per timer, blocks, pages and lines per key; its cells are pages of 64 lines of 8
//! such words.
//!
//! The time-limited filter goes on with k, l and the bits of its first slices. Its cells begin with a table:
//!
//! | word | what |
//! |---|---|
//! | 0 | number of slices, at least k |
//! | 1 | begin of the open generation, in nanoseconds since the epoch |
//! | 2 | number of the newest slice's hash function, below k; the next older one's is one less, modulo k |
//! | 3.. | for each slice, the newest first: words of bits, capacity, count, last update in nanoseconds since the epoch |
//! | .. | the bits of each slice, in the same order |
//!
//! The counting filter goes on with k and slice cells; its cells are 4-bit counters, low bits first, slice after slice
//! up to a whole word, and a word for each place of the queue.
//!
//! The Bloom filter goes on with k, the bits of its one array and the bits of a slice, of which one is zero; its cells
//! are bits, low ones first, slice after slice without a gap.
//!
//! The stable filter goes on with k, slice cells, bits and decrements; its cells are packed like these.
//!
//! The fingerprint buffer goes on with the bits of a fingerprint.
//!
//! SWAMP goes on with the slots of its table and the bits of a remainder. Its cells are the fingerprints of the buffer,
//! low bits first, up to a whole word; then blocks of 64 slots:
//!
//! | word | what |
//! |---|---|
//! | 0 | which of 64 quotients have a run |
//! | 1 | which of the slots end a run |
//! | 2 | for each 8 quotients a byte: the slot of the block, at most 255, where the first of their runs begins, or would |
//! | 3.. | the entries, low bits first: in the lowest bit a digit less 1, then a remainder |
//!
//! The aged quotient filter goes on with the bits of a fingerprint and of a tag, pages, lines of entries in a page, and
//! distinct keys or zero. Its cells are pages, each of a spare line and the lines of entries, of 64 bytes each. A spare
//! line is 16 numbers of 32 bits: 15 prints of 24 bits above a tag of 8, or zero; then 1 above the tag of the last key
//! that was turned away, or zero. With V = F + T bits of a value, S = floor(468 / (V + 1)) slots, B = min(506 - S (V +
//! 1), 58) buckets of which BF = floor(5 B / 16) are foreign, and lanes of 8 bits where V < 16 and else of 16, the bits
//! of a line of entries are, low ones first: 5 for its reach, 1 that is set if its spare line has to be asked, B for
//! the occupied buckets, S for the ends of runs, S for each bit of the values above those of a lane, and from the top
//! down the lanes of all slots. A fingerprint is in the lower bits of a value, the tag above it. Which hash is where,
//! [the layout](crate::layout::quotient) says. Where it grows, its cells are those of 2^g times as many pages, of
//! fingerprints of g bits less. Where it counts, C, the bits of a count, follows the other parameters. There are C more
//! planes behind the others, so that V + C stands for V in S and B, and the low C bits of a print in a spare line are a
//! count too. Where tags are finer than turns, C or zero and the epochs that are kept follow the others. In a spare
//! line a tag of more than 8 bits has its own number of them, and leaves the others.
//!
//! The generalized filter goes on with bits, k1 and k0; its cells are bits, low ones first.
//!
//! Kind 9 was a SWAMP whose table kept three bits a slot; it is not read any more.
//!
//! # Shared by processes
//!
//! A file that several processes map and [write to](crate::shared) cannot keep up its checksums, and its clock changes
//! with every batch. It is of version 3, which differs in this:
//!
//! | bytes | what |
//! |---|---|
//! | 8..10 | 3 |
//! | 40..48 | zero: the cells have no checksum. Their number and the parameters are checked, not their values |
//! | behind the parameters | 24 words: the clock as it is now. The clock among the parameters is that of the day the file was made, so that their checksum holds |
//! | .. | cells, as ever |
//! | behind the cells | 8 words: the first repeats the number below, the others are zero |
//!
//! The first of the 24 words is a number that grows by one with each change. If it is even, words 8 to 13 are the
//! clock, else words 16 to 21; the others are zero, or of no account. The number behind the cells is written last. Where
//! it is greater than the first, the file was copied while it was written, or the machine failed: the clock is older
//! than the cells, and the file is refused. Version 2 had no words behind the cells; it is still read.
//!
//! | word of the clock | what |
//! |---|---|
//! | 0 | keys so far |
//! | 1, 2 | 1 and the latest moment seen, or zeros |
//! | 3 | 1 where a key has come without a time of its own, else 0 |
//! | 4 | the open generation, which is the one after the last key's while it opens |
//! | 5 | how many generations, up to this, the cells have yet to open: not 0 only where a process was killed |
//!
//! What is saved elsewhere of such a filter is of version 1.
//!
//! Reading trusts nothing. Lengths are compared with what is there before anything is allocated, checksums before
//! anything is believed, and parameters are checked as if a user had passed them. Any pattern of bits is a legal
//! filter, but for lines of entries, which have to end as many runs as they have, and for tables and counters, which
//! have to count what their windows hold. The checksums guard against damage, not against an adversary.

pub mod exact;
mod preamble;
mod replace;

use std::fmt;
use std::fs::File;
use std::io::{Read, Result as IoResult, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use memmap2::Mmap;

use crate::Error;
use crate::filter::Filter;
use crate::key::Seed;
use crate::memory::mapped::{LIVE, Mapped, RECORD, TAIL, is_torn, place_of_record};
use crate::memory::{Lender, Words};
use crate::shared::{self, TIMEOUT};
pub use preamble::preamble;
use preamble::{Preamble, fill, shared_preamble};

#[cfg(target_endian = "big")]
compile_error!("cells are saved as they lie in memory, which has to be little endian");

/// Bytes written between two checks for signals: a third of a second.
const PIECE: usize = 64 << 20;

/// How often a file that processes share is read without its lock, before the lock is taken.
const ATTEMPTS: usize = 4;

/// Why [`save`] or [`open`] failed.
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

impl From<SaveError> for Error {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Io(error) => Self::Io { kind: error.kind(), message: error.to_string() },
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

/// The filter saved in `bytes`. Its cells stay where they are until it is written to.
pub fn from_bytes(bytes: Lender) -> Result<Filter, Error> {
    lent(bytes, true)
}

fn lent(bytes: Lender, verify: bool) -> Result<Filter, Error> {
    let all: &[u8] = (*bytes).as_ref();
    let mut preamble = Preamble::read(&mut &*all, Some(all.len() as u64)).map_err(in_memory)?;
    preamble.cells_sum = preamble.cells_sum.filter(|_| verify);
    let (start, len) = (preamble.len, preamble.cells);
    preamble.filter(Words::lent(bytes, start, len / 8)?, None)
}

/// The filter of this preamble and these cells, which stay where they are until it is written to.
pub fn from_parts(preamble: &[u8], cells: Lender) -> Result<Filter, Error> {
    let len = (*cells).as_ref().len();
    let bytes = preamble.len() as u64 + len as u64;
    let preamble = Preamble::read(&mut &preamble[..], Some(bytes)).map_err(in_memory)?;
    preamble.filter(Words::lent(cells, 0, len / 8)?, None)
}

/// Writes a filter to a file, which is replaced when all is on disk: nobody ever sees half of one. Links are followed.
/// A replaced file keeps its mode and, where that is allowed, its owner; a new one of a filter with a secret is its
/// owner's alone. Anything but a regular file is refused.
pub fn save(filter: &Filter, path: &Path) -> Result<(), SaveError> {
    save_in_pieces(filter, path, || Ok(()))
}

/// [`save`] that asks `go_on` between pieces whether to continue.
pub fn save_in_pieces(filter: &Filter, path: &Path, look: impl FnMut() -> IoResult<()>) -> Result<(), SaveError> {
    save_as([preamble(filter), Vec::new()], filter, path, |_| Ok(()), look)
}

/// Writes a filter to a file that processes [share](crate::shared). Those who may not write to it may not read it either,
/// since a reader can take its lock.
pub(crate) fn save_shared(filter: &Filter, path: &Path) -> Result<(), SaveError> {
    let close = |file: &mut File| replace::for_writers_alone(file);
    save_as([shared_preamble(filter), vec![0; TAIL * 8]], filter, path, close, || Ok(()))
}

/// Writes the first part, the cells, and the last part.
fn save_as(
    [first, last]: [Vec<u8>; 2],
    filter: &Filter,
    path: &Path,
    prepare: impl FnOnce(&mut File) -> IoResult<()>,
    mut look: impl FnMut() -> IoResult<()>,
) -> Result<(), SaveError> {
    let secret = matches!(filter.seed(), Seed::Secret(_));
    replace::file(path, secret, |file| {
        prepare(file)?;
        file.write_all(&first)?;
        for piece in filter.engine().words().as_ref().chunks(PIECE) {
            look()?;
            file.write_all(piece)?;
            if piece.len() == PIECE {
                // Synced piece by piece, since one sync at the end could not be interrupted.
                file.sync_data()?;
            }
        }
        file.write_all(&last)?;
        look()
    })?;
    Ok(())
}

/// The filter in a file that is mapped: its cells stay there until it is written to. To `verify` them all are read;
/// else damage goes unnoticed, but for those of lines of entries, which must end their runs.
#[allow(unsafe_code, reason = "a file is mapped")]
pub fn map(path: &Path, verify: bool) -> Result<Filter, SaveError> {
    let file = regular(path)?;
    // SAFETY: a file must not be changed in place while it is mapped. `save` never does: it replaces the file, and the
    // mapping keeps the old one. The docs of `open` say so.
    let map = unsafe { Mmap::map(&file)? };
    Ok(lent(Box::new(map), verify)?)
}

fn regular(path: &Path) -> Result<File, SaveError> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::format("not a regular file").into());
    }
    Ok(File::open(path)?)
}

/// Reads a filter from a file.
pub fn open(path: &Path) -> Result<Filter, SaveError> {
    open_within(path, TIMEOUT, &mut || Ok(()))
}

/// [`open`], which waits for processes that write to the file for at most `timeout`, and calls `look` meanwhile.
///
/// It reads again if the clock of the file has changed meanwhile. Only where that goes on, it takes the lock.
pub fn open_within(
    path: &Path,
    timeout: Duration,
    look: &mut dyn FnMut() -> IoResult<()>,
) -> Result<Filter, SaveError> {
    let mut file = regular(path)?;
    let size = file.metadata()?.len();
    let preamble = Preamble::read(&mut file, Some(size))?;
    if preamble.tail.is_none() {
        let words = preamble.words(&mut file)?;
        return Ok(preamble.filter(words, None)?);
    }
    // Windows does not let a file be read that another process has locked.
    for _ in 0..if cfg!(windows) { 0 } else { ATTEMPTS } {
        let (number, record) = clock_in(&file, &preamble)?;
        let words = cells_in(&file, &preamble)?;
        if clock_in(&file, &preamble)?.0 == number {
            return Ok(preamble.filter(words, Some(record))?);
        }
    }
    // Closing the file releases the lock.
    shared::lock(&file, timeout, look)?;
    let (_, record) = clock_in(&file, &preamble)?;
    let words = cells_in(&file, &preamble)?;
    Ok(preamble.filter(words, Some(record))?)
}

/// Reads the number and the record of the clock in a file that processes share.
fn clock_in(mut file: &File, preamble: &Preamble) -> Result<(u64, [u64; RECORD]), SaveError> {
    let mut read = |at: usize, words: &mut [u64]| {
        file.seek(SeekFrom::Start(at as u64))?;
        fill(&mut file, bytemuck::cast_slice_mut(words))
    };
    let mut end = [0];
    if preamble.tail.is_some_and(|tail| tail > 0) {
        // Before the number at the front, which is written before this one.
        read(preamble.len + LIVE * 8 + preamble.cells, &mut end)?;
    }
    loop {
        let (mut before, mut live) = ([0], [0; LIVE]);
        read(preamble.len, &mut before)?;
        read(preamble.len, &mut live)?;
        let mut after = [0];
        read(preamble.len, &mut after)?;
        if before == after {
            refuse_torn(is_torn(before[0], end[0]))?;
            return Ok((before[0], std::array::from_fn(|word| live[place_of_record(before[0])][word])));
        }
    }
}

/// Reads the cells of a file that processes share.
fn cells_in(mut file: &File, preamble: &Preamble) -> Result<Words, SaveError> {
    file.seek(SeekFrom::Start((preamble.len + LIVE * 8) as u64))?;
    preamble.words(&mut file)
}

fn refuse_torn(torn: bool) -> Result<(), Error> {
    match torn {
        false => Ok(()),
        true => Err(Error::format(
            "its clock is older than its cells, so keys would be missed: it was copied while it was written, or the \
             machine failed. Take another copy, and make copies by `lately.open(path).save(copy)`",
        )),
    }
}

/// Returns the filter in a file that processes share, with its words in the mapped file; none if `save` wrote the file.
pub(crate) fn open_shared(file: &File) -> Result<Option<Filter>, SaveError> {
    let preamble = Preamble::read(&mut &*file, Some(file.metadata()?.len()))?;
    let Some(tail) = preamble.tail else { return Ok(None) };
    let mapped = Mapped::new(file, preamble.len, tail)?;
    refuse_torn(mapped.live().is_torn())?;
    let record = mapped.live().read();
    Ok(Some(preamble.filter(Words::in_file(mapped), Some(record))?))
}

/// Writes a filter to anything that takes bytes. Others may follow it: [`read`] finds its end.
pub fn write(filter: &Filter, target: &mut impl Write) -> std::io::Result<()> {
    target.write_all(&preamble(filter))?;
    target.write_all(filter.engine().words().as_ref())
}

/// Reads a filter from anything that gives bytes, and not a byte beyond it.
pub fn read(source: &mut impl Read) -> Result<Filter, SaveError> {
    let preamble = Preamble::read(source, None)?;
    let words = preamble.words(source)?;
    Ok(preamble.filter(words, None)?)
}

/// Returns the error of bytes in memory, which can always be read.
pub fn in_memory(error: SaveError) -> Error {
    match error {
        SaveError::Filter(error) => error,
        SaveError::Io(error) => Error::format(error.to_string()),
    }
}
