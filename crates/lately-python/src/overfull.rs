//! Notices when a filter holds more keys than it is planned for, and warns once.
//!
//! Only windows of time can hold more, windows of insertions planned by their *distinct* keys, and filters that forget
//! nothing. A number of keys alone says little, since repeats may take no space: what counts is the rate of false
//! positives, which all the cells tell. They are read only when keys have come faster than planned, and where these are
//! repeats, no more often than once in four windows' keys. Otherwise a key costs a comparison, and a quarter of a
//! window's keys a look at the clock.

use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use pyo3::create_exception;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use lately::clock::{Clock, Window};
use lately::engine::Aged;
use lately::filter;
use lately::layout::quotient::Quotient;
use lately::shape::quotient;

create_exception!(
    lately,
    OverfullWarning,
    PyUserWarning,
    "A filter holds more keys than it is planned for, and errs more often; it still misses none of its window.\n\n\
     Each filter warns once, with its numbers, and again after `clear`; a copy is a filter of its own. The call that \
     warns has done its work. If the warning is made an error, its keys are inserted all the same, and the answers to \
     them are the attribute ``answers`` of the exception.\n\n\
     Take a larger `capacity`, or a filter whose memory follows the keys: `TimeLimitedBloomFilter`."
);

/// How much more often than planned a filter may err before it warns: chance alone makes some difference.
const TOLERANCE: f64 = 1.25;

/// Fewest keys between two looks.
const FEWEST: u64 = 64;

/// More keys than any filter takes.
const NEVER: u64 = u64::MAX;

/// No generation has this number.
const NONE: i64 = i64::MIN;

/// What the keys of a filter are counted by. It belongs to the Python object, and is not saved.
pub struct LoadMonitor {
    /// How many keys the filter has to have taken before it is looked at again.
    next: AtomicU64,
    /// Where the stretch of keys begins that is looked at, a window or so: its generation, and how many keys were
    /// before it.
    generation: AtomicI64,
    before: AtomicU64,
    /// Keys it is planned for; none if it cannot be overfull.
    planned: Option<u64>,
    /// Full generations of a window.
    kept: u32,
    /// Whether what there is to say is kept, for whoever asks, instead of a warning.
    aside: AtomicBool,
    said: OnceLock<String>,
}

impl LoadMonitor {
    /// The watch of a filter that is new, or has been opened or copied.
    pub fn new(filter: &filter::AnyFilter) -> Self {
        let watch = Self {
            next: AtomicU64::new(NEVER),
            generation: AtomicI64::new(NONE),
            before: AtomicU64::new(0),
            planned: planned(filter),
            kept: filter.shape().retained(),
            aside: AtomicBool::new(false),
            said: OnceLock::new(),
        };
        watch.begin_anew(&filter.engine().clock());
        watch
    }

    /// Counts from here.
    pub fn begin_anew(&self, clock: &Clock) {
        self.next.store(self.planned.map_or(NEVER, |_| clock.inserted().saturating_add(self.step())), Relaxed);
        self.begin(clock.latest().map_or(NONE, |_| clock.generation()), clock.inserted());
    }

    /// Counts the keys of a batch from its first moment on, if the keys before are older than a window.
    pub fn begin_if_old(&self, clock: &Clock, first: Option<i64>) {
        let (Some(first), Some(_)) = (first, self.planned) else { return };
        let (begun, next) = (self.generation.load(Relaxed), clock.at(first).generation());
        if begun == NONE || next.saturating_sub(begun) >= self.kept.into() {
            self.begin(next, clock.inserted());
        }
    }

    /// From now on keeps what there is to say; gives it once there is.
    pub fn aside(&self) -> Option<String> {
        self.aside.store(true, Relaxed);
        self.said.get().cloned()
    }

    /// Says what was found.
    pub fn say(&self, py: Python<'_>, message: String) -> PyResult<()> {
        if !self.aside.load(Relaxed) {
            return warn(py, message);
        }
        // Said before `clear`, it still holds.
        self.said.get_or_init(|| message);
        Ok(())
    }

    /// Whether there is nothing to look for: the filter cannot be overfull, or has said that it is.
    pub fn is_over(&self) -> bool {
        self.next.load(Relaxed) == NEVER
    }

    /// Whether to look at a filter that has taken this number of keys.
    #[inline]
    pub fn is_due(&self, inserted: u64) -> bool {
        inserted >= self.next.load(Relaxed)
    }

    /// Looks at the filter. What to say, if it is overfull.
    pub fn look(&self, filter: &filter::AnyFilter) -> Option<String> {
        let (clock, planned) = (filter.engine().clock(), self.planned?);
        if !self.is_due(clock.inserted()) {
            return None;
        }
        self.next.store(clock.inserted().saturating_add(self.step()), Relaxed);
        let keys = match filter.engine_as() {
            Some(Aged::<Quotient> { layout, words, clock }) => {
                layout.distinct(words.as_slice(), clock, clock.window().length()) as u64
            }
            None => self.keys(&clock),
        };
        let expected = match clock.window() {
            // Its generations cover the late keys too.
            window @ Window::Time { .. } => window.keys_in(self.kept, self.kept),
            Window::Count { .. } => planned,
        };
        if keys <= expected {
            return None;
        }
        let (rate, fpr) = (filter.false_positive_rate(), filter.fpr());
        if rate <= TOLERANCE * fpr {
            // Most of the keys are repeats, and will be. To read lines takes as long as to insert a fifth of the keys
            // they are planned for.
            self.next.store(clock.inserted().saturating_add(planned.saturating_mul(4)), Relaxed);
            return None;
        }
        self.next.store(NEVER, Relaxed);
        let (of, remedy) = match clock.window() {
            _ if clock.endless() => ("keys", "capacity, or a filter with a window"),
            Window::Count { .. } => ("different keys within its window", "number of distinct keys"),
            Window::Time { .. } => {
                ("keys within its window", "capacity, or lately.TimeLimitedBloomFilter, whose memory follows the keys")
            }
        };
        Some(format!(
            "this filter is overfull: it is planned for {planned} {of} and has at least {keys}, so that false \
             positives come at a rate of {}, not {}; it still misses no key. Take a larger {remedy}",
            shown(rate),
            shown(fpr)
        ))
    }

    /// How many keys there are in a window at the pace of the stretch, at least; then begins the next stretch, if this
    /// one is as long as a window.
    fn keys(&self, clock: &Clock) -> u64 {
        let keys = clock.inserted().saturating_sub(self.before.load(Relaxed));
        let begun = self.generation.load(Relaxed);
        if clock.endless() {
            return clock.inserted();
        }
        let passed = clock.generation().saturating_sub(begun).max(0) as u64;
        if begun != NONE && passed < self.kept.into() {
            return keys;
        }
        self.begin(clock.generation(), clock.inserted());
        if begun == NONE { 0 } else { (u128::from(keys) * u128::from(self.kept) / u128::from(passed)) as u64 }
    }

    fn begin(&self, generation: i64, before: u64) {
        self.generation.store(generation, Relaxed);
        self.before.store(before, Relaxed);
    }

    /// Keys between two looks: a quarter of those planned.
    fn step(&self) -> u64 {
        (self.planned.unwrap_or(0) / 4).max(FEWEST)
    }
}

/// A rate to read.
fn shown(rate: f64) -> String {
    if rate < 1e-3 { format!("{rate:.2e}") } else { format!("{rate:.3}") }
}

/// The keys a filter is planned for, if it may get more.
fn planned(filter: &filter::AnyFilter) -> Option<u64> {
    let clock = filter.engine().clock();
    match filter.window() {
        _ if filter.shape().grows() => None,
        Window::Time { capacity, .. } => Some(capacity),
        Window::Count { insertions } if clock.endless() => Some(insertions),
        Window::Count { .. } => filter.shape_as::<quotient::QuotientShape>()?.distinct,
    }
}

/// Warns in the name of Python's caller.
fn warn(py: Python<'_>, message: String) -> PyResult<()> {
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<OverfullWarning>(), &message, 1)
}
