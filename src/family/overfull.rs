//! Whether a filter holds more keys than it was planned for, in its window or in one generation.
//!
//! Three kinds of filters can hold more: those with a window of time, those planned by *distinct* keys, and those that
//! forget nothing. Many keys do little harm if they are repeats. Therefore the rate of false positives decides, and all
//! cells are read to compute it. They are read only when keys arrive faster than planned, and if that does no harm,
//! once in a window of keys at most. Apart from that a key costs a comparison, and half a generation a copy of the
//! clock.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use super::{AnyFilter, Shape};
use crate::clock::{Clock, Window};

/// How far the rate of false positives may exceed the planned one. Chance alone makes it vary.
const TOLERANCE: f64 = 1.25;

/// Number of standard deviations of its fill by which part of a filter may err by chance.
const DEVIATIONS: f64 = 5.0;

/// Least number of keys between two checks.
const MIN_KEYS_BETWEEN_CHECKS: u64 = 64;

/// More keys than any filter receives: no check is due.
const NEVER: u64 = u64::MAX;

/// The generation of a period that has not started.
const NONE: i64 = i64::MIN;

/// Counts the keys since a generation began, or since it was first seen.
struct KeysSince {
    generation: AtomicI64,
    /// Keys inserted before.
    before: AtomicU64,
}

impl KeysSince {
    fn new() -> Self {
        Self { generation: AtomicI64::new(NONE), before: AtomicU64::new(0) }
    }

    fn start(&self, generation: i64, inserted: u64) {
        self.generation.store(generation, Relaxed);
        self.before.store(inserted, Relaxed);
    }

    fn generation(&self) -> i64 {
        self.generation.load(Relaxed)
    }

    fn count(&self, inserted: u64) -> u64 {
        inserted.saturating_sub(self.before.load(Relaxed))
    }
}

/// Compares the keys of a filter with the number planned. It is not saved with the filter.
pub struct LoadMonitor {
    /// The number of inserted keys at which the next check is due.
    next: AtomicU64,
    /// The keys of a period of about a window.
    period: KeysSince,
    /// The keys of the newest generation.
    newest: KeysSince,
    /// Keys that the filter is planned for; `None` if it cannot be overfull.
    planned: Option<u64>,
    /// Full generations of a window.
    retained: u32,
    /// Keys of a generation if they come evenly, where more crowd its cells.
    evenly: Option<u64>,
    /// The number of inserted keys from which on a burst may have the cells read again.
    next_burst: AtomicU64,
}

impl LoadMonitor {
    /// Creates the monitor of a filter that was built, opened or copied.
    pub fn new(filter: &AnyFilter) -> Self {
        let monitor = Self {
            next: AtomicU64::new(NEVER),
            period: KeysSince::new(),
            newest: KeysSince::new(),
            planned: planned(filter),
            retained: filter.engine().clock().periods(filter.shape().retained()),
            evenly: evenly(filter),
            next_burst: AtomicU64::new(0),
        };
        monitor.restart(&filter.engine().clock());
        monitor
    }

    /// Counts from the clock's present on.
    pub fn restart(&self, clock: &Clock) {
        self.next.store(self.planned.map_or(NEVER, |_| clock.inserted().saturating_add(self.step())), Relaxed);
        self.period.start(clock.latest().map_or(NONE, |_| clock.period()), clock.inserted());
        self.newest.start(NONE, clock.inserted());
        self.next_burst.store(0, Relaxed);
    }

    /// Counts from the first moment of a batch on, if the period is longer than a window.
    pub fn restart_if_expired(&self, clock: &Clock, first: Option<i64>) {
        let (Some(first), Some(_)) = (first, self.planned) else { return };
        let (start, next) = (self.period.generation(), clock.clone().at(first).period());
        self.keys_of_generation(next, clock.inserted());
        if start == NONE || next.saturating_sub(start) >= self.retained.into() {
            self.period.start(next, clock.inserted());
        }
    }

    /// Returns whether no check will be due: the filter cannot be overfull, or was reported.
    pub fn is_idle(&self) -> bool {
        self.next.load(Relaxed) == NEVER
    }

    /// Returns whether a check is due after this number of keys.
    #[inline]
    pub fn is_due(&self, inserted: u64) -> bool {
        inserted >= self.next.load(Relaxed)
    }

    /// Returns the message if a check is due and the filter is overfull.
    pub fn check(&self, filter: &AnyFilter) -> Option<String> {
        let (clock, planned) = (filter.engine().clock(), self.planned?);
        if !self.is_due(clock.inserted()) {
            return None;
        }
        self.next.store(clock.inserted().saturating_add(self.step()), Relaxed);
        let keys = self.keys_per_window(&clock);
        let expected = match clock.window() {
            // The generations of a window of time contain late keys too.
            window @ Window::Time { .. } => window.keys_in(self.retained, self.retained),
            Window::Count { .. } => planned,
        };
        let burst = self.keys_of_generation(clock.period(), clock.inserted());
        let exceeds = |evenly: u64| burst > evenly + evenly / 2 + MIN_KEYS_BETWEEN_CHECKS;
        let is_burst = self.evenly.is_some_and(exceeds);
        if keys <= expected && !(is_burst && clock.inserted() >= self.next_burst.load(Relaxed)) {
            return None;
        }
        let (rate, fpr) = (filter.false_positive_rate(), filter.fpr());
        if rate <= TOLERANCE * fpr {
            // Most keys are repeats. To read all cells takes as long as to insert a fifth of the planned keys.
            if !filter.shape().crowding().is_sampled {
                let next = if keys > expected { &self.next } else { &self.next_burst };
                next.store(clock.inserted().saturating_add(planned), Relaxed);
            }
            return None;
        }
        self.next.store(NEVER, Relaxed);
        let timed = "capacity, or lately.AgedCuckooFilter with fpr, whose memory grows with the keys";
        let (load, remedy) = match (clock.window(), self.evenly) {
            (_, Some(evenly)) if keys <= expected => {
                (format!("{evenly} keys in 1/{} of its window, where at least {burst} came", self.retained), timed)
            }
            _ if clock.endless() => {
                (format!("{planned} keys and has at least {keys}"), "capacity, or a filter with a window")
            }
            (Window::Count { insertions }, _) => {
                let distinct = filter.distinct(insertions).map_or(keys, |distinct| distinct as u64);
                (
                    format!("{planned} different keys within its window and has at least {distinct}"),
                    "number of distinct keys",
                )
            }
            (Window::Time { .. }, _) => (format!("{planned} keys within its window and has at least {keys}"), timed),
        };
        Some(message(&load, rate, fpr, remedy))
    }

    /// Returns at least how many keys a window has at the pace of the period. Starts the next period if this one is
    /// as long as a window.
    fn keys_per_window(&self, clock: &Clock) -> u64 {
        let (keys, start) = (self.period.count(clock.inserted()), self.period.generation());
        if clock.endless() {
            return clock.inserted();
        }
        let passed = clock.period().saturating_sub(start).max(0) as u64;
        if start != NONE && passed < self.retained.into() {
            return keys;
        }
        self.period.start(clock.period(), clock.inserted());
        if start == NONE { 0 } else { (u128::from(keys) * u128::from(self.retained) / u128::from(passed)) as u64 }
    }

    /// Returns the keys of a generation so far, at least: those since the first call for it.
    fn keys_of_generation(&self, generation: i64, inserted: u64) -> u64 {
        if self.newest.generation() != generation {
            self.newest.start(generation, inserted);
        }
        self.newest.count(inserted)
    }

    /// Returns the keys between two checks: a quarter of those planned, and at most half a generation.
    fn step(&self) -> u64 {
        let most = self.evenly.map_or(u64::MAX, |evenly| evenly / 2);
        (self.planned.unwrap_or(0) / 4).min(most).max(MIN_KEYS_BETWEEN_CHECKS)
    }
}

/// Returns a rate with three digits.
fn text(rate: f64) -> String {
    if rate < 1e-3 { format!("{rate:.2e}") } else { format!("{rate:.3}") }
}

/// Returns the keys that a filter is planned for, if it may receive more.
fn planned(filter: &AnyFilter) -> Option<u64> {
    let clock = filter.engine().clock();
    match filter.window() {
        _ if filter.shape().grows() => None,
        Window::Time { capacity, .. } => Some(capacity),
        Window::Count { insertions } if clock.endless() => Some(insertions),
        Window::Count { .. } => filter.shape().crowding().distinct,
    }
}

/// Returns the keys of a generation if they come evenly, where more crowd its cells. None for a window of insertions,
/// where they always do.
fn evenly(filter: &AnyFilter) -> Option<u64> {
    let (window, shape) = (filter.window(), filter.shape());
    let crowds = matches!(window, Window::Time { .. }) && shape.crowding().by_generation;
    crowds.then(|| window.keys_in(shape.retained(), 1))
}

/// Returns the message that part of a filter makes it err more often than planned, beyond chance: `cells` of its `all`
/// cells, share `fill` of which is set.
pub fn of_part(shape: &dyn Shape, window: Window, fill: f64, cells: u64, all: u64) -> Option<String> {
    let parameters = shape.parameters();
    let value = |name| parameters.iter().find(|&&(other, _)| other == name).map_or(0, |&(_, value)| value);
    let (k, fpr) = (value("k"), shape.fpr(window));
    let sure = fill - DEVIATIONS * (fill * (1.0 - fill) / cells as f64).sqrt();
    if value("equal_timers") > 1 || sure <= 0.0 || sure.powi(k as i32) <= TOLERANCE * fpr {
        return None;
    }
    // As for balls in bins: a share of the cells stays empty.
    let keys = -(1.0 - fill).max(1.0 / cells as f64).ln() * all as f64 / k as f64;
    let load = format!("{} keys and has about {keys:.0}, by the cells here", window.capacity());
    Some(message(&load, fill.powi(k as i32), fpr, "capacity"))
}

fn message(load: &str, rate: f64, fpr: f64, remedy: &str) -> String {
    format!(
        "this filter is overfull: it was planned for {load}, so its rate of false positives is {}, not {}; no key is \
         missed. Choose a larger {remedy}",
        text(rate),
        text(fpr)
    )
}
