//! Filters in files: written, read, mapped and shared.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Result as IoResult, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use memmap2::Mmap;

use super::preamble::{Preamble, fill, preamble, shared_preamble};
use super::replace::{self, Purpose};
use super::{SaveError, lent};
use crate::Error;
use crate::family::AnyFilter;
use crate::key::Seed;
use crate::lock::{TIMEOUT, lock};
use crate::memory::Words;
use crate::memory::mapped::{LIVE, MOVING, Mapped, RECORD, TABLE, TAIL, is_torn, place_of_record, table_of};

/// Number of bytes written between two checks for signals: a third of a second.
const CHECK_INTERVAL: usize = 64 << 20;

/// Number of attempts to read a file that processes share without its lock, before the lock is taken.
const ATTEMPTS: usize = 4;

/// Writes a filter to a file, which is replaced in one step when all of it is on disk. Links are followed.
///
/// A replaced file keeps its mode and, where that is allowed, its owner. A new file of a filter with a secret can be
/// read by its owner alone. Anything but a regular file is rejected.
pub fn save(filter: &AnyFilter, path: &Path) -> Result<(), SaveError> {
    save_interruptibly(filter, path, || Ok(()))
}

/// Writes a filter like [`save`], and calls `check` every 64 MiB; the first error of `check` ends the call.
pub fn save_interruptibly(
    filter: &AnyFilter,
    path: &Path,
    check: impl FnMut() -> IoResult<()>,
) -> Result<(), SaveError> {
    let cells = filter.engine().pieces()?;
    save_as([preamble(filter, &cells), Vec::new()], filter, &cells, path, Purpose::Save, check)
}

/// Writes a filter to a file that processes [share](crate::shared). Users without the right to write to it cannot read
/// it either, because a reader can take its lock.
pub(crate) fn save_shared(filter: &AnyFilter, path: &Path) -> Result<(), SaveError> {
    let cells = filter.engine().pieces()?;
    save_as([shared_preamble(filter), vec![0; TAIL * 8]], filter, &cells, path, Purpose::Share, || Ok(()))
}

/// Writes the first part, the cells, and the last part.
fn save_as(
    [first, last]: [Vec<u8>; 2],
    filter: &AnyFilter,
    cells: &[Cow<'_, [u64]>],
    path: &Path,
    purpose: Purpose,
    mut check: impl FnMut() -> IoResult<()>,
) -> Result<(), SaveError> {
    let secret = matches!(filter.seed(), Seed::Secret(_));
    replace::file(path, secret, purpose, |file| {
        if purpose == Purpose::Share {
            replace::for_writers_alone(file)?;
        }
        file.write_all(&first)?;
        let parts = cells.iter().flat_map(|piece| bytemuck::cast_slice::<u64, u8>(piece).chunks(CHECK_INTERVAL));
        for part in parts {
            check()?;
            file.write_all(part)?;
            if part.len() == CHECK_INTERVAL {
                // Synced part by part, since one sync at the end could not be interrupted.
                file.sync_data()?;
            }
        }
        file.write_all(&last)?;
        check()
    })?;
    Ok(())
}

/// Maps the filter in a file: cells stay there until the filter is written to.
///
/// With `verify` all cells are read and compared with their checksum. Without it only lines of entries are checked,
/// which must end their runs.
#[allow(unsafe_code, reason = "a file is mapped")]
pub fn map(path: &Path, verify: bool) -> Result<AnyFilter, SaveError> {
    let file = regular(path)?;
    // SAFETY: a file must not be changed in place while it is mapped. `save` never does: it replaces the file, and the
    // mapping keeps the old one. The documentation of `open` demands the same of callers.
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
pub fn open(path: &Path) -> Result<AnyFilter, SaveError> {
    open_within(path, TIMEOUT, &mut || Ok(()))
}

/// Reads a filter like [`open`]. Waits for processes that write to the file for at most `timeout`, and calls `check`
/// meanwhile.
///
/// The file is read again if its clock has changed meanwhile. The lock is taken only if that happens repeatedly.
pub fn open_within(
    path: &Path,
    timeout: Duration,
    check: &mut dyn FnMut() -> IoResult<()>,
) -> Result<AnyFilter, SaveError> {
    let mut file = regular(path)?;
    let size = file.metadata()?.len();
    let preamble = Preamble::read(&mut file, Some(size))?;
    if !preamble.shared {
        let words = preamble.words(&mut file)?;
        return Ok(preamble.filter(words, None)?);
    }
    // On Windows a file that another process has locked cannot be read.
    for _ in 0..if cfg!(windows) { 0 } else { ATTEMPTS } {
        let (number, moving, record, table) = clock_in(&file, &preamble)?;
        let words = cells_in(&file, &preamble)?;
        if !moving && clock_in(&file, &preamble)?.0 == number {
            return Ok(preamble.filter(words, Some((record, table)))?);
        }
    }
    // Closing the file releases the lock.
    lock(&file, timeout, check)?;
    let (.., record, table) = clock_in(&file, &preamble)?;
    let words = cells_in(&file, &preamble)?;
    Ok(preamble.filter(words, Some((record, table)))?)
}

/// The clock in a file: the number of its last write, whether a writer moves entries, its record and its table.
type ClockInFile = (u64, bool, [u64; RECORD], [u64; TABLE]);

/// Reads the clock in a file that processes share, again until none has written it meanwhile.
fn clock_in(mut file: &File, preamble: &Preamble) -> Result<ClockInFile, SaveError> {
    let mut read = |at: usize, words: &mut [u64]| {
        file.seek(SeekFrom::Start(at as u64))?;
        fill(&mut file, bytemuck::cast_slice_mut(words))
    };
    let mut end = [0];
    // A writer writes the number at the front first, so that at the end is read first.
    read(preamble.len + LIVE * 8 + preamble.cells, &mut end)?;
    loop {
        let (mut before, mut live) = ([0], [0; LIVE]);
        read(preamble.len, &mut before)?;
        read(preamble.len, &mut live)?;
        let mut after = [0];
        read(preamble.len, &mut after)?;
        if before == after {
            reject_torn(is_torn(before[0], end[0]))?;
            let record = std::array::from_fn(|word| live[place_of_record(before[0])][word]);
            return Ok((before[0], live[MOVING] != 0, record, table_of(&live)));
        }
    }
}

/// Reads the cells of a file that processes share.
fn cells_in(mut file: &File, preamble: &Preamble) -> Result<Words, SaveError> {
    file.seek(SeekFrom::Start((preamble.len + LIVE * 8) as u64))?;
    preamble.words(&mut file)
}

fn reject_torn(torn: bool) -> Result<(), Error> {
    match torn {
        false => Ok(()),
        true => Err(Error::format(
            "its clock is older than its cells, so keys would be missed: it was copied while it was written, or the \
             machine failed: take another copy, and make copies by opening the file and saving that",
        )),
    }
}

/// Returns the filter in a file that processes share, with its words in the mapped file; `None` if `save` wrote the
/// file.
pub(crate) fn open_shared(file: &File) -> Result<Option<AnyFilter>, SaveError> {
    let preamble = Preamble::read(&mut &*file, Some(file.metadata()?.len()))?;
    if !preamble.shared {
        return Ok(None);
    }
    let mapped = Mapped::new(file, preamble.len)?;
    reject_torn(mapped.live().is_torn())?;
    let (record, table) = (mapped.live().read(), mapped.live().table());
    Ok(Some(preamble.filter(Words::in_file(mapped), Some((record, table)))?))
}
