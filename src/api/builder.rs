//! The builder of all filters.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::window::Window;
use super::{ConcurrentFilter, Filter};
use crate::Error;
use crate::clock;
use crate::concurrent::SharedFilter;
use crate::family::{AnyFilter, Prefer, Request, plan_any};
use crate::key::Seed;

/// The request for a filter, from [`Filter::builder`] or [`ConcurrentFilter::builder`].
///
/// Set [`fpr`](Self::fpr) or [`nbytes`](Self::nbytes), and for a window of time [`capacity`](Self::capacity) too.
/// [`Prefer::Exact`] needs none of these. [`build`](Self::build) checks all values. Its errors name the parameter.
///
/// ```
/// use std::time::Duration;
/// use lately::{Filter, Window};
///
/// let filter = Filter::builder(Window::time(Duration::from_secs(600)))
///     .fpr(0.001)
///     .capacity(50_000)
///     .lateness(Duration::from_secs(5))
///     .build()?;
/// assert!(filter.fpr() <= 0.001);
///
/// let error = Filter::builder(Window::last(1000)).fpr(2.0).build().unwrap_err();
/// assert_eq!(error.to_string(), "fpr must lie between 0 and 1, both excluded, got 2");
/// # Ok::<(), lately::Error>(())
/// ```
#[must_use = "a builder makes a filter by `build`"]
pub struct Builder<F> {
    window: Window,
    fpr: Option<f64>,
    nbytes: Option<u64>,
    capacity: Option<u64>,
    slack: Option<Window>,
    lateness: Option<Duration>,
    /// The bound; `None` for the default.
    max_ahead: Option<Option<Duration>>,
    prefer: Option<Prefer>,
    seed: Seed,
    made: PhantomData<fn() -> F>,
}

impl<F> Builder<F> {
    pub(super) fn new(window: Window) -> Self {
        Self {
            window,
            fpr: None,
            nbytes: None,
            capacity: None,
            slack: None,
            lateness: None,
            max_ahead: None,
            prefer: None,
            seed: Seed::Public(0),
            made: PhantomData,
        }
    }

    /// Sets how far the times of events may step back, by default not at all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lately::{Filter, Window};
    ///
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let mut filter = Filter::builder(Window::time(minute)).fpr(0.01).capacity(1000).lateness(second).build()?;
    /// let now = std::time::SystemTime::now();
    /// filter.insert_at("a", now)?;
    /// assert!(filter.insert_at("b", now - second / 2).is_ok());
    /// assert!(filter.insert_at("c", now - minute).is_err());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn lateness(mut self, lateness: Duration) -> Self {
        self.lateness = Some(lateness);
        self
    }

    /// Sets how far times of events may lie ahead of the system's clock: by default one window, at least a minute.
    /// `None` allows any time.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{Filter, Window};
    ///
    /// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let mut filter = Filter::builder(Window::time(minute)).fpr(0.01).capacity(1000).max_ahead(second).build()?;
    /// assert!(filter.insert_at("a", SystemTime::now() + minute).is_err());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn max_ahead(mut self, max_ahead: impl Into<Option<Duration>>) -> Self {
        self.max_ahead = Some(max_ahead.into());
        self
    }

    /// Sets a public seed of the hashes, by default 0. Only filters of equal seeds can be merged.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let build = |seed| Filter::builder(Window::last(1000)).fpr(0.01).seed(seed).build();
    /// assert!(build(1)?.merge(&build(2)?).is_err());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::Public(seed);
        self
    }

    /// Sets 16 secret bytes that keys are hashed with, as a defence against chosen keys that collide.
    ///
    /// Draw them from the random generator of the operating system.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let random_bytes = [7; 16];
    /// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).secret(random_bytes).build()?;
    /// assert!(!filter.seen("a") && filter.seen("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.seed = Seed::from(secret);
        self
    }

    /// Sets the highest chance that a key never inserted is reported, at the worst phase. Strictly between 0 and 1.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let filter = Filter::builder(Window::last(1000)).fpr(1e-6).build()?;
    /// assert!(filter.fpr() <= 1e-6);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.fpr = Some(fpr);
        self
    }

    /// Sets the greatest number of bytes, in place of a rate. The filter then has the lowest rate that fits.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let filter = Filter::builder(Window::last(1_000_000)).nbytes(3_000_000).build()?;
    /// assert!(filter.nbytes() <= 3_000_000 && filter.fpr() < 0.01);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn nbytes(mut self, nbytes: u64) -> Self {
        self.nbytes = Some(nbytes);
        self
    }

    /// Sets the number of keys expected within a window of time, at the peak. More keys cost accuracy or memory, never
    /// the window.
    ///
    /// A [`Filter`] without it grows with the rate of keys.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let window = Window::time(std::time::Duration::from_secs(60));
    /// assert!(Filter::builder(window).fpr(0.01).capacity(50_000).build()?.nbytes() > 50_000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = Some(keys);
        self
    }

    /// Sets how long a key may still be reported after it has left the window.
    ///
    /// By default a [`Filter`] takes the least share of the window, from 1/64 to 1/4, that costs little memory. A
    /// [`ConcurrentFilter`], or a filter with [`Prefer`], takes half of the window.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let filter = Filter::builder(Window::last(1000)).fpr(0.01).slack(Window::last(200)).build()?;
    /// assert!(filter.slack().insertions().unwrap() <= 200);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn slack(mut self, slack: Window) -> Self {
        self.slack = Some(slack);
        self
    }

    fn request(&self) -> Result<Request, Error> {
        let window = self.window.to_core("window", self.lateness, self.capacity, self.max_ahead.flatten())?;
        let slack = self.slack.map(|slack| slack.length_like("slack", window)).transpose()?;
        let given = Request::given(window, self.fpr, self.nbytes, self.capacity, self.prefer)?;
        Ok(Request { slack, ..given })
    }

    fn max_ahead_in_core(&self, window: clock::Window) -> Option<u64> {
        // A file stores the nanoseconds plus 1, where the greatest word stands for no bound.
        let bound = |ahead: Duration| u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX - 2);
        self.max_ahead.map_or(window.default_max_ahead(), |ahead| ahead.map(bound))
    }
}

impl Builder<Filter> {
    /// Sets a preference: for speed or memory, for which the slack may be half of the window, or for exact answers.
    ///
    /// ```
    /// use lately::{Filter, Prefer, Window};
    ///
    /// let build = |prefer| Filter::builder(Window::last(1_000_000)).fpr(0.01).prefer(prefer).build();
    /// let (fast, small) = (build(Prefer::Speed)?, build(Prefer::Memory)?);
    /// assert_eq!(fast.family(), "age-partitioned-line");
    /// assert!(small.nbytes() < fast.nbytes());
    ///
    /// let mut exact = Filter::builder(Window::last(2)).prefer(Prefer::Exact).build()?;
    /// assert_eq!(exact.duplicated(["a", "b", "a", "c", "b"]), [false, false, true, false, false]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.prefer = Some(prefer);
        self
    }

    /// Builds the filter, empty.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let filter = Filter::builder(Window::last(1_000_000)).fpr(0.01).build()?;
    /// assert!(filter.nbytes() < 4_000_000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn build(self) -> Result<Filter, Error> {
        let request = self.request()?;
        let made = AnyFilter::of(plan_any(&request)?, request.window, self.seed)?;
        Ok(Filter::from_core(made.with_max_ahead(self.max_ahead_in_core(request.window))))
    }
}

impl Builder<ConcurrentFilter> {
    /// Builds the filter, empty.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// let filter = ConcurrentFilter::builder(Window::last(1_000_000)).fpr(0.01).build()?;
    /// assert!(filter.nbytes() < 3_000_000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn build(self) -> Result<ConcurrentFilter, Error> {
        let Request { window, budget, slack, unknown_rate, .. } = self.request()?;
        if unknown_rate {
            return Err(Error::value(
                "capacity must be given for a ConcurrentFilter of a window of time: pass the keys expected within it",
            ));
        }
        let made = SharedFilter::plan(window, budget, slack, self.max_ahead_in_core(window), self.seed)?;
        Ok(ConcurrentFilter::of(made))
    }
}

impl<F> fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("window", &self.window)
            .field("fpr", &self.fpr)
            .field("nbytes", &self.nbytes)
            .field("capacity", &self.capacity)
            .field("slack", &self.slack)
            .field("lateness", &self.lateness)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
