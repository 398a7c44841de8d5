//! The clock of a filter: turns insertions or timestamps into generations. No other module computes time.

mod checks;
mod moments;
mod search;
mod shares;
pub mod system;
mod window;

pub use moments::{Moments, TimeRange, TimeSource};
pub use search::before;
pub(crate) use shares::Plan;
pub(crate) use window::Seconds;
pub use window::Window;

use std::cell::Cell;
use std::ops::Range;

use crate::Error;
use shares::Shares;
use system::Stamp;

/// Number of full generations to retain if each generation is a single insertion: the most there can be. It is one less
/// than the longest window that [can age like this](Window::by_insertion), since the open generation is one more.
pub const BY_INSERTION: u32 = u32::MAX;

/// Number of full generations to retain in a filter of insertions that forgets nothing. The first generation never
/// ends, and the window is the number of keys that the filter is planned for.
pub const ENDLESS: u32 = 0;

/// Greatest number of insertions: more than any stream has, and too few for the clock's arithmetic to overflow.
pub(crate) const MAX_INSERTED: u64 = 1 << 62;

/// Length of a generation that never ends.
const NEVER: u64 = 1 << 63;

/// The time of a filter: how many keys came, and which generation is open.
///
/// Generations are numbered from 0 on the count clock, and from the Unix epoch on the time clock, so that filters of
/// equal parameters agree on them wherever they run. Where generations also end by count, their number is greater
/// by those that did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    window: Window,
    /// Length of a generation: insertions, or nanoseconds. Where generations also end by count, that of one that does
    /// not.
    length: u64,
    /// Number of keys so far: inserted, or looked up by `seen` and not inserted. A window that counts deliveries counts
    /// only the inserted ones.
    inserted: u64,
    /// Time clock: the latest moment so far, if any.
    latest: Option<i64>,
    /// The open generation.
    generation: i64,
    /// Time clock: how far ahead of the system's clock a key may lie, in nanoseconds; `None` if there is no bound.
    max_ahead: Option<u64>,
    /// Time clock: whether a key came without a time of its own and was inserted as of the system's clock.
    by_system: bool,
    /// Time clock: how far the time of keys without one of their own is ahead of [`system::now`], in nanoseconds.
    offset: i64,
    /// Time clock: when generations end that also end by count, with a share of the capacity; `None` if none does.
    shares: Option<Box<Shares>>,
}

impl Clock {
    /// Creates a clock that no key has reached yet, for a filter that retains `retained` full generations.
    pub fn new(window: Window, retained: u32) -> Self {
        let length = window.generation(retained);
        let max_ahead = window.default_max_ahead();
        Self {
            window,
            length,
            inserted: 0,
            latest: None,
            generation: 0,
            max_ahead,
            by_system: false,
            offset: 0,
            shares: None,
        }
    }

    /// Sets another bound on times ahead of the system's clock. `None` is for times that the system's clock does not
    /// measure.
    pub fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.max_ahead = max_ahead;
    }

    /// Returns this clock with the time of a [file](Self::stamp), which stores whether a key came without a time of its
    /// own, and the stamp of the filter.
    pub(crate) fn with_stamp(self, [by_system, boot, offset]: [u64; 3]) -> Self {
        let stamp = Stamp { boot, offset: offset as i64, wall_ahead: by_system as i64 >> 1 };
        let by_system = by_system & 1 == 1;
        let offset = if by_system { stamp.offset(self.latest.unwrap_or(i64::MIN)) } else { 0 };
        Self { by_system, offset, ..self }
    }

    /// Encodes for a file whether a key came without a time of its own, and if so the stamp of the filter's time.
    pub(crate) fn stamp(&self) -> [u64; 3] {
        if !self.by_system {
            return [0; 3];
        }
        let Stamp { boot, offset, wall_ahead } = Stamp::of(self.offset);
        [(wall_ahead << 1 | 1) as u64, boot, offset as u64]
    }

    /// Notes that a key came without a time of its own.
    pub(crate) fn set_by_system(&mut self) {
        self.by_system = true;
    }

    /// Returns this clock after keys without a time of their own, whose time is `offset` ahead of [`system::now`].
    pub(crate) fn with_system(self, by_system: bool, offset: i64) -> Self {
        Self { by_system, offset, ..self }
    }

    /// Returns this clock without the relation of its time to that of the process.
    pub(crate) fn without_time(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// Returns the filter's time at a reading of [`system::now`].
    pub fn time_at(&self, now: i64) -> i64 {
        now.saturating_add(self.offset)
    }

    /// Checks the moments of keys to insert, and returns them in the filter's [time](Self::continue_at).
    pub(crate) fn admit<'a>(&mut self, moments: Moments<'a>) -> Result<Moments<'a>, Error> {
        self.check(moments, true)?;
        Ok(self.continue_at(moments))
    }

    /// Returns the moments of keys to insert in the filter's time.
    ///
    /// If the latest time is further ahead of the filter's than [`max_ahead`](Self::max_ahead), a caller's time has
    /// taken the clock there, which the wall clock confirmed. The filter's time then continues from the latest.
    pub(crate) fn continue_at<'a>(&mut self, moments: Moments<'a>) -> Moments<'a> {
        let Moments::Now(now) = moments else { return moments };
        if let Some(latest) = self.latest
            && latest.saturating_sub(self.time_at(now))
                > self.max_ahead.map_or(0, |ahead| i64::try_from(ahead).unwrap_or(i64::MAX))
        {
            self.offset = latest.saturating_sub(now);
        }
        Moments::Now(self.time_at(now))
    }

    /// Returns how far ahead of the system's clock a key may lie, in nanoseconds; `None` if there is no bound.
    pub fn max_ahead(&self) -> Option<u64> {
        self.max_ahead
    }

    /// Returns whether a key came without a time of its own and was inserted as of the system's clock.
    pub fn by_system(&self) -> bool {
        self.by_system
    }

    /// Returns the moments of a query. A query without a time is one of now. If every key came with its own time, it is
    /// one of the latest moment, because the times of a replay are not those of the system's clock.
    pub fn query_moments<'a>(&self, moments: Moments<'a>) -> Moments<'a> {
        match (moments, self.latest) {
            (Moments::Now(_), Some(latest)) if !self.by_system => Moments::At(latest),
            (Moments::Now(now), _) => Moments::Now(self.time_at(now)),
            _ => moments,
        }
    }

    /// Returns this clock after `inserted` insertions, the latest at `latest`.
    pub fn resumed(mut self, inserted: u64, latest: Option<i64>) -> Self {
        self.resume(inserted, latest);
        self
    }

    /// Becomes the clock after `inserted` insertions, the latest at `latest`.
    pub(crate) fn resume(&mut self, inserted: u64, latest: Option<i64>) {
        (self.inserted, self.latest) = (inserted, None);
        match (self.window, latest) {
            (Window::Count { .. }, _) => self.generation = (inserted.saturating_sub(1) / self.length) as i64,
            (Window::Time { .. }, None) => self.generation = 0,
            (Window::Time { .. }, Some(latest)) => self.move_to(latest),
        }
    }

    /// Returns this clock advanced to a moment, if that is later than the latest one.
    pub fn at(mut self, moment: i64) -> Self {
        self.move_to(moment);
        self
    }

    /// Advances to a moment, if that is later than the latest one.
    fn move_to(&mut self, moment: i64) {
        if self.shares.is_some() {
            return self.advance(moment);
        }
        let latest = self.latest.map_or(moment, |latest| latest.max(moment));
        (self.latest, self.generation) = (Some(latest), self.generation_at(latest));
    }

    /// Encodes the state that changes, for the file of a filter that several processes share: keys so far, 1 and the
    /// latest moment or zeros, the open generation, and the three words of the [stamp](Self::stamp). The generation
    /// does not follow from the number of keys while a generation opens.
    pub(crate) fn to_record(&self) -> [u64; 7] {
        let [by_system, boot, offset] = self.stamp();
        let latest = self.latest.unwrap_or(0) as u64;
        [self.inserted, self.latest.is_some().into(), latest, by_system, self.generation as u64, boot, offset]
    }

    /// Returns this clock in the state that another process has [recorded](Self::to_record).
    pub(crate) fn with_record(self, [inserted, timed, latest, by_system, generation, boot, offset]: [u64; 7]) -> Self {
        let latest = (timed == 1).then_some(latest as i64);
        Self { inserted, latest, generation: generation as i64, ..self }.with_stamp([by_system, boot, offset])
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
            (Window::Time { .. }, Some(_)) if self.shares.is_some() => {
                u64::try_from(self.ends_by_count()).is_ok_and(|ends| ends <= self.inserted)
            }
            (Window::Time { .. }, Some(latest)) => self.generation == self.generation_at(latest),
        };
        agrees && self.inserted <= MAX_INSERTED
    }

    /// Returns the window that this clock measures.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns whether the open generation never ends, in a filter that forgets nothing.
    pub fn endless(&self) -> bool {
        self.length == NEVER
    }

    /// Returns whether every insertion opens a generation.
    pub(crate) fn opens_each_insertion(&self) -> bool {
        matches!(self.window, Window::Count { .. }) && self.length == 1
    }

    /// Returns whether the window is one of insertions.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        matches!(self.window, Window::Count { .. })
    }

    /// Returns whether the window is one of insertions, and a generation several of them.
    #[inline(always)]
    pub(crate) fn counts_several(&self) -> bool {
        self.counts() && self.length > 1
    }

    /// Count clock: returns whether the open generation has room for a key.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.inserted < (self.generation as u64 + 1).saturating_mul(self.length)
    }

    /// Returns the number of keys so far: inserted, or looked up by `seen` and not inserted. A window that counts
    /// deliveries counts only the inserted ones.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Time clock: returns the latest moment so far.
    pub fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// Returns the open generation.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Advances to the moment of key `i`. Returns how many generations begin by that, and how many keys from `i` on, up
    /// to `len`, then belong to the open one: none when it is full on the count clock. A late key counts as of the
    /// latest moment, and stays longer.
    pub(crate) fn run(&mut self, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        let Window::Time { .. } = self.window else {
            let room = (self.generation as u64 + 1) * self.length - self.inserted;
            return (0, (len - i).min(usize::try_from(room).unwrap_or(usize::MAX)));
        };
        if let Some(plan) = self.plan() {
            return self.run_by_share(plan, moments, i, len);
        }
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
        // Another thread may write to the times while they are read, and make them later: the clock stays consistent.
        let last = moments.latest(i..i + run).min(self.span_of(self.generation).end.saturating_sub(1));
        self.latest = self.latest.max(Some(last));
        (if first { 0 } else { self.generation.abs_diff(before) }, run)
    }

    /// Time clock: returns how far times may step back.
    #[inline(always)]
    pub(crate) fn lateness(&self) -> u64 {
        if let Window::Time { lateness, .. } = self.window { lateness } else { 0 }
    }

    /// Time clock: advances to the moment of key `i`, as [`run`](Self::run) does, but leaves a late key its own time.
    /// Returns how many generations that opens; how many generations before the open one the key and the beginning of
    /// its window lie; and how many keys from `i` on, up to `len`, have these numbers.
    pub(crate) fn run_of_late(&mut self, moments: Moments<'_>, i: usize, len: usize) -> (u64, [u64; 2], usize) {
        let window = self.window.length();
        // A key of now may have waited for a thread that inserted later keys.
        let earliest = if let Moments::Now(_) = moments { self.latest.unwrap_or(i64::MIN) } else { i64::MIN };
        let generations = |moment: i64| {
            let moment = moment.max(earliest);
            [moment, moment.saturating_sub_unsigned(window)].map(|moment| self.generation_at(moment))
        };
        let read = Cell::new(None);
        let alike = |moment: i64| {
            read.set(Some(generations(moment)));
            let [own, oldest] = generations(moment).map(|generation| self.span_of(generation));
            let later = |moment: i64| moment.saturating_add_unsigned(window);
            own.start.max(later(oldest.start))..own.end.min(later(oldest.end))
        };
        let Some((moment, run)) = moments.run(i, len, alike) else { return (0, [0; 2], len - i) };
        let generations = read.get().unwrap_or_else(|| generations(moment));
        // Keys of earlier generations do not advance the clock.
        let is_late = self.latest.is_some() && generations[0] < self.generation;
        let (opened, run) = if is_late { (0, run) } else { self.run(moments, i, i + run) };
        let before = |generation| u64::try_from(self.generation.saturating_sub(generation)).unwrap_or(0);
        (opened, generations.map(before), run)
    }

    /// Time clock: advances to the latest moment of the keys in `range`, unless a later one came before. A count clock
    /// stays.
    pub(crate) fn reach(&mut self, moments: Moments<'_>, range: Range<usize>) {
        if self.counts() {
            return;
        }
        self.move_to(moments.latest(range));
        self.by_system |= matches!(moments, Moments::Now(_));
    }

    /// Count clock: opens the next generation, when an insertion no longer fits into the open one.
    pub(crate) fn open_next(&mut self) {
        self.generation += 1;
    }

    /// Returns this clock with the key that opens a generation counted, on the count clock. By the count before it, the
    /// oldest key of the window may need a bit that the generation clears.
    pub(crate) fn with_opening_key(self) -> Self {
        let keys = u64::from(matches!(self.window, Window::Count { .. }));
        Self { inserted: self.inserted + keys, ..self }
    }

    /// Counts keys into the open generation.
    pub(crate) fn count(&mut self, keys: u64) {
        self.inserted += keys;
    }

    /// Returns the clock of two merged filters of equal parameters, and how many generations each filter has to age to
    /// reach it.
    ///
    /// Moments are the same everywhere, so on the time clock the later one counts. Insertions differ: generations of
    /// two counts name the same slices only if their numbers are equal, unless the cells can be `realigned`. Then the
    /// lesser place in the open generation keeps the promise of both; the greater would end the generation too early
    /// for the other's keys. A generation that never ends takes all insertions.
    pub(crate) fn merged(&self, other: &Self, realigned: bool) -> Result<(Self, u64, u64), Error> {
        match self.window {
            Window::Count { .. } if self.endless() => {
                Ok((Self { inserted: self.inserted.saturating_add(other.inserted), ..self.clone() }, 0, 0))
            }
            Window::Count { .. } if realigned || self.generation == other.generation => {
                let begins = |clock: &Self| clock.generation as u64 * clock.length;
                let later = if self.generation < other.generation { other } else { self };
                let place = (self.inserted - begins(self)).min(other.inserted - begins(other));
                Ok((Self { inserted: begins(later) + place, max_ahead: self.max_ahead, ..later.clone() }, 0, 0))
            }
            Window::Count { .. } => Err(Error::value(format!(
                "filters of insertions can be merged only in the same generation, but inserted is {} and {}: \
                 generations {} and {}",
                self.inserted, other.inserted, self.generation, other.generation
            ))),
            Window::Time { .. } => {
                let later = if self.latest < other.latest { other } else { self };
                let behind = |clock: &Self| clock.latest.map_or(0, |_| later.generation.abs_diff(clock.generation));
                let inserted = self.inserted.saturating_add(other.inserted);
                let by_system = self.by_system || other.by_system;
                // Keys of either filter may have the later of both times.
                let offset = self.offset.max(other.offset);
                let (clock, ours, theirs) = match (&self.shares, self.latest, other.latest) {
                    (Some(_), Some(_), Some(_)) => self.merged_by_share(other)?,
                    _ => (later.clone(), behind(self), behind(other)),
                };
                Ok((Self { inserted, by_system, offset, max_ahead: self.max_ahead, ..clock }, ours, theirs))
            }
        }
    }

    /// Returns how many generations after the open one the query of key `i` belongs, and how many keys from `i` on, up
    /// to `len`, belong to the same one. A query does not advance the clock.
    pub(crate) fn pending(&self, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        if let Some(shares) = &self.shares {
            return self.pending_by_share(shares, moments, i, len);
        }
        let queried_in = |moment: i64| self.generation_at(moment).max(self.generation);
        let alike = |moment: i64| {
            let Range { start, end } = self.span_of(queried_in(moment));
            if queried_in(moment) == self.generation { i64::MIN..end } else { start..end }
        };
        match (self.latest, moments.run(i, len, alike)) {
            (Some(_), Some((moment, run))) => (queried_in(moment).abs_diff(self.generation), run),
            _ => (0, len - i),
        }
    }

    /// Returns how many generations before the open one may contain keys of a shorter window when key `i` is read, or
    /// `None` if not even the open one may. Also returns for how many keys from `i` on, up to `len`, the answer is the
    /// same.
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

    /// Returns how long ago, as of the latest moment, the generation `back` before the open one began, in insertions or
    /// seconds. Nothing began before the first insertion.
    pub(crate) fn began(&self, back: u64) -> f64 {
        // Generations that also end by count, each with its share of the capacity, are not equally long.
        if let (Some(shares), Some(latest)) = (&self.shares, self.latest)
            && let Some(began) = self.began_by_share(shares, latest, back)
        {
            return began;
        }
        match (self.window, self.latest) {
            (Window::Count { .. }, _) => {
                let before = (self.generation as u64).saturating_sub(back) * self.length;
                (self.inserted - before.min(self.inserted)) as f64
            }
            (Window::Time { .. }, Some(latest)) => {
                let open = i128::from(latest) - i128::from(self.span_of(self.generation_at(latest)).start);
                (open as f64 + back as f64 * self.length as f64) / 1e9
            }
            (Window::Time { .. }, None) => 0.0,
        }
    }

    /// Returns how long the generation `back` before the open one could take keys: from its beginning to that of the
    /// next, or to the latest insertion. An insertion counts as the time it takes at the planned rate, because
    /// otherwise a generation that it has just opened would have length zero.
    pub(crate) fn exposure(&self, back: u64) -> f64 {
        match back.checked_sub(1) {
            Some(next) => self.began(back) - self.began(next),
            None => self.began(0) + self.gap(),
        }
    }

    /// Time clock: returns the seconds from one insertion to the next at the planned rate.
    pub(crate) fn gap(&self) -> f64 {
        match self.window {
            Window::Count { .. } => 0.0,
            Window::Time { span, capacity, .. } => span as f64 / capacity as f64 / 1e9,
        }
    }

    /// Returns the seconds from the latest moment to that of key `i`, below 0 for a late one; 0 on a clock of
    /// insertions. The system's clock is never late.
    pub(crate) fn since_latest(&self, moments: Moments<'_>, i: usize) -> f64 {
        let Some(latest) = self.latest else { return 0.0 };
        let since = |moment: i64| (i128::from(moment) - i128::from(latest)) as f64 / 1e9;
        match moments {
            Moments::Untimed => 0.0,
            Moments::Now(now) => since(now.max(latest)),
            _ => since(moments.moment(i)),
        }
    }

    /// Returns the moments of a generation, clipped to the range of moments.
    fn span_of(&self, generation: i64) -> Range<i64> {
        let length = self.length as i64;
        generation.saturating_mul(length)..generation.saturating_add(1).saturating_mul(length)
    }

    /// Time clock: returns the generation of a moment. Most moments lie in the open one, which is checked without a
    /// division of some 40 cycles.
    #[inline]
    pub(crate) fn generation_at(&self, moment: i64) -> i64 {
        let is_open = |start| start <= moment && moment.abs_diff(start) < self.length;
        match self.generation.checked_mul(self.length as i64).is_some_and(is_open) {
            true => self.generation,
            false => moment.div_euclid(self.length as i64),
        }
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

    #[test]
    fn a_count_outside_of_the_open_generation_is_damage() {
        let clock = Clock::new(Window::Count { insertions: 301 }, 3);
        for (inserted, open, is_sound) in [(100, 0, true), (101, 0, false), (99, 1, false), (100, 1, true)] {
            let record = [inserted, 0, 0, 0, open, 0, 0];
            assert_eq!(clock.clone().with_record(record).is_sound(), is_sound, "{inserted} in generation {open}");
        }
    }

    /// Times that stay as they are, or, if `fickle`, differ whenever they are read.
    struct FickleTimes<'a> {
        times: &'a [i64],
        fickle: bool,
        reads: AtomicI64,
    }

    impl TimeSource for FickleTimes<'_> {
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
    fn a_clock_never_goes_back_if_times_change_while_they_are_read() {
        let window = Window::Time { span: 1000, lateness: 30, capacity: 10 };
        let times: Vec<i64> = (0..3000).map(|i| i * 7).collect();
        let fickle = FickleTimes { times: &times, fickle: true, reads: AtomicI64::new(3) };
        for retained in [3, 10] {
            let (mut clock, mut i, mut generations) = (Clock::new(window, retained), 0, 0);
            let at = Moments::TimeRange(TimeRange::new(&fickle, 0..3000));
            while i < 3000 {
                let (before, latest) = (clock.generation(), clock.latest());
                let (opened, run) = clock.run(at, i, 3000);
                assert!((1..=3000 - i).contains(&run));
                assert!(clock.latest() >= latest);
                assert_eq!(clock.latest().map(|latest| clock.generation_at(latest)), Some(clock.generation()));
                assert_eq!(opened, if i == 0 { 0 } else { clock.generation().abs_diff(before) });
                (i, generations) = (i + run, generations + opened);
            }
            assert!(generations > 10);
        }
    }

    /// Moments in order are searched, others are read in sequence: the clock must come out the same.
    #[test]
    fn searching_moments_in_order_gives_the_clock_of_reading_each() {
        let window = Window::Time { span: 1000, lateness: 30, capacity: 10 };
        for (steps, retained) in [(0..1, 4), (0..3, 10), (0..40, 3), (0..700, 3), (1..2, 1)] {
            let mut state = 5u64;
            let mut moment = -3000;
            let mut next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                moment += steps.start + (state >> 33) as i64 % (steps.end - steps.start);
                moment
            };
            let all: Vec<i64> = (0..300).map(|_| next()).collect();
            let lying = FickleTimes { times: &all, fickle: false, reads: AtomicI64::new(0) };
            let (mut read, mut searched) = (Clock::new(window, retained), Clock::new(window, retained));
            for (start, where_it_lies) in [0, 1, 2, 40, 41, 130].into_iter().zip([false, true].into_iter().cycle()) {
                let end = 300.min(start + 140);
                let (each, in_order) = (Moments::Each(&all[start..end]), Moments::of(&all[start..end]));
                assert!(matches!(in_order, Moments::InOrder(_)));
                let in_order =
                    if where_it_lies { Moments::TimeRange(TimeRange::new(&lying, start..end)) } else { in_order };
                for check_order in [false, true] {
                    let refused = |clock: &Clock, moments| clock.check(moments, check_order).map_err(|e| e.to_string());
                    assert_eq!(refused(&read, each), refused(&searched, in_order));
                }
                let mut i = 0;
                while i < end - start {
                    assert_eq!(read.pending(each, i, end - start), searched.pending(in_order, i, end - start));
                    let run = read.run(each, i, end - start);
                    assert_eq!(run, searched.run(in_order, i, end - start), "{i} of {start}..{end}");
                    assert_eq!(read, searched);
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
        let error = clock.check(Moments::of(&[100, 500, 480, 469, 700, 90]), true).unwrap_err().to_string();
        assert!(error.starts_with("at[3] lies 0.000000031 s before the latest time seen"), "{error}");
        assert!(error.ends_with("a larger lateness, of 0.00000061 s for these times"), "{error}");
    }
}
