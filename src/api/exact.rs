//! The exact window.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::window::moment;
use super::{Window, events, in_chunks, infallible};
use crate::Error;
use crate::clock::Moments;
use crate::concurrent::system_now;
use crate::engine::Refresh;
use crate::exact::Exact;
use crate::key::{Key, KeyHasher};

/// The keys of a window, exactly: no slack and no rate, in 12 to 32 bytes per key.
///
/// The table stores 64-bit hashes. Of n keys in windows of W, two different keys share a hash with probability at most
/// n W / 2⁶⁴. Every occurrence restarts a key's window. Memory grows with the keys of a window of time, and an
/// allocation that fails ends the process, as for a `Vec`.
///
/// ```
/// use lately::{ExactWindow, Window};
///
/// let mut exact = ExactWindow::new(Window::last(2))?;
/// assert_eq!(exact.duplicated(["a", "b", "a", "c", "b"]), [false, false, true, false, false]);
/// # Ok::<(), lately::Error>(())
/// ```
pub struct ExactWindow {
    core: Exact,
    window: Window,
    hasher: KeyHasher,
}

impl ExactWindow {
    /// Makes an empty window. Its length must be above zero.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// assert!(ExactWindow::new(Window::last(0)).is_err());
    /// ```
    pub fn new(window: Window) -> Result<Self, Error> {
        Self::with_lateness(window, Duration::ZERO)
    }

    /// Makes an empty window of time in which events may lie up to `lateness` before the latest one.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use lately::{ExactWindow, Window};
    ///
    /// let (minute, at) = (Duration::from_secs(60), |seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    /// let mut exact = ExactWindow::with_lateness(Window::time(minute), minute)?;
    /// assert!(!exact.seen_at("a", at(1000))?);
    /// assert!(!exact.seen_at("b", at(1100))?);
    /// assert!(exact.seen_at("a", at(1050))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn with_lateness(window: Window, lateness: Duration) -> Result<Self, Error> {
        let lateness = (!lateness.is_zero()).then_some(lateness);
        let core = Exact::new(window.to_core("window", lateness, None)?)?;
        Ok(Self { core, window, hasher: KeyHasher::new(0) })
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
        let hash = key.to_hash(&self.hasher);
        infallible(self.act(&[hash], self.now()))[0]
    }

    /// Returns whether a key was seen within the window before an event, and inserts it as of that time.
    ///
    /// A time that lies further back than the lateness may miss keys.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// let now = SystemTime::now();
    /// assert!(!exact.seen_at("a", now)? && exact.seen_at("a", now + Duration::from_secs(60))?);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen_at(&mut self, key: impl Key, at: SystemTime) -> Result<bool, Error> {
        self.check_timed()?;
        let hash = key.to_hash(&self.hasher);
        Ok(self.act(&[hash], Moments::At(moment(at)?))?[0])
    }

    /// Returns for each key in order whether it was seen within the window, and inserts it.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// assert_eq!(exact.duplicated([1, 2, 1]), [false, false, true]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Vec<bool> {
        let (hasher, at) = (self.hasher, self.now());
        let core = &mut self.core;
        infallible(in_chunks(keys, &hasher, |hashes, seen| core.duplicated(hashes, at, Refresh::Always, None, seen)))
    }

    /// Returns for each event in order whether its key was seen within the window before it, and inserts the key.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use lately::{ExactWindow, Window};
    ///
    /// let mut exact = ExactWindow::new(Window::time(Duration::from_secs(60)))?;
    /// let now = SystemTime::now();
    /// assert_eq!(exact.duplicated_at([("a", now), ("a", now + Duration::from_secs(61))])?, [false, false]);
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn duplicated_at<K: Key>(
        &mut self,
        keys: impl IntoIterator<Item = (K, SystemTime)>,
    ) -> Result<Vec<bool>, Error> {
        self.check_timed()?;
        let (hashes, moments) = events(keys, &self.hasher)?;
        self.act(&hashes, Moments::of(&moments))
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
        self.window
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
        self.core.nbytes()
    }

    fn act(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<Vec<bool>, Error> {
        let mut seen = vec![false; hashes.len()];
        self.core.duplicated(hashes, at, Refresh::Always, None, &mut seen)?;
        Ok(seen)
    }

    fn now(&self) -> Moments<'static> {
        match self.window.span() {
            None => Moments::Untimed,
            Some(_) => Moments::At(self.core.latest().map_or_else(system_now, |latest| system_now().max(latest))),
        }
    }

    fn check_timed(&self) -> Result<(), Error> {
        match self.window.span() {
            Some(_) => Ok(()),
            None => Err(Error::value("at is for windows of time; this window counts insertions")),
        }
    }
}

impl fmt::Debug for ExactWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactWindow")
            .field("window", &format_args!("{}", self.window))
            .field("nbytes", &self.nbytes())
            .finish()
    }
}
