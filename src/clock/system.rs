//! The clocks of the system: one that never steps, by which time passes, and the wall clock, by which it is named.
//!
//! Time without a caller's `at` is [`now`]: the wall clock's time when the process first read it, and then the time
//! that has passed since by a clock that counts from the start of the machine, also while the machine sleeps. So a wall
//! clock that is set back or ahead neither stops a window nor ends it. [`step`] reports that it was set.
//!
//! A file stores a [`Stamp`], with which every process of the machine computes the same time.

#![allow(unsafe_code, reason = "std has no clock that counts the time of a sleeping machine")]

use std::sync::LazyLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use xxhash_rust::xxh3::xxh3_64;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// What this process computes its time from, read once.
struct Start {
    /// Identifies this start of the machine. Where the system has no name for it, identifies this process.
    boot: u64,
    /// Whether the system has a name for it.
    named: bool,
    /// [`now`] less [`since_start`].
    anchor: i64,
    /// What a time namespace adds to the system's clock.
    namespace: i64,
}

static START: LazyLock<Start> = LazyLock::new(|| {
    let anchor = wall().saturating_sub(since_start());
    let name = std::fs::read("/proc/sys/kernel/random/boot_id").ok();
    let named = name.is_some();
    let process = || [anchor.to_le_bytes(), i64::from(std::process::id()).to_le_bytes()].concat();
    let boot = xxh3_64(&name.unwrap_or_else(process));
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    Start { boot: boot | 1, named, anchor, namespace: boottime_offset(&offsets).unwrap_or(0) }
});

/// Parses what a time namespace adds to the clock of the machine's start.
fn boottime_offset(offsets: &str) -> Option<i64> {
    let mut fields = offsets.lines().find(|line| line.starts_with("boottime"))?.split_ascii_whitespace().skip(1);
    let mut next = || fields.next()?.parse::<i64>().ok();
    Some(next()?.saturating_mul(SECOND).saturating_add(next()?))
}

/// Returns the nanoseconds since the start of the machine, those asleep included.
#[cfg(unix)]
fn since_start() -> i64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, and to nothing else. (`rustix` calls the system without the C library, so that
    // a test could not move this clock.)
    let failed = unsafe { libc::clock_gettime(CLOCK, &raw mut time) } != 0;
    #[allow(clippy::unnecessary_cast, reason = "both have 32 bits on some platforms")]
    let (seconds, nanoseconds) = (time.tv_sec as i64, time.tv_nsec as i64);
    if failed { wall() } else { seconds.saturating_mul(SECOND).saturating_add(nanoseconds) }
}

/// Returns the nanoseconds since the process first called this.
#[cfg(not(unix))]
fn since_start() -> i64 {
    static FIRST: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    i64::try_from(FIRST.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the time of a clock that never steps, in nanoseconds since the Unix epoch.
#[inline]
pub fn now() -> i64 {
    START.anchor.saturating_add(since_start())
}

/// Returns the nanoseconds since the start of the machine, equal in all processes of the machine.
pub(crate) fn machine_time() -> i64 {
    since_start().saturating_sub(START.namespace)
}

/// Returns a number of this start of the machine, equal in all its processes; 1 where the system has no name for it.
pub(crate) fn boot() -> u64 {
    if START.named { START.boot } else { 1 }
}

/// Returns the time of the wall clock, in nanoseconds since the Unix epoch.
pub fn wall() -> i64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}

/// Returns by how many nanoseconds the wall clock was set ahead, or below 0 back, since an earlier call returned it;
/// `None` if it was not. Reads the wall clock at most once a second. Of several threads one gets the step.
#[inline]
pub fn step(now: i64) -> Option<i64> {
    static NEXT: AtomicI64 = AtomicI64::new(i64::MIN);
    static REPORTED: AtomicI64 = AtomicI64::new(0);
    if now < NEXT.load(Relaxed) {
        return None;
    }
    NEXT.store(now.saturating_add(SECOND), Relaxed);
    let (ahead, before) = (wall().saturating_sub(now), REPORTED.load(Relaxed));
    let step = ahead.saturating_sub(before);
    let won = || REPORTED.compare_exchange(before, ahead, Relaxed, Relaxed).is_ok();
    (step.unsigned_abs() >= SECOND as u64 && won()).then_some(step)
}

/// What a file stores of the time of its filter: three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Identifies the start of the machine at which the file was written; 0 in a file without a time of the system.
    pub boot: u64,
    /// The filter's time less the time since that start.
    pub offset: i64,
    /// By how many seconds the wall clock was ahead of the filter's time.
    pub wall_ahead: i64,
}

impl Stamp {
    /// Returns the stamp of a filter whose time is `offset` ahead of [`now`].
    pub fn of(offset: i64) -> Self {
        let ahead = wall().saturating_sub(now()).saturating_sub(offset);
        let anchor = START.anchor.saturating_add(START.namespace);
        // Rounded up: after another start of the machine, no key leaves its window early. A clock that was never set is
        // ahead by the nanoseconds between two readings, or behind, so half a second more is added before.
        let wall_ahead = ahead.saturating_add(SECOND / 2 + SECOND - 1).div_euclid(SECOND);
        Self { boot: START.boot, offset: offset.saturating_add(anchor), wall_ahead }
    }

    /// Returns how far the time of a filter with this stamp is ahead of [`now`].
    ///
    /// After another start of the machine the wall clock shows how much time has passed: the filter continues from
    /// its `latest` time, or later.
    pub fn offset(self, latest: i64) -> i64 {
        if self.boot == START.boot {
            return self.offset.saturating_sub(START.anchor.saturating_add(START.namespace));
        }
        let time = wall().saturating_sub(self.wall_ahead.saturating_mul(SECOND)).max(latest);
        time.saturating_sub(now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_keeps_the_time_of_a_filter_and_one_of_another_machine_never_goes_back() {
        let hour = 3600 * SECOND;
        for offset in [0, hour, -hour] {
            assert_eq!(Stamp::of(offset).offset(i64::MAX), offset, "the same start of the machine");
        }
        // The wall clock was two hours ahead of the filter when the other machine stopped.
        let other = Stamp { boot: 2, offset: 0, wall_ahead: 7200 };
        assert!(other.offset(0).abs_diff(-2 * hour) < SECOND as u64);
        assert!(other.offset(now() + hour).abs_diff(hour) < SECOND as u64, "the wall clock is behind the file");
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        assert_eq!(
            boottime_offset("monotonic           0         0\nboottime      -86400  5\n"),
            Some(5 - 86_400 * SECOND)
        );
        assert_eq!(boottime_offset(""), None);
    }
}
