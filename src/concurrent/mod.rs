//! A filter that threads share without a lock: lines of lanes, as in the [line layout](crate::family::lines::cells).
//!
//! This differs from that layout in one way while threads use it. Each page has a rotation of its own and rotates when
//! an insertion meets it after its time, so that no thread rotates for others. `page` decides which of several threads
//! is first with a key, and `clock` counts for all of them; their texts have the proofs. A copy of the cells in which
//! all pages have aged to the same step is a filter in lines, and is saved as one.

mod cells;
mod clock;
mod page;
mod timed;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::family::{AnyFilter, Budget, Family, Shape as _, lines};
use crate::key::Seed;
use crate::memory::Words;
use cells::{Moment, SharedCells, cells_of};
use clock::{NEVER_LATE, SharedClock};

/// The cells and the clock of a filter that threads share, by hashes of keys.
pub struct SharedFilter {
    shape: lines::shape::LineShape,
    seed: Seed,
    clock: SharedClock,
    cells: Box<dyn SharedCells>,
}

impl SharedFilter {
    /// Makes an empty filter for a window and a rate or a number of bytes.
    ///
    /// A window of insertions is planned longer, and the capacity of a window of time larger, by the insertions that
    /// the clock may be ahead, at most 1 / 256.
    pub fn plan(
        window: Window,
        budget: Budget,
        slack: Option<u64>,
        max_ahead: Option<u64>,
        seed: Seed,
    ) -> Result<Self, Error> {
        let reserve = clock::reserve(window.check()?.capacity());
        let margin = clock::most_ahead(reserve);
        let planned = match window {
            Window::Count { insertions } => Window::Count { insertions: insertions + margin },
            Window::Time { span, lateness, capacity } => Window::Time { span, lateness, capacity: capacity + margin },
        };
        let shape = lines::shape::choose_for_threads(planned, budget, slack)?;
        let mut clock = shape.clock(planned);
        clock.set_max_ahead(max_ahead);
        let clock = SharedClock::new(&clock, &shape, reserve, margin)?;
        Ok(Self { shape, seed, clock, cells: cells_of(&shape, None)? })
    }

    /// Makes a concurrent filter that continues one in lines.
    ///
    /// Its clock counts every insertion by itself, so that the window is exactly that of the other filter.
    pub fn from_filter(filter: &AnyFilter) -> Result<Self, Error> {
        let Some(&shape) = filter.shape_as::<lines::shape::LineShape>() else {
            return Err(Error::value(format!(
                "a ConcurrentFilter continues a filter that a ConcurrentFilter or Prefer::Speed has made, got one of \
                 the family {}: open it as a Filter",
                filter.name()
            )));
        };
        let clock = filter.engine().clock();
        let step = match (clock.window(), clock.inserted(), clock.latest()) {
            (Window::Count { .. }, 0, _) | (Window::Time { .. }, _, None) => None,
            _ => Some(clock.generation()),
        };
        let words = filter.engine().words().as_slice();
        let cells = cells_of(&shape, step.map(|step| (words, step)))?;
        let reserve = match clock.window() {
            Window::Count { .. } => 1,
            Window::Time { capacity, .. } => clock::reserve(capacity),
        };
        let clock = SharedClock::new(&clock, &shape, reserve, 0)?;
        Ok(Self { shape, seed: filter.seed(), clock, cells })
    }

    /// Returns a copy as a filter in lines: every key whose insertion returned before this call, within the window.
    ///
    /// Threads may go on meanwhile. Each page is copied as of one rotation, and aged to the step of the whole
    /// afterwards.
    pub fn to_filter(&self) -> Result<AnyFilter, Error> {
        let mut words = Words::zeroed(self.shape.bytes(self.window()) as usize / 8)?;
        let cells = words.to_mut()?;
        let rotations = self.cells.copy(cells);
        // Read after the copies, so that no page is ahead of it by more than the insertion that rotated it.
        let pages = self.shape.pages as i64;
        let opened = |clock: &Clock| {
            let due = |page| clock::rotation_in(clock.generation(), page, pages);
            rotations.iter().zip(0..).any(|(&copied, page)| copied > due(page))
        };
        let clock = self.clock.to_core(opened);
        self.cells.age(cells, &rotations, clock.generation());
        let form = Family::of(&self.shape).form(&self.shape);
        AnyFilter::from_saved(form.kind, &form.values(&self.shape), clock.window(), |_| clock, self.seed, words)
    }

    /// Inserts a key, whether it is there or not.
    #[inline]
    pub fn insert(&self, hash: u64, at: At) -> Result<(), Error> {
        let moment = self.moment_to_write(at)?;
        self.cells.insert(&self.clock, hash, moment).map_err(|_| self.clock.rejection(moment.given))
    }

    /// Returns whether a key is there.
    #[inline]
    pub fn contains(&self, hash: u64, at: At) -> Result<bool, Error> {
        let Some(moment) = self.moment_to_read(at)? else { return Ok(false) };
        self.cells.contains(&self.clock, hash, moment).map_err(|_| self.clock.rejection(moment.given))
    }

    /// Returns whether a key was there, and inserts it if not.
    #[inline]
    pub fn seen(&self, hash: u64, at: At) -> Result<bool, Error> {
        let moment = self.moment_to_write(at)?;
        self.cells.seen(&self.clock, hash, moment).map_err(|_| self.clock.rejection(moment.given))
    }

    /// Writes which keys were there, in order, and inserts those that were not.
    pub fn duplicated(&self, hashes: &[u64], seen: &mut [bool]) -> Result<(), Error> {
        // The time is read once, but keys of the batch may end a step by count.
        let Window::Time { .. } = self.clock.window() else {
            return self.each(hashes, seen, |_, hash| self.seen(hash, At::Now));
        };
        let now = self.clock.now_to_write();
        self.each(hashes, seen, |_, hash| {
            let moment = self.moment_at(now, NEVER_LATE)?;
            self.cells.seen(&self.clock, hash, moment).map_err(|_| self.clock.rejection(moment.given))
        })
    }

    /// Writes which keys were there, each at its own time and in order, and inserts those that were not.
    ///
    /// Times that are late or too far ahead are rejected before any key is inserted.
    pub fn duplicated_at(&self, hashes: &[u64], moments: &[i64], seen: &mut [bool]) -> Result<(), Error> {
        if hashes.len() != moments.len() {
            let (keys, times) = (hashes.len(), moments.len());
            return Err(Error::value(format!("at must have a time for each of the {keys} keys, got {times}")));
        }
        self.clock.check(Moments::of(moments))?;
        self.each(hashes, seen, |i, hash| self.seen(hash, At::Moment(moments[i])))
    }

    /// Calls `act` with each key in order, and prefetches the lines of later keys.
    fn each(
        &self,
        hashes: &[u64],
        answers: &mut [bool],
        act: impl Fn(usize, u64) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.cells.prefetch(&hashes[..hashes.len().min(AHEAD)]);
        for (i, (&hash, answer)) in hashes.iter().zip(answers).enumerate() {
            if i % AHEAD == 0 {
                let coming = hashes.get(i + AHEAD..).unwrap_or_default();
                self.cells.prefetch(&coming[..coming.len().min(AHEAD)]);
            }
            *answer = act(i, hash)?;
        }
        Ok(())
    }

    #[inline]
    fn moment_to_write(&self, at: At) -> Result<Moment, Error> {
        match (self.clock.window(), at) {
            (Window::Count { .. }, At::Now) => Ok(UNTIMED),
            (Window::Count { .. }, At::Moment(given)) => Err(self.clock.rejection(given)),
            (Window::Time { .. }, At::Now) => self.moment_at(self.clock.now_to_write(), NEVER_LATE),
            (Window::Time { .. }, At::Moment(given)) => self.moment_at(given, given),
        }
    }

    /// Returns the moment of an insertion into a window of time. `given` is the caller's time, which may be too late.
    #[inline(always)]
    fn moment_at(&self, moment: i64, given: i64) -> Result<Moment, Error> {
        let (step, horizon) = self.clock.advance(moment, given != NEVER_LATE)?;
        Ok(Moment { step, horizon, given })
    }

    /// Returns none where nothing has been inserted into a window of time.
    #[inline]
    fn moment_to_read(&self, at: At) -> Result<Option<Moment>, Error> {
        let (moment, given) = match (self.clock.window(), at) {
            (Window::Count { .. }, At::Now) => return Ok(Some(UNTIMED)),
            (Window::Count { .. }, At::Moment(given)) => return Err(self.clock.rejection(given)),
            (Window::Time { .. }, At::Now) => (self.clock.now_to_read(), NEVER_LATE),
            (Window::Time { .. }, At::Moment(given)) => (given, given),
        };
        Ok(self.clock.horizon_at(moment).map(|horizon| Moment { step: i64::MIN, horizon, given }))
    }

    /// Returns the formulas for what the filter promises and costs.
    pub fn shape(&self) -> &lines::shape::LineShape {
        &self.shape
    }

    /// Returns the seed that keys are hashed with.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the window that the caller requested.
    pub fn window(&self) -> Window {
        self.clock.requested()
    }

    /// Returns the chance that a key never inserted is reported, at the worst phase.
    pub fn fpr(&self) -> f64 {
        self.shape.fpr(self.clock.window())
    }

    /// Returns how long after leaving the window a key may still be reported, in insertions or nanoseconds.
    pub fn slack(&self) -> u64 {
        let planned = self.shape.slack(self.clock.window());
        planned + (self.clock.window().length() - self.window().length()) + self.clock.grain()
    }

    /// Returns the chance that a key never inserted is reported now, computed from the actual bits.
    pub fn false_positive_rate(&self) -> f64 {
        let horizon = match self.clock.window() {
            Window::Count { .. } => self.clock.to_core(|_| false).generation(),
            Window::Time { .. } => match self.clock.horizon_at(self.clock.now_to_read()) {
                Some(horizon) => horizon,
                None => return 0.0,
            },
        };
        self.cells.false_positive_rate(horizon)
    }

    /// Holds the time of a window of time until what it returns is dropped, as a suspended thread may. For tests.
    #[doc(hidden)]
    pub fn hold_time(&self) -> impl Sized + '_ {
        self.clock.lock()
    }

    /// Returns an empty filter of the same request.
    pub fn cleared(&self) -> Result<Self, Error> {
        let (shape, clock) = (self.shape, self.clock.cleared(&self.shape)?);
        Ok(Self { shape, seed: self.seed, clock, cells: cells_of(&shape, None)? })
    }

    /// Returns the number of insertions so far. It is exact while no thread inserts.
    pub fn inserted(&self) -> u64 {
        self.clock.inserted()
    }

    /// Returns the bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.cells.nbytes() + self.clock.nbytes()
    }
}

/// The time of a key.
#[derive(Clone, Copy)]
pub enum At {
    /// By the system's clock, or in a window of insertions.
    Now,
    /// A time of its own, in nanoseconds since the Unix epoch.
    Moment(i64),
}

/// The moment of a call in a window of insertions.
const UNTIMED: Moment = Moment { step: 0, horizon: 0, given: NEVER_LATE };

/// Number of keys whose lines are prefetched together.
const AHEAD: usize = 16;
