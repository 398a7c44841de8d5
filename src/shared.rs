//! One filter for several processes: a file that each of them maps, and writes to under its lock.
//!
//! [`open`] makes of a saved filter a file of [version 2](crate::format), and maps it. Whoever writes holds the lock of
//! the file for a batch; the system takes it from a process that dies. Whoever reads needs no lock.
//!
//! # A process that is killed
//!
//! The filter keeps its promise at every instant, so it may be killed at any: *no key is missed whose insertion has
//! returned, and that is among the last W by the clock of the file*. Only layouts may be shared of which these hold
//! ([`SETS_BITS`](crate::layout::Layout::SETS_BITS)): an insertion sets bits, and nothing else; a new generation clears
//! bits that no key needs for its promise once that generation has begun, and nothing else; every pattern of bits is
//! legal. A batch is then a row of three kinds of steps, and a kill falls between two of them:
//!
//! 1. *Bits are set*, while the clock stands before them. More bits than the clock knows of are keys that are reported
//!    early: no insertion of them has returned. The generation takes a few keys more than it is planned for.
//! 2. *The clock is told*: before a generation clears anything ([`AgedMut::age`](crate::engine)), and when the batch
//!    is done. A clock is told as a whole or not at all ([`mapped`](crate::memory::mapped)). All keys that it counts
//!    have set their bits before, so what it says is true.
//! 3. *Bits are cleared*, and the clock has been told that they are to be. No key needs them by that clock: were it
//!    told after, then those that the generation drops would be missed by who still has the old clock. The record says
//!    how many generations are being opened. Whoever has the lock next opens them again, which is the same as once,
//!    since no key of them has set a bit yet. Until then old bits stay where new ones will lie: keys that have left the
//!    window may be reported for longer, none is missed.
//!
//! A batch that was killed may leave any first part of it inserted. Its answers are lost: keys asked for again are
//! repeats.
//!
//! # Readers
//!
//! A reader takes the clock first and then looks at the cells, which may be younger by then. Keys that are in the
//! window all the while are found: their bits were set before the clock was told, lie where that clock has them, and
//! nothing clears them. Bits of later generations lie, by the older clock, among the oldest, and only add.
//!
//! # What it is not for
//!
//! Memory is shared within one machine. When that fails, the system has written back what it pleased: save the filter
//! elsewhere now and then. A file that is cut while it is mapped ends the process.

use std::fs::{File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::filter::Filter;
use crate::format::{self, SaveError};

/// The file of a shared filter, in one process.
pub struct SharedFile {
    path: PathBuf,
    inode: Inode,
    /// None in a child of the process that opened it, until it opens it for itself.
    open: Mutex<Option<Opened>>,
}

struct Opened {
    file: File,
    /// A lock belongs to an open file, which a child inherits: both would have it at once.
    process: u32,
}

/// The lock of the file, until it is dropped.
pub struct Locked<'a>(MutexGuard<'a, Option<Opened>>);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(Opened { file, .. }) = &*self.0 {
            // It cannot fail on a file that is open and locked.
            let _ = file.unlock();
        }
    }
}

/// Opens a filter for several processes, each of which calls this. A file that [`format::save`] wrote is replaced by
/// one that can be shared; of several who do so at once, one does it.
///
/// ```
/// use lately::clock::{Moments, Window};
/// use lately::shape::Budget;
/// use lately::shape::ring::{Paper, choose};
/// use lately::filter::Filter;
/// use lately::{format, shared};
///
/// let path = std::env::temp_dir().join(format!("lately-{}.lately", std::process::id()));
/// let window = Window::Count { insertions: 1000 };
/// let shape = choose(window, Budget::Rate(0.01), None, None, Paper::AgePartitioned)?;
/// format::save(&Filter::new(shape, window, 0)?, &path).unwrap();
///
/// let (mut ours, file) = shared::open(&path).unwrap();
/// let (theirs, _) = shared::open(&path).unwrap();
/// let locked = file.lock().unwrap();
/// ours.engine_mut().insert(&[1, 2, 3], Moments::Untimed)?;
/// drop(locked);
/// let mut present = [false; 2];
/// theirs.engine().query(&[3, 4], Moments::Untimed, &mut present)?;
/// assert_eq!(present, [true, false]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), lately::Error>(())
/// ```
pub fn open(path: &Path) -> Result<(Filter, SharedFile), SaveError> {
    let path = std::fs::canonicalize(path)?;
    if !std::fs::metadata(&path)?.is_file() {
        return Err(Error::format("not a regular file").into());
    }
    loop {
        let file = writable(&path)?;
        let inode = Inode::of(&file)?;
        if !inode.named {
            // Another has replaced it since.
            continue;
        }
        if let Some(filter) = format::open_shared(&file)? {
            if !filter.engine().shareable() {
                return Err(Error::format("filters of this family cannot be shared by processes").into());
            }
            let opened = Opened { file, process: std::process::id() };
            return Ok((filter, SharedFile { path, inode, open: Mutex::new(Some(opened)) }));
        }
        file.lock()?;
        // Another may have replaced it meanwhile.
        if Inode::of(&file)? == inode {
            replace(&path)?;
        }
    }
}

/// Replaces a saved filter by one that can be shared.
fn replace(path: &Path) -> Result<(), SaveError> {
    let filter = format::open(path)?;
    if !filter.engine().shareable() {
        return Err(Error::value(format!(
            "processes can share filters whose insertions only set bits, such as AgePartitionedBloomFilter, \
             GuardedEpochBloomFilter and BloomFilter; this one is of the family {}",
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
    /// Where it lies, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the lock of the file, which has to be held by who writes to the filter. A signal that is handled ends
    /// the wait with an error of that kind.
    ///
    /// A file that was replaced or removed is refused: others may have opened another by its name.
    pub fn lock(&self) -> IoResult<Locked<'_>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match open.take() {
            Some(opened) if opened.process == std::process::id() => opened,
            _ => Opened { file: writable(&self.path)?, process: std::process::id() },
        };
        let file = &open.insert(opened).file;
        file.lock()?;
        let locked = Locked(open);
        match &*locked.0 {
            Some(Opened { file, .. }) if Inode::of(file)? == self.inode => Ok(locked),
            _ => Err(IoError::new(ErrorKind::NotFound, "the file was replaced or removed: open it again")),
        }
    }

    /// Closes what a child has inherited: else it would hold a lock for a parent that dies. To be called in a child.
    pub fn close_inherited(&self) {
        // No other thread is there to hold it; one of the parent may have.
        if let Ok(mut open) = self.open.try_lock() {
            *open = None;
        }
    }
}

/// Which file it is, and that it still has a name.
#[derive(PartialEq)]
struct Inode {
    device: u64,
    number: u64,
    named: bool,
}

impl Inode {
    #[cfg(unix)]
    fn of(file: &File) -> IoResult<Self> {
        use std::os::unix::fs::MetadataExt;

        let file = file.metadata()?;
        Ok(Self { device: file.dev(), number: file.ino(), named: file.nlink() > 0 })
    }

    /// Here a file that is open and mapped is neither replaced nor removed.
    #[cfg(not(unix))]
    fn of(_: &File) -> IoResult<Self> {
        Ok(Self { device: 0, number: 0, named: true })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::clock::{Moments, Window};
    use crate::engine::Refresh;
    use crate::filter::{Family, Request};
    use crate::memory::mapped::tests::LIVES;
    use crate::shape::Budget;

    const WINDOW: u64 = 300;

    fn mix(i: u64) -> u64 {
        let i = (i ^ i >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (i ^ i >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    /// A saved filter of this family in a folder of its own.
    fn saved(family: &str, window: Window) -> (tempfile::TempDir, PathBuf) {
        let request = Request::from(Budget::Rate(0.01));
        let shape = (Family::named(family).unwrap().plan)(window, &request).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.lately");
        format::save(&Filter::of(shape, window, 7).unwrap(), &path).unwrap();
        (folder, path)
    }

    fn held(filter: &Filter, hashes: &[u64]) -> usize {
        let at = match filter.window() {
            Window::Count { .. } => Moments::Untimed,
            Window::Time { .. } => Moments::At(filter.engine().clock().latest().unwrap_or(0)),
        };
        let mut present = vec![false; hashes.len()];
        filter.engine().query(hashes, at, &mut present).unwrap();
        present.into_iter().filter(|&present| present).count()
    }

    /// Writers are killed at every step at which the clock is told, just before it and just after. Whoever looks then,
    /// and whoever opens the file, finds every key that is in the window by the clock there; and keys that left it
    /// do not stay, at a rate of 1 % and what killed batches leave.
    #[test]
    fn killed_at_any_step_no_key_of_the_window_is_missed() {
        std::panic::set_hook(Box::new(|_| {}));
        for family in [
            "age-partitioned",
            "guarded-epoch",
            "guarded-epoch-transposed",
            "age-partitioned-line",
            "guarded-epoch-line",
        ] {
            for window in [
                Window::Count { insertions: WINDOW },
                Window::Time { span: 10 * WINDOW, lateness: 0, capacity: WINDOW },
            ] {
                let (_folder, path) = saved(family, window);
                let (mut ours, mut file) = open(&path).unwrap();
                let reader = open(&path).unwrap().0;
                let timed = matches!(window, Window::Time { .. });
                let (mut all, mut state, mut kills, mut stayed, mut asked) = (Vec::new(), 1, 0, 0, 0);
                for round in 0..600 {
                    state = mix(state + round);
                    let batch: Vec<u64> = (0..1 + state % 90).map(|i| mix(round << 20 | i)).collect();
                    // A key each 10 ns, and now and then a gap that opens generations at once.
                    let gap = if state >> 40 & 7 == 0 { state >> 50 & 1023 } else { 0 };
                    let began = all.last().map_or(0, |&(_, moment)| moment) + 10 + gap as i64;
                    let moments: Vec<i64> = (0..batch.len() as i64).map(|i| began + 10 * i).collect();
                    let at = if timed { Moments::of(&moments) } else { Moments::Untimed };
                    let before = ours.engine().clock().inserted();
                    assert_eq!(before, all.len() as u64);
                    LIVES.set((state >> 32) as u32 % 24);
                    let done = catch_unwind(AssertUnwindSafe(|| {
                        let _locked = file.lock().unwrap();
                        match round % 2 {
                            0 => ours.engine_mut().insert(&batch, at).unwrap(),
                            _ => {
                                let mut seen = vec![false; batch.len()];
                                ours.engine_mut().duplicated(&batch, at, Refresh::Always, &mut seen).unwrap();
                            }
                        }
                    }));
                    LIVES.set(u32::MAX);
                    let clock = reader.engine().clock();
                    let counted = (clock.inserted() - before) as usize;
                    all.extend(batch[..counted].iter().copied().zip(moments));
                    if done.is_ok() {
                        assert_eq!(counted, batch.len());
                    } else {
                        kills += 1;
                    }
                    let latest = clock.latest().unwrap_or(0);
                    let live = |&&(_, moment): &&(u64, i64)| moment >= latest - 10 * WINDOW as i64;
                    let live: Vec<u64> = match timed {
                        false => all.iter().rev().take(WINDOW as usize).map(|&(hash, _)| hash).collect(),
                        true => all.iter().rev().take_while(live).map(|&(hash, _)| hash).collect(),
                    };
                    let missed = |filter: &Filter| live.len() - held(filter, &live);
                    assert_eq!(missed(&reader), 0, "{family} {window:?} {round}: who looks without a lock");
                    assert_eq!(missed(&format::open(&path).unwrap()), 0, "{family} {window:?} {round}: opened");
                    if done.is_err() {
                        (ours, file) = open(&path).unwrap();
                    }
                    assert_eq!(missed(&ours), 0, "{family} {window:?} {round}: the next");
                    // They left the window and the slack just now: if their bits were not cleared, they are there.
                    let gone = (WINDOW + reader.slack() / if timed { 10 } else { 1 } + 20) as usize;
                    let left = |&&(_, moment): &&(u64, i64)| moment > latest - 10 * gone as i64;
                    let gone_by: Vec<u64> = match timed {
                        false => all.iter().rev().skip(gone).take(100).map(|&(hash, _)| hash).collect(),
                        true => all.iter().rev().skip_while(left).take(100).map(|&(hash, _)| hash).collect(),
                    };
                    asked += gone_by.len();
                    stayed += held(&ours, &gone_by);
                }
                assert!(kills > 100, "{family} {window:?}: {kills} kills");
                assert!(stayed * 40 < asked, "{family} {window:?}: {stayed} of {asked} that left the window stay");
            }
        }
        let _ = std::panic::take_hook();
    }
}
