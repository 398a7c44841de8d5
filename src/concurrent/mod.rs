//! A filter that threads share without a lock: lines of lanes, as in the [line layout](crate::layout::line).
//!
//! What differs from that layout while threads use it: each page has a rotation of its own and rotates when an insertion
//! meets it after its time, so that no thread rotates for others. `page` decides which of several threads is first with
//! a key, and `clock` counts for all of them; their texts have the proofs. A copy of the cells in which all pages have
//! aged to the same step is a filter in lines, and is saved as one.

mod cells;
mod clock;
mod page;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::clock::{Clock, Window};
use crate::filter::{Family, Filter};
use crate::key::Seed;
use crate::memory::Words;
use crate::shape::ring::Paper;
use crate::shape::{Budget, Shape as _, line};
use cells::{Cells, Operation, When, cells_of};
use clock::SharedClock;
pub(crate) use clock::system_now;

/// The cells and the clock of a filter that threads share, by hashes of keys.
pub struct SharedFilter {
    shape: line::LineShape,
    seed: Seed,
    clock: SharedClock,
    cells: Box<dyn Cells>,
}

impl SharedFilter {
    /// An empty filter for a window and a rate or a number of bytes.
    ///
    /// A window of insertions is planned longer by as many insertions as its clock may be ahead, at most 1 / 256 of it.
    pub fn plan(
        window: Window,
        budget: Budget,
        slack: Option<u64>,
        max_ahead: Option<u64>,
        seed: Seed,
    ) -> Result<Self, Error> {
        let (lease, planned) = match window.check()? {
            Window::Count { insertions } => {
                let lease = clock::lease(insertions);
                (lease, Window::Count { insertions: insertions + clock::most_ahead(lease) })
            }
            timed => (clock::LONGEST_LEASE, timed),
        };
        let shape = line::choose(planned, budget, slack, Paper::AgePartitioned)?;
        let clock = Clock::new(planned, shape.retained()).with_max_ahead(max_ahead);
        let clock = SharedClock::new(&clock, shape.retained(), shape.pages, lease)?;
        Ok(Self { shape, seed, clock, cells: cells_of(&shape, None)? })
    }

    /// The filter that goes on from one in lines.
    ///
    /// Its clock counts every insertion by itself, so that the window is exactly that of the other filter.
    pub fn from_filter(filter: &Filter) -> Result<Self, Error> {
        let Some(&shape) = filter.shape_as::<line::LineShape>() else {
            return Err(Error::value(format!(
                "a ConcurrentFilter needs a filter in lines (age-partitioned-line or guarded-epoch-line), got {}: \
                 open it as a Filter",
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
        let lease = if let Window::Count { .. } = clock.window() { 1 } else { clock::LONGEST_LEASE };
        let clock = SharedClock::new(&clock, shape.retained(), shape.pages, lease)?;
        Ok(Self { shape, seed: filter.seed(), clock, cells })
    }

    /// A copy as a filter in lines: every key whose insertion returned before this call, within the window.
    ///
    /// Threads may go on meanwhile. Each page is copied as of one rotation, and aged to the step of the whole afterwards.
    pub fn to_filter(&self) -> Result<Filter, Error> {
        let mut words = Words::zeroed(self.shape.nbytes() as usize / 8)?;
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
        Filter::from_saved(form.kind, &form.values(&self.shape), clock.window(), |_| clock, self.seed, words)
    }

    /// Inserts keys, whether they are there or not.
    pub fn insert(&self, hashes: &[u64], at: At<'_>) -> Result<(), Error> {
        let when = self.when(hashes, at, true)?;
        self.cells.act(&self.clock, hashes, when, Operation::Insert)
    }

    /// Writes which of the keys are there.
    pub fn contains(&self, hashes: &[u64], at: At<'_>, present: &mut [bool]) -> Result<(), Error> {
        let when = self.when(hashes, at, false)?;
        self.cells.act(&self.clock, hashes, when, Operation::Contains(present))
    }

    /// Writes which of the keys were there, in order, and inserts those that were not.
    pub fn seen(&self, hashes: &[u64], at: At<'_>, seen: &mut [bool]) -> Result<(), Error> {
        let when = self.when(hashes, at, true)?;
        self.cells.act(&self.clock, hashes, when, Operation::Seen(seen))
    }

    #[inline(always)]
    fn when<'a>(&self, hashes: &[u64], at: At<'a>, inserts: bool) -> Result<When<'a>, Error> {
        match (self.clock.window(), at) {
            (Window::Count { .. }, At::Now) => Ok(When::Untimed),
            (Window::Count { .. }, At::Each(_)) => Err(self.clock.refuse_times()),
            (Window::Time { .. }, At::Now) => Ok(self.clock.now(inserts).map_or(When::Empty, When::Now)),
            (Window::Time { .. }, At::Each(moments)) if moments.len() != hashes.len() => {
                let (keys, times) = (hashes.len(), moments.len());
                Err(Error::value(format!("at must have a time for each of the {keys} keys, got {times}")))
            }
            (Window::Time { .. }, At::Each(moments)) => {
                if inserts && moments.len() > 1 {
                    self.clock.check(crate::clock::Moments::of(moments))?;
                }
                Ok(When::Each(moments))
            }
        }
    }

    /// What the filter promises and costs.
    pub fn shape(&self) -> &line::LineShape {
        &self.shape
    }

    /// The seed that keys are hashed with.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The window that the caller asked for.
    pub fn window(&self) -> Window {
        match self.clock.window() {
            Window::Count { insertions } => Window::Count { insertions: insertions - self.clock.most_ahead() },
            timed => timed,
        }
    }

    /// Chance that a key never inserted is reported, at the worst phase.
    pub fn fpr(&self) -> f64 {
        self.shape.fpr(self.clock.window())
    }

    /// How long after leaving the window a key may still be reported, in insertions or nanoseconds.
    pub fn slack(&self) -> u64 {
        let planned = self.shape.slack(self.clock.window());
        planned + (self.clock.window().length() - self.window().length())
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.cells.nbytes() + self.clock.nbytes()
    }
}

/// When the keys of a call come.
#[derive(Clone, Copy)]
pub enum At<'a> {
    /// By the system's clock, or in a window of insertions.
    Now,
    /// Each at its own time, in nanoseconds since the Unix epoch.
    Each(&'a [i64]),
}
