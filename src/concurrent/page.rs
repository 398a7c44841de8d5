//! One page that threads share: the decision which thread is first with a key, and the rotation.
//!
//! This file needs nothing of the crate, because the loom model in `tests/model` compiles it with loom's atomics.
//!
//! # Guarantees
//!
//! A page has a *state*: its rotation, and whether a thread rotates it at this moment. Rotation r + 1 clears the lane
//! that rotation r - LANES + 1 wrote first. A key is held if k lanes in a row, by age, have all of its bits.
//!
//! **Lookups only load**: the state, then the words of the key's lines. A page whose rotation is due is read as if it
//! had rotated: its oldest lanes do not count. In a window of time a lookup drops lanes that only keys of before the
//! window have written, too. So a thread may find a key that another misses: it took effect earlier. A lookup never
//! waits.
//!
//! **No key of the window is missed.** A call that inserts loads the state again after its writes. It returns only if
//! the state is still the one by which it wrote, and no rotation is due. Until then no lane was cleared for a later
//! rotation, because a clearing releases what the write acquires, and follows a change of the state. So the bits lie in
//! the k lanes of rotation r, as if one thread had written them. Rotation r + l + 1 is the first to clear one of these.
//! A write of a thread that is late only adds bits.
//!
//! **At most one thread is first.** A thread that misses a key writes, in an order that all threads share (oldest lane
//! first, then by line), to every lane that lacked a bit when the thread loaded it. The last of these writes decides:
//! the thread is first if that write changed something. Let w be the last lane that lacks a bit before any thread with
//! this key writes. Exactly one thread changes w first. That thread saw w incomplete, and all later lanes complete, so
//! w is the lane it decides by, and it is first. Another thread that decides by w changes nothing there. A thread that
//! loaded w complete loaded it after the change, hence after all earlier lanes were written: whatever lane it decides
//! by, its write comes after those, and changes nothing.
//!
//! **A rotation between** the load and the second look sends a thread that was first into the lanes of the new
//! rotation. There only lanes younger than the old rotation decide, by the same rule: a lane that threads of both
//! rotations write decides nothing twice. All accesses to states and words are sequentially consistent. So if a thread
//! still finds the old state after its writes, a thread that finds the new one sees those writes.
//!
//! **At least one thread is first**, but in two cases. The bits of other keys may complete the key's lanes meanwhile:
//! that is a false positive, within the rate. And a thread may sleep for a whole window between two instructions, and
//! then meet bits of its own that are still there: then no thread is first, as if it were a false positive.
//!
//! Threads wait only for a page that rotates: one thread clears 64 lines then.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, fence};

/// Number of 64-bit words of a line. The model has fewer, because loom tries all orders of what happens to them.
pub const WORDS: usize = if cfg!(loom) { 4 } else { 8 };

/// One cache line of a page.
#[repr(C, align(64))]
pub struct AtomicLine(pub [AtomicU64; WORDS]);

/// The state of a page: twice its rotation, and one more while it rotates.
///
/// States lie side by side, eight to a cache line, because they change once per generation and every call reads one.
pub struct State(pub AtomicU64);

/// The rotation of a page that no key has met. Every other rotation is later.
pub const NEVER: i64 = i64::MIN >> 1;

/// Where the bits of one key lie: lines of its page, and its bits in all lanes of each.
pub struct Probe<const LINES: usize> {
    /// Places of the lines within the page.
    pub lines: [usize; LINES],
    /// The bits in each line.
    pub masks: [[u64; WORDS]; LINES],
}

/// The words of a key's lines, as a thread loaded them.
type Loaded<const LINES: usize> = [[u64; WORDS]; LINES];

/// When a page rotates, as one call sees it. Methods may read a clock that goes on between two calls.
pub trait Timing {
    /// Why a call is rejected.
    type Rejection;

    /// Returns the end of a rotation of the page, for [`is_due`](Self::is_due).
    fn end_of(&self, rotation: i64) -> i64;

    /// Returns whether a page must rotate before an insertion, if its rotation has this end. A lookup may come before.
    fn is_due(&self, end: i64) -> bool;

    /// Returns whether a lookup counts fewer lanes than all, of a page whose rotation has this end.
    #[inline(always)]
    fn is_behind(&self, end: i64) -> bool {
        self.is_due(end)
    }

    /// Returns the rotation into which an insertion writes.
    fn rotation_to_write(&self) -> i64;

    /// Returns the rotation by which a lookup counts ages: lanes that it would have cleared do not count.
    fn rotation_to_read(&self) -> i64;

    /// Rejects a call that came too late, because what it loaded may lack keys of the window.
    fn admit(&self) -> Result<(), Self::Rejection>;
}

/// A page: its state and its lines of `LANES` lanes each. An insertion writes `k` of the lanes.
#[derive(Clone, Copy)]
pub struct Page<'a, const LANES: usize> {
    /// The rotation.
    pub state: &'a State,
    /// The lines.
    pub lines: &'a [AtomicLine],
    /// Number of lanes that an insertion writes, and of lanes in a row that a held key has.
    pub k: u32,
}

impl<const LANES: usize> Page<'_, LANES> {
    /// All lanes, a bit each.
    const ALL: u32 = u32::MAX >> (32 - LANES);

    /// Returns whether the page holds a key.
    #[inline(always)]
    pub fn contains<const LINES: usize, T: Timing>(
        &self,
        probe: &Probe<LINES>,
        timing: &T,
    ) -> Result<bool, T::Rejection> {
        let rotation = self.rotation();
        let complete = Self::complete(probe, &self.load(probe), rotation);
        let behind = timing.is_behind(timing.end_of(rotation));
        let held = self.holds(if behind { Self::counted(complete, rotation, timing) } else { complete });
        timing.admit()?;
        Ok(held)
    }

    /// Returns whether the page held a key; inserts it if not. Of threads racing with a key exactly one gets `false`.
    #[inline(always)]
    pub fn seen<const LINES: usize, T: Timing>(&self, probe: &Probe<LINES>, timing: &T) -> Result<bool, T::Rejection> {
        let rotation = self.rotation();
        let loaded = self.load(probe);
        let complete = Self::complete(probe, &loaded, rotation);
        let end = timing.end_of(rotation);
        let held = self.holds(match timing.is_behind(end) {
            true => Self::counted(complete, rotation, timing),
            false => complete,
        });
        timing.admit()?;
        if held {
            return Ok(true);
        }
        if timing.is_due(end) {
            return Ok(!self.is_first_after_rotation(probe, timing, NEVER));
        }
        let first = self.write(probe, &loaded, rotation, self.k);
        if !first || self.is_open(rotation, end, timing) {
            return Ok(!first);
        }
        Ok(!self.is_first_after_rotation(probe, timing, rotation))
    }

    /// Inserts a key that a thread has missed, once the page has rotated. Returns whether the thread is first with it.
    /// Lanes up to `decided_until`, if any, have decided that it is.
    #[cold]
    fn is_first_after_rotation<const LINES: usize>(
        &self,
        probe: &Probe<LINES>,
        timing: &impl Timing,
        mut decided_until: i64,
    ) -> bool {
        loop {
            let rotation = self.wait_for_rotation(timing);
            let loaded = self.load(probe);
            let complete = Self::complete(probe, &loaded, rotation);
            if decided_until == NEVER && self.holds(Self::counted(complete, rotation, timing)) {
                return false;
            }
            let deciding = u32::try_from(rotation.saturating_sub(decided_until)).unwrap_or(u32::MAX);
            let first = self.write(probe, &loaded, rotation, deciding);
            if !first || self.is_open(rotation, timing.end_of(rotation), timing) {
                return first;
            }
            decided_until = rotation;
        }
    }

    /// Inserts a key, whether the page holds it or not.
    #[inline(always)]
    pub fn insert<const LINES: usize, T: Timing>(&self, probe: &Probe<LINES>, timing: &T) -> Result<(), T::Rejection> {
        timing.admit()?;
        loop {
            let rotation = self.wait_for_rotation(timing);
            self.write(probe, &self.load(probe), rotation, self.k);
            if self.is_open(rotation, timing.end_of(rotation), timing) {
                return Ok(());
            }
        }
    }

    /// Copies the words of all lines in one rotation, and returns that rotation.
    #[cfg(not(loom))]
    pub fn copy(&self, words: &mut [u64]) -> i64 {
        let mut spins = 0;
        loop {
            let before = self.state.0.load(SeqCst);
            for (word, atomic) in words.iter_mut().zip(self.lines.iter().flat_map(|line| &line.0)) {
                *word = atomic.load(SeqCst);
            }
            if before & 1 == 0 && self.state.0.load(SeqCst) == before {
                return before as i64 >> 1;
            }
            wait(&mut spins);
        }
    }

    /// Returns the rotation, or the one before while the page rotates.
    #[inline(always)]
    fn rotation(&self) -> i64 {
        let state = self.state.0.load(SeqCst);
        #[cfg(loom)]
        fence(SeqCst);
        state as i64 >> 1
    }

    /// Returns whether the page is in this rotation, which has this end, no thread rotates it, and no rotation is due.
    #[inline(always)]
    fn is_open(&self, rotation: i64, end: i64, timing: &impl Timing) -> bool {
        #[cfg(loom)]
        fence(SeqCst);
        self.state.0.load(SeqCst) == (rotation << 1) as u64 && !timing.is_due(end)
    }

    /// Returns the words of a key's lines.
    #[inline(always)]
    fn load<const LINES: usize>(&self, probe: &Probe<LINES>) -> Loaded<LINES> {
        // `from_fn` was compiled as a call of its own, which took a third of the time; so these are loops.
        let mut loaded = [[0; WORDS]; LINES];
        for (loaded, &line) in loaded.iter_mut().zip(&probe.lines) {
            for (loaded, word) in loaded.iter_mut().zip(&self.lines[line].0) {
                *loaded = word.load(SeqCst);
            }
        }
        loaded
    }

    /// Returns the lanes that have all bits of the key in all its lines, by age from the newest of a rotation.
    #[inline(always)]
    fn complete<const LINES: usize>(probe: &Probe<LINES>, loaded: &Loaded<LINES>, rotation: i64) -> u32 {
        let mut missing = [0; WORDS];
        for (mask, loaded) in probe.masks.iter().zip(loaded) {
            for i in 0..WORDS {
                missing[i] |= mask[i] & !loaded[i];
            }
        }
        let mut complete = 0;
        for lane in 0..LANES {
            let (word, bits) = lane_bits::<LANES>(lane);
            complete |= u32::from(missing[word] & bits == 0) << lane;
        }
        // Repeated as often as they fit, so that one rotation of the word rotates each copy.
        (complete * (u32::MAX / Self::ALL)).rotate_right(slot::<LANES>(rotation) as u32) & Self::ALL
    }

    /// Returns the complete lanes that a lookup counts, where the page is behind the clock.
    fn counted(complete: u32, rotation: i64, timing: &impl Timing) -> u32 {
        let behind = timing.rotation_to_read().saturating_sub(rotation).max(0);
        complete & Self::ALL.unbounded_shr(u32::try_from(behind).unwrap_or(u32::MAX))
    }

    /// Returns whether k lanes in a row are complete.
    // Its callers repeat how it follows `complete` and `counted`: with one function for all three, `seen` of a repeat
    // took a third longer.
    #[inline(always)]
    fn holds(&self, mut complete: u32) -> bool {
        // No loop for the k that the planner takes.
        if self.k > 1 {
            complete &= complete >> 1;
        }
        for _ in 2..self.k {
            complete &= complete >> 1;
        }
        complete != 0
    }

    /// Writes the key's bits into the k newest lanes of a rotation, where they were missing. Returns whether this
    /// thread is first with the key by the newest lanes, as many as `deciding`.
    #[inline(always)]
    fn write<const LINES: usize>(
        &self,
        probe: &Probe<LINES>,
        loaded: &Loaded<LINES>,
        rotation: i64,
        deciding: u32,
    ) -> bool {
        let mut first = false;
        for age in (0..self.k).rev() {
            let (word, bits) = lane_bits::<LANES>(slot::<LANES>(rotation - i64::from(age)));
            for (t, loaded) in loaded.iter().enumerate() {
                let mask = probe.masks[t][word] & bits;
                if loaded[word] & mask != mask {
                    let before = self.lines[probe.lines[t]].0[word].fetch_or(mask, SeqCst);
                    if age < deciding {
                        first = before & mask != mask;
                    }
                }
            }
        }
        first
    }

    /// Returns the rotation for an insertion, of a page that was in this one.
    #[inline(always)]
    fn rotate_if_due(&self, rotation: i64, timing: &impl Timing) -> i64 {
        if timing.is_due(timing.end_of(rotation)) { self.rotate_to(timing.rotation_to_write()) } else { rotation }
    }

    /// Returns the rotation for an insertion, when no thread rotates the page.
    #[inline(always)]
    fn wait_for_rotation(&self, timing: &impl Timing) -> i64 {
        let mut spins = 0;
        loop {
            let state = self.state.0.load(SeqCst);
            if state & 1 == 0 {
                return self.rotate_if_due(state as i64 >> 1, timing);
            }
            wait(&mut spins);
        }
    }

    /// Rotates the page until it is in this rotation, or a later one, which it returns.
    #[cold]
    fn rotate_to(&self, due: i64) -> i64 {
        let mut spins = 0;
        loop {
            let before = self.state.0.load(SeqCst);
            let rotation = before as i64 >> 1;
            if rotation >= due {
                return rotation;
            }
            if before & 1 == 0 && self.state.0.compare_exchange(before, before | 1, SeqCst, Relaxed).is_ok() {
                self.clear(rotation.max(due - LANES as i64), due);
                self.state.0.store((due << 1) as u64, SeqCst);
                return due;
            }
            wait(&mut spins);
        }
    }

    /// Clears the lanes that the rotations after `from`, up to `to`, write first.
    fn clear(&self, from: i64, to: i64) {
        for rotation in from + 1..=to {
            let (word, bits) = lane_bits::<LANES>(slot::<LANES>(rotation));
            for line in self.lines {
                if bits == u64::MAX {
                    line.0[word].store(0, Release);
                } else {
                    line.0[word].fetch_and(!bits, Release);
                }
            }
        }
    }
}

/// Returns the lane that a rotation writes first. Later rotations have lower lanes, as in the line layout.
#[inline(always)]
pub fn slot<const LANES: usize>(rotation: i64) -> usize {
    (rotation.wrapping_neg() & (LANES as i64 - 1)) as usize
}

/// Returns the word of a line that contains a lane, and the bits of the lane there.
#[inline(always)]
pub const fn lane_bits<const LANES: usize>(lane: usize) -> (usize, u64) {
    let (per_word, width) = (LANES / WORDS, 64 * WORDS / LANES);
    (lane / per_word, u64::MAX >> (64 - width) << (lane % per_word * width))
}

/// Waits a moment for the thread that rotates the page.
#[inline(never)]
fn wait(spins: &mut u32) {
    *spins += 1;
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    if *spins < 50 { std::hint::spin_loop() } else { std::thread::yield_now() }
}
