//! Any request and any calls on the public types: each is answered or rejected by an error that names its argument, no
//! call panics, and no key that the exact window has is missed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arbitrary::{Arbitrary, Unstructured};
use lately::{ConcurrentFilter, Error, Filter, Hashed, Prefer, Window};

/// Windows of fewer keys than this are small; others are far too large to allocate.
const SMALL: u64 = 1 << 14;

/// A request, and calls on what it makes.
#[derive(Debug, Arbitrary)]
pub struct Case {
    window: Length,
    fpr: Sometimes<Real>,
    nbytes: Sometimes<Number>,
    capacity: Sometimes<Number>,
    slack: Sometimes<Length>,
    lateness: Sometimes<Span>,
    max_ahead: Sometimes<Option<Span>>,
    prefer: Option<bool>,
    seed: Option<u64>,
    secret: Option<[u8; 16]>,
    calls: Vec<Call>,
}

/// A value that is given with a chance.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Sometimes<T>(u8, T);

impl<T> Sometimes<T> {
    /// Returns the value in `of_256` of 256 cases.
    fn given(&self, of_256: u16) -> Option<&T> {
        (u16::from(self.0) < of_256).then_some(&self.1)
    }
}

/// A number: mostly small, at an edge, or so large that no machine has the memory.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Number(u8, u64);

/// A window, mostly of insertions or of minutes.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Length(bool, Number, Span);

/// A span of time: mostly of seconds.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Span(u8, u64, u32);

/// A real number, mostly from 0 to 1, or at an edge.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Real(u8, f64, u16);

/// A time of an event: about the latest one, anywhere, or at an end of what the system can state.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum When {
    Step(i16),
    Any(bool, Span),
    Now,
}

#[derive(Debug, Arbitrary)]
enum Call {
    Seen(u8),
    SeenAt(u8, When),
    Insert(u8),
    InsertAt(u8, When),
    Contains(u8),
    ContainsAt(u8, When),
    Duplicated(Vec<u8>),
    DuplicatedAt(Vec<(u8, When)>),
    Many(u16),
    Merge(Option<bool>),
    Clear,
    Reread,
    Damage(Vec<(u16, u8)>, u16),
    Posterior(Vec<u8>, Real, Real, Real),
}

impl Number {
    fn get(self) -> u64 {
        match self.0 {
            ..10 => u64::MAX,
            10..20 => self.1 | 1 << 46,
            20..40 => self.1 % 3,
            _ => self.1 % SMALL,
        }
    }
}

impl Length {
    fn get(self) -> Window {
        if self.0 { Window::last(self.1.get()) } else { Window::time(self.2.get()) }
    }
}

impl Span {
    fn get(self) -> Duration {
        match self.0 {
            ..10 => Duration::MAX,
            10..20 => Duration::new(self.1, self.2 % 1_000_000_000),
            20..30 => Duration::from_nanos(self.1 % 2),
            30..40 => Duration::from_nanos(self.1 % 1000),
            _ => Duration::new(self.1 % 3000, self.2 % 1_000_000_000),
        }
    }
}

impl Real {
    fn get(self) -> f64 {
        match self.0 {
            ..20 => self.1,
            20..40 => [f64::NAN, -1.0, 0.0, 1e-300, 1.0, f64::INFINITY][usize::from(self.2 % 6)],
            _ => f64::from(self.2) / 65_535.0,
        }
    }
}

impl When {
    fn get(self, latest: SystemTime) -> SystemTime {
        let moved = |time: SystemTime, back: bool, by: Duration| match back {
            true => time.checked_sub(by),
            false => time.checked_add(by),
        };
        match self {
            Self::Step(step) => moved(latest, step < 0, Duration::from_secs(step.unsigned_abs().into())),
            Self::Any(back, span) => moved(UNIX_EPOCH, back, span.get()),
            Self::Now => None,
        }
        .unwrap_or_else(SystemTime::now)
    }
}

/// A key of a kind that depends on its number.
fn key(number: u8) -> Hashed {
    use lately::{Key, KeyHasher};
    let hasher = KeyHasher::new(0);
    Hashed(match number % 6 {
        0 => number.to_hash(&hasher),
        1 => f64::from_bits(u64::from(number) << 56).to_hash(&hasher),
        2 => [number].to_hash(&hasher),
        3 => char::from(number).to_hash(&hasher),
        4 => (number, Some("text"), None::<i128>).to_hash(&hasher),
        // Hashes of a caller may be anything.
        _ => u64::from(number / 64).wrapping_neg(),
    })
}

fn named(error: &Error, case: &Case) {
    let names = ["window", "fpr", "nbytes", "capacity", "slack", "lateness", "at", "prior", "false_", "max_ahead"];
    let message = error.to_string();
    let known = match error {
        Error::Memory { .. } => message.contains("allocate"),
        Error::Format(_) => !message.is_empty(),
        _ => names.iter().any(|name| message.contains(name)) || message.contains("merge") || message.contains("united"),
    };
    assert!(known, "{error:?}: {case:?}");
}

/// Builds both types, and an exact filter, and calls them. Returns whether the request made a filter.
pub fn run(bytes: &[u8]) -> bool {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(bytes)) else { return false };
    let exact = exact(&case);
    if let Err(error) = &exact {
        named(error, &case);
    }
    let shared = shared(&case);
    match &shared {
        Ok(shared) => act_shared(&case, shared),
        Err(error) => named(error, &case),
    }
    match (alone(&case), exact) {
        (Ok(filter), Ok(exact)) => Pair { filter, exact, latest: UNIX_EPOCH + Duration::from_secs(1 << 30) }.act(&case),
        (Ok(filter), Err(error)) => panic!("{filter:?} without an exact window: {error}: {case:?}"),
        (Err(error), _) => {
            named(&error, &case);
            return false;
        }
    }
    true
}

/// Sets the options that all builders have.
macro_rules! with_options {
    ($case:expr, $builder:expr) => {{
        let (mut builder, timed) = ($builder, u16::from(!$case.window.0));
        if let Some(lateness) = $case.lateness.given(10 + 100 * timed) {
            builder = builder.lateness(lateness.get());
        }
        if let Some(ahead) = $case.max_ahead.given(80) {
            builder = builder.max_ahead(ahead.map(Span::get));
        }
        if let Some(seed) = $case.seed {
            builder = builder.seed(seed);
        }
        if let Some(secret) = $case.secret {
            builder = builder.secret(secret);
        }
        builder
    }};
}

/// Sets the options that a plan needs.
macro_rules! with_plan {
    ($case:expr, $builder:expr) => {{
        let (mut builder, timed) = (with_options!($case, $builder), u16::from(!$case.window.0));
        if let Some(fpr) = $case.fpr.given(200) {
            builder = builder.fpr(fpr.get());
        }
        if let Some(nbytes) = $case.nbytes.given(if $case.fpr.0 < 200 { 10 } else { 240 }) {
            builder = builder.nbytes(nbytes.get());
        }
        if let Some(capacity) = $case.capacity.given(10 + 180 * timed) {
            builder = builder.capacity(capacity.get());
        }
        if let Some(slack) = $case.slack.given(50) {
            builder = builder.slack(slack.get());
        }
        builder
    }};
}

fn exact(case: &Case) -> Result<Filter, Error> {
    with_options!(case, Filter::builder(case.window.get()).prefer(Prefer::Exact)).build()
}

fn shared(case: &Case) -> Result<ConcurrentFilter, Error> {
    with_plan!(case, ConcurrentFilter::builder(case.window.get())).build()
}

fn alone(case: &Case) -> Result<Filter, Error> {
    let builder = with_plan!(case, Filter::builder(case.window.get()));
    match case.prefer {
        None => builder.build(),
        Some(true) => builder.prefer(Prefer::Speed).build(),
        Some(false) => builder.prefer(Prefer::Memory).build(),
    }
}

/// Whether the window is so brief that it may end between two calls.
fn brief(window: Window) -> bool {
    window.span().is_some_and(|span| span < Duration::from_secs(600))
}

struct Pair {
    filter: Filter,
    exact: Filter,
    /// The time that steps of events begin from.
    latest: SystemTime,
}

impl Pair {
    fn act(mut self, case: &Case) {
        for call in &case.calls {
            self.call(call, case);
            assert!(!format!("{:?} {:?}", self.filter, self.exact).is_empty());
        }
        assert!((self.filter.nbytes() as u64) < 1 << 40 && self.filter.false_positive_rate() <= 1.0);
    }

    /// Compares answers: what the exact window reports, the filter reports.
    fn compare(&self, case: &Case, exact: Result<bool, Error>, filter: Result<bool, Error>) {
        match (exact, filter) {
            (Ok(exact), Ok(filter)) => assert!(filter || !exact || brief(self.exact.window()), "missed: {case:?}"),
            (Err(exact), Err(filter)) => [exact, filter].iter().for_each(|error| named(error, case)),
            (exact, filter) => panic!("exact {exact:?}, filter {filter:?}: {case:?}"),
        }
    }

    fn call(&mut self, call: &Call, case: &Case) {
        let Self { filter, exact, latest } = self;
        match call {
            Call::Seen(number) => {
                let answers = (exact.seen(key(*number)), filter.seen(key(*number)));
                self.compare(case, Ok(answers.0), Ok(answers.1));
            }
            Call::SeenAt(number, when) => {
                let (key, at) = (key(*number), when.get(*latest));
                let answers = (exact.seen_at(key, at), filter.seen_at(key, at));
                *latest = if answers.0.is_ok() { at.max(*latest) } else { *latest };
                self.compare(case, answers.0, answers.1);
            }
            Call::Insert(number) => {
                exact.insert(key(*number));
                filter.insert(key(*number));
            }
            Call::InsertAt(number, when) => {
                let (key, at) = (key(*number), when.get(*latest));
                let answers = (exact.insert_at(key, at), filter.insert_at(key, at));
                self.compare(case, answers.0.map(|()| false), answers.1.map(|()| false));
            }
            Call::Contains(number) => {
                let answers = (exact.contains(key(*number)), filter.contains(key(*number)));
                self.compare(case, Ok(answers.0), Ok(answers.1));
            }
            Call::ContainsAt(number, when) => {
                let (key, at) = (key(*number), when.get(*latest));
                let answers = (exact.contains_at(key, at), filter.contains_at(key, at));
                self.compare(case, answers.0, answers.1);
            }
            Call::Duplicated(numbers) => {
                let keys = || numbers.iter().map(|&number| key(number));
                let answers = (exact.duplicated(keys()), filter.duplicated(keys()));
                assert_eq!(answers.0.len(), answers.1.len());
                for (exact, filter) in answers.0.into_iter().zip(answers.1) {
                    self.compare(case, Ok(exact), Ok(filter));
                }
            }
            Call::DuplicatedAt(events) => {
                let events = || events.iter().map(|(number, when)| (key(*number), when.get(*latest)));
                // The system's clock goes on between two calls.
                let events = Vec::from_iter(events());
                let answers = (exact.duplicated_at(events.clone()), filter.duplicated_at(events));
                match answers {
                    (Ok(exact), Ok(filter)) => {
                        for (exact, filter) in exact.into_iter().zip(filter) {
                            self.compare(case, Ok(exact), Ok(filter));
                        }
                    }
                    (exact, filter) => self.compare(case, exact.map(|_| false), filter.map(|_| false)),
                }
            }
            Call::Many(keys) => {
                let keys = || (0..*keys % 5000).map(|i| Hashed(super::mix(i.into())));
                exact.extend(keys());
                filter.extend(keys());
            }
            Call::Merge(kind) => {
                // A copy, an empty filter of this request, or one of another.
                let other = match kind {
                    None => Ok(filter.clone()),
                    Some(true) => alone(case),
                    Some(false) => Filter::builder(Window::last(10)).fpr(0.1).build(),
                };
                if let Err(error) = other.and_then(|other| filter.merge(&other)) {
                    named(&error, case);
                }
            }
            Call::Clear => {
                exact.clear();
                filter.clear();
                assert_eq!((exact.inserted(), filter.inserted()), (0, 0), "{case:?}");
            }
            Call::Reread => {
                let read = Filter::from_bytes(&filter.to_bytes()).unwrap();
                assert!(read == *filter, "{case:?}");
                *filter = read;
                *exact = Filter::from_bytes(&exact.to_bytes()).unwrap();
            }
            Call::Damage(changes, len) => damage(changes, *len, filter, exact, case),
            Call::Posterior(numbers, prior, false_positive, false_negative) => {
                let keys = || numbers.iter().map(|&number| key(number));
                let (prior, costs) = (prior.get(), (false_positive.get(), false_negative.get()));
                match filter.posterior(keys(), prior) {
                    Ok(all) => assert!(all.iter().all(|one| (0.0..=1.0).contains(one)), "{all:?}: {case:?}"),
                    Err(error) => assert!(matches!(error, Error::Value(_)), "{error:?}"),
                }
                match filter.decide(keys(), prior, costs.0, costs.1) {
                    Ok(all) => assert_eq!(all.len(), numbers.len()),
                    Err(error) => assert!(matches!(error, Error::Value(_)), "{error:?}"),
                }
            }
        }
    }
}

/// Changes bytes of what was saved, and cuts it short: it is rejected, or used by a call.
fn damage(changes: &[(u16, u8)], len: u16, filter: &Filter, exact: &Filter, case: &Case) {
    for mut bytes in [filter.to_bytes(), exact.to_bytes()] {
        for &(at, value) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= value;
        }
        bytes.truncate(bytes.len() - usize::from(len) % bytes.len());
        match Filter::from_bytes(&bytes) {
            Ok(mut read) => drop(read.seen(1)),
            Err(error) => named(&error, case),
        }
        match Filter::from_bytes(&bytes).and_then(ConcurrentFilter::try_from) {
            Ok(read) => drop(read.seen(1)),
            Err(Error::Value(_) | Error::Format(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Calls a filter of many threads: a key that was just inserted is there, whatever came before.
fn act_shared(case: &Case, filter: &ConcurrentFilter) {
    let brief = brief(filter.window());
    let mut latest = UNIX_EPOCH + Duration::from_secs(1 << 30);
    for call in &case.calls {
        match call {
            Call::Seen(number) | Call::Insert(number) | Call::Contains(number) => {
                filter.seen(key(*number));
                filter.insert(key(*number));
                assert!(filter.contains(key(*number)) || brief, "{case:?}");
            }
            Call::SeenAt(number, when) | Call::InsertAt(number, when) | Call::ContainsAt(number, when) => {
                let (key, at) = (key(*number), when.get(latest));
                match filter.seen_at(key, at).and(filter.insert_at(key, at)) {
                    Ok(()) => {
                        latest = at.max(latest);
                        assert_eq!(filter.contains_at(key, at), Ok(true), "{case:?}");
                    }
                    Err(error) => named(&error, case),
                }
            }
            Call::Duplicated(numbers) => {
                filter.duplicated(numbers.iter().map(|&number| key(number)));
            }
            Call::DuplicatedAt(events) => {
                let events = events.iter().map(|(number, when)| (key(*number), when.get(latest)));
                if let Err(error) = filter.duplicated_at(events) {
                    named(&error, case);
                }
            }
            Call::Many(keys) => drop(filter.duplicated((0..*keys % 5000).map(|i| Hashed(super::mix(i.into()))))),
            Call::Reread | Call::Damage(..) => {
                let read = ConcurrentFilter::try_from(filter.snapshot().unwrap()).unwrap();
                assert_eq!(read.fpr(), filter.fpr());
            }
            Call::Merge(_) | Call::Clear | Call::Posterior(..) => {
                let snapshot = filter.snapshot().unwrap();
                assert!(snapshot.false_positive_rate() <= 1.0 && snapshot.inserted() >= filter.inserted());
            }
        }
    }
    assert!(!format!("{filter:?}").is_empty() && (filter.nbytes() as u64) < 1 << 40);
}
