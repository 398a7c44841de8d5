//! The exact window.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::SystemTime;

use super::window::{check_clock, moment};
use super::{Builder, CHUNK, Window, at_end, each_chunk, events, in_chunks, infallible};
use crate::Error;
use crate::clock::{Clock, Moments, Window as CoreWindow, system};
use crate::engine::Refresh;
use crate::format::exact::{self, Saved};
use crate::format::in_memory;
use crate::key::{Key, KeyHasher};

/// The exact keys of a window: no slack and no false positives, in 12 to 32 bytes per key.
///
/// The table stores 64-bit hashes. Of n keys in windows of W, two different keys share a hash with probability at most
/// n W / 2⁶⁴. Every occurrence restarts a key's window. Memory grows with the keys of a window of time, and an
/// allocation that fails ends the process, as for a `Vec`.
///
/// Against keys that an attacker chooses, set [`Builder::secret`].
///
/// ```
/// use lately::{ExactWindow, Window};
///
/// let mut exact = ExactWindow::new(Window::last(2))?;
/// assert_eq!(exact.duplicated(["a", "b", "a", "c", "b"]), [false, false, true, false, false]);
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Clone)]
pub struct ExactWindow {
    core: Saved,
    hasher: KeyHasher,
    /// The hash of missing keys, in a window of Python's that makes each of them a key of its own.
    unlike: Option<u64>,
}

impl ExactWindow {
    /// Makes an empty window. Its length must be above zero.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// assert!(ExactWindow::new(Window::last(0)).is_err());
    /// ```
    pub fn new(window: Window) -> Result<Self, Error> {
        Self::builder(window).build()
    }

    /// Begins a window with a lateness or a secret.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{ExactWindow, Window};
    ///
    /// let (minute, at) = (Duration::from_secs(60), |seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    /// let mut exact = ExactWindow::builder(Window::time(minute)).lateness(minute).build()?;
    /// assert!(!exact.seen_at("a", at(1000))?);
    /// assert!(!exact.seen_at("b", at(1100))?);
    /// assert!(exact.seen_at("a", at(1050))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn builder(window: Window) -> Builder<Self> {
        Builder::new(window)
    }

    pub(super) fn of(core: Saved) -> Self {
        let hasher = KeyHasher::new(core.seed);
        match core.distinct {
            false => Self { core, hasher, unlike: None },
            true => Self { core, hasher: hasher.with_missing_rows(), unlike: Some(hasher.missing()) },
        }
    }

    /// Returns whether a key was seen within the window, and inserts it.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// assert!(!exact.seen(5) && exact.seen(5));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen(&mut self, key: impl Key) -> bool {
        let (hash, now) = (key.to_hash(&self.hasher), self.now());
        infallible(self.seen_in_core(hash, now))
    }

    /// Returns whether a key was seen within the window before an event, and inserts it as of that time.
    ///
    /// Rejects times for a window of insertions, times that step back by more than the lateness, and times too far
    /// ahead of the system's clock.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    /// assert!(!exact.seen_at("a", at(1000))? && exact.seen_at("a", at(1060))?);
    /// assert!(exact.seen_at("b", at(900)).is_err());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen_at(&mut self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        let at = Moments::At(moment(at)?);
        self.check_new(at)?;
        let hash = key.to_hash(&self.hasher);
        self.seen_in_core(hash, at)
    }

    /// Inserts a key.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// exact.insert("a");
    /// assert!(exact.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn insert(&mut self, key: impl Key) {
        self.seen(key);
    }

    /// Inserts a key as of the time of an event. Rejects the times that [`seen_at`](Self::seen_at) rejects.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// exact.insert_at("a", UNIX_EPOCH + Duration::from_secs(1000))?;
    /// assert!(exact.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn insert_at(&mut self, key: impl Key, at: SystemTime) -> Result<(), Error> {
        self.seen_at(key, at).map(drop)
    }

    /// Returns whether a key was seen within the window, which ends now, or with the latest event if all keys had
    /// times.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let exact = ExactWindow::new(Window::last(1000))?;
    /// assert!(!exact.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn contains(&self, key: impl Key) -> bool {
        infallible(self.contains_in_core(key.to_hash(&self.hasher), self.now()))
    }

    /// Returns whether a key was seen within the window before a time, which may lie in the future. Rejects a window of
    /// insertions, and times before the latest event by more than the lateness.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// exact.insert("a");
    /// assert!(!exact.contains_at("a", SystemTime::now() + Duration::from_secs(61))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn contains_at(&self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        let at = Moments::At(moment(at)?);
        self.clock().check(at, false)?;
        self.contains_in_core(key.to_hash(&self.hasher), at)
    }

    /// Returns for each key in order whether it was seen within the window, and inserts it.
    ///
    /// A window of time reads the clock once for 4,096 keys, after the last of them.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// assert_eq!(exact.duplicated([1, 2, 1]), [false, false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Vec<bool> {
        let hasher = self.hasher;
        infallible(in_chunks(keys, &hasher, |hashes, seen| self.duplicated_in_core(hashes, self.now(), seen)))
    }

    /// Returns for each event in order whether its key was seen within the window before it, and inserts the key.
    ///
    /// If a time is rejected, as by [`seen_at`](Self::seen_at), no key is inserted.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// let now = SystemTime::now();
    /// assert_eq!(exact.duplicated_at([("a", now), ("a", now + Duration::from_secs(59))])?, [false, true]);
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
        self.duplicated_in_core(&hashes, at, &mut seen)?;
        Ok(seen)
    }

    /// Forgets all keys.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// exact.insert("a");
    /// exact.clear();
    /// assert!(exact.is_empty());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.core.exact = infallible(self.core.exact.cleared());
    }

    /// Returns the saved form, which [`from_bytes`](Self::from_bytes) reads here and `lately.from_bytes` in Python.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// exact.insert("a");
    /// assert!(ExactWindow::from_bytes(&exact.to_bytes())?.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.core.written().and_then(|written| written.to_bytes());
        bytes.unwrap_or_else(|_| handle_alloc_error(Layout::new::<u64>()))
    }

    /// Reads a window from its saved form, written here or by Python's `ExactFilter`. Rejects bytes that are damaged.
    ///
    /// ```
    /// # use lately::{Error, ExactWindow};
    /// assert!(matches!(ExactWindow::from_bytes(b"no window"), Err(Error::Format(_))));
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() >= 12 && !exact::is_exact(bytes) {
            return Err(Error::format("no exact window was saved here: read a filter as a Filter"));
        }
        let mut rest = bytes;
        let core = exact::read(&mut rest).map_err(in_memory)?;
        let checked = core.exact.window().check().and_then(check_clock);
        checked.map_err(|error| Error::format(error.to_string()))?;
        at_end(rest)?;
        Ok(Self::of(core))
    }

    /// Returns the window.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let exact = ExactWindow::new(Window::last(1000))?;
    /// assert_eq!(exact.window(), Window::last(1000));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn window(&self) -> Window {
        Window::of_length(self.core.exact.window().length(), self.core.exact.window())
    }

    /// Returns the number of different keys in the window. Reads the whole table.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// exact.extend([1, 2, 1]);
    /// assert_eq!((exact.len(), exact.inserted()), (2, 3));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.core.exact.count(self.now())
    }

    /// Returns whether no key is in the window.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// assert!(ExactWindow::new(Window::last(1000))?.is_empty());
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of insertions so far.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1))?;
    /// exact.extend(0..1000);
    /// assert_eq!(exact.inserted(), 1000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn inserted(&self) -> u64 {
        self.core.exact.inserted()
    }

    /// Returns the bytes of the table of keys.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let exact = ExactWindow::new(Window::last(1000))?;
    /// assert!(exact.nbytes() >= 12_000);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.core.exact.nbytes()
    }

    /// Returns the hasher of the keys, which hashes a key once for several filters of one seed.
    ///
    /// ```
    /// # use lately::{ExactWindow, Hashed, Key, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// let key = Hashed("a".to_hash(exact.hasher()));
    /// assert!(!exact.seen(key) && exact.contains("a"));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    #[cfg(feature = "file")]
    pub(super) fn core(&self) -> &Saved {
        &self.core
    }

    fn seen_in_core(&mut self, hash: u64, at: Moments<'_>) -> Result<bool, Error> {
        let mut seen = [false];
        self.duplicated_in_core(&[hash], at, &mut seen)?;
        Ok(seen[0])
    }

    fn duplicated_in_core(&mut self, hashes: &[u64], at: Moments<'_>, seen: &mut [bool]) -> Result<(), Error> {
        self.core.exact.duplicated(hashes, at, Refresh::Always, self.unlike, seen)
    }

    fn contains_in_core(&self, hash: u64, at: Moments<'_>) -> Result<bool, Error> {
        let mut seen = [false];
        self.core.exact.query(&[hash], at, self.unlike, &mut seen)?;
        Ok(seen[0])
    }

    fn now(&self) -> Moments<'static> {
        match self.core.exact.window() {
            CoreWindow::Count { .. } => Moments::Untimed,
            CoreWindow::Time { .. } => Moments::Now(system::now()),
        }
    }

    /// The clock that accepts and rejects times.
    fn clock(&self) -> Clock {
        self.core.exact.clock()
    }

    fn check_new(&self, at: Moments<'_>) -> Result<(), Error> {
        self.clock().check_new(at, self.clock().present())
    }
}

// A key or an iterator of a caller can panic, but only before a call changes the table.
impl UnwindSafe for ExactWindow {}
impl RefUnwindSafe for ExactWindow {}

/// Inserts keys in order.
///
/// ```
/// # use lately::{ExactWindow, Window};
/// let mut exact = ExactWindow::new(Window::last(1000))?;
/// exact.extend(["a", "b"]);
/// assert!(exact.contains("a") && exact.contains("b"));
/// # Ok::<(), lately::Error>(())
/// ```
impl<K: Key> Extend<K> for ExactWindow {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let (hasher, mut seen) = (self.hasher, [false; CHUNK]);
        infallible(each_chunk(keys, &hasher, |hashes| {
            self.duplicated_in_core(hashes, self.now(), &mut seen[..hashes.len()])
        }));
    }
}

impl fmt::Debug for ExactWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactWindow")
            .field("window", &format_args!("{}", self.window()))
            .field("inserted", &self.inserted())
            .field("nbytes", &self.nbytes())
            .finish()
    }
}
