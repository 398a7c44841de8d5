//! Header and parameters of a saved filter: how they are written, and read without trust.

use std::io::{ErrorKind, Read};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::SaveError;
use crate::Error;
use crate::clock::{Clock, MAX_INSERTED, Window};
use crate::family::{AnyFilter, Family};
use crate::key::Seed;
use crate::memory::Words;
use crate::memory::mapped::{LIVE, RECORD, TABLE, TAIL};

const MAGIC: [u8; 8] = *b"\x89LAT\r\n\x1a\n";
const VERSION: u16 = 1;
/// The version of files that processes share.
const SHARED: u16 = 4;
const HEADER: usize = 64;
/// Greatest number of bytes of parameters that a filter has; a longer block belongs to another version.
const MAX_PARAMETERS: u64 = 64 * 16;

/// Returns header and parameters of a filter, whose cells are these pieces: the whole saved form except the cells.
pub fn preamble(filter: &AnyFilter, cells: &[impl AsRef<[u64]>]) -> Vec<u8> {
    let mut sum = Xxh3::new();
    cells.iter().for_each(|piece| sum.update(bytemuck::cast_slice(piece.as_ref())));
    preamble_of(filter, VERSION, cells.iter().map(|piece| 8 * piece.as_ref().len()).sum(), sum.digest())
}

/// Returns the bytes before the cells in a file that processes share.
#[cfg(feature = "file")]
pub(super) fn shared_preamble(filter: &AnyFilter) -> Vec<u8> {
    let mut bytes = preamble_of(filter, SHARED, filter.engine().nbytes(), 0);
    let mut live = [0; LIVE];
    let [clock @ .., boot, offset] = filter.engine().clock().to_record();
    live[8..13].copy_from_slice(&clock);
    live[14..16].copy_from_slice(&[boot, offset]);
    if let Some(table) = filter.engine().clock().to_table() {
        live[24..24 + TABLE].copy_from_slice(&table);
    }
    bytes.extend(live.into_iter().flat_map(u64::to_le_bytes));
    bytes
}

fn preamble_of(filter: &AnyFilter, version: u16, cells: usize, cells_sum: u64) -> Vec<u8> {
    let clock = filter.engine().clock();
    let window = match clock.window() {
        Window::Count { insertions } => [0, insertions, 0, 0],
        Window::Time { span, lateness, capacity } => [1, span, lateness, capacity],
    };
    let seen = [clock.inserted(), clock.latest().is_some().into(), clock.latest().unwrap_or(0) as u64];
    let form = filter.form();
    let own = form.values(filter.shape());
    let [by_system, boot, offset] = clock.stamp();
    let later = [clock.window().write_max_ahead(clock.max_ahead()), by_system, boot, offset];
    // Zeros are left out, so that such a filter is saved as by versions that lacked these words.
    let table = clock.to_table().filter(|_| clock.latest().is_some());
    let later = if later == [0; 4] && table.is_none() { &[][..] } else { &later };
    let table = table.into_iter().flat_map(|table| [clock.generation() as u64].into_iter().chain(table));
    let words = window.into_iter().chain(seen).chain(own).chain(later.iter().copied()).chain(table);
    let mut parameters: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    parameters.resize(parameters.len().next_multiple_of(64), 0);

    let mut bytes = Vec::with_capacity(HEADER + parameters.len());
    bytes.extend(MAGIC);
    let seed = filter.seed();
    for number in [version, form.kind, seed.scheme(), 0] {
        bytes.extend(number.to_le_bytes());
    }
    let [first, second] = seed.words();
    for number in [first, parameters.len() as u64, cells as u64, cells_sum, second] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(sum(&bytes, &parameters).to_le_bytes());
    bytes.extend(parameters);
    bytes
}

/// Header and parameters, checked against each other and against the bytes there are.
pub(super) struct Preamble {
    kind: u16,
    /// Whether processes share the file: then [`LIVE`] words of the clock come before the cells, and [`TAIL`] words
    /// behind them.
    pub(super) shared: bool,
    seed: Seed,
    parameters: Vec<u64>,
    /// Bytes of header and parameters.
    pub(super) len: usize,
    /// Bytes of cells.
    pub(super) cells: usize,
    /// The checksum of the cells; `None` if it is not compared.
    pub(super) cells_sum: Option<u64>,
}

impl Preamble {
    /// Reads header and parameters from the beginning of `bytes` bytes, if their number is known.
    pub(super) fn read(source: &mut impl Read, bytes: Option<u64>) -> Result<Self, SaveError> {
        let mut header = [0; HEADER];
        fill(source, &mut header)?;
        if header[..8] != MAGIC {
            return Err(Error::format("not a saved filter").into());
        }
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let shared = match half(8) {
            VERSION => false,
            SHARED => true,
            version => {
                let message = format!("saved in format {version}, but this version reads {VERSION} and {SHARED}");
                return Err(Error::format(message).into());
            }
        };
        let (length, cells) = (word(24), word(32));
        if length > MAX_PARAMETERS || length % 64 != 0 || cells % 8 != 0 {
            return Err(Error::format("the header is damaged").into());
        }
        let others = HEADER as u64 + length + if shared { 8 * (LIVE + TAIL) as u64 } else { 0 };
        let promised = others.checked_add(cells);
        match (promised, bytes) {
            (Some(promised), Some(bytes)) if promised != bytes => {
                return Err(Error::format(format!("the header states {promised} bytes, but there are {bytes}")).into());
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

    /// Reads the cells.
    pub(super) fn words(&self, source: &mut impl Read) -> Result<Words, SaveError> {
        let mut words = Words::zeroed(self.cells / 8)?;
        fill(source, bytemuck::cast_slice_mut(words.to_mut()?))?;
        Ok(words)
    }

    /// Returns the filter with these cells; of a file that processes share with this record and table of its clock.
    pub(super) fn filter(
        self,
        words: Words,
        record: Option<([u64; RECORD], [u64; TABLE])>,
    ) -> Result<AnyFilter, Error> {
        if self.shared != record.is_some() {
            return Err(Error::format("processes share this file: open it by its path, and not mapped"));
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
        if inserted > MAX_INSERTED || timed > unit {
            return Err(damaged());
        }
        let window = window.check().map_err(|error| Error::format(error.to_string()))?;
        let own_words = Family::of_kind(self.kind).map_or(0, |(_, form)| form.parameters.len());
        let behind = |word: usize| own.get(own_words + word).copied().unwrap_or(0);
        let ahead = window.read_max_ahead(behind(0));
        let resume = |clock: Clock| {
            let mut seen = clock.resumed(inserted, (timed == 1).then_some(latest as i64));
            seen.set_max_ahead(ahead);
            let seen = seen.with_stamp([behind(1), behind(2), behind(3)]);
            if !seen.has_shares() {
                return seen;
            }
            seen.with_table(behind(4) as i64, &std::array::from_fn(|word| behind(5 + word)))
        };
        let mut filter = AnyFilter::from_saved(self.kind, own, window, resume, self.seed, words)?;
        let clock = filter.engine().clock();
        if clock.has_shares() && !clock.is_sound() {
            return Err(damaged());
        }
        if self.cells_sum.is_some() {
            filter.engine().verify()?;
        }
        if let Some((record, table)) = record {
            filter.engine_mut().restore(record, &table)?;
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

/// Reads a part of the saved form; a source that ends early is damaged.
pub(super) fn fill(source: &mut impl Read, part: &mut [u8]) -> Result<(), SaveError> {
    source.read_exact(part).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::format("the bytes are cut short").into(),
        _ => error.into(),
    })
}
