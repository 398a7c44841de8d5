//! Locks of files: waiting for one with a deadline, and the process that has it.

use std::fs::{File, Metadata, TryLockError};
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Default time for which a call waits for another process. A block of keys takes some 0.1 ms; this is for clearing a
/// large filter on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// First pause between two attempts, and the longest, to which pauses double.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// Time between two checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Attempts an operation until it succeeds or `timeout` has passed, with growing pauses; returns `None` if it has.
/// No lock may be held between two attempts. `check` is called at intervals; its error ends the wait.
pub fn wait<T, E>(
    timeout: Duration,
    check: &mut dyn FnMut() -> Result<(), E>,
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    if let Some(done) = attempt()? {
        return Ok(Some(done));
    }
    let (began, mut checked, [mut pause, longest]) = (Instant::now(), Instant::now(), PAUSES);
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
        if checked.elapsed() >= CHECK_INTERVAL {
            check()?;
            checked = Instant::now();
        }
    }
}

/// Waits for the lock of an open file; closing the file releases the lock.
pub(crate) fn lock(file: &File, timeout: Duration, check: &mut dyn FnMut() -> IoResult<()>) -> IoResult<()> {
    let attempt = || match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    };
    wait(timeout, check, attempt)?.ok_or_else(|| timed_out(file, timeout))
}

/// Returns the error of a call that did not get the lock of a file in time.
pub(crate) fn timed_out(file: &File, timeout: Duration) -> IoError {
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
/// The list is read in parts, and a line may fall between two while other processes take and release locks. So parts
/// are large, and the list is read a few times where the lock is missing.
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

/// The device and the number of a file. They stay the same whatever its names.
#[derive(PartialEq)]
pub(crate) struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    /// The identity of no file.
    pub const NONE: Self = Self { device: u64::MAX, inode: u64::MAX };

    /// Returns the identity of the file that the path leads to.
    pub fn at(path: &Path) -> IoResult<Self> {
        Ok(Self::of(&std::fs::metadata(path)?))
    }

    /// Returns the identity of an open file.
    #[cfg(unix)]
    pub fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self { device: file.dev(), inode: file.ino() }
    }

    /// On this system a file that is open and mapped is neither replaced nor removed.
    #[cfg(not(unix))]
    pub fn of(_: &Metadata) -> Self {
        Self { device: 0, inode: 0 }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

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
}
