//! Any calls in any order on a filter of any shape, compared with an exact window: it misses no key, a batch returns
//! what its keys return in sequence, and a saved, copied or merged filter goes on like the original.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arbitrary::{Arbitrary, Unstructured};
use lately::Error;
use lately::clock::{Moments, Window};
use lately::engine::threads::{Chunk, PIECE};
use lately::engine::{Insertion, Refresh};
use lately::family::request::{Grow, Layout};
use lately::family::{AnyFilter, Budget, FAMILIES, Family, Form, Parameters, Request, Shape};
use lately::key::Keys;

use super::mix;
use super::saved::{bytes_of, reread};

/// Greatest number of bytes of a filter: few, so that a case takes microseconds in runs of millions.
const BYTES: u64 = if cfg!(fuzzing) { 1 << 11 } else { 1 << 14 };
/// Number of keys of a batch that threads share: two pieces and a little.
const MANY: usize = 2 * PIECE + PIECE / 64;

/// A filter, and the calls made on two of its kind.
#[derive(Debug, Arbitrary)]
pub struct Case {
    family: u8,
    shape: Source,
    insertions: u16,
    time: Option<Span>,
    calls: Vec<Call>,
}

/// The source of the shape.
#[derive(Debug, Arbitrary)]
enum Source {
    Parameters([u16; 7]),
    /// A number in the list of planned shapes.
    Planned(u16),
}

/// A window of time: span and lateness in units of `unit` nanoseconds.
#[derive(Debug, Arbitrary)]
struct Span {
    units: u16,
    unit: u32,
    lateness: u8,
}

#[derive(Debug, Arbitrary)]
struct Call {
    second: bool,
    what: What,
}

#[derive(Debug, Arbitrary)]
enum What {
    Insert(Vec<u8>, When),
    Query(Vec<u8>, When),
    Duplicated(Vec<u8>, When, How),
    ByThreads { seed: u8, repeats: u8, threads: u8, when: When, how: Option<How> },
    Reopen,
    Copy,
    Unite,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum How {
    Always,
    Unseen,
    Delivered,
}

/// A moment, from the latest on and in sixty-fourths of the span.
#[derive(Debug, Clone, Arbitrary)]
enum When {
    At(i8),
    Far(i16),
    Each(Vec<i8>),
    Now(i8),
    Anywhere(i64),
}

/// Makes the calls that the bytes encode; returns whether they named a filter.
pub fn run(bytes: &[u8]) -> bool {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(bytes)) else { return false };
    let Some(filter) = case.filter() else { return false };
    let mut shared = false;
    let mut pairs = [Pair::new(filter.clone()), Pair::new(filter)];
    for Call { second, what } in &case.calls {
        let (one, other) = pairs.split_at_mut(1);
        let (one, other) = if *second { (&mut other[0], &one[0]) } else { (&mut one[0], &other[0]) };
        // At most once: it costs as much as ten thousand keys, or as two threads that begin.
        if !matches!(what, What::ByThreads { .. }) || !std::mem::replace(&mut shared, true) {
            one.act(what, other);
        }
    }
    for Pair { filter, twin, .. } in &pairs {
        assert!(bytes_of(filter) == bytes_of(twin), "{:?}", filter.shape());
    }
    true
}

impl Case {
    fn window(&self) -> Window {
        let keys = u64::from(self.insertions % 2000) + 1;
        match &self.time {
            None => Window::Count { insertions: keys },
            Some(Span { units, unit, lateness }) => {
                let unit = u64::from(*unit) + 1;
                Window::Time {
                    span: (u64::from(*units) + 1) * unit,
                    lateness: u64::from(*lateness) * unit,
                    capacity: keys,
                }
            }
        }
    }

    fn filter(&self) -> Option<AnyFilter> {
        let forms: Vec<(&Family, &Form)> =
            FAMILIES.into_iter().flat_map(|family| family.forms().map(move |form| (family, form))).collect();
        let ((family, form), window) = (forms[usize::from(self.family) % forms.len()], self.window());
        let shape = match &self.shape {
            Source::Parameters(values) => family.read(&Parameters(&form.named(values.map(u64::from)))).ok()?,
            Source::Planned(number) => Arc::clone(&PLANNED[usize::from(*number) % PLANNED.len()]),
        };
        // A planned shape may have another window: rates suffer, promises do not.
        if shape.check(window).is_err() || shape.bytes(window) > BYTES {
            return None;
        }
        AnyFilter::of(shape, window, 7).ok()
    }
}

/// Shapes as a user gets them. A search can take longer than all other calls together.
static PLANNED: LazyLock<Vec<Arc<dyn Shape>>> = LazyLock::new(|| {
    let mut planned = Vec::new();
    for family in &FAMILIES {
        for window in [
            Window::Count { insertions: 300 },
            Window::Time { span: 1_000_000_000, lateness: 100_000_000, capacity: 10 },
        ] {
            let plain = Request::of(window, Budget::Rate(0.2));
            for request in [
                plain,
                Request::of(window, Budget::Rate(1e-3)),
                Request { partitioned: true, grow: Some(Grow::Cardinality), ..plain },
                Request { layout: Layout::Blocked, grow: Some(Grow::Density), distinct: Some(5), ..plain },
                Request { layout: Layout::Line, ..plain },
                Request { layout: Layout::Transposed, distinct: Some(5), ..plain },
            ] {
                planned.extend(family.plan(&request));
            }
        }
    }
    planned
});

/// A filter that takes batches, is saved and copied; its twin, which takes the same keys in sequence and is left as it
/// is; and the keys that both must contain.
struct Pair {
    filter: AnyFilter,
    twin: AnyFilter,
    exact: Exact,
}

impl Pair {
    fn new(filter: AnyFilter) -> Self {
        Self { twin: filter.clone(), exact: Exact::new(&filter), filter }
    }

    fn act(&mut self, what: &What, other: &Self) {
        match what {
            What::Insert(keys, when) => self.take(&hashes(keys), when, None),
            What::Duplicated(keys, when, how) => self.take(&hashes(keys), when, Some(*how)),
            What::Query(keys, when) => self.query(&hashes(keys), when),
            What::ByThreads { seed, repeats, threads, when, how } => {
                let turn = u64::from(*repeats) * 64 + 1;
                let hash = |i: u64| mix(u64::from(*seed) << 32 | (i % turn));
                let keys: Vec<u64> = (0..MANY as u64).map(hash).collect();
                self.take_by_threads(&keys, when, *how, usize::from(threads % 3) + 2);
            }
            What::Reopen => self.filter = reread(&bytes_of(&self.filter)),
            What::Copy => self.filter = self.filter.clone(),
            What::Unite => self.merge(other),
        }
        let [ours, theirs] = [&self.filter, &self.twin].map(AnyFilter::engine);
        let same = ours.pieces() == theirs.pieces() && ours.clock() == theirs.clock();
        assert!(same, "{:?}", self.filter.shape());
    }

    /// Inserts the keys, or looks for duplicates among them.
    fn take(&mut self, keys: &[u64], when: &When, how: Option<How>) {
        let each = self.moments(when, keys.len());
        let mut seen = vec![false; keys.len()];
        let (at, engine) = (each.all(), self.filter.engine_mut());
        let done = match how {
            None => engine.insert(keys, at),
            Some(how) => engine.duplicated(keys, at, how.refresh(), &mut seen),
        };
        self.follow(keys, &each, how, &seen, done);
    }

    fn take_by_threads(&mut self, keys: &[u64], when: &When, how: Option<How>, threads: usize) {
        let each = self.moments(when, keys.len());
        let mut seen = vec![false; keys.len()];
        let batch = Keys::made(keys.to_vec());
        let mut chunk = Chunk::new(threads, &batch);
        let (at, engine) = (each.all(), self.filter.engine_mut());
        let chunk = chunk.at(0..keys.len());
        let insertion = Insertion { at, refresh: how.map(How::refresh), seen: &mut seen };
        let done = engine.process_shared(chunk, insertion);
        self.follow(keys, &each, how, &seen, done);
    }

    /// Makes the same calls on the twin key by key, and compares the answers.
    fn follow(&mut self, keys: &[u64], each: &Moment, how: Option<How>, seen: &[bool], done: Result<(), Error>) {
        match done {
            Ok(()) => {}
            // Nothing has happened: the bytes are compared after each call.
            Err(Error::Value(_)) => return,
            Err(error) => panic!("{error:?}"),
        }
        for (i, (&key, &answer)) in keys.iter().zip(seen).enumerate() {
            let at = each.one(i);
            let Some(how) = how else {
                self.twin.engine_mut().insert(&[key], at).unwrap();
                self.exact.take(key, at, true, true);
                continue;
            };
            let mut seen = [false];
            self.twin.engine_mut().duplicated(&[key], at, how.refresh(), &mut seen).unwrap();
            assert_eq!(seen[0], answer, "key {i} of {}: {:?}", keys.len(), self.filter.shape());
            assert!(answer || !self.exact.promised(key, at), "key {i} is missed: {:?}", self.filter.shape());
            let taken = !answer || matches!(how, How::Always);
            let counted = taken || !matches!(how, How::Delivered);
            self.exact.take(key, at, taken, counted);
        }
    }

    fn query(&mut self, keys: &[u64], when: &When) {
        let each = self.moments(when, keys.len());
        let mut present = vec![false; keys.len()];
        if self.filter.engine().query(keys, each.all(), &mut present).is_err() {
            return;
        }
        for (i, (&key, &answer)) in keys.iter().zip(&present).enumerate() {
            let mut alone = [false];
            self.twin.engine().query(&[key], each.one(i), &mut alone).unwrap();
            assert_eq!(alone[0], answer, "key {i} of {}: {:?}", keys.len(), self.filter.shape());
            assert!(answer || !self.exact.promised(key, each.one(i)), "key {i} is missed: {:?}", self.filter.shape());
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.filter.merge(&other.filter).is_ok() {
            self.twin.merge(&other.twin).unwrap();
            self.exact.merge(&other.exact);
        }
    }

    /// Returns the moments of a batch of `keys` keys.
    fn moments(&self, when: &When, keys: usize) -> Moment {
        let Window::Time { span, .. } = self.filter.window() else { return Moment::None };
        let latest = self.filter.engine().clock().latest().unwrap_or(1_700_000_000_000_000_000);
        let later = |steps: i64| latest.saturating_add(((i128::from(span) * i128::from(steps)) / 64) as i64);
        match when {
            When::At(steps) => Moment::All(later((*steps).into())),
            When::Far(steps) => Moment::All(later((*steps).into())),
            When::Now(steps) => Moment::Now(later((*steps).into())),
            When::Anywhere(at) => Moment::All(*at),
            When::Each(steps) if steps.is_empty() => Moment::All(latest),
            // Each step begins where the last one ended, so that batches go on.
            When::Each(steps) => {
                let mut now = 0;
                let mut step = |i: usize| {
                    now += i64::from(steps[i % steps.len()]) / if i < steps.len() { 1 } else { 16 };
                    later(now)
                };
                Moment::Each((0..keys).map(&mut step).collect())
            }
        }
    }
}

impl How {
    fn refresh(self) -> Refresh {
        match self {
            Self::Always => Refresh::Always,
            Self::Unseen => Refresh::Unseen,
            Self::Delivered => Refresh::Delivered,
        }
    }
}

enum Moment {
    None,
    All(i64),
    Now(i64),
    Each(Vec<i64>),
}

impl Moment {
    fn all(&self) -> Moments<'_> {
        match self {
            Self::None => Moments::Untimed,
            Self::All(at) => Moments::At(*at),
            Self::Now(at) => Moments::Now(*at),
            Self::Each(each) => Moments::of(each),
        }
    }

    fn one(&self, i: usize) -> Moments<'static> {
        match self {
            Self::None => Moments::Untimed,
            Self::All(at) => Moments::At(*at),
            Self::Now(at) => Moments::Now(*at),
            Self::Each(each) => Moments::At(each[i]),
        }
    }
}

/// Returns the keys of a batch: a few with ordinary hashes, and a few crafted hashes.
fn hashes(keys: &[u8]) -> Vec<u64> {
    let hash = |&key: &u8| match key {
        0..8 => u64::from(key),
        8..16 => !u64::from(key),
        16..32 => u64::from(key) << 59,
        key => mix(key.into()),
    };
    keys.iter().map(hash).collect()
}

/// The last occurrence of each key, by the numbers of insertions or by time.
pub struct Exact {
    window: Window,
    /// Whether the filter has a promise, and whether it forgets.
    promises: bool,
    endless: bool,
    last: HashMap<u64, i64>,
    pub inserted: i64,
    latest: Option<i64>,
}

impl Exact {
    pub fn new(filter: &AnyFilter) -> Self {
        Self {
            window: filter.window(),
            promises: filter.family().promises,
            endless: filter.engine().clock().endless(),
            last: HashMap::new(),
            inserted: 0,
            latest: None,
        }
    }

    /// Returns whether a filter must report the key.
    pub fn promised(&self, key: u64, at: Moments<'_>) -> bool {
        let Some(&last) = self.last.get(&key).filter(|_| self.promises) else { return false };
        match self.window {
            _ if self.endless => true,
            Window::Count { insertions } => self.inserted - last < insertions as i64,
            Window::Time { span, .. } => {
                let latest = self.latest.unwrap_or(i64::MIN);
                let queried = match at {
                    Moments::At(at) | Moments::Now(at) => at.max(latest),
                    _ => latest,
                };
                i128::from(queried) - i128::from(last) <= i128::from(span)
            }
        }
    }

    /// Records that a key came: whether it was inserted, and whether the window advances with it.
    pub fn take(&mut self, key: u64, at: Moments<'_>, taken: bool, counted: bool) {
        self.inserted += i64::from(counted);
        let came = match at {
            Moments::At(at) | Moments::Now(at) => {
                self.latest = self.latest.max(Some(at));
                at
            }
            _ => self.inserted,
        };
        if taken {
            let last = self.last.entry(key).or_insert(came);
            *last = came.max(*last);
        }
    }

    /// Adds the keys of another filter. Numbers of insertions count from the lesser one.
    fn merge(&mut self, other: &Self) {
        let inserted = if self.endless { self.inserted + other.inserted } else { self.inserted.min(other.inserted) };
        let timed = matches!(self.window, Window::Time { .. });
        let moved = |all: &HashMap<u64, i64>, by: i64| -> Vec<(u64, i64)> {
            all.iter().map(|(&key, &last)| (key, if timed { last } else { last + by })).collect()
        };
        let ours = moved(&self.last, inserted - self.inserted);
        let theirs = moved(&other.last, inserted - other.inserted);
        self.last.clear();
        for (key, last) in ours.into_iter().chain(theirs) {
            let known = self.last.entry(key).or_insert(last);
            *known = last.max(*known);
        }
        self.inserted = inserted;
        self.latest = self.latest.max(other.latest);
    }
}
