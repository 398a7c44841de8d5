//! A filter that several processes share: a file that each of them maps, and writes to under its lock.
//!
//! [`open`] converts a saved filter into a file of [version 4](crate::format), and maps it. A writer holds the lock of
//! the file for a batch; the system releases the lock of a process that dies. A reader takes no lock.
//!
//! # A process that is killed
//!
//! The filter keeps its promise at every instant, so a process may be killed at any time: *no key is missed whose
//! insertion has returned, and that is among the last W by the clock of the file*. Only layouts with these properties
//! can be shared: an insertion sets bits, and nothing else ([`sets_bits`](crate::family::Layout::sets_bits)), or it
//! writes an entry, as [below](#entries-that-move); a new generation clears what no key needs for its promise once that
//! generation is open, and nothing else; every pattern of bits is legal. A batch is then a row of three kinds of steps,
//! and a kill falls between two of them:
//!
//! 1. *Bits are set*, while the clock stands before them. Bits beyond the clock are keys that are reported early: no
//!    insertion of them has returned. The generation has a few keys more than it is planned for.
//! 2. *The clock is written*: before a generation clears anything ([`AgedMut::age`](crate::engine)), and when the batch
//!    is done. A clock is written as a whole or not at all ([`mapped`](crate::memory::mapped)). All keys that it counts
//!    have set their bits before, but one: in a window of insertions, the key that opens a generation is counted before
//!    anything is cleared. By the count before it, the oldest key of the window may need a bit of that generation.
//! 3. *Bits are cleared*, after the clock has announced it. By that clock no key needs them. If the clock were written
//!    later, a reader with the old clock would miss the keys that the generation drops. The record contains how many
//!    generations are being opened. The next process that has the lock opens them again. Opening them twice has the
//!    same effect as once, since no key of them has set a bit yet. Until then old bits stay where new ones will lie:
//!    keys that have left the window may be reported for longer, none is missed.
//!
//! A batch that was killed may leave any first part of it inserted, and the next key counted. Its answers are lost: if
//! its keys come again, they are repeats.
//!
//! Only a process that has the lock may open generations. A process that opens the file has no lock. It finds a record
//! with unopened generations whenever a writer is at work, and leaves them alone. (Formerly it opened them too. If it
//! was slow, it cleared what the writer had inserted since, and wrote an old clock.)
//!
//! # Entries that move
//!
//! An [aged cuckoo filter](crate::family::aged_cuckoo) writes an entry where no live one lies, or makes the tag of one
//! younger: as good as setting a bit. When lines are full, an entry moves to another line. The copy is written before
//! its old slot is used, so a kill leaves the entry in one of the two lines, or in both. But a reader may have read the
//! one before the move and the other after it. So a writer that needs a move
//! [announces](crate::memory::mapped::LiveClock) it, and raises the number of the clock before and after. A reader that
//! has not found a key looks again, unless the number stayed the same and nothing moved. A reader also looks again
//! because of the clock: a tag that is younger than the open epoch of an older clock is not live by that.
//!
//! # Readers
//!
//! A reader reads the clock first and then the cells, which may be younger by then. It finds keys that are in the
//! window all the while: their bits were set before the clock was written, lie where that clock has them, and nothing
//! clears them. Bits of later generations lie, by the older clock, among the oldest, and only add.
//!
//! A copy is made without the lock too: it is valid if the clock is the same before and after. A copy takes the lock
//! only if processes write without a pause ([`format::open`], [`AnyFilter::snapshot`]).
//!
//! # Waiting
//!
//! A process that is stopped keeps its lock. Every call therefore waits with a deadline, holds nothing while it waits,
//! and names the process that has the lock when the deadline has passed ([`wait`]). The lock is that of `flock`, which
//! any process can take that may open the file. So only users who may write to the file can read it.
//!
//! # What it is not for
//!
//! Memory is shared within one machine. When the machine fails, the system may have written back any part of the file:
//! save the filter elsewhere now and then. A file that is truncated while it is mapped ends the process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, MutexGuard, TryLockError as Busy};
use std::time::Duration;

use crate::Error;
use crate::claims::{self, Claim, Holder};
use crate::family::AnyFilter;
use crate::format::{self, SaveError};
use crate::lock::{Identity, TIMEOUT, lock, timed_out, wait};
use crate::memory::mapped::{MappedClaims, Place};

/// The file of a shared filter, in one process.
pub struct SharedFile {
    path: PathBuf,
    identity: Identity,
    claims: MappedClaims,
    /// The opened file; `None` in a child of the process that opened it, until the child opens it.
    open: Mutex<Option<Opened>>,
}

struct Opened {
    file: File,
    /// The process that opened the file. A lock belongs to an open file, which a child inherits: without this check
    /// parent and child would both have the lock.
    process: u32,
    /// Under which this process holds claims.
    holder: Option<Holder>,
}

/// A guard of the file's lock, which is released when the guard is dropped.
pub struct Locked<'a>(MutexGuard<'a, Option<Opened>>);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(Opened { file, .. }) = &*self.0 {
            // It cannot fail on a file that is open and locked.
            let _ = file.unlock();
        }
    }
}

impl Locked<'_> {
    /// [Claims](claims) a key, unless it has a claim: then returns `None`.
    pub fn claim(&mut self, places: &[Place], hash: u64, lease: u64) -> Result<Option<Claim>, Error> {
        let Some(Opened { file, holder, .. }) = &mut *self.0 else { return Ok(None) };
        let holder = holder.get_or_insert_with(|| Holder::new(file));
        claims::take(places, hash, holder.name(), lease, |name| holder.lives(file, name))
    }
}

/// Opens a filter for several processes, each of which calls this. Replaces a file that [`format::save`] wrote by one
/// that can be shared; if several processes do so at once, one of them replaces it.
///
/// ```
/// use lately::clock::{Moments, Window};
/// use lately::family::slices::shape::{Paper, choose};
/// use lately::family::{AnyFilter, Budget};
/// use lately::{format, lock, shared};
///
/// let path = std::env::temp_dir().join(format!("lately-{}.lately", std::process::id()));
/// let window = Window::Count { insertions: 1000 };
/// let shape = choose(window, Budget::Rate(0.01), None, None, Paper::AgePartitioned)?;
/// format::save(&AnyFilter::new(shape, window, 0)?, &path).unwrap();
///
/// let (mut ours, file) = shared::open(&path).unwrap();
/// let (theirs, _) = shared::open(&path).unwrap();
/// let locked = file.lock(lock::TIMEOUT).unwrap();
/// ours.engine_mut().insert(&[1, 2, 3], Moments::Untimed)?;
/// drop(locked);
/// let mut present = [false; 2];
/// theirs.engine().query(&[3, 4], Moments::Untimed, &mut present)?;
/// assert_eq!(present, [true, false]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), lately::Error>(())
/// ```
pub fn open(path: &Path) -> Result<(AnyFilter, SharedFile), SaveError> {
    open_within(path, TIMEOUT, &mut || Ok(()))
}

/// Opens a filter like [`open`]. Waits for processes that replace the file for at most `timeout`, and calls `check`
/// meanwhile.
pub fn open_within(
    path: &Path,
    timeout: Duration,
    check: &mut dyn FnMut() -> IoResult<()>,
) -> Result<(AnyFilter, SharedFile), SaveError> {
    // Links are not resolved, because the file also changes when a link is changed.
    let path = absolute(path)?;
    if !std::fs::metadata(&path)?.is_file() {
        return Err(Error::format("not a regular file").into());
    }
    loop {
        let file = writable(&path)?;
        let identity = Identity::of(&file.metadata()?);
        if Identity::at(&path)? != identity {
            // Another process has replaced it since.
            continue;
        }
        if let Some(filter) = format::open_shared(&file)? {
            if !filter.engine().shareable() {
                return Err(Error::format("filters of this family cannot be shared by processes").into());
            }
            let opened = Opened { file, process: std::process::id(), holder: None };
            let claims = MappedClaims::new(&opened.file)?;
            return Ok((filter, SharedFile { path, identity, claims, open: Mutex::new(Some(opened)) }));
        }
        lock(&file, timeout, check)?;
        // Another process may have replaced it meanwhile.
        if Identity::at(&path)? == identity {
            replace(&path)?;
        }
    }
}

/// Replaces a saved filter by one that can be shared.
fn replace(path: &Path) -> Result<(), SaveError> {
    let mut filter = format::open(path)?;
    if let Some((shape, window)) = filter.shape().of_fixed_size(filter.window())? {
        if filter.engine().clock().inserted() > 0 {
            return Err(Error::value(
                "the memory of this filter follows its keys, and a file that processes share has a fixed size: open it \
                 as shared before keys are inserted, or build the filter with nbytes",
            )
            .into());
        }
        let max_ahead = filter.engine().clock().max_ahead();
        filter = AnyFilter::of(shape, window, filter.seed())?.with_max_ahead(max_ahead);
    }
    if !filter.engine().shareable() {
        return Err(Error::value(format!(
            "processes can share an AgedCuckooFilter, AgePartitionedBloomFilter, GuardedEpochBloomFilter or \
             BloomFilter; this one is of the family {}",
            filter.name()
        ))
        .into());
    }
    format::save_shared(&filter, path)
}

fn writable(path: &Path) -> IoResult<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

impl SharedFile {
    /// Returns the absolute path that the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the claims in the file.
    pub fn claims(&self) -> &[Place] {
        self.claims.places()
    }

    /// Waits for at most `timeout` for the lock of the file, which a writer has to hold.
    pub fn lock(&self, timeout: Duration) -> IoResult<Locked<'_>> {
        wait(timeout, &mut || Ok(()), || self.try_lock())?.ok_or_else(|| self.timed_out(timeout))
    }

    /// Takes the lock of the file at once; `None` if another thread or process has it.
    ///
    /// A file that was replaced, moved or removed is an error: other processes may have opened another by its name.
    pub fn try_lock(&self) -> IoResult<Option<Locked<'_>>> {
        let mut open = match self.open.try_lock() {
            Ok(open) => open,
            Err(Busy::Poisoned(open)) => open.into_inner(),
            Err(Busy::WouldBlock) => return Ok(None),
        };
        let opened = match open.take() {
            Some(opened) if opened.process == std::process::id() => opened,
            _ => {
                let file = writable(&self.path)?;
                self.check(Identity::of(&file.metadata()?))?;
                Opened { file, process: std::process::id(), holder: None }
            }
        };
        match open.insert(opened).file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            locked => locked?,
        }
        let locked = Locked(open);
        self.check_place()?;
        Ok(Some(locked))
    }

    /// Returns an error if the path now leads to another file, or to none.
    pub fn check_place(&self) -> IoResult<()> {
        match Identity::at(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            identity => self.check(identity.unwrap_or(Identity::NONE)),
        }
    }

    fn check(&self, identity: Identity) -> IoResult<()> {
        match identity == self.identity {
            true => Ok(()),
            false => Err(IoError::new(
                ErrorKind::StaleNetworkFileHandle,
                "the file was replaced, moved or removed: open it again",
            )),
        }
    }

    /// Returns the error of a call that did not get the lock in time.
    pub fn timed_out(&self, timeout: Duration) -> IoError {
        File::open(&self.path).map_or_else(|error| error, |file| timed_out(&file, timeout))
    }

    /// Closes the file that a child has inherited. Otherwise the child would hold a lock for a parent that dies. Called
    /// in a child.
    pub fn close_inherited(&self) {
        // No other thread of the child can hold it.
        if let Ok(mut open) = self.open.try_lock() {
            *open = None;
        }
    }
}
