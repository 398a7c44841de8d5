//! The exact window.

use std::ops::Deref;
use std::time::SystemTime;

use super::{Builder, Filter, Window};
use crate::Error;
use crate::family::exact::shape::ExactShape;
use crate::key::Key;

/// The exact keys of a window: no slack and no false positives, in 12 to 32 bytes per key.
///
/// The table stores 64-bit hashes. Of n keys in windows of W, two different keys share a hash with probability at most
/// n W / 2⁶⁴. Every occurrence restarts a key's window. Memory grows with the keys of a window of time, and an
/// allocation that fails ends the process, as for a `Vec`.
///
/// It is a [`Filter`] of the family "exact", and has the methods of one that do not change it.
///
/// Against keys that an attacker chooses, set [`Builder::secret`].
///
/// ```
/// use lately::{ExactWindow, Window};
///
/// let mut exact = ExactWindow::new(Window::last(2))?;
/// assert_eq!(exact.duplicated(["a", "b", "a", "c", "b"]), [false, false, true, false, false]);
/// assert!(exact.contains("c") && exact.slack() == Window::last(0));
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ExactWindow(Filter);

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

    /// Returns whether a key was seen within the window, and inserts it.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// assert!(!exact.seen(5) && exact.seen(5));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn seen(&mut self, key: impl Key) -> bool {
        self.0.seen(key)
    }

    /// Returns whether a key was seen within the window before an event, and inserts it as of that time. Rejects the
    /// times that [`Filter::seen_at`] rejects.
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
        self.0.seen_at(key, at)
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
        self.0.insert(key);
    }

    /// Inserts a key as of the time of an event. Rejects the times that [`Filter::seen_at`] rejects.
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
        self.0.insert_at(key, at)
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
        self.0.duplicated(keys)
    }

    /// Returns for each event in order whether its key was seen within the window before it, and inserts the key. If a
    /// time is rejected, as by [`Filter::seen_at`], no key is inserted.
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
        self.0.duplicated_at(keys)
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
        self.0.clear();
    }

    /// Reads a window from its saved form, written here or by Python's `ExactFilter`. Rejects bytes that are damaged.
    ///
    /// ```
    /// # use lately::{Error, ExactWindow};
    /// assert!(matches!(ExactWindow::from_bytes(b"no window"), Err(Error::Format(_))));
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Filter::from_bytes(bytes)?.try_into()
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
        self.core().engine().keys(self.now()).expect("an exact window stores every key")
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
}

impl Deref for ExactWindow {
    type Target = Filter;

    fn deref(&self) -> &Filter {
        &self.0
    }
}

/// Continues a filter of the family "exact".
impl TryFrom<Filter> for ExactWindow {
    type Error = Error;

    fn try_from(filter: Filter) -> Result<Self, Error> {
        match filter.core().shape_as::<ExactShape>() {
            Some(_) => Ok(Self(filter)),
            None => Err(Error::format(format!(
                "no exact window was saved here, but a filter of family {}: read it as a Filter",
                filter.family()
            ))),
        }
    }
}

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
        self.0.extend(keys);
    }
}
