//! Filters in files.

use std::path::Path;

use super::Filter;
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

/// Returns the error of a file, which names it.
fn error_of(path: &Path, error: SaveError) -> Error {
    match error {
        SaveError::Filter(Error::Format(message)) => Error::format(format!("{}: {message}", path.display())),
        SaveError::Filter(error) => error,
        SaveError::Io(error) => Error::of_system(format!("{}: {error}", path.display()), error),
    }
}
