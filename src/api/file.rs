//! Filters in files.

use std::path::Path;

use super::{ConcurrentFilter, ExactWindow, Filter};
use crate::Error;
use crate::format::{self, SaveError};

impl Filter {
    /// Writes the saved form to a file, which Python opens with `lately.open`.
    ///
    /// A file at this path is replaced when all is on disk, so that no reader ever finds half of one.
    ///
    /// ```
    /// # use lately::{Filter, Window};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.lately");
    /// let mut filter = Filter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// filter.save(&path)?;
    /// assert!(Filter::open(&path)?.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        format::save(self.core(), path).map_err(|error| error_of(path, error))
    }

    /// Reads a filter of any family from a file, written here or by Python. Rejects a file that is damaged.
    ///
    /// ```
    /// # use lately::{Error, Filter};
    /// use std::error::Error as _;
    ///
    /// let error = Filter::open("no such file").unwrap_err();
    /// assert!(matches!(error, Error::Io { .. }));
    /// let system: &std::io::Error = error.source().unwrap().downcast_ref().unwrap();
    /// assert!(system.raw_os_error().is_some());
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(Self::from_core(format::open(path).map_err(|error| error_of(path, error))?))
    }
}

impl ConcurrentFilter {
    /// Writes a [`snapshot`](Self::snapshot) to a file, while other threads go on.
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Window};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.lately");
    /// let filter = ConcurrentFilter::builder(Window::last(1000)).fpr(0.01).build()?;
    /// filter.insert("a");
    /// filter.save(&path)?;
    /// assert!(ConcurrentFilter::open(&path)?.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.snapshot()?.save(path)
    }

    /// Reads a filter in lines from a file: see [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// # use lately::{ConcurrentFilter, Filter, Prefer, Window};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("seen.lately");
    /// let mut alone = Filter::builder(Window::last(1000)).fpr(0.01).prefer(Prefer::Speed).build()?;
    /// alone.insert("a");
    /// alone.save(&path)?;
    /// assert!(ConcurrentFilter::open(&path)?.seen("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Filter::open(path)?.try_into()
    }
}

impl ExactWindow {
    /// Reads an exact window from a file, written here or by Python's `ExactFilter`. Rejects a file that is damaged.
    ///
    /// ```
    /// # use lately::{ExactWindow, Window};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("exact.lately");
    /// let mut exact = ExactWindow::new(Window::last(1000))?;
    /// exact.insert("a");
    /// exact.save(&path)?;
    /// assert!(ExactWindow::open(&path)? == exact);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::try_from(Filter::open(path)?).map_err(|error| error_of(path, error.into()))
    }
}

/// Returns the error of a file, which names it.
fn error_of(path: &Path, error: SaveError) -> Error {
    match error {
        SaveError::Filter(Error::Format(message)) => Error::format(format!("{}: {message}", path.display())),
        SaveError::Filter(error) => error,
        SaveError::Io(error) => Error::of_system(format!("{}: {error}", path.display()), error),
    }
}
