//! The time of a filter that threads share, whose steps end by time or by count as those of a [`Clock`].
//!
//! Calls read four numbers, side by side: the latest moment, rounded down to a *grain*; the open step; the horizon,
//! which is the step up to which a lookup counts lanes as dropped; and the moment at which one of these changes. One
//! thread at a time changes them, with the clock behind a mutex: once per step, or when a group of steps expires.
//!
//! **The end of a group is no earlier than its keys.** A call raises the latest moment to its own before it loads the
//! step. If its moment lies beyond the open period, it first turns the clock. The thread that ends a group stores the
//! next step first, and then loads the latest moment. So each call that has found the old step has raised the latest
//! moment before, or came within its period: the lesser of that moment's grain and the period is no earlier than any of
//! these calls. Meanwhile the group counts as one that never ends. So a group is live as long as one of its keys
//! belongs to the window, and the text of [`clock`](crate::clock) holds for all calls.
//!
//! **A lookup that meets an older horizon, step or table counts more lanes.** Each only rises, and a place of the table
//! holds the end of a later group once its own has expired. A lookup that meets a newer horizon takes effect after the
//! calls that raised the latest moment; one with a time of its own is then rejected if that lies too far back.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::clock::{Clock, Plan};
use crate::memory::CachePadded;

/// Grains of the time for which keys are kept, as a binary logarithm.
const GRAINS: u32 = 14;

/// The latest moment before the first one.
const NO_MOMENT: i64 = i64::MIN;

/// What a call reads of the time.
struct Now {
    /// The latest moment of any insertion, rounded down to a grain.
    latest: AtomicI64,
    /// The open step.
    step: AtomicI64,
    /// The step up to which a lookup at the latest moment counts lanes as dropped.
    horizon: AtomicI64,
    /// The moment at which there is another horizon, unless keys come.
    expiry: AtomicI64,
    /// The moment from which on an insertion turns the clock.
    due: AtomicI64,
}

/// The time of a filter, for all of its threads.
pub(super) struct TimedClock {
    plan: Plan,
    grain: i64,
    now: CachePadded<Now>,
    /// The number of insertions at which the open step has its share.
    full: AtomicU64,
    /// When groups ended, by their place in the table.
    ends: Vec<AtomicI64>,
    core: Mutex<Clock>,
}

impl TimedClock {
    /// Makes the shared form of a filter's clock.
    pub fn new(clock: &Clock, plan: Plan) -> Self {
        let now = Now {
            latest: AtomicI64::new(clock.latest().unwrap_or(NO_MOMENT)),
            step: AtomicI64::new(clock.generation()),
            horizon: AtomicI64::new(i64::MIN),
            expiry: AtomicI64::new(i64::MIN),
            due: AtomicI64::new(i64::MIN),
        };
        let timed = Self {
            plan,
            grain: (plan.retention >> GRAINS).max(1) as i64,
            now: CachePadded(now),
            full: AtomicU64::new(u64::MAX),
            ends: clock.ends().map(AtomicI64::new).collect(),
            core: Mutex::new(clock.clone()),
        };
        if let Some(latest) = clock.latest() {
            timed.turn(latest, || clock.inserted());
        }
        timed
    }

    /// Returns the latest moment, rounded down to a grain; `None` before the first one.
    #[inline(always)]
    pub fn latest(&self) -> Option<i64> {
        Some(self.now.0.latest.load(SeqCst)).filter(|&latest| latest != NO_MOMENT)
    }

    /// Returns the length of a grain, by which keys may stay longer than by the clock of one thread.
    pub fn grain(&self) -> i64 {
        self.grain
    }

    /// Returns whether an insertion at this moment has to [advance](Self::advance) the time.
    #[inline(always)]
    pub fn is_behind(&self, moment: i64) -> bool {
        moment >= self.now.0.latest.load(SeqCst).saturating_add(self.grain) || moment >= self.now.0.due.load(SeqCst)
    }

    /// Returns the open step and the horizon.
    #[inline(always)]
    pub fn step(&self) -> (i64, i64) {
        (self.now.0.step.load(SeqCst), self.now.0.horizon.load(SeqCst))
    }

    /// Advances to the moment of an insertion. `taken` reads the number of insertions, once the clock is locked.
    #[cold]
    pub fn advance(&self, moment: i64, taken: impl Fn() -> u64) {
        self.now.0.latest.fetch_max(moment.saturating_sub(moment.rem_euclid(self.grain)), SeqCst);
        if moment >= self.now.0.due.load(SeqCst) {
            self.turn(moment, taken);
        }
    }

    /// Returns whether the open step has its share after this number of insertions.
    #[inline(always)]
    pub fn is_full(&self, taken: u64) -> bool {
        taken >= self.full.load(Relaxed)
    }

    /// Ends the open step if it has its share. While another thread changes the clock, the step takes a 16th of its
    /// share more. Then calls wait: that thread may be suspended, and a burst would crowd its keys into one step.
    #[cold]
    pub fn end_full(&self, taken: impl Fn() -> u64) {
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(core)) => core.into_inner(),
            Err(TryLockError::WouldBlock) if !self.is_full(taken().saturating_sub(self.plan.share / 16)) => return,
            Err(TryLockError::WouldBlock) => self.lock(),
        };
        self.turn_core(&mut core, NO_MOMENT, taken());
    }

    /// Locks the clock, as a thread does that changes it.
    pub fn lock(&self) -> MutexGuard<'_, Clock> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, moment: i64, taken: impl Fn() -> u64) {
        self.turn_core(&mut self.lock(), moment, taken());
    }

    /// Advances the clock to a moment, and ends the open step if it is full. Publishes what has changed.
    fn turn_core(&self, core: &mut Clock, moment: i64, taken: u64) {
        let now = &self.now.0;
        core.set_inserted(taken);
        let before = core.generation();
        match core.latest() {
            None if moment == NO_MOMENT => return,
            None => {
                core.advance(moment);
                now.step.store(core.generation(), SeqCst);
            }
            Some(latest) => {
                let moment = moment.max(latest);
                let period_end = core.period_end();
                let count = match core.periods_until(moment) {
                    0 => i64::from(core.is_full()),
                    periods => periods,
                };
                let next = before.saturating_add(count);
                let ended = core.groups_between(before, next);
                // Until their end is known, they count as if they never ended.
                ended.clone().for_each(|group| self.ends[Plan::place(group)].store(i64::MAX, SeqCst));
                now.step.store(next, SeqCst);
                let end = self.last_of_grain().min(period_end.saturating_sub(1));
                ended.for_each(|group| self.ends[Plan::place(group)].store(end, SeqCst));
                core.open(count, Some(end));
                core.go_to(moment);
            }
        }
        let (horizon, expiry) = core.horizon();
        now.horizon.store(horizon, SeqCst);
        now.expiry.store(expiry, SeqCst);
        now.due.store(expiry.min(core.period_end()), SeqCst);
        // An open step that takes the rest is looked at again after another share.
        let full = core.full_at();
        self.full.store(if full > taken { full } else { taken.saturating_add(self.plan.share) }, Relaxed);
    }

    /// Returns the last moment of the latest grain.
    fn last_of_grain(&self) -> i64 {
        self.now.0.latest.load(SeqCst).saturating_add(self.grain - 1)
    }

    /// Returns the horizon of a lookup at a moment, or at the latest one if that is later.
    #[inline(always)]
    pub fn horizon_at(&self, moment: i64, latest: i64) -> i64 {
        let (horizon, moment) = (self.now.0.horizon.load(SeqCst), moment.max(latest));
        if moment < self.now.0.expiry.load(SeqCst) { horizon } else { self.horizon_later(moment, horizon) }
    }

    /// Returns the horizon of a lookup later than the latest insertion, by the table.
    #[cold]
    fn horizon_later(&self, moment: i64, horizon: i64) -> i64 {
        let open = self.now.0.step.load(SeqCst).div_euclid(self.plan.group);
        let end = |group: i64| match group < open {
            true => self.ends[Plan::place(group)].load(SeqCst),
            false => self.last_of_grain(),
        };
        let first = horizon.saturating_sub(self.plan.retained).div_euclid(self.plan.group);
        self.plan.oldest(first, open, moment, end).0.map_or(i64::MAX, |oldest| self.plan.horizon(oldest))
    }

    /// Returns the core's clock as of now, after `taken` insertions.
    pub fn to_core(&self, taken: u64) -> Clock {
        let mut core = self.lock().clone();
        core.set_inserted(taken);
        if let (Some(latest), Some(reached)) = (self.latest(), core.latest()) {
            core.go_to(latest.min(core.period_end().saturating_sub(1)).max(reached));
            core.keep_open_until(self.last_of_grain());
        }
        core
    }

    /// Returns the bytes of memory, beside the pages.
    pub fn nbytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ends)
    }
}
