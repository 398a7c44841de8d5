//! The saved form of a filter. All numbers are little endian; version 1 is:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `89 4C 41 54 0D 0A 1A 0A`: no text, `LAT`, and line ends that a transfer in text mode would damage |
//! | 8..10 | version of this format: 1 |
//! | 10..12 | kind of filter: 1 age-partitioned, 2 guarded-epoch, 3 timing, 4 time-limited, 5 Bloom, 6 counting, 7 stable, 8 fingerprint buffer, 10 generalized, 11 SWAMP, 16 age-partitioned in lines, 17 guarded-epoch in lines, 18 guarded-epoch transposed, 19 timing in lines, 20 aged quotient, 21 the same where it grows, 22 and 23 these where they count |
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
//! count too.
//!
//! The generalized filter goes on with bits, k1 and k0; its cells are bits, low ones first.
//!
//! Kind 9 was a SWAMP whose table kept three bits a slot; it is not read any more.
//!
//! # Shared by processes
//!
//! A file that several processes map and [write to](crate::shared) cannot keep up its sums, and its clock changes with
//! every batch. It is of version 2, which differs in this:
//!
//! | bytes | what |
//! |---|---|
//! | 8..10 | 2 |
//! | 40..48 | zero: the cells have no sum. Their number and the parameters are checked, not what they say |
//! | behind the parameters | 24 words: the clock as it is now. The clock among the parameters is that of the day the file was made, so that the sum of these holds |
//! | .. | cells, as ever |
//!
//! The first of the 24 words is a number that grows by one with each change. If it is even, words 8 to 13 are the
//! clock, else words 16 to 21; the others are zero, or of no account.
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
//! filter, but for lines of entries, which have to end as many runs as they have. The checksums guard against damage,
//! not against an adversary.

mod replace;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use memmap2::Mmap;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::Error;
use crate::clock::{Clock, DAY, MOST_INSERTED, Window};
use crate::filter::{Family, Filter};
use crate::key::Seed;
use crate::memory::mapped::{LIVE, Mapped, RECORD};
use crate::memory::{Lender, Words};

#[cfg(target_endian = "big")]
compile_error!("cells are saved as they lie in memory, which has to be little endian");

const MAGIC: [u8; 8] = *b"\x89LAT\r\n\x1a\n";
const VERSION: u16 = 1;
/// The version of files that processes share.
const SHARED: u16 = 2;
const HEADER: usize = 64;
/// No filter has more parameters than this; a longer block is of another version.
const MOST_PARAMETERS: u64 = 64 * 16;
/// Bytes written between two checks for signals: a third of a second.
const PIECE: usize = 64 << 20;

/// Why [`save`] or [`open`] failed.
#[derive(Debug)]
pub enum SaveError {
    /// The file cannot be written, read or replaced.
    Io(std::io::Error),
    /// The bytes are no filter, or there is no memory for it.
    Filter(Error),
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

/// Header and parameters of a filter: all of its saved form but the cells.
pub fn preamble(filter: &Filter) -> Vec<u8> {
    preamble_of(filter, VERSION, xxh3_64(filter.engine().words().as_ref()))
}

/// All of the file that processes share but the cells.
pub(crate) fn shared_preamble(filter: &Filter) -> Vec<u8> {
    let mut bytes = preamble_of(filter, SHARED, 0);
    let mut live = [0; LIVE];
    live[8..13].copy_from_slice(&filter.engine().clock().told());
    bytes.extend(live.into_iter().flat_map(u64::to_le_bytes));
    bytes
}

fn preamble_of(filter: &Filter, version: u16, cells_sum: u64) -> Vec<u8> {
    let clock = filter.engine().clock();
    let window = match clock.window() {
        Window::Count { insertions } => [0, insertions, 0, 0],
        Window::Time { span, lateness, capacity } => [1, span, lateness, capacity],
    };
    let seen = [clock.inserted(), clock.latest().is_some().into(), clock.latest().unwrap_or(0) as u64];
    let own = filter.parameters().into_iter().map(|(_, value)| value);
    let ahead = match clock.ahead() {
        Some(DAY) => 0,
        ahead => ahead.map_or(u64::MAX, |ahead| ahead + 1),
    };
    let told = [ahead, clock.by_system().into()];
    // Left out where they say nothing: a filter is then saved as it was before they were thought of.
    let told = if told == [0, 0] { &[][..] } else { &told };
    let mut parameters: Vec<u8> =
        window.into_iter().chain(seen).chain(own).chain(told.iter().copied()).flat_map(u64::to_le_bytes).collect();
    parameters.resize(parameters.len().next_multiple_of(64), 0);

    let cells: &[u8] = filter.engine().words().as_ref();
    let mut bytes = Vec::with_capacity(HEADER + parameters.len());
    bytes.extend(MAGIC);
    let seed = filter.seed();
    for number in [version, filter.family().kind, seed.scheme(), 0] {
        bytes.extend(number.to_le_bytes());
    }
    let [first, second] = seed.words();
    for number in [first, parameters.len() as u64, cells.len() as u64, cells_sum, second] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(sum(&bytes, &parameters).to_le_bytes());
    bytes.extend(parameters);
    bytes
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
pub fn save_in_pieces(
    filter: &Filter,
    path: &Path,
    look: impl FnMut() -> std::io::Result<()>,
) -> Result<(), SaveError> {
    save_as(preamble(filter), filter, path, look)
}

/// Writes a filter to a file that processes [share](crate::shared).
pub(crate) fn save_shared(filter: &Filter, path: &Path) -> Result<(), SaveError> {
    save_as(shared_preamble(filter), filter, path, || Ok(()))
}

fn save_as(
    preamble: Vec<u8>,
    filter: &Filter,
    path: &Path,
    mut look: impl FnMut() -> std::io::Result<()>,
) -> Result<(), SaveError> {
    let secret = matches!(filter.seed(), Seed::Secret(_));
    replace::file(path, secret, |file| {
        file.write_all(&preamble)?;
        for piece in filter.engine().words().as_ref().chunks(PIECE) {
            look()?;
            file.write_all(piece)?;
            if piece.len() == PIECE {
                // Synced piece by piece, since one sync at the end could not be interrupted.
                file.sync_data()?;
            }
        }
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
    let mut file = regular(path)?;
    let size = file.metadata()?.len();
    let preamble = Preamble::read(&mut file, Some(size))?;
    if !preamble.shared {
        return preamble.filter_from(&mut file, None);
    }
    // While nobody writes to it; closing the file ends the lock.
    file.lock_shared()?;
    let mut live = [0; LIVE];
    fill(&mut file, bytemuck::cast_slice_mut(&mut live))?;
    let record = if live[0] % 2 == 0 { &live[8..] } else { &live[16..] };
    preamble.filter_from(&mut file, record.first_chunk().copied())
}

/// The filter in a file that processes share, which is mapped, and its words with it; none in one that `save` wrote.
pub(crate) fn open_shared(file: &File) -> Result<Option<Filter>, SaveError> {
    let preamble = Preamble::read(&mut &*file, Some(file.metadata()?.len()))?;
    if !preamble.shared {
        return Ok(None);
    }
    let mapped = Mapped::new(file, preamble.len)?;
    let told = mapped.live().read();
    Ok(Some(preamble.filter(Words::in_file(mapped), Some(told))?))
}

/// Writes a filter to anything that takes bytes. Others may follow it: [`read`] finds its end.
pub fn write(filter: &Filter, target: &mut impl Write) -> std::io::Result<()> {
    target.write_all(&preamble(filter))?;
    target.write_all(filter.engine().words().as_ref())
}

/// Reads a filter from anything that gives bytes, and not a byte beyond it.
pub fn read(source: &mut impl Read) -> Result<Filter, SaveError> {
    Preamble::read(source, None)?.filter_from(source, None)
}

/// Fills a part of the saved form.
fn fill(source: &mut impl Read, part: &mut [u8]) -> Result<(), SaveError> {
    source.read_exact(part).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::format("the bytes are cut short").into(),
        _ => error.into(),
    })
}

/// The error of bytes in memory, which can always be read.
fn in_memory(error: SaveError) -> Error {
    match error {
        SaveError::Filter(error) => error,
        SaveError::Io(error) => Error::format(error.to_string()),
    }
}

/// Header and parameters, checked against each other and against the bytes there are.
struct Preamble {
    kind: u16,
    /// Whether processes share the file: 24 words of the clock come before the cells.
    shared: bool,
    seed: Seed,
    parameters: Vec<u64>,
    /// Bytes up to the cells.
    len: usize,
    /// Bytes of cells.
    cells: usize,
    /// Their sum, if they are to have one.
    cells_sum: Option<u64>,
}

impl Preamble {
    /// Reads it from the beginning of as many `bytes`, if that is known.
    fn read(source: &mut impl Read, bytes: Option<u64>) -> Result<Self, SaveError> {
        let mut header = [0; HEADER];
        fill(source, &mut header)?;
        if header[..8] != MAGIC {
            return Err(Error::format("not a saved filter").into());
        }
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let shared = half(8) == SHARED;
        if half(8) != VERSION && !shared {
            let message = format!("saved in format {}, but this version reads {VERSION} and {SHARED}", half(8));
            return Err(Error::format(message).into());
        }
        let (length, cells) = (word(24), word(32));
        if length > MOST_PARAMETERS || length % 64 != 0 || cells % 8 != 0 {
            return Err(Error::format("the header is damaged").into());
        }
        let before = HEADER as u64 + length + if shared { 8 * LIVE as u64 } else { 0 };
        let promised = before.checked_add(cells);
        match (promised, bytes) {
            (Some(promised), Some(bytes)) if promised != bytes => {
                return Err(
                    Error::format(format!("the header promises {promised} bytes, but there are {bytes}")).into()
                );
            }
            (None, _) => return Err(Error::format("the header is damaged").into()),
            _ => {}
        }
        let mut parameters = vec![0; length as usize];
        fill(source, &mut parameters)?;
        if sum(&header[..56], &parameters) != word(56) {
            return Err(Error::format("the header or the parameters are damaged").into());
        }
        let seed = Seed::from_words(half(12), [word(16), word(48)]).ok_or_else(|| {
            Error::format(format!("keys were hashed by scheme {}, but this version has 1 and 2", half(12)))
        })?;
        let fields = parameters.chunks_exact(8).map(|bytes| u64::from_le_bytes(std::array::from_fn(|i| bytes[i])));
        Ok(Self {
            kind: half(10),
            shared,
            seed,
            parameters: fields.collect(),
            len: HEADER + length as usize,
            cells: cells as usize,
            cells_sum: (!shared).then_some(word(40)),
        })
    }

    /// The filter whose cells come next; in a file that processes share with the clock that was read before them.
    fn filter_from(self, source: &mut impl Read, told: Option<[u64; RECORD]>) -> Result<Filter, SaveError> {
        let mut words = Words::zeroed(self.cells / 8)?;
        fill(source, bytemuck::cast_slice_mut(words.to_mut()?))?;
        Ok(self.filter(words, told)?)
    }

    /// The filter with these cells; in a file that processes share with the clock there.
    fn filter(self, words: Words, told: Option<[u64; RECORD]>) -> Result<Filter, Error> {
        if self.shared != told.is_some() {
            return Err(Error::format(
                "processes share this file, so that it is opened by its path, and not by `mmap`",
            ));
        }
        if self.cells_sum.is_some_and(|sum| sum != xxh3_64(words.as_ref())) {
            return Err(Error::format("the cells are damaged"));
        }
        let damaged = || Error::format("the parameters are damaged");
        let [unit, window, lateness, capacity, inserted, timed, latest, ref own @ ..] = self.parameters[..] else {
            return Err(damaged());
        };
        let window = match unit {
            0 => Window::Count { insertions: window },
            1 => Window::Time { span: window, lateness, capacity },
            _ => return Err(damaged()),
        };
        if inserted > MOST_INSERTED || timed > unit {
            return Err(damaged());
        }
        let window = window.check().map_err(|error| Error::format(error.to_string()))?;
        let family = Family::of_kind(self.kind)
            .ok_or_else(|| Error::format(format!("filters of kind {} are not known to this version", self.kind)))?;
        let behind = |word: usize| own.get(family.parameters.len() + word).copied().unwrap_or(0);
        let ahead = match behind(0) {
            0 => Some(DAY),
            u64::MAX => None,
            ahead => Some(ahead - 1),
        };
        let resume = |clock: Clock| {
            let seen = clock.resumed(inserted, (timed == 1).then_some(latest as i64));
            seen.with_ahead(ahead).with_system(behind(1) != 0)
        };
        let mut filter = Filter::from_saved(family, own, window, resume, self.seed, words)?;
        if self.cells_sum.is_some() {
            filter.engine().verify()?;
        }
        if let Some(told) = told {
            filter.engine_mut().take_up(told)?;
        }
        Ok(filter)
    }
}

fn sum(header: &[u8], parameters: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(header);
    hasher.update(parameters);
    hasher.digest()
}
