//! The clock that threads share: insertions that each thread counts by itself, or the latest step of time.
//!
//! # A window of insertions
//!
//! A thread takes a *reserve* of insertions from one counter and uses them up on a stripe of its own, so that the
//! counter's cache line seldom moves between processors. A stripe belongs to one live thread, which needs no atomic
//! exchange to count there. When the thread ends, the next thread acquires what it stored. Threads without a stripe
//! take one insertion at a time.
//!
//! The counter T is therefore never behind the insertions that returned, and ahead of all insertions by at most
//! A = [`STRIPES`] (reserve - 1). Steps are planned for a window of W + A insertions. Take a key whose call found its
//! rotation open when the counter was T₀, and a lookup at T₁ - 1. Calls that had returned before the key's call are all
//! in T₀. Hence T₁ - T₀ is at most A plus the insertions that overlap or follow the key's call, itself included. With
//! at most W of these the lookup comes before T₀ + W + A, and finds the key.
//!
//! # A window of time
//!
//! [`timed`](super::timed) has the open *step*, which ends by time or by count. A call finds the step before it rotates
//! a page. It is rejected if, after it loaded the key's words, the latest moment was later than its own time by more
//! than the lateness. So no page had then rotated further than the promise allows for that time. Insertions are counted
//! as above, and the capacity is planned larger by A.

use std::cell::Cell;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use super::page::Timing;
use super::timed::TimedClock;
use crate::Error;
use crate::clock::{Clock, Moments, Window, system};
use crate::family::Shape as _;
use crate::family::lines::shape::LineShape;
use crate::memory::CachePadded;

/// Number of threads that count insertions by themselves. Further threads take one at a time.
const STRIPES: usize = u32::BITS as usize;
/// Greatest number of insertions that a thread takes at a time.
const MAX_RESERVE: u64 = 64;
/// Insertions of the window for each one by which the clock may be ahead. Short windows have small reserves.
const AHEAD_SHARE: u64 = 256;
/// The caller's time of a call that is never too late.
pub(super) const NEVER_LATE: i64 = i64::MAX;

/// Returns how many insertions a thread takes at a time, for a window of this length.
pub(super) fn reserve(insertions: u64) -> u64 {
    (insertions / (STRIPES as u64 * AHEAD_SHARE)).clamp(1, MAX_RESERVE)
}

/// Returns the greatest number of insertions by which a clock with reserves of this size may be ahead of those that
/// have returned.
pub(super) fn most_ahead(reserve: u64) -> u64 {
    STRIPES as u64 * (reserve - 1)
}

/// The clock of a filter, for all of its threads. Its pages rotate in turn, one with each step.
pub(super) struct SharedClock {
    /// The window that steps are planned for.
    window: Window,
    /// Full generations that the filter retains: steps of its pages.
    retained: u32,
    /// Insertions of a step. Calls in a window of time have the number of the step itself, so there it is 1.
    length: i64,
    pages: i64,
    /// Time clock: how far ahead of the system's clock a key may lie, in nanoseconds.
    max_ahead: Option<u64>,
    /// How many insertions a thread takes at a time.
    reserve: u64,
    /// The insertions for which the window is planned longer, or the capacity larger, than requested.
    margin: u64,
    /// Insertions that threads have taken.
    taken: CachePadded<AtomicU64>,
    /// Insertions taken and not used yet, by threads.
    stripes: Box<[CachePadded<AtomicU64>; STRIPES]>,
    /// Time clock: the time.
    timed: Option<Box<TimedClock>>,
    /// Time clock: whether a key has come without a time of its own.
    by_system: AtomicBool,
    /// Time clock: how far the time of such keys is ahead of [`system::now`], in nanoseconds.
    offset: AtomicI64,
}

impl SharedClock {
    /// Makes the shared form of a filter's clock, which retains `retained` steps of `pages` pages.
    pub fn new(clock: &Clock, shape: &LineShape, reserve: u64, margin: u64) -> Result<Self, Error> {
        let (window, retained, pages) = (clock.window(), shape.retained(), shape.pages);
        // The state of a page has room for 2^62 rotations.
        if pages == 1 && matches!(window, Window::Time { span, .. } if span < 64) {
            return Err(Error::value("window must be longer than some nanoseconds for a ConcurrentFilter"));
        }
        let timed = clock.plan().map(|plan| Box::new(TimedClock::new(clock, plan)));
        let length = if timed.is_some() { 1 } else { window.generation(retained) as i64 };
        Ok(Self {
            window,
            retained,
            length,
            pages: pages as i64,
            max_ahead: clock.max_ahead(),
            reserve,
            margin,
            taken: CachePadded(AtomicU64::new(clock.inserted())),
            stripes: Box::new([const { CachePadded(AtomicU64::new(0)) }; STRIPES]),
            timed,
            by_system: AtomicBool::new(clock.by_system()),
            offset: AtomicI64::new(clock.time_at(0)),
        })
    }

    /// Returns the window that steps are planned for.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the window that the caller requested.
    pub fn requested(&self) -> Window {
        match self.window {
            Window::Count { insertions } => Window::Count { insertions: insertions - self.margin },
            Window::Time { span, lateness, capacity } => {
                Window::Time { span, lateness, capacity: capacity - self.margin }
            }
        }
    }

    /// Time clock: returns the nanoseconds by which keys may stay longer than by the clock of one thread.
    pub fn grain(&self) -> u64 {
        self.timed.as_ref().map_or(0, |timed| timed.grain().unsigned_abs())
    }

    /// Returns the clock of an empty filter of the same request.
    pub fn cleared(&self, shape: &LineShape) -> Result<Self, Error> {
        let mut clock = shape.clock(self.window);
        clock.set_max_ahead(self.max_ahead);
        Self::new(&clock, shape, self.reserve, self.margin)
    }

    /// Time clock: locks the time, as a thread does that changes it.
    pub fn lock(&self) -> Option<MutexGuard<'_, Clock>> {
        self.timed.as_ref().map(|timed| timed.lock())
    }

    /// Returns the insertions that threads have taken: those so far, and those by which the clock is ahead.
    pub fn taken(&self) -> u64 {
        self.taken.0.load(Relaxed)
    }

    /// Returns the insertions so far: taken, and not left on a stripe.
    pub fn inserted(&self) -> u64 {
        let left = |stripe: &CachePadded<AtomicU64>| stripe.0.load(Relaxed);
        self.taken().saturating_sub(self.stripes.iter().map(left).sum())
    }

    /// Returns the core's clock as of now. It counts one insertion more if `opened` returns that pages have rotated
    /// for the next one.
    pub fn to_core(&self, opened: impl Fn(&Clock) -> bool) -> Clock {
        let mut clock = match &self.timed {
            Some(timed) => timed.to_core(self.taken()),
            None => {
                let (clock, taken) = (Clock::new(self.window, self.retained), self.taken());
                let clock = clock.resumed(taken, None);
                if opened(&clock) { clock.resumed(taken + 1, None) } else { clock }
            }
        };
        clock.set_max_ahead(self.max_ahead);
        clock.with_system(self.by_system.load(SeqCst), self.offset.load(Relaxed))
    }

    /// Time clock: returns the latest moment, rounded down to a grain.
    #[inline(always)]
    fn latest(&self) -> Option<i64> {
        self.timed.as_ref().and_then(|timed| timed.latest())
    }

    /// Counts an insertion.
    #[inline(always)]
    pub fn count(&self) {
        let Some(stripe) = self.stripes.get(stripe()) else {
            return self.take(1);
        };
        // A load and a store, since no other thread has this stripe: an atomic operation costs 5 ns.
        match stripe.0.load(Relaxed) {
            0 => {
                self.take(self.reserve);
                stripe.0.store(self.reserve - 1, Relaxed);
            }
            left => stripe.0.store(left - 1, Relaxed),
        }
    }

    /// Takes insertions from the counter.
    #[inline(always)]
    fn take(&self, insertions: u64) {
        let taken = self.taken.0.fetch_add(insertions, AcqRel) + insertions;
        if let Some(timed) = &self.timed
            && timed.is_full(taken)
        {
            timed.end_full(|| self.taken());
        }
    }

    /// Advances to the moment of an insertion. Returns the open step, in which the insertion takes effect, and the
    /// horizon of lookups; zeros in a window of insertions.
    #[inline(always)]
    pub fn advance(&self, moment: i64, rejecting: bool) -> Result<(i64, i64), Error> {
        let Some(timed) = &self.timed else { return Ok((0, 0)) };
        if timed.is_behind(moment) {
            self.advance_time(timed, moment, rejecting)?;
        }
        Ok(timed.step())
    }

    #[cold]
    fn advance_time(&self, timed: &TimedClock, moment: i64, rejecting: bool) -> Result<(), Error> {
        if rejecting {
            self.check(Moments::At(moment))?;
        }
        timed.advance(moment, || self.taken());
        Ok(())
    }

    /// Rejects times of insertions that are late or too far ahead, and all times where the window counts insertions.
    pub fn check(&self, moments: Moments<'_>) -> Result<(), Error> {
        self.to_core(|_| false).check_new(moments).map(|_| ())
    }

    /// Returns the moment of an insertion without a time of its own.
    #[inline(always)]
    pub fn now_to_write(&self) -> i64 {
        if !self.by_system.load(Relaxed) {
            self.by_system.store(true, SeqCst);
        }
        let now = self.now();
        if self.latest().is_some_and(|latest| now < latest) { self.continue_at(now) } else { now }
    }

    /// Returns the moment of an insertion whose time lies before the latest one, as [`Clock::continue_at`] does.
    #[cold]
    fn continue_at(&self, now: i64) -> i64 {
        let mut clock = self.to_core(|_| false);
        let offset = self.offset.load(Relaxed);
        clock.continue_at(Moments::Now(now.saturating_sub(offset)));
        self.offset.fetch_max(clock.time_at(0), Relaxed);
        self.now()
    }

    /// Returns the filter's time now.
    #[inline(always)]
    fn now(&self) -> i64 {
        system::now().saturating_add(self.offset.load(Relaxed))
    }

    /// Returns the moment of a lookup without a time of its own: the latest one, if all insertions had times.
    #[inline(always)]
    pub fn now_to_read(&self) -> i64 {
        if self.by_system.load(Relaxed) { self.now() } else { i64::MIN }
    }

    /// Returns the bytes of memory, beside the pages.
    pub fn nbytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.stripes) + self.timed.as_ref().map_or(0, |timed| timed.nbytes())
    }

    /// Returns the horizon of a lookup at a moment; `None` where nothing has been inserted into a window of time.
    #[inline(always)]
    pub fn horizon_at(&self, moment: i64) -> Option<i64> {
        let timed = self.timed.as_ref()?;
        Some(timed.horizon_at(moment, timed.latest()?))
    }

    /// Returns the error of a caller's time that is rejected: it is too late, or the window counts insertions.
    #[cold]
    pub fn rejection(&self, moment: i64) -> Error {
        match self.to_core(|_| false).check(Moments::At(moment), false) {
            Err(error) => error,
            Ok(()) => Error::value("at lies before the latest time seen by more than the lateness"),
        }
    }

    /// Returns when a step begins.
    #[inline(always)]
    fn begin_of(&self, step: i64) -> i64 {
        step.saturating_mul(self.length)
    }

    /// Returns the rotation of a page at this moment, or after this number of insertions. Page p begins rotation r with
    /// step r P + p.
    fn rotation_at(&self, page: i64, now: i64) -> i64 {
        rotation_in(now.div_euclid(self.length), page, self.pages)
    }
}

/// Returns the rotation of a page in a step.
#[inline(always)]
pub(super) fn rotation_in(step: i64, page: i64, pages: i64) -> i64 {
    // A step before the first page's is one of times before 1970. No clock has one of the first 2^27.
    step.saturating_sub(page).div_euclid(pages)
}

/// One call for one key of a page, as the page sees the clock.
pub(super) struct Call<'a> {
    pub clock: &'a SharedClock,
    pub page: i64,
    /// Time clock: the step in which the call takes effect.
    pub step: i64,
    /// Time clock: the step up to which a lookup counts lanes as dropped.
    pub horizon: i64,
    /// Time clock: the caller's time, which may be too late, or [`NEVER_LATE`].
    pub given: i64,
}

/// A time that lies further back than the lateness.
pub(super) struct TooLate;

impl Call<'_> {
    #[inline(always)]
    fn now(&self, before: u64) -> i64 {
        match self.clock.window {
            Window::Count { .. } => self.clock.taken().saturating_sub(before) as i64,
            Window::Time { .. } => self.step,
        }
    }
}

impl Timing for Call<'_> {
    type Rejection = TooLate;

    #[inline(always)]
    fn end_of(&self, rotation: i64) -> i64 {
        self.clock.begin_of((rotation + 1).saturating_mul(self.clock.pages).saturating_add(self.page))
    }

    #[inline(always)]
    fn is_due(&self, end: i64) -> bool {
        // An end beyond all moments never comes.
        self.now(0) >= end && end != i64::MAX
    }

    fn rotation_to_write(&self) -> i64 {
        self.clock.rotation_at(self.page, self.now(0))
    }

    #[inline(always)]
    fn rotation_to_read(&self) -> i64 {
        match self.clock.timed {
            // The usual case: as long as no burst ends all generations by count, pages are behind.
            Some(_) => rotation_in(self.horizon, self.page, self.clock.pages),
            None => self.clock.rotation_at(self.page, self.now(1)),
        }
    }

    #[inline(always)]
    fn is_behind(&self, end: i64) -> bool {
        if self.clock.timed.is_some() { self.horizon >= end } else { self.is_due(end) }
    }

    #[inline(always)]
    fn admit(&self) -> Result<(), TooLate> {
        let Window::Time { lateness, .. } = self.clock.window else { return Ok(()) };
        match self.clock.latest() {
            Some(latest) if self.given < latest.saturating_sub_unsigned(lateness) => Err(TooLate),
            _ => Ok(()),
        }
    }
}

/// The stripes that live threads have, a bit each.
static STRIPES_TAKEN: AtomicU32 = AtomicU32::new(0);

/// The stripe of a thread, which it returns when it ends.
struct OwnStripe(usize);

impl OwnStripe {
    /// Takes a stripe; [`STRIPES`], which is none, if all are taken.
    fn take() -> Self {
        let mut taken = STRIPES_TAKEN.load(Relaxed);
        while taken != u32::MAX {
            let free = taken.trailing_ones();
            // Acquires what the last thread of this stripe has stored.
            match STRIPES_TAKEN.compare_exchange(taken, taken | 1 << free, AcqRel, Relaxed) {
                Ok(_) => return Self(free as usize),
                Err(now) => taken = now,
            }
        }
        Self(STRIPES)
    }
}

impl Drop for OwnStripe {
    fn drop(&mut self) {
        STRIPE.set(STRIPES);
        if self.0 < STRIPES {
            STRIPES_TAKEN.fetch_and(!(1 << self.0), Release);
        }
    }
}

/// A stripe that the thread has not taken yet.
const NOT_YET: usize = usize::MAX;

// Two variables, because one that is dropped takes longer to read.
thread_local!(static STRIPE: Cell<usize> = const { Cell::new(NOT_YET) });
thread_local!(static OWN_STRIPE: OwnStripe = OwnStripe::take());

/// Returns the stripe of this thread; [`STRIPES`] if it has none.
#[inline(always)]
fn stripe() -> usize {
    let stripe = STRIPE.get();
    if stripe == NOT_YET { take_stripe() } else { stripe }
}

#[cold]
fn take_stripe() -> usize {
    let stripe = OWN_STRIPE.try_with(|own| own.0).unwrap_or(STRIPES);
    STRIPE.set(stripe);
    stripe
}
