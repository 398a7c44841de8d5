//! The filter of one thread.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::SystemTime;

use super::window::{check_clock, moment};
use super::{Builder, Window, at_end, each_chunk, events, in_chunks, infallible};
use crate::clock::{Moments, Window as CoreWindow, system};
use crate::engine::Refresh;
use crate::key::{Key, KeyHasher};
use crate::{Error, family, format};

/// A filter over a window for one thread at a time: reports whether a key was inserted within the window.
///
/// - A key inserted within the window is always reported.
/// - Between window and window + [`slack`](Self::slack) it may be reported.
/// - A key never inserted, or gone for longer, is reported with probability at most [`fpr`](Self::fpr).
///
/// Every occurrence restarts a key's window. [`ConcurrentFilter`](super::ConcurrentFilter) is for many threads.
///
/// Memory is allocated by [`builder`](Self::builder) and stays the same, unless a window of time has no capacity: then
/// it follows the rate of keys, and memory that cannot be had ends the process, as for a `Vec`.
///
/// ```
/// use lately::{Filter, Window};
///
/// let mut filter = Filter::builder(Window::last(1_000_000)).fpr(0.001).build()?;
/// assert!(!filter.seen("a"));
/// assert!(filter.seen("a"));
/// assert_eq!(filter.duplicated(["b", "a", "b"]), [false, true, true]);
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Clone)]
pub struct Filter {
    core: family::AnyFilter,
    hasher: KeyHasher,
    /// The latest time that a comparison with the system's clock has accepted.
    accepted_until: i64,
}

impl Filter {
    /// Begins a filter for a window.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.fpr() <= 0.01);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn builder(window: Window) -> Builder<Self> {
        Builder::new(window)
    }

    pub(super) fn of(core: family::AnyFilter) -> Self {
        let hasher = core.hasher();
        Self { core, hasher, accepted_until: i64::MIN }
    }

    /// Returns whether a key was inserted within the window, and inserts it.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(!filter.seen(("10.0.0.1", 443)));
    /// assert!(filter.seen(("10.0.0.1", 443)));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen(&mut self, key: impl Key) -> bool {
        let hash = key.to_hash(&self.hasher);
        match self.core.engine_mut().seen_untimed(hash) {
            Some(seen) => seen,
            None => infallible(self.seen_in_core(hash, self.now())),
        }
    }

    /// Returns whether a key was inserted within the window before an event, and inserts it as of that time.
    ///
    /// Rejects times for a window of insertions, times that step back by more than the lateness, and times too far
    /// ahead of the system's clock.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{Filter, Window};
    ///
    /// let mut filter = Filter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(1000).build()?;
    /// let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    /// assert!(!filter.seen_at("a", at(1000))?);
    /// assert!(filter.seen_at("a", at(1060))?);
    /// assert!(filter.seen_at("b", at(900)).is_err());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen_at(&mut self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        let at = Moments::At(moment(at)?);
        let hash = key.to_hash(&self.hasher);
        self.check_new(at)?;
        self.seen_in_core(hash, at)
    }

    /// Inserts a key.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert(b"bytes");
    /// assert!(filter.contains(b"bytes"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn insert(&mut self, key: impl Key) {
        let hash = key.to_hash(&self.hasher);
        let at = self.now();
        infallible(self.core.engine_mut().insert_one(hash, at));
    }

    /// Inserts a key as of the time of an event. Rejects the times that [`seen_at`](Self::seen_at) rejects.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{Filter, Window};
    ///
    /// let mut filter = Filter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(1000).build()?;
    /// filter.insert_at("a", UNIX_EPOCH + Duration::from_secs(1000))?;
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn insert_at(&mut self, key: impl Key, at: SystemTime) -> Result<(), Error> {
        let at = Moments::At(moment(at)?);
        self.check_new(at)?;
        self.core.engine_mut().insert_one(key.to_hash(&self.hasher), at)
    }

    /// Returns whether a key was inserted within the window. A window of time ends now, or with the latest event if all
    /// keys came with times.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert(5u8);
    /// assert!(filter.contains(5i64) && filter.contains(5.0) && !filter.contains("5"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn contains(&self, key: impl Key) -> bool {
        let (hash, engine) = (key.to_hash(&self.hasher), self.core.engine());
        engine.contains_untimed(hash).unwrap_or_else(|| infallible(engine.contains_one(hash, self.now())))
    }

    /// Returns whether a key was inserted within the window before a time, which may lie in the future. Rejects a
    /// window of insertions, and times before the latest event by more than the lateness.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{Filter, Window};
    ///
    /// let mut filter = Filter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains_at("a", SystemTime::now() + Duration::from_secs(59))?);
    /// assert!(!filter.contains_at("a", SystemTime::now() + Duration::from_secs(300))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn contains_at(&self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        self.core.engine().contains_one(key.to_hash(&self.hasher), Moments::At(moment(at)?))
    }

    /// Returns for each key in order whether it was inserted within the window, and inserts it.
    ///
    /// The answers are those of [`seen`](Self::seen) for one key after the other. A batch is faster, because the cache
    /// lines of later keys are fetched in advance. A window of time reads the clock once for 4,096 keys, after the last
    /// of them.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// let urls = vec!["/a".to_string(), "/b".to_string(), "/a".to_string()];
    /// assert_eq!(filter.duplicated(&urls), [false, false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Vec<bool> {
        let hasher = self.hasher;
        infallible(in_chunks(keys, &hasher, |hashes, seen| {
            let at = self.now();
            self.core.engine_mut().duplicated(hashes, at, Refresh::Always, seen)
        }))
    }

    /// Returns for each event in order whether its key was inserted within the window before it, and inserts the key.
    ///
    /// If a time is rejected, as by [`seen_at`](Self::seen_at), no key is inserted.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{Filter, Window};
    ///
    /// let mut filter = Filter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(1000).build()?;
    /// let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    /// assert_eq!(filter.duplicated_at([("a", at(1000)), ("b", at(1001)), ("a", at(1030))])?, [false, false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated_at<K: Key>(
        &mut self,
        keys: impl IntoIterator<Item = (K, SystemTime)>,
    ) -> Result<Vec<bool>, Error> {
        let (hashes, moments) = events(keys, &self.hasher)?;
        let at = Moments::of(&moments);
        self.check_new(at)?;
        let mut seen = vec![false; hashes.len()];
        self.core.engine_mut().duplicated(&hashes, at, Refresh::Always, &mut seen)?;
        Ok(seen)
    }

    /// Adds all keys of another filter, which was built by the same request. An error names what differs.
    ///
    /// Of windows of insertions, the merged one has the last `window` insertions of each filter, of two threads for
    /// example. A key stays for as many more insertions as it had left in its own filter. The bytes and the rates of
    /// both add up until the other's keys have left the window. Such filters with a [preference](crate::Prefer) can be
    /// merged only in the same generation, after nearly as many insertions.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lately::{Filter, Window};
    ///
    /// let builder = || Filter::builder(Window::time(Duration::from_secs(60))).fpr(0.01).capacity(1000);
    /// let (mut here, mut there) = (builder().build()?, builder().build()?);
    /// there.insert("a");
    /// here.merge(&there)?;
    /// assert!(here.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.core.merge(&other.core)
    }

    /// Forgets all keys.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.inserted() == 0);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn clear(&mut self) {
        *self = Self::of(infallible(self.core.cleared()));
    }

    /// Returns the saved form, which [`from_bytes`](Self::from_bytes) reads here and `Filter.from_bytes` in Python.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// let copy = Filter::from_bytes(&filter.to_bytes())?;
    /// assert!(copy.contains("a") && copy == filter);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let cells = infallible(self.core.engine().pieces());
        let mut bytes = format::preamble(&self.core, &cells);
        cells.iter().for_each(|piece| bytes.extend_from_slice(bytemuck::cast_slice(piece)));
        bytes
    }

    /// Reads a filter from its saved form, of any family. Rejects bytes that are damaged.
    ///
    /// ```
    /// # use lately::{Error, Filter};
    /// assert!(matches!(Filter::from_bytes(b"no filter"), Err(Error::Format(_))));
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let core = format::read(&mut rest)?;
        check_clock(core.window())?;
        at_end(rest)?;
        Ok(Self::of(core))
    }

    /// Returns the window.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert_eq!(filter.window(), Window::last(1000));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn window(&self) -> Window {
        Window::of_length(self.core.window().length(), self.core.window())
    }

    /// Returns the chance that a key never inserted is reported, at the worst phase and the planned load.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.fpr() <= 0.01);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn fpr(&self) -> f64 {
        self.core.fpr()
    }

    /// Returns the chance that a key never inserted is reported now. Reads all cells. The chance exceeds
    /// [`fpr`](Self::fpr) while a window of time holds more keys than its capacity.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert_eq!(filter.false_positive_rate(), 0.0);
    /// filter.extend(0..1000);
    /// assert!(filter.false_positive_rate() > 0.0 && filter.false_positive_rate() <= filter.fpr());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate()
    }

    /// Returns how long after leaving the window a key may still be reported.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.slack().insertions() <= Some(500));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn slack(&self) -> Window {
        Window::of_length(self.core.slack(), self.core.window())
    }

    /// Returns the bytes of the cells.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.nbytes() < 8000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.core.engine().nbytes()
    }

    /// Returns the number of insertions so far.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.extend([1, 2, 1]);
    /// assert_eq!(filter.inserted(), 3);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn inserted(&self) -> u64 {
        self.core.engine().clock().inserted()
    }

    /// Returns the name of the family and layout, as in Python.
    ///
    /// ```
    /// # use lately::{Filter, Prefer, Window};
    /// let filter = Filter::builder(Window::last(1_000_000)).fpr(0.01).prefer(Prefer::Speed).build()?;
    /// assert_eq!(filter.family(), "age-partitioned-line");
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn family(&self) -> String {
        self.core.name()
    }

    /// Returns the hasher of the keys, which hashes a key once for several filters of one seed.
    ///
    /// ```
    /// # use lately::{Filter, Hashed, Key, Window};
    /// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// let key = Hashed("a".to_hash(filter.hasher()));
    /// assert!(!filter.seen(key) && filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Returns the filter of the core, for the binding.
    #[doc(hidden)]
    pub fn core(&self) -> &family::AnyFilter {
        &self.core
    }

    /// Wraps a filter of the core.
    #[doc(hidden)]
    pub fn from_core(core: family::AnyFilter) -> Self {
        Self::of(core)
    }

    #[inline(always)]
    pub(super) fn now(&self) -> Moments<'static> {
        match self.core.window() {
            CoreWindow::Count { .. } => Moments::Untimed,
            CoreWindow::Time { .. } => Moments::Now(system::now()),
        }
    }

    /// Rejects times that lie too far ahead of the system's clock, and those that the filter's clock rejects. A single
    /// time before an accepted one is not compared with the system's clock, which takes as long as the key.
    fn check_new(&mut self, at: Moments<'_>) -> Result<(), Error> {
        if matches!(at, Moments::At(moment) if moment <= self.accepted_until) {
            return Ok(());
        }
        self.accepted_until = self.core.engine().clock().check_new(at)?;
        Ok(())
    }

    fn seen_in_core(&mut self, hash: u64, at: Moments<'_>) -> Result<bool, Error> {
        self.core.engine_mut().seen_one(hash, at, Refresh::Always)
    }
}

// A key or an iterator of a caller can panic, but only before a call changes the cells.
impl UnwindSafe for Filter {}
impl RefUnwindSafe for Filter {}

/// Inserts keys in order.
///
/// ```
/// # use lately::{Filter, Window};
/// # let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
/// filter.extend(["a", "b"]);
/// assert!(filter.contains("a") && filter.contains("b"));
/// # Ok::<(), lately::Error>(())
/// ```
impl<K: Key> Extend<K> for Filter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let hasher = self.hasher;
        infallible(each_chunk(keys, &hasher, |hashes| {
            let at = self.now();
            self.core.engine_mut().insert(hashes, at)
        }));
    }
}

/// Two filters are equal if everything that is saved is equal.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        infallible(self.core.equals(&other.core))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("family", &self.family())
            .field("window", &format_args!("{}", self.window()))
            .field("fpr", &self.fpr())
            .field("nbytes", &self.nbytes())
            .field("inserted", &self.inserted())
            .finish()
    }
}
