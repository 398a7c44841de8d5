//! A filter that several processes share: a file that each of them maps, and writes to under its lock.
//!
//! [`open`] converts a saved filter into a file of [version 3](crate::format), and maps it. A writer holds the lock of
//! the file for a batch; the system releases the lock of a process that dies. A reader takes no lock.
//!
//! # A process that is killed
//!
//! The filter keeps its promise at every instant, so a process may be killed at any time: *no key is missed whose
//! insertion has returned, and that is among the last W by the clock of the file*. Only layouts with these properties
//! can be shared ([`SETS_BITS`](crate::layout::Layout::SETS_BITS)): an insertion sets bits, and nothing else; a new
//! generation clears bits that no key needs for its promise once that generation has begun, and nothing else; every
//! pattern of bits is legal. A batch is then a row of three kinds of steps, and a kill falls between two of them:
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

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, MutexGuard, TryLockError as Busy};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::filter::AnyFilter;
use crate::format::{self, SaveError};

/// Default time for which a call waits for another process. A block of keys takes some 0.1 ms; this is for clearing a
/// large filter on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// First pause between two attempts, and the longest, to which pauses double.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// Time between two checks for signals.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// The file of a shared filter, in one process.
pub struct SharedFile {
    path: PathBuf,
    identity: Identity,
    /// The opened file; `None` in a child of the process that opened it, until the child opens it.
    open: Mutex<Option<Opened>>,
}

struct Opened {
    file: File,
    /// The process that opened the file. A lock belongs to an open file, which a child inherits: without this check
    /// parent and child would both have the lock.
    process: u32,
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

/// Opens a filter for several processes, each of which calls this. A file that [`format::save`] wrote is replaced by
/// one that can be shared; of several processes that do so at once, one does it.
///
/// ```
/// use lately::clock::{Moments, Window};
/// use lately::shape::Budget;
/// use lately::shape::ring::{Paper, choose};
/// use lately::filter::AnyFilter;
/// use lately::{format, shared};
///
/// let path = std::env::temp_dir().join(format!("lately-{}.lately", std::process::id()));
/// let window = Window::Count { insertions: 1000 };
/// let shape = choose(window, Budget::Rate(0.01), None, None, Paper::AgePartitioned)?;
/// format::save(&AnyFilter::new(shape, window, 0)?, &path).unwrap();
///
/// let (mut ours, file) = shared::open(&path).unwrap();
/// let (theirs, _) = shared::open(&path).unwrap();
/// let locked = file.lock(shared::TIMEOUT).unwrap();
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

/// Opens a filter like [`open`]. Waits for processes that replace the file for at most `timeout`, and calls `look`
/// meanwhile.
pub fn open_within(
    path: &Path,
    timeout: Duration,
    look: &mut dyn FnMut() -> IoResult<()>,
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
            let opened = Opened { file, process: std::process::id() };
            return Ok((filter, SharedFile { path, identity, open: Mutex::new(Some(opened)) }));
        }
        lock(&file, timeout, look)?;
        // Another process may have replaced it meanwhile.
        if Identity::at(&path)? == identity {
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
    /// Returns the absolute path that the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
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
                Opened { file, process: std::process::id() }
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

    /// Returns the error of a call that waited in vain.
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

/// Attempts an operation until it succeeds or `timeout` has passed, with growing pauses; returns `None` if it has.
/// Nothing may be held between two attempts. Then `look` is called now and then; its error ends the wait.
pub fn wait<T, E>(
    timeout: Duration,
    look: &mut dyn FnMut() -> Result<(), E>,
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    if let Some(done) = attempt()? {
        return Ok(Some(done));
    }
    let (began, mut looked, [mut pause, longest]) = (Instant::now(), Instant::now(), PAUSES);
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        sleep(pause.min(left));
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        pause = longest.min(2 * pause);
        if looked.elapsed() >= LOOKS_EVERY {
            look()?;
            looked = Instant::now();
        }
    }
}

/// Waits for the lock of an open file; closing the file releases the lock.
pub(crate) fn lock(file: &File, timeout: Duration, look: &mut dyn FnMut() -> IoResult<()>) -> IoResult<()> {
    let attempt = || match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    };
    wait(timeout, look, attempt)?.ok_or_else(|| timed_out(file, timeout))
}

fn timed_out(file: &File, timeout: Duration) -> IoError {
    let holder = holder(file).map_or_else(|| "another process".into(), |process| format!("process {process}"));
    let message = format!(
        "{holder} has held the lock of the file for {} s, the timeout: resume or end that process, or pass a longer \
         timeout",
        timeout.as_secs_f64()
    );
    IoError::new(ErrorKind::TimedOut, message)
}

/// Returns the process that has the lock of a file, if the system lists locks.
///
/// The list is read in pieces, and while others take and release locks a line may fall between two: so pieces are large,
/// and the list is read a few times where the lock is missing.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<u32> {
    use std::io::Read;

    let file = Identity::of(&file.metadata().ok()?);
    (0..4).find_map(|_| {
        let mut locks = String::with_capacity(1 << 16);
        File::open("/proc/locks").ok()?.read_to_string(&mut locks).ok()?;
        holder_in(&locks, &file)
    })
}

/// Returns the process that has the lock of a file by a list of the system.
///
/// Files on two devices may have the same number. A file system that lists its devices by other numbers than those of
/// its files, such as Btrfs, is searched by the number of the file alone.
#[cfg(target_os = "linux")]
fn holder_in(locks: &str, file: &Identity) -> Option<u32> {
    use rustix::fs::{major, minor};

    // Lines such as "1: FLOCK  ADVISORY  WRITE 4321 08:01:1234 0 EOF"; of a waiting process "->" follows the number.
    let holds = |place: &str| {
        locks.lines().find_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let is_lock = fields.next() == Some("FLOCK");
            let process = fields.nth(2)?.parse().ok();
            process.filter(|_| is_lock && fields.next().is_some_and(|listed| listed.ends_with(place)))
        })
    };
    let (major, minor) = (major(file.device), minor(file.device));
    holds(&format!("{major:02x}:{minor:02x}:{}", file.inode)).or_else(|| holds(&format!(":{}", file.inode)))
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &File) -> Option<u32> {
    None
}

/// The device and the number of a file, which stay its own whatever its names.
#[derive(PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The identity of no file.
    const NONE: Self = Self { device: u64::MAX, inode: u64::MAX };

    fn at(path: &Path) -> IoResult<Self> {
        Ok(Self::of(&std::fs::metadata(path)?))
    }

    #[cfg(unix)]
    fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self { device: file.dev(), inode: file.ino() }
    }

    /// On this system a file that is open and mapped is neither replaced nor removed.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self { device: 0, inode: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::clock::{Moments, Window};
    use crate::engine::Refresh;
    use crate::filter::{Request, VARIANTS, Variant};
    use crate::memory::mapped::tests::LIVES;
    use crate::shape::Budget;

    const WINDOW: u64 = 300;

    fn mix(i: u64) -> u64 {
        let i = (i ^ i >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (i ^ i >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn planned(variant: &Variant, window: Window) -> Option<AnyFilter> {
        let shape = variant.plan(window, &Request::from(Budget::Rate(0.01))).ok()?;
        AnyFilter::of(shape, window, 7).ok()
    }

    /// Saves a filter of this variant in a folder of its own.
    fn saved(name: &str, window: Window) -> (tempfile::TempDir, PathBuf) {
        let variant = Variant::named(name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.lately");
        format::save(&planned(variant, window).unwrap(), &path).unwrap();
        (folder, path)
    }

    fn held(filter: &AnyFilter, hashes: &[u64]) -> usize {
        let at = match filter.window() {
            Window::Count { .. } => Moments::Untimed,
            Window::Time { .. } => Moments::At(filter.engine().clock().latest().unwrap_or(0)),
        };
        let mut present = vec![false; hashes.len()];
        filter.engine().query(hashes, at, &mut present).unwrap();
        present.into_iter().filter(|&present| present).count()
    }

    /// A writer is killed, or stopped, at every step; meanwhile processes open the file. None of them has the lock, so
    /// none may change a byte: a writer that goes on later would lose what it had inserted.
    #[test]
    fn opening_a_file_never_changes_it_whatever_its_writer_does() {
        std::panic::set_hook(Box::new(|_| {}));
        for family in ["guarded-epoch-transposed", "age-partitioned-line"] {
            let (_folder, path) = saved(family, Window::Count { insertions: WINDOW });
            let (mut unopened, mut inserted) = (0, 0);
            for lives in 0..400 {
                let (mut filter, file) = open(&path).unwrap();
                let batch: Vec<u64> = (0..90).map(|i| mix(lives << 20 | i)).collect();
                LIVES.set(lives as u32 % 40);
                let done = catch_unwind(AssertUnwindSafe(|| {
                    let _locked = file.lock(TIMEOUT).unwrap();
                    filter.engine_mut().insert(&batch, Moments::Untimed).unwrap();
                }));
                LIVES.set(u32::MAX);
                let before = std::fs::read(&path).unwrap();
                let [record @ .., pending] = filter.engine().words().live().unwrap().read();
                unopened += u32::from(pending > 0);
                inserted += u32::from(done.is_ok());
                for _ in 0..2 {
                    assert_eq!(format::open(&path).unwrap().engine().clock().inserted(), record[0]);
                    assert_eq!(open(&path).unwrap().0.engine().clock().inserted(), record[0]);
                }
                assert!(before == std::fs::read(&path).unwrap(), "{family} {lives}");
            }
            assert!(unopened >= 15 && inserted >= 15, "{unopened} of 400 stopped while a generation was opened");
        }
        let _ = std::panic::take_hook();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_holder_of_a_lock_is_found_by_the_device_and_the_number_of_the_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 10 08:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 20 00:1a:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 30 08:01:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 40 08:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 50 103:100:5 0 EOF\n";
        let found =
            |major, minor, inode| holder_in(locks, &Identity { device: rustix::fs::makedev(major, minor), inode });
        assert_eq!([found(8, 1, 77), found(0, 0x1a, 77), found(0x103, 0x100, 5)], [Some(30), Some(20), Some(50)]);
        assert_eq!(found(8, 1, 7), None);
        assert_eq!(found(0, 0x33, 77), Some(20), "listed under another device");
    }

    /// A copy from front to back that begins before a step of a writer and ends after it.
    #[test]
    fn a_copy_made_during_a_write_is_rejected_and_one_of_a_killed_writer_opens() {
        let (_folder, path) = saved("guarded-epoch-transposed", Window::Count { insertions: WINDOW });
        let (mut filter, file) = open(&path).unwrap();
        let copy = path.with_extension("copy");
        for batch in 0..40 {
            let before = std::fs::read(&path).unwrap();
            let locked = file.lock(TIMEOUT).unwrap();
            let hashes: Vec<u64> = (0..90).map(|i| mix(batch << 20 | i)).collect();
            filter.engine_mut().insert(&hashes, Moments::Untimed).unwrap();
            drop(locked);
            let after = std::fs::read(&path).unwrap();
            for cut in [400, before.len() / 2, before.len() - 64] {
                std::fs::write(&copy, [&before[..cut], &after[cut..]].concat()).unwrap();
                assert!(matches!(format::open(&copy), Err(SaveError::Filter(Error::Format(_)))));
                assert!(matches!(open(&copy), Err(SaveError::Filter(Error::Format(_)))));
            }
            std::fs::write(&copy, &after).unwrap();
            assert!(format::open(&copy).is_ok() && open(&copy).is_ok());
            // Killed between the number at the front and the one at the end.
            std::fs::write(&copy, [&after[..after.len() - 64], &before[before.len() - 64..]].concat()).unwrap();
            assert!(format::open(&copy).is_ok() && open(&copy).is_ok());
        }
    }

    /// Writers are killed at every step at which the clock is recorded, just before it and just after. A process that
    /// looks or opens the file then finds every key that is in the window by the clock there. Keys that left the window
    /// do not stay, at a rate of 1 % and what killed batches leave.
    #[test]
    fn no_key_of_the_window_is_missed_if_a_writer_is_killed_at_any_step() {
        std::panic::set_hook(Box::new(|_| {}));
        let count = Window::Count { insertions: WINDOW };
        let shareable = |variant: &&Variant| planned(variant, count).is_some_and(|filter| filter.engine().shareable());
        let variants: Vec<&Variant> =
            VARIANTS.iter().filter(shareable).filter(|variant| variant.options.block_bits.is_none()).collect();
        assert_eq!(variants.len(), 5);
        for variant in variants {
            let family = variant.name();
            // In some of these windows the retained generations have room for the window and no key more.
            let windows = (WINDOW..WINDOW + 6).map(|insertions| Window::Count { insertions });
            for window in windows.chain([Window::Time { span: 10 * WINDOW, lateness: 0, capacity: WINDOW }]) {
                let (_folder, path) = saved(&family, window);
                let (mut ours, mut file) = open(&path).unwrap();
                let reader = open(&path).unwrap().0;
                let timed = matches!(window, Window::Time { .. });
                let (mut all, mut cut_off) = (Vec::new(), HashSet::<u64>::new());
                let (mut state, mut kills, mut stayed, mut queried) = (1, 0, 0, 0);
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
                        let _locked = file.lock(TIMEOUT).unwrap();
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
                        // The last key that is counted may have opened a generation, and not be inserted.
                        cut_off.extend(batch[..counted].last());
                    }
                    let latest = clock.latest().unwrap_or(0);
                    let live = |&&(_, moment): &&(u64, i64)| moment >= latest - 10 * WINDOW as i64;
                    let mut live: Vec<u64> = match timed {
                        false => all.iter().rev().take(window.length() as usize).map(|&(hash, _)| hash).collect(),
                        true => all.iter().rev().take_while(live).map(|&(hash, _)| hash).collect(),
                    };
                    live.retain(|hash| timed || !cut_off.contains(hash));
                    let missed = |filter: &AnyFilter| live.len() - held(filter, &live);
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
                    queried += gone_by.len();
                    stayed += held(&ours, &gone_by);
                }
                assert!(kills > 100, "{family} {window:?}: {kills} kills");
                assert!(stayed * 40 < queried, "{family} {window:?}: {stayed} of {queried} that left the window stay");
            }
        }
        let _ = std::panic::take_hook();
    }
}
