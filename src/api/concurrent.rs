//! The filter of many threads.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::SystemTime;

use super::window::moment;
use super::{Builder, Filter, Window, events, in_chunks, infallible};
use crate::Error;
use crate::concurrent::{At, SharedFilter};
use crate::key::{Key, KeyHasher};

/// A filter over a window for many threads at once: inserts and looks up keys by `&self`, without a lock.
///
/// - A key inserted within the window is always reported, whatever other threads do.
/// - Of threads that call [`seen`](Self::seen) with one new key at the same time, exactly one gets `false`. (Except for
///   false positives, at the rate of [`fpr`](Self::fpr).)
/// - A key never inserted, or gone for longer than window + [`slack`](Self::slack), is reported with probability at
///   most `fpr`.
///
/// `seen` does not insert a key that it reports. So a repeat only reads, and hot keys stay in the caches of all
/// processors: it neither restarts its key's window nor counts as an insertion. [`insert`](Self::insert) does both. For
/// a key that is reported by chance no promise holds until `seen` returns `false` for it.
///
/// A call takes effect at one moment between its beginning and its end. Of a window of W insertions a key is reported
/// as long as at most W - 1 other insertions overlap or follow its own. A thread waits for another only while that
/// clears 4 KiB of expired keys, or advances the clock of a window of time.
///
/// Memory is allocated once. A window of time keeps the rate for any arrival of at most its capacity of keys; more keys
/// make false positives more frequent, as [`false_positive_rate`](Self::false_positive_rate) computes, and none is
/// missed.
///
/// A [`snapshot`](Self::snapshot) is a [`Filter`], which can be merged and saved; `try_into` turns a `Filter` into a
/// filter for all threads again. If you need `Filter`'s answers, put one into a `Mutex`.
///
/// ```
/// use lately::{ConcurrentFilter, Window};
///
/// let filter = ConcurrentFilter::builder(Window::last(1_000_000)).fpr(0.001).build()?;
/// let first: usize = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| !filter.seen("a"))).collect();
///     threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
/// });
/// assert_eq!(first, 1);
/// # Ok::<(), lately::Error>(())
/// ```
pub struct ConcurrentFilter {
    core: SharedFilter,
    hasher: KeyHasher,
}

impl ConcurrentFilter {
    /// Begins a filter for a window. A window of time needs a capacity.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lately::{ConcurrentFilter, Window};
    ///
    /// let window = Window::time(Duration::from_secs(120));
    /// let tokens = ConcurrentFilter::builder(window).fpr(1e-6).capacity(1_000_000).build()?;
    /// assert!(tokens.fpr() <= 1e-6);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn builder(window: Window) -> Builder<Self> {
        Builder::new(window)
    }

    pub(super) fn of(core: SharedFilter) -> Self {
        let hasher = KeyHasher::of(core.seed());
        Self { core, hasher }
    }

    /// Returns whether a key was inserted within the window, and inserts it if not.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(!filter.seen("a"));
    /// assert!(filter.seen("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    #[inline]
    pub fn seen(&self, key: impl Key) -> bool {
        infallible(self.core.seen(key.to_hash(&self.hasher), At::Now))
    }

    /// Returns whether a key was inserted within the window before an event, and inserts it as of that time if not.
    ///
    /// Rejects times for a window of insertions, times that step back by more than the lateness, and times too far
    /// ahead of the system's clock. The lateness has to cover how far the times of overlapping calls lie apart.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{ConcurrentFilter, Window};
    ///
    /// let window = Window::time(Duration::from_secs(60));
    /// let filter = ConcurrentFilter::builder(window).fpr(0.01).capacity(1000).build()?;
    /// assert!(!filter.seen_at("a", UNIX_EPOCH + Duration::from_secs(1000))?);
    /// assert!(filter.seen_at("a", UNIX_EPOCH + Duration::from_secs(1060))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen_at(&self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        self.core.seen(key.to_hash(&self.hasher), At::Moment(moment(at)?))
    }

    /// Inserts a key, whose window begins now, whether it is there or not.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: impl Key) {
        infallible(self.core.insert(key.to_hash(&self.hasher), At::Now));
    }

    /// Inserts a key as of the time of an event. Rejects the times that [`seen_at`](Self::seen_at) rejects.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ConcurrentFilter, Window};
    ///
    /// let window = Window::time(Duration::from_secs(60));
    /// let filter = ConcurrentFilter::builder(window).fpr(0.01).capacity(1000).build()?;
    /// filter.insert_at("a", SystemTime::now())?;
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn insert_at(&self, key: impl Key, at: SystemTime) -> Result<(), Error> {
        self.core.insert(key.to_hash(&self.hasher), At::Moment(moment(at)?))
    }

    /// Returns whether a key was inserted within the window. Never waits.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        infallible(self.core.contains(key.to_hash(&self.hasher), At::Now))
    }

    /// Returns whether a key was inserted within the window before a time, which may lie in the future.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ConcurrentFilter, Window};
    ///
    /// let window = Window::time(Duration::from_secs(60));
    /// let filter = ConcurrentFilter::builder(window).fpr(0.01).capacity(1000).build()?;
    /// filter.insert("a");
    /// assert!(!filter.contains_at("a", SystemTime::now() + Duration::from_secs(300))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn contains_at(&self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        self.core.contains(key.to_hash(&self.hasher), At::Moment(moment(at)?))
    }

    /// Returns for each key in order whether it was inserted within the window, and inserts it if not.
    ///
    /// A window of time reads the clock once for 4,096 keys, after the last of them.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert_eq!(filter.duplicated([1, 2, 1]), [false, false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated<K: Key>(&self, keys: impl IntoIterator<Item = K>) -> Vec<bool> {
        infallible(in_chunks(keys, &self.hasher, |hashes, seen| self.core.duplicated(hashes, seen)))
    }

    /// Returns for each event in order whether its key was inserted within the window before it, and inserts it if not.
    ///
    /// If a time is rejected, as by [`seen_at`](Self::seen_at), no key is inserted. But if another thread moves the
    /// clock meanwhile, so that a time becomes late, the keys before it have been inserted.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ConcurrentFilter, Window};
    ///
    /// let window = Window::time(Duration::from_secs(60));
    /// let filter = ConcurrentFilter::builder(window).fpr(0.01).capacity(1000).build()?;
    /// let now = SystemTime::now();
    /// assert_eq!(filter.duplicated_at([("a", now), ("a", now)])?, [false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated_at<K: Key>(&self, keys: impl IntoIterator<Item = (K, SystemTime)>) -> Result<Vec<bool>, Error> {
        let (hashes, moments) = events(keys, &self.hasher)?;
        let mut seen = vec![false; hashes.len()];
        self.core.duplicated_at(&hashes, &moments, &mut seen)?;
        Ok(seen)
    }

    /// Returns a copy as a filter of one thread, while other threads go on.
    ///
    /// The copy contains every key of the window whose insertion returned before this call. Its window of insertions is
    /// longer by at most 1 / 256, because the common count of the threads may be ahead by that much.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// assert!(filter.snapshot()?.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<Filter, Error> {
        Ok(Filter::of(self.core.to_filter()?))
    }

    /// Returns the window.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert_eq!(filter.window(), Window::last(1000));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn window(&self) -> Window {
        Window::of_length(self.core.window().length(), self.core.window())
    }

    /// Returns the chance that a key never inserted is reported, at the worst phase and the planned load.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.fpr() <= 0.01);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn fpr(&self) -> f64 {
        self.core.fpr()
    }

    /// Returns the chance that a key never inserted is reported now. Reads all cells, while other threads go on.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// let window = Window::time(std::time::Duration::from_secs(60));
    /// let mut filter = ConcurrentFilter::builder(window).fpr(0.01).capacity(1000).build()?;
    /// filter.extend(0..1000);
    /// assert!(filter.false_positive_rate() < 0.015, "a burst of the capacity");
    /// filter.extend(1000..10_000);
    /// assert!(filter.false_positive_rate() > 0.1, "nine times as many more");
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate()
    }

    /// Forgets all keys.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let mut filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.inserted() == 0);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.core = infallible(self.core.cleared());
    }

    /// Returns how long after leaving the window a key may still be reported.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.slack().insertions() <= Some(500));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn slack(&self) -> Window {
        Window::of_length(self.core.slack(), self.core.window())
    }

    /// Returns the number of insertions so far. It is exact while no thread inserts.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.duplicated([1, 2, 1]);
    /// assert_eq!(filter.inserted(), 2);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn inserted(&self) -> u64 {
        self.core.inserted()
    }

    /// Returns the bytes of memory.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// assert!(filter.nbytes() < 16_000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.core.nbytes()
    }

    /// Returns the hasher of the keys, which hashes a key once for several filters of one seed.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Hashed, Key, Window};
    /// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// let key = Hashed("a".to_hash(filter.hasher()));
    /// assert!(!filter.seen(key) && filter.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }
}

/// Continues a filter of one thread. It must be one in lines, as [`snapshot`](ConcurrentFilter::snapshot) returns it,
/// and as [`Prefer::Speed`](super::Prefer::Speed) makes it, here and in Python.
///
/// The window of insertions is exactly that of the filter. For that, threads take insertions from their common count
/// one at a time. If all keys are new, this takes longer than in a filter that was built.
///
/// ```
/// # use lately::{ConcurrentFilter, Filter, Prefer, Window};
/// let mut alone = Filter::builder(Window::last(1000)).fpr(0.01).prefer(Prefer::Speed).build()?;
/// alone.insert("a");
/// let shared: ConcurrentFilter = Filter::from_bytes(&alone.to_bytes())?.try_into()?;
/// assert!(shared.contains("a"));
/// # Ok::<(), lately::Error>(())
/// ```
impl TryFrom<Filter> for ConcurrentFilter {
    type Error = Error;

    fn try_from(filter: Filter) -> Result<Self, Error> {
        Ok(Self::of(SharedFilter::from_filter(filter.core())?))
    }
}

// A key or an iterator of a caller can panic, but only before a call changes the cells.
impl UnwindSafe for ConcurrentFilter {}
impl RefUnwindSafe for ConcurrentFilter {}

/// Inserts keys in order. A reference to the filter can be extended too, by each thread its own.
///
/// ```
/// # use lately::{ConcurrentFilter, Window};
/// # let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
/// (&filter).extend(["a", "b"]);
/// assert!(filter.contains("a") && filter.contains("b"));
/// # Ok::<(), lately::Error>(())
/// ```
impl<K: Key> Extend<K> for &ConcurrentFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

/// Inserts keys in order.
impl<K: Key> Extend<K> for ConcurrentFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl fmt::Debug for ConcurrentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentFilter")
            .field("window", &format_args!("{}", self.window()))
            .field("fpr", &self.fpr())
            .field("nbytes", &self.nbytes())
            .finish()
    }
}
