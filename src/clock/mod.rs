//! Turns insertions or timestamps into generations: all that a filter knows about time.

mod moments;
mod refusals;
mod search;
mod window;

pub use moments::{Moments, Read, Times};
pub use search::before;
pub use window::Window;

use std::ops::Range;

use crate::Error;

/// Full generations to keep so that each is a single insertion: the most there can be. It is one less than the longest
/// window that [can age like this](Window::by_insertion), since the open generation is one more.
pub const BY_INSERTION: u32 = u32::MAX;

/// Full generations to keep in a filter of insertions that forgets nothing. Its first generation never ends, and its
/// window is the number of keys it is planned for.
pub const ENDLESS: u32 = 0;

/// How far ahead of the system's clock a key may lie unless a user says otherwise. Local times that are taken for UTC
/// lie at most 14 hours ahead, and the clocks of machines differ by seconds; one that is off by years would have the
/// filter forget its window, and refuse every time that is right.
pub const DAY: u64 = 86_400_000_000_000;

/// More insertions than any stream has, and few enough that the clock's arithmetic does not overflow.
pub(crate) const MOST_INSERTED: u64 = 1 << 62;

/// Length of a generation that never ends.
const NEVER: u64 = 1 << 63;

/// Where a filter is in time: how much it has seen, and which generation is open.
///
/// Generations are numbered from 0 on the count clock, and from the Unix epoch on the time clock, so that filters of
/// equal parameters agree on them wherever they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    window: Window,
    /// Length of a generation: insertions, or nanoseconds.
    length: u64,
    /// Keys so far: inserted, or asked for and not inserted, unless only deliveries count.
    inserted: u64,
    /// Time clock: the latest moment seen, if any.
    latest: Option<i64>,
    /// The generation that is open.
    generation: i64,
    /// Time clock: how far ahead of the system's clock a key may lie, in nanoseconds, if anything is too far.
    max_ahead: Option<u64>,
    /// Time clock: whether a key has come without a time of its own, and was taken as of now.
    by_system: bool,
}

impl Clock {
    /// A clock that has seen nothing yet, for a filter that keeps `kept` full generations.
    pub fn new(window: Window, kept: u32) -> Self {
        let length = window.generation(kept);
        Self { window, length, inserted: 0, latest: None, generation: 0, max_ahead: Some(DAY), by_system: false }
    }

    /// The same clock with another bound on times ahead of the system's clock; none where they are not told by it.
    pub fn with_max_ahead(self, max_ahead: Option<u64>) -> Self {
        Self { max_ahead, ..self }
    }

    /// The same clock, which has taken keys as of now if `by_system`.
    pub(crate) fn with_system(self, by_system: bool) -> Self {
        Self { by_system, ..self }
    }

    /// How far ahead of the system's clock a key may lie, in nanoseconds, if anything is too far.
    pub fn max_ahead(&self) -> Option<u64> {
        self.max_ahead
    }

    /// Whether a key has come without a time of its own, and was taken as of now.
    pub fn by_system(&self) -> bool {
        self.by_system
    }

    /// When a query asks: without a time, now, or as of the latest moment where every key has come with its own. (The
    /// times of a replay are not those of the system's clock.)
    pub fn asked<'a>(&self, moments: Moments<'a>) -> Moments<'a> {
        match (moments, self.latest) {
            (Moments::Now(_), Some(latest)) if !self.by_system => Moments::At(latest),
            _ => moments,
        }
    }

    /// The same clock after `inserted` insertions, the latest at `latest`.
    pub fn resumed(self, inserted: u64, latest: Option<i64>) -> Self {
        let generation = match self.window {
            Window::Count { .. } => (inserted.saturating_sub(1) / self.length) as i64,
            Window::Time { .. } => latest.map_or(0, |moment| self.generation_at(moment)),
        };
        Self { inserted, latest, generation, ..self }
    }

    /// The same clock at a moment, if that is later.
    pub fn at(self, moment: i64) -> Self {
        let latest = self.latest.map_or(moment, |latest| latest.max(moment));
        Self { latest: Some(latest), generation: self.generation_at(latest), ..self }
    }

    /// Encodes the state that changes, for the file of a filter that several processes share: keys so far, 1 and the
    /// latest moment or zeros, 1 for the system's clock, and the open generation. The generation does not follow from
    /// the number of keys while a generation opens.
    pub(crate) fn to_record(self) -> [u64; 5] {
        let latest = self.latest.unwrap_or(0) as u64;
        [self.inserted, self.latest.is_some().into(), latest, self.by_system.into(), self.generation as u64]
    }

    /// Returns this clock in the state that another process has [recorded](Self::to_record).
    pub(crate) fn with_record(self, [inserted, timed, latest, by_system, generation]: [u64; 5]) -> Self {
        let latest = (timed == 1).then_some(latest as i64);
        Self { inserted, latest, by_system: by_system != 0, generation: generation as i64, ..self }
    }

    /// Checks that the fields agree, as far as [`with_record`](Self::with_record) could break them, and that the count
    /// of keys is below that of any stream.
    pub(crate) fn is_sound(&self) -> bool {
        let agrees = match (self.window, self.latest) {
            (Window::Count { .. }, latest) => {
                let (opened, inserted) = (i128::from(self.generation), i128::from(self.inserted));
                let length = i128::from(self.length);
                latest.is_none() && opened >= 0 && (opened * length..=(opened + 1) * length).contains(&inserted)
            }
            (Window::Time { .. }, None) => self.generation == 0,
            (Window::Time { .. }, Some(latest)) => self.generation == self.generation_at(latest),
        };
        agrees && self.inserted <= MOST_INSERTED
    }

    /// What this clock measures.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Whether its generation never ends: nothing is forgotten.
    pub fn endless(&self) -> bool {
        self.length == NEVER
    }

    /// Whether every insertion opens a generation.
    pub(crate) fn turns_each_insertion(&self) -> bool {
        matches!(self.window, Window::Count { .. }) && self.length == 1
    }

    /// Keys so far: inserted, or asked for and not inserted, unless only deliveries count.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Time clock: the latest moment seen.
    pub fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// The generation that is open.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Moves to the moment of key `i`. Returns how many generations begin by that, and how many keys from `i` on, up to
    /// `len`, then act in the open one: none when it is full on the count clock. A late key counts as of the latest
    /// moment and stays longer.
    pub(crate) fn run(&mut self, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        let Window::Time { .. } = self.window else {
            let room = (self.generation as u64 + 1) * self.length - self.inserted;
            return (0, (len - i).min(usize::try_from(room).unwrap_or(usize::MAX)));
        };
        let not_past =
            |moment| i64::MIN..self.span_of(self.generation_at(self.latest.unwrap_or(moment).max(moment))).end;
        let Some((moment, run)) = moments.run(i, len, not_past) else {
            return (0, len - i);
        };
        let first = self.latest.is_none();
        let before = self.generation;
        self.by_system |= matches!(moments, Moments::Now(_));
        self.latest = self.latest.max(Some(moment));
        self.generation = self.generation_at(self.latest.unwrap_or(moment));
        // Who writes to times that are being read can make them later than they were: the clock stays one.
        let last = moments.latest(i..i + run).min(self.span_of(self.generation).end.saturating_sub(1));
        self.latest = self.latest.max(Some(last));
        (if first { 0 } else { self.generation.abs_diff(before) }, run)
    }

    /// Time clock: moves to the latest moment of the keys in `range`, unless a later one has been seen.
    pub(crate) fn reach(&mut self, moments: Moments<'_>, range: Range<usize>) {
        *self = self.at(moments.latest(range));
        self.by_system |= matches!(moments, Moments::Now(_));
    }

    /// Count clock: opens the next generation, when an insertion no longer fits into the open one.
    pub(crate) fn turn(&mut self) {
        self.generation += 1;
    }

    /// Counts keys into the open generation.
    pub(crate) fn count(&mut self, keys: u64) {
        self.inserted += keys;
    }

    /// The joint clock of two filters of equal parameters, and how many generations each has to age to get there.
    ///
    /// Moments are the same everywhere, so on the time clock the later one counts. Insertions are not: generations of
    /// two counts name the same slices only if their numbers are equal. Then the lesser count keeps the promise of
    /// both; the greater would end the generation too early for the other's keys. A generation that never ends takes
    /// all insertions.
    pub(crate) fn united(&self, other: &Self) -> Result<(Self, u64, u64), Error> {
        match self.window {
            Window::Count { .. } if self.endless() => {
                Ok((Self { inserted: self.inserted.saturating_add(other.inserted), ..*self }, 0, 0))
            }
            Window::Count { .. } if self.generation == other.generation => {
                Ok((Self { inserted: self.inserted.min(other.inserted), ..*self }, 0, 0))
            }
            Window::Count { .. } => Err(Error::value(format!(
                "filters of insertions can be united only in the same generation, but inserted is {} and {}: \
                 generations {} and {}",
                self.inserted, other.inserted, self.generation, other.generation
            ))),
            Window::Time { .. } => {
                let later = if self.latest < other.latest { other } else { self };
                let behind = |clock: &Self| clock.latest.map_or(0, |_| later.generation.abs_diff(clock.generation));
                let inserted = self.inserted.saturating_add(other.inserted);
                let by_system = self.by_system || other.by_system;
                Ok((Self { inserted, by_system, max_ahead: self.max_ahead, ..*later }, behind(self), behind(other)))
            }
        }
    }

    /// For a query, which moves nothing: how many generations after the open one key `i` asks in, and how many keys
    /// from `i` on, up to `len`, ask in the same one.
    pub(crate) fn pending(&self, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        let asked_in = |moment: i64| self.generation_at(moment).max(self.generation);
        let alike = |moment: i64| {
            let Range { start, end } = self.span_of(asked_in(moment));
            if asked_in(moment) == self.generation { i64::MIN..end } else { start..end }
        };
        match (self.latest, moments.run(i, len, alike)) {
            (Some(_), Some((moment, run))) => (asked_in(moment).abs_diff(self.generation), run),
            _ => (0, len - i),
        }
    }

    /// For a query of a shorter window: how many generations before the open one may have taken keys that are within it
    /// when key `i` asks, none if not even the open one, and how many keys from `i` on, up to `len`, ask for the same.
    pub(crate) fn within(&self, window: u64, moments: Moments<'_>, i: usize, len: usize) -> (Option<u64>, usize) {
        if let Window::Count { .. } = self.window {
            let oldest = (self.inserted.saturating_sub(window) / self.length) as i64;
            return (Some(self.generation.abs_diff(oldest.min(self.generation))), len - i);
        }
        let Some(latest) = self.latest else { return (None, len - i) };
        // A query as of now may wait for a thread that inserts later keys.
        let earliest = if let Moments::Now(_) = moments { latest } else { i64::MIN };
        let oldest = |moment: i64| self.generation_at(moment.max(earliest).saturating_sub_unsigned(window));
        let alike = |moment: i64| {
            let Range { start, end } = self.span_of(oldest(moment));
            start.saturating_add_unsigned(window)..end.saturating_add_unsigned(window)
        };
        match moments.run(i, len, alike) {
            Some((moment, run)) => (u64::try_from(self.generation.saturating_sub(oldest(moment))).ok(), run),
            None => (None, len - i),
        }
    }

    /// How long ago, as of the latest moment seen, the generation `back` before the open one began, in insertions or
    /// seconds. Nothing began before the first insertion.
    pub(crate) fn began(&self, back: u64) -> f64 {
        match (self.window, self.latest) {
            (Window::Count { .. }, _) => {
                let before = (self.generation as u64).saturating_sub(back) * self.length;
                (self.inserted - before.min(self.inserted)) as f64
            }
            (Window::Time { .. }, Some(latest)) => {
                let open = i128::from(latest) - i128::from(self.span_of(self.generation).start);
                (open as f64 + back as f64 * self.length as f64) / 1e9
            }
            (Window::Time { .. }, None) => 0.0,
        }
    }

    /// How long that generation had to take keys: from its beginning to that of the next, or to the latest insertion.
    /// An insertion counts as the time it takes at the planned rate, so a generation it has just opened is not of
    /// length zero.
    pub(crate) fn exposure(&self, back: u64) -> f64 {
        match back.checked_sub(1) {
            Some(next) => self.began(back) - self.began(next),
            None => self.began(0) + self.gap(),
        }
    }

    /// Time clock: seconds from one insertion to the next at the planned rate.
    pub(crate) fn gap(&self) -> f64 {
        match self.window {
            Window::Count { .. } => 0.0,
            Window::Time { span, capacity, .. } => span as f64 / capacity as f64 / 1e9,
        }
    }

    /// Seconds from the latest moment seen to the moment of key `i`, if that is later; 0 on a clock of insertions.
    pub(crate) fn since_latest(&self, moments: Moments<'_>, i: usize) -> f64 {
        match (moments, self.latest) {
            (Moments::Untimed, _) | (_, None) => 0.0,
            (_, Some(latest)) => (i128::from(moments.moment(i)) - i128::from(latest)).max(0) as f64 / 1e9,
        }
    }

    /// The moments of a generation, clipped to the range of moments.
    fn span_of(&self, generation: i64) -> Range<i64> {
        let start =
            |generation: i128| (generation * i128::from(self.length)).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        start(generation.into())..start(i128::from(generation) + 1)
    }

    /// Time clock: the generation of a moment.
    pub(crate) fn generation_at(&self, moment: i64) -> i64 {
        moment.div_euclid(self.length as i64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn the_longest_window_by_insertion_still_ages_by_each() {
        let longest = Window::Count { insertions: 1 << 32 };
        assert_eq!(longest.by_insertion().unwrap(), 1 << 32);
        assert_eq!(longest.generation(BY_INSERTION), 1);
        let longer = Window::Count { insertions: (1 << 32) + 1 };
        assert_eq!(longer.generation(BY_INSERTION), 2);
        assert!(longer.by_insertion().is_err());
    }

    /// Times that are where they were, or, if `fickle`, others whenever they are read.
    struct Lying<'a> {
        times: &'a [i64],
        fickle: bool,
        reads: AtomicI64,
    }

    impl Times for Lying<'_> {
        fn moment(&self, i: usize) -> i64 {
            let other = self.reads.fetch_add(0x5851_f42d_4c95_7f2d, Ordering::Relaxed) >> 53;
            self.times[i] + if self.fickle { other } else { 0 }
        }

        fn before(&self, range: Range<usize>, end: i64) -> usize {
            before(range, end, |i| self.moment(i), |_| ())
        }

        fn write(&self, start: usize, moments: &mut [i64]) {
            (start..).zip(moments).for_each(|(i, moment)| *moment = self.moment(i));
        }
    }

    /// Another thread may write to an array of times while it is read.
    #[test]
    fn times_that_change_while_they_are_read_leave_one_clock_that_never_goes_back() {
        let window = Window::Time { span: 1000, lateness: 30, capacity: 10 };
        let times: Vec<i64> = (0..3000).map(|i| i * 7).collect();
        let fickle = Lying { times: &times, fickle: true, reads: AtomicI64::new(3) };
        for kept in [3, 10] {
            let (mut clock, mut i, mut generations) = (Clock::new(window, kept), 0, 0);
            let at = Moments::Read(Read::new(&fickle, 0..3000));
            while i < 3000 {
                let (before, latest) = (clock.generation(), clock.latest());
                let (begun, run) = clock.run(at, i, 3000);
                assert!((1..=3000 - i).contains(&run));
                assert!(clock.latest() >= latest);
                assert_eq!(clock.latest().map(|latest| clock.generation_at(latest)), Some(clock.generation()));
                assert_eq!(begun, if i == 0 { 0 } else { clock.generation().abs_diff(before) });
                (i, generations) = (i + run, generations + begun);
            }
            assert!(generations > 10);
        }
    }

    /// Moments in order are searched, others looked at one by one: the clock must come out the same.
    #[test]
    fn moments_in_order_are_as_if_looked_at_one_by_one() {
        let window = Window::Time { span: 1000, lateness: 30, capacity: 10 };
        for (steps, kept) in [(0..1, 4), (0..3, 10), (0..40, 3), (0..700, 3), (1..2, 1)] {
            let mut state = 5u64;
            let mut moment = -3000;
            let mut next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                moment += steps.start + (state >> 33) as i64 % (steps.end - steps.start);
                moment
            };
            let all: Vec<i64> = (0..300).map(|_| next()).collect();
            let lying = Lying { times: &all, fickle: false, reads: AtomicI64::new(0) };
            let (mut looked, mut told) = (Clock::new(window, kept), Clock::new(window, kept));
            for (start, where_it_lies) in [0, 1, 2, 40, 41, 130].into_iter().zip([false, true].into_iter().cycle()) {
                let end = 300.min(start + 140);
                let (each, in_order) = (Moments::Each(&all[start..end]), Moments::of(&all[start..end]));
                assert!(matches!(in_order, Moments::InOrder(_)));
                let in_order = if where_it_lies { Moments::Read(Read::new(&lying, start..end)) } else { in_order };
                for check_order in [false, true] {
                    let refused = |clock: &Clock, moments| clock.check(moments, check_order).map_err(|e| e.to_string());
                    assert_eq!(refused(&looked, each), refused(&told, in_order));
                }
                let mut i = 0;
                while i < end - start {
                    assert_eq!(looked.pending(each, i, end - start), told.pending(in_order, i, end - start));
                    let run = looked.run(each, i, end - start);
                    assert_eq!(run, told.run(in_order, i, end - start), "{i} of {start}..{end}");
                    assert_eq!(looked, told);
                    i += run.1;
                }
            }
        }
    }

    /// The least moment may lie far behind the greatest without being late: that depends on their order.
    #[test]
    fn times_may_step_back_by_the_lateness_from_those_before_them() {
        let clock = Clock::new(Window::Time { span: 1000, lateness: 30, capacity: 10 }, 4).resumed(1, Some(100));
        let refused = |moments: &[i64], in_order| clock.check(Moments::of(moments), in_order).is_err();
        for in_order in [false, true] {
            assert!(!refused(&[70, 500], in_order));
            assert!(!refused(&[], in_order));
            assert!(!refused(&[100, 70, 470, 500, 470], in_order));
            assert!(refused(&[100, 69], in_order));
            assert!(refused(&[69, 100], in_order));
        }
        assert!(refused(&[500, 469], true));
        assert!(!refused(&[500, 469], false));
        let error = clock.check(Moments::of(&[100, 500, 480, 469]), true).unwrap_err().to_string();
        assert!(error.starts_with("at[3] lies 0.000000031 s before the latest time seen"), "{error}");
    }
}
